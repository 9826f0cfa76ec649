"""Tests the HAProxy configurations of deploy/. A client that reads none of its answers must not slow down other
clients behind the same HAProxy."""

import os
import pathlib
import socket
import struct
import tempfile
import threading
import unittest

import http2_frames as http2
import numpy as np
import proxies
from restarts_test import PATIENCE_SECONDS, Server

import phimap
from phimap.v1 import transform_service_pb2 as transform_pb

CLIENTS = 8
CALLS = 20
COLUMNS = 4
# A request of 4 KiB gets an answer of 4 MiB. The requests fit into the initial flow-control windows, and the answers
# fill all buffers between the server and the client.
DIMENSIONS, UNREAD_ROWS, UNREAD_CALLS = 4096, 256, 4


class UnreadAnswers:
    """A connection with very large flow-control windows, and calls whose answers nobody reads."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        request = transform_pb.TransformRequest(reference="wide@1")
        dense = request.examples.dense
        dense.rows, dense.columns, dense.float32_le = UNREAD_ROWS, COLUMNS, bytes(UNREAD_ROWS * COLUMNS * 4)
        body = http2.message(request.SerializeToString())
        largest = 2**31 - 1
        self._socket.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, http2.setting(http2.INITIAL_WINDOW, largest)) +
                             http2.frame(http2.WINDOW_UPDATE, 0, 0, struct.pack(">I", largest - 65535)))
        for stream in range(1, 2 * UNREAD_CALLS, 2):
            self._socket.sendall(http2.request(stream, http2.TRANSFORM) +
                                 http2.frame(http2.DATA, http2.END_STREAM, stream, body))

    def close(self):
        self._socket.close()


class UnreadAnswersTest(unittest.TestCase):
    def others_are_answered(self, proxy):
        if not proxy.path():
            self.skipTest(f"{proxy.program} is not installed: tools/setup installs it")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        # There is only one server, so that every client uses the server with the unread answers.
        server = Server(folder, 1)
        self.addCleanup(server.stop)
        rows = np.random.default_rng(1).standard_normal((64, COLUMNS)).astype(np.float32)
        with phimap.Client(server.address) as client:
            client.build("wide", rows, spec=f"fourier(dimensions={DIMENSIONS})", kernel="rbf(gamma=0.1)")
        nowhere = f"127.31.7.{os.getpid() % 250 + 1}:7450"
        with proxy(folder, [server.address, nowhere]) as running:
            clients = [self.enterContext(phimap.Client(running.address)) for _ in range(CLIENTS)]
            for client in clients:
                client.transform("wide@1", rows[:1])
            before = server.metric("phimap_transform_rows_total")
            unread = UnreadAnswers(running.socket)
            self.addCleanup(unread.close)
            deadline = threading.Event()
            while server.metric("phimap_transform_rows_total") < before + UNREAD_ROWS * UNREAD_CALLS:
                deadline.wait(0.01)  # ctest ends a test that waits for ever
            failures = []
            threads = [threading.Thread(target=self.call, args=(client, rows, failures)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    @staticmethod
    def call(client, rows, failures):
        try:
            for i in range(CALLS):
                client.transform("wide@1", rows[i:i + 1], timeout=PATIENCE_SECONDS / 4)
        except phimap.Error as error:
            failures.append(repr(error))

    def test_with_a_store_each(self):
        self.others_are_answered(proxies.Haproxy)

    def test_with_one_store(self):
        self.others_are_answered(proxies.SharedStoreHaproxy)


if __name__ == "__main__":
    unittest.main()
