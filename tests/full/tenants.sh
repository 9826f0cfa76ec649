#!/usr/bin/env bash
# Ten minutes in which three teams try to see, export, fill, slow and stop what belongs to a fourth.
# tests/full/tenants/tenants.py describes the attacks and the conditions that must hold. TENANTS_MINUTES makes the run
# shorter. Needs an idle machine.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONPATH=tests/e2e PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/tenants/tenants.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap" --minutes="${TENANTS_MINUTES:-10}"
