#!/usr/bin/env bash
# All tests under AddressSanitizer and all of UndefinedBehaviorSanitizer, of which .ci/run leaves out the checks that
# double the time to compile.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/build build-sanitizers
tools/run_tests build-sanitizers
