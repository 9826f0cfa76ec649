#!/usr/bin/env bash
# Runs well-behaved and badly behaved clients of all kinds against one server for twenty minutes.
# tests/full/soak/soak.py describes the clients and the conditions that must hold. SOAK_MINUTES makes the run shorter.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/soak/soak.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap" --minutes="${SOAK_MINUTES:-20}"
