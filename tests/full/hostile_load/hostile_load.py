"""Hostile clients of all kinds at once: with and without a token, on many connections, from many addresses. Half of
the time over plain connections, half over TLS, each against a server of its own.

    hostile_load.py --phimapd=… --phimap=… --minutes=10

The server runs on one core. The attackers, with nice 10, and an admitted caller share the others. What must hold:

* every call of the admitted caller is answered, and its p99 is at most 20 ms in the median of runs of ten seconds;
* /livez and /readyz answer 200 within a second, throughout;
* the server's memory stays within the formula of docs/operations/size.md;
* every attack at the door for HTTP was answered, or held, as it should be, at least once;
* when the attackers have gone, the server holds no connection of theirs, and ends with 0 on SIGTERM.
"""

import argparse
import contextlib
import http.client
import os
import pathlib
import socket
import ssl
import statistics
import struct
import sys
import tempfile
import threading
import time

import header_flood_test
import http_strangers_test
from http2_frames import CANCEL, DATA, RST_STREAM, TRANSFORM, TRANSFORM_STREAM, Connection, frame, message, request
from phimapd import MIB, Phimapd, bench_result
from strangers_test import Crowd

OTHER = "the-token-of-an-admitted-caller-0123456789"
ATTACKER = "the-token-of-a-hostile-caller-0123456789ab"
ADMIN = "the-token-of-the-operator-0123456789abcdef"
PART_BYTES = 64 * MIB  # of each part of the memory that a flag limits
CONNECTIONS = 512
P99_MS = 20
RUN_SECONDS = 10
PROBE_SECONDS = 1
SLOW_SCRAPES = 40
# What one kind of attacker sends in a second, so that none of them takes all of the attackers' time.
BYTES_PER_SECOND = 2 * MIB

WRONG = []  # what did not hold


def wrong(what):
    print("WRONG:", what, flush=True)
    WRONG.append(what)


class Floods(header_flood_test.HeaderFloodTest):
    """Collects the floods of header_flood_test in place of running them."""

    def __init__(self):
        super().__init__()
        self.all = []
        for name in sorted(dir(self)):
            if name.startswith("test_"):
                getattr(self, name)()

    def runTest(self):
        pass

    def flood(self, what, batches, **more):
        self.all.append((what, batches, more))


class SlowFlood(header_flood_test.Flood):
    """A flood of at most BYTES_PER_SECOND, that connects again after a while."""

    pause = 0.05

    def run(self):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        super().run()

    def flood(self, connection):
        connection.socket.settimeout(0.1)
        for batch in self.batches(connection):
            for at in range(0, len(batch), 65536):
                piece = memoryview(batch)[at:at + 65536]
                while piece:
                    if self.stopped.wait(len(piece) / BYTES_PER_SECOND):
                        return
                    try:
                        size = connection.socket.send(piece)
                    except TimeoutError:
                        continue
                    piece = piece[size:]
                    self.sent += size
            if self.reads:
                connection.read(0)
            if connection.closed:
                return


