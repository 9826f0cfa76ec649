#!/usr/bin/env bash
# Compiles phimap's C++ client from its sources in the two ways in which others do, each within a limit of time and without a
# compiler's cache, and runs the project of tests/packages against a real phimapd: as a folder that the project fetches, and
# built alone (PHIMAP_CLIENT_ONLY) and installed.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
PHIMAPD=$build/server/phimapd PHIMAP=$build/client/cli/phimap PYTHONPATH=tests/deploy:tests/packages PYTHONDONTWRITEBYTECODE=1 \
  CCACHE_DISABLE=1 /usr/bin/python3 tests/full/outside_project/from_sources.py
