#!/usr/bin/env bash
# Measures the longest time between two polls of the server's event loop, in the hardest scenarios. Needs an idle
# machine.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/poll_gap/poll_gap.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap"
