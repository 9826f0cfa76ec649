# The servers of bench/run: sourced by it. Uses its $build and $work; every start waits until the server says it is ready.

memory_bytes=$((256 << 20))
phimapd_pid= phimapd_address= builds_pid=
declare -A other_pid other_address # by "floor-512"
declare -A http_of                 # of each phimapd, by its process

# start NAME COMMAND…: sets started_pid and started_address, and http_of if the server prints an HTTP address.
start() {
  mkfifo "$work/ready-$1"
  "${@:2}" >"$work/ready-$1" 2>"$work/$1.log" &
  started_pid=$!
  local line=
  read -r line <"$work/ready-$1" || true
  rm "$work/ready-$1"
  [[ $line != *http=* ]] || { http_of[$started_pid]=${line#*http=}; http_of[$started_pid]=${http_of[$started_pid]%% *}; }
  started_address=${line#*grpc=}
  started_address=${started_address%% *}
  [ -n "$started_address" ] || { echo "bench/run: $1 did not start" >&2; cat "$work/$1.log" >&2; exit 1; }
}

stop() {
  kill "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}

start_phimapd() {
  start phimapd "$build/server/phimapd" --data_dir="$work/store" --listen=127.0.0.1:0 --http=127.0.0.1:0 \
    --unix_listen="$work/phimapd.socket" --memory_bytes=$memory_bytes --log_level=error
  phimapd_pid=$started_pid phimapd_address=$started_address
}
stop_phimapd() {
  [ -z "$phimapd_pid" ] || stop "$phimapd_pid"
  phimapd_pid=
}

# start_other NAME COMMAND…: starts a server that address_of finds by this name.
start_other() {
  start "$@"
  other_pid[$1]=$started_pid other_address[$1]=$started_address
}

# start_floors D: starts the floors of grpc++, which are the callback echo, and the generic echo, which parses
# nothing.
start_floors() {
  start_other "floor-$1" "$build/bench/echo_server" --features="$1"
  start_other "generic-$1" "$build/bench/echo_server" --features="$1" --api=generic
}
start_unix_floor() {
  start_other "floor_unix-$1" "$build/bench/echo_server" --features="$1" --listen="unix:$work/floor-$1.socket"
}
# start_tls D…: makes a certificate for this run, and starts with it a phimapd, and a floor for each D. The phimapd
# has its own store, without versions.
start_tls() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/tls.key" -out "$work/tls.pem" 2>/dev/null
  local tls=(--tls_certificate="$work/tls.pem" --tls_key="$work/tls.key")
  start_other "phimap_tls" "$build/server/phimapd" --data_dir="$work/store-tls" --listen=127.0.0.1:0 --http=127.0.0.1:0 \
    --memory_bytes=$memory_bytes --log_level=error "${tls[@]}"
  local d
  for d in "$@"; do start_other "floor_tls-$d" "$build/bench/echo_server" --features="$d" "${tls[@]}"; done
}

# The floor below gRPC; bench/nghttpd_floor starts and stops it.
have_nghttpd() { command -v h2load >/dev/null && { command -v nghttpd || [ -x /usr/sbin/nghttpd ]; } >/dev/null; }

# start_peer D: generates Python's messages and stubs into the build folder, and starts the peer.
start_peer() {
  local generated=$build/bench/python
  mkdir -p "$generated"
  protoc -I proto --python_out="$generated" --grpc_out="$generated" \
    --plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin \
    phimap/v1/examples.proto phimap/v1/mapping.proto phimap/v1/transform_service.proto
  start_other "peer-$1" /usr/bin/python3 bench/peer_server.py --generated="$generated" --features="$1"
}
stop_others() {
  local name
  for name in "${!other_pid[@]}"; do stop "${other_pid[$name]}"; done
  other_pid=()
}

# address_of SERVER D: sets address, pid and tls_ca.
address_of() {
  tls_ca=
  [[ $1 != *_tls ]] || tls_ca=$work/tls.pem
  if [ "$1" = phimap ]; then
    address=$phimapd_address pid=$phimapd_pid
  elif [ "$1" = phimap_unix ]; then
    address=unix:$work/phimapd.socket pid=$phimapd_pid
  elif [ "$1" = phimap_tls ]; then
    address=${other_address[phimap_tls]} pid=${other_pid[phimap_tls]}
  else
    address=${other_address[$1-$2]} pid=${other_pid[$1-$2]}
  fi
}

# start_builds D: builds versions of D landmarks, one after the other, until stop_builds.
start_builds() {
  (
    trap 'kill "$build_pid" 2>/dev/null; wait "$build_pid"; exit 0' TERM # phimap cancels its build
    while true; do
      "$build/client/cli/phimap" --server="$phimapd_address" build noise --input="$work/rows.npy" \
        --spec="f2(landmarks=$1)" --kernel='rbf(gamma=scale)' >/dev/null 2>&1 &
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
  stop_others
  stop_phimapd
}
