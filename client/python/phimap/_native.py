"""libphimap.so, phimap in this process, called through ctypes, which lets other threads run during a
call. client/binding/phimap.h describes its functions."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from phimap._blocks import Block, SparseBlock, StringsBlock, contiguous
from phimap.errors import Error, FailedPrecondition, of_details

# The path of a library to load in place of the package's own.
LIBRARY = "PHIMAP_ENGINE_LIBRARY"
_INTERFACE = 3
# What an observer returns for the work to go on (PHIMAP_GO_ON).
_GO_ON = 0x50484D
_FOLDER = pathlib.Path(__file__).with_name("native")
# What setup.py writes where it did not build the library.
_REASON = _FOLDER / "missing.txt"
# How the library is told the kinds of rows.
_DENSE, _BYTES, _TEXTS, _SPARSE = 1, 2, 3, 4

Observer = Callable[[str, float], None]


class Bytes(ctypes.Structure):
    """Memory of the library."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_int64)]


class Rows(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number_bytes", ctypes.c_int32), ("rows", ctypes.c_int64), ("columns", ctypes.c_int64),
                ("values", ctypes.c_void_p), ("offsets", ctypes.c_void_p), ("indices", ctypes.c_void_p), ("entries", ctypes.c_int64)]


class GivenRows:
    """A block as the library takes it. The library reads the block's own memory where that has the right
    form."""

    def __init__(self, block: Block) -> None:
        self.count = block.rows
        size = block.dtype.itemsize
        if isinstance(block, SparseBlock):
            offsets = np.ascontiguousarray(block.csr.indptr, np.int64)
            indices = np.ascontiguousarray(block.csr.indices, np.int32)
            values = np.ascontiguousarray(block.csr.data, block.dtype)
            self._keep(offsets, indices, values)
            self.rows = Rows(_SPARSE, size, block.rows, block.columns, address(values), address(offsets), address(indices),
                             min(len(indices), len(values)))
        elif isinstance(block, StringsBlock):
            encoded = block.encoded()
            joined = b"".join(encoded)
            offsets = np.concatenate([[0], np.cumsum([len(one) for one in encoded], dtype=np.int64)]).astype(np.int64)
            values = np.frombuffer(joined or b"\0", np.uint8)
            self._keep(offsets, values)
            self.rows = Rows(_TEXTS if block.are_texts else _BYTES, 0, block.rows, 0, address(values), address(offsets), None,
                             len(joined))
        else:
            values = contiguous(block)
            self._keep(values)
            self.rows = Rows(_DENSE, size, block.rows, block.columns, address(values), None, None, 0)

    def _keep(self, *arrays: np.ndarray[Any, Any]) -> None:
        """Keeps the memory that `rows` points to."""
        self._kept = arrays


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


class Job:
    """A build, a training or an evaluation."""

    def __init__(self, function: str, *arguments: Any) -> None:
        self._library = engine()
        self._handle = ctypes.c_void_p()
        check_call(getattr(self._library, function), *arguments, ctypes.byref(self._handle))

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self._library.phimap_job_free(self._handle)

    def add(self, rows: GivenRows, known: bytes, observer: Observer) -> None:
        """Gives the job rows; see `finish` for the observer."""
        self._observed(observer, lambda told: check_call(
            self._library.phimap_job_add, self._handle, ctypes.byref(rows.rows), known, len(known), told, None))

    def finish(self, observer: Observer) -> bytes:
        """Returns the artifact or the evaluation. `observer` may raise an exception, which ends the
        work."""
        result = Bytes()
        self._observed(observer, lambda told: check_call(
            self._library.phimap_job_finish, self._handle, told, None, ctypes.byref(result)))
        return taken(result)

    @staticmethod
    def _observed(observer: Observer, call: Callable[[Any], None]) -> None:
        failure: list[BaseException] = []
        with _interrupts_noted() as interrupted:

            def told(_: Any, phase: bytes, fraction: float) -> int:
                try:
                    if not interrupted:
                        observer(phase.decode(), fraction)
                except BaseException as error:  # pylint: disable=broad-except
                    failure.append(error)
                return 0 if failure or interrupted else _GO_ON

            try:
                call(_PROGRESS(told))
            except Error:
                if failure:
                    raise failure[0] from None
                if not interrupted:
                    raise
            if interrupted:
                raise KeyboardInterrupt


