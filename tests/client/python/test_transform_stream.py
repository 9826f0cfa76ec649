"""Tests TransformStream when something breaks. Answers that have arrived must be kept, and only the remaining rows
may be sent again."""
import asyncio

import grpc
import numpy as np
import pytest

import phimap
from conftest import NO_BACKOFF
from google.protobuf import duration_pb2
from phimap.aio import AsyncClient
from phimap.rpc import error_details_pb2 as details_pb
from scripted_server import DIGEST, fail, stream_answer

ROWS = np.arange(600.0).reshape(300, 2)
SUMS = ROWS.sum(axis=1)


def answers(seen, stop_after=None, end=None):
    """Returns a script that answers `stop_after` requests and then calls `end`. Without `stop_after`, it answers all
    requests."""
    def script(requests, context):
        for number, request in enumerate(requests):
            if number == stop_after:
                end(context)
                return
            seen.append(request)
            yield stream_answer(request.examples, 3 if number == 0 else None)
    return script


def breaks(context):
    context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")


def refuses(context):
    fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full",
         details_pb.RetryInfo(retry_delay=duration_pb2.Duration(nanos=1)))


def blocks_of(client, **arguments):
    return [block[:, 0] for block in client.transform_stream("m", ROWS, rows_per_request=10, **arguments)]


@pytest.mark.parametrize("end", [breaks, refuses])
def test_goes_on_at_the_first_request_without_an_answer_on_the_same_version(scripted, scripted_client, end):
    first, second, third = [], [], []
    scripted.script("TransformStream", answers(first, 7, end), answers(second, 0, end), answers(third))
    assert np.concatenate(blocks_of(scripted_client)).tolist() == SUMS.tolist()
    assert (first[0].reference, first[0].expected_digest) == ("m", "")
    assert (third[0].reference, third[0].expected_digest) == ("m@3", DIGEST)
    assert [request.reference for request in third[1:]] == [""] * 22
    # The first stream answered 7 of the 30 requests, the second none, and the third 23. No request was answered
    # twice.
    assert (len(first), len(second), len(third)) == (7, 0, 23)


def test_gives_up_after_as_many_attempts_as_the_service_config_says(scripted, scripted_client):
    scripted.script("TransformStream", answers([], 2, breaks), *[answers([], 0, breaks)] * 5)
    with pytest.raises(phimap.Unavailable, match="Socket closed"):
        blocks_of(scripted_client)
    assert len(scripted.scripts["TransformStream"]) == 2  # of 6 scripts, 4 were used


def test_each_answer_begins_the_attempts_anew(scripted, scripted_client):
    scripted.script("TransformStream", *[answers([], 1, breaks)] * 29, answers([]))
    assert np.concatenate(blocks_of(scripted_client)).tolist() == SUMS.tolist()


def test_rows_of_an_iterator_are_sent_again_too(scripted, scripted_client):
    scripted.script("TransformStream", answers([], 3, breaks), answers([]))
    features = scripted_client.transform("m", (ROWS[i:i + 7] for i in range(0, 300, 7)))
    assert features[:, 0].tolist() == SUMS.tolist()


def test_an_error_names_the_row_of_the_input(scripted, scripted_client):
    def refuse_row_2(context):
        field = details_pb.BadRequest.FieldViolation(field="examples.dense.rows[2].columns[1]")
        fail(context, grpc.StatusCode.INVALID_ARGUMENT, "request 5: expected a finite number",
             details_pb.BadRequest(field_violations=[field]),
             details_pb.ErrorInfo(reason="VALUE_NOT_FINITE", metadata={"row": "2", "column": "1", "request": "5"}))

    scripted.script("TransformStream", answers([], 5, refuse_row_2))
    with pytest.raises(phimap.InvalidArgument) as raised:
        blocks_of(scripted_client)
    assert (raised.value.row, raised.value.column) == (52, 1)
    assert raised.value.message == "row 52 of the input: expected a finite number"


def test_an_error_after_a_break_still_names_the_row_of_the_input(scripted, scripted_client):
    def refuse(context):
        fail(context, grpc.StatusCode.OUT_OF_RANGE, "request 2: overflow",
             details_pb.ErrorInfo(reason="OVERFLOW", metadata={"row": "4", "request": "2"}))

    scripted.script("TransformStream", answers([], 6, breaks), answers([], 2, refuse))
    with pytest.raises(phimap.OutOfRange) as raised:
        blocks_of(scripted_client)
    assert raised.value.row == (6 + 2) * 10 + 4


