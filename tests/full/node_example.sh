#!/usr/bin/env bash
# Runs the Node.js example against a real server. Needs node, npm and the npm registry.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; }
  rm -rf "$work"
}
trap cleanup EXIT

# Runs a copy of the example, so that no node_modules are left in the source tree. The example finds protos and data
# relative to its own folder.
mkdir -p "$work/client/node"
cp -r client/node/. "$work/client/node/"
ln -s "$PWD/proto" "$work/proto"
ln -s "$PWD/lab" "$work/lab"
npm ci --omit=dev --prefix "$work/client/node" --ignore-scripts --no-audit --no-fund --loglevel=error

mkfifo "$work/ready"
"$build/server/phimapd" --data_dir="$work/store" --listen=127.0.0.1:0 --http=127.0.0.1:0 --log_level=error \
  >"$work/ready" &
server=$!
read -r ready <"$work/ready"
address=${ready#*grpc=}
address=${address%% *}

# The example must ignore http_proxy for the loopback interface.
output=$(http_proxy=http://127.0.0.1:9 node "$work/client/node/letter.mjs" "$address")
echo "$output"
pattern='^letters-node@1: 10 rows × [0-9]+ features, the first -?[0-9.e-]+$'
[[ $output =~ $pattern ]] || { echo "node_example: unexpected output" >&2; exit 1; }
