"""Tests rows as files over HTTP: builds, trainings and evaluations by curl, and answers as CSV and .npy.

What is made must be what the command line makes of the same file, to the last bit."""
from __future__ import annotations

import csv
import hashlib
import http.client
import io
import json
import os
import socket
import subprocess
import urllib.parse

import numpy as np
import pytest

import phimap
from phimapd import Phimapd

CSV = {"Content-Type": "text/csv"}
NPY = {"Content-Type": "application/x-npy"}
JSON = {"Content-Type": "application/json"}
COLUMNS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(5).normal(size=(5000, 3))


@pytest.fixture(scope="module")
def files(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("files")
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows.tolist())
    with open(folder / "labeled.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, "class", "id"])
        for number, row in enumerate(rows.tolist()):
            writer.writerow([*row, "up, or so" if row[0] > 0 else 'down"', number])
    np.save(folder / "rows.npy", rows)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Phimapd(tmp_path_factory.mktemp("store"), "--api_http=127.0.0.1:0") as one:
        yield one


def curl(server, path, *arguments):
    """Returns the status and the body that curl gets."""
    done = subprocess.run(["curl", "-sS", "-w", "\n%{http_code}", *arguments, f"http://{server.api_http}{path}"],
                          check=True, capture_output=True, timeout=120)
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def send(server, path, body, headers, file):
    return curl(server, path, "--data-binary", f"@{file}" if file else body,
                *[word for name, value in headers.items() for word in ("-H", f"{name}: {value}")])


def upload(server, path, file, headers=CSV):
    return send(server, path, None, headers, file)


def post(server, path, body, headers=CSV):
    """Returns the status, the headers and the body, sent by Python's client, with a list in chunks."""
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    connection.request("POST", path, iter(body) if isinstance(body, list) else body, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, text


def wrong(answer):
    """Returns the status, the field and the message of an error."""
    said = json.loads(answer[-1])
    details = {detail["@type"].rsplit(".", 1)[1]: detail for detail in said["details"]}
    violations = details.get("BadRequest", {}).get("fieldViolations", [])
    return answer[0], violations[0]["field"] if violations else None, said["message"]


def test_a_build_is_one_curl_and_what_the_command_line_makes(server, files):
    status, body = upload(server, "/v1/mappings/one:build?spec=f2(landmarks%3D40,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)&seed=7",
                          files / "rows.csv")
    assert status == 200, body
    version = json.loads(body)
    assert version["ref"]["name"] == "one" and version["column_names"] == COLUMNS
    subprocess.run([os.environ["PHIMAP"], "build", "two", files / "rows.csv", "--spec=f2(landmarks=40,held_out_rows=60)",
                    "--kernel=rbf(gamma=0.3)", "--seed=7", f"--server={server.address}"], check=True, capture_output=True)
    assert version["ref"]["digest"] == digest_of(server, "two")


def digest_of(server, name, version=1):
    return json.loads(curl(server, f"/v1/mappings/{name}/versions/{version}")[1])["ref"]["digest"]


@pytest.mark.parametrize("size", [1, 1000, 70000])
def test_pieces_in_which_a_body_comes_change_nothing(server, files, size):
    text = (files / "rows.csv").read_bytes()[: 3000 if size == 1 else None]
    text = text[: text.rindex(b"\n") + 1]
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    path = "/v1/mappings/{}:build?spec=f2(landmarks%3D9,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)&seed=7"
    whole = post(server, path.format(f"whole{size}"), text)
    pieces = post(server, path.format(f"pieces{size}"), chunks)
    assert (whole[0], pieces[0]) == (200, 200), (whole[2], pieces[2])
    assert json.loads(whole[2])["ref"]["digest"] == json.loads(pieces[2])["ref"]["digest"]


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_blank_lines_end_the_rows_however_they_come(server, chunks):
    """A row behind a blank line is refused with its line, also if the blank line comes alone."""
    pieces = [b"a,b\n1,2\n3,4\n5,7\n", b"\n", b"\n9,9\n1,8\n"]
    body = {1: [b"".join(pieces)], 2: [pieces[0] + pieces[1], pieces[2]], 3: pieces}[chunks]
    status, field, words = wrong(post_slowly(server, BUILD, body))
    assert (status, field) == (400, "rows") and "line 7: a row follows a blank line" in words


def post_slowly(server, path, pieces):
    """Sends each piece as a chunk when the server has had time to read those before."""
    host, port = server.api_http.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: text/csv\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for piece in pieces:
            curl(server, "/v1/capabilities")  # answered after what came before was read
            connection.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read()


def test_npy_and_csv_make_the_same_but_for_names(server, files, rows):
    path = "/v1/mappings/npy:build?spec=f2(landmarks%3D40,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)&seed=7"
    status, body = upload(server, path, files / "rows.npy", NPY)
    assert status == 200, body
    with phimap.Client(server.address) as client:
        features = client.transform("npy", rows[:50])
        client.build("grpc", rows, spec="f2(landmarks=40,held_out_rows=60)", kernel="rbf(gamma=0.3)", seed=7)
        np.testing.assert_array_equal(client.transform("grpc", rows[:50]), features)
    assert digest_of(server, "grpc") == digest_of(server, "npy")


def test_events_are_lines_of_json(server, files):
    status, body = upload(server, "/v1/mappings/events:build?spec=f2(landmarks%3D20,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)",
                          files / "rows.csv", {**CSV, "Accept": "application/x-ndjson"})
    events = [json.loads(line) for line in body.splitlines()]
    assert status == 200 and "accepted" in events[0] and "version" in events[-1]
    assert all(set(event) <= {"accepted", "progress", "version"} for event in events)
    build = events[0]["accepted"]["build_id"]
    job = json.loads(curl(server, f"/v1/mappings/events/builds/{build}")[1])
    assert job["rows_received"] == "5000"


def test_an_error_after_the_first_event_is_the_last_line(server, files):
    text = (files / "rows.csv").read_text() + "1,2,three\n"
    status, _, body = post(server, "/v1/mappings/late:build?spec=f2(landmarks%3D20,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)",
                           text, {**CSV, "Accept": "application/x-ndjson"})
    last = json.loads(body.splitlines()[-1])
    assert status == 200 and "line 5002" in last["error"]["message"]
    assert curl(server, "/v1/mappings/late")[0] == 404


def test_training_predictions_and_evaluation(server, files, rows):
    path = ("/v1/mappings/head:train?build.spec=f2(landmarks%3D40,held_out_rows%3D60)&build.kernel=rbf(gamma%3D0.3)&label=class&exclude=id"
            "&learner=ridge()&seed=3")
    status, body = upload(server, path, files / "labeled.csv")
    assert status == 200, body
    assert json.loads(body)["head"]
    status, body = upload(server, "/v1/mappings/head:evaluate?label=class&exclude=id&held_out=0.3", files / "labeled.csv")
    evaluation = json.loads(body)
    assert status == 200 and evaluation["rows"] == "5000" and evaluation["error"] < 0.1
    few = "\n".join([",".join(COLUMNS), *[",".join(map(repr, row)) for row in rows[:20].tolist()]])
    status, headers, text = post(server, "/v1/mappings/head:predict?probabilities=true&confidence=0.9", few,
                                 {**CSV, "Accept": "text/csv"})
    assert status == 200 and headers["content-type"] == "text/csv; charset=utf-8", text
    answers = list(csv.DictReader(io.StringIO(text.decode())))
    with phimap.Client(server.address) as client:
        expected = client.predict("head", rows[:20], probabilities=True, confidence=0.9)
    assert [answer["predicted"] for answer in answers] == list(expected.labels)
    np.testing.assert_array_equal([float(answer['probability_down"']) for answer in answers],
                                  expected.probabilities[:, list(expected.classes).index('down"')])
    # A second training on the version that exists.
    status, body = upload(server, "/v1/mappings/head@1:train?label=class&exclude=id&learner=linear_svm()", files / "labeled.csv")
    assert status == 200 and json.loads(body)["ref"]["number"] == "2", body


@pytest.mark.parametrize("accept, expected", [
    ("application/json;q=0.05", "application/json"),
    ("application/*; q=0.001", "application/json"),
    ("TEXT/*", "text/csv"),
    ("text/*;q=0.1, application/json;q=0.2", "application/json"),
    ("text/csv;q=0.1, */*;Q=0", "text/csv"),
    ("text/html, application/x-npy", "application/x-npy"),
    ("text/html, application/json;q=0", None),
])
def test_the_type_that_weighs_most_is_sent(server, files, rows, accept, expected):
    upload(server, "/v1/mappings/weights:build?spec=f2(landmarks=9,held_out_rows=60)&kernel=rbf(gamma=0.3)", files / "rows.csv")
    body = json.dumps({"rows": rows[:2].tolist()})
    status, headers, _ = post(server, "/v1/mappings/weights@1:transform", body, {**JSON, "Accept": accept})
    assert (status, headers["content-type"].split(";")[0]) == ((200, expected) if expected else (406, "application/json"))


@pytest.mark.parametrize("kind", ["csv", "npy", "json"])
@pytest.mark.parametrize("accept", ["text/csv", "application/x-npy", "application/json"])
def test_rows_go_and_come_in_any_form_with_the_same_bits(server, files, rows, kind, accept):
    name = "forms"
    if curl(server, f"/v1/mappings/{name}")[0] == 404:
        upload(server, f"/v1/mappings/{name}:build?spec=f2(landmarks%3D40,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)", files / "rows.csv")
    few = rows[:9]
    buffer = io.BytesIO()
    np.save(buffer, few)
    bodies = {"csv": "\n".join([",".join(COLUMNS), *[",".join(map(repr, row)) for row in few.tolist()]]),
              "npy": buffer.getvalue(), "json": json.dumps({"rows": few.tolist()})}
    types = {"csv": "text/csv", "npy": "application/x-npy", "json": "application/json"}
    status, headers, text = post(server, f"/v1/mappings/{name}:transform", bodies[kind],
                                 {"Content-Type": types[kind], "Accept": accept})
    assert status == 200 and headers["content-type"].split(";")[0] == accept, text
    if accept == "text/csv":
        table = list(csv.reader(io.StringIO(text.decode())))
        assert table[0] == [f"f{i}" for i in range(40)]
        features = np.array(table[1:], dtype=np.float64).astype(np.float32)
    elif accept == "application/x-npy":
        features = np.load(io.BytesIO(text))
    else:
        features = np.array(json.loads(text)["features"]).astype(np.float32)
    with phimap.Client(server.address) as client:
        np.testing.assert_array_equal(features, client.transform(name, few))


def test_rows_of_json_build_train_and_evaluate(server, rows):
    some = rows[:400]
    labels = ["up" if row[0] > 0 else "down" for row in some]
    spec = "spec=f2(landmarks%3D20,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)&seed=7"
    status, _, body = post(server, f"/v1/mappings/of-json:build?{spec}", json.dumps({"rows": some.tolist()}), JSON)
    assert status == 200, body
    buffer = io.BytesIO()
    np.save(buffer, some)
    status, _, other = post(server, f"/v1/mappings/of-npy:build?{spec}", buffer.getvalue(), NPY)
    assert json.loads(body)["ref"]["digest"] == json.loads(other)["ref"]["digest"]
    labeled = json.dumps({"labels": labels, "rows": some.tolist(), "weights": [1.0] * len(some)})
    status, _, body = post(server, "/v1/mappings/of-json@1:train?learner=ridge()&seed=3", labeled, JSON)
    assert status == 200 and json.loads(body)["head"], body
    with phimap.Client(server.address) as client:
        trained = client.train("of-npy@1", some, labels, learner="ridge()", seed=3, weights=[1.0] * len(some))
    assert json.loads(body)["ref"]["digest"] == trained.ref.digest
    labeled = json.dumps({"labels": labels, "rows": some.tolist()})
    status, _, body = post(server, "/v1/mappings/of-json:evaluate?held_out=0.3", labeled, JSON)
    assert status == 200 and json.loads(body)["rows"] == "400", body
    wrongly = json.dumps({"labels": labels, "rows": some.tolist(), "weights": [1.0] * len(some)})
    assert wrong(post(server, "/v1/mappings/of-json:evaluate", wrongly, JSON))[:2] == (400, "weights")


@pytest.mark.parametrize("chunks", [False, True])
def test_rows_of_json_have_a_limit(server, chunks):
    text = '{"rows": [' + "[1]," * 300_000 + "[1]]}"
    status, field, words = wrong(post(server, BUILD, [text.encode()] if chunks else text, JSON))
    assert (status, field) == (413, "body") and "at most 1048576 bytes of JSON" in words


def test_labels_of_json_are_no_more_than_rows_may_be(server):
    path = "/v1/mappings/never:train?build.spec=f2()&build.kernel=rbf()&learner=ridge()"
    status, field, words = wrong(post(server, path, '{"rows": [[1]], "labels": [' + "0," * 70_000 + "0]}", JSON))
    assert (status, field) == (400, "labels") and "at most 65536" in words


def test_labels_of_json_may_be_numbers(server, rows):
    some = rows[:400]
    spec = "build.spec=f2(landmarks%3D20,held_out_rows%3D60)&build.kernel=rbf(gamma%3D0.3)&learner=ridge()&seed=7"
    digests = []
    for name, labels in (("numbers", [int(row[0] > 0) for row in some]), ("words", [str(int(row[0] > 0)) for row in some])):
        body = json.dumps({"rows": some.tolist(), "labels": labels})
        status, _, answer = post(server, f"/v1/mappings/{name}:train?{spec}", body, JSON)
        assert status == 200, answer
        digests.append(json.loads(answer)["ref"]["digest"])
    assert digests[0] == digests[1]


def test_texts_that_are_no_utf8_are_refused_with_their_line(server, rows):
    assert post(server, "/v1/mappings/latin:build?spec=f2(landmarks=9,held_out_rows=60)&kernel=rbf(gamma=0.3)",
                "a,b\n" + "".join(f"{a},{b}\n" for a, b, _ in rows[:300]))[0] == 200
    lines = b"".join(b"%f,%f,%s\n" % (a, b, b"\xf6" if i == 7 else b"b" if a > 0 else b"c") for i, (a, b, _) in enumerate(rows[:300]))
    for call in ("evaluate?learner=ridge()&label=y", "train?learner=ridge()&label=y"):
        status, field, words = wrong(post(server, f"/v1/mappings/latin@1:{call}", b"a,b,y\n" + lines))
        assert (status, field) == (400, "rows") and 'line 9: column 3 ("y"): expected UTF-8' in words
    assert "the name of column 2 is not UTF-8" in wrong(post(server, BUILD, b"a,\xf6\n1,2\n"))[2]
    assert "UTF-8" in wrong(post(server, BUILD + "&seed=%f6", "a,b\n1,2\n"))[2]


def test_a_build_that_breaks_off_can_be_asked_for(server, rows):
    path = "/v1/mappings/slow:build?spec=f2(landmarks=300,held_out_rows=60)&kernel=rbf(gamma=0.3)"
    text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())
    status, headers, _ = post(server, path, text, {**CSV, "Request-Timeout": "0.001"})
    assert status == 504 and len(headers["phimap-build-id"]) == 36
    status, headers, body = post(server, path, text)
    assert status == 200
    job = json.loads(curl(server, f"/v1/mappings/slow/builds/{headers['phimap-build-id']}")[1])
    assert job["version"]["digest"] == json.loads(body)["ref"]["digest"], job


def test_texts_build_over_http(server):
    words = [f"{a}{b}tion" for a in "abcdefghij" for b in ("na", "le", "mo", "re", "si", "tu", "ka", "po")]
    spec = "spec=f2(landmarks%3D10,held_out_rows%3D30)&kernel=spectrum(n%3D2)"
    status, _, body = post(server, f"/v1/mappings/texts:build?{spec}", json.dumps({"rows": words}), JSON)
    assert status == 200, body
    status, _, body = post(server, "/v1/mappings/texts:transform", json.dumps({"rows": words[:3]}), JSON)
    assert status == 200 and np.array(json.loads(body)["features"]).shape == (3, 10), body


def test_artifacts_are_downloaded_and_uploaded(server, files, tmp_path):
    upload(server, "/v1/mappings/source:build?spec=f2(landmarks%3D40,held_out_rows%3D60)&kernel=rbf(gamma%3D0.3)", files / "rows.csv")
    digest = digest_of(server, "source")
    file = tmp_path / "source.phimap"
    status, _ = curl(server, "/v1/mappings/source/versions/1/artifact", "-o", str(file))
    assert status == 200 and hashlib.sha256(file.read_bytes()).hexdigest() == digest
    content = {"Content-Type": "application/octet-stream"}
    status, body = upload(server, f"/v1/mappings/copy:import?digest={digest}", file, content)
    assert status == 200 and json.loads(body)["ref"]["digest"] == digest, body
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    assert post(server, f"/v1/mappings/bad:import?digest={digest}", bytes(damaged), content)[0] in (400, 500)
    assert post(server, "/v1/mappings/bad:import", bytes(damaged), content)[0] == 400
    assert curl(server, "/v1/mappings/bad")[0] == 404


BUILD = "/v1/mappings/never:build?spec=f2(landmarks=3)&kernel=rbf(gamma=0.3)"


@pytest.mark.parametrize("path, body, headers, status, field, words", [
    (BUILD, "a,b\n1,2\n3,four\n", CSV, 400, "rows", "line 3: column 2 (\"b\"): expected a number, got 'four'"),
    (BUILD, "a,b\n1,2\n3\n", CSV, 400, "rows", "line 3: expected 2 cells as in the header, got 1"),
    (BUILD, "a,b\n1,2\n3,nan\n", CSV, 400, "rows", "expected a finite number"),
    (BUILD, "a,b\n1,2\n\n3,4\n", CSV, 400, "rows", "a row follows a blank line"),
    (BUILD, "1,2\n3,4\n", CSV, 400, "rows", "expected a header"),
    (BUILD, "", CSV, 400, "rows", "expected a header"),
    (BUILD, "a,b\n", CSV, 400, None, ""),
    (BUILD, 'a,b\n1,"2\n', CSV, 400, "rows", "never closed"),
    (BUILD, "a,a\n1,2\n", CSV, 400, None, "a"),
    (BUILD + "&exclude=z", "a,b\n1,2\n", CSV, 400, "exclude", 'got "z"'),
    (BUILD + "&columns=a,a", "a,b\n1,2\n", CSV, 400, "columns", "twice"),
    (BUILD + "&colour=red", "a,b\n1,2\n", CSV, 400, "colour", "this call has no field \"colour\"; BuildSpec has name, "),
    (BUILD + "&seed=-1", "a,b\n1,2\n", CSV, 400, "seed", "an integer from 0"),
    (BUILD + "&weights=a", "a,b\n1,2\n", CSV, 400, "weights", "Build has no weights; exclude=a"),
    (BUILD + "&seed=1&seed=2", "a,b\n1,2\n", CSV, 400, "seed", "got it twice"),
    (BUILD, "a;b\n1;2\n", CSV, 400, "rows", "add delimiter=; to the query"),
    (BUILD, "a,b\n1,x\n", CSV, 400, "rows", "add label=b or exclude=b to the query"),
    (BUILD, "a,b\n1,2\n", {**CSV, "Content-Encoding": "gzip"}, 415, "content-encoding", "not compressed"),
    (BUILD + "&delimiter=ab", "a,b\n1,2\n", CSV, 400, "delimiter", "one character"),
    (BUILD, "{}", JSON, 400, "rows", "expected rows"),
    (BUILD, "", JSON, 400, "rows", "expected rows"),
    (BUILD, "[1]", JSON, 400, "body", "expected a JSON object, got an array"),
    (BUILD, '{"rows": [[1, 2], [3]]}', JSON, 400, "rows", "row 1: expected 2 columns"),
    (BUILD, '{"rows": [[1]], "labels": ["a"]}', JSON, 400, "labels", "Build has no labels"),
    (BUILD, '{"rows": [[1]], "spec": {}}', JSON, 400, "body", "not a TrainingExamples"),
    (BUILD.replace(":build?", ":build?label=class&"), '{"rows": [[1]]}', JSON, 400, "query", "no columns to name"),
    (BUILD, "a,b\n1,2\n", {"Content-Type": "text/plain"}, 415, "content-type", "text/csv"),
    (BUILD, "a,b\n1,2\n", {**CSV, "Accept": "text/html"}, 406, "accept", "application/x-ndjson"),
    (BUILD, b"\x93NUMPY\x01\x00", NPY, 400, "rows", "header is cut off"),
    (BUILD, b"not an array at all", NPY, 400, "rows", "not a .npy file"),
    (BUILD + "&label=a", b"\x93NUMPY\x01\x00", NPY, 400, "query", "no names of columns"),
    ("/v1/mappings/never:train?label=y&learner=ridge()", "a,y\n1,2\n", CSV, 404, None, "never"),
    ("/v1/mappings/never:import", "x", CSV, 415, "content-type", "application/octet-stream"),
    ("/v1/mappings/never:import", "x", {"Content-Type": "application/octet-stream"}, 400, None, ""),
])
def test_wrong_bodies_are_refused_with_their_place(server, path, body, headers, status, field, words):
    answer = post(server, path, body, headers)
    assert wrong(answer)[:2] == (status, field) if field else answer[0] == status, answer[-1]
    assert words in wrong(answer)[2]
    assert curl(server, "/v1/mappings/never")[0] == 404


def array(rows, order="C", dtype=np.float64):
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(rows, dtype=dtype, order=order))
    return buffer.getvalue()


