"""Serves your own kernels to phimapd: turns functions of two batches of examples
into a kernel service.

    from phimap.kernel_server import KernelServer

    def overlap(left, right):
        return [[len(set(a) & set(b)) for b in right] for a in left]

    with KernelServer({"overlap": overlap}, "127.0.0.1:9000") as server:
        server.wait()

With `phimapd --kernel_service=words=127.0.0.1:9000` the kernel is then `service(endpoint=words, kernel=overlap)`.

A batch has the examples as they were streamed to Build: a list of str, a list of bytes, a numpy
array of float64 rows, or for sparse rows a `scipy.sparse.csr_matrix` (without scipy, an array). A
kernel returns K(left_i, right_j) with one row per example of `left` and one column per example of
`right`, as anything that numpy can convert to an array, or as a sparse matrix, such as a product of
two. It must be a pure function of its arguments; several threads call it at the same time. A
ValueError tells the caller that the examples are at fault.
"""
from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from types import TracebackType
from typing import Any, Union

import grpc
import numpy
import numpy.typing

from phimap.v1 import examples_pb2, kernel_service_pb2, kernel_service_pb2_grpc

Numbers = numpy.typing.NDArray[numpy.float64]
# Any stands for a scipy.sparse.csr_matrix.
Batch = Union[Numbers, Sequence[str], Sequence[bytes], Any]
Kernel = Callable[[Any, Any], Any]
Diagonal = Callable[[Any], Any]

_MAX_MESSAGE_BYTES = 64 << 20


class KernelServer:
    """Serves kernels by name until it is closed.

    `diagonals` may have, for the name of a kernel, a function that returns K(x, x) of each example
    of a batch. This is useful where it is cheaper than calling the kernel with x and x. phimapd
    sends the right examples of a block once and then refers to them by their digest; the
    `remembered` most recently used batches of right examples are kept. `certificate` and `key`
    (PEM) turn on TLS. Calls are not authenticated: every client that can connect can call.
    """

    def __init__(self, kernels: Mapping[str, Kernel], listen: str = "127.0.0.1:0", *,
                 diagonals: Mapping[str, Diagonal] | None = None, remembered: int = 64, threads: int = 8,
                 certificate: bytes | None = None, key: bytes | None = None) -> None:
        if not kernels:
            raise ValueError("expected at least one kernel")
        self._servicer = _Servicer(dict(kernels), dict(diagonals or {}), remembered)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(threads),
            options=[("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
                     ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES), ("grpc.so_reuseport", 0)])
        # The gRPC plugin generates no types.
        add: Any = kernel_service_pb2_grpc.add_KernelServiceServicer_to_server
        add(self._servicer, self._server)
        if certificate is None:
            port = self._server.add_insecure_port(listen)
        else:
            port = self._server.add_secure_port(listen, grpc.ssl_server_credentials([(key, certificate)]))
        if port == 0:
            raise OSError(f"cannot listen on {listen}")
        #: The address of the server, with the actual port if `listen` has port 0.
        self.address = listen if listen.startswith("unix:") else f"{listen.rpartition(':')[0]}:{port}"
        self._server.start()

    def wait(self) -> None:
        """Waits until another thread closes the server."""
        self._server.wait_for_termination()

    def close(self) -> None:
        self._server.stop(None).wait()

    def __enter__(self) -> KernelServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


class _Refused(Exception):
    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Servicer(kernel_service_pb2_grpc.KernelServiceServicer):
    def __init__(self, kernels: dict[str, Kernel], diagonals: dict[str, Diagonal], remembered: int) -> None:
        self._kernels = kernels
        self._diagonals = diagonals
        self._columns = _Remembered(remembered)

    def ComputeBlock(self, request: Any, context: Any) -> Any:
        try:
            return self._compute(request)
        except _Refused as refused:
            context.abort(refused.code, str(refused))
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _compute(self, request: Any) -> Any:
        kernel = self._kernels.get(request.kernel)
        if kernel is None:
            raise _Refused(grpc.StatusCode.INVALID_ARGUMENT,
                           f"there is no kernel {request.kernel!r} on this server; it has {', '.join(sorted(self._kernels))}")
        right = self._columns.of(request)
        left = _batch(request.left)
        block = _numbers(kernel(left, right), (_count(left), _count(right)), request.kernel)
        response = kernel_service_pb2.ComputeBlockResponse()
        response.block.rows, response.block.columns = block.shape
        response.block.float64_le = block.tobytes()
        if request.want_diagonal:
            response.diagonal_float64_le = self._diagonal(request.kernel, kernel, left).tobytes()
        return response

    def _diagonal(self, name: str, kernel: Kernel, left: Any) -> Numbers:
        if name in self._diagonals:
            return _numbers(self._diagonals[name](left), (_count(left),), name)
        ones = [_numbers(kernel(left[i:i + 1], left[i:i + 1]), (1, 1), name)[0, 0] for i in range(_count(left))]
        return numpy.array(ones, "<f8")