def test_a_stream_that_ends_early_is_an_internal_error(scripted, scripted_client):
    scripted.script("TransformStream", answers([], 3, lambda context: None))
    with pytest.raises(phimap.Internal, match="the server ended the stream and left 8 requests unanswered"):
        blocks_of(scripted_client)


def test_rows_are_read_a_window_ahead_and_no_further(scripted, scripted_client):
    taken = []

    def rows():
        for i in range(0, 300, 10):
            taken.append(i)
            yield ROWS[i:i + 10]

    scripted.script("TransformStream", answers([]))
    blocks = scripted_client.transform_stream("m", rows(), window=3, rows_per_request=10)
    assert not taken
    next(blocks)
    assert len(taken) == 3
    next(blocks)
    assert len(taken) == 4
    assert len(list(blocks)) == 28


def test_who_stops_reading_cancels_the_call(scripted, scripted_client):
    cancelled = []

    def script(requests, context):
        context.add_callback(lambda: cancelled.append(not context.is_active()))
        yield from answers([])(requests, context)

    scripted.script("TransformStream", script)
    blocks = scripted_client.transform_stream("m", ROWS, window=2, rows_per_request=10)
    next(blocks)
    blocks.close()
    scripted_client.close()
    scripted.__exit__()
    assert cancelled == [True]


def test_an_exception_of_the_rows_is_the_callers_own(scripted, scripted_client):
    def rows():
        yield ROWS[:10]
        raise KeyError("mine")

    scripted.script("TransformStream", answers([]))
    with pytest.raises(KeyError, match="mine"):
        list(scripted_client.transform_stream("m", rows(), window=1))


def test_no_rows_are_an_error_and_no_call(scripted_client):
    for rows in (iter([]), iter([np.zeros((0, 2))]), np.zeros((0, 2))):
        with pytest.raises(phimap.InvalidArgument, match="rows: expected at least 1, got none"):
            scripted_client.transform("m", rows)
    assert list(scripted_client.transform_stream("m", iter([]))) == []


@pytest.mark.parametrize("arguments, message", [
    ({"window": 0}, "window: expected at least 1, got 0"),
    ({"rows_per_request": 65_537}, "rows_per_request: expected 1..65536, got 65537")])
def test_options_out_of_range_are_refused(scripted_client, arguments, message):
    with pytest.raises(ValueError, match=message):
        scripted_client.transform_stream("m", ROWS, **arguments)


def test_progress_counts_rows(scripted, scripted_client):
    seen = []
    scripted.script("TransformStream", answers([]))
    blocks_of(scripted_client, progress=seen.append)
    assert [step.rows for step in seen] == list(range(10, 301, 10))
    assert seen[-1].fraction == 1.0 and seen[-1].total_rows == 300 and seen[-1].phase == "transforming"


def test_asynchronous_streams_go_on_alike(scripted):
    first, second = [], []
    scripted.script("TransformStream", answers(first, 7, breaks), answers(second))

    async def run():
        async with AsyncClient(scripted.address, service_config=NO_BACKOFF) as client:
            return [block async for block in client.transform_stream("m", ROWS, rows_per_request=10)]

    assert np.concatenate(asyncio.run(run()))[:, 0].tolist() == SUMS.tolist()
    assert (second[0].reference, second[0].expected_digest) == ("m@3", DIGEST)
    assert (len(first), len(second)) == (7, 23)


def test_an_asynchronous_reader_that_stops_cancels_the_call(scripted):
    cancelled = []

    def script(requests, context):
        context.add_callback(lambda: cancelled.append(not context.is_active()))
        yield from answers([])(requests, context)

    async def run():
        async with AsyncClient(scripted.address) as client:
            blocks = client.transform_stream("m", ROWS, window=2, rows_per_request=10)
            await anext(blocks)
            await blocks.aclose()

    scripted.script("TransformStream", script)
    asyncio.run(run())
    scripted.__exit__()
    assert cancelled == [True]
