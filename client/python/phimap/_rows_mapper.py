"""A mapping as a picklable function of rows, for frameworks that send functions to their workers."""
from __future__ import annotations

import io
import os
import re
import threading
from typing import Any

import numpy as np

from phimap._connection import Connection
from phimap._engine import process_engine
from phimap._pins import reference_to
from phimap.client import Client
from phimap.errors import FailedPrecondition, Unimplemented
from phimap.results import Version
from phimap.v1 import mapping_pb2 as mapping_pb

_lock = threading.Lock()
# One client for each server and number of channels, of this process.
_clients: dict[tuple[str | None, int], Client] = {}
_forked_after_grpc = False


def _begin_in_child() -> None:
    """The fork may have come while another thread held the lock, which would never be released in the child."""
    global _lock, _forked_after_grpc
    _lock = threading.Lock()
    _forked_after_grpc = Connection.ever_made


os.register_at_fork(after_in_child=_begin_in_child)


def process_client(server: str | None, channels: int) -> Client:
    """The client that all tasks of this process share.

    RuntimeError in a process that was forked from one with gRPC in use: its threads are not in the child, and a call there
    may hang, also on a channel of its own.
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


class RowsMapper:
    """Features of one version for any rows: `mapper(rows)`. Made by `rows_mapper`.

    A DataFrame gives a DataFrame with its index and the columns `names`; other rows give an array. Pickles as a number,
    a digest and the server's address; tokens and TLS come from the environment of the process that calls it. Thread-safe.
    In a process forked from one that had a Client it raises RuntimeError; with on_workers it does not mind. Calling it
    again with the same rows gives the same bits, so a task may be repeated.
    """

    def __init__(self, version: Version, server: str | None, channels: int) -> None:
        self.reference = reference_to(version)
        self.digest: str = version.ref.digest
        # Number of features.
        self.columns: int = version.output_columns
        self.dtype = np.dtype(np.float64 if version.serving_type == mapping_pb.SERVING_TYPE_FLOAT64 else np.float32)
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
    """The same without the server: it carries the artifact, and each process that calls it loads that once.

    The features have the bits of the server's. Needs libphimap_engine where it is called.
    """

    def __init__(self, version: Version, server: str | None, artifact: bytes) -> None:
        super().__init__(version, server, 1)
        self._artifact = artifact
        self._column_names = tuple(version.column_names)

    def _features(self, rows: Any) -> Any:
        return process_engine(self._artifact, self.digest).transform(rows, self._column_names, self.reference)


def rows_mapper(reference: str, *, server: str | None = None, channels: int = 1, on_workers: bool = False) -> RowsMapper:
    """A picklable function that maps rows by the version that `reference` names now.

    An alias or a bare name becomes a number here, so that one pass is one version even when the alias moves. The
    arguments are those of `Client`.

    on_workers: the artifact is exported here, once, and executed by the processes that call the function, which ask no
    server. They need libphimap_engine (client/python/README.md). FailedPrecondition for mappings of a remote
    kernel, Unimplemented for kernels of strings.
    """
    with Client(server) as client:
        version = client.get_version(reference)
        server = client.server if server is None else server
        if not on_workers:
            return RowsMapper(version, server, channels)
        _check_executable(version)
        artifact = io.BytesIO()
        client.export_(reference_to(version), artifact)
        return EngineRowsMapper(version, server, artifact.getvalue())


def _check_executable(version: Version) -> None:
    """What the library would refuse, said before anything is exported."""
    if re.search(r"\b(service|precomputed)\(", version.kernel_text):
        raise FailedPrecondition(
            f"{reference_to(version)} has the remote kernel {version.kernel_text}, whose values phimap does not compute, so its "
            "artifact alone maps nothing; leave on_workers out to have the server map the rows")
    if version.input_columns == 0:
        raise Unimplemented(f"{reference_to(version)} maps strings (kernel {version.kernel_text}), which workers cannot; "
                            "leave on_workers out to have the server map them")
