#!/usr/bin/env bash
# The whole comparison with scikit-learn's Nystroem on letter.csv, with its verdict, for one BLAS thread and for two.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
for threads in 1 2; do
  PYTHONDONTWRITEBYTECODE=1 "$build/python/venv/bin/python" client/python/examples/letter.py \
    --phimapd="$build/server/phimapd" --threads="$threads"
done