class _Remembered:
    """The right batches that phimapd has sent, by digest. The least recently used are evicted
    first."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._batches: collections.OrderedDict[str, Batch] = collections.OrderedDict()
        self._lock = threading.Lock()

    def of(self, request: Any) -> Batch:
        side = request.WhichOneof("right")
        if side == "right_examples":
            batch = _batch(request.right_examples)
            if request.right_digest:
                with self._lock:
                    self._batches[request.right_digest] = batch
                    self._batches.move_to_end(request.right_digest)
                    while len(self._batches) > self._count:
                        self._batches.popitem(last=False)
            return batch
        if side is None:
            raise _Refused(grpc.StatusCode.INVALID_ARGUMENT, "expected right_examples or known_right_digest")
        with self._lock:
            if request.known_right_digest in self._batches:
                self._batches.move_to_end(request.known_right_digest)
                return self._batches[request.known_right_digest]
        raise _Refused(grpc.StatusCode.NOT_FOUND, "this server does not have the right examples; send them")


def _batch(examples: examples_pb2.Examples) -> Batch:
    kind = examples.WhichOneof("kind")
    if kind == "dense":
        dense = examples.dense
        values = dense.WhichOneof("values")
        if values not in ("float32_le", "float64_le"):
            raise _Refused(grpc.StatusCode.INVALID_ARGUMENT, "expected float32_le or float64_le")
        numbers = numpy.frombuffer(getattr(dense, values), "<f4" if values == "float32_le" else "<f8")
        return numbers.astype("<f8", copy=False).reshape(dense.rows, dense.columns)
    if kind == "text":
        return list(examples.text.values)
    if kind == "bytes":
        return list(examples.bytes.values)
    if kind == "sparse":
        return _csr(examples.sparse)
    raise _Refused(grpc.StatusCode.INVALID_ARGUMENT, "expected dense rows, sparse rows, bytes or text")


def _csr(sparse: examples_pb2.SparseRows) -> Any:
    """Returns sparse rows as a scipy csr_matrix, or as a dense array if scipy is not installed."""
    offsets = numpy.frombuffer(sparse.row_offsets_le, "<i8")
    columns = numpy.frombuffer(sparse.column_indices_le, "<i4")
    values = numpy.frombuffer(sparse.float64_le, "<f8")
    shape = (sparse.rows, sparse.columns)
    lengths_fit = len(offsets) == sparse.rows + 1 and len(columns) == len(values)
    if not lengths_fit or offsets[0] != 0 or offsets[-1] != len(values) or (numpy.diff(offsets) < 0).any():
        raise _Refused(grpc.StatusCode.INVALID_ARGUMENT, "offsets, columns and float64 values do not fit together")
    if len(columns) and not 0 <= columns.min() <= columns.max() < sparse.columns:
        raise _Refused(grpc.StatusCode.INVALID_ARGUMENT, f"expected columns in 0..{sparse.columns - 1}, got another one")
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        rows = numpy.zeros(shape)
        rows[numpy.repeat(numpy.arange(sparse.rows), numpy.diff(offsets)), columns] = values
        return rows
    return csr_matrix((values, columns, offsets), shape)


def _count(batch: Batch) -> int:
    """Returns the number of examples of a batch. For a sparse matrix, len() would raise an
    error."""
    return int(batch.shape[0]) if hasattr(batch, "shape") else len(batch)


def _numbers(values: Any, shape: tuple[int, ...], kernel: str) -> Numbers:
    array = numpy.ascontiguousarray(values.toarray() if hasattr(values, "toarray") else values, "<f8")
    if array.shape != shape:
        raise _Refused(grpc.StatusCode.INTERNAL, f"kernel {kernel!r} returned the shape {array.shape}, expected {shape}")
    return array