@pytest.mark.parametrize("body, words", [
    (array(np.eye(4))[:-3], "it ends within one"),
    (array(np.eye(4))[:-32], "but it ends after 3"),
    (array(np.eye(4)) + b"12345678" * 4, "but more bytes follow"),
    (array(np.eye(4), order="F"), "ascontiguousarray"),
    (array([[2**53 + 1]], dtype=np.int64), "cannot be represented exactly"),
    (array(np.full((4, 4), np.inf)), "finite"),
])
def test_wrong_arrays_are_refused(server, body, words):
    answer = post(server, BUILD, body, NPY)
    assert answer[0] == 400 and words in wrong(answer)[2], answer[-1]


def test_bytes_of_an_array_that_are_line_ends_are_values(server):
    rows = np.full((300, 2), 10, dtype=np.uint8)
    rows[::3, 0] = 13
    body = array(rows, dtype=np.uint8)
    path = "/v1/mappings/{}:build?spec=f2(landmarks=2)&kernel=rbf(gamma=0.3)"
    whole = post(server, path.format("line-ends"), body, NPY)
    pieces = post(server, path.format("line-ends"), [body[:200], body[200:450], body[450:]], NPY)
    assert (whole[0], pieces[0]) == (200, 200), (whole[2], pieces[2])
    assert json.loads(pieces[2])["ref"]["digest"] == json.loads(whole[2])["ref"]["digest"]