@contextlib.contextmanager
def _interrupts_noted() -> Iterator[list[bool]]:
    """Notes Ctrl-C in place of raising KeyboardInterrupt. Python would raise it where it next runs code of its own, which is
    the entry of a callback, where nothing can catch it: ctypes prints it and goes on."""
    noted: list[bool] = []
    # Only the main thread gets signals, and a handler of the program's own stays.
    ours = (threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if ours:
        signal.signal(signal.SIGINT, lambda *_: noted.append(True))
    try:
        yield noted
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def taken(given: Bytes) -> bytes:
    """Returns the content, and gives the memory back."""
    try:
        return content(given.data, given.size) if given.size else b""
    finally:
        engine().phimap_bytes_free(ctypes.byref(given))


def content(start: int, size: int) -> bytes:
    """Returns a copy of memory. ctypes.string_at takes sizes under 2 GiB only."""
    return bytes((ctypes.c_char * size).from_address(start))


def check_call(function: Any, *arguments: Any) -> None:
    """Calls a function, whose last parameter is its error, and raises the error if there is one."""
    error = Bytes()
    code = function(*arguments, ctypes.byref(error))
    if code != 0:
        raise of_details(code, taken(error))


def check(code: int, error: Bytes) -> None:
    if code != 0:
        raise of_details(code, taken(error))


_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double)


@functools.cache
def engine() -> ctypes.CDLL:
    """FailedPrecondition, with what to do, if the library is not there or not of this release."""
    path = os.environ.get(LIBRARY) or _FOLDER / "libphimap.so"
    if not pathlib.Path(path).exists():
        raise FailedPrecondition(_missing(str(path)))
    try:
        loaded = ctypes.CDLL(str(path))
        interface = loaded.phimap_interface()
    except (OSError, AttributeError) as error:
        raise FailedPrecondition(f"{path} cannot be loaded as phimap's library on this machine: {error}; {_HOW}") from None
    if interface != _INTERFACE:
        raise FailedPrecondition(f"{path} has the interface {interface}, expected {_INTERFACE}: it belongs to another version of "
                                 f"phimap; {_HOW}")
    _declare(loaded)
    return loaded


_HOW = "PHIMAP_ENGINE=required pip install --force-reinstall --no-deps client/python, in a checkout of phimap, builds it"


def _missing(path: str) -> str:
    if os.environ.get(LIBRARY):
        return f"{path}, which {LIBRARY} names, does not exist; {_HOW}"
    reason = _REASON.read_text().strip() if _REASON.exists() else f"there is no {path}"
    return (f"phimap cannot compute in this process, because its library was not installed: {reason}; {_HOW}. Or give a server "
            "(server=\"HOST:PORT\")")


def _declare(loaded: ctypes.CDLL) -> None:
    pointer, count, number, text = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_char_p
    for name, result, arguments in (
            ("bytes_free", None, [pointer]), ("capabilities", number, [pointer, pointer]), ("processor", text, []),
            ("map_load", number, [text, count, count, number, pointer, pointer]), ("map_free", None, [pointer]),
            ("map_artifact", pointer, [pointer, pointer]), ("map_describe", number, [pointer, pointer, pointer]),
            ("map_verify", number, [pointer, pointer, pointer]),
            ("map_transform_dense", number, [pointer, pointer, number, count, count, pointer, number, pointer]),
            ("map_transform", number, [pointer, pointer, pointer, pointer, pointer, number, pointer]),
            ("map_predict", number, [pointer, text, count, pointer, number, pointer, pointer]),
            ("map_onnx", number, [pointer, number, pointer, pointer]),
            ("job_build", number, [text, count, number, pointer, pointer]),
            ("job_train", number, [pointer, text, count, text, count, number, pointer, pointer]),
            ("job_evaluate", number, [pointer, text, count, pointer, pointer]),
            ("job_add", number, [pointer, pointer, text, count, _PROGRESS, pointer, pointer]),
            ("job_finish", number, [pointer, _PROGRESS, pointer, pointer, pointer]), ("job_free", None, [pointer])):
        function = getattr(loaded, f"phimap_{name}")
        function.restype, function.argtypes = result, arguments
