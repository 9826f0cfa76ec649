#!/usr/bin/env bash
# Runs all tests under AddressSanitizer and UndefinedBehaviorSanitizer, with all checks of UndefinedBehaviorSanitizer.
# .ci/run omits those that double the compile time.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/build build-sanitizers
tools/run_tests build-sanitizers
