"""The connections of a synchronous client, and calls on them."""
from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from phimap import _wire
from phimap._access import Tls, access_of
from phimap._channel import Turns, channel_count, channel_options, stubs
from phimap._columns import ColumnOrders
from phimap._pins import Pins
from phimap._retry import BUILD, Deadline, Method, ServiceConfig, named
from phimap._revisions import Revisions
from phimap._transform import Widths
from phimap.errors import Error, from_rpc_error
from phimap.v1 import mapping_service_pb2_grpc as service_grpc

PAGE_SIZE = 1000  # The API's limit.
HEALTH = "/grpc.health.v1.Health/Check"


class Connection:
    """Channels to one server, and what the client knows about it. Thread-safe; only for the process
    that created it."""

    # True if this process, or one that it was forked from, has created a Connection.
    ever_made = False

    def __init__(self, server: str | None, channels: int, service_config: str | dict[str, Any] | None,
                 tls: Tls | None, token: str | None, options: Sequence[tuple[str, Any]]) -> None:
        access = access_of(server, tls, token)
        Connection.ever_made = True
        self.server = access.target
        self.config = ServiceConfig(service_config)
        self._revisions = Revisions(access.metadata)
        self.pins = Pins()
        self.widths = Widths()
        self.column_orders = ColumnOrders()
        arguments = channel_options(self.config, (*access.options, *options))
        self._channels = [
            grpc.insecure_channel(self.server, arguments) if access.credentials is None else
            grpc.secure_channel(self.server, access.credentials, arguments) for _ in range(channel_count(channels))]
        self._process = os.getpid()
        self._closed = False
        self._turn = Turns(channels)
        self._mappings: Any = service_grpc.MappingServiceStub(self._channels[0])  # type: ignore[no-untyped-call]
        self._stubs = stubs(self._channels)
        self._health = self._channels[0].unary_unary(HEALTH)

    def close(self) -> None:
        self._closed = True
        for channel in self._channels:
            channel.close()

    def map(self, method: Method, request: bytes, deadline: Deadline) -> bytes:
        """Makes a call that maps rows, with its retries, each on the next channel in turn."""
        self.check_usable()
        return self._repeated(method, deadline, lambda seconds: self._answer(self._stub(method), request, seconds))

    def asked_by(self, method: Method) -> Any:
        """Metadata for a stream that is about to be opened; to be passed to `learn` when it has
        ended. A build depends on no earlier change."""
        return self._revisions.without if method == BUILD else self._revisions.metadata

    def open(self, method: Method, requests: Iterator[bytes], deadline: Deadline, asked: Any) -> Any:
        self.check_usable()
        return self._stub(method)(requests, timeout=self._seconds(method, deadline), metadata=asked)

    def learn(self, call: Any, asked: Any = None) -> None:
        """Learns the revision that the server reported at the end of a stream. REQUIRES: the stream
        ended without an error."""
        self._revisions.learn(call.trailing_metadata(), asked)

    def receive(self, name: str, request: Any, take: Callable[[Any], None], timeout: float | None = None) -> None:
        """Passes the answers of a method of the mapping service to `take`, one by one. The call is
        retried only until the first answer, because answers that `take` has received cannot be
        taken back."""
        self.check_usable()
        method = getattr(self._mappings, name)
        begun = False

        def call(seconds: float | None) -> None:
            nonlocal begun
            asked = self._revisions.metadata
            answers = method(request, timeout=seconds, metadata=asked)
            for answer in answers:
                begun = True
                take(answer)
            self.learn(answers, asked)

        self._repeated((BUILD[0], name), Deadline(timeout), call, lambda: not begun)

    def call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        """Calls a method of the mapping service, with its retries, and returns the answer."""
        self.check_usable()
        method = getattr(self._mappings, name)
        # An Import depends on no earlier change, and its requests cannot be sent again.
        free = name == "Import"
        named(request)
        return self._repeated((BUILD[0], name), Deadline(timeout), lambda seconds: self._answer(
            method, request, seconds, tells=True, free=free))

    def serves(self, service: str, timeout: float | None) -> bool:
        """Asks the standard health service, in one attempt."""
        self.check_usable()
        with self.errors():
            return serving(self._health(health_request(service), timeout=timeout, metadata=self._revisions.without))

    def _stub(self, method: Method) -> Any:
        on_channels = self._stubs[method]
        return on_channels[self._turn() % len(on_channels)]

    def _answer(self, method: Any, request: Any, seconds: float | None, *, tells: bool = False, free: bool = False) -> Any:
        """Makes one attempt. Asks for the newest known revision unless `free`. Learns the revision
        of the answer if it asked for one, or if `tells`."""
        metadata = self._revisions.without if free else self._revisions.metadata
        if not tells and metadata is self._revisions.without:
            return method(request, timeout=seconds, metadata=metadata)
        answer, call = method.with_call(request, timeout=seconds, metadata=metadata)
        self.learn(call, metadata)
        return answer

    def _repeated(self, method: Method, deadline: Deadline, call: Callable[[float | None], Any],
                  may_repeat: Callable[[], bool] = lambda: True) -> Any:
        """Returns the answer of `call`, which gets the remaining seconds as its argument. It is
        retried as the service config prescribes."""
        deadline = deadline.or_else(self.config.timeout(method))
        retries = None
        while True:
            try:
                return call(deadline.remaining())
            except grpc.RpcError as error:
                failed = self._error(error)
            except Error as error:
                failed = error
            retries = retries or self.config.retries(method, deadline)
            wait = retries.wait_after(failed, spread=True) if may_repeat() else None
            if wait is None:
                try:
                    raise failed
                finally:
                    del failed  # its traceback has this frame, and the frame the request
            time.sleep(wait)

    def pages(self, name: str, request: Any, field: str) -> list[Any]:
        """Returns the items of all pages of a list. `field` is the field of the answer that has
        them."""
        items: list[Any] = []
        request.page_size = PAGE_SIZE
        while True:
            page = self.call(name, request)
            items.extend(getattr(page, field))
            request.page_token = page.next_page_token
            if not request.page_token:
                return items

    def _seconds(self, method: Method, deadline: Deadline) -> float | None:
        """Returns the timeout of one call: the rest of the caller's time, or else the service
        config's timeout."""
        remaining = deadline.remaining()
        return remaining if remaining is not None else self.config.timeout(method)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Converts gRPC's errors to phimap.Error."""
        try:
            yield
        except grpc.RpcError as error:
            raise self._error(error) from None

    def _error(self, error: grpc.RpcError) -> Error:
        return self._revisions.noted(from_rpc_error(error, self.server))

    def check_usable(self) -> None:
        check_usable(self._process, self._closed)


def health_request(service: str) -> bytes:
    """Returns a grpc.health.v1.HealthCheckRequest, whose only field is that of a StringValue."""
    return StringValue(value=service).SerializeToString()


def serving(answer: bytes) -> bool:
    """Returns whether a grpc.health.v1.HealthCheckResponse, whose only field is that of an
    Int32Value, says SERVING."""
    return Int32Value.FromString(answer).value == 1


def check_usable(process: int, closed: bool) -> None:
    """Raises RuntimeError if the client belongs to another process or is closed."""
    if os.getpid() != process:
        raise RuntimeError(f"this client belongs to process {process} and its connections do not survive a fork: make a "
                           "client in each process, or start processes by spawn or forkserver")
    if closed:
        raise RuntimeError("this client is closed: make another one, or call within its `with` block")
