# Fresh Debian 12 roots for full tests, which source this file. They need root, and a network for apt.

# Ends the test `$1` unless it runs as root.
need_root() {
  [ "$(id -u)" -eq 0 ] || { echo "$1: needs root, for debootstrap and chroot" >&2; exit 1; }
}

# Runs a command in the root `$1`.
within() {
  local root=$1
  shift
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# Makes the root `$1` unless it is there: the smallest Debian 12, with this machine's apt sources. Services are not started in
# it.
base_root() {
  local base=$1 suite=bookworm site proxy
  [ ! -x "$base/usr/bin/apt-get" ] || return 0
  site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" 'Component: main' | head -n 1)
  [ -n "$site" ] || { echo "base_root: apt knows no source of $suite; run apt-get update" >&2; return 1; }
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  [ -z "${proxy:-}" ] || export http_proxy=$proxy
  rm -rf "$base"
  debootstrap --variant=minbase "$suite" "$base" "$site" >"$base.log" 2>&1 ||
    { tail -n 20 "$base.log" >&2; echo "base_root: debootstrap failed" >&2; return 1; }
  rm -rf "$base/etc/apt"
  cp -a /etc/apt "$base/etc/apt"
  cp -aL /etc/resolv.conf "$base/etc/resolv.conf"
  printf '#!/bin/sh\nexit 101\n' >"$base/usr/sbin/policy-rc.d"
  chmod 0755 "$base/usr/sbin/policy-rc.d"
}
