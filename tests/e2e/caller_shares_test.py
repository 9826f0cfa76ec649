"""Tests that a caller with a token leaves a share of the memory for requests to others.

    caller_shares_test.py --phimapd=… --phimap=…
"""

import argparse
import pathlib
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
import http2_frames
from http2_frames import Connection
from phimapd import MIB, Phimapd

GREEDY = "the-token-of-a-caller-that-takes-everything"
OTHER = "the-token-of-another-caller-0123456789abc"
MEMORY = 64 * MIB
# Five messages, charged twice their size for their parsed form, are nearly all of the 60 MiB that large requests may have.
LARGE = 6_280_000
PACE = 96 << 10  # bytes per second of each message: over the 64 KiB/s that a small message needs
CALL = 300 << 10
SECONDS = 15
SETTLED = 3  # seconds after which no call of the other is refused
INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = 3, 4, 8

arguments = None


class CallerSharesTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        tokens = pathlib.Path(folder) / "tokens"
        tokens.write_text(f"reader {GREEDY}\nreader {OTHER}\n")
        tokens.chmod(0o600)
        self.server = self.enterContext(Phimapd(arguments, f"--token_file={tokens}", f"--memory_bytes={MEMORY}"))

    def begin(self, connection, stream, token, size):
        """Begins a Transform whose message has `size` bytes, of which none are sent."""
        connection.send(http2_frames.request(
            stream, "/phimap.v1.TransformService/Transform", authorization=f"Bearer {token}"))
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
