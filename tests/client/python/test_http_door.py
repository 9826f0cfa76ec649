"""Tests the API over HTTP with what is not ours: Python's http.client and curl, and the bytes that browsers send.

What a call means is tested behind gRPC. Here it is tested that this door adds nothing and takes nothing away."""
from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess

import numpy as np
import pytest

import phimap
from phimapd import Phimapd

ADMIN, READER = "a" * 20, "r" * 20
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Phimapd(tmp_path_factory.mktemp("store"), "--api_http=127.0.0.1:0", "--http_hosts=features.example.com") as one:
        rows = np.random.default_rng(1).normal(size=(400, 5))
        with phimap.Client(one.address) as client:
            client.build("m", rows, spec="f2(landmarks=30)", kernel="rbf(gamma=0.1)")
            client.build("wide", rows, spec="f2(landmarks=30, serving_type=float64)", kernel="rbf(gamma=0.1)")
            client.train("m", rows, (rows[:, 0] > 0).astype(int), learner="ridge")
        yield one


def ask(server, method, path, body=None, headers=JSON):
    """Returns the status, the headers and the JSON of the answer."""
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    connection.request(method, path, body if body is None or isinstance(body, (bytes, str)) else json.dumps(body),
                       headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert answer.getheader("content-type") == "application/json", text
    return answer.status, answer.headers, json.loads(text)


def error(answer):
    """Returns what a program looks at in an error: status of HTTP, code, reason, and the field at fault."""
    status, _, said = answer
    details = {detail["@type"].rsplit(".", 1)[1]: detail for detail in said["details"]}
    violations = details.get("BadRequest", {}).get("fieldViolations", [])
    return status, said["code"], details["ErrorInfo"]["reason"], violations[0]["field"] if violations else None


def raw(server, request):
    """Returns everything that the server answers to these bytes."""
    host, port = server.api_http.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


def test_names_and_versions_are_read_at_their_paths(server):
    status, headers, listed = ask(server, "GET", "/v1/mappings")
    assert (status, [mapping["name"] for mapping in listed["mappings"]]) == (200, ["m", "wide"])
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    status, _, page = ask(server, "GET", "/v1/mappings?page_size=1")
    assert (status, len(page["mappings"])) == (200, 1) and page["next_page_token"]
    assert ask(server, "GET", "/v1/mappings/m")[2]["newest_version"] == "2"
    version = ask(server, "GET", "/v1/mappings/m/versions/1")[2]
    assert version["ref"]["number"] == "1" and version["input_columns"] == 5
    assert ask(server, "GET", "/v1/capabilities")[2]["families"]


@pytest.mark.parametrize("name, dtype", [("m@1", np.float32), ("wide", np.float64)])
def test_features_are_those_of_grpc_bit_for_bit(server, name, dtype):
    rows = np.random.default_rng(2).normal(size=(7, 5))
    with phimap.Client(server.address) as client:
        expected = client.transform(name, rows)
    assert expected.dtype == dtype
    status, _, answer = ask(server, "POST", f"/v1/mappings/{name}:transform",
                            {"rows": rows.tolist(), "residual": True})
    assert status == 200
    features = np.array(answer["features"])
    # A float32 comes as the number of float64 that it is, so nothing is rounded on the way.
    np.testing.assert_array_equal(features, expected.astype(np.float64))
    assert len(answer["residuals"]) == 7


def test_an_answer_too_large_for_the_loop_is_the_same(server):
    rows = np.random.default_rng(3).normal(size=(3000, 5))
    with phimap.Client(server.address) as client:
        expected = client.transform("m@1", rows)
    status, _, answer = ask(server, "POST", "/v1/mappings/m@1:transform", {"rows": rows.tolist()})
    assert status == 200
    np.testing.assert_array_equal(np.array(answer["features"], dtype=np.float32), expected)


def test_predictions_are_those_of_grpc(server):
    rows = np.random.default_rng(4).normal(size=(5, 5))
    with phimap.Client(server.address) as client:
        expected = client.predict("m", rows, probabilities=True)
    status, _, answer = ask(server, "POST", "/v1/mappings/m:predict",
                            {"rows": rows.tolist(), "probabilities": True, "label_names": True})
    assert status == 200
    assert [int(label) for label in answer["label_names"]] == [int(label) for label in expected.labels]
    np.testing.assert_array_equal(np.array(answer["probabilities"]), expected.probabilities)


def test_rows_may_be_protobufs_own_json(server):
    dense = {"rows": 1, "columns": 5, "numbers": {"values": [1, 2, 3, 4, 5]}}
    status, _, answer = ask(server, "POST", "/v1/mappings/m@1:transform", {"examples": {"dense": dense}})
    assert status == 200
    assert answer == ask(server, "POST", "/v1/mappings/m@1:transform", {"rows": [[1, 2, 3, 4, 5]]})[2]


@pytest.mark.parametrize("body, field, words", [
    ("", None, None),
    ("[1]", "body", "expected a JSON object, got an array"),
    ("{", "body", "no JSON object"),
    ("{} {}", "body", "no JSON object"),
    ("[" * 5000, "body", "no JSON object"),
    ('{"rows": 5}', "rows", "expected an array of rows"),
    ('{"rows": []}', "rows", "expected at least one row"),
    ('{"rows": [[]]}', "rows", "row 0: expected 1 to 65536 columns, got 0"),
    ('{"rows": [[1, 2], [3]]}', "rows", "row 1: expected 2 columns as in row 0, got 1"),
    ('{"rows": [[1, "2"]]}', "rows", "row 0, column 1: expected a number, got a text"),
    ('{"rows": [[1, null]]}', "rows", "row 0, column 1: expected a number, got null"),
    ('{"rows": [[1, 1e999]]}', "body", "no JSON object"),
    ('{"rows": [[1, NaN]]}', "body", "no JSON object"),
    ('{"rows": ["a", 1]}', "rows", "row 1: expected a text as in row 0, got a number"),
    ('{"rows": [[1]], "rows": [[1]]}', "rows", "twice"),
    ('{"rows": [[1]], "examples": {"text": {"values": ["a"]}}}', "rows", "got both"),
    ('{"rows": [[1, 2, 3, 4, 5]], "residuals": true}', "body", "residuals"),
    ('{"rows": [[1, 2, 3, 4, 5]], "reference": "other"}', "reference", "what the path says"),
])
def test_a_body_that_cannot_be_read_says_where(server, body, field, words):
    answer = ask(server, "POST", "/v1/mappings/m:transform", body)
    status, code, reason, wrong = error(answer)
    assert (status, code) == (400, 3)
    if field is not None:
        assert (reason, wrong) == ("REQUEST_MALFORMED", field)
        assert words in answer[2]["message"]


def test_errors_of_calls_are_those_of_grpc(server):
    rows = [[1.0, 2.0]]
    with phimap.Client(server.address) as client, pytest.raises(phimap.Error) as caught:
        client.transform("m@1", np.array(rows))
    answer = ask(server, "POST", "/v1/mappings/m@1:transform", {"rows": rows})
    status, _, reason, _ = error(answer)
    assert (status, reason) == (400, caught.value.reason)
    assert "5" in answer[2]["message"] and "2" in answer[2]["message"]
    assert error(ask(server, "GET", "/v1/mappings/absent"))[:3] == (404, 5, "MAPPING_NOT_FOUND")
    assert answer[1]["phimap-request-id"]


def test_what_is_not_served_is_told(server):
    assert error(ask(server, "GET", "/v1"))[0] == 404
    assert error(ask(server, "POST", "/", {}))[0] == 404
    assert error(ask(server, "GET", "/v1/mappings/m/versions/1/more"))[0] == 404
    assert error(ask(server, "POST", "/v1/mappings/m:wonder", {}))[0] == 404
    status, _, said = ask(server, "PUT", "/v1/mappings/m")
    assert status == 405 and "expected GET or DELETE" in said["message"]
    status, _, said = ask(server, "GET", "/v1/mappings/m:predict")
    assert status == 405 and "expected POST" in said["message"]
    assert error(ask(server, "GET", "/v1/mappings?page_sizes=1"))[3] == "page_sizes"
    assert error(ask(server, "GET", "/v1/mappings?page_size=many"))[3] == "page_size"
    assert error(ask(server, "GET", "/v1/mappings/%zz"))[3] == "path"
    assert error(ask(server, "POST", "/v1/mappings/m:transform?residual=true", {}))[3] == "query"


def page(server, path, **headers):
    """Returns the status and the headers of a file of the page for people."""
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def test_a_link_of_another_site_opens_the_page_and_nothing_else(server):
    opened = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    status, headers = page(server, "/", **opened)
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["content-security-policy"] and headers["x-content-type-options"] == "nosniff"
    assert page(server, "/page/main.js")[0] == 200
    assert page(server, "/", **{**opened, "sec_fetch_dest": "iframe"})[0] == 403
    assert page(server, "/", **{**opened, "sec_fetch_mode": "no-cors"})[0] == 403
    assert page(server, "/", **opened, origin="http://stranger.example")[0] == 403
    assert page(server, "/page/main.js", **opened)[0] == 403
    assert page(server, "/v1/mappings", **opened)[0] == 403
    assert page(server, "/", **opened, host="stranger.example")[0] == 421


def test_files_of_the_page_are_compressed_for_who_reads_that_and_sent_once(server):
    plain, zipped = (page(server, "/page/main.js", **headers)[1] for headers in ({}, {"accept_encoding": "br;q=1, gzip;q=0.5"}))
    assert (plain["content-encoding"], zipped["content-encoding"]) == (None, "gzip")
    assert page(server, "/page/main.js", accept_encoding="gzip;q=0")[1]["content-encoding"] is None
    assert page(server, "/page/main.js", if_none_match=f'"other", {plain["etag"]}')[0] == 304
    assert page(server, "/page/main.js", if_none_match=zipped["etag"])[0] == 200


# What forms and scripts of other sites can send without asking first.
@pytest.mark.parametrize("headers", [
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "multipart/form-data; boundary=x"},
    {},
])
def test_a_body_that_a_form_could_send_is_refused(server, headers):
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    connection.putrequest("POST", "/v1/mappings/m:transform")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.putheader("Content-Length", "2")
    connection.endheaders(b"{}")
    answer = connection.getresponse()
    assert answer.status == 415
    assert "content-type: application/json" in json.loads(answer.read())["message"]


