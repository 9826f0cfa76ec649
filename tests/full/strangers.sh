#!/usr/bin/env bash
# Measures what clients without a token can do on many connections: the memory that 500 of them take, and how long an
# admitted caller waits beside 64 and 512 of them. Needs an idle machine.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/e2e/strangers_test.py --full \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap"
