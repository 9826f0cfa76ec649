#!/usr/bin/env bash
# Twenty minutes of everything at once, good and bad, on one server: tests/full/soak/soak.py says what, and what must hold.
# SOAK_MINUTES shortens it.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/soak/soak.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap" --minutes="${SOAK_MINUTES:-20}"
