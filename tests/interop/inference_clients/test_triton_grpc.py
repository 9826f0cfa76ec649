"""Calls a real phimapd with Triton's client for gRPC, as it is, and compares what it gets with phimap's own client.

TRITON_CLIENT_SOURCE, TRITON_COMMON_SOURCE: clones of its repositories (tests/full/inference_clients.sh)."""
from __future__ import annotations

import queue

import pytest

import others
from conftest import ROWS

@pytest.fixture(scope="module")
def triton(tmp_path_factory):
    return others.triton_grpc(tmp_path_factory.mktemp("stubs"))


@pytest.fixture
def client(triton, server):
    with triton.InferenceServerClient(server.address) as one:
        yield one


def inputs(triton):
    x = triton.InferInput("x", list(ROWS.shape), "FP32")
    x.set_data_from_numpy(ROWS)
    return [x]


def test_describes(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("m", "1")
    described = client.get_model_metadata("m").inputs[0]
    assert (described.name, described.datatype, list(described.shape)) == ("x", "FP32", [-1, 5])


def test_infers(triton, client, server):
    answer = client.infer("m", inputs(triton), model_version="1", request_id="7")
    assert answer.get_response().id == "7"
    assert answer.as_numpy("features").tobytes() == server.features.tobytes()


def test_predicts(triton, client, server):
    outputs = [triton.InferRequestedOutput(name) for name in ("label", "probability")]
    answer = client.infer("m", inputs(triton), outputs=outputs)
    assert [int(label) for label in answer.as_numpy("label").ravel()] == [int(label) for label in server.predicted.labels]
    assert answer.as_numpy("probability").tobytes() == server.predicted.probabilities.tobytes()


def test_infers_beside_other_work(triton, client, server):
    answers = queue.Queue()
    client.async_infer("m", inputs(triton), lambda result, error: answers.put((result, error)), model_version="1")
    result, error = answers.get(timeout=60)
    assert error is None and result.as_numpy("features").tobytes() == server.features.tobytes()


def test_is_told_what_is_wrong(triton, client):
    with pytest.raises(Exception) as caught:
        client.infer("nobody", inputs(triton))
    assert caught.value.status() == "StatusCode.NOT_FOUND" and "nobody" in caught.value.message()
