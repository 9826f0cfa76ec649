"""A kernel that is a Python function: its values are computed here, and the server sees nothing else."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phimap.sklearn._parameters import seed_of

# Rows whose values are computed at once by a transform.
_ROWS_AT_ONCE = 4096
# Rows whose Gram matrix is built from, unless pool_rows says: 512 of them may be held out.
_LEAST_POOL = 2048
_POOL_PER_LANDMARK = 4

Function = Callable[[Any, Any], Any]


def pool_of(rows: int, landmarks: int, pool_rows: int | None, seed: Any, first: bool) -> np.ndarray[Any, Any]:
    """Which of the rows are built from, in their order: a uniform sample, since all would be a matrix of rows × rows. `first`:
    those in front, for policy="given"."""
    size = min(rows, pool_rows or max(_LEAST_POOL, _POOL_PER_LANDMARK * landmarks))
    if size == rows or first:
        return np.arange(size)
    return np.sort(np.random.default_rng(int(seed_of(seed, None))).choice(rows, size, replace=False))


def taken(rows: Any, places: Any) -> Any:
    """Some rows, of an array, a sparse matrix or a list."""
    return [rows[place] for place in places] if isinstance(rows, list) else rows[places]


def values(function: Function, rows: Any, others: Any) -> np.ndarray[Any, Any]:
    """K(x, z), rows × others, of a function of two matrices of rows (as those of sklearn.metrics.pairwise), or else of two
    rows (as Nystroem takes it)."""
    count, width = _count(rows), _count(others)
    takes_matrices, failure = _tried(function, rows, others)
    if takes_matrices:
        return _checked(function(rows, others), (count, width))
    try:
        found = [[function(rows[i], others[j]) for j in range(width)] for i in range(count)]
    except Exception as error:
        if failure is not None:
            error.add_note("Called with two matrices of rows, as those of sklearn.metrics.pairwise are, it failed too: "
                           f"{failure}")
        raise
    return _checked(found, (count, width))


def blocks(function: Function, rows: Any, others: Any) -> Any:
    """Values for rows of a transform: one matrix, or blocks of many rows one after the other."""
    if _count(rows) <= _ROWS_AT_ONCE:
        return values(function, rows, others)
    return _blocks(function, rows, others)


def _blocks(function: Function, rows: Any, others: Any) -> Iterator[np.ndarray[Any, Any]]:
    for begin in range(0, _count(rows), _ROWS_AT_ONCE):
        yield values(function, rows[begin:begin + _ROWS_AT_ONCE], others)


def _tried(function: Function, rows: Any, others: Any) -> tuple[bool, Exception | None]:
    """Whether the function takes two matrices rather than two rows: tried on 2 rows and 3, where a function of two rows fails
    or returns another shape."""
    few, more = rows[:2], others[:3]
    try:
        answer = np.asarray(function(few, more))
    except Exception as error:  # pylint: disable=broad-except
        return False, error
    return answer.shape == (_count(few), _count(more)), None


def _checked(found: Any, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    matrix = np.asarray(found, np.float64)
    if matrix.shape != shape:
        raise ValueError(f"kernel: expected a number for each pair of rows, {shape[0]} × {shape[1]}, got an array of shape "
                         f"{matrix.shape}")
    return matrix


def _count(rows: Any) -> int:
    return len(rows) if isinstance(rows, list) else int(rows.shape[0])
