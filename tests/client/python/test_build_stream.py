"""Tests builds whose stream breaks. If the server still knows the build, the client attaches to it. Otherwise the
client sends the rows again, if that is safe."""
import asyncio
import threading

import grpc
import numpy as np
import pytest

import phimap
from conftest import NO_BACKOFF
from phimap._build import BuildSession, Spec
from phimap._retry import Deadline, Retries, RetryPolicy
from phimap.aio import AsyncClient
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as mapping_service_pb
from scripted_server import accepted, built, fail

ROWS = np.arange(400_000.0).reshape(100_000, 4)  # 4 messages
SPEC = "f1(landmarks=2)"


class Attempt:
    """The requests that one stream received."""

    def __init__(self):
        self.spec = None
        self.rows = 0
        self.finish = None

    def read(self, requests):
        for request in requests:
            if request.HasField("spec"):
                self.spec = request.spec
            elif request.HasField("examples"):
                self.rows += request.examples.dense.rows
            else:
                self.finish = request.finish.row_count


def breaks(context, message="Socket closed"):
    context.abort(grpc.StatusCode.UNAVAILABLE, message)


def build(scripted_client, rows=ROWS, **arguments):
    return scripted_client.build("m", rows, spec=SPEC, kernel="linear()", **arguments)


def completes(attempt, number=1):
    def script(requests, context):
        yield accepted()
        attempt.read(requests)
        yield built(number)
    return script


def test_all_rows_and_their_count_are_sent_and_the_version_is_returned(scripted, scripted_client):
    attempt = Attempt()
    scripted.script("Build", completes(attempt, 7))
    version = build(scripted_client, standardize=True, seed=5)
    assert version.ref.number == 7
    assert (attempt.rows, attempt.finish) == (100_000, 100_000)
    spec = attempt.spec
    assert (spec.name, spec.spec, spec.kernel, spec.standardize, spec.seed) == ("m", SPEC, "linear()", True, 5)
    assert len(spec.build_id) == 36


def test_a_build_with_all_its_rows_is_attached_to_and_gets_no_rows_again(scripted, scripted_client):
    first = Attempt()
    ids = []

    def breaks_after_finish(requests, context):
        yield accepted()
        first.read(requests)
        breaks(context)

    def attaches(requests, context):
        ids.append(next(requests).spec.build_id)
        yield accepted(attached=True)
        assert next(requests, None) is None  # the client has ended its side before sending any row
        yield built()

    scripted.script("Build", breaks_after_finish, attaches)
    assert build(scripted_client).ref.number == 1
    assert ids == [first.spec.build_id]


def test_a_build_that_the_server_lost_gets_its_rows_again(scripted, scripted_client):
    first, second = Attempt(), Attempt()

    def breaks_within_the_rows(requests, context):
        yield accepted()
        first.spec = next(requests).spec
        first.rows += next(requests).examples.dense.rows
        breaks(context)

    scripted.script("Build", breaks_within_the_rows, completes(second))
    assert build(scripted_client).ref.number == 1
    assert 0 < first.rows < 100_000
    assert (second.rows, second.finish) == (100_000, 100_000)
    assert second.spec == first.spec


def test_rows_of_an_iterator_that_are_gone_are_not_made_up(scripted, scripted_client):
    def breaks_within_the_rows(requests, context):
        yield accepted()
        next(requests), next(requests)
        breaks(context)

    scripted.script("Build", breaks_within_the_rows)
    with pytest.raises(phimap.Unavailable):
        build(scripted_client, iter([ROWS] * 20))


def test_a_finished_iterator_whose_build_is_lost_says_that_it_is_read_only_once(scripted, scripted_client):
    def breaks_after_finish(requests, context):
        yield accepted()
        Attempt().read(requests)
        breaks(context)

    def forgot(requests, context):
        yield accepted()
        assert next(requests).HasField("spec")
        next(requests, None)

    scripted.script("Build", breaks_after_finish, forgot)
    with pytest.raises(phimap.Aborted, match="the rows came from an iterator, which is read only once"):
        build(scripted_client, iter([ROWS]))


def test_a_stream_that_the_server_still_holds_is_waited_for(scripted, scripted_client):
    def breaks_at_once(requests, context):
        yield accepted()
        breaks(context)

    def still_open(requests, context):
        context.abort(grpc.StatusCode.ABORTED, "its stream is still open")
        yield

    scripted.script("Build", breaks_at_once, still_open, completes(Attempt()))
    assert build(scripted_client).ref.number == 1


