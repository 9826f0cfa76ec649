"""Uniform samples of rows that are stored in parts: each part is sampled, and the samples are
merged."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phimap._blocks import is_sparse


@dataclass(frozen=True)
class Sample:
    """Rows drawn without replacement: min(total_rows, size) of them, every subset of that size equally likely.

    Method: each row draws a random key, and the rows with the `size` smallest keys are kept. A
    reservoir keeps the same rows (Vitter, "Random sampling with a reservoir", ACM TOMS 11, 1985;
    Li's Algorithm L, ACM TOMS 20, 1994, draws only the keys that matter). Unlike reservoirs alone,
    samples with keys can be merged: the `size` smallest keys of all are among the `size` smallest
    of each part. So the number of rows from each part has the multivariate hypergeometric
    distribution although it is never drawn, even over 10^9 rows, and merging is associative.

    The keys of a part depend only on the seed and the place of the part, so the sample does not
    depend on which part is finished first. Two of n rows have equal keys with a probability of
    n²/2^65; equal keys are ordered by place and row.
    """

    rows: Any
    # uint64, in ascending order.
    keys: np.ndarray[Any, Any]
    total_rows: int


def sample_part(rows: Any, place: int, size: int, seed: int) -> Sample:
    """Returns a sample of the part at `place`. Costs O(n log n) time, and 16 bytes per row besides
    the rows."""
    rows = _indexable(rows)
    total = row_count(rows)
    keys = np.random.Philox(np.random.SeedSequence(seed, spawn_key=(place,))).random_raw(total)
    return _smallest(rows, np.asarray(keys, np.uint64), size, total)


def merge(samples: Sequence[Sample], size: int) -> Sample:
    """Returns the sample of all parts. REQUIRES: each sample was made or merged with this size, and
    the samples are in order of place."""
    rows = _joined([sample.rows for sample in samples])
    keys = np.concatenate([sample.keys for sample in samples])
    return _smallest(rows, keys, size, sum(sample.total_rows for sample in samples))


def _smallest(rows: Any, keys: np.ndarray[Any, Any], size: int, total: int) -> Sample:
    order = np.argsort(keys, kind="stable")[:size]
    return Sample(_taken(rows, order), keys[order], total)


def row_count(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _indexable(rows: Any) -> Any:
    """Returns rows that can be indexed. A part of a bag becomes a list of strings, or an array of
    numbers."""
    if is_sparse(rows):
        return rows.tocsr()
    if hasattr(rows, "shape"):
        return rows
    rows = list(rows)
    return rows if not rows or isinstance(rows[0], (str, bytes)) else np.asarray(rows)


def _taken(rows: Any, order: np.ndarray[Any, Any]) -> Any:
    if hasattr(rows, "iloc"):
        return rows.iloc[order]
    return [rows[i] for i in order] if isinstance(rows, list) else rows[order]


def _joined(parts: list[Any]) -> Any:
    # A part without rows may have another type, which would become the type of all rows.
    parts = [part for part in parts if row_count(part)] or parts[:1]
    if hasattr(parts[0], "iloc"):
        import pandas
        return pandas.concat(parts)
    if is_sparse(parts[0]):
        import scipy.sparse
        return scipy.sparse.vstack(parts, format="csr")
    if isinstance(parts[0], list):
        return [row for part in parts for row in part]
    return np.concatenate(parts)
