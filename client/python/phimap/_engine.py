"""The engine in this process: libphimap_engine, called through ctypes, which lets other threads run
during a call."""
from __future__ import annotations

import ctypes
import ctypes.util
import functools
import hashlib
import os
import pathlib
import re
import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np

from phimap._blocks import SparseBlock, StringsBlock, block_of
from phimap._columns import in_order
from phimap.errors import DataLoss, InvalidArgument, of_code

LIBRARY = "PHIMAP_ENGINE_LIBRARY"
_FILE = "libphimap_engine.so"
_INTERFACE = 1
_ERROR_BYTES = 4096
_FIELD = re.compile(r"([a-z_]+(?:\[\d+\])?(?:\.[a-z_]+(?:\[\d+\])?)*): ")
# Maximum number of engines that a process keeps, one for each version in use.
_KEPT = 8


class Engine:
    """Maps rows by one version's artifact, with the same bits as the server's Transform.
    Thread-safe; survives a fork."""

    def __init__(self, artifact: bytes, digest: str) -> None:
        found = hashlib.sha256(artifact).hexdigest()
        if found != digest:
            raise DataLoss(f"the artifact of {len(artifact)} bytes has the SHA-256 {found}, expected {digest}")
        self._library = _library()
        handle, error = ctypes.c_void_p(), ctypes.create_string_buffer(_ERROR_BYTES)
        _check(self._library.phimap_engine_load(artifact, len(artifact), ctypes.byref(handle), error, _ERROR_BYTES), error)
        self._handle = handle
        weakref.finalize(self, self._library.phimap_engine_free, handle)
        self.columns = int(self._library.phimap_engine_output_columns(handle))
        self.dtype = np.dtype(f"<f{self._library.phimap_engine_feature_bytes(handle)}")

    def transform(self, rows: Any, names: tuple[str, ...] = (), reference: str = "") -> np.ndarray[Any, Any]:
        """Returns the features of `rows`: an array, a DataFrame or a scipy.sparse matrix. `names`
        are the version's column names, if it has any. Rows with column names are put in this order,
        see Client.transform."""
        block = in_order(block_of(rows), names, reference)
        if isinstance(block, StringsBlock):
            raise InvalidArgument("rows: expected rows of numbers, got strings")
        features = np.empty((block.rows, self.columns), self.dtype)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        counts = (block.dtype.itemsize, block.rows, block.columns, _address(features), error, _ERROR_BYTES)
        if isinstance(block, SparseBlock):
            offsets = np.ascontiguousarray(block.csr.indptr, np.int64)
            indices = np.ascontiguousarray(block.csr.indices, np.int32)
            values = np.ascontiguousarray(block.csr.data, block.dtype)
            code = self._library.phimap_engine_transform_sparse(
                self._handle, _address(offsets), _address(indices), _address(values), min(len(indices), len(values)), *counts)
        else:
            dense = np.empty((block.rows, block.columns), block.dtype)
            block.write_to(dense)
            code = self._library.phimap_engine_transform_dense(self._handle, _address(dense), *counts)
        _check(code, error)
        return features


_lock = threading.Lock()
_engines: OrderedDict[str, Engine] = OrderedDict()


def _forget_lock() -> None:
    """Replaces the lock in a forked child: another thread may have held it during the fork, and it
    would never be released in the child."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


def process_engine(artifact: bytes, digest: str) -> Engine:
    """Returns the engine of a version, which is loaded once in this process. DataLoss unless the
    artifact's SHA-256 is `digest`."""
    with _lock:
        engine = _engines.get(digest)
        if engine is None:
            engine = _engines[digest] = Engine(artifact, digest)
        _engines.move_to_end(digest)
        while len(_engines) > _KEPT:
            _engines.popitem(last=False)
        return engine


def _address(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _check(code: int, error: ctypes.Array[ctypes.c_char]) -> None:
    if code != 0:
        message = error.value.decode(errors="replace")
        found = _FIELD.match(message)
        raise of_code(code, message, found[1] if found else None)


@functools.cache
def _library() -> ctypes.CDLL:
    beside = pathlib.Path(__file__).with_name(_FILE)
    path = os.environ.get(LIBRARY) or (str(beside) if beside.exists() else ctypes.util.find_library("phimap_engine"))
    if not path:
        raise RuntimeError(f"{_FILE}, which maps rows in this process, was not found: build it (ninja -C build phimap_engine) "
                           f"and set {LIBRARY} to its path on all workers, or leave out on_workers to have the server map rows")
    try:
        library = ctypes.CDLL(path)
        interface = library.phimap_engine_interface()
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"{path}, given by {LIBRARY} or found, is not a {_FILE} for this machine: {error}") from None
    if interface != _INTERFACE:
        raise RuntimeError(f"{path} has interface {interface}, expected {_INTERFACE}: it belongs to another version of phimap")
    pointer, count, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    text = [ctypes.c_char_p, count]
    features = [number, count, count, pointer, *text]
    for name, result, arguments in (
            ("load", number, [ctypes.c_char_p, count, pointer, *text]), ("free", None, [pointer]),
            ("output_columns", count, [pointer]), ("feature_bytes", number, [pointer]),
            ("transform_dense", number, [pointer, pointer, *features]),
            ("transform_sparse", number, [pointer, pointer, pointer, pointer, count, *features])):
        function = getattr(library, f"phimap_engine_{name}")
        function.restype, function.argtypes = result, arguments
    return library
