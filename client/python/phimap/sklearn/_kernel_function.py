"""Kernels that are Python functions. Their values are computed here, and a map sees only the values."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phimap.sklearn._parameters import seed_of

# Number of rows whose values a transform computes at once.
_ROWS_AT_ONCE = 4096
# Minimum number of rows whose Gram matrix is sent, unless pool_rows is set. Up to 512 of them may
# be held out.
_LEAST_POOL = 2048
_POOL_PER_LANDMARK = 4

Function = Callable[[Any, Any], Any]


def pool_of(rows: int, landmarks: int, pool_rows: int | None, seed: Any, first: bool) -> np.ndarray[Any, Any]:
    """Returns the indices of the rows to build from, in ascending order: a uniform sample, since
    the Gram matrix of all rows could be too large. `first` takes the first rows instead, for
    policy="given"."""
    size = min(rows, pool_rows or max(_LEAST_POOL, _POOL_PER_LANDMARK * landmarks))
    if size == rows or first:
        return np.arange(size)
    return np.sort(np.random.default_rng(int(seed_of(seed, None))).choice(rows, size, replace=False))


def taken(rows: Any, places: Any) -> Any:
    """Returns some rows of an array, a sparse matrix or a list."""
    return [rows[place] for place in places] if isinstance(rows, list) else rows[places]


def values(function: Function, rows: Any, others: Any) -> np.ndarray[Any, Any]:
    """Returns K(x, z), rows × others. The function takes two matrices of rows, like those of
    sklearn.metrics.pairwise, or two rows, like those of Nystroem."""
    count, width = _count(rows), _count(others)
    takes_matrices, failure = _tried(function, rows, others)
    if takes_matrices:
        return _checked(function(rows, others), (count, width))
    try:
        found = [[function(rows[i], others[j]) for j in range(width)] for i in range(count)]
    except Exception as error:
        if failure is not None:
            error.add_note("It also failed when it was called with two matrices of rows, like the functions of "
                           "sklearn.metrics.pairwise: "
                           f"{failure}")
        raise
    return _checked(found, (count, width))


def blocks(function: Function, rows: Any, others: Any, self_values: bool = False) -> Any:
    """Returns the kernel values for a transform: one matrix or, for many rows, an iterator of
    blocks. With `self_values`, K(x, x) is one more column, the last one."""
    several = _blocks(function, rows, others, self_values)
    return next(several) if _count(rows) <= _ROWS_AT_ONCE else several


def _blocks(function: Function, rows: Any, others: Any, self_values: bool) -> Iterator[np.ndarray[Any, Any]]:
    for begin in range(0, max(_count(rows), 1), _ROWS_AT_ONCE):
        some = rows[begin:begin + _ROWS_AT_ONCE]
        found = values(function, some, others)
        yield np.column_stack((found, _self_values(function, some))) if self_values else found


def _self_values(function: Function, rows: Any) -> list[float]:
    """Returns K(x, x) of each row, from a call for each, because a call with all rows would return the values of all pairs."""
    return [float(values(function, rows[i:i + 1], rows[i:i + 1])[0, 0]) for i in range(_count(rows))]


def _tried(function: Function, rows: Any, others: Any) -> tuple[bool, Exception | None]:
    """Returns whether the function takes two matrices rather than two rows, and the exception if it
    raised one. It is tried on matrices of 2 and 3 rows, for which a function of two rows fails or
    returns another shape."""
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
