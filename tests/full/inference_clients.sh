#!/usr/bin/env bash
# Calls a phimapd with the HTTP clients of Triton and KServe, at these commits of their repositories. They are taken from the
# clones in TRITON_CLIENT_SOURCE and KSERVE_SOURCE if these are set; if not, they are fetched, which needs a network.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
triton_commit=58a44caa0dce77303115302e6dbdf64626b2b093
kserve_commit=aaac4e294dae2c7b1aa1886447793f3aa1c30912
tools/setup --full
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Unpacks one folder of a repository at a commit: NAME URL COMMIT FOLDER SOURCE. If SOURCE is set, it must have the commit.
fetch() {
  local source=$5
  if [ -z "$source" ]; then
    source=$work/$1.git
    git init -q --bare "$source"
    git -C "$source" fetch -q --depth=1 "$2" "$3"
  fi
  mkdir "$work/$1"
  git -C "$source" archive --prefix="$4/" "$3:$4" | tar -x -C "$work/$1"
}
fetch triton https://github.com/triton-inference-server/client "$triton_commit" src/python/library "${TRITON_CLIENT_SOURCE:-}"
fetch kserve https://github.com/kserve/kserve "$kserve_commit" python/kserve/kserve "${KSERVE_SOURCE:-}"

PHIMAP_ENGINE=none tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
TRITON_CLIENT_SOURCE=$work/triton KSERVE_SOURCE=$work/kserve PHIMAPD=$build/server/phimapd PYTHONDONTWRITEBYTECODE=1 \
  PYTHONPATH=tests/client/python "$build/python/venv/bin/python" -m pytest -q -p no:cacheprovider --confcutdir=tests/interop \
  tests/interop/inference_http
