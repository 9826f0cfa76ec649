"""Tests that a caller with a token leaves a share of the memory for requests to others.

    caller_shares_test.py --phimapd=… --phimap=…
"""

import contextlib
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
import http2_frames
from http2_frames import Connection
from phimapd import MIB, Phimapd, bench_result, take_flags

GREEDY = "the-token-of-a-caller-that-takes-everything"
OTHER = "the-token-of-another-caller-0123456789abc"
MEMORY = 64 * MIB
# Five messages, charged twice their size for their parsed form, are nearly all of the 60 MiB that large requests may have.
LARGE = 6_280_000
PACE = 96 << 10  # bytes per second of each message: over the 64 KiB/s that a small message needs
CALL = 300 << 10
SECONDS = 15
SETTLED = 3  # seconds after which no call of the other is refused
# Streams whose first message waits for memory, and how much more processor time a call of another may take beside them.
WAITING, STREAMS_OF_A_CONNECTION = 900, 90
WAITING_COSTS = 2
INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = 3, 4, 8

arguments = None


class CallerSharesTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        tokens = pathlib.Path(folder) / "tokens"
        tokens.write_text(f"reader {GREEDY}\nadmin {OTHER}\n")
        tokens.chmod(0o600)
        self.server = self.enterContext(Phimapd(arguments, f"--token_file={tokens}", f"--memory_bytes={MEMORY}"))

    def begin(self, connection, stream, token, size, method="Transform"):
        """Begins a call whose message has `size` bytes, of which none are sent."""
        connection.send(http2_frames.request(
            stream, f"/phimap.v1.TransformService/{method}", authorization=f"Bearer {token}"))
        connection.send_data(stream, http2_frames.message(b"", declared=size))

    def trickle(self, stop, started):
        """Keeps five large messages arriving at PACE until `stop` is set. Returns the statuses with which they ended."""
        statuses = []
        with Connection(self.server.address) as connection:
            streams = []
            number = 1
            while not stop.is_set() and not connection.closed:
                for stream in [s for s in streams if s in connection.statuses or s in connection.resets]:
                    streams.remove(stream)
                    statuses.append(connection.statuses.get(stream))
                while len(streams) < 5:
                    self.begin(connection, number, GREEDY, LARGE)
                    streams.append(number)
                    number += 2
                for stream in streams:
                    connection.send_data(stream, bytes(PACE // 10), patience=0)
                started.set()
                connection.read(0.1)
                stop.wait(0.1)
        return statuses

    def test_messages_that_trickle_hold_half_of_the_memory_while_another_caller_asks(self):
        stop, started = threading.Event(), threading.Event()
        statuses = []
        attack = threading.Thread(target=lambda: statuses.extend(self.trickle(stop, started)))
        attack.start()
        self.addCleanup(attack.join)
        self.addCleanup(stop.set)
        started.wait()
        refused = []  # seconds from the first call
        answered = 0
        begun = time.monotonic()
        with Connection(self.server.address) as connection:
            stream = 1
            while (now := time.monotonic() - begun) < SECONDS:
                self.begin(connection, stream, OTHER, CALL)
                # Zeros are no message of any type, so a call that has got its memory is INVALID_ARGUMENT.
                connection.send_data(stream, bytes(CALL), end=True)
                self.assertTrue(connection.read_until(lambda: stream in connection.statuses), connection.closed)
                status = connection.statuses[stream]
                self.assertIn(status, (INVALID_ARGUMENT, RESOURCE_EXHAUSTED))
                if status == RESOURCE_EXHAUSTED:
                    refused.append(now)
                answered += 1
                stream += 2
                time.sleep(0.02)  # the pace of the load
        stop.set()
        attack.join()
        print(f"{len(refused)} of {answered} calls refused, the last after {max(refused, default=0):.1f} s; "
              f"the other caller's ended with {sorted(set(statuses), key=str)}")
        self.assertTrue(all(at < SETTLED for at in refused), refused[-5:])
        self.assertIn(DEADLINE_EXCEEDED, statuses)
        self.assertIn(RESOURCE_EXHAUSTED, statuses)


    def cpu_of_a_call(self):
        """Microseconds of the server's processor time for a call of the other, of which one follows the other."""
        before = self.server.cpu_seconds()
        calls = bench_result(self.server.start_bench("one", 2))["answered"]
        return 1e6 * (self.server.cpu_seconds() - before) / calls

    def test_streams_that_wait_for_memory_do_not_make_calls_of_others_dear(self):
        os.environ["PHIMAP_TOKEN"] = OTHER
        self.server.build("one", "f2(landmarks=32)", columns=8)
        alone = self.cpu_of_a_call()
        with contextlib.ExitStack() as stack:
            for _ in range(WAITING // STREAMS_OF_A_CONNECTION):
                connection = stack.enter_context(Connection(self.server.address))
                for stream in range(1, 2 * STREAMS_OF_A_CONNECTION, 2):
                    self.begin(connection, stream, GREEDY, LARGE, method="TransformStream")
                # An answer to a later request: the server has handled all of these by then.
                self.begin(connection, 2 * STREAMS_OF_A_CONNECTION + 1, "no-token-of-anybody", 0)
                self.assertTrue(connection.read_until(lambda: 2 * STREAMS_OF_A_CONNECTION + 1 in connection.statuses))
                self.assertEqual(set(connection.statuses), {2 * STREAMS_OF_A_CONNECTION + 1})
            beside = self.cpu_of_a_call()
        print(f"a call takes {alone:.1f} us of the server alone, {beside:.1f} us beside {WAITING} streams that wait")
        self.assertLess(beside, WAITING_COSTS * alone)


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap")
    unittest.main()
