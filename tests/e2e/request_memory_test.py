"""Tests that requests and answers take only a bounded amount of a server's memory, no matter who sends the requests
and whether the answers are read.

    request_memory_test.py --phimapd=… --phimap=… [--full]

The bound of each test is the budget (--memory_bytes) plus 64 MiB for everything else. With --full, the tests send
requests that took gigabytes before there was a budget. Without --full, they send smaller requests of the same kinds.
"""

import pathlib
import tempfile
import threading
import time
import unittest

from http2_frames import (BUILD, CANCEL, DATA, END_STREAM, HEALTH_CHECK, HEALTH_WATCH, INFER, TRANSFORM, TRANSFORM_STREAM, Connection, frame, message,
                          request)
from phimapd import MIB, Phimapd, take_flags

REST = 64 * MIB
TOKEN = "a-token-that-is-long-enough-0123456789"
RESOURCE_EXHAUSTED, UNAUTHENTICATED, OK = 8, 16, 0

arguments = None


def field(number, payload):
    """Encodes a length-delimited field of a protobuf message."""
    size, prefix = len(payload), bytes([number << 3 | 2])
    while size >= 128:
        prefix += bytes([size % 128 | 128])
        size //= 128
    return prefix + bytes([size]) + payload


def varint(number, value):
    prefix = bytes([number << 3])
    while value >= 128:
        prefix += bytes([value % 128 | 128])
        value //= 128
    return prefix + bytes([value])


def transform_request(rows, columns, reference=b"one"):
    dense = varint(1, rows) + varint(2, columns) + field(3, bytes(4 * rows * columns))
    return field(1, reference) + field(3, field(1, dense))


