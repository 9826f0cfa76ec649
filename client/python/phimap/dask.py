"""Dask arrays, dataframes and bags: mapped block by block on a cluster, and sampled to build mappings from.

    import phimap.dask

    version = phimap.dask.build("letters", data, spec="f2(landmarks=500)", kernel="rbf(gamma=scale)")
    features = phimap.dask.transform(data, "letters@prod")    # lazy, like `data`

The rows of an array are in its first dimension, and all columns in one chunk. An element of a bag
is a row of numbers or, for kernels of strings, a text or bytes. Workers read tokens and TLS
settings from their environment, as `phimap.Client` does.
"""
from __future__ import annotations

import re
import uuid
from typing import Any

import numpy as np
from dask.delayed import delayed

from phimap._lifetime import Ttl
from phimap._rows_mapper import RowsMapper, rows_mapper
from phimap._sample import Sample, merge, row_count, sample_part
from phimap.client import Client
from phimap.progress import ProgressArgument
from phimap.results import Version

# Default number of rows of a sample. The standard deviation of a normal column is then measured
# with an error of 0.22 % (one sigma).
SAMPLE_ROWS = 100_000
# The default sample has fewer rows if it would exceed this size at 8 bytes per number, but at least
# as many rows as phimapd keeps of a stream by default.
_SAMPLE_BYTES = 256 << 20
_LEAST_SAMPLE_ROWS = 22_000
# Number of samples that are merged at once. A worker holds at most this many.
_MERGED_AT_ONCE = 8


def transform(data: Any, reference: str, *, server: str | None = None, channels: int = 1,
              on_workers: bool = False) -> Any:
    """Returns the features of a dask array, dataframe or bag, lazily.

    The reference is resolved to a number and a digest here, so one graph uses one version even if
    an alias moves. Each worker process keeps one client per server. A repeated task gives the same
    bits.

    An array gives an array in the version's serving type. A dataframe gives a dataframe with the
    same index and divisions, and with the columns "f0", "f1" and so on. A bag gives a bag of the
    rows' features.

    on_workers: the artifact is exported once, here, and the workers map rows by it without a
    server, with the same bits. The artifact is one node of the graph, so each worker receives it
    once. See `phimap.rows_mapper` for what workers need.
    """
    function = rows_mapper(reference, server=server, channels=channels, on_workers=on_workers)
    empty = np.empty((0, function.columns), function.dtype)
    mapper = delayed(function, name=f"phimap-{function.digest}", traverse=False) if on_workers else function
    kind = _kind_of(data)
    if kind == "array":
        return data.map_blocks(_mapped, mapper=mapper, dtype=function.dtype, meta=empty, drop_axis=[1] if data.ndim == 2 else [],
                               new_axis=[1], chunks=(data.chunks[0], (function.columns,)))
    if kind == "frame":
        import pandas
        meta = pandas.DataFrame(empty, columns=function.names(function.columns), index=data._meta.index)
        return data.map_partitions(_mapped, mapper=mapper, meta=meta)
    return data.map_partitions(_mapped_list, mapper=mapper)