def test_an_id_in_use_by_another_stream_is_an_error_at_the_first_attempt(scripted, scripted_client):
    def still_open(requests, context):
        context.abort(grpc.StatusCode.ABORTED, "its stream is still open")
        yield

    scripted.script("Build", still_open)
    with pytest.raises(phimap.Aborted):
        build(scripted_client)


def test_an_error_of_a_row_surfaces_while_rows_without_an_end_are_being_sent(scripted, scripted_client):
    def refuses(requests, context):
        yield accepted()
        next(requests), next(requests)
        fail(context, grpc.StatusCode.INVALID_ARGUMENT, "expected a finite number, got nan")

    def endless():
        while True:
            yield ROWS

    scripted.script("Build", refuses)
    with pytest.raises(phimap.InvalidArgument, match="expected a finite number"):
        build(scripted_client, endless())


def test_a_version_that_was_sent_is_returned_however_the_stream_ends(scripted, scripted_client):
    def breaks_after_the_version(requests, context):
        yield accepted()
        Attempt().read(requests)
        yield built(4)
        breaks(context)

    scripted.script("Build", breaks_after_the_version)
    assert build(scripted_client).ref.number == 4


def test_an_end_without_a_version_is_an_internal_error(scripted, scripted_client):
    def ends(requests, context):
        yield accepted()
        Attempt().read(requests)

    scripted.script("Build", ends)
    with pytest.raises(phimap.Internal, match="the server ended the build without a version"):
        build(scripted_client)


def test_rows_are_read_as_fast_as_they_leave_and_no_faster(scripted, scripted_client):
    """The server stops reading. From then on, rows can accumulate only in HTTP/2's flow-control window and in the few
    messages that the client buffers."""
    read_on = threading.Event()
    taken = []

    def rows():
        for _ in range(400):  # blocks of 1 MiB
            taken.append(1)
            yield np.zeros((1 << 17, 1))
            if len(taken) == 5:
                read_on.set()

    def waits(requests, context):
        yield accepted()
        read_on.wait()
        fail(context, grpc.StatusCode.FAILED_PRECONDITION, "enough")

    scripted.script("Build", waits)
    with pytest.raises(phimap.FailedPrecondition):
        build(scripted_client, rows())
    assert len(taken) < 200


def interrupted(scripted, finished_state):
    """Sets scripts for a build that the test interrupts at its first progress event. Returns a list to which Build
    and CancelBuild append the build ids that they receive."""
    asked = []
    over = threading.Event()

    def computes(requests, context):
        context.add_callback(over.set)
        yield accepted()
        attempt = Attempt()
        attempt.read(requests)
        asked.append(attempt.spec.build_id)
        job = mapping_pb.BuildJob(state=mapping_pb.BuildJob.STATE_COMPUTING, phase="gram", fraction=0.5)
        yield mapping_service_pb.BuildResponse(progress=job)
        over.wait()

    def cancel(request, context):
        asked.append(request.build_id)
        job = mapping_pb.BuildJob(state=finished_state)
        job.version.name, job.version.number = "m", 9
        return job

    scripted.script("Build", computes)
    scripted.script("CancelBuild", cancel)
    return asked


def test_an_interrupt_cancels_the_build_on_the_server(scripted, scripted_client):
    asked = interrupted(scripted, mapping_pb.BuildJob.STATE_CANCELLED)

    def interrupt(progress):
        if progress.phase == "gram":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(scripted_client, progress=interrupt)
    assert len(asked) == 2 and asked[0] == asked[1]


def test_an_interrupt_that_came_too_late_says_what_was_published(scripted, scripted_client):
    interrupted(scripted, mapping_pb.BuildJob.STATE_DONE)

    def interrupt(progress):
        if progress.phase == "gram":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        build(scripted_client, progress=interrupt)
    assert raised.value.__notes__ == ["Too late: m@9 was already published."]


def test_a_cancelled_task_cancels_the_build_on_the_server(scripted):
    asked = interrupted(scripted, mapping_pb.BuildJob.STATE_CANCELLED)

    async def run():
        computing = asyncio.Event()

        def observe(progress):
            if progress.phase == "gram":
                computing.set()

        async with AsyncClient(scripted.address) as client:
            task = asyncio.create_task(client.build("m", ROWS, spec=SPEC, kernel="rbf(gamma=scale)", progress=observe))
            await computing.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert len(asked) == 2 and asked[0] == asked[1]


