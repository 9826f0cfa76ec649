"""Calls a real phimapd with Triton's HTTP client and KServe's two clients, as they are, and compares what they get with
phimap's own client.

TRITON_CLIENT_SOURCE, KSERVE_SOURCE: clones of their repositories (tests/full/inference_clients.sh). What the HTTP clients send
is also compared with recorded/, whose bytes an ordinary test replays. With RECORD=1, it is written there instead."""
from __future__ import annotations

import asyncio
import os
import pathlib
import re
import socket
import threading

import pytest

import others
from conftest import ROWS

RECORDED = pathlib.Path(__file__).parent / "recorded"


class Recorder:
    """Passes bytes between one client after another and the server, and keeps what the clients have sent."""

    def __init__(self, server):
        self.server = server
        self.sent = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(tuple(self.server.split(":")))
            threading.Thread(target=self.move, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.move, args=(server, client, False), daemon=True).start()

    def move(self, source, target, record):
        try:
            while data := source.recv(1 << 16):
                if record:
                    self.sent += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:  # the other side has closed
            pass


@pytest.fixture
def recorder(server, request):
    one = Recorder(server.api_http)
    yield one
    path = RECORDED / (re.sub(r"\W", "_", request.node.name.removeprefix("test_")).rstrip("_") + ".http")
    # The port and the versions of libraries differ from run to run.
    sent = re.sub(rb"(?i)(host: 127\.0\.0\.1):\d+", rb"\1", one.sent)
    sent = re.sub(rb"(?i)(user-agent: [a-z-]+)[^\r]*", rb"\1", sent)
    if os.environ.get("RECORD"):
        path.write_bytes(sent)
    assert sent == path.read_bytes(), "the client does not send what is recorded; RECORD=1 records it"


@pytest.fixture
def triton(recorder):
    http = others.triton()
    client = http.InferenceServerClient(recorder.address)
    client.http = http
    yield client
    client.close()


def triton_input(triton, binary):
    x = triton.http.InferInput("x", list(ROWS.shape), "FP32")
    x.set_data_from_numpy(ROWS, binary_data=binary)
    return [x]


def test_triton_describes(triton):
    assert triton.is_server_live() and triton.is_server_ready() and triton.is_model_ready("m", "1")
    assert "binary_tensor_data" in triton.get_server_metadata()["extensions"]
    assert triton.get_model_metadata("m")["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 5]}]
    assert triton.get_model_config("m", "1")["input"][0]["dims"] == [5]
    assert {model["version"] for model in triton.get_inference_statistics("m")["model_stats"]} == {"1", "2"}
    index = triton.get_model_repository_index(headers={"Content-Type": "application/json"})
    assert [(model["name"], model["version"], model["state"]) for model in index] == [("m", "1", "READY"), ("m", "2", "READY")]


def test_triton_infers_in_binary(triton, server):
    answer = triton.infer("m", triton_input(triton, True), model_version="1", request_id="7")
    assert answer.get_response()["id"] == "7"
    features = answer.as_numpy("features")
    assert features.dtype == server.features.dtype and features.tobytes() == server.features.tobytes()


def test_triton_infers_in_json(triton, server):
    answer = triton.infer("m", triton_input(triton, False), model_version="1",
                          outputs=[triton.http.InferRequestedOutput("features", binary_data=False)],
                          headers={"Content-Type": "application/json"})
    assert answer.as_numpy("features").tobytes() == server.features.tobytes()


def test_triton_predicts_in_both_forms(triton, server):
    answer = triton.infer("m", triton_input(triton, True),
                          outputs=[triton.http.InferRequestedOutput("label", binary_data=True),
                                   triton.http.InferRequestedOutput("probability", binary_data=False)])
    assert [int(label) for label in answer.as_numpy("label").ravel()] == [int(label) for label in server.predicted.labels]
    assert answer.as_numpy("probability").tobytes() == server.predicted.probabilities.tobytes()


def test_triton_is_told_what_is_wrong(triton):
    with pytest.raises(Exception) as caught:
        triton.infer("nobody", triton_input(triton, True))
    assert caught.value.status() == "404" and "nobody" in caught.value.message()


@pytest.fixture(scope="module")
def kserve(tmp_path_factory):
    return others.kserve(tmp_path_factory.mktemp("stubs"))


def call_kserve(kserve, work):
    async def call():
        async with kserve[0].InferenceRESTClient(kserve[0].RESTConfig(protocol="v2")) as client:
            return await work(client)
    return asyncio.run(call())


def kserve_request(kserve, binary, **more):
    x = kserve[1].InferInput("x", list(ROWS.shape), "FP32")
    x.set_data_from_numpy(ROWS, binary_data=binary)
    return kserve[1].InferRequest("m", [x], request_id="7", **more)


def test_kserve_describes(kserve, recorder):
    url = f"http://{recorder.address}"

    async def work(client):
        return [await client.is_server_live(url), await client.is_server_ready(url),
                await client.is_model_ready(url, "m"), await client.is_model_ready(url, "nobody")]
    assert call_kserve(kserve, work) == [True, True, True, False]


@pytest.mark.parametrize("binary, output", [(False, False), (False, True), (True, False), (True, True)],
                         ids=["json_for_json", "binary_for_json", "json_for_binary", "binary_for_binary"])
def test_kserve_infers(kserve, recorder, server, binary, output):
    request = kserve_request(kserve, binary, parameters={"binary_data_output": output})

    async def work(client):
        return await client.infer(f"http://{recorder.address}", request, model_name="m/versions/1")
    answer = call_kserve(kserve, work)
    assert answer.id == "7"
    assert answer.outputs[0].as_numpy().tobytes() == server.features.tobytes()


def test_kserve_infers_by_grpc(kserve, server):
    request = kserve[1].InferRequest("m", kserve_request(kserve, False).inputs, request_id="7", model_version="1")

    async def call():
        async with kserve[0].InferenceGRPCClient(server.address) as client:
            assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("m")
            return await client.infer(request)
    answer = asyncio.run(call())
    assert answer.id == "7"
    assert answer.outputs[0].as_numpy().tobytes() == server.features.tobytes()