@pytest.mark.parametrize("headers, status", [
    ({"Host": "evil.example"}, 421),
    ({"Host": "127.0.0.1.evil.example:80"}, 421),
    ({"Host": "features.example.com"}, 200),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Host": "features.example.com", "Origin": "https://features.example.com"}, 200),
])
def test_a_page_of_another_site_gets_nothing(server, headers, status):
    answered = ask(server, "GET", "/v1/mappings", headers=headers)
    assert answered[0] == status
    assert ("mappings" in answered[2]) == (status == 200)
    assert "access-control-allow-origin" not in answered[1]


def test_a_body_needs_a_length_within_the_limit(server):
    answer = raw(server, b"POST /v1/mappings/m:transform HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 411 ") and b"content-length" in answer
    answer = raw(server, b"POST /v1/mappings/m:transform HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                         b"Content-Length: 999999999\r\n\r\n{}")
    assert answer.startswith(b"HTTP/1.1 413 ") and b"MESSAGE_TOO_LARGE" in answer


def test_a_connection_serves_many_calls(server):
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    for _ in range(20):
        connection.request("POST", "/v1/mappings/m@1:transform", json.dumps({"rows": [[1, 2, 3, 4, 5]]}), JSON)
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["features"]
    assert connection.sock is not None


def test_head_is_get_without_a_body(server):
    for path in ("/v1/mappings/m", "/v1/mappings", "/v1/mappings/m/versions/1/artifact", "/v2/models/m", "/v1/mappings/nobody"):
        answers = []
        for verb in ("GET", "HEAD"):
            connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
            connection.request(verb, path)
            answer = connection.getresponse()
            answers.append((answer.status, answer.getheader("content-type"), answer.getheader("content-length"),
                            answer.getheader("etag")))
            body = answer.read()
            assert bool(body) == (verb == "GET")
            # The connection goes on.
            connection.request("GET", "/v1/mappings/m")
            assert connection.getresponse().status == 200
            connection.close()
        assert answers[0] == answers[1] and answers[0][2]
    done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-I", f"http://{server.api_http}/v1/mappings/m/versions/1/artifact"],
                          check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("HTTP/2 200") and "etag" in done.stdout


@pytest.mark.parametrize("verb, path, allow", [
    ("PUT", "/v1/mappings/m", "GET, DELETE, HEAD"),
    ("GET", "/v1/mappings/m:transform", "POST"),
    ("POST", "/v2/models/m", "GET, HEAD"),
    ("DELETE", "/openapi.json", "GET, HEAD"),
])
def test_a_wrong_method_of_http_is_told_the_right_ones(server, verb, path, allow):
    status, headers, _ = ask(server, verb, path, None, {})
    assert (status, headers["allow"]) == (405, allow)


def test_integers_beyond_64_bits_are_numbers(server):
    rows = [[1e20, -1e19, 18446744073709551616, 3e30, 2.5], [1, 2, 3, 4, 5]]
    texts = "[[100000000000000000000, -10000000000000000000, 18446744073709551616, 3e30, 2.5], [1, 2, 3, 4, 5]]"
    one = '{"inputs": [{"name": "x", "shape": [2, 5], "datatype": "FP64", "data": %s}]}'
    for path, body in (("/v1/mappings/wide@1:transform", '{"rows": %s}'), ("/v2/models/wide/versions/1/infer", one)):
        answers = [ask(server, "POST", path, body % data) for data in (texts, json.dumps(rows))]
        assert answers[0][0] == 200 and answers[0][2] == answers[1][2], answers[0]


def test_a_deadline_is_kept(server):
    late = {**JSON, "request-timeout": "0"}
    assert error_code(ask(server, "POST", "/v1/mappings/m@1:transform", {"rows": [[1, 2, 3, 4, 5]]}, late)) == (504, 4)
    wrong = {**JSON, "request-timeout": "soon"}
    assert error(ask(server, "POST", "/v1/mappings/m@1:transform", {}, wrong))[2] == "TIMEOUT_INVALID"


def error_code(answer):
    return answer[0], answer[2]["code"]


def test_curl_gets_the_same_by_both_versions_of_http(server):
    url = f"http://{server.api_http}/v1/mappings/m@1:transform"
    answers = [json.loads(subprocess.run(["curl", "-sS", version, "-H", "content-type: application/json", "-d",
                                          '{"rows": [[1, 2, 3, 4, 5]]}', url], check=True, capture_output=True).stdout)
               for version in ("--http1.1", "--http2-prior-knowledge")]
    assert answers[0] == answers[1] and answers[0]["features"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2",
                    "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
    tokens = folder / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text(f"admin {ADMIN}\nreader {READER}\n")
    with Phimapd(folder / "store", "--api_http=127.0.0.1:0", f"--tls_certificate={folder}/certificate.pem",
                 f"--tls_key={folder}/key.pem", f"--token_file={tokens}") as one:
        tls = phimap.Tls(str(folder / "certificate.pem"), server_name="localhost")
        with phimap.Client(one.address, tls=tls, token=ADMIN) as client:
            client.build("m", np.random.default_rng(1).normal(size=(300, 3)), spec="f2(landmarks=9)",
                         kernel="rbf(gamma=0.1)")
        one.certificate = folder / "certificate.pem"
        yield one


def ask_guarded(server, method, path, token=None, body=None):
    context = ssl.create_default_context(cafile=server.certificate)
    host, port = server.api_http.split(":")
    connection = http.client.HTTPSConnection("localhost", int(port), timeout=60, context=context)
    headers = {**JSON, **({"Authorization": f"Bearer {token}"} if token else {})}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, answer.headers, json.loads(answer.read())


def test_roles_are_those_of_the_api(guarded):
    status, headers, _ = ask_guarded(guarded, "GET", "/v1/mappings")
    assert status == 401 and headers["www-authenticate"] == "Bearer"
    assert ask_guarded(guarded, "GET", "/v1/mappings", "x" * 20)[0] == 401
    assert ask_guarded(guarded, "GET", "/v1/mappings", READER)[0] == 200
    assert error(ask_guarded(guarded, "DELETE", "/v1/mappings/m", READER))[:3] == (403, 7, "ROLE_TOO_LOW")
    status, headers, alias = ask_guarded(guarded, "POST", "/v1/mappings/m@1:setAlias", ADMIN, {"alias": "prod"})
    assert status == 200 and alias["version"] == "1"
    # The revision of a change, for a call to another server that must know it.
    assert headers["phimap-revision"]
    assert ask_guarded(guarded, "GET", "/v1/mappings/m/versions/prod", READER)[2]["ref"]["number"] == "1"
    assert ask_guarded(guarded, "DELETE", "/v1/mappings/m/aliases/prod", ADMIN)[0] == 200


def test_the_description_is_for_everybody_who_may_call(server, guarded):
    status, headers, description = ask_guarded(guarded, "GET", "/openapi.json")
    assert (status, description["info"]["title"]) == (200, "phimap") and headers["etag"]
    assert description == ask(server, "GET", "/openapi.json?x=1")[2]
    assert ask(server, "POST", "/openapi.json", {})[0] == 405
    assert error(ask(server, "GET", "/openapi.json", None, {"Host": "evil.example"}))[:3] == (421, 3, "HTTP_HEADER_INVALID")
    assert error(ask(server, "GET", "/openapi.json", None, {"Sec-Fetch-Site": "cross-site"}))[2] == "SITE_FOREIGN"


def test_curl_gets_http2_over_tls(guarded):
    port = guarded.api_http.split(":")[1]
    got = subprocess.run(["curl", "-sS", "--cacert", guarded.certificate, "-H", f"authorization: Bearer {READER}",
                          "-w", "%{http_version}", "-o", "/dev/null", f"https://localhost:{port}/v1/mappings"],
                         check=True, capture_output=True, text=True).stdout
    assert got == "2"
