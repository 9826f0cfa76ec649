#!/usr/bin/env bash
# Installs the Python package by README's words in two fresh Debian 12 roots, and runs README's session there without a
# server: in one with the packages of tools/setup --engine, where pip compiles the library (within a limit of time), and
# in one without them, from the wheel that the first one made. Needs root, and a network for apt.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
. tests/full/debian_root.bash
need_root python_alone

# Seconds that pip may take to compile the library, without a compiler's cache.
readonly limit_seconds=360
# What the session itself imports, besides the package.
readonly session_packages="python3-venv python3-pip python3-numpy python3-protobuf python3-grpcio python3-sklearn"

home=$build/python_alone
mkdir -p "$home"
trap 'umount "$home"/*/proc 2>/dev/null || true; rm -rf "$home/compiling" "$home/plain"' EXIT

# Makes the root `$1`, which has this machine's apt sources and a copy of the checkout.
make_root() {
  local root=$home/$1
  rm -rf "$root"
  cp -a "$build/debian_base" "$root"
  mount -t proc proc "$root/proc"
  mkdir -p "$root/phimap"
  git ls-files -z | tar --create --null --files-from=- | tar --extract --directory="$root/phimap"
}

base_root "$build/debian_base"
make_root compiling
within "$home/compiling" sh -c "apt-get update -q && apt-get install -qy --no-install-recommends $session_packages" >"$home/apt.log" 2>&1
within "$home/compiling" /phimap/tools/setup --engine
within "$home/compiling" sh -c 'cd /phimap && /usr/bin/python3 -m venv --system-site-packages venv'
started=$SECONDS
within "$home/compiling" sh -c 'cd /phimap && CCACHE_DISABLE=1 PHIMAP_ENGINE=required venv/bin/pip install --no-build-isolation --no-deps client/python'
took=$((SECONDS - started))
echo "python_alone: pip compiled and installed in $took s, of at most $limit_seconds"
[ "$took" -le "$limit_seconds" ]
within "$home/compiling" sh -c 'cd /phimap && venv/bin/python tests/full/python_alone/session.py'
within "$home/compiling" sh -c 'cd /phimap && PHIMAP_ENGINE=required \
  venv/bin/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir=/wheels client/python'

make_root plain
within "$home/plain" sh -c "apt-get update -q && apt-get install -qy --no-install-recommends $session_packages" >"$home/apt.log" 2>&1
mkdir "$home/plain/wheels"
cp "$home"/compiling/wheels/*.whl "$home/plain/wheels/"
for name in cmake ninja protoc; do
  ! within "$home/plain" sh -c "command -v $name" || { echo "python_alone: the root without our packages has $name" >&2; exit 1; }
done
within "$home/plain" sh -c 'cd /phimap && /usr/bin/python3 -m venv --system-site-packages venv &&
  venv/bin/pip install --no-index --no-deps /wheels/*.whl && venv/bin/python tests/full/python_alone/session.py'
[ "$(cat "$home/compiling/tmp/digest")" = "$(cat "$home/plain/tmp/digest")" ] ||
  { echo "python_alone: the two roots built different artifacts" >&2; exit 1; }
echo "python_alone: both roots built $(cat "$home/plain/tmp/digest")"
