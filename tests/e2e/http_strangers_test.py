"""Tests what hostile clients can do at the door for HTTP (--api_http): strangers without a token, and a caller with one.
They take no more memory than at the door for gRPC (strangers_test, half_messages_test), give it back, and admitted
callers are served beside them.

    http_strangers_test.py --phimapd=… --phimap=…
"""

import contextlib
import json
import os
import pathlib
import socket
import ssl
import struct
import tempfile
import threading
import time
import unittest

import strangers_test
from phimapd import MIB, Phimapd, bench_result, take_flags
from strangers_test import CONNECTION_BYTES, P99_MS, REST

ADMITTED = "the-token-of-an-admitted-caller-0123456789"
HOSTILE = "the-token-of-a-hostile-caller-0123456789ab"
CONNECTIONS = 500
MEMORY = 64 * MIB
BASE = 64 * MIB  # memory of the process itself and of its connections
COLUMNS = 16

arguments = None


def head(path="/v1/mappings", verb="GET", token=None, **fields):
    """The head of a request, up to and without its last line."""
    lines = [f"{verb} {path} HTTP/1.1", "Host: a"]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode() + b"\r\n"


def post(action, token, content_type="application/json", **fields):
    return head(f"/v1/mappings/{action}", "POST", token, content_type=content_type, **fields) + b"\r\n"


class Stranger:
    """A connection that sends what it is told to, for as long as the server takes it."""

    def __init__(self, server, index=0):
        self.socket = socket.socket()
        self.socket.bind((f"127.0.0.{1 + index % 64}", 0))
        self.socket.settimeout(5)
        host, port = server.api_http.split(":")
        self.socket.connect((host, int(port)))
        if server.certificate is not None:
            self.socket = ssl.create_default_context(cafile=server.certificate).wrap_socket(self.socket, server_hostname=host)
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data, patience=5.0):
        """Returns whether all of it was taken: false if the server has closed, or took no byte for `patience` seconds."""
        self.socket.settimeout(patience)
        view = memoryview(data)
        try:
            while view:
                size = self.socket.send(view)
                self.sent += size
                view = view[size:]
        except OSError:
            return False
        return True

    def read(self, seconds=20.0):
        """What the server answers until it closes or the answer is complete, at most for `seconds`."""
        answer = b""
        until = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            while time.monotonic() < until:
                self.socket.settimeout(max(0.01, until - time.monotonic()))
                part = self.socket.recv(1 << 16)
                if not part:
                    break
                answer += part
                at = answer.find(b"\r\n\r\n")
                length = answer.lower().find(b"content-length: ", 0, max(at, 0))
                if length >= 0 and len(answer) >= at + 4 + int(answer[length + 16:].split(b"\r\n")[0]):
                    break
        return answer

    def is_open(self):
        self.socket.setblocking(False)
        try:
            while part := self.socket.recv(1 << 16):
                pass
            return bool(part)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False


class Crowd(strangers_test.Crowd):
    """Connections that make refused calls over HTTP/1.1."""

    def __init__(self, server, connections, bytes_per_second):
        super().__init__(server.api_http, connections, 1, bytes_per_second, reads=True)

    def step(self, i, *_):
        """Sends the next calls of a connection. Returns whether it could."""
        try:
            if self.sockets[i] is None:
                self.sockets[i] = socket.create_connection((self.host, self.port), timeout=1)
                self.sockets[i].setblocking(False)
                self.connected += 1
            with contextlib.suppress(BlockingIOError):
                while self.sockets[i].recv(1 << 16):
                    pass
            self.sent += self.sockets[i].send(50 * (head() + b"\r\n"))
            return True
        except BlockingIOError:
            return False
        except OSError:
            if self.sockets[i] is not None:
                self.sockets[i].close()
            self.sockets[i] = None
            return False


