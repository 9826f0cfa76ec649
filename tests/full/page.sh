#!/usr/bin/env bash
# Runs the page for people in headless Chromium, against real servers. Needs chromium, node, npm and the npm registry.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
export CHROMIUM=${CHROMIUM:-$(command -v chromium || true)}
[ -x "$CHROMIUM" ] || { echo "page: there is no chromium" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs a copy, so that no node_modules are left in the source tree.
cp -r tests/page/. "$work/"
npm ci --prefix "$work" --ignore-scripts --no-audit --no-fund --loglevel=error
export WORK=$work PHIMAP_BUILD=$build PHIMAP_SOURCE=$PWD no_proxy=127.0.0.1,localhost
for test in "$work"/*_test.mjs; do
  node --test "$test"
done
