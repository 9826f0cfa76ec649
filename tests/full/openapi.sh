#!/usr/bin/env bash
# Checks the description of the API over HTTP with a linter and with a client in TypeScript that is typed by it. Needs node, npm and
# the npm registry.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
tests/interop/run_openapi "$build"
