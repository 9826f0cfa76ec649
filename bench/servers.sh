# The servers of bench/run: sourced by it. Uses its $build and $work; every start waits until the server says it is ready.

memory_bytes=$((256 << 20))
phimapd_pid= phimapd_address= builds_pid=
declare -A other_pid other_address # by "floor-512"

# start NAME COMMAND…: sets started_pid and started_address.
start() {
  mkfifo "$work/ready-$1"
  "${@:2}" >"$work/ready-$1" 2>"$work/$1.log" &
  started_pid=$!
  local line=
  read -r line <"$work/ready-$1" || true
  rm "$work/ready-$1"
  started_address=${line#*grpc=}
  started_address=${started_address%% *}
  [ -n "$started_address" ] || { echo "bench/run: $1 did not start" >&2; cat "$work/$1.log" >&2; exit 1; }
}

stop() {
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

start_phimapd() {
  start phimapd "$build/server/phimapd" --data_dir="$work/store" --listen=127.0.0.1:0 --http=none \
    --memory_bytes=$memory_bytes --log_level=error
  phimapd_pid=$started_pid phimapd_address=$started_address
}
stop_phimapd() {
  [ -z "$phimapd_pid" ] || stop "$phimapd_pid"
  phimapd_pid=
}

start_floor() {
  start "floor-$1" "$build/bench/echo_server" --features="$1"
  other_pid[floor-$1]=$started_pid other_address[floor-$1]=$started_address
}

# Python's messages and stubs, generated into the build folder.
start_peer() {
  local generated=$build/bench/python
  mkdir -p "$generated"
  protoc -I proto --python_out="$generated" --grpc_out="$generated" \
    --plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin \
    phimap/v1/examples.proto phimap/v1/mapping.proto phimap/v1/transform_service.proto
  start "peer-$1" /usr/bin/python3 bench/peer_server.py --generated="$generated" --features="$1"
  other_pid[peer-$1]=$started_pid other_address[peer-$1]=$started_address
}
stop_floors_and_peers() {
  local name
  for name in "${!other_pid[@]}"; do stop "${other_pid[$name]}"; done
  other_pid=()
}

# address_of SERVER D: sets address and pid.
address_of() {
  if [ "$1" = phimap ]; then
    address=$phimapd_address pid=$phimapd_pid
  else
    address=${other_address[$1-$2]} pid=${other_pid[$1-$2]}
  fi
}

# Builds versions of that many landmarks, one after the other, until stop_builds.
start_builds() {
  (
    trap 'kill "$build_pid" 2>/dev/null; wait "$build_pid"; exit 0' TERM # phimap cancels its build
    while true; do
      "$build/client/cli/phimap" --server="$phimapd_address" build noise --input="$work/rows.npy" \
        --mapping="f2(landmarks=$1)" --kernel='rbf(gamma=scale)' >/dev/null 2>&1 &
      build_pid=$!
      wait "$build_pid"
    done
  ) &
  builds_pid=$!
}
stop_builds() {
  [ -z "$builds_pid" ] || stop "$builds_pid"
  builds_pid=
}

resident_bytes() { awk '/^VmRSS:/ {printf "%d", $2 * 1024}' "/proc/$1/status"; }

stop_all() {
  stop_builds
  stop_floors_and_peers
  stop_phimapd
}