class Attackers:
    """Each method is a kind of attack, which is repeated on a thread of its own until stop()."""

    def __init__(self, server, http):
        self.server, self.metrics = server, http
        host, port = server.address.rsplit(":", 1)
        self.to = (host, int(port))
        self.stopped = threading.Event()
        self.counts = {}
        # The attacks at the door for HTTP of which the server took what they sent, or which it answered.
        self.reached = set()
        self.threads = []

    def start(self):
        for step in (self.resets, self.trickle, self.empty_fields, self.unread_answers, self.waiting_streams,
                     self.windows_exceeded, self.wrong_calls, self.connect_and_close, self.garbage, self.http1,
                     self.hellos, self.silent, self.http_half_bodies, self.http_bombs, self.http_unread_answers,
                     self.http_refused_calls):
            self.run(step)
        for _ in range(SLOW_SCRAPES):
            self.run(self.slow_scrape)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def run(self, step):
        def repeat():
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
            while not self.stopped.wait(0.02):
                self.counts[step.__name__] = self.counts.get(step.__name__, 0) + 1
                try:
                    step()
                except OSError:
                    pass
        thread = threading.Thread(target=repeat)
        thread.start()
        self.threads.append(thread)

    def connect(self, **more):
        return Connection(self.server.address, tls=self.server.tls(), **more)

    def call(self, stream, path, end=False, **more):
        return request(stream, path, end=end, authorization=f"Bearer {ATTACKER}", **more)

    # With a token.

    def resets(self):
        reset = struct.pack(">I", CANCEL)
        with self.connect() as connection:
            for stream in range(1, 2001, 2):
                if not connection.send(self.call(stream, TRANSFORM) + frame(RST_STREAM, 0, stream, reset)):
                    return
                connection.read(0)

    def trickle(self):
        with self.connect() as connection:
            streams = range(1, 11, 2)
            for stream in streams:
                connection.send(self.call(stream, TRANSFORM))
                connection.send_data(stream, message(b"", declared=6 * MIB), patience=0)
            while not connection.closed and len(connection.statuses) < 5 and not self.stopped.wait(0.1):
                for stream in streams:
                    connection.send_data(stream, bytes(8 << 10), patience=0)

    def empty_fields(self):
        with self.connect() as connection:
            connection.send(self.call(1, TRANSFORM))
            connection.send_data(1, message(b"\x1a\x00" * 65_000), end=True)
            connection.read_until(lambda: 1 in connection.statuses, 5)

    def unread_answers(self):
        rows = struct.pack("<64000f", *[0.5] * 64_000)
        dense = b"\x08" + varint(4000) + b"\x10" + varint(16) + b"\x1a" + varint(len(rows)) + rows
        examples = b"\x0a" + varint(len(dense)) + dense
        body = b"\x0a\x03one" + b"\x1a" + varint(len(examples)) + examples
        with self.connect(window=0) as connection:
            for stream in range(1, 9, 2):
                connection.send(self.call(stream, TRANSFORM))
                connection.send_data(stream, message(body), end=True, patience=0.2)
            self.stopped.wait(2)

    def waiting_streams(self):
        with self.connect() as connection:
            for stream in range(1, 401, 2):
                connection.send(self.call(stream, TRANSFORM_STREAM))
            for _ in range(20):
                if connection.closed or self.stopped.wait(0.1):
                    return
                connection.read(0)

    def windows_exceeded(self):
        """Sends more data than the window of a stream allows, so that the server resets the stream."""
        with self.connect() as connection:
            for stream in range(1, 41, 2):
                data = b"".join(frame(DATA, 0, stream, bytes(16384)) for _ in range(20))
                if not connection.send(self.call(stream, TRANSFORM) + data):
                    return
                connection.read(0)

    def wrong_calls(self):
        with self.connect() as connection:
            two = message(b"") + message(b"")
            for stream, more in ((1, {}), (3, {"grpc-timeout": "0n"}), (5, {"grpc-timeout": "never"})):
                connection.send(self.call(stream, TRANSFORM, **more))
                connection.send_data(stream, two, end=True, patience=0.1)
            connection.send(self.call(7, TRANSFORM))
            connection.send_data(7, b"\x01\0\0\0\x01a", end=True, patience=0.1)
            connection.send(self.call(9, TRANSFORM, **{"x-large-bin": "a" * 70_000}))
            connection.read_until(lambda: connection.closed, 2)

    # Without a token.

    def raw(self):
        return socket.create_connection(self.to, timeout=5)

    def connect_and_close(self):
        self.raw().close()

    def garbage(self):
        with self.raw() as connection:
            connection.sendall(os.urandom(4096))
            connection.recv(4096)

    def http1(self):
        with self.raw() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.recv(4096)

    def hellos(self):
        """The first message of many TLS handshakes that go no further."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        tls = context.wrap_bio(incoming, outgoing)
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = outgoing.read()
        for _ in range(20):
            with self.raw() as connection:
                connection.sendall(hello)
                connection.settimeout(0.05)
                try:
                    connection.recv(1)
                except TimeoutError:
                    pass

    # At the door for HTTP.

    def http(self):
        return http_strangers_test.Stranger(self.server)

    def http_half_bodies(self):
        with contextlib.ExitStack() as stack:
            for action, length in (("one:transform", 6 * MIB), ("new:build?spec=f2()&kernel=rbf()", 60 * MIB)):
                one = stack.enter_context(self.http())
                kind = "application/json" if action == "one:transform" else "text/csv"
                one.send(http_strangers_test.post(action, ATTACKER, kind, content_length=length))
                if one.send(bytes(256 << 10), patience=0.5) and action == "one:transform" and one.is_open():
                    self.reached.add("http_half_bodies")
            self.stopped.wait(2)

    def http_bombs(self):
        for body in (b"[" * MIB, b'{"rows": [' + b"[]," * (256 << 10) + b"[]]}", b"{" + b'"a":1,' * 100_000 + b'"b":1}'):
            with self.http() as one:
                one.send(http_strangers_test.post("one:transform", ATTACKER, content_length=len(body)) + body)
                if one.read(5).startswith(b"HTTP/1.1 4"):
                    self.reached.add("http_bombs")

    def http_unread_answers(self):
        rows = 4000
        body = http_strangers_test.npy(f"({rows}, 16)", "<f4") + bytes(rows * 16 * 4)
        with self.http() as one:
            one.send(http_strangers_test.post("one:transform", ATTACKER, "application/x-npy", content_length=len(body),
                                              accept="application/json") + body)
            self.stopped.wait(2)
            if one.socket.recv(9) == b"HTTP/1.1 ":
                self.reached.add("http_unread_answers")

    def http_refused_calls(self):
        with self.http() as one:
            one.send(200 * (http_strangers_test.head(x="a" * 2000) + b"\r\n"), patience=0.5)
            if one.read(5).startswith(b"HTTP/1.1 401 "):
                self.reached.add("http_refused_calls")
        with self.http() as one:
            one.send(http_strangers_test.head(x="a" * 70_000)[:-2], patience=0.5)

    def silent(self):
        with self.raw():
            self.stopped.wait(5)

    def slow_scrape(self):
        host, port = self.metrics.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            while connection.recv(64) and not self.stopped.wait(1):
                pass


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value % 128 | 128])
        value //= 128
    return out + bytes([value])


class Probes:
    """Asks /livez and /readyz every quarter of a second."""

    def __init__(self, address):
        self.address = address
        self.asked = 0
        self.longest = 0.0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        while not self.stopped.wait(0.25):
            for path in ("/livez", "/readyz"):
                began = time.monotonic()
                try:
                    connection = http.client.HTTPConnection(self.address, timeout=PROBE_SECONDS)
                    connection.request("GET", path)
                    status = connection.getresponse().status
                    connection.close()
                    if status != 200:
                        wrong(f"{path} answered {status}")
                except OSError as error:
                    wrong(f"{path} did not answer within {PROBE_SECONDS} s: {error}")
                self.asked += 1
                self.longest = max(self.longest, time.monotonic() - began)


def run(arguments, tls, seconds):
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        tokens = pathlib.Path(folder) / "tokens"
        tokens.write_text(f"reader {OTHER}\nbuilder {ATTACKER}\nadmin {ADMIN}\n")
        tokens.chmod(0o600)
        os.sched_setaffinity(0, cores[:1])
        server = Phimapd(arguments, f"--token_file={tokens}", f"--max_live_bytes={PART_BYTES}",
                         f"--memory_bytes={PART_BYTES}", f"--build_memory_bytes={PART_BYTES}",
                         f"--max_connections={CONNECTIONS}", "--api_http=127.0.0.1:0", tls=tls, http="127.0.0.1:0")
        os.sched_setaffinity(0, cores[1:] or cores)
        with server:
            attack(server, "TLS" if tls else "plain", seconds)


def attack(server, kind, seconds):
    os.environ["PHIMAP_TOKEN"] = ADMIN
    server.build("one", "f1(landmarks=64)", columns=16)
    os.environ["PHIMAP_TOKEN"] = OTHER
    attackers = Attackers(server, server.http)
    floods = [SlowFlood(server, batches, **more) for _, batches, more in Floods().all]
    crowd = None if server.certificate else Crowd(server.address, 64, 64, 2 * MIB, reads=True)
    p99s = []
    formula = 64 * MIB + 1.25 * PART_BYTES + 2 * PART_BYTES + CONNECTIONS * MIB / 2
    with Probes(server.http) as probes:
        attackers.start()
        for each in floods + ([crowd] if crowd else []):
            each.__enter__()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            result = bench_result(server.start_bench("one", RUN_SECONDS))
            if result["errors"] or not result["answered"]:
                wrong(f"an admitted caller's calls failed: {result['errors']}")
            p99s.append(result["latency_us"]["p99"] / 1000)
        peak = server.status_bytes("VmHWM")
        attackers.stop()
        for each in floods + ([crowd] if crowd else []):
            each.__exit__()
    sent = sum(flood.sent for flood in floods) + (crowd.sent if crowd else 0)
    connected = sum(flood.connected for flood in floods) + (crowd.connected if crowd else 0)
    p99 = statistics.median(p99s)
    print(f"{kind}: p99 {p99:.2f} ms in the median, {max(p99s):.2f} at most, of {len(p99s)} runs; peak memory "
          f"{peak / MIB:.0f} MiB of {formula / MIB:.0f}; {probes.asked} probes, the longest {1000 * probes.longest:.0f} ms; "
          f"{sent / MIB:.0f} MiB sent on {connected} connections of floods, and {attackers.counts}", flush=True)
    for step in ("http_half_bodies", "http_bombs", "http_unread_answers", "http_refused_calls"):
        if step not in attackers.reached:
            wrong(f"{step} reached nothing")
    if p99 > P99_MS:
        wrong(f"an admitted caller's p99 is {p99:.1f} ms")
    if peak > formula:
        wrong(f"{peak} bytes of memory, over {formula:.0f}")
    deadline = time.monotonic() + 60
    while server.sockets() > 8 and time.monotonic() < deadline:
        time.sleep(0.1)
    if server.sockets() > 8:
        wrong(f"{server.sockets()} sockets are open when all clients have gone")
    server.terminate()
    if server.process.wait(60) != 0:
        wrong(f"the server ended with {server.process.returncode}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    for tls in (False, True):
        run(arguments, tls, 30 * arguments.minutes)
    sys.exit(1 if WRONG else 0)


if __name__ == "__main__":
    main()
