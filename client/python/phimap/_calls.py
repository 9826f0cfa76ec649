"""Builds, trainings, evaluations, transforms and predictions over a synchronous connection. This module does the input and
output, and the sessions make the decisions."""
from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from typing import Any

import grpc

from phimap._build import BLOCK_LIMITS, CANCEL_TIMEOUT, QUEUED_MESSAGES, BuildSession
from phimap._columns import in_order, refused_for_names
from phimap._connection import Connection
from phimap._evaluate import EvaluationSession
from phimap._feed import Feed
from phimap._pins import reference_to
from phimap._retry import EVALUATE, Deadline
from phimap._rows import MemoryRows, RowSource
from phimap._transform import RowCall, RowSession, T, Target, explained, needs_stream, no_rows, pinned_meanwhile
from phimap.errors import Error, Internal, NotFound
from phimap.progress import Observer, Progress, ignored
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb


def build(connection: Connection, session: BuildSession, source: RowSource, deadline: Deadline) -> mapping_pb.Version:
    """Builds or trains, with all attempts. An interruption such as Ctrl-C also cancels the build on the
    server."""
    try:
        while True:
            try:
                return _build_once(connection, session, source, deadline)
            except Error as error:
                wait = session.wait_after(error, source.rewinds)
            time.sleep(wait)
    except Error:
        raise
    except BaseException as interruption:
        _cancel(connection, session, interruption)
        raise


def _build_once(connection: Connection, session: BuildSession, source: RowSource,
                deadline: Deadline) -> mapping_pb.Version:
    feed = Feed(QUEUED_MESSAGES)
    feed.put(session.first())
    asked = connection.asked_by(session.method)
    call = connection.open(session.method, feed, deadline, asked)
    if not call.add_callback(feed.call_is_over):
        feed.call_is_over()
    try:
        with connection.errors():
            accepted = False
            for event in call:
                session.take(event)
                if not accepted:
                    accepted = True
                    _send_rows(session, source, feed)
            connection.learn(call, asked)
    except Error:
        # A version that has arrived is stored permanently, even if the stream broke afterwards.
        if session.version is None:
            raise
    finally:
        feed.call_is_over()
        call.cancel()
    return session.result()


def _send_rows(session: BuildSession, source: RowSource, feed: Feed) -> None:
    if session.wants_rows(source):
        while (block := source.next(BLOCK_LIMITS)) is not None:
            if not feed.put(session.request(block)):
                return
            session.report_sent()
        feed.put(session.finish())
    feed.close()


def _cancel(connection: Connection, session: BuildSession, interruption: BaseException) -> None:
    """Cancels the build on the server. Before `finish` there is nothing to cancel: the broken
    stream leaves no trace."""
    if not session.finished_sending:
        return
    spec = session.spec
    request = service_pb.CancelBuildRequest(name=spec.name, build_id=spec.build_id)
    try:
        job = connection.call("CancelBuild", request, CANCEL_TIMEOUT)
    except NotFound:
        return
    except Error as error:
        interruption.add_note(f"The server could not be told to cancel build {spec.build_id}: {error}")
        return
    if job.state == mapping_pb.BuildJob.STATE_DONE:
        interruption.add_note(f"Too late: {reference_to(job.version)} was already published.")


def evaluate(connection: Connection, session: EvaluationSession, source: RowSource,
             deadline: Deadline) -> learning_pb.Evaluation:
    """Evaluates in one attempt: nothing is stored, and a broken connection is an error. The call is
    repeated only if the server refuses it before taking rows: because of a revision of another
    history, which is then forgotten; because the number of a pinned version is gone, and the
    version is then requested by its digest; or because of the order of the columns, which are then
    rearranged by name."""
    arranged = False
    while True:
        try:
            return _evaluate_once(connection, session, source, deadline)
        except Error as error:
            if refused_for_names(error) and isinstance(source, MemoryRows) and not arranged:
                names = _column_names(connection, session.reference)
                source.replace(in_order(source.block, names, session.reference))
                session.arrange(names)
                arranged = True
            elif not session.may_repeat_after(error):
                raise


def _evaluate_once(connection: Connection, session: EvaluationSession, source: RowSource,
                   deadline: Deadline) -> learning_pb.Evaluation:
    feed = Feed(QUEUED_MESSAGES)
    feed.put(session.spec)
    asked = connection.asked_by(EVALUATE)
    call = connection.open(EVALUATE, feed, deadline, asked)
    if not call.add_callback(feed.call_is_over):
        feed.call_is_over()
    try:
        with connection.errors():
            accepted = False
            for event in call:
                session.take(event)
                if not accepted:
                    accepted = True
                    _send_labeled(session, source, feed)
            connection.learn(call, asked)
    finally:
        feed.call_is_over()
        call.cancel()
    return session.result()


