#!/usr/bin/env bash
# Runs the complete comparison with scikit-learn's Nystroem on letter.csv, once with one BLAS thread and once with
# two. Checks its verdict.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
for threads in 1 2; do
  PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" client/python/examples/letter.py \
    --phimapd="$build/server/phimapd" --threads="$threads"
done
