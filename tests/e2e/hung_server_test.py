"""Tests HAProxy with deploy/haproxy/shared_store.cfg. Calls to a server that hangs must end, and calls to a server
that drains must continue."""

import os
import pathlib
import queue
import signal
import tempfile
import threading
import unittest

import grpc
import numpy as np
import proxies
from restarts_test import PATIENCE_SECONDS, Server

import phimap
from phimap.v1 import transform_service_pb2 as transform_pb

ROW = np.zeros((1, 4), np.float32)


class HungServer(Server):
    def send_signal(self, number):
        self._process.send_signal(number)

    def hang(self):
        """Pauses the process. Returns when none of its threads runs any more."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def wait(self):
        return self._process.wait(PATIENCE_SECONDS)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


class Stream:
    """A TransformStream that sends one row at a time."""

    def __init__(self, channel):
        method = channel.stream_stream("/phimap.v1.TransformService/TransformStream",
                                       request_serializer=transform_pb.TransformRequest.SerializeToString,
                                       response_deserializer=transform_pb.TransformResponse.FromString)
        self._requests = queue.Queue()
        self._call = method(iter(self._requests.get, None), timeout=PATIENCE_SECONDS)
        self._reference = "m@1"

    def ask(self):
        request = transform_pb.TransformRequest(reference=self._reference)
        dense = request.examples.dense
        dense.rows, dense.columns, dense.float32_le = *ROW.shape, ROW.tobytes()
        self._reference = ""
        self._requests.put(request)
        return next(self._call)

    def end(self):
        self._requests.put(None)
        return list(self._call), self._call.code()


@unittest.skipUnless(proxies.Haproxy.path(), "haproxy is not installed: tools/setup installs it")
class HungServerTest(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.server = HungServer(folder, 1, "--lame_duck_seconds=1", f"--drain_seconds={PATIENCE_SECONDS}")
        self.addCleanup(self.server.close)
        with phimap.Client(self.server.address) as client:
            rows = np.random.default_rng(1).standard_normal((100, 4)).astype(np.float32)
            client.build("m", rows, spec="f2(landmarks=16)", kernel="rbf(gamma=0.1)")
        nowhere = f"127.31.7.{os.getpid() % 250 + 1}:7450"
        self.proxy = self.enterContext(proxies.SharedStoreHaproxy(folder, [self.server.address, nowhere]))
        self.stream = Stream(self.enterContext(self.proxy.channel()))
        self.stream.ask()

    def await_log(self, text):
        pause = threading.Event()
        while text not in self.proxy.log.read_text():
            pause.wait(0.05)  # ctest ends a test that waits for ever

    def test_calls_of_a_server_that_hangs_end(self):
        self.server.hang()
        with self.assertRaises(grpc.RpcError) as raised:
            self.stream.ask()
        self.assertNotEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_calls_of_a_server_that_drains_go_on(self):
        self.server.send_signal(signal.SIGTERM)
        self.await_log("servers/first is stopping")
        for _ in range(100):
            self.stream.ask()
        self.assertEqual(self.stream.end(), ([], grpc.StatusCode.OK))
        self.assertEqual(self.server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
