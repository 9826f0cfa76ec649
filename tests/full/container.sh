#!/usr/bin/env bash
# Builds the container image without a Docker daemon and runs it three times. chroot_test.py runs it with buildah and
# chroot isolation. runtime_test.py runs it as deploy/compose.single.yaml describes, with a container runtime (podman and
# runc) that enforces more than a chroot can: the read-only root, no capabilities, and the CPU quota. pod_test.py runs it
# so as deploy/kubernetes describes, on a PostgreSQL. Needs root, and Debian's packages of these programs.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
[ -x "$build/server/phimapd" ] || { echo "container: $build has no phimapd to compare with; build first" >&2; exit 1; }
tools/image "$build"
/usr/bin/python3 tests/full/container/chroot_test.py "$build"
/usr/bin/python3 tests/full/container/runtime_test.py "$build"
/usr/bin/python3 tests/full/container/pod_test.py "$build"