def test_a_query_is_written_as_libraries_write_it(server):
    query = urllib.parse.urlencode({"spec": "f2(landmarks=3, policy=uniform)", "kernel": "rbf(gamma=0.3) + linear()",
                                    "exclude": "my id"})
    assert "+" in query
    status, _, body = post(server, f"/v1/mappings/written:build?{query}", "a,my id\n1,2\n3,4\n5,6\n")
    assert status == 200 and json.loads(body)["column_names"] == ["a"], body


def test_large_files_are_read_by_an_idle_server(server, rows):
    upload_path = "/v1/mappings/large:build?spec=f2(landmarks=3,held_out_rows=60)&kernel=rbf(gamma=0.3)"
    assert post(server, upload_path, array(rows), NPY)[0] == 200
    wide = "a,b,c\n" + "0.123456789012345678901234567890123456789012345678901234567890,1.5,2\n" * 60000
    status, _, text = post(server, "/v1/mappings/large:transform", wide, {**CSV, "Accept": "application/x-npy"})
    assert status == 200, text[:500]
    assert np.load(io.BytesIO(text)).shape == (60000, 3)


def test_no_names_of_classes_in_an_array_and_no_body_after_head(server, files):
    few = "a,b,c\n1,2,3\n"
    answer = post(server, "/v1/mappings/head@1:predict?label_names=true", few, {**CSV, "Accept": "application/x-npy"})
    assert wrong(answer)[:2] == (400, "label_names")
    for version in "--http1.1", "--http2-prior-knowledge":
        assert curl(server, "/openapi.json", version, "-I", "-o", "/dev/null")[0] == 200
        assert curl(server, "/v1/mappings", version, "-I", "-o", "/dev/null")[0] == 200
        assert curl(server, "/v1/mappings/head@1:predict", version, "-I", "-o", "/dev/null")[0] == 405