def _send_labeled(session: EvaluationSession, source: RowSource, feed: Feed) -> None:
    while (block := source.next(BLOCK_LIMITS)) is not None:
        if not feed.put(session.request(block)):
            return
        session.report_sent()
    feed.put(session.finish())
    feed.close()


def map_rows(connection: Connection, call: RowCall[T], reference: str, expected_digest: str, source: RowSource,
             deadline: Deadline, observer: Observer) -> tuple[T, mapping_pb.VersionRef]:
    """Transforms or predicts in one call if rows and answers fit into a message, else over a
    stream."""
    if source.row_count == 0:
        raise no_rows()
    while True:
        target = Target.resolve(connection.pins, reference, expected_digest)
        answer = None
        if isinstance(source, MemoryRows):
            source.replace(connection.column_orders.arranged(target.reference, source.block))
        if isinstance(source, MemoryRows) and connection.widths.fit_one_call(call, target, source.block):
            answer = _map_once(connection, call, target, source, deadline, observer)
        if answer is None:
            gathered, version = call.gathered(source.row_count), None
            with closing(stream(connection, call, target, source, deadline, observer)) as answers:
                for taken, version in answers:
                    gathered.add(taken)
            if version is None:
                raise no_rows()
            answer = gathered.result(), version
        if connection.pins.observe(reference, answer[1]):
            return answer
        if not source.rewind():
            raise pinned_meanwhile(reference)


def _map_once(connection: Connection, call: RowCall[T], target: Target, source: MemoryRows, deadline: Deadline,
              observer: Observer) -> tuple[T, mapping_pb.VersionRef] | None:
    """Makes one call without a stream. Returns None if a stream should be tried instead."""
    rows = source.block.rows
    request = call.request(target.reference, target.expected_digest, source.block)
    try:
        answer = connection.map(call.unary, request, deadline)
    except Error as error:
        if needs_stream(error, target):
            return None
        raise explained(error, target) from None
    version, taken = call.take(answer, rows)
    if version is None:
        raise Internal("the server's answer has no version")
    connection.widths.observe(call, target, version, taken)
    if observer is not ignored:
        observer(Progress(call.phase, rows, rows, 1.0))
    return taken, version


def stream(connection: Connection, call: RowCall[T], target: Target, source: RowSource, deadline: Deadline,
           observer: Observer, window: int | None = None,
           rows_per_request: int | None = None) -> Generator[tuple[T, mapping_pb.VersionRef], None, None]:
    """Transforms or predicts over a stream, with all attempts. Yields the answers to blocks of rows
    in order, each with the version, which is the same for all."""
    retries = connection.config.retries(call.stream, deadline)
    session = RowSession(call, target, retries, connection.widths.row_bytes(call, target.reference), window, rows_per_request)
    while not session.finished():
        try:
            with closing(_stream_once(connection, session, source, deadline)) as answers:
                for taken, version in answers:
                    connection.widths.observe(call, target, version, taken)
                    done = session.rows_done
                    total = source.row_count
                    observer(Progress(call.phase, done, total, done / total if total else None))
                    yield taken, version
            return
        except Error as error:
            refused = session.wants_names_after(error)
            if refused is not None:
                session.arrange(_column_names(connection, refused))
                continue
            wait = session.wait_after(error)
        time.sleep(wait)


def _column_names(connection: Connection, reference: str) -> tuple[str, ...]:
    version = connection.call("GetVersion", service_pb.GetVersionRequest(reference=reference))
    connection.column_orders.note(reference, version.column_names)
    return tuple(version.column_names)


def _stream_once(connection: Connection, session: RowSession[T], source: RowSource,
                 deadline: Deadline) -> Generator[tuple[T, mapping_pb.VersionRef], None, None]:
    """Opens a stream, sends the unanswered requests and as many new ones as the window allows, and
    yields the answers."""
    feed = Feed()
    for request in session.again():
        feed.put(request)
    _fill_window(session, source, feed)
    if session.finished():  # there are no rows, so there is no call
        return
    asked = connection.asked_by(session.call.stream)
    call = connection.open(session.call.stream, feed, deadline, asked)
    try:
        while not session.finished():
            with connection.errors():
                answer = next(call, None)
            yield session.take(answer)
            _fill_window(session, source, feed)
        feed.close()
        _drain(connection, call, asked)
    finally:
        feed.call_is_over()
        call.cancel()


def _fill_window(session: RowSession[T], source: RowSource, feed: Feed) -> None:
    while (limits := session.limits()) is not None:
        block = source.next(limits)
        if block is None:
            session.end()
            feed.close()
        else:
            feed.put(session.request(block))


def _drain(connection: Connection, call: Any, asked: Any) -> None:
    """Lets the server end the stream. All answers have arrived, so its status no longer matters."""
    try:
        if next(call, None) is None:
            connection.learn(call, asked)
    except grpc.RpcError:
        pass
