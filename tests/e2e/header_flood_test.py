"""Tests floods of HTTP/2 frames that cost their sender little. The server's memory must stay bounded, and other
clients must be served during a flood.

    header_flood_test.py --phimapd=… --phimap=… [--full]

All floods come over plain connections and over TLS. During a flood a normal client calls Transform. The 99th percentile of its latency is printed and must stay under 250
ms (on an idle machine it is a few milliseconds). The server's memory may grow by 64 MiB, and the server must still
answer after the flood. With --full, a flood lasts ten times as long, and one of the floods sends a header of 900 MiB.
"""

import struct
import threading
import time
import unittest

from http2_frames import (CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY,
                          REFUSED_STREAM, RST_STREAM, SETTINGS, TRANSFORM, TRANSFORM_STREAM, WINDOW_UPDATE, Connection,
                          frame, header, length, request, request_headers)
from phimapd import MIB, Phimapd, bench_result, take_flags

REST = 64 * MIB
P99_MS = 250
MAX_STREAM = 2**31 - 1

arguments = None


class Flood:
    """Sends the byte strings of `batches(connection)` over each of several connections until it is stopped. Connects
    again when the server closes a connection. Reads the server's frames only if `reads` is true."""

    pause = 0  # seconds before each connection

    def __init__(self, server, batches, connections=1, reads=False, settings=True, limit=1 << 40):
        self.server, self.batches, self.reads, self.settings, self.limit = server, batches, reads, settings, limit
        self.stopped = threading.Event()
        self.sent = 0
        self.connected = 0
        self.threads = [threading.Thread(target=self.run) for _ in range(connections)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def run(self):
        while not self.stopped.wait(self.pause):
            try:
                with Connection(self.server.address, settings=self.settings, tls=self.server.tls()) as connection:
                    self.connected += 1
                    self.flood(connection)
            except OSError:
                continue

    def flood(self, connection):
        connection.socket.settimeout(0.1)
        of_connection = 0
        for batch in self.batches(connection):
            unsent = memoryview(batch)
            while unsent:
                if self.stopped.is_set():
                    return
                try:
                    size = connection.socket.send(unsent)
                except TimeoutError:
                    continue  # the server does not read at the moment
                unsent = unsent[size:]
                self.sent += size
                of_connection += size
            if self.reads:
                connection.read(0)
            if connection.closed:
                return
            if of_connection >= self.limit:
                break
        # Everything is sent. The connection stays open, so that the server keeps any memory that it needs for these
        # bytes.
        while not self.stopped.wait(0.05) and not connection.closed:
            connection.read(0)


def repeated(batch):
    def batches(_):
        while True:
            yield batch
    return batches


def streams(batch_of, many=200):
    """Returns a function for Flood. Each of its batches opens `many` new streams."""
    def batches(_):
        for first in range(1, MAX_STREAM, 2 * many):
            yield b"".join(batch_of(stream) for stream in range(first, first + 2 * many, 2))
    return batches


def header_block(fill, first=None):
    """Returns a function for Flood. It sends one request whose headers never end: CONTINUATION frames full of
    `fill`."""
    def batches(_):
        yield frame(HEADERS, 0, 1, request_headers(TRANSFORM) + (first or b""))
        batch = frame(CONTINUATION, 0, 1, fill) * max(1, (256 << 10) // (9 + len(fill)))
        while True:
            yield batch
    return batches


class HeaderFloodTest(unittest.TestCase):
    tls = False

    def flood(self, what, batches, **more):
        """Repeats a flood up to three times until the latency is good enough, because it may also be high on a busy
        machine."""
        for _ in range(3):
            p99 = self.flood_once(what, batches, **more)
            if p99 < P99_MS:
                return
        self.fail(f"others' p99 is {p99:.1f} ms")

    def flood_once(self, what, batches, **more):
        """Floods a new server, so that no earlier flood has influenced its memory. Returns the 99th percentile of the
        latency of other calls, in milliseconds."""
        with Phimapd(arguments, tls=self.tls) as server:
            server.build("one", "f1(landmarks=64)", columns=16)
            server.phimap("bench", "one", "--seconds=0.1", "--warmup=0")
            server.start_measuring()
            with Flood(server, batches, **more) as flood:
                cpu = server.cpu_seconds()
                result = bench_result(server.start_bench("one", 10 if arguments.full else 0.7))
                cpu = server.cpu_seconds() - cpu
                growth = server.growth()
            p99 = result["latency_us"]["p99"] / 1000 if result["answered"] else float("inf")
            print(f"{what}{' over TLS' if self.tls else ''}: +{growth / MIB:.0f} MiB, others' p99 {p99:.1f} ms, {result['calls']} calls, of "
                  f"{1000 * cpu / max(1, result['calls']):.1f} ms of the server's CPU each; {flood.sent / MIB:.0f} MiB on "
                  f"{flood.connected} connections", flush=True)
            self.assertGreater(flood.sent, 0)
            self.assertLess(growth, REST)
            self.assertEqual(result["errors"], {})
            server.phimap("list")
            self.assertIsNone(server.process.poll())
            return p99

    def test_a_header_without_end(self):
        self.flood("one header of large fields", header_block(header("x-large", "a" * 16000)), limit=900 * MIB)

    def test_a_header_of_many_fields(self):
        self.flood("one header of small fields", header_block(header("x", "a") * 3000), limit=900 * MIB)

    def test_a_header_of_empty_frames(self):
        self.flood("empty CONTINUATION frames", header_block(b""), limit=900 * MIB)

    def test_two_headers_of_24_mib(self):
        self.flood("24 MiB of header twice", header_block(header("x-large", "a" * 16000)), connections=2, limit=24 * MIB)

    def test_fields_of_the_table_that_are_named_again_and_again(self):
        # The byte 0x40 adds a field of 4,000 bytes to the dynamic table. Each 0xbe after it is a reference to that
        # field.
        field = b"\x40" + length(1) + b"x" + length(4000) + b"a" * 4000
        bomb = request_headers(TRANSFORM) + field
        self.flood("header fields by reference", streams(
            lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, bomb + b"\xbe" * 8000), many=16))

    def test_trailers_that_name_a_field_again_and_again(self):
        # A request whose trailers contain that many references is refused, but the field stays in the table for the
        # next request.
        field = b"\x40" + length(1) + b"x" + length(4000) + b"a" * 4000
        self.flood("trailers by reference", streams(
            lambda stream: frame(HEADERS, END_HEADERS, stream, request_headers(TRANSFORM) + field)
            + frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\xbe" * 16000), many=16), connections=4)

    def test_streams_that_are_opened_and_reset(self):
        reset = struct.pack(">I", CANCEL)
        self.flood("streams opened and reset", streams(
            lambda stream: request(stream, TRANSFORM) + frame(RST_STREAM, 0, stream, reset)))

    def test_calls_without_a_message_whose_answers_nobody_reads(self):
        self.flood("calls without a message", streams(lambda stream: request(stream, TRANSFORM, end=True)),
                   connections=4)

    def test_calls_without_a_message_whose_answers_are_read(self):
        self.flood("calls without a message, read", streams(lambda stream: request(stream, TRANSFORM, end=True)),
                   connections=4, reads=True)

    def test_streams_beyond_the_limit(self):
        for settings in (True, False):
            self.flood(f"streams beyond the limit, settings acknowledged: {settings}",
                       streams(lambda stream: request(stream, TRANSFORM_STREAM)), reads=True, settings=settings)

    def test_pings(self):
        self.flood("pings", repeated(frame(PING, 0, 0, bytes(8)) * 4000))

    def test_settings(self):
        self.flood("settings", repeated(frame(SETTINGS, 0, 0) * 4000))

    def test_priorities(self):
        self.flood("priorities", streams(lambda stream: frame(PRIORITY, 0, stream, struct.pack(">IB", 0, 16)), many=4000))

    def test_data_without_bytes(self):
        def batches(_):
            yield request(1, TRANSFORM_STREAM)
            while True:
                yield frame(DATA, 0, 1) * 4000
        self.flood("empty DATA frames", batches)

    def test_windows_that_grow_by_one(self):
        def batches(_):
            yield request(1, TRANSFORM_STREAM)
            while True:
                yield frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)) * 4000
        self.flood("window updates", batches)

    def test_settings_that_change_windows_of_many_streams(self):
        def batches(_):
            yield b"".join(request(stream, TRANSFORM_STREAM) for stream in range(1, 1001, 2))
            grow = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65536)) + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535))
            while True:
                yield grow * 50
        self.flood("settings over 500 streams", batches, reads=True)


class HeaderFloodOverTlsTest(HeaderFloodTest):
    tls = True


class StreamLimitTest(unittest.TestCase):
    def open_streams(self, server, settings):
        """Opens 1,200 streams, of which the server accepts 1,024."""
        connection = Connection(server.address, settings=settings)
        self.addCleanup(connection.close)
        self.assertTrue(connection.read_until(lambda: SETTINGS in connection.counts))
        for stream in range(1, 2401, 2):
            connection.send(request(stream, TRANSFORM_STREAM))
        connection.read_until(lambda: len(connection.resets) >= 176)
        return connection

    def test_a_client_is_refused_what_is_beyond_whether_or_not_it_knows_the_limit(self):
        for settings in (False, True):
            with self.subTest(settings_acknowledged=settings), Phimapd(arguments) as server:
                connection = self.open_streams(server, settings)
                self.assertEqual(connection.resets, {stream: REFUSED_STREAM for stream in range(2049, 2401, 2)})
                self.assertFalse(connection.closed)
                server.phimap("list")


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", switches=["full"])
    unittest.main()
