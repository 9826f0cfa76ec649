#!/usr/bin/env bash
# Plants faults that earlier versions had, one at a time, and checks that tests/e2e/fleet_history_test.cc finds each
# of them. A fault is a patch in tests/full/planted_faults; one that no longer applies fails here, and has to be
# written anew for the code of today.
set -euo pipefail
cd "$(dirname "$0")/../.."
faults=$PWD/tests/full/planted_faults
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar -x -C "$copy"
cd "$copy"
git init -q
git add -A
missed=0
for fault in "$faults"/*.patch; do
  git checkout -q -- .
  git apply "$fault"
  tools/build build fleet_history_test
  log=$copy/$(basename "$fault").log
  if build/tests/e2e/fleet_history_test > "$log" 2>&1; then
    echo "MISSED: $(head -1 "$fault")"
    missed=1
  else
    echo "found: $(head -1 "$fault")"
    grep -m 3 -A 2 -E 'Which is|was lost|by its own clock' "$log" || true
  fi
done
exit "$missed"
