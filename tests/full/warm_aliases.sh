#!/usr/bin/env bash
# 200 versions on disk and memory for 20: what the server takes, and what readers of warm versions notice of cold loads.
# The memory is checked anywhere; the times are for an idle machine.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" tests/full/warm_aliases/warm_aliases.py \
  --phimapd="$build/server/phimapd" --phimap="$build/client/cli/phimap"