def test_asynchronous_builds_attach_and_send_again_alike(scripted):
    first, third = Attempt(), Attempt()

    def breaks_after_finish(requests, context):
        yield accepted()
        first.read(requests)
        breaks(context)

    def forgot_and_breaks(requests, context):
        yield accepted()
        breaks(context)

    async def run():
        async with AsyncClient(scripted.address, service_config=NO_BACKOFF) as client:
            return await client.build("m", ROWS, spec=SPEC, kernel="rbf(gamma=scale)")

    scripted.script("Build", breaks_after_finish, forgot_and_breaks, completes(third))
    assert asyncio.run(run()).ref.number == 1
    assert (third.rows, third.finish) == (100_000, 100_000)
    assert third.spec == first.spec


def test_a_deadline_leaves_the_build_and_says_how_to_follow_it():
    spec = Spec.of("m", SPEC, "linear()", False, 0, None)
    session = BuildSession(spec, Retries(RetryPolicy(), Deadline(None)), lambda progress: None, None)
    session.finish()
    with pytest.raises(phimap.DeadlineExceeded) as raised:
        session.wait_after(phimap.DeadlineExceeded("too late"), rewinds=True)
    assert raised.value.metadata["build_id"] == spec.build_id
    assert f"build() with build_id='{spec.build_id}'" in raised.value.__notes__[0]


def test_progress_that_was_made_before_begins_no_attempts_anew():
    session = BuildSession(Spec.of("m", SPEC, "linear()", False, 0, None),
                           Retries(RetryPolicy.of({"maxAttempts": 3, "initialBackoff": "0s", "maxBackoff": "0s",
                                                   "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}),
                                   Deadline(None)), lambda progress: None, None)
    session.finish()

    def computes(fraction):
        session.take(mapping_service_pb.BuildResponse(progress=mapping_pb.BuildJob(
            state=mapping_pb.BuildJob.STATE_COMPUTING, fraction=fraction)))

    for _ in range(2):
        computes(0.5)
        assert session.wait_after(phimap.Unavailable("gone"), rewinds=True) == 0
    computes(0.6)
    for _ in range(2):
        assert session.wait_after(phimap.Unavailable("gone"), rewinds=True) == 0
    computes(0.5)
    with pytest.raises(phimap.Unavailable):
        session.wait_after(phimap.Unavailable("gone"), rewinds=True)


@pytest.mark.parametrize("arguments, kind, message", [
    ({"seed": None}, ValueError, r"seed: expected an integer, 0..2\*\*64-1, got None"),
    ({"seed": -1}, ValueError, r"seed: expected an integer, 0..2\*\*64-1, got -1"),
    ({"standardize": "no"}, TypeError, "standardize: expected True or False, got str 'no'"),
    ({"standardize": 0}, TypeError, "standardize: expected True or False, got int 0"),
    ({"kernel": len}, TypeError, "kernel: expected text, got builtin_function_or_method"),
    ({"name": 3}, TypeError, "name: expected text, got int 3"),
    ({"spec": ["f2"]}, TypeError, "spec: expected text, got list"),
    ({"progress": 1}, TypeError, "progress: expected a function, True or None, got 1")])
def test_arguments_of_no_use_are_refused_without_a_call(scripted, scripted_client, arguments, kind, message):
    with pytest.raises(kind, match=message):
        scripted_client.build(**{"name": "m", "rows": ROWS, "spec": SPEC, **arguments})
    assert not scripted.peers


def test_progress_goes_from_sending_to_the_servers_phases(scripted, scripted_client):
    def reports(requests, context):
        yield accepted()
        Attempt().read(requests)
        for fraction in (0.25, 0.75):
            job = mapping_pb.BuildJob(state=mapping_pb.BuildJob.STATE_COMPUTING, phase="factor", fraction=fraction)
            yield mapping_service_pb.BuildResponse(progress=job)
        yield built()

    seen = []
    scripted.script("Build", reports)
    build(scripted_client, progress=seen.append)
    sending = [step for step in seen if step.phase == "sending"]
    assert sending[-1].rows == sending[-1].total_rows == 100_000 and sending[-1].fraction == 1.0
    assert [(step.phase, step.fraction) for step in seen[len(sending):]] == [("factor", 0.25), ("factor", 0.75)]
