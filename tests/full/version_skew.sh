#!/usr/bin/env bash
# Builds the programs of 0.1 from the history, and has clients and servers of 0.1 and of this version talk to each other, as
# docs/operations/upgrade.md says that they do. Needs the whole history, and a quarter of an hour.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
last_of_0_1=f8777aca5d0aa0dc481fbb0dda1a100e4393a0d6
git cat-file -e "$last_of_0_1^{commit}" 2>/dev/null || {
  echo "version_skew: this clone lacks the history of 0.1; get it with 'git fetch --unshallow'" >&2
  exit 1
}
old=$(mktemp -d)
trap 'git worktree remove --force "$old/source" 2>/dev/null || true; rm -rf "$old"' EXIT
git worktree add --quiet --detach "$old/source" "$last_of_0_1"
(cd "$old/source" && tools/build build phimapd phimap >/dev/null)
/usr/bin/python3 tests/full/version_skew/skew_test.py "$old/source/build" "$build"