class HttpStrangersTest(unittest.TestCase):
    def serve(self, *flags):
        tokens = pathlib.Path(self.enter(tempfile.TemporaryDirectory())) / "tokens"
        tokens.write_text(f"admin {ADMITTED}\nbuilder {HOSTILE}\n")
        tokens.chmod(0o600)
        os.environ["PHIMAP_TOKEN"] = ADMITTED
        self.addCleanup(os.environ.pop, "PHIMAP_TOKEN", None)
        server = self.enter(Phimapd(arguments, f"--token_file={tokens}", "--api_http=127.0.0.1:0", *flags))
        server.build("one", "f1(landmarks=64)", columns=COLUMNS)
        return server

    def enter(self, context):
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def until(self, done, seconds=30):
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(0.01)

    def transforms(self, server):
        """Whether an admitted caller's rows are mapped over HTTP."""
        with Stranger(server) as one:
            body = json.dumps({"rows": [[0.5] * COLUMNS]}).encode()
            one.send(post("one:transform", ADMITTED, content_length=len(body)) + body)
            return one.read().startswith(b"HTTP/1.1 200 ")

    def test_memory_of_many_connections_is_bounded_and_given_back(self):
        """From many addresses, so that no host makes so many faults that it is disconnected at once."""
        kinds = {
            "silent": b"",
            "half of a head": head(x="a" * 15_000)[:-2],
            "a head of 79 KiB": head(x="a" * 79_000)[:-2],
            "many short fields": head(**{f"x{i}": "1" for i in range(7_000)})[:-2],
            "refused calls": 500 * (head() + b"\r\n"),
            "calls of wrong paths": 500 * (head("/v1/" + "a/" * 400) + b"\r\n"),
            "a body that is refused": post("one:transform", None, content_length=60 * MIB) + bytes(MIB),
            "a stream that is refused": post("new:build", None, "text/csv", transfer_encoding="chunked") + 1000 * b"1\r\na\r\n",
            "an upgrade": head(connection="Upgrade", upgrade="h2c") + b"\r\n",
            "half of a chunk's head": post("new:build", None, "text/csv", transfer_encoding="chunked") + b"0" * 60_000,
        }
        server = self.serve(f"--max_connections={CONNECTIONS + 8}", f"--max_connections_per_host={CONNECTIONS + 8}")
        server.phimap("bench", "one", "--seconds=0.1", "--warmup=0")
        self.assertTrue(self.transforms(server))
        for kind, data in kinds.items():
            server.start_measuring()
            sent = 0
            with contextlib.ExitStack() as stack:
                for i in range(CONNECTIONS):
                    one = stack.enter_context(Stranger(server, i))
                    one.send(data, patience=0.02)
                    sent += one.sent
                self.assertTrue(self.transforms(server), kind)
                growth = server.growth()
            self.until(lambda: server.sockets() < 20)
            self.assertLess(server.sockets(), 20, kind)
            server.phimap("list")
            self.until(lambda: server.status_bytes("VmRSS") - server.before < REST)
            kept = server.status_bytes("VmRSS") - server.before
            print(f"{CONNECTIONS} connections, {kind}: +{growth / MIB:.1f} MiB, +{kept / MIB:.1f} MiB when they had closed; "
                  f"{sent / MIB:.1f} MiB sent", flush=True)
            self.assertLess(growth, CONNECTIONS * CONNECTION_BYTES + REST, kind)
            self.assertLess(kept, REST, kind)

    def test_an_admitted_caller_is_served_beside_a_crowd(self):
        server = self.serve()
        for _ in range(3):
            with Crowd(server, 64, 2 * MIB) as crowd:
                result = bench_result(server.start_bench("one", 1))
            p99 = result["latency_us"]["p99"] / 1000 if result["answered"] else float("inf")
            print(f"64 connections, 2 MiB/s: p50 {result['latency_us']['p50'] / 1000:.2f} ms, p99 {p99:.1f} ms; "
                  f"{crowd.sent / MIB:.1f} MiB on {crowd.connected} connections", flush=True)
            self.assertEqual(result["errors"], {})
            self.assertGreater(crowd.sent, 0)
            if p99 < P99_MS:
                return
        self.fail(f"an admitted caller's p99 is {p99:.1f} ms")

    def hold(self, server, begin, body, connections):
        """Opens calls, and sends of their bodies what the server and the sockets take. The calls lack their ends."""
        def send(one):
            if one.send(begin):
                one.send(body)
        strangers = [self.enter(Stranger(server, i)) for i in range(connections)]
        threads = [threading.Thread(target=send, args=(one,)) for one in strangers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(one.is_open() for one in strangers)

    def test_unfinished_bodies_take_a_bounded_part_and_others_are_served(self):
        size = 15 * MIB
        build = "new:build?spec=f2()&kernel=rbf()"
        chunk = b"%x\r\n" % (4 << 10) + b"1" * (4 << 10) + b"\r\n"
        kinds = {
            "messages that lack a byte": (post("one:transform", HOSTILE, content_length=size), bytes(size - 1)),
            "rows that lack their end": (post(build, HOSTILE, "text/csv", transfer_encoding="chunked"), 255 * chunk),
            "rows over the limit": (post(build, HOSTILE, "text/csv", transfer_encoding="chunked"), 2000 * chunk),
            "quotes without an end": (post(build, HOSTILE, "text/csv", content_length=size), b'a,"' + b"b\n" * (size // 2 - 2)),
        }
        for kind, (begin, body) in kinds.items():
            server = self.serve(f"--memory_bytes={MEMORY}", f"--build_memory_bytes={MEMORY}", f"--max_live_bytes={MEMORY}")
            waiting = self.hold(server, begin, body, 100)
            peak = server.status_bytes("VmHWM")
            print(f"100 bodies, {kind}: {waiting} wait, peak {peak / MIB:.0f} MiB", flush=True)
            self.assertLess(MEMORY, 100 * len(body))
            # What is over a limit is refused; of the rest, some is held.
            self.assertEqual(waiting > 0, not kind.startswith(("rows over", "quotes")), kind)
            self.assertLess(peak, MEMORY + BASE, kind)
            server.phimap("list")
            began = time.monotonic()
            self.until(lambda: self.transforms(server))
            self.assertLess(time.monotonic() - began, 30, kind)

    def test_a_later_head_has_as_much_time_as_the_first(self):
        server = self.serve()
        with Stranger(server) as idle, Stranger(server) as half:
            for one in (idle, half):
                one.send(head(token=ADMITTED) + b"\r\n")
                self.assertTrue(one.read().startswith(b"HTTP/1.1 200 "))
            half.send(head(token=ADMITTED))
            began = time.monotonic()
            self.until(lambda: not half.is_open())
            took = time.monotonic() - began
            self.assertGreater(took, 4)
            self.assertLess(took, 10)
            self.assertTrue(idle.is_open())

    def test_bombs_are_refused_in_time_and_memory(self):
        server = self.serve(f"--memory_bytes={MEMORY}")
        self.assertTrue(self.transforms(server))
        rows = b'{"rows": [[' + b",".join([b"0"] * COLUMNS) + b"]]"
        jsons = {
            "an array in an array": b"[" * (4 * MIB),
            "an object in an object": b'{"a":' * MIB,
            "rows in rows": b'{"rows": ' + b"[" * (4 * MIB),
            "one field many times": rows + b', "reference": "one"' * 200_000 + b"}",
            "many names": b"{" + b",".join(b'"a%d":1' % i for i in range(400_000)) + b"}",
            "empty rows": b'{"rows": [' + b"[]," * MIB + b"[]]}",
            "many texts": b'{"rows": [' + b'"",' * MIB + b'""]}',
            "a long number": b'{"rows": [[1' + b"0" * (4 * MIB) + b"]]}",
            "escapes": b'{"reference": "' + rb"\u0041" * (MIB // 2) + b'"}',
            "half a pair": rb'{"reference": "\ud800"}',
            "no UTF-8": b'{"reference": "\xff\xfe"}',
            "zeros": bytes(4 * MIB),
        }
        wide = b",".join(b"c%d" % i for i in range(100_000))
        files = {
            "100,000 columns": ("text/csv", wide + b"\n" + b",".join([b"1"] * 100_000) + b"\n"),
            "a row of a mebibyte": ("text/csv", b"a,b\n" + b"1" * (2 * MIB)),
            "an open quote": ("text/csv", b'a,b\n"' + b"1,2\n" * (MIB // 2)),
            "an array of 2^60 rows": ("application/x-npy", npy("(1152921504606846976, 16)")),
            "an array of 2^60 columns": ("application/x-npy", npy("(16, 1152921504606846976)")),
            "rows of no columns": ("application/x-npy", npy("(1152921504606846976, 0)")),
            "a compressed body": ("text/csv\r\nContent-Encoding: gzip", b"\x1f\x8b" + bytes(1000)),
        }
        build = "new:build?spec=f2(landmarks=4)&kernel=rbf(gamma=1)"
        requests = {name: post("one:transform", HOSTILE, content_length=len(body)) + body for name, body in jsons.items()}
        for action in ("one:transform", build):
            for name, (content_type, body) in files.items():
                requests[f"{name}, {action.split('?')[0]}"] = post(action, HOSTILE, content_type, content_length=len(body)) + body
        chunked = post(build, HOSTILE, "text/csv", transfer_encoding="chunked")
        requests |= {
            "a chunk of 2^64 bytes": chunked + b"ffffffffffffffff1\r\n" + b"a" * MIB,
            "a chunk's extension": chunked + b"1;" + b"a" * MIB + b"\r\na\r\n0\r\n\r\n",
            "trailers": chunked + b"0\r\n" + b"x: y\r\n" * 300_000 + b"\r\n",
            "chunks of one byte": chunked + 200_000 * b"1\r\na\r\n" + b"0\r\n\r\n",
            "a length over 4 GiB": post("one:transform", HOSTILE, content_length=1 << 40),
            "a query of 14 KiB": head("/v1/mappings?" + "a=1&" * 3_500, token=HOSTILE) + b"\r\n",
        }
        server.start_measuring()
        for name, data in requests.items():
            began = time.monotonic()
            with Stranger(server) as one:
                one.send(data)
                answer = one.read()
            took = time.monotonic() - began
            self.assertRegex(answer[:12], rb"^HTTP/1\.1 4\d\d$", name)
            self.assertLess(took, 10, name)
            self.assertTrue(self.transforms(server), name)
        growth = server.growth()
        print(f"{len(requests)} bombs: +{growth / MIB:.1f} MiB", flush=True)
        self.assertLess(growth, MEMORY + REST)

    def test_answers_that_nobody_reads_take_a_bounded_part(self):
        server = self.serve(f"--memory_bytes={MEMORY}")
        rows = 4000
        values = struct.pack(f"<{rows * COLUMNS}f", *([0.5] * (rows * COLUMNS)))
        body = npy(f"({rows}, {COLUMNS})", "<f4") + values
        call = post("one:transform", HOSTILE, "application/x-npy", content_length=len(body), accept="application/json") + body
        server.start_measuring()
        strangers = [self.enter(Stranger(server, i)) for i in range(40)]
        for one in strangers:
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.send(call, patience=1)
        self.until(lambda: self.transforms(server))
        self.assertTrue(self.transforms(server))
        growth = server.growth()
        print(f"40 answers of {rows} rows unread: +{growth / MIB:.1f} MiB", flush=True)
        self.assertLess(growth, MEMORY + REST)


def npy(shape, number="<f8"):
    """The header of an array of this shape."""
    text = f"{{'descr': '{number}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap")
    unittest.main()