def sample(data: Any, *, rows: int | None = None, seed: int = 0) -> Sample:
    """Draws a uniform sample of the rows of `data`, without replacement, into this process. The
    result has the sampled `rows` and `total_rows`, the number of all rows.

    Each partition is computed once and contributes its part of the sample; a worker holds at most 8
    samples. The same seed and the same partitions give the same rows in the same order, whichever
    task ends first. The sample must fit into this process's memory.

    Args:
        rows: number of rows of the sample; all rows if there are fewer. None means 100,000, or fewer
            so that they take at most 256 MiB as float64, but at least 22,000.
        seed: 0..2**64-1.
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows: expected at least 1, got {rows}")
    kind = _kind_of(data)
    size = rows if rows is not None else _default_rows(data, kind)
    parts = np.ravel(data.to_delayed())
    if len(parts) == 0:
        raise ValueError("data: expected at least 1 partition, got 0")
    take = delayed(sample_part, pure=False)
    samples = [take(part, place, size, seed) for place, part in enumerate(parts)]
    while len(samples) > 1:
        samples = [delayed(merge, pure=False)(samples[i:i + _MERGED_AT_ONCE], size)
                   for i in range(0, len(samples), _MERGED_AT_ONCE)]
    found: Sample = samples[0].compute()
    return found


def build(name: str, data: Any, *, spec: str, kernel: str | None = None,
          standardize: bool = False, seed: int = 0, sample_rows: int | None = None, server: str | None = None,
          build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None, timeout: float | None = None,
          progress: ProgressArgument = None) -> Version:
    """Builds a version of the mapping `name` from a uniform sample of the rows of `data`; see `sample`.

    The server sees only the sample, and the certificate describes the sample: `stream_rows` is the
    number of rows that were sent, and the held-out rows, means, deviations and gamma=scale come
    from these rows. Since the sample is uniform, the landmarks and the held-out rows are uniform
    among all rows. If the sample can hold all rows, all are sent.

    The same seed, partitions and spec give the same version, byte for byte. The other arguments are
    those of `Client.build`; sample_rows is `rows` of `sample`, and should exceed the mapping's
    pool_rows by 2,000 for the held-out rows.
    """
    _check_sampled(spec, kernel)
    drawn = sample(data, rows=sample_rows, seed=seed)
    with Client(server) as client:
        return client.build(name, drawn.rows, spec=spec, kernel=kernel, standardize=standardize, seed=seed,
                            build_id=build_id, ttl=ttl, timeout=timeout, progress=progress)


def _kind_of(data: Any) -> str:
    """Returns "array", "frame" or "bag"."""
    if hasattr(data, "map_blocks") and hasattr(data, "chunks"):
        if data.ndim > 2 or (data.ndim == 2 and data.numblocks[1] != 1):
            raise ValueError("data: expected an array of rows with all columns in one chunk, got chunks "
                             f"{data.chunks!r:.200}; data.rechunk({{1: -1}}) makes one")
        return "array"
    if hasattr(data, "map_partitions") and hasattr(data, "divisions") and getattr(data, "ndim", 0) == 2:
        return "frame"
    if hasattr(data, "map_partitions") and hasattr(data, "to_textfiles"):
        return "bag"
    raise TypeError(f"data: expected a dask array, dataframe or bag, got {type(data).__module__}.{type(data).__name__}")


def _default_rows(data: Any, kind: str) -> int:
    columns = len(data.columns) if kind == "frame" else data.shape[1] if kind == "array" and data.ndim == 2 else 1
    fit = _SAMPLE_BYTES // (8 * columns) if columns == columns else _LEAST_SAMPLE_ROWS  # NaN if unknown
    return int(min(SAMPLE_ROWS, max(_LEAST_SAMPLE_ROWS, fit)))


def _check_sampled(spec: str, kernel: str | None) -> None:
    """Raises ValueError for builds that depend on the order of the rows, or on all rows: they
    cannot use a sample."""
    if re.search(r"\bpolicy\s*=\s*given\b", spec):
        raise ValueError("spec: policy=given takes the first rows of a stream as landmarks, and a sample has no first rows; "
                         "use policy=uniform or rpcholesky, or Client.build with the rows themselves")
    if kernel is not None and re.search(r"\bprecomputed\b", kernel):
        raise ValueError("kernel: precomputed() takes whole rows of a square matrix, not a sample of them; "
                         "use Client.build")


def _mapped(rows: Any, mapper: RowsMapper) -> Any:
    """Returns the features of a block. A block without rows is not sent, because the server rejects
    it."""
    if row_count(rows):
        return mapper(rows)
    empty = np.empty((0, mapper.columns), mapper.dtype)
    if not hasattr(rows, "iloc"):
        return empty
    import pandas
    return pandas.DataFrame(empty, index=rows.index, columns=mapper.names(mapper.columns))


def _mapped_list(rows: Any, mapper: RowsMapper) -> list[Any]:
    return list(_mapped(list(rows), mapper))
