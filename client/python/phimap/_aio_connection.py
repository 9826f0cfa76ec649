"""The connections of an asynchronous client, and calls on them. See _connection."""
from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import grpc
import grpc.aio

from phimap._access import Tls, access_of
from phimap._channel import Turns, channel_count, channel_options, stubs
from phimap._columns import ColumnOrders
from phimap._connection import HEALTH, PAGE_SIZE, check_usable, health_request, serving
from phimap._pins import Pins
from phimap._retry import BUILD, Deadline, Method, ServiceConfig, named
from phimap._revisions import Revisions
from phimap._transform import Widths
from phimap.errors import Error, from_rpc_error
from phimap.v1 import mapping_service_pb2_grpc as service_grpc


class AioConnection:
    """Channels to one server, and what the client knows about it. Only for the event loop that
    created it."""

    def __init__(self, server: str | None, channels: int, service_config: str | dict[str, Any] | None,
                 tls: Tls | None, token: str | None, options: Sequence[tuple[str, Any]]) -> None:
        access = access_of(server, tls, token)
        self.server = access.target
        self.config = ServiceConfig(service_config)
        self._revisions = Revisions(access.metadata)
        self.pins = Pins()
        self.widths = Widths()
        self.column_orders = ColumnOrders()
        arguments = channel_options(self.config, (*access.options, *options))
        self._channels = [
            grpc.aio.insecure_channel(self.server, arguments) if access.credentials is None else
            grpc.aio.secure_channel(self.server, access.credentials, arguments) for _ in range(channel_count(channels))]
        self._process = os.getpid()
        self._closed = False
        self._turn = Turns(channels)
        self._mappings: Any = service_grpc.MappingServiceStub(self._channels[0])  # type: ignore[no-untyped-call]
        self._stubs = stubs(self._channels)
        self._health = self._channels[0].unary_unary(HEALTH)

    async def close(self) -> None:
        self._closed = True
        for channel in self._channels:
            await channel.close()

    async def map(self, method: Method, request: bytes, deadline: Deadline) -> bytes:
        self.check_usable()
        return await self._repeated(method, deadline, lambda seconds: self._answer(self._stub(method), request, seconds))

    def asked_by(self, method: Method) -> Any:
        return self._revisions.without if method == BUILD else self._revisions.metadata

    def open(self, method: Method, deadline: Deadline, asked: Any) -> Any:
        self.check_usable()
        return self._stub(method)(timeout=self._seconds(method, deadline), metadata=asked)

    async def learn(self, call: Any, asked: Any = None) -> None:
        self._revisions.learn(await call.trailing_metadata(), asked)

    async def receive(self, name: str, request: Any, take: Callable[[Any], None], timeout: float | None = None) -> None:
        self.check_usable()
        method = getattr(self._mappings, name)
        begun = False

        async def call(seconds: float | None) -> None:
            nonlocal begun
            asked = self._revisions.metadata
            answers = method(request, timeout=seconds, metadata=asked)
            async for answer in answers:
                begun = True
                take(answer)
            await self.learn(answers, asked)

        await self._repeated((BUILD[0], name), Deadline(timeout), call, lambda: not begun)

    async def call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        self.check_usable()
        method = getattr(self._mappings, name)
        free = name == "Import"
        named(request)
        return await self._repeated((BUILD[0], name), Deadline(timeout), lambda seconds: self._answer(
            method, request, seconds, tells=True, free=free))

    async def serves(self, service: str, timeout: float | None) -> bool:
        self.check_usable()
        with self.errors():
            return serving(await self._health(health_request(service), timeout=timeout, metadata=self._revisions.without))

    def _stub(self, method: Method) -> Any:
        on_channels = self._stubs[method]
        return on_channels[self._turn() % len(on_channels)]

    async def _answer(self, method: Any, request: Any, seconds: float | None, *, tells: bool = False, free: bool = False) -> Any:
        metadata = self._revisions.without if free else self._revisions.metadata
        call = method(request, timeout=seconds, metadata=metadata)
        answer = await call
        if tells or metadata is not self._revisions.without:
            await self.learn(call, metadata)
        return answer

    async def _repeated(self, method: Method, deadline: Deadline, call: Callable[[float | None], Awaitable[Any]],
                        may_repeat: Callable[[], bool] = lambda: True) -> Any:
        deadline = deadline.or_else(self.config.timeout(method))
        retries = self.config.retries(method, deadline)
        while True:
            try:
                with self.errors():
                    return await call(deadline.remaining())
            except Error as error:
                raise_if_cancelled()
                wait = retries.wait_after(error, spread=True) if may_repeat() else None
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    async def pages(self, name: str, request: Any, field: str) -> list[Any]:
        items: list[Any] = []
        request.page_size = PAGE_SIZE
        while True:
            page = await self.call(name, request)
            items.extend(getattr(page, field))
            request.page_token = page.next_page_token
            if not request.page_token:
                return items

    def _seconds(self, method: Method, deadline: Deadline) -> float | None:
        remaining = deadline.remaining()
        return remaining if remaining is not None else self.config.timeout(method)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise self._revisions.noted(from_rpc_error(error, self.server)) from None

    def check_usable(self) -> None:
        check_usable(self._process, self._closed)


def raise_if_cancelled() -> None:
    """Raises CancelledError if the current task was cancelled. If a call breaks at the same moment,
    gRPC raises the call's error instead, and the task must not retry."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
