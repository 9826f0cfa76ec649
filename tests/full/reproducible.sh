#!/usr/bin/env bash
# Builds the programs, the libraries and the Debian packages twice, from copies of the sources in two folders whose paths
# differ in length, and compares them byte by byte. Umask, language and time zone differ too; the compiler, the packages of
# Debian and SOURCE_DATE_EPOCH are the same. Shows by diffoscope where files differ, if it is installed.
#
#   tests/full/reproducible.sh BUILD [TARGET…]      all that is delivered if no target is named, such as server/phimapd
#
# Without a compiler's cache, because objects from a cache would not have been compiled twice. PHIMAP_CCACHE=1 uses it: that
# takes minutes in place of most of an hour, and compares the links, the packages and what ccache does not know.
set -euo pipefail
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
tools/setup --full

home=$build/reproducible
mkdir -p "$home"
trap 'rm -rf "$home"/a "$home"/b_in_a_longer_folder' EXIT
fail() { echo "reproducible: $*" >&2; exit 1; }

[ "${PHIMAP_CCACHE:-}" = 1 ] || export CCACHE_DISABLE=1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(packages client/binding/libphimap.so THIRD_PARTY_NOTICES)

# Prints the files to compare, relative to the build folder.
delivered() {
  local target
  for target in "${targets[@]}"; do
    if [ "$target" = packages ]; then
      (cd "$1" && find packages -name '*.deb')
      printf '%s\n' server/phimapd client/cli/phimap lib/libphimap_client.a
      (cd "$1" && find lib -name 'libphimap_client.so.*.*' ! -name '*.d')
    else
      echo "$target"
    fi
  done | sort
}

# Builds the sources in a folder of their own.
make() {
  mkdir -p "$1"
  git ls-files -z | xargs -0 cp --parents -t "$1"
  (cd "$1" && cmake --preset release -DPHIMAP_TESTS=OFF >/dev/null && ninja -C build "${targets[@]}") >"$home/log" 2>&1 ||
    { tail -n 30 "$home/log" >&2; fail "cannot build in $1"; }
}

rm -rf "$home"/a "$home"/b_in_a_longer_folder
(umask 022 && LC_ALL=C.UTF-8 TZ=UTC make "$home/a")
(umask 077 && LC_ALL=C TZ=Pacific/Kiritimati make "$home/b_in_a_longer_folder/of_sources")
one=$home/a/build
other=$home/b_in_a_longer_folder/of_sources/build
files=$(delivered "$one")
[ "$files" = "$(delivered "$other")" ] || fail "the two builds made other files"
[ -n "$files" ] || fail "nothing was made"

differing=0
for file in $files; do
  # The sources' folders must not be in what is delivered.
  if grep -qF "$home" "$one/$file"; then
    echo "reproducible: $file contains the path of its sources" >&2
    differing=1
  fi
  if cmp -s "$one/$file" "$other/$file"; then
    echo "reproducible: $file, $(stat -c %s "$one/$file") bytes, $(sha256sum "$one/$file" | cut -c1-16)…"
  else
    echo "reproducible: $file differs" >&2
    ! command -v diffoscope >/dev/null || diffoscope "$one/$file" "$other/$file" 2>/dev/null | head -n 40 >&2 || true
    differing=1
  fi
done
exit $differing
