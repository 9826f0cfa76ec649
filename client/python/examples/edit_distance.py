"""A kernel service for words: K(a, b) = exp(-d(a, b)), where d is the edit distance (Levenshtein).

    python edit_distance.py 127.0.0.1:9000 &
    phimapd --data_dir=/tmp/phimap --kernel_service=words=127.0.0.1:9000 &

Then `service(endpoint=words, kernel=edit)` is a kernel of words, which are streamed and mapped as they are:

    client.build("words", ["walk", "walks", "walked", "talk"], spec="f2(landmarks=3)",
                 kernel="service(endpoint=words, kernel=edit)")
    client.transform("words", ["talking"])
"""
import math
import sys
from typing import Any

import numpy
from phimap.kernel_server import KernelServer


def edit_distance(a: Any, b: Any) -> int:
    """Returns the least number of insertions, deletions and substitutions that turn a into b.

    Computes the table of distances between prefixes row by row.
    """
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        diagonal, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            diagonal, row[j + 1] = row[j + 1], min(diagonal + (x != y), row[j + 1] + 1, row[j] + 1)
    return row[-1]


def edit_kernel(left: Any, right: Any) -> list[list[float]]:
    if isinstance(left, numpy.ndarray):
        raise ValueError("edit compares words: send text or bytes")
    return [[math.exp(-edit_distance(a, b)) for b in right] for a in left]


def main() -> None:
    listen = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:0"
    ones = {"edit": lambda words: numpy.ones(len(words))}
    with KernelServer({"edit": edit_kernel}, listen, diagonals=ones) as server:
        print(f"kernel server ready: {server.address}", flush=True)
        server.wait()


if __name__ == "__main__":
    main()
