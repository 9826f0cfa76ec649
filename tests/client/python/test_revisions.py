"""Tests the call metadata with which a client requires that every server knows at least the client's own changes, and
the metadata in which servers report their revision."""
from __future__ import annotations

import asyncio
import threading

import grpc
import numpy as np
import pytest

import phimap
import phimap.aio
from conftest import NO_BACKOFF
from phimap._revisions import Revisions
from phimap.rpc import error_details_pb2 as details_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from scripted_server import accepted, built, fail, stream_answer, sums

ROWS = np.ones((3, 2))


def tell(context, revision):
    if revision:
        context.set_trailing_metadata((("phimap-revision", revision),))


def asked(context):
    return dict(context.invocation_metadata()).get("phimap-min-revision")


class Script:
    """Scripts whose answers report the revisions `told`, in order. `asked` records the revision that each call
    requires."""

    def __init__(self, *told):
        self.told = list(told)
        self.asked = []
        # {N: a function that runs before call number N is answered}, where the first call has number 1.
        self.meanwhile = {}
        # What a refusal tells of the new history.
        self.expected = {}

    def _next(self, context):
        revision = asked(context)
        self.asked.append(revision)
        told = self.told.pop(0)
        self.meanwhile.get(len(self.asked), lambda: None)()
        if told == "another history":
            fail(context, grpc.StatusCode.FAILED_PRECONDITION, "of another history", details_pb.ErrorInfo(
                reason="REVISION_HISTORY_MISMATCH", domain="phimap", metadata={"actual": revision or "", **self.expected}))
        if told == "not reached":
            fail(context, grpc.StatusCode.UNAVAILABLE, "not yet", details_pb.ErrorInfo(
                reason="REVISION_NOT_REACHED", domain="phimap"))
        tell(context, told)

    def set_alias(self, request, context):
        self._next(context)
        return mapping_pb.Alias(name=request.alias, version=int(request.reference.partition("@")[2]))

    def transform(self, request, context):
        self._next(context)
        return sums(request.examples)

    def transform_stream(self, requests, context):
        self._next(context)
        for request in requests:
            yield stream_answer(request.examples, 1)

    def build(self, requests, context):
        self._next(context)
        next(requests)
        yield accepted()
        for request in requests:
            if request.HasField("finish"):
                yield built()

    def on(self, server):
        count = len(self.told)
        server.script("SetAlias", *[self.set_alias] * count)
        server.script("Transform", *[self.transform] * count)
        server.script("TransformStream", *[self.transform_stream] * count)
        server.script("Build", *[self.build] * count)


def run(server, *told):
    """Scripts one call for each revision in `told`. Returns the script."""
    script = Script(*told)
    script.on(server)
    return script


def change(client):
    client.set_alias("m@1", "prod")


def read(client):
    client.transform("m@1", ROWS)


def read_stream(client):
    list(client.transform_stream("m@1", ROWS))


def build(client):
    client.build("m", ROWS, spec="f1(landmarks=1)", kernel="linear")


@pytest.mark.parametrize("changing", [change, build])
@pytest.mark.parametrize("reading", [read, read_stream, change])
def test_what_a_change_told_is_asked_for_from_then_on(scripted, scripted_client, changing, reading):
    script = run(scripted, "e:7", "", "")
    changing(scripted_client)
    reading(scripted_client)
    reading(scripted_client)
    assert script.asked == [None, "e:7", "e:7"]


def test_a_client_that_was_told_nothing_asks_for_nothing(scripted, scripted_client):
    script = run(scripted, "", "", "")
    change(scripted_client)
    read(scripted_client)
    read_stream(scripted_client)
    assert script.asked == [None] * 3


@pytest.mark.parametrize("reading", [read, read_stream])
def test_reads_tell_too_and_older_answers_take_nothing_back(scripted, scripted_client, reading):
    script = run(scripted, "e:7", "e:9", "e:8", "")
    change(scripted_client)
    for _ in range(3):
        reading(scripted_client)
    assert script.asked == [None, "e:7", "e:9", "e:9"]


@pytest.mark.parametrize("call", [change, read, read_stream])
def test_a_refusal_tells_where_the_new_history_is(scripted, scripted_client, call):
    script = run(scripted, "e:7", "another history", "", "")
    script.expected = {"expected": "f:2"}
    change(scripted_client)
    call(scripted_client)
    call(scripted_client)
    assert script.asked == [None, "e:7", "f:2", "f:2"]


