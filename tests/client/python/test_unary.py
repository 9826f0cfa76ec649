"""Tests unary calls."""
import asyncio
import io
import re
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import pytest

import phimap
from conftest import NO_BACKOFF
from google.protobuf import duration_pb2
from phimap._crc32c import crc32c
from phimap.aio import AsyncClient
from phimap.rpc import error_details_pb2 as details_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as mapping_service_pb
from scripted_server import DIGEST, ScriptedServer, fail, stream_answer, sums

ROWS = np.arange(20.0).reshape(10, 2)


def unavailable(request, context):
    context.abort(grpc.StatusCode.UNAVAILABLE, "try again")


def full(request, context):
    fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full", details_pb.ErrorInfo(reason="QUEUE_FULL"),
         details_pb.RetryInfo(retry_delay=duration_pb2.Duration(nanos=1)))


def answers(request, context):
    return sums(request.examples, 3)


@pytest.mark.parametrize("failure", [unavailable, full])
def test_what_passes_by_itself_is_tried_again(scripted, scripted_client, failure):
    scripted.script("Transform", failure, failure, answers)
    assert scripted_client.transform("m", ROWS)[:, 0].tolist() == ROWS.sum(axis=1).tolist()


@pytest.mark.parametrize("failure", [unavailable, full])
def test_asynchronous_calls_are_tried_again_alike(scripted, failure):
    async def run():
        async with AsyncClient(scripted.address, service_config=NO_BACKOFF) as client:
            return await client.transform("m", ROWS)

    scripted.script("Transform", failure, failure, answers)
    assert asyncio.run(run())[:, 0].tolist() == ROWS.sum(axis=1).tolist()


def test_attempts_are_those_of_the_service_config(scripted, scripted_client):
    scripted.script("Transform", *[full] * 6)
    with pytest.raises(phimap.ResourceExhausted) as raised:
        scripted_client.transform("m", ROWS)
    assert raised.value.reason == "QUEUE_FULL"
    assert len(scripted.scripts["Transform"]) == 2  # 4 attempts were made, so 2 scripts are left


def shutting_down(request, context):
    fail(context, grpc.StatusCode.UNAVAILABLE, "the server is shutting down", details_pb.ErrorInfo(reason="SERVER_SHUTTING_DOWN"),
         details_pb.RetryInfo(retry_delay=duration_pb2.Duration(nanos=1)))


def alias(request, context):
    return mapping_pb.Alias(name=request.alias, version=int(request.reference.partition("@")[2]))


def version(request, context):
    return mapping_pb.Version()


@pytest.mark.parametrize("failure", [unavailable, shutting_down])
def test_reads_are_tried_again(scripted, scripted_client, failure):
    scripted.script("GetVersion", failure, failure, version)
    assert scripted_client.get_version("m") == mapping_pb.Version()


def test_an_export_is_tried_again_until_its_first_chunk_and_not_after(scripted, scripted_client):
    def exported(request, context):
        yield mapping_service_pb.ArtifactChunk(data=b"abc", crc32c=crc32c(b"abc"), artifact_size_bytes=6)
        unavailable(request, context)

    def refused(request, context):
        yield from ()
        unavailable(request, context)

    scripted.script("GetVersion", version)
    scripted.script("Export", refused, exported, exported)
    file = io.BytesIO()
    with pytest.raises(phimap.Unavailable):
        scripted_client.export("m", file)
    assert file.getvalue() == b"abc" and len(scripted.scripts["Export"]) == 1


def test_a_change_that_was_not_begun_is_tried_again(scripted):
    scripted.script("SetAlias", shutting_down, alias)
    with phimap.Client(scripted.address) as client:
        assert client.set_alias("m@2", "prod").version == 2


def test_an_asynchronous_change_that_was_not_begun_is_tried_again(scripted):
    async def run():
        async with AsyncClient(scripted.address) as client:
            return await client.set_alias("m@2", "prod")

    scripted.script("SetAlias", shutting_down, alias)
    assert asyncio.run(run()).version == 2


def test_a_change_is_sent_again_with_its_id_and_the_next_one_has_another(scripted, scripted_client):
    """A change that may have been made is sent again with its id, by which the store makes it once."""
    ids = []

    def noted(then):
        def answer(request, context):
            ids.append(request.operation_id)
            return then(request, context)
        return answer

    scripted.script("SetAlias", noted(unavailable), noted(shutting_down), noted(alias), noted(unavailable), noted(alias))
    for _ in range(2):
        scripted_client.set_alias("m@2", "prod")
    assert ids[0] == ids[1] == ids[2] != ids[3] == ids[4]
    assert all(len(each) == 36 for each in ids)


