"""Tests what clients without a token can do to a server that requires one: how much memory they take on many
connections, whether it is given back, and how long they keep an admitted caller and health checks waiting.

    strangers_test.py --phimapd=… --phimap=… [--full]

With --full the load of the many connections is that of a table of docs/benchmarks.md: 64 and 512 connections, from one
and from 64 addresses, 2 and 20 MiB/s; and new connections are timed beside the first messages of handshakes, repeated
1,700 times a second and as often as a process can.
"""

import contextlib
import multiprocessing
import os
import pathlib
import socket
import ssl
import statistics
import tempfile
import threading
import time
import unittest

from http2_frames import END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, TRANSFORM, frame, length
from phimapd import MIB, Phimapd, bench_result, take_flags

TOKEN = "the-token-of-an-admitted-caller-0123456789"
CONNECTION_BYTES = 256 << 10
# What a server takes that has just started and is used, beyond what its connections hold.
REST = 16 * MIB
P99_MS = 250
# The longest time of a new connection over TLS beside a flood of hellos, by the number of addresses that send them:
# handshakes take turns over hosts, so each of 64 has a part.
HANDSHAKE_MS = {1: 250, 64: 1000}

arguments = None


def refused_calls():
    """The first bytes of a connection, which fill the compression's table with the fields of a call, and a call of 20
    bytes by reference."""
    fields = [(":path", TRANSFORM), (":authority", "test"), ("te", "trailers"), ("content-type", "application/grpc")]
    added = b"".join(b"\x40" + length(len(name)) + name.encode() + length(len(value)) + value.encode()
                     for name, value in fields)
    method, http = b"\x83", b"\x86"  # of the static table
    first = frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS | END_STREAM, 1, method + http + added)
    return PREFACE + first, method + http + b"\xc1\xc0\xbf\xbe"


