#!/usr/bin/env bash
# Builds the Go example from Debian's packages, runs it against real servers, and compares its features and predictions with those of
# the command line: with one server, with two that take the calls in turn, and with two of which one dies.
#
#   tests/full/go_example.sh BUILD [WORK]
#
# WORK is a folder in which what was compiled is kept; without it, a temporary one.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
scratch=$(mktemp -d)
work=${2:-$scratch}
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" || true; done
  chmod -R u+w "$scratch" && rm -rf "$scratch"
}
trap cleanup EXIT
fail() { echo "go_example: $1" >&2; exit 1; }

# The stubs go where Go looks for phimap.dev/api/v1. GOPATH also has what Debian's packages install.
mkdir -p "$work/src" "$work/cache"
protoc --proto_path=proto --go_out="$work/src" --go-grpc_out="$work/src" \
  proto/phimap/v1/{examples,mapping,mapping_service,transform_service,predict_service}.proto
export GOPATH=$work:/usr/share/gocode GO111MODULE=off GOCACHE=$work/cache GOFLAGS=-p=2
go vet client/go/*.go
go build -o "$work/letter" client/go/*.go

# start NAME: starts a server, and sets address and http.
start() {
  mkfifo "$scratch/$1.ready"
  "$build/server/phimapd" --data_dir="$scratch/$1" --listen=127.0.0.1:0 --http=127.0.0.1:0 --log_level=error >"$scratch/$1.ready" &
  pids+=($!)
  read -r ready <"$scratch/$1.ready"
  address=${ready#*grpc=} address=${address%% *} http=${ready#*http=}
}
start first; first=$address first_http=$http first_pid=${pids[-1]}
start second; second=$address second_http=$http

# grpc-go 1.33, Debian's, repeats calls only if it is asked to. It must ignore proxies for the loopback interface.
export GRPC_GO_RETRY=on no_proxy=127.0.0.1
letter() { "$work/letter" -csv=lab/data/letter.csv -service_config=client/python/phimap/service_config.json "$@"; }

said=$(letter -servers="$first" -out="$scratch/one.bin")
echo "$said"
pattern=$'^letters-go@1: 1000 rows × [0-9]+ features\nInvalidArgument: examples.dense.columns: expected 16 columns, got 3; '
[[ $said =~ $pattern ]] || fail "unexpected output"
[[ $said == *'reason COLUMNS_MISMATCH, {"actual":"3","expected":"16"}'* && $said == *'field examples.dense.columns'* ]] || fail "no details"

# The command line maps the same rows; an npy file has its features behind a header, which ends with a line.
head -n 1001 lab/data/letter.csv >"$scratch/rows.csv"
PHIMAP_SERVER=$first "$build/client/cli/phimap" transform letters-go@1 --input="$scratch/rows.csv" --label=label -o "$scratch/expected.npy"
tail -c "$(stat -c %s "$scratch/one.bin")" "$scratch/expected.npy" | cmp - "$scratch/one.bin" || fail "other features than the command line's"

# Predictions are those of the command line.
PHIMAP_SERVER=$first "$build/client/cli/phimap" train letters-go@1 --input=lab/data/letter.csv --label=label --learner=ridge >/dev/null
PHIMAP_SERVER=$first "$build/client/cli/phimap" predict letters-go@2 --input="$scratch/rows.csv" --label=label --probabilities \
  --confidence=0.9 -o "$scratch/predicted.csv"
letter -servers="$first" -predict=letters-go@2 >"$scratch/predicted"
python3 - "$scratch/predicted.csv" >"$scratch/expected" <<'END'
import csv, itertools, sys
for row in itertools.islice(csv.DictReader(open(sys.argv[1])), 5):
    print(row["predicted"], "%.3f" % float(row["probability_" + row["predicted"]]), "{" + row["set"].replace("|", " ") + "}")
END
cmp "$scratch/expected" "$scratch/predicted" || fail "other predictions than the command line's"

PHIMAP_SERVER=$first "$build/client/cli/phimap" export letters-go@1 -o "$scratch/artifact"
PHIMAP_SERVER=$second "$build/client/cli/phimap" import "$scratch/artifact" --name=letters-go >/dev/null
calls() { curl --silent --fail "http://$1/metrics" | sed -n 's/^grpc_server_handled_total{grpc_code="OK",grpc_method="Transform",grpc_service="phimap.v1.TransformService".*} //p'; }
letter -servers="$first,$second" -reference=letters-go@1 -seconds=2 -out="$scratch/two.bin"
cmp "$scratch/one.bin" "$scratch/two.bin"
[ "$(calls "$first_http")" -gt 5 ] && [ "$(calls "$second_http")" -gt 5 ] || fail "the calls were not divided"

letter -servers="$first,$second" -reference=letters-go@1 -seconds=4 -out="$scratch/three.bin" &
running=$!
sleep 1
kill -KILL "$first_pid"
wait "$running" || fail "a call was lost when a server died"
cmp "$scratch/one.bin" "$scratch/three.bin"