def together(callers, call):
    """Runs call(0), …, call(callers - 1) at the same time."""
    threads = [threading.Thread(target=call, args=(i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class RequestMemoryTest(unittest.TestCase):
    def server(self, *flags, **more):
        server = Phimapd(arguments, *flags, **more)
        self.addCleanup(server.__exit__)
        return server

    def assert_grew_less(self, server, what, bound):
        growth = server.growth()
        print(f"{what}: +{growth / MIB:.0f} MiB, bound {bound / MIB:.0f} MiB", flush=True)
        self.assertLess(growth, bound, what)

    def assert_serves(self, server):
        server.phimap("list")

    def send_calls(self, server, path, payloads, **headers):
        """Sends each payload as a call on its own connection, all at the same time. Returns the statuses of the
        calls."""
        statuses = [None] * len(payloads)

        def call(i):
            with Connection(server.address, window=2**30) as connection:
                connection.send(request(1, path, **headers))
                connection.send_data(1, payloads[i], end=True, patience=5)
                connection.read_until(lambda: 1 in connection.statuses)
                statuses[i] = connection.statuses.get(1)

        together(len(payloads), call)
        return statuses

    def test_without_a_token_nothing_of_a_message_is_taken(self):
        tokens = self.folder_file("tokens", f"reader {TOKEN}\n")
        server = self.server(f"--token_file={tokens}")
        # The message contains very many empty sub-messages. Each of them would become an object when it is parsed.
        tiny = message(b"\x2a\x00" * (8 * MIB))
        for path in (INFER, TRANSFORM, BUILD):
            server.start_measuring()
            statuses = self.send_calls(server, path, [tiny] * 2)
            self.assert_grew_less(server, f"16 MiB of tiny elements twice, no token, {path}", REST)
            self.assertEqual(statuses, [UNAUTHENTICATED] * 2, path)

    def test_health_takes_little_and_answers_when_others_hold_all_memory(self):
        tokens = self.folder_file("tokens", f"reader {TOKEN}\n")
        server = self.server(f"--token_file={tokens}", f"--memory_bytes={64 * MIB}")
        server.start_measuring()
        # For callers without a token, the server refuses at once a message that is announced as large, and also the
        # seventeenth call of a connection.
        self.assertEqual(self.send_calls(server, HEALTH_CHECK, [message(bytes(5000), declared=60 * MIB)] * 8),
                         [RESOURCE_EXHAUSTED] * 8)
        self.assertEqual(self.send_calls(server, HEALTH_CHECK, [message(b"")]), [OK])
        with Connection(server.address) as connection:
            watches = [2 * i + 1 for i in range(17)]
            for stream in watches:
                connection.send(request(stream, HEALTH_WATCH))
                connection.send_data(stream, message(b""), end=True)
            connection.read_until(lambda: watches[-1] in connection.statuses)
            self.assertEqual([connection.statuses.get(stream) for stream in watches], [None] * 16 + [RESOURCE_EXHAUSTED])
        # A client with a token announces messages that together exceed the budget, but sends only a few bytes. Health
        # checks and small calls must still be answered.
        token = {"authorization": f"Bearer {TOKEN}"}
        with Connection(server.address) as hog:
            for stream in (1, 3, 5):
                hog.send(request(stream, TRANSFORM, **token))
                hog.send_data(stream, message(b"x", declared=14 * MIB))
            hog.read(0.2)
            self.assertEqual(self.send_calls(server, HEALTH_CHECK, [message(b"")]), [OK])
            token_file = self.folder_file("token", TOKEN)
            server.phimap("list", f"--token_file={token_file}")
        self.assert_grew_less(server, "health for strangers", REST)

    def test_what_a_message_parses_to_is_charged_before_it_is_parsed(self):
        budget = 64 * MIB
        server = self.server(f"--memory_bytes={budget}")
        tiny = message(b"\x2a\x00" * ((8 if arguments.full else 2) * MIB))
        # Another request takes part of the budget first. Without it, a request larger than the whole budget would be
        # accepted, because it would be the only one.
        with Connection(server.address) as other:
            other.send(request(1, TRANSFORM))
            other.send_data(1, message(b"", declared=4096) + b"\x0a")
            for path in (INFER, TRANSFORM):
                server.start_measuring()
                statuses = self.send_calls(server, path, [tiny] * 3)
                self.assert_grew_less(server, f"tiny elements three times, {path}", budget + REST)
                self.assertEqual(statuses, [RESOURCE_EXHAUSTED] * 3, path)
        self.assert_serves(server)

    def test_what_is_announced_and_does_not_come_takes_nothing(self):
        budget = 64 * MIB
        server = self.server(f"--memory_bytes={budget}")
        for declared in (1 << 30, 60 * MIB):
            server.start_measuring()
            some = message(bytes(30 << 10), declared=declared)
            connections = [Connection(server.address) for _ in range(20)]
            for connection in connections:
                for stream in range(1, 101, 2):
                    connection.send(request(stream, TRANSFORM if stream % 4 == 1 else TRANSFORM_STREAM))
                    connection.send_data(stream, some, patience=0.02)
            self.assert_grew_less(server, f"{declared >> 20} MiB announced 1,000 times", budget + REST)
            for connection in connections:
                connection.close()
            self.assert_serves(server)

    def test_requests_that_are_never_complete_are_in_the_budget(self):
        budget = 64 * MIB
        server = self.server(f"--memory_bytes={budget}")
        server.start_measuring()
        some = message(bytes(4 * MIB), declared=60 * MIB)

        def call(_):
            with Connection(server.address) as connection:
                connection.send(request(1, TRANSFORM))
                connection.send(request(3, TRANSFORM_STREAM))
                for stream in (1, 3):
                    connection.send_data(stream, some, patience=0.3)
                everyone_sent.wait(timeout=60)

        everyone_sent = threading.Barrier(40)
        together(40, call)
        self.assert_grew_less(server, "4 MiB of 60 MiB, 80 times", budget + REST)
        self.assert_serves(server)

    def test_answers_that_nobody_reads_are_in_the_budget(self):
        budget = 16 * MIB
        server = self.server(f"--memory_bytes={budget}")
        server.build("one", "f1(landmarks=500)", columns=4)
        server.phimap("bench", "one", "--seconds=0.1", "--warmup=0")
        server.start_measuring()
        body = message(transform_request(rows=128, columns=4))  # answers of 256 KiB
        connections = [Connection(server.address, window=0) for _ in range(4)]
        for i in range(250):
            for connection in connections:
                connection.send(request(2 * i + 1, TRANSFORM) + frame(DATA, END_STREAM, 2 * i + 1, body))
            if i % 5 == 4:  # lets the server compute earlier requests
                connections[-1].read(0.05)
        connections[-1].read_until(lambda: len(connections[-1].statuses) >= 200, seconds=1)
        self.assert_grew_less(server, "1,000 unread answers of 256 KiB", budget + REST)
        for connection in connections:
            connection.close()
        self.assert_serves(server)

    def test_streams_behind_an_unread_answer_are_in_the_budget(self):
        budget = 1 * MIB
        streams, rows = (40, 48128) if arguments.full else (40, 8192)
        server = self.server(f"--memory_bytes={budget}")
        server.build("one", "f1(landmarks=64)", columns=256)
        first = message(transform_request(rows=1, columns=256))
        large = message(transform_request(rows=rows, columns=256, reference=b""))
        server.start_measuring()

        def call(_):
            with Connection(server.address, window=0) as connection:
                connection.send(request(1, TRANSFORM_STREAM))
                for body in (first, large, large, large):
                    connection.send_data(1, body, patience=0.3)
                everyone_sent.wait(timeout=60)

        everyone_sent = threading.Barrier(streams)
        together(streams, call)
        # A message that exceeds the budget is accepted if it is the only one. It takes memory for its bytes and for
        # the parsed message.
        bound = max(budget, 2 * len(large)) + REST
        self.assert_grew_less(server, f"{streams} streams of {len(large) >> 20} MiB messages", bound)
        self.assert_serves(server)

    def test_requests_that_wait_for_a_cold_version_are_in_the_budget(self):
        budget = 1 * MIB
        rows = 48128 if arguments.full else 12288
        server = self.server(f"--memory_bytes={budget}")
        server.build("one", "f1(landmarks=64)", columns=256)
        server.process.terminate()
        server.process.wait(timeout=30)
        server = self.server(f"--memory_bytes={budget}", data_dir=server.data_dir)
        server.start_measuring()
        body = message(transform_request(rows=rows, columns=256))
        ready = threading.Barrier(16)

        def call(_):
            with Connection(server.address) as connection:
                connection.send(request(1, TRANSFORM))
                connection.send_data(1, body[:-1], patience=0.3)
                ready.wait(timeout=60)
                connection.send_data(1, body[-1:], end=True, patience=0.3)
                connection.read_until(lambda: 1 in connection.statuses, seconds=3)

        together(16, call)
        bound = max(budget, 2 * len(body)) + REST
        self.assert_grew_less(server, f"16 requests of {len(body) >> 20} MiB for a cold version", bound)
        self.assert_serves(server)

    def test_answers_that_stay_unread_are_dropped_after_the_idle_limit(self):
        server = self.server(f"--memory_bytes={4 * MIB}", "--stream_idle_seconds=1")
        server.build("one", "f1(landmarks=500)", columns=4)
        body = message(transform_request(rows=128, columns=4))
        with Connection(server.address, window=0) as holder:
            for stream in range(1, 201, 2):
                holder.send(request(stream, TRANSFORM))
                holder.send_data(stream, body, end=True)
            # The first 16 answers have 256,000 bytes each, and fill the budget.
            self.assertTrue(holder.read_until(lambda: len(holder.statuses) >= 84))
            self.assertEqual(set(holder.statuses.values()), {RESOURCE_EXHAUSTED})
            self.assertTrue(holder.read_until(
                lambda: len(holder.statuses) + len(holder.resets) >= 100, seconds=5), holder.statuses)
            dropped = {code for stream, code in holder.resets.items() if stream not in holder.statuses}
            self.assertEqual(dropped, {CANCEL})
            self.assertEqual(self.send_calls(server, TRANSFORM, [body] * 4), [OK] * 4)

    def test_a_client_that_does_not_read_its_socket_is_hung_up_on(self):
        server = self.server(f"--memory_bytes={32 * MIB}", "--stream_idle_seconds=1")
        server.build("one", "f1(landmarks=500)", columns=1)
        body = message(transform_request(rows=4000, columns=1))  # answers of 8 MB
        sockets = server.sockets()
        with Connection(server.address, window=2**30) as holder:
            # These answers do not fit into the sockets' buffers.
            for stream in (1, 3, 5, 7):
                holder.send(request(stream, TRANSFORM) + frame(DATA, END_STREAM, stream, body))
            until = time.monotonic() + 10
            while server.sockets() == sockets:
                self.assertLess(time.monotonic(), until, "the server has not accepted the connection yet")
                time.sleep(0.01)
            while server.sockets() > sockets:
                self.assertLess(time.monotonic(), until, "the server has not closed the connection yet")
                time.sleep(0.05)
            self.assertEqual(self.send_calls(server, TRANSFORM, [body] * 3), [OK] * 3)

    def test_a_slow_reader_that_reads_is_not_hung_up_on(self):
        server = self.server("--stream_idle_seconds=1")
        server.build("one", "f1(landmarks=2000)", columns=4, rows=3000)
        body = message(transform_request(rows=4096, columns=4))  # an answer of 32 MiB
        with Connection(server.address, window=2**30) as reader:
            reader.send(request(1, TRANSFORM))
            reader.send_data(1, body, end=True)
            until = time.monotonic() + 3
            while time.monotonic() < until and not reader.closed:
                # Each round reads a part of the answer, but so slowly that the server's socket stays full.
                reader.socket.recv_into(bytearray(64 << 10))
                time.sleep(0.02)
            reader.socket.settimeout(5)
            self.assertFalse(reader.closed)
            taken = 0
            while taken < 4 * MIB:
                came = len(reader.socket.recv(1 << 20))
                self.assertGreater(came, 0, "the server hung up")
                taken += came

    def folder_file(self, name, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / name
        path.write_text(text)
        path.chmod(0o600)
        return path


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", switches=["full"])
    unittest.main()
