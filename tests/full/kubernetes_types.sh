#!/usr/bin/env bash
# Compares what kubectl renders from deploy/kubernetes with the types of Kubernetes, cert-manager and Prometheus Operator: every
# field must exist, have its type, and not be deprecated. Needs node, npm and the npm registry.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
export WORK=$build/kubernetes_types
# Works on a copy, so that no node_modules are left in the source tree.
mkdir -p "$WORK"
cp tests/full/kubernetes_types/.npmrc tests/full/kubernetes_types/* "$WORK/"
timeout 180 npm ci --prefix "$WORK" --ignore-scripts --no-audit --no-fund --loglevel=error
/usr/bin/python3 tests/full/kubernetes_types/types_test.py