def first_hello():
    """What a client sends first over TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="test")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()


def send_hellos(address, rate, addresses, sent):
    """Sends hellos on connections of their own until the process is ended, and closes them unread."""
    os.nice(10)
    host, port = address.rsplit(":", 1)
    hello = first_hello()
    began = time.monotonic()
    while True:
        if sent.value > rate * (time.monotonic() - began):
            time.sleep(0.001)
            continue
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind((f"127.0.0.{2 + sent.value % addresses}", 0))
            one.settimeout(1)
            one.connect((host, int(port)))
            one.send(hello)
            sent.value += 1


class Crowd:
    """Connections that make one refused call after the other, together `bytes_per_second`, from each of `addresses` in
    turn. Connects again where the server hangs up. What the server answers is not read unless `reads`."""

    def __init__(self, address, connections, addresses=1, bytes_per_second=1 << 40, reads=False, calls=1 << 30):
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.addresses, self.rate, self.reads, self.calls = addresses, bytes_per_second, reads, calls
        self.sockets = [None] * connections
        self.next = [0] * connections
        self.sent = 0
        self.connected = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
        for one in self.sockets:
            if one is not None:
                one.close()

    def run(self):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        first, call = refused_calls()
        began = time.monotonic()
        while not self.stopped.is_set():
            idle = True
            for i in range(len(self.sockets)):
                if self.sent > self.rate * (time.monotonic() - began):
                    break
                idle &= not self.step(i, first, call)
            if idle:
                self.stopped.wait(0.005)

    def step(self, i, first, call):
        """Sends the next calls of a connection. Returns whether it could."""
        try:
            if self.sockets[i] is None:
                one = socket.socket()
                one.bind((f"127.0.0.{1 + i % self.addresses}", 0))
                one.settimeout(1)
                one.connect((self.host, self.port))
                one.setblocking(False)
                one.send(first)
                self.sockets[i], self.next[i] = one, 3
                self.connected += 1
            if self.next[i] > 2 * self.calls:
                return False
            if self.reads:
                try:
                    while self.sockets[i].recv(1 << 16):
                        pass
                except BlockingIOError:
                    pass
            batch = b"".join(frame(HEADERS, END_HEADERS | END_STREAM, stream, call)
                             for stream in range(self.next[i], self.next[i] + 200, 2))
            size = self.sockets[i].send(batch)
            if size < len(batch):
                # The rest of a frame would be missing, so this connection stays as it is.
                self.next[i] = 2 * self.calls + 1
            self.next[i] += 200
            self.sent += size
            return True
        except BlockingIOError:
            return False
        except OSError:
            if self.sockets[i] is not None:
                self.sockets[i].close()
            self.sockets[i] = None
            return False


class StrangersTest(unittest.TestCase):
    def serve(self, *flags):
        tokens = pathlib.Path(self.enter(tempfile.TemporaryDirectory())) / "tokens"
        tokens.write_text(f"admin {TOKEN}\n")
        tokens.chmod(0o600)
        os.environ["PHIMAP_TOKEN"] = TOKEN
        self.addCleanup(os.environ.pop, "PHIMAP_TOKEN")
        server = self.enter(Phimapd(arguments, f"--token_file={tokens}", *flags))
        server.build("one", "f1(landmarks=64)", columns=16)
        return server

    def enter(self, context):
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def test_memory_of_many_connections_is_bounded_and_given_back(self):
        connections = 500
        server = self.serve(f"--max_connections={connections + 8}", f"--max_connections_per_host={connections + 8}")
        server.phimap("bench", "one", "--seconds=0.1", "--warmup=0")
        server.start_measuring()
        # From many addresses, so that no host makes so many faults that it is disconnected at once.
        with Crowd(server.address, connections, calls=4000, addresses=64) as crowd:
            self.until(lambda: crowd.sent > connections * 50_000)
            growth = server.growth()
        self.until(lambda: server.sockets() < 20)
        server.phimap("list")
        # The server gives it back a moment after the last has closed.
        self.until(lambda: server.status_bytes("VmRSS") - server.before < REST)
        kept = server.status_bytes("VmRSS") - server.before
        print(f"{connections} connections: +{growth / MIB:.1f} MiB, +{kept / MIB:.1f} MiB when they had closed; "
              f"{crowd.sent / MIB:.0f} MiB sent on {crowd.connected} connections", flush=True)
        self.assertLess(growth, connections * CONNECTION_BYTES + REST)
        self.assertLess(kept, REST)

    def test_new_connections_are_made_beside_a_flood_of_hellos(self):
        loads = [(1700, 1), (1700, 64), (1 << 30, 1), (1 << 30, 64)] if arguments.full else [(1700, 1)]
        server = self.enter(Phimapd(arguments, tls=True))
        for rate, addresses in loads:
            sent = multiprocessing.Value("q", 0)
            flood = multiprocessing.Process(target=send_hellos, args=(server.address, rate, addresses, sent),
                                            daemon=True)
            began = time.monotonic()
            flood.start()
            self.until(lambda: sent.value > 200)
            took = sorted(self.handshake_ms(server) for _ in range(40 if arguments.full else 15))
            flood.terminate()
            flood.join()
            print(f"{sent.value / (time.monotonic() - began):.0f} hellos a second of {addresses} addresses: a new "
                  f"connection takes {statistics.median(took):.1f} ms, at most {took[-1]:.1f} ms, of {len(took)}",
                  flush=True)
            self.assertLess(took[-1], HANDSHAKE_MS[addresses])

    def handshake_ms(self, server):
        host, port = server.address.rsplit(":", 1)
        began = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=10) as one:
            with server.tls().wrap_socket(one, server_hostname=host):
                return 1000 * (time.monotonic() - began)

    def until(self, done, seconds=20):
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            time.sleep(0.01)

    def test_an_admitted_caller_is_served_beside_a_crowd(self):
        loads = [(64, 1, 2)]
        if arguments.full:
            loads = [(many, addresses, rate) for many in (64, 512) for addresses in (1, 64) for rate in (2, 20)]
        server = self.serve()
        for connections, addresses, rate in loads:
            for attempt in range(3):
                with Crowd(server.address, connections, addresses, rate * MIB, reads=True) as crowd:
                    result = bench_result(server.start_bench("one", 10 if arguments.full else 1))
                p99 = result["latency_us"]["p99"] / 1000 if result["answered"] else float("inf")
                print(f"{connections} connections of {addresses} addresses, {rate} MiB/s: p50 "
                      f"{result['latency_us']['p50'] / 1000:.2f} ms, p99 {p99:.1f} ms; {crowd.sent / MIB:.1f} MiB on "
                      f"{crowd.connected} connections", flush=True)
                self.assertEqual(result["errors"], {})
                if p99 < P99_MS:
                    break
            else:
                self.fail(f"an admitted caller's p99 is {p99:.1f} ms")


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", switches=["full"])
    unittest.main()
