#!/usr/bin/env bash
# Runs a server with 200 versions on disk, but with memory for only 20. Measures the server's memory, and how much
# cold loads delay readers of warm versions. The memory is checked on any machine; the times are meaningful only on an
# idle machine.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/warm_aliases/warm_aliases.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap"
