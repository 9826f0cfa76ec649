#!/usr/bin/env bash
# Makes the three Debian packages, installs them in a fresh Debian 12 root, and uses them there: phimapd serves, phimap
# builds and transforms, a program is compiled against libphimap-dev. Then removes them, and nothing may be left. Needs root,
# and a network for apt.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
tools/setup --full
. tests/full/debian_root.bash
need_root debian_packages

home=$build/debian_packages
root=$home/root
server=
mkdir -p "$home"
cleanup() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" || true; }
  umount "$root/proc" 2>/dev/null || true
  rm -rf "$root"
}
trap cleanup EXIT
fail() { echo "debian_packages: $*" >&2; exit 1; }
# Runs a long command whose output is shown only if it fails.
quietly() { "$@" >"$home/log" 2>&1 || { tail -n 30 "$home/log" >&2; fail "failed: $*"; }; }

quietly ninja -C "$build" packages
base_root "$build/debian_base"
rm -rf "$root"
cp -a "$build/debian_base" "$root"
mount -t proc proc "$root/proc"
mkdir "$root/test"
cp "$build"/packages/*.deb lab/data/letter.csv tests/packages/outside/{CMakeLists.txt,main.cc,expected.txt} "$root/test"
for package in "$root"/test/*.deb; do
  echo "debian_packages: ${package##*/}, $(stat -c %s "$package") bytes: $(dpkg-deb --field "$package" Depends)"
done

quietly within "$root" apt-get update -q
quietly within "$root" sh -c 'apt-get install -qy --no-install-recommends /test/phimapd_*.deb /test/phimap_*.deb'

# The unit is installed with the program that it starts, and is off.
unit=$root/usr/lib/systemd/system/phimapd.service
grep -q '^ExecStart=/usr/bin/phimapd ' "$unit" || fail "the unit does not start /usr/bin/phimapd"
grep -q ' --config=/etc/phimap/phimapd.toml$' "$unit" || fail "the unit does not name the settings"
within "$root" phimapd --config=/etc/phimap/phimapd.toml --print_config | grep -q '^data_dir = "/var/lib/phimapd/store" .*phimapd.toml:' ||
  fail "phimapd does not read /etc/phimap/phimapd.toml"
[ "$(within "$root" dpkg-query -W -f '${Conffiles}' phimapd | awk '{print $1}' | xargs)" = /etc/phimap/phimapd.toml ] ||
  fail "dpkg does not know /etc/phimap/phimapd.toml as a file of settings"
[ -x "$root/usr/bin/phimapd" ] || fail "there is no /usr/bin/phimapd"
[ -z "$(find "$root/etc/systemd" -name 'phimapd*' 2>/dev/null)" ] || fail "the unit is enabled"
for file in man/man8/phimapd.8.gz man/man1/phimap.1.gz; do gzip --test "$root/usr/share/$file"; done
within "$root" bash -c '. /usr/share/bash-completion/completions/phimap && complete -p phimap' >/dev/null

mkfifo "$root/test/ready"
# Not by `within`, whose process is another one than phimapd.
chroot "$root" /usr/bin/phimapd --data_dir=/var/lib/phimapd --listen=127.0.0.1:0 --http=127.0.0.1:0 --log_level=error >"$root/test/ready" &
server=$!
read -r ready <"$root/test/ready"
address=${ready#*grpc=}
address=${address%% *}
phimap() { within "$root" phimap --server="$address" "$@"; }
phimap build letters --input=/test/letter.csv --label=label --spec='f2(landmarks=100)' --kernel='rbf(gamma=scale)' --standardize >/dev/null
phimap transform letters --input=/test/letter.csv --label=label -o /test/features.npy
[ "$(stat -c %s "$root/test/features.npy")" -gt 1000000 ] || fail "features.npy is too small"
phimap delete letters --all-versions >/dev/null

# A program of another project, by pkg-config and by CMake. Its second version is number 2.
quietly within "$root" sh -c 'apt-get install -qy --no-install-recommends /test/libphimap-dev_*.deb g++ pkg-config cmake make'
quietly within "$root" sh -c 'g++ -std=c++20 -o /test/by_pkg_config /test/main.cc $(pkg-config --cflags --libs phimap)'
quietly within "$root" sh -c 'cmake -S /test -B /test/build -DLIBRARY=phimap::client_static && cmake --build /test/build'
for program in by_pkg_config build/outside; do
  within "$root" "/test/$program" "$address" | sed -E 's/(features [0-9]+ x) [0-9]+/\1 N/; s/outside@2/outside@1/' >"$root/test/said"
  diff "$root/test/expected.txt" "$root/test/said" || fail "$program prints something else"
  phimap delete outside --all-versions >/dev/null
done

kill "$server"
wait "$server" || fail "phimapd ended with exit code $?"
server=
# As systemd leaves it where DynamicUser is on.
mkdir -p "$root/var/lib/private"
mv "$root/var/lib/phimapd" "$root/var/lib/private/phimapd"
ln -s private/phimapd "$root/var/lib/phimapd"

within "$root" dpkg -L phimapd phimap libphimap-dev | sort -u >"$home/installed"
quietly within "$root" apt-get remove -qy phimapd phimap libphimap-dev
[ -e "$root/var/lib/phimapd/phimap.sqlite" ] || fail "apt remove deleted the store"
quietly within "$root" apt-get purge -qy phimapd phimap libphimap-dev
rm -rf "$root/test"
left=$(find "$root" -path "$root/proc" -prune -o -iname '*phimap*' -print)
[ -z "$left" ] || fail "left after apt purge:"$'\n'"$left"
while read -r file; do
  # Folders that other packages have too stay.
  [ -d "$root$file" ] || [ ! -e "$root$file" ] || fail "apt purge left $file"
done <"$home/installed"
[ "$(within "$root" dpkg-query -W -f '${Status}\n' 2>/dev/null | grep -vc '^install ok installed$')" -eq 0 ] || fail "a package is half removed"
echo "debian_packages: installed, used and removed $(wc -l <"$home/installed") files and folders"
