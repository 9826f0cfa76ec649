#!/usr/bin/env bash
# Calls a phimapd with the clients of Triton and KServe, over HTTP and gRPC, at these commits of their repositories. They are taken
# from the clones in TRITON_CLIENT_SOURCE, TRITON_COMMON_SOURCE and KSERVE_SOURCE if these are set; if not, they are fetched, which
# needs a network.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
triton_commit=58a44caa0dce77303115302e6dbdf64626b2b093
common_commit=83adf7cf88a2f343005974dff3728be746de2d66
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
fetch common https://github.com/triton-inference-server/common "$common_commit" protobuf "${TRITON_COMMON_SOURCE:-}"
fetch kserve https://github.com/kserve/kserve "$kserve_commit" python/kserve/kserve "${KSERVE_SOURCE:-}"

PHIMAP_ENGINE=none tests/client/python/make_venv /usr/bin/python3 "$build/python/venv" client/python
export TRITON_CLIENT_SOURCE=$work/triton TRITON_COMMON_SOURCE=$work/common KSERVE_SOURCE=$work/kserve PHIMAPD=$build/server/phimapd
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/client/python
# The protos of Triton and of KServe define the same messages, so a process can have those of one only.
for test in test_clients test_triton_grpc; do
  "$build/python/venv/bin/python" -m pytest -q -p no:cacheprovider --confcutdir=tests/interop "tests/interop/inference_clients/$test.py"
done
