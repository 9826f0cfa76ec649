"""Tests clients that announce a large message, send all of it except the last byte, and wait. All of them together
may take only a bounded part of the server's memory.

    half_messages_test.py --phimapd=… --phimap=… [--instrumented]

--instrumented means that the programs are built with a sanitizer. A sanitizer needs more memory than the messages do,
so the memory is not checked then.
"""

import threading
import unittest

from http2_frames import INFER, Connection, message, request
from phimapd import MIB, Phimapd, take_flags

MESSAGE = 15 * MIB
MEMORY = 64 * MIB
BASE = 64 * MIB  # memory of the process itself and of its connections
CALLERS = 40

arguments = None


class Caller(Connection):
    """One connection with one call, whose message lacks its last byte."""

    def send_all_but_a_byte(self):
        """Stops when the server has ended the call or the connection, or when flow control has allowed no byte for
        5 s."""
        self.send(request(1, INFER))
        self.sent = self.send_data(1, message(bytes(MESSAGE))[:-1], patience=5)

    def ended(self):
        return self.closed or 1 in self.resets or 1 in self.statuses


class HalfMessagesTest(unittest.TestCase):
    def test_unfinished_messages_are_held_up_to_a_limit_and_others_are_served(self):
        server = self.enterContext(Phimapd(arguments, f"--memory_bytes={MEMORY}"))
        callers = [self.enterContext(Caller(server.address)) for _ in range(CALLERS)]
        threads = [threading.Thread(target=caller.send_all_but_a_byte) for caller in callers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for caller in callers:
            caller.read_until(caller.ended, seconds=0.5)
        held = sum(caller.sent for caller in callers if not caller.ended())
        self.assertLessEqual(held, MEMORY)
        self.assertGreater(held, 0)
        self.assertLess(8 * MEMORY, CALLERS * MESSAGE)
        if not arguments.instrumented:
            self.assertLess(server.status_bytes("VmHWM"), MEMORY + BASE)
        server.phimap("list")


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", switches=["instrumented"])
    unittest.main()
