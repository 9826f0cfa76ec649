#!/usr/bin/env bash
# All tests under AddressSanitizer and all of UndefinedBehaviorSanitizer, of which .ci/run leaves out the checks that
# double the time to compile.
set -euo pipefail
build=$(cd "$1" && pwd)/sanitizers
cd "$(dirname "$0")/../.."
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
tools/build "$build" -DPHIMAP_SANITIZE=address,undefined
tools/run_tests "$build"
