"""Tests the Open Inference Protocol over HTTP with Python's http.client and curl, and with the bytes that the clients of
Triton and KServe have sent (tests/interop/inference_clients, which runs the clients themselves)."""
from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import socket
import subprocess

import numpy as np
import pytest

import phimap
from phimapd import Phimapd

JSON = {"Content-Type": "application/json"}
RECORDED = pathlib.Path(os.environ["PHIMAP_SOURCE"]) / "tests/interop/inference_clients/recorded"
# The rows of the recorded requests.
ROWS = (np.arange(10, dtype=np.float32) / 8 - 0.5).reshape(2, 5)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Phimapd(tmp_path_factory.mktemp("store"), "--api_http=127.0.0.1:0") as one:
        rows = np.random.default_rng(1).normal(size=(400, 5))
        with phimap.Client(one.address) as client:
            client.build("m", rows, spec="f2(landmarks=30)", kernel="rbf(gamma=0.1)")
            client.train("m", rows, (rows[:, 0] > 0).astype(int), learner="ridge")
            client.build("wide", rows, spec="f2(landmarks=30, serving_type=float64)", kernel="rbf(gamma=0.1)")
        yield one


def read(answer):
    """Returns the status, the JSON, and the outputs by name, as arrays."""
    body = answer.read()
    length = answer.getheader("inference-header-content-length")
    wanted = "application/json" if length is None else "application/octet-stream"
    assert answer.getheader("content-type") == wanted
    at = len(body) if length is None else int(length)
    said = json.loads(body[:at])
    outputs = {}
    for output in said["outputs"] if "model_name" in said else []:
        dtype = {"FP32": np.float32, "FP64": np.float64, "BYTES": object}[output["datatype"]]
        if "data" in output:
            values = np.array(output["data"], dtype)
        else:
            size = output["parameters"]["binary_data_size"]
            values = texts(body[at:at + size]) if dtype is object else np.frombuffer(body[at:at + size], dtype)
            at += size
        outputs[output["name"]] = values.reshape(output["shape"])
    assert length is None or at == len(body)
    return answer.status, said, outputs


def texts(data):
    values = []
    while data:
        size = 4 + int.from_bytes(data[:4], "little")
        values.append(data[4:size].decode())
        data = data[size:]
    return np.array(values, object)


