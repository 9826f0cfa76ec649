#!/usr/bin/env bash
# The seconds that EstimateBuild forecasts are within a factor of 3 of the CPU time that builds take.
set -euo pipefail
exec "$1/tests/server/build/build_seconds"
