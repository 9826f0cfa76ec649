"""Badly behaved callers, each at a moderate rate. The server may refuse their calls, or not answer them at all."""

import os
import socket
import ssl
import struct

import grpc

from http2_frames import (CANCEL, CONTINUATION, HEADERS, RST_STREAM, TRANSFORM, TRANSFORM_STREAM, Connection,
                          frame, header, message, request, request_headers)
from phimap.v1 import mapping_service_pb2 as service_pb
from phimap.v1 import transform_service_pb2 as transform_pb
from server import IDLE_SECONDS
from work import LIST, TIMEOUT, Worker, Wrong, dense

DEADLINE_EXCEEDED = 4
# The server ends a silent connection or stream within a second after the idle limit. The other nine seconds allow for
# a busy machine.
PATIENCE = IDLE_SECONDS + 10


class Strangers:
    def __init__(self, soak, callers):
        self.soak, self.callers = soak, callers
        host, port = soak.server.address.rsplit(":", 1)
        self.address = (host, int(port))
        self.hello = self._client_hello()

    def workers(self):
        soak = self.soak
        return [Worker(soak, period, step) for period, step in (
            (0.5, self.no_token), (0.5, self.wrong_token), (1, self.forbidden), (1, self.garbage), (1, self.garbage_in_tls),
            (1, self.half_message), (1, self.half_message_without_token), (1, self.endless_header), (1, self.streams_reset),
            (1, self.silent_stream), (0.5, self.half_handshake), (1, self.abandoned_handshake), (0.1, self.connect_and_close),
            (1, self.connect_and_reset), (1, self.unread_answers))]

    @staticmethod
    def connect_to(server):
        return Connection(server.address, tls=server.tls())

    def connect(self):
        return self.connect_to(self.soak.server)

    def bearer(self):
        return {"authorization": f"Bearer {self.soak.server.files.builder}"}

    def _list(self, metadata, code):
        with self.callers.channel() as channel:
            method = channel.unary_unary(LIST, request_serializer=service_pb.ListMappingsRequest.SerializeToString,
                                         response_deserializer=service_pb.ListMappingsResponse.FromString)
            self._expect(method, service_pb.ListMappingsRequest(), metadata, code)

    @staticmethod
    def _expect(method, message_of, metadata, code):
        try:
            method(message_of, metadata=metadata, timeout=TIMEOUT)
        except grpc.RpcError as error:
            if error.code() is not code:
                raise
        else:
            raise Wrong(f"answered, but {code} was expected")

    def no_token(self):
        self._list((), grpc.StatusCode.UNAUTHENTICATED)

    def wrong_token(self):
        self._list((("authorization", f"Bearer {os.urandom(16).hex()}"),), grpc.StatusCode.UNAUTHENTICATED)

    def forbidden(self):
        token = self.soak.server.files.builder
        with self.callers.channel() as channel:
            method = channel.unary_unary("/phimap.v1.MappingService/DeleteMapping",
                                         request_serializer=service_pb.DeleteMappingRequest.SerializeToString)
            self._expect(method, service_pb.DeleteMappingRequest(name="served"),
                         (("authorization", f"Bearer {token}"),), grpc.StatusCode.PERMISSION_DENIED)

    def _raw(self):
        return socket.create_connection(self.address, timeout=PATIENCE)

    @staticmethod
    def _await_end(connection, what):
        """Waits until the server closes the connection."""
        try:
            while connection.recv(65536):
                pass
        except TimeoutError:
            raise Wrong(f"{what}: still connected after {PATIENCE} s") from None
        except OSError:
            pass

    def garbage(self):
        with self._raw() as connection:
            connection.sendall(os.urandom(4096))
            self._await_end(connection, "garbage in place of a handshake")

    def garbage_in_tls(self):
        with self._raw() as plain, self.soak.server.tls().wrap_socket(plain, server_hostname="127.0.0.1") as connection:
            connection.sendall(b"x" + os.urandom(4096))
            self._await_end(connection, "garbage in place of HTTP/2")

    def half_message(self):
        with self.connect() as connection:
            connection.send(request(1, TRANSFORM, **self.bearer()))
            connection.send_data(1, message(bytes(1 << 20), declared=8 << 20), patience=0.2)
            self.soak.stopped.wait(1)

    def half_message_without_token(self):
        with self.connect() as connection:
            connection.send(request(1, TRANSFORM))
            connection.send_data(1, message(bytes(1 << 20), declared=8 << 20), patience=0.2)
            if not connection.read_until(lambda: connection.statuses.get(1) == 16, 10):
                raise Wrong(f"half a message without a token: {connection.statuses} {connection.resets}")

    def endless_header(self):
        with self.connect() as connection:
            connection.send(frame(HEADERS, 0, 1, request_headers(TRANSFORM)))
            for _ in range(64):
                if not connection.send(frame(CONTINUATION, 0, 1, header("x-large", "a" * 16000))):
                    break
                connection.read(0)

    def streams_reset(self):
        reset = struct.pack(">I", CANCEL)
        with self.connect() as connection:
            for stream in range(1, 401, 2):
                connection.send(request(stream, TRANSFORM_STREAM, **self.bearer()) + frame(RST_STREAM, 0, stream, reset))
                connection.read(0)

    def silent_stream(self):
        body = message(transform_pb.TransformRequest(
            reference="served@1", examples=dense(self.callers.rows[:4])).SerializeToString())
        with self.connect() as connection:
            connection.send(request(1, TRANSFORM_STREAM, **self.bearer()))
            connection.send_data(1, body)
            ended = connection.read_until(lambda: 1 in connection.statuses or self.soak.stopped.is_set(), PATIENCE)
            if not self.soak.stopped.is_set() and (not ended or connection.statuses[1] != DEADLINE_EXCEEDED):
                raise Wrong(f"a silent stream: {connection.statuses} {connection.resets} closed={connection.closed}")

    def _client_hello(self):
        """Returns the first message of a TLS client."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.soak.server.tls().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def half_handshake(self):
        """Sends half a ClientHello. The server waits 5 s for the rest."""
        with self._raw() as connection:
            connection.sendall(self.hello[:len(self.hello) // 2])
            if self.soak.stopped.is_set():
                return
            self._await_end(connection, "half a ClientHello")

    def abandoned_handshake(self):
        """Sends a complete ClientHello, and leaves after the server has answered. By then, the server has done the
        expensive arithmetic."""
        with self._raw() as connection:
            connection.sendall(self.hello)
            connection.recv(65536)

    def connect_and_close(self):
        self._raw().close()

    def connect_and_reset(self):
        with self._raw() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def unread_answers(self):
        """Leaves ten answers of 250 KB unread for a second."""
        body = message(transform_pb.TransformRequest(
            reference="served@1", examples=dense(self.callers.rows)).SerializeToString())
        connection = Connection(self.soak.server.address, window=1024, tls=self.soak.server.tls())
        with connection:
            for stream in range(1, 21, 2):
                connection.send(request(stream, TRANSFORM, **self.bearer()))
                connection.send_data(stream, body, end=True)
            self.soak.stopped.wait(1)