@pytest.mark.parametrize("call", [change, read, read_stream])
def test_a_revision_of_another_history_is_forgotten_and_the_call_made_again(scripted, scripted_client, call):
    script = run(scripted, "e:7", "another history", "", "")
    change(scripted_client)
    call(scripted_client)
    call(scripted_client)
    assert script.asked == [None, "e:7", None, None]


# A server that refuses every call must not make the client repeat it endlessly.
@pytest.mark.parametrize("call", [change, read, read_stream])
def test_the_call_is_made_again_a_few_times_only(scripted, scripted_client, call):
    script = run(scripted, "e:7", *["another history"] * 4, "")
    change(scripted_client)
    with pytest.raises(phimap.errors.Error, match="of another history"):
        call(scripted_client)
    assert script.asked == [None, "e:7", None, None, None]


@pytest.mark.parametrize("reading", [read, read_stream])
def test_a_late_answer_does_not_bring_back_a_history_that_is_over(scripted, scripted_client, reading):
    """A server that does not know about a failover yet answers with a revision of the old history. The client must not
    take this revision for a newer one."""
    script = run(scripted, "e:7", "e:9", "another history", "", "")
    script.meanwhile = {2: lambda: change(scripted_client)}
    change(scripted_client)
    reading(scripted_client)
    reading(scripted_client)
    assert script.asked == [None, "e:7", "e:7", None, None]


def test_nor_does_asyncio_make_a_call_without_end_or_take_a_revision_back(scripted):
    script = run(scripted, "e:7", *["another history"] * 4, "e:8", "e:9", "e:10", "")

    def change_elsewhere():
        asyncio.run_coroutine_threadsafe(client.set_alias("m@1", "prod"), loop).result()

    async def calls():
        nonlocal client, loop
        loop = asyncio.get_running_loop()
        async with phimap.aio.AsyncClient(scripted.address, service_config=NO_BACKOFF) as client:
            await client.set_alias("m@1", "prod")
            with pytest.raises(phimap.errors.Error, match="of another history"):
                await client.transform("m@1", ROWS)
            await client.set_alias("m@1", "prod")
            script.meanwhile = {7: change_elsewhere}
            await client.transform("m@1", ROWS)
            await client.transform("m@1", ROWS)

    client = loop = None
    asyncio.run(calls())
    assert script.asked == [None, "e:7", None, None, None, None, "e:8", "e:8", "e:10"]


@pytest.mark.parametrize("call", [change, read, read_stream])
def test_a_revision_that_is_not_there_yet_is_asked_for_again(scripted, scripted_client, call):
    script = run(scripted, "e:7", "not reached", "")
    change(scripted_client)
    call(scripted_client)
    assert script.asked == [None, "e:7", "e:7"]


def test_a_build_asks_for_nothing(scripted, scripted_client):
    script = run(scripted, "e:7", "e:8")
    change(scripted_client)
    build(scripted_client)
    assert script.asked == [None, None]


def test_asyncio_does_the_same(scripted):
    script = run(scripted, "e:7", "e:9", "another history", "f:1", "f:2", "")

    async def calls():
        async with phimap.aio.AsyncClient(scripted.address, service_config=NO_BACKOFF) as client:
            await client.set_alias("m@1", "prod")
            await client.transform("m@1", ROWS)
            await client.transform("m@1", ROWS)
            await client.build("m", ROWS, spec="f1(landmarks=1)", kernel="linear")
            async for _ in client.transform_stream("m@1", ROWS):
                pass

    asyncio.run(calls())
    assert script.asked == [None, "e:7", "e:9", None, None, "f:2"]


def test_other_metadata_stay(scripted):
    revisions = Revisions((("authorization", "Bearer x"),))
    revisions.learn([("other", "e:9"), ("phimap-revision", "e:7")])
    assert revisions.metadata == (("authorization", "Bearer x"), ("phimap-min-revision", "e:7"))
    revisions.learn([("phimap-revision", "nonsense"), ("phimap-revision", "e:x"), ("phimap-revision", ":1")])
    assert revisions.metadata[-1] == ("phimap-min-revision", "e:7")


def test_threads_never_take_a_revision_back():
    revisions = Revisions(())

    def learn(first):
        for number in range(first, 20_000, 4):
            revisions.learn([("phimap-revision", f"e:{number}")])
            assert int(revisions.metadata[-1][1].rpartition(":")[2]) >= number

    failures = []

    def guarded(first):
        try:
            learn(first)
        except AssertionError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and revisions.metadata == (("phimap-min-revision", "e:19999"),)
