#!/usr/bin/env bash
# Ten minutes of hostile clients of all kinds at once. tests/full/hostile_load/hostile_load.py describes them and the
# conditions that must hold. HOSTILE_MINUTES makes the run shorter. Needs an idle machine.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONPATH=tests/e2e PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/hostile_load/hostile_load.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap" --minutes="${HOSTILE_MINUTES:-10}"
