"""Sends the same gRPC call again and again, with the bytes of gRPC's C++ and Python clients (grpc-core 1.51): their headers
go into the table of HPACK with a connection's first call, but "authorization", which they send as it is with each call."""

import selectors
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INDEXED_POST, INDEXED_HTTP = b"\x83", b"\x86"
LARGEST_WINDOW = 2**31 - 1


def frame(kind, flags, stream, content):
    return struct.pack(">I", len(content))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + content


def literal(prefix, name, value):
    return prefix + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Connection:
    def __init__(self, address, path, body, token):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._body = body
        self._token = literal(b"\0", "authorization", f"Bearer {token}") if token else b""
        self._first = b"".join([literal(b"@", ":path", path), literal(b"@", ":authority", address), INDEXED_POST, INDEXED_HTTP,
                                literal(b"@", "content-type", "application/grpc"), literal(b"@", "te", "trailers"),
                                literal(b"@", "grpc-accept-encoding", "identity, deflate, gzip"),
                                literal(b"@", "user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)")])
        # The entries of the table, of which the newest is number 62, in the order of the first call's headers.
        self._later = b"\xc3\xc2" + INDEXED_POST + INDEXED_HTTP + b"\xc1\xc0\xbf\xbe"
        self._stream = -1
        self._rest = b""
        self.data_bytes = 0
        self._socket.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, LARGEST_WINDOW)) +
                             frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", LARGEST_WINDOW - 65535)))

    def fileno(self):
        return self._socket.fileno()

    def close(self):
        self._socket.close()

    def call(self):
        block = self._first if self._stream < 0 else self._later
        self._stream += 2
        self._socket.sendall(frame(HEADERS, END_HEADERS, self._stream, block + self._token) +
                             frame(DATA, END_STREAM, self._stream, self._body))

    def receive(self):
        """Takes what has come. Returns whether it ended the call."""
        received = self._socket.recv(1 << 16)
        if not received:
            raise SystemExit("the server ended the connection")
        text, at, ended = self._rest + received, 0, False
        while len(text) - at >= 9:
            size = int.from_bytes(text[at:at + 3], "big")
            if len(text) - at < 9 + size:
                break
            kind, flags = text[at + 3], text[at + 4]
            if kind == DATA:
                self.data_bytes += size
            elif kind == SETTINGS and not flags & ACK:
                self._socket.sendall(frame(SETTINGS, ACK, 0, b""))
            elif kind == PING and not flags & ACK:
                self._socket.sendall(frame(PING, ACK, 0, text[at + 9:at + 9 + size]))
            ended |= kind in (DATA, HEADERS) and bool(flags & END_STREAM)
            at += 9 + size
        self._rest = text[at:]
        return ended


class Load:
    """Connections to a server, each with one call at a time."""

    def __init__(self, address, path, body, connections=4, token=None):
        self._connections = [Connection(address, path, body, token) for _ in range(connections)]
        self._selector = selectors.EpollSelector()
        for connection in self._connections:
            self._selector.register(connection, selectors.EVENT_READ)

    def close(self):
        self._selector.close()
        for connection in self._connections:
            connection.close()

    def make(self, calls):
        """Makes so many calls. Returns the bytes of all answers' messages."""
        before = sum(connection.data_bytes for connection in self._connections)
        begun = ended = 0
        for connection in self._connections[:calls]:
            connection.call()
            begun += 1
        while ended < calls:
            ready = self._selector.select(timeout=10)
            if not ready:
                raise SystemExit(f"no answer for 10 s, after {ended} calls")
            for key, _ in ready:
                if not key.fileobj.receive():
                    continue
                ended += 1
                if begun < calls:
                    key.fileobj.call()
                    begun += 1
        return sum(connection.data_bytes for connection in self._connections) - before
