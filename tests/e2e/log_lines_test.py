"""Reads what a real server writes with --log_format=json, from its first line to its last. Each line must be an object whose fields have
the types of docs/operations/log.md; and a caller must find its call there by its own id and its own trace."""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc
import numpy as np
import phimapd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import log_table  # noqa: E402: it is in that folder

ARGUMENTS = phimapd.take_flags("phimapd", "phimap")

# The example of the standard.
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE_PARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
READER, ADMIN = "reader-token-0123456789abcdef", "admin-token-0123456789abcdef"
TOKENS = f"shop reader {READER}\nadmin {ADMIN}\n"
HEALTH = "/grpc.health.v1.Health/Check"
GET_MAPPING = "/phimap.v1.MappingService/GetMapping"
DELETE_MAPPING = "/phimap.v1.MappingService/DeleteMapping"
TRANSFORM = "/phimap.v1.TransformService/Transform"


def first_field(text):
    """The bytes of a message whose field 1 is this text."""
    return b"\x0a" + bytes([len(text)]) + text.encode()


class Server:
    """A server that writes JSON. Its lines of both streams are read as they come."""

    def __init__(self, folder, *flags):
        self.lines = []
        self._come = threading.Condition()
        self.process = subprocess.Popen(
            [ARGUMENTS.phimapd, f"--data_dir={folder}/data", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--log_format=json", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._readers = [threading.Thread(target=self._read, args=(stream,)) for stream in (self.process.stdout, self.process.stderr)]
        for reader in self._readers:
            reader.start()
        ready = self.await_line(lambda line: line.get("event") == "ready")
        self.grpc = grpc.insecure_channel(ready["grpc"])
        self.address = ready["grpc"]
        self.api_http = ready.get("api_http")

    def _read(self, stream):
        for line in stream:
            try:
                read = json.loads(line)
            except json.JSONDecodeError:
                read = line
            with self._come:
                self.lines.append(read)
                self._come.notify_all()

    def await_line(self, wanted):
        """Returns the first line for which `wanted` is true."""
        def found():
            return next((line for line in self.lines if isinstance(line, dict) and wanted(line)), None)
        with self._come:
            if not self._come.wait_for(lambda: found() is not None, timeout=60):
                raise AssertionError(f"the line did not come: {self.lines}")
            return found()

    def call(self, method, request=b"", token=None, **metadata):
        """Returns the code of the call, and the metadata of its end."""
        pairs = [(key.replace("_", "-"), value) for key, value in metadata.items()]
        if token is not None:
            pairs.append(("authorization", f"Bearer {token}"))
        stub = self.grpc.unary_unary(method)
        try:
            _, call = stub.with_call(request, metadata=pairs, timeout=60)
        except grpc.RpcError as error:
            call = error
        return call.code().name, dict(call.trailing_metadata())

    def http(self, verb, path, body=None, **headers):
        """Returns the status and the headers."""
        connection = http.client.HTTPConnection(self.api_http, timeout=60)
        sent = {"authorization": f"Bearer {READER}", "content-type": "application/json",
                **{key.replace("_", "-"): value for key, value in headers.items()}}
        connection.request(verb, path, body=body, headers=sent)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, answer.headers

    def stop(self):
        """Returns the exit code, once all lines have been read."""
        self.grpc.close()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        for reader in self._readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class LogLinesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *flags):
        server = Server(self.folder, *flags)
        self.addCleanup(lambda: server.process.poll() is None and server.process.kill())
        return server

    def line_of(self, server, request_id):
        """The line of the call with this id, which its caller has chosen."""
        return server.await_line(lambda line: line.get("request_id") == request_id)

    def assert_documented(self, lines):
        self.assertEqual([mistake for line in lines for mistake in log_table.mistakes(line)], [])

    def test_each_line_of_a_servers_life_is_as_documented(self):
        tokens = self.folder / "tokens"
        self.write_tokens(tokens, TOKENS)
        server = self.start("--log_level=debug", f"--token_file={tokens}", "--api_http=127.0.0.1:0", "--lame_duck_seconds=0")
        self.build(server)
        self.check_calls_of_grpc(server)
        self.check_calls_of_http(server)
        self.write_tokens(tokens, "nonsense\n")
        failed = server.await_line(lambda line: line["event"] == "tokens_not_loaded")
        self.assertIn("line 1", failed["error"])
        self.assertEqual(server.stop(), 0)
        self.assert_documented(server.lines)
        events = [line["event"] for line in server.lines]
        self.assertEqual(events[0], "starting")
        self.assertEqual(events[-1], "stopped")
        self.assertLessEqual({"store_open", "tokens_loaded", "ready", "build_done", "alias_set", "rpc", "http_refused", "draining"}, set(events))
        # What callers sent, and no name of theirs.
        self.assertNotIn("Smith", json.dumps(server.lines))
        self.assertNotIn(READER, json.dumps(server.lines))

    @staticmethod
    def write_tokens(path, text):
        partial = path.with_suffix(".part")
        partial.write_text(text)
        os.chmod(partial, 0o600)
        partial.rename(path)

    def build(self, server):
        rows = self.folder / "rows.npy"
        np.save(rows, np.random.default_rng(1).uniform(-1, 1, (200, 2)))
        for token, words in ((ADMIN, ["build", "small", f"--input={rows}", "--spec=f1(landmarks=5)", "--kernel=linear()"]),
                             (ADMIN, ["alias", "set", "small@prod", "1"]),
                             (READER, ["export", "small@prod", f"--output={self.folder}/artifact"])):
            environment = {**os.environ, "PHIMAP_TOKEN": token}
            subprocess.run([ARGUMENTS.phimap, f"--server={server.address}", *words], check=True, capture_output=True, env=environment)
        done = server.await_line(lambda line: line["event"] == "build_done")
        self.assertEqual((done["mapping"], done["rows"], done["version"], done["code"]), ("small", 200, 1, "OK"))
        self.assertNotIn("reason", done)
        self.assertNotIn("error", done)
        moved = server.await_line(lambda line: line["event"] == "alias_set")
        self.assertEqual(moved["version"], 1)
        self.assertNotIn("previous", moved)
        self.assertNotIn("caller", moved)  # the token has no name
        self.assertRegex(moved["request_id"], "^[0-9a-f]{16}$")
        taken = server.await_line(lambda line: line["event"] == "export_begun")
        self.assertEqual((taken["mapping"], taken["version"], taken["caller"]), ("small", 1, "shop"))

    def check_calls_of_grpc(self, server):
        code, trailers = server.call(HEALTH, x_request_id="health 1", traceparent=TRACE_PARENT)
        self.assertEqual((code, trailers["x-request-id"]), ("OK", "health 1"))
        line = self.line_of(server, "health 1")
        self.assertEqual((line["event"], line["level"], line["code"], line["trace_id"]), ("rpc", "DEBUG", "OK", TRACE_ID))
        self.assertGreater(line["seconds"], 0)
        for absent in ("reason", "field", "error", "caller", "mapping", "version"):
            self.assertNotIn(absent, line)

        code, trailers = server.call(GET_MAPPING, first_field("small"), x_request_id="no-token")
        self.assertEqual((code, trailers["x-request-id"]), ("UNAUTHENTICATED", "no-token"))
        line = self.line_of(server, "no-token")
        self.assertEqual((line["code"], line["reason"]), ("UNAUTHENTICATED", "TOKEN_MISSING"))
        self.assertIn("authorization", line["error"])
        self.assertNotIn("caller", line)
        self.assertNotIn("trace_id", line)

        code, _ = server.call(GET_MAPPING, first_field("unknown"), READER, x_request_id="unknown")
        line = self.line_of(server, "unknown")
        self.assertEqual((code, line["reason"], line["mapping"], line["caller"]), ("NOT_FOUND", "MAPPING_NOT_FOUND", "unknown", "shop"))
        self.assertIn("unknown", line["error"])
        self.assertNotIn("version", line)

        server.call(TRANSFORM, first_field("small@7"), READER, x_request_id="seventh")
        line = self.line_of(server, "seventh")
        self.assertEqual((line["mapping"], line["version"]), ("small", 7))
        server.call(TRANSFORM, first_field("small@prod"), READER, x_request_id="prod")
        line = self.line_of(server, "prod")
        self.assertEqual((line["mapping"], line["alias"]), ("small", "prod"))

        code, _ = server.call(DELETE_MAPPING, first_field("small"), READER, x_request_id="too low")
        line = self.line_of(server, "too low")
        self.assertEqual((code, line["reason"]), ("PERMISSION_DENIED", "ROLE_TOO_LOW"))
        self.assertIn("error", line)

        # What cannot be used counts as absent.
        for wrong in ("", "x" * 129):
            _, trailers = server.call(GET_MAPPING, first_field("nobody"), READER, x_request_id=wrong, traceparent=TRACE_PARENT.upper())
            self.assertRegex(trailers["x-request-id"], "^[0-9a-f]{16}$")
            self.assertNotIn("trace_id", self.line_of(server, trailers["x-request-id"]))

    def check_calls_of_http(self, server):
        status, headers = server.http("GET", "/v1/mappings/small", x_request_id="over http", traceparent=TRACE_PARENT)
        self.assertEqual((status, headers["x-request-id"]), (200, "over http"))
        self.assertEqual(self.line_of(server, "over http")["trace_id"], TRACE_ID)

        status, headers = server.http("GET", "/v1/mappings/absent")
        self.assertEqual(status, 404)
        self.assertEqual(headers["x-request-id"], headers["phimap-request-id"])
        self.assertEqual(self.line_of(server, headers["x-request-id"])["mapping"], "absent")

        status, headers = server.http("POST", "/v1/mappings/small@1:transform", '{"rows": [["Smith", 1]]}', x_request_id="smith")
        self.assertEqual((status, headers["x-request-id"]), (400, "smith"))
        self.assertEqual(self.line_of(server, "smith")["code"], "INVALID_ARGUMENT")

        status, headers = server.http("GET", "/v1/Smith", x_request_id="no call", traceparent=TRACE_PARENT)
        self.assertEqual((status, headers["x-request-id"]), (404, "no call"))
        line = self.line_of(server, "no call")
        self.assertEqual((line["event"], line["status"], line["trace_id"]), ("http_refused", 404, TRACE_ID))
        self.assertIn('nothing is served at "…"', line["error"])

    def test_one_in_so_many_successful_calls_is_written_and_each_that_fails(self):
        server = self.start("--log_calls_one_in=10", "--lame_duck_seconds=0")
        for number in range(30):
            self.assertEqual(server.call(HEALTH)[0], "OK")
            self.assertEqual(server.call(GET_MAPPING, first_field("nobody"), x_request_id=f"failed {number}")[0], "NOT_FOUND")
        self.assertEqual(server.stop(), 0)
        self.assert_documented(server.lines)
        samples = [line for line in server.lines if line["event"] == "rpc_sample"]
        self.assertEqual([(line["level"], line["method"], line["code"]) for line in samples], [("INFO", HEALTH[1:], "OK")] * 3)
        self.assertEqual([line["request_id"] for line in server.lines if line["event"] == "rpc"], [f"failed {number}" for number in range(30)])

    def run_refused(self, *flags):
        """Returns the exit code and the lines of a server that does not start."""
        ended = subprocess.run([ARGUMENTS.phimapd, *flags], capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.stdout, "")
        return ended.returncode, [json.loads(line) for line in ended.stderr.splitlines()]

    def test_refused_flags_are_a_line_of_json_where_that_is_asked_for(self):
        store = f"--data_dir={self.folder}/data"
        file = pathlib.Path(self.folder) / "phimapd.toml"
        file.write_text('max_bulids = 3\nlog_format = "json"\n', encoding="utf-8")
        for flags, field in ((["--log_format=json", store, "--no_such_flag"], None),
                             ([store, f"--config={file}"], f"{file}:1"),
                             ([store, "--log_format", "json", "--max_builds=many"], None),
                             (["--log_format=json", store, "--max_builds="], "--max_builds"),
                             (["--log_level=off", store, "--log_format=json", "--proxy=foo"], "--proxy")):
            with self.subTest(flags):
                code, lines = self.run_refused(*flags)
                self.assertEqual(code, 2)
                self.assert_documented(lines)
                [line] = lines
                self.assertEqual((line["event"], line["exit_code"]), ("start_failed", 2))
                self.assertEqual(line.get("field"), field)
                self.assertFalse((self.folder / "data").exists())
        ended = subprocess.run([ARGUMENTS.phimapd, store, "--no_such_flag"], capture_output=True, text=True, timeout=60)
        self.assertTrue(ended.stderr.startswith("phimapd: "), ended.stderr)

    def test_a_failed_start_ends_with_a_line_of_json_at_any_level(self):
        (self.folder / "data").write_text("no folder")
        for level, events in (("off", ["start_failed"]), ("info", ["starting", "start_failed"])):
            with self.subTest(level):
                code, lines = self.run_refused(f"--data_dir={self.folder}/data", "--listen=127.0.0.1:0", "--http=none",
                                               "--log_format=json", f"--log_level={level}")
                self.assertEqual(code, 1)
                self.assert_documented(lines)
                self.assertEqual([line["event"] for line in lines], events)
                self.assertIn("cannot open the store: ", lines[-1]["error"])
                self.assertEqual(lines[-1]["exit_code"], 1)


if __name__ == "__main__":
    unittest.main()
