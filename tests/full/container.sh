#!/usr/bin/env bash
# Builds the container image without a Docker daemon and runs it twice: as the buildah of its build runs it (chroot
# isolation), and as deploy/compose.single.yaml says, by a container runtime (podman, runc) that enforces what a chroot cannot:
# the read-only root, no capabilities, the CPU quota. Needs root and Debian's packages.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
[ -x "$build/server/phimapd" ] || { echo "container: $build has no phimapd to compare with; build first" >&2; exit 1; }
tools/image "$build"
/usr/bin/python3 tests/full/container/chroot_test.py "$build"
/usr/bin/python3 tests/full/container/runtime_test.py "$build"
