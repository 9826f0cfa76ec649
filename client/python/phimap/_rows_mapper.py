"""A mapping as a picklable function of rows, for frameworks that send functions to their workers."""
from __future__ import annotations

import io
import os
import re
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from phimap._connection import Connection
from phimap._pins import reference_to
from phimap.client import Client
from phimap.errors import DataLoss, FailedPrecondition
from phimap.feature_map import FeatureMap
from phimap.results import Version

_lock = threading.Lock()
# The clients of this process, by server and number of channels.
_clients: dict[tuple[str | None, int], Client] = {}
_forked_after_grpc = False
# The maps of this process by their digest, the latest last, and how many are kept.
_maps: OrderedDict[str, FeatureMap] = OrderedDict()
_KEPT = 8


def _begin_in_child() -> None:
    """Replaces the lock in a forked child: another thread may have held it during the fork, and it
    would never be released in the child."""
    global _lock, _forked_after_grpc
    _lock = threading.Lock()
    _forked_after_grpc = Connection.ever_made


os.register_at_fork(after_in_child=_begin_in_child)


def process_client(server: str | None, channels: int) -> Client:
    """Returns the client that all tasks of this process share.

    RuntimeError in a process that was forked from one that had used gRPC: gRPC's threads do not
    exist in the child, and a call may hang there, even on a new channel.
    """
    if _forked_after_grpc:
        raise RuntimeError("this process was forked from one that had a phimap.Client, and gRPC does not survive that: start "
                           "processes by spawn or forkserver, fork before anything of phimap is called, or map by "
                           "rows_mapper(..., on_workers=True), which calls no server")
    key = (server, channels)
    with _lock:
        if key not in _clients:
            _clients[key] = Client(server, channels=channels)
        return _clients[key]


def process_map(artifact: bytes, digest: str) -> FeatureMap:
    """Returns the map of an artifact, which is loaded once in this process. DataLoss unless the
    artifact's SHA-256 is `digest`."""
    with _lock:
        found = _maps.get(digest)
        if found is None:
            found = FeatureMap(artifact)
            if found.digest != digest:
                raise DataLoss(f"the artifact of {len(artifact)} bytes has the SHA-256 {found.digest}, expected {digest}")
            _maps[digest] = found
        _maps.move_to_end(digest)
        while len(_maps) > _KEPT:
            _maps.popitem(last=False)
        return found


class RowsMapper:
    """Maps rows by one version: `mapper(rows)` returns their features. Created by `rows_mapper`.

    A DataFrame gives a DataFrame with its index and the columns `names`; other rows give an array.
    The pickle of the mapper has the version's number and digest and the server's address; tokens
    and TLS settings come from the environment of the process that calls it. Thread-safe. Raises RuntimeError in a
    process forked from one that had a Client, unless it was created with on_workers. Calling it
    again with the same rows gives the same bits, so a task may be repeated.
    """

    def __init__(self, version: Version, server: str | None, channels: int) -> None:
        self.reference = reference_to(version)
        self.digest: str = version.ref.digest
        # Number of features.
        self.columns: int = version.output_columns
        self.dtype = np.dtype(version.serving_type)
        self.server = server
        self.channels = channels

    def __call__(self, rows: Any) -> Any:
        features = self._features(rows)
        if not (hasattr(rows, "iloc") and getattr(rows, "ndim", 0) == 2):
            return features
        import pandas
        return pandas.DataFrame(features, index=rows.index, columns=self.names(features.shape[1]))

    def _features(self, rows: Any) -> Any:
        client = process_client(self.server, self.channels)
        return client.transform(self.reference, rows, expected_digest=self.digest)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, self.reference, self.digest, self.server

    @staticmethod
    def names(count: int) -> list[str]:
        """The columns of a DataFrame of features: "f0", "f1" and so on."""
        return [f"f{i}" for i in range(count)]

    def __repr__(self) -> str:
        return f"phimap.rows_mapper({self.reference!r}, server={self.server!r})"


class EngineRowsMapper(RowsMapper):
    """A RowsMapper that needs no server: it carries the artifact, which each process that calls it
    loads once.

    The features have the same bits as the server's.
    """

    def __init__(self, version: Version, server: str | None, artifact: bytes) -> None:
        super().__init__(version, server, 1)
        self._artifact = artifact

    def _features(self, rows: Any) -> Any:
        return process_map(self._artifact, self.digest).transform(rows, threads=1)


def rows_mapper(reference: str, *, server: str | None = None, channels: int = 1, on_workers: bool = False) -> RowsMapper:
    """Returns a picklable function that maps rows by the version to which `reference` refers now.

    An alias or a bare name is resolved to a number here, so that all rows are mapped by one version
    even if the alias moves. `server` and `channels` are those of `Client`.

    on_workers: the artifact is exported once, here. The processes that call the function map rows
    by it themselves, without a server. FailedPrecondition for mappings of a remote kernel.
    """
    with Client(server) as client:
        version = client.get_version(reference)
        server = client.server if server is None else server
        if not on_workers:
            return RowsMapper(version, server, channels)
        _check_executable(version)
        artifact = io.BytesIO()
        client.export(reference_to(version), artifact)
        return EngineRowsMapper(version, server, artifact.getvalue())


def _check_executable(version: Version) -> None:
    """Raises the errors that the library would raise, before anything is exported."""
    if re.search(r"\b(service|precomputed)\(", version.kernel_text):
        raise FailedPrecondition(
            f"{reference_to(version)} has the remote kernel {version.kernel_text}, whose values phimap does not compute, so its "
            "artifact alone maps nothing; leave on_workers out to have the server map the rows")
