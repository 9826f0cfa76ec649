"""Tests clients that announce a large message, send all of it except the last byte, and wait. All of them together
may take only a bounded part of the server's memory.

    half_messages_test.py --phimapd=… --phimap=… [--instrumented]

--instrumented means that the programs are built with a sanitizer. A sanitizer needs more memory than the messages do,
so the memory is not checked then.
"""

import argparse
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

MESSAGE = 15 << 20
MEMORY = 64 << 20
BASE = 64 << 20  # memory of the process itself and of its connections
CALLERS = 40

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_HEADERS, ACK = 4, 1

arguments = None


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


REQUEST = b"".join(header(name, value) for name, value in (
    (b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
    (b":authority", b"test"), (b"te", b"trailers"), (b"content-type", b"application/grpc")))


class Caller:
    """One connection with one call, in hand-written HTTP/2, because no client library leaves a message unfinished."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=5)
        self.unread = b""
        self.windows = {0: 65535, 1: 65535}
        self.sent = 0
        self.ended = False
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)
                            + frame(HEADERS, END_HEADERS, 1, REQUEST))

    def send_all_but_a_byte(self):
        """Sends the message except its last byte. Stops when the server has ended the call or the connection, or when
        flow control has allowed no byte for 5 s."""
        message = struct.pack(">BI", 0, MESSAGE) + bytes(MESSAGE)
        try:
            while self.sent < len(message) - 1 and not self.ended:
                size = min(16384, len(message) - 1 - self.sent, *self.windows.values())
                if size > 0:
                    self.socket.sendall(frame(DATA, 0, 1, message[self.sent:self.sent + size]))
                    self.sent += size
                    for stream in self.windows:
                        self.windows[stream] -= size
                else:
                    self.read_frame()
        except OSError:
            pass

    def settle(self):
        """Finds out whether the server has ended the call after everything was sent."""
        self.socket.settimeout(0.5)
        try:
            while not self.ended:
                self.read_frame()
        except TimeoutError:
            pass  # the server keeps the call open
        except OSError:
            self.ended = True

    def read_frame(self):
        size = int.from_bytes(self.read(3), "big")
        kind, flags = self.read(2)
        stream = int.from_bytes(self.read(4), "big")
        payload = self.read(size)
        if kind == WINDOW_UPDATE:
            self.windows[stream] += int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            for at in range(0, size, 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == 4:  # SETTINGS_INITIAL_WINDOW_SIZE, which was 65535 so far
                    self.windows[1] += value - 65535
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind in (RST_STREAM, GOAWAY):
            self.ended = True

    def read(self, size):
        while len(self.unread) < size:
            came = self.socket.recv(65536)
            if not came:
                raise ConnectionError("the server closed the connection")
            self.unread += came
        taken, self.unread = self.unread[:size], self.unread[size:]
        return taken


class HalfMessagesTest(unittest.TestCase):
    def test_unfinished_messages_are_held_up_to_a_limit_and_others_are_served(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        server = subprocess.Popen(
            [arguments.phimapd, f"--data_dir={folder.name}/data", "--listen=127.0.0.1:0", "--http=none",
             "--log_level=error", f"--memory_bytes={MEMORY}"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        address = server.stdout.readline().split("grpc=")[1].split()[0]
        callers = [Caller(address) for _ in range(CALLERS)]
        for caller in callers:
            self.addCleanup(caller.socket.close)
        threads = [threading.Thread(target=caller.send_all_but_a_byte) for caller in callers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for caller in callers:
            caller.settle()
        held = sum(caller.sent for caller in callers if not caller.ended)
        self.assertLessEqual(held, MEMORY)
        self.assertGreater(held, 0)
        self.assertLess(8 * MEMORY, CALLERS * MESSAGE)
        with open(f"/proc/{server.pid}/status") as status:
            [peak] = [int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:")]
        if not arguments.instrumented:
            self.assertLess(peak, MEMORY + BASE)
        answer = subprocess.run([arguments.phimap, f"--server={address}", "list"], capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(answer.returncode, 0, answer.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--instrumented", action="store_true")
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