def ask(server, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    connection.request(method, path, body, headers or {})
    answer = read(connection.getresponse())
    connection.close()
    return answer


def infer(server, model, tensor, tail=b"", **more):
    """Sends one input, with `tail` behind the JSON."""
    text = json.dumps({"inputs": [tensor], **more}).encode()
    headers = dict(JSON) if not tail else {"Inference-Header-Content-Length": str(len(text))}
    return ask(server, "POST", f"/v2/models/{model}/infer", text + tail, headers)


def binary_input(rows):
    datatype = {"float32": "FP32", "float64": "FP64"}[rows.dtype.name]
    return {"name": "x", "shape": rows.shape, "datatype": datatype, "parameters": {"binary_data_size": rows.nbytes}}


def json_input(rows, nested):
    datatype = {"float32": "FP32", "float64": "FP64"}[rows.dtype.name]
    data = rows.tolist() if nested else rows.ravel().tolist()
    return {"name": "x", "shape": rows.shape, "datatype": datatype, "data": data}


@pytest.mark.parametrize("model, name", [("m/versions/1", "m@1"), ("wide", "wide")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["binary", "flat", "nested"])
def test_features_are_those_of_grpc_bit_for_bit(server, model, name, dtype, form):
    # 3000 rows are answered by other threads than 7 are.
    for rows in (np.random.default_rng(2).normal(size=(count, 5)).astype(dtype) for count in (7, 3000)):
        with phimap.Client(server.address) as client:
            expected = client.transform(name, rows)
        tensor, tail = (binary_input(rows), rows.tobytes()) if form == "binary" else (json_input(rows, form == "nested"), b"")
        for output in (True, False):
            status, said, outputs = infer(server, model, tensor, tail, id="a \"b\"", parameters={"binary_data_output": output})
            assert (status, said["id"], said["model_name"]) == (200, "a \"b\"", name.split("@")[0])
            assert ("data" in said["outputs"][0]) != output
            assert outputs["features"].dtype == expected.dtype
            assert outputs["features"].tobytes() == expected.tobytes()


def test_predictions_are_those_of_grpc_in_both_forms_at_once(server):
    with phimap.Client(server.address) as client:
        expected = client.predict("m", ROWS, probabilities=True)
    for label in (True, False):
        wanted = [{"name": "label", "parameters": {"binary_data": label}},
                  {"name": "probability", "parameters": {"binary_data": not label}}, {"name": "features"}]
        status, said, outputs = infer(server, "m", binary_input(ROWS), ROWS.tobytes(), outputs=wanted)
        assert status == 200
        assert ["data" in output for output in said["outputs"]] == [not label, label, True]
        assert [int(one) for one in outputs["label"].ravel()] == [int(one) for one in expected.labels]
        assert outputs["probability"].tobytes() == expected.probabilities.tobytes()


def test_descriptions_are_plain_json(server):
    assert ask(server, "GET", "/v2")[1]["extensions"] == ["model_configuration", "statistics", "binary_tensor_data"]
    assert ask(server, "GET", "/v2/health/live")[:2] == (200, {"live": True})
    assert ask(server, "GET", "/v2/health/ready")[:2] == (200, {"ready": True})
    status, said, _ = ask(server, "GET", "/v2/models/wide/versions/1")
    assert status == 200 and said["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 5]}]
    assert ask(server, "GET", "/v2/models/wide/versions/1/ready")[:2] == (200, {"name": "wide", "ready": True})
    assert ask(server, "GET", "/v2/models/wide/versions/7/ready")[:2] == (400, {"name": "wide", "ready": False})
    assert ask(server, "GET", "/v2/models/wide/config")[1]["input"][0]["dims"] == [5]
    assert ask(server, "GET", "/v2/models/wide/stats")[1]["model_stats"][0]["memory_usage"][0]["byte_size"] > 0
    index = ask(server, "POST", "/v2/repository/index", "{}", JSON)[1]
    assert {"name": "wide", "version": "1", "state": "READY", "reason": ""} in index


@pytest.mark.parametrize("change, words", [
    ({"shape": [2, 4]}, 'input "x" is FP32 of shape [2, 4]: expected 32 bytes, got 40'),
    ({"shape": [-1, 5]}, "inputs[x].shape"),
    ({"shape": [4294967296, 4294967296, 4294967296]}, "inputs[x].shape"),
    ({"shape": [2, 5.5]}, "inputs[x].shape: expected integers"),
    ({"shape": [2, 2**63]}, "inputs[x].shape: expected integers"),
    ({"shape": [2, 2**70]}, "inputs[x].shape: expected integers"),
    ({"datatype": "INT8"}, "inputs[x].datatype: expected FP32 or FP64"),
    ({"name": "y"}, 'the only input is "x", got "y"'),
    ({"name": 7}, "inputs[0].name: expected a text, got a number"),
    ({"data": [1]}, "inputs[x]: expected data or binary_data_size, got both"),
    ({"parameters": {"binary_data_size": 41}}, "inputs[x].parameters[binary_data_size]: expected 41 bytes behind the JSON"),
    ({"parameters": {"binary_data_size": 39}}, "got 1 more"),
    ({"parameters": {"binary_data_size": -1}}, "inputs[x].parameters[binary_data_size]: expected a number of bytes"),
    ({"parameters": {"binary_data_size": 2**64 - 1}}, "inputs[x].parameters[binary_data_size]"),
    ({"parameters": {"shared_memory_region": "a"}}, "got 40 more"),
])
def test_a_tensor_in_error_is_named(server, change, words):
    status, said, _ = infer(server, "m", {**binary_input(ROWS), **change}, ROWS.tobytes())
    assert status == 400 and words in said["error"]


@pytest.mark.parametrize("length, words", [
    ("5000", "within the body's"), ("0", "no JSON"), ("-1", "length of the JSON"), ("1e3", "length of the JSON"),
    ("99999999999", "length of the JSON"), ("20", "no JSON object"),
])
def test_a_wrong_length_of_the_json_is_told(server, length, words):
    text = json.dumps({"inputs": [binary_input(ROWS)]}).encode() + ROWS.tobytes()
    status, said, _ = ask(server, "POST", "/v2/models/m/infer", text, {"Inference-Header-Content-Length": length})
    assert status == 400 and words in said["error"]


# What forms and scripts of other sites can send without asking first.
@pytest.mark.parametrize("content_type", [None, "text/plain", "application/octet-stream", "application/x-www-form-urlencoded"])
def test_a_body_that_a_page_could_send_is_refused(server, content_type):
    for path in ("/v2/models/m/infer", "/v2/repository/index"):
        status, said, _ = ask(server, "POST", path, "{}", {"Content-Type": content_type} if content_type else {})
        assert status == 415 and "content-type: application/json" in said["error"]
        assert ("Inference-Header-Content-Length" in said["error"]) == path.endswith("infer")


def reason(said):
    return next(detail["reason"] for detail in said["details"] if detail["@type"].endswith(".ErrorInfo"))


def test_errors_are_those_of_grpc_in_the_form_of_the_protocol(server):
    status, said, _ = infer(server, "nobody", json_input(ROWS, True))
    assert status == 404 and "nobody" in said["error"] and reason(said) == "MAPPING_NOT_FOUND"
    status, said, _ = infer(server, "m", {"name": "x", "shape": [2, 5], "datatype": "FP32",
                                          "parameters": {"shared_memory_region": "rows"}})
    assert status == 400 and reason(said) == "PARAMETER_NOT_SUPPORTED"
    assert ask(server, "GET", "/v2/models/m/infer")[0] == 405
    assert "error" in ask(server, "GET", "/v2/anything")[1]
    assert ask(server, "GET", "/v2/models/m", headers={"Host": "evil.example"})[0] == 421
    assert ask(server, "POST", "/v2/models/m/infer", "{}", {**JSON, "Content-Encoding": "gzip"})[0] == 415
    status, said, _ = infer(server, "m", json_input(ROWS, True), parameters={"timeout": -1})
    assert status == 400 and "parameters[timeout]" in said["error"]


def test_curl_sends_bytes_by_both_versions_of_http(server, tmp_path):
    text = json.dumps({"inputs": [binary_input(ROWS)], "parameters": {"binary_data_output": True}}).encode()
    (tmp_path / "body").write_bytes(text + ROWS.tobytes())
    with phimap.Client(server.address) as client:
        expected = client.transform("m@1", ROWS)
    for version in ("--http1.1", "--http2-prior-knowledge"):
        got = subprocess.run(["curl", "-sS", version, "-H", f"Inference-Header-Content-Length: {len(text)}", "-H",
                              "content-type: application/octet-stream", "--data-binary", f"@{tmp_path}/body",
                              f"http://{server.api_http}/v2/models/m/versions/1/infer"], check=True, capture_output=True).stdout
        assert got.endswith(expected.tobytes())


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.http")), ids=lambda path: path.stem)
def test_what_clients_have_sent_is_answered(server, path):
    with phimap.Client(server.address) as client:
        features = client.transform("m@1", ROWS)
        predicted = client.predict("m", ROWS, probabilities=True)
    requests = [request for request in re.split(rb"(?=GET /v2|POST /v2)", path.read_bytes()) if request]
    assert requests
    with socket.create_connection(server.api_http.split(":"), timeout=60) as connection:
        for request in requests:
            connection.sendall(request)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            status, said, outputs = read(answer)
            # The client of KServe asks for a model that is not there, that of Triton wants its features.
            expected = 200 if b"nobody" not in request else 400 if b"/ready " in request else 404
            assert status == expected, said
            if "features" in outputs:
                assert outputs["features"].tobytes() == features.tobytes()
            if "probability" in outputs:
                assert outputs["probability"].tobytes() == predicted.probabilities.tobytes()