def test_the_delay_that_a_server_asks_for_is_waited(scripted, scripted_client):
    def later(request, context):
        times.append(time.monotonic())
        fail(context, grpc.StatusCode.UNAVAILABLE, "soon", details_pb.ErrorInfo(reason="SERVER_SHUTTING_DOWN"),
             details_pb.RetryInfo(retry_delay=duration_pb2.Duration(nanos=50_000_000)))

    def now(request, context):
        times.append(time.monotonic())
        return version(request, context)

    times = []
    scripted.script("GetVersion", later, now)
    scripted_client.get_version("m")
    assert times[1] - times[0] >= 0.05


def test_a_call_has_its_deadline_for_all_its_attempts(scripted):
    remaining = []

    def script(request, context):
        remaining.append(context.time_remaining())
        unavailable(request, context)

    scripted.script("GetVersion", *[script] * 5)
    entry = NO_BACKOFF["methodConfig"][0]
    config = {"methodConfig": [entry | {"timeout": "2s", "retryPolicy": entry["retryPolicy"] | {
        "initialBackoff": "0.9s", "maxBackoff": "0.9s"}}]}
    with phimap.Client(scripted.address, service_config=config) as client:
        # A third attempt may begin so shortly before the deadline that the deadline ends it.
        with pytest.raises((phimap.Unavailable, phimap.DeadlineExceeded)):
            client.get_version("m")
    # With jitter, each wait takes 0.72 to 1.08 s, so a third wait never fits into the timeout of 2 s. The second
    # attempt has only the time that is left after the first attempt and the first wait.
    assert 2 <= len(remaining) <= 3 and remaining[1] < remaining[0] - 0.6


@pytest.fixture
def two_servers():
    with ScriptedServer() as first, ScriptedServer() as second:
        for server in (first, second):
            server.script("Transform", *[answers] * 100)
        yield first, second


def test_several_servers_take_the_calls_in_turn(two_servers):
    first, second = two_servers
    with phimap.Client(f"ipv4:{first.address},{second.address}") as client:
        while not (first.peers and second.peers):  # the first calls may all go to the first server with a connection
            client.transform("m", ROWS)
        before = len(first.peers)
        for _ in range(10):
            client.transform("m", ROWS)
    assert len(first.peers) - before == 5


def test_a_server_that_stops_is_left_out(two_servers):
    first, second = two_servers

    async def run():
        async with AsyncClient(f"ipv4:{first.address},{second.address}") as client:
            while not (first.peers and second.peers):
                await client.transform("m", ROWS)
            await asyncio.to_thread(first.__exit__)
            for _ in range(10):
                await client.transform("m", ROWS)

    asyncio.run(run())


def never_answers(request, context):
    over = threading.Event()
    context.add_callback(over.set)
    over.wait()
    return sums(request.examples)


def test_deadlines_are_those_of_the_service_config(scripted):
    scripted.script("Transform", never_answers)
    config = {"methodConfig": [{"name": [{"service": "phimap.v1.TransformService"}], "timeout": "0.5s"}]}
    with phimap.Client(scripted.address, service_config=config) as client:
        with pytest.raises(phimap.DeadlineExceeded):
            client.transform("m", ROWS)


def test_the_server_is_told_of_the_service_configs_deadline_and_of_the_callers_before_it(scripted):
    remaining = []

    def script(request, context):
        remaining.append(context.time_remaining())
        return sums(request.examples)

    scripted.script("Transform", script, script)
    config = {"methodConfig": [{"name": [{"service": "phimap.v1.TransformService"}], "timeout": "1000s"}]}
    with phimap.Client(scripted.address, service_config=config) as client:
        client.transform("m", ROWS)
        client.transform("m", ROWS, timeout=500)
    # gRPC sends the deadline rounded up, by less than a tenth.
    assert 550 < remaining[0] < 1100 and remaining[1] < 550


def test_a_call_that_takes_too_long_is_a_timeout_error(scripted, scripted_client):
    scripted.script("Transform", never_answers)
    with pytest.raises(TimeoutError) as raised:
        scripted_client.transform("m", ROWS, timeout=0.5)
    assert isinstance(raised.value, phimap.DeadlineExceeded)


def test_features_too_large_for_one_message_come_over_a_stream(scripted, scripted_client):
    def too_large(request, context):
        fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too large",
             details_pb.ErrorInfo(reason="MESSAGE_TOO_LARGE", metadata={"limit": "4"}))

    def stream(requests, context):
        for number, request in enumerate(requests):
            yield stream_answer(request.examples, None if number else 3)

    scripted.script("Transform", too_large)
    scripted.script("TransformStream", stream)
    assert scripted_client.transform("m", ROWS)[:, 0].tolist() == ROWS.sum(axis=1).tolist()


def test_a_name_is_asked_for_by_number_and_digest_after_its_first_answer(scripted, scripted_client):
    asked = []

    def script(request, context):
        asked.append((request.reference, request.expected_digest))
        return sums(request.examples, 3)

    scripted.script("Transform", *[script] * 5)
    for reference in ("m", "m", "m@prod", "m@prod"):
        scripted_client.transform(reference, ROWS)
    scripted_client.unpin("m")
    scripted_client.transform("m", ROWS)
    assert asked == [("m", ""), ("m@3", DIGEST), ("m@prod", ""), ("m@prod", ""), ("m", "")]


