"""HTTP/2 written by hand, for frames that no client library sends.

Request headers are written as HPACK literals. Of the server's answers, only the frames, the windows and the status of
each call are evaluated.
"""

import select
import socket
import ssl
import struct
import time

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
HEADER_TABLE_SIZE, INITIAL_WINDOW = 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CANCEL, REFUSED_STREAM = 8, 7
TRANSFORM = "/phimap.v1.TransformService/Transform"
TRANSFORM_STREAM = "/phimap.v1.TransformService/TransformStream"
BUILD = "/phimap.v1.MappingService/Build"
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
HEALTH_WATCH = "/grpc.health.v1.Health/Watch"
INFER = "/inference.GRPCInferenceService/ModelInfer"

# "grpc-status" in HPACK's Huffman code (RFC 7541, appendix B), preceded by its length. In an answer, the value
# follows with its own length. It has one or two digits and is not Huffman-coded, because the code would not make it
# shorter.
_CODE = {"-": "010110", "a": "00011", "c": "00100", "g": "100110", "p": "101011", "r": "101100", "s": "01000",
         "t": "01001", "u": "101101"}
_BITS = "".join(_CODE[letter] for letter in "grpc-status")
_BITS += "1" * (-len(_BITS) % 8)
STATUS_NAME = bytes([0x80 | len(_BITS) // 8]) + int(_BITS, 2).to_bytes(len(_BITS) // 8, "big")


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def setting(name, value):
    return struct.pack(">HI", name, value)


def length(size):
    """Encodes a length as HPACK does, in a prefix of 7 bits."""
    if size < 127:
        return bytes([size])
    size -= 127
    out = b"\x7f"
    while size >= 128:
        out += bytes([size % 128 | 128])
        size //= 128
    return out + bytes([size])


def header(name, value):
    """Encodes a header field as a literal that is not added to the dynamic table."""
    name, value = name.encode(), value.encode()
    return b"\0" + length(len(name)) + name + length(len(value)) + value


def request_headers(path, **more):
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test", "te": "trailers",
              "content-type": "application/grpc", **more}
    return b"".join(header(name, value) for name, value in fields.items())


def request(stream, path, end=False, **more):
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, request_headers(path, **more))


def message(payload, declared=None):
    """Frames a payload as gRPC does. If `declared` is given, the frame announces that many bytes instead of the
    payload's size."""
    return struct.pack(">BI", 0, len(payload) if declared is None else declared) + payload


class Connection:
    """One connection, with TLS if a context is given. Frames of the server are handled only when read() is called."""

    def __init__(self, address, window=65535, settings=True, tls=None):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self.unread = bytearray()
        self.first_window = 65535
        self.window = 65535
        self.windows = {}  # by stream: bytes granted beyond first_window, minus bytes sent
        self.statuses = {}  # by stream
        self.resets = {}
        self.received = {}  # by stream: bytes in DATA frames
        self.counts = {}  # by type of frame: number of frames
        self.closed = False
        self.acknowledges = settings
        first = setting(HEADER_TABLE_SIZE, 0) + setting(INITIAL_WINDOW, window)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, first) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**30)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends `data` as it is, even if it is not valid HTTP/2. Returns False if the server has closed the
        connection."""
        try:
            self.socket.sendall(data)
        except OSError:
            self.closed = True
        return not self.closed

    def room(self, stream):
        return min(16384, self.window, self.first_window + self.windows.get(stream, 0))

    def send_data(self, stream, data, end=False, patience=1.0):
        """Sends `data` as fast as flow control allows. Gives up when no byte has been allowed for `patience` seconds.
        Returns the number of bytes sent."""
        sent = 0
        while not self.closed and stream not in self.statuses and stream not in self.resets:
            if sent == len(data):
                if end:
                    self.send(frame(DATA, END_STREAM, stream))
                break
            size = min(self.room(stream), len(data) - sent)
            if size <= 0:
                if not self.read(patience):
                    break
                continue
            if not self.send(frame(DATA, 0, stream, data[sent:sent + size])):
                break
            sent += size
            self.window -= size
            self.windows[stream] = self.windows.get(stream, 0) - size
            self.read(0)
        return sent

    def read(self, seconds, size=1 << 18):
        """Waits at most `seconds` for bytes, and handles at most `size` of them. Returns False if none arrived."""
        try:
            decrypted = self.socket.pending() if isinstance(self.socket, ssl.SSLSocket) else 0
            if not decrypted and not select.select([self.socket], [], [], seconds)[0]:
                return False
            came = self.socket.recv(size)
        except OSError:
            came = b""
        if not came:
            self.closed = True
            return False
        self.unread += came
        while len(self.unread) >= 9:
            size = int.from_bytes(self.unread[:3], "big")
            if len(self.unread) < 9 + size:
                break
            head, payload = bytes(self.unread[3:9]), bytes(self.unread[9:9 + size])
            del self.unread[:9 + size]
            self.handle(head[0], head[1], int.from_bytes(head[2:], "big"), payload)
        return True

    def read_until(self, done, seconds=10):
        """Reads until `done()` returns true, for at most `seconds`. Returns the final value of `done()`."""
        until = time.monotonic() + seconds
        while not done() and not self.closed and time.monotonic() < until:
            self.read(max(0, min(0.1, until - time.monotonic())))
        return done()

    def handle(self, kind, flags, stream, payload):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == WINDOW_UPDATE:
            grown = int.from_bytes(payload, "big")
            if stream == 0:
                self.window += grown
            else:
                self.windows[stream] = self.windows.get(stream, 0) + grown
        elif kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == INITIAL_WINDOW:
                    self.first_window = value
            if self.acknowledges:
                self.send(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.send(frame(PING, ACK, 0, payload))
        elif kind == DATA:
            self.received[stream] = self.received.get(stream, 0) + len(payload)
        elif kind == HEADERS:
            for name in (STATUS_NAME, b"\x0bgrpc-status"):
                at = payload.find(name) + len(name)
                if at >= len(name):
                    self.statuses[stream] = int(payload[at + 1:at + 1 + payload[at]])
        elif kind == RST_STREAM:
            self.resets[stream] = int.from_bytes(payload, "big")