def test_what_is_too_large_for_ever_is_no_429(server):
    with socket.create_connection(tuple(server.api_http.split(":")), timeout=60) as connection:
        connection.sendall(f"POST /v1/mappings/m:transform HTTP/1.1\r\nHost: {server.api_http}\r\n"
                           "Content-Type: application/json\r\nContent-Length: 100000000\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_a_row_longer_than_a_mebibyte_is_refused(server):
    answer = post(server, BUILD, [b"a,b\n1,2\n", b"1" * (1 << 20), b"0" * (1 << 20), b",2\n"])
    assert answer[0] == 400 and "longer than" in wrong(answer)[2]


def test_wide_rows_come_in_pieces_of_one_row(server):
    wide = np.random.default_rng(6).normal(size=(12, 6000))
    text = "\n".join([",".join(f"c{i}" for i in range(6000)), *[",".join(map(repr, row)) for row in wide.tolist()]])
    status, _, body = post(server, "/v1/mappings/wide:build?spec=f2(landmarks%3D5,held_out_rows%3D60)&kernel=linear()", text)
    assert status == 200 and json.loads(body)["input_columns"] == 6000, body


def test_a_body_that_breaks_off_builds_nothing(server):
    with socket.create_connection(tuple(server.api_http.split(":")), timeout=60) as connection:
        connection.sendall(f"POST {BUILD} HTTP/1.1\r\nHost: {server.api_http}\r\nContent-Type: text/csv\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n8\r\na,b\n1,2\n\r\n".encode())
    assert curl(server, "/v1/mappings/never")[0] == 404



@pytest.fixture(scope="module")
def app_server(tmp_path_factory):
    with Phimapd(tmp_path_factory.mktemp("store"), "--api_http=127.0.0.1:0",
                 "--http_origins=https://app.example.com,http://localhost:8080") as one:
        yield one


def headers_of(server, method, path, headers):
    connection = http.client.HTTPConnection(*server.api_http.split(":"), timeout=60)
    connection.request(method, path, None, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def test_pages_of_listed_sites_may_call_and_read(app_server):
    foreign = {"Origin": "https://app.example.com", "Sec-Fetch-Site": "cross-site"}
    status, headers = headers_of(app_server, "OPTIONS", "/v1/mappings/m:transform",
                                 {**foreign, "Access-Control-Request-Method": "POST",
                                  "Access-Control-Request-Headers": "authorization,content-type"})
    assert status == 204 and headers["access-control-allow-origin"] == "https://app.example.com"
    assert {"authorization", "content-type"} <= set(headers["access-control-allow-headers"].split(", "))
    status, headers = headers_of(app_server, "GET", "/v1/mappings", foreign)
    assert status == 200 and headers["access-control-allow-origin"] == "https://app.example.com"
    assert headers["vary"] == "origin" and "access-control-allow-credentials" not in headers
    # An error is read as well.
    status, headers = headers_of(app_server, "GET", "/v1/mappings/none", foreign)
    assert status == 404 and headers["access-control-allow-origin"] == "https://app.example.com"


@pytest.mark.parametrize("origin", ["https://app.example.com.evil.example", "http://app.example.com", "null",
                                    "https://app.example.com:444", "http://localhost:8081"])
def test_pages_of_other_sites_may_not(app_server, origin):
    for method in "GET", "OPTIONS":
        status, headers = headers_of(app_server, method, "/v1/mappings",
                                     {"Origin": origin, "Access-Control-Request-Method": "POST"})
        assert status == 403 and "access-control-allow-origin" not in headers
