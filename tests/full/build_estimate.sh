#!/usr/bin/env bash
# Tests that the time that EstimateBuild forecasts differs from the CPU time of real builds by at most a factor of 3.
set -euo pipefail
exec "$1/tests/server/build/build_seconds"
