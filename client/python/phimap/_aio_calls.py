"""Builds, trainings, evaluations, transforms and predictions over an asynchronous connection. This module does the input
and output, and the sessions make the decisions. See _calls."""
from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import grpc
import grpc.aio

from phimap._aio_connection import AioConnection, raise_if_cancelled
from phimap._blocks import Block
from phimap._build import BLOCK_LIMITS, CANCEL_TIMEOUT, QUEUED_MESSAGES, BuildSession
from phimap._columns import in_order, refused_for_names
from phimap._evaluate import EvaluationSession
from phimap._pins import reference_to
from phimap._retry import EVALUATE, Deadline
from phimap._rows import AsyncRows
from phimap._transform import RowCall, RowSession, T, Target, explained, needs_stream, no_rows, pinned_meanwhile
from phimap.errors import Error, Internal, NotFound
from phimap.progress import Observer, Progress
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb


class _Writer:
    """Writes the requests of a stream in its own task, so that answers are read even while the
    network is full; if they were not read, it would stay full. Up to `limit` messages are queued; 0
    means any number."""

    def __init__(self, call: Any, limit: int = 0) -> None:
        self._call = call
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(limit)
        self._over = False
        self._task = asyncio.create_task(self._run())

    async def put(self, message: bytes) -> bool:
        """Queues `message`. Returns False if the call is over; reading its answers then raises the
        reason."""
        await self._queue.put(message)
        return not self._over

    async def close(self) -> None:
        """Ends the requests."""
        await self._queue.put(None)

    async def stop(self) -> None:
        """Ends the task. REQUIRES: the call is over or cancelled. The task is not cancelled,
        because gRPC would swallow the cancellation within `write`."""
        self._over = True
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)
        await asyncio.wait([self._task])
        if not self._task.cancelled():  # gRPC cancels a task that writes to a cancelled call
            self._task.exception()  # marks it as retrieved; the reader of the call gets it too

    async def _run(self) -> None:
        while (message := await self._queue.get()) is not None:
            if not self._over:
                await self._write(message)
        if not self._over:
            await self._call.done_writing()

    async def _write(self, message: bytes) -> None:
        try:
            await self._call.write(message)
        except (grpc.RpcError, asyncio.InvalidStateError):
            self._over = True  # later messages are dropped


async def build(connection: AioConnection, session: BuildSession, source: AsyncRows,
                deadline: Deadline) -> mapping_pb.Version:
    try:
        while True:
            try:
                return await _build_once(connection, session, source, deadline)
            except Error as error:
                raise_if_cancelled()
                wait = session.wait_after(error, source.rewinds)
            await asyncio.sleep(wait)
    except Error:
        raise
    except BaseException as interruption:
        # A separate task cancels the build, because the current one may have been cancelled.
        await asyncio.shield(asyncio.ensure_future(_cancel(connection, session, interruption)))
        raise


async def _build_once(connection: AioConnection, session: BuildSession, source: AsyncRows,
                      deadline: Deadline) -> mapping_pb.Version:
    asked = connection.asked_by(session.method)
    call = connection.open(session.method, deadline, asked)
    writer = _Writer(call, QUEUED_MESSAGES)
    try:
        with connection.errors():
            await writer.put(session.first())
            accepted = False
            while (event := await call.read()) is not grpc.aio.EOF:
                session.take(event)
                if not accepted:
                    accepted = True
                    await _send_rows(session, source, writer)
            await connection.learn(call, asked)
    except Error:
        # A version that has arrived is stored permanently, even if the stream broke afterwards.
        if session.version is None:
            raise
    finally:
        call.cancel()
        await writer.stop()
    return session.result()


async def evaluate(connection: AioConnection, session: EvaluationSession, source: AsyncRows,
                   deadline: Deadline) -> learning_pb.Evaluation:
    arranged = False
    while True:
        try:
            return await _evaluate_once(connection, session, source, deadline)
        except Error as error:
            if refused_for_names(error) and source.block is not None and not arranged:
                names = await _column_names(connection, session.reference)
                source.replace(in_order(source.block, names, session.reference))
                session.arrange(names)
                arranged = True
            elif not session.may_repeat_after(error):
                raise


async def _evaluate_once(connection: AioConnection, session: EvaluationSession, source: AsyncRows,
                         deadline: Deadline) -> learning_pb.Evaluation:
    asked = connection.asked_by(EVALUATE)
    call = connection.open(EVALUATE, deadline, asked)
    writer = _Writer(call, QUEUED_MESSAGES)
    try:
        with connection.errors():
            await writer.put(session.spec)
            accepted = False
            while (event := await call.read()) is not grpc.aio.EOF:
                session.take(event)
                if not accepted:
                    accepted = True
                    await _send_labeled(session, source, writer)
            await connection.learn(call, asked)
    finally:
        call.cancel()
        await writer.stop()
    return session.result()


async def _send_labeled(session: EvaluationSession, source: AsyncRows, writer: _Writer) -> None:
    while (block := await source.next(BLOCK_LIMITS)) is not None:
        if not await writer.put(session.request(block)):
            return
        session.report_sent()
    await writer.put(session.finish())
    await writer.close()