def test_another_expected_digest_than_the_pins_is_refused_without_a_call(scripted, scripted_client):
    scripted.script("Transform", answers)
    scripted_client.transform("m", ROWS)
    with pytest.raises(phimap.FailedPrecondition, match="'m' is pinned to m@3 of digest dddd") as refused:
        scripted_client.transform("m", ROWS, expected_digest="e" * 64)
    # The server has sent the reason and the field.
    assert (refused.value.reason, refused.value.field) == ("DIGEST_MISMATCH", "expected_digest")
    assert refused.value.metadata == {"expected": "e" * 64, "actual": DIGEST}


def test_a_pinned_version_that_is_gone_says_that_it_was_pinned(scripted, scripted_client):
    def gone(request, context):
        fail(context, grpc.StatusCode.NOT_FOUND, "m has no version 3")

    scripted.script("Transform", answers, gone)
    scripted_client.transform("m", ROWS)
    with pytest.raises(phimap.NotFound) as raised:
        scripted_client.transform("m", ROWS)
    assert "'m' is pinned to m@3" in raised.value.__notes__[0]


def test_calls_take_the_channels_in_turn_and_each_is_a_connection(scripted):
    scripted.script("Transform", *[answers] * 6)
    with phimap.Client(scripted.address, channels=3) as client:
        for _ in range(6):
            client.transform("m", ROWS)
    assert scripted.peers[:3] == scripted.peers[3:] and len(set(scripted.peers)) == 3


def test_a_token_goes_with_each_call(scripted):
    tokens = []

    def script(request, context):
        tokens.extend(value for key, value in context.invocation_metadata() if key == "authorization")
        return sums(request.examples)

    scripted.script("Transform", script)
    with phimap.Client(scripted.address, token="secret") as client:
        client.transform("m", ROWS)
    assert tokens == ["Bearer secret"]


def test_a_proxy_of_the_environment_is_ignored(scripted, monkeypatch):
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens there
    scripted.script("Transform", answers, answers)

    async def run():
        async with AsyncClient(scripted.address) as client:
            await client.transform("m", ROWS)

    with phimap.Client(scripted.address, service_config={}) as client:
        client.transform("m", ROWS)
    asyncio.run(run())


def test_a_client_in_a_forked_process_refuses_instead_of_hanging(scripted):
    script = f"""
import os, phimap
client = phimap.Client({scripted.address!r})
child = os.fork()
if child == 0:
    try:
        client.transform("m", [[1.0, 2.0]])
    except RuntimeError as error:
        os._exit(7 if "do not survive a fork" in str(error) else 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 7


@pytest.mark.parametrize("server", [
    "localhost", "http://localhost:7450", "host:", "host:0", "host:65536", ":80x", "unix:", "ipv4:", "ipv4:10.0.0.1:7450,",
    "ipv4:10.0.0.1,10.0.0.2:7450", "10.0.0.1:7450,10.0.0.2:7450", "dns:///phimap"])
def test_addresses_that_grpc_could_not_read_are_refused(server):
    with pytest.raises(ValueError, match="server: expected HOST:PORT, unix:PATH, or .*" + re.escape(f", got {server!r}")):
        phimap.Client(server)


def test_the_server_is_that_of_the_environment_or_the_local_one(monkeypatch):
    monkeypatch.delenv("PHIMAP_SERVER", raising=False)
    assert phimap.Client().server == "127.0.0.1:7450"
    monkeypatch.setenv("PHIMAP_SERVER", "example:1")
    assert phimap.Client().server == "example:1"
    assert phimap.Client("other:2").server == "other:2"


def test_a_timeout_that_is_no_time_is_refused_without_a_call(scripted, scripted_client):
    for timeout in (0, -1, float("nan"), "5"):
        with pytest.raises(ValueError, match="timeout: expected seconds > 0, or None, got"):
            scripted_client.transform("m", np.zeros((1, 1)), timeout=timeout)
    assert not scripted.peers


def test_what_is_no_reference_is_named_without_a_call(scripted, scripted_client):
    version = phimap.Version(ref=phimap.VersionRef(name="m", number=3))
    for wrong, message in ((3, 'expected a reference such as "letters", .*, got int'),
                           (version, r"got Version; phimap.reference_to\(\) makes one")):
        with pytest.raises(TypeError, match=message):
            scripted_client.transform(wrong, np.zeros((1, 1)))
        with pytest.raises(TypeError, match=message):
            scripted_client.get_version(wrong)
    assert not scripted.peers


@pytest.mark.parametrize("channels", [0, 65])
def test_the_number_of_channels_has_limits(channels):
    with pytest.raises(ValueError, match=f"channels: expected 1..64, got {channels}"):
        phimap.Client(channels=channels)