async def _send_rows(session: BuildSession, source: AsyncRows, writer: _Writer) -> None:
    if session.wants_rows(source):
        while (block := await source.next(BLOCK_LIMITS)) is not None:
            if not await writer.put(session.request(block)):
                return
            session.report_sent()
        await writer.put(session.finish())
    await writer.close()


async def _cancel(connection: AioConnection, session: BuildSession, interruption: BaseException) -> None:
    if not session.finished_sending:
        return
    spec = session.spec
    request = service_pb.CancelBuildRequest(name=spec.name, build_id=spec.build_id)
    try:
        job = await connection.call("CancelBuild", request, CANCEL_TIMEOUT)
    except NotFound:
        return
    except Error as error:
        interruption.add_note(f"The server could not be told to cancel build {spec.build_id}: {error}")
        return
    if job.state == mapping_pb.BuildJob.STATE_DONE:
        interruption.add_note(f"Too late: {reference_to(job.version)} was already published.")


async def map_rows(connection: AioConnection, call: RowCall[T], reference: str, expected_digest: str, source: AsyncRows,
                   deadline: Deadline, observer: Observer) -> tuple[T, mapping_pb.VersionRef]:
    if source.row_count == 0:
        raise no_rows()
    while True:
        target = Target.resolve(connection.pins, reference, expected_digest)
        answer = None
        if source.block is not None:
            source.replace(connection.column_orders.arranged(target.reference, source.block))
        if source.block is not None and connection.widths.fit_one_call(call, target, source.block):
            answer = await _map_once(connection, call, target, source.block, deadline, observer)
        if answer is None:
            gathered, version = call.gathered(source.row_count), None
            async with aclosing(stream(connection, call, target, source, deadline, observer)) as answers:
                async for taken, version in answers:
                    gathered.add(taken)
            if version is None:
                raise no_rows()
            answer = gathered.result(), version
        if connection.pins.observe(reference, answer[1]):
            return answer
        if not source.rewind():
            raise pinned_meanwhile(reference)


async def _map_once(connection: AioConnection, call: RowCall[T], target: Target, block: Block, deadline: Deadline,
                    observer: Observer) -> tuple[T, mapping_pb.VersionRef] | None:
    request = call.request(target.reference, target.expected_digest, block)
    try:
        answer = await connection.map(call.unary, request, deadline)
    except Error as error:
        if needs_stream(error, target):
            return None
        raise explained(error, target) from None
    version, taken = call.take(answer, block.rows)
    if version is None:
        raise Internal("the server's answer has no version")
    connection.widths.observe(call, target, version, taken)
    observer(Progress(call.phase, block.rows, block.rows, 1.0))
    return taken, version


async def stream(connection: AioConnection, call: RowCall[T], target: Target, source: AsyncRows, deadline: Deadline,
                 observer: Observer, window: int | None = None,
                 rows_per_request: int | None = None) -> AsyncGenerator[tuple[T, mapping_pb.VersionRef], None]:
    retries = connection.config.retries(call.stream, deadline)
    session = RowSession(call, target, retries, connection.widths.row_bytes(call, target.reference), window, rows_per_request)
    while not session.finished():
        try:
            async with aclosing(_stream_once(connection, session, source, deadline)) as answers:
                async for taken, version in answers:
                    connection.widths.observe(call, target, version, taken)
                    done = session.rows_done
                    total = source.row_count
                    observer(Progress(call.phase, done, total, done / total if total else None))
                    yield taken, version
            return
        except Error as error:
            raise_if_cancelled()
            refused = session.wants_names_after(error)
            if refused is not None:
                session.arrange(await _column_names(connection, refused))
                continue
            wait = session.wait_after(error)
        await asyncio.sleep(wait)


async def _column_names(connection: AioConnection, reference: str) -> tuple[str, ...]:
    version = await connection.call("GetVersion", service_pb.GetVersionRequest(reference=reference))
    connection.column_orders.note(reference, version.column_names)
    return tuple(version.column_names)


async def _stream_once(connection: AioConnection, session: RowSession[T], source: AsyncRows,
                       deadline: Deadline) -> AsyncGenerator[tuple[T, mapping_pb.VersionRef], None]:
    requests = session.again() + await _fill_window(session, source)
    if session.finished():  # there are no rows, so there is no call
        return
    asked = connection.asked_by(session.call.stream)
    call = connection.open(session.call.stream, deadline, asked)
    writer = _Writer(call)
    try:
        while True:
            for request in requests:
                await writer.put(request)
            if session.finished():
                break
            with connection.errors():
                answer = await call.read()
            yield session.take(None if answer is grpc.aio.EOF else answer)
            requests = await _fill_window(session, source)
        await writer.close()
        await _drain(connection, call, asked)
    finally:
        call.cancel()
        await writer.stop()


async def _fill_window(session: RowSession[T], source: AsyncRows) -> list[bytes]:
    """Returns new requests until the window is full or the rows end."""
    requests = []
    while (limits := session.limits()) is not None:
        block = await source.next(limits)
        if block is None:
            session.end()
        else:
            requests.append(session.request(block))
    return requests


async def _drain(connection: AioConnection, call: Any, asked: Any) -> None:
    """Lets the server end the stream. All answers have arrived, so its status no longer matters."""
    try:
        if await call.read() is grpc.aio.EOF:
            await connection.learn(call, asked)
    except grpc.RpcError:
        pass
