"""Tests that clients that fall silent neither occupy a server's resources for ever nor delay its shutdown.

    silent_client_test.py --phimapd=… --phimap=… --protoc=… --plugin=… --proto_dir=…
"""

import queue
import threading
import time
import unittest
import uuid

import grpc
import numpy as np

from http2_frames import DATA, END_STREAM, HEADERS, PING, TRANSFORM, Connection, frame, message, request
from phimapd import Phimapd, generate_stubs, take_flags

# The longest allowed time from the end of the lame duck to the end of the process. Silent calls are found within one
# second, get a status within another second, and are reset half a second later. One more second allows for a busy
# machine.
END_SECONDS = 3.5
LAME_DUCK = 1

arguments = None


class Stream:
    """A bidirectional stream whose client sends the given requests and then nothing."""

    def __init__(self, method, *requests):
        self.requests = queue.Queue()
        for request in requests:
            self.requests.put(request)
        self.call = method(iter(self.requests.get, None))

    def end(self):
        """Waits until the server has ended the call. Returns the status."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError:
            pass
        # This ends gRPC's sending thread, which is waiting for the next request.
        self.requests.put(None)
        return self.call.code(), self.call.details()


class SilentClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        module = generate_stubs(cls, arguments)
        cls.examples = module("phimap.v1.examples_pb2")
        cls.mapping = module("phimap.v1.mapping_pb2")
        cls.mappings = module("phimap.v1.mapping_service_pb2")
        cls.transforms = module("phimap.v1.transform_service_pb2")
        cls.evaluations = module("phimap.v1.learning_service_pb2")
        cls.mapping_stub = module("phimap.v1.mapping_service_pb2_grpc").MappingServiceStub
        cls.transform_stub = module("phimap.v1.transform_service_pb2_grpc").TransformServiceStub
        cls.evaluation_stub = module("phimap.v1.learning_service_pb2_grpc").LearningServiceStub

    def start(self, *flags, mapping="f1(landmarks=64)", columns=16, rows=500):
        self.server = Phimapd(arguments, *flags)
        self.addCleanup(self.server.__exit__)
        self.server.build("one", mapping, columns=columns, rows=rows)
        self.columns = columns
        self.channel = grpc.insecure_channel(self.server.address, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", -1)])
        self.addCleanup(self.channel.close)

    def dense(self, rows):
        values = np.zeros(rows * self.columns, np.float32).tobytes()
        return self.examples.Examples(
            dense=self.examples.DenseRows(rows=rows, columns=self.columns, float32_le=values))

    def silent_streams(self):
        """Opens two silent streams of each kind. One has sent valid first messages, and the other has sent
        nothing."""
        spec = self.mappings.BuildSpec(name="other", build_id=str(uuid.uuid4()), kernel="rbf(gamma=1)",
                                       spec="f1(landmarks=8)")
        return {
            "TransformStream": Stream(self.transform_stub(self.channel).TransformStream,
                                      self.transforms.TransformRequest(reference="one", examples=self.dense(1))),
            "Build": Stream(self.mapping_stub(self.channel).Build, self.mappings.BuildRequest(spec=spec),
                            self.mappings.BuildRequest(examples=self.dense(10))),
            "Evaluate": Stream(self.evaluation_stub(self.channel).Evaluate, self.evaluations.EvaluateRequest(
                spec=self.evaluations.EvaluationSpec(reference="one"))),
            "TransformStream, not begun": Stream(self.transform_stub(self.channel).TransformStream),
            "Build, not begun": Stream(self.mapping_stub(self.channel).Build),
            "Evaluate, not begun": Stream(self.evaluation_stub(self.channel).Evaluate),
        }

    def test_silent_streams_are_ended_by_their_idle_limits(self):
        self.start("--stream_idle_seconds=1", "--build_idle_seconds=1")
        began = time.monotonic()
        for name, stream in self.silent_streams().items():
            with self.subTest(name):
                # If the server does not end the stream, the timer ends it, and the test fails.
                watchdog = threading.Timer(10, stream.call.cancel)
                watchdog.start()
                code, details = stream.end()
                watchdog.cancel()
                self.assertEqual(code, grpc.StatusCode.DEADLINE_EXCEEDED, details)
                self.assertIn("1s", details)
        seconds = time.monotonic() - began
        print(f"silent streams ended after {seconds:.2f} s, bound 3 s", flush=True)
        self.assertGreater(seconds, 0.9)
        self.assertLess(seconds, 3)

    def test_a_stream_that_speaks_now_and_then_is_not_ended(self):
        self.start("--stream_idle_seconds=1")
        requests = queue.Queue()
        requests.put(self.transforms.TransformRequest(reference="one", examples=self.dense(1)))
        call = self.transform_stub(self.channel).TransformStream(iter(requests.get, None))
        self.addCleanup(requests.put, None)
        next(call)
        for _ in range(4):
            time.sleep(0.5)
            requests.put(self.transforms.TransformRequest(examples=self.dense(1)))
            self.assertEqual(next(call).features.rows, 1)

    def test_silent_streams_do_not_hold_up_the_end(self):
        self.start(f"--lame_duck_seconds={LAME_DUCK}", "--drain_seconds=20")
        streams = self.silent_streams()
        next(streams["TransformStream"].call)
        self.server.terminate()
        began = time.monotonic()
        for name, stream in streams.items():
            with self.subTest(name):
                code, details = stream.end()
                self.assertEqual(code, grpc.StatusCode.UNAVAILABLE, details)
                self.assertIn("shutting down", details)
        self.assertEqual(self.server.process.wait(timeout=30), 0)
        seconds = time.monotonic() - began
        print(f"ended {seconds:.2f} s after SIGTERM, bound {LAME_DUCK + END_SECONDS} s", flush=True)
        self.assertLess(seconds, LAME_DUCK + END_SECONDS)

    def test_an_idle_connection_does_not_hold_up_the_end(self):
        self.start("--lame_duck_seconds=0", "--drain_seconds=20")
        self.server.phimap("list")
        grpc.channel_ready_future(self.channel).result(timeout=10)
        self.server.terminate()
        began = time.monotonic()
        self.assertEqual(self.server.process.wait(timeout=30), 0)
        self.assertLess(time.monotonic() - began, END_SECONDS)

    def test_half_a_request_and_an_unread_answer_do_not_hold_up_the_end(self):
        self.start("--lame_duck_seconds=0", "--drain_seconds=20")
        body = message(self.transforms.TransformRequest(reference="one", examples=self.dense(1)).SerializeToString())
        with Connection(self.server.address, window=0) as client:
            client.send(request(1, TRANSFORM) + frame(DATA, END_STREAM, 1, body))
            client.send(request(3, TRANSFORM) + frame(DATA, 0, 3, body[:-1]))
            # The headers of the first answer arrive. Its message does not, because its flow-control window is 0.
            self.assertTrue(client.read_until(lambda: client.counts.get(HEADERS, 0) > 0))
            self.server.terminate()
            began = time.monotonic()
            client.read_until(lambda: client.closed, seconds=25)
            self.assertEqual(self.server.process.wait(timeout=30), 0)
            self.assertLess(time.monotonic() - began, END_SECONDS)
            # UNAVAILABLE (14) tells the client that the call had not begun, so the client may repeat it on another
            # server.
            self.assertEqual(client.statuses, {3: 14})
            self.assertIn(1, client.resets)

    def test_calls_under_way_finish(self):
        self.start("--lame_duck_seconds=0", "--drain_seconds=20", mapping="f1(landmarks=2000)", columns=256, rows=3000)
        request = self.transforms.TransformRequest(reference="one", examples=self.dense(1000))
        method = self.transform_stub(self.channel).Transform
        method(request)
        calls = [method.future(request) for _ in range(12)]
        stream = Stream(self.transform_stub(self.channel).TransformStream, *(
            self.transforms.TransformRequest(reference="" if i else "one", examples=self.dense(1000))
            for i in range(12)))
        # The stream was opened last. When it has its first answer, all calls have begun.
        first = next(stream.call)
        self.assertEqual(first.features.rows, 1000)
        unfinished = sum(not call.done() for call in calls)
        self.server.terminate()
        stream.requests.put(None)
        answers = 1 + sum(1 for _ in stream.call)
        self.assertEqual((answers, stream.call.code()), (12, grpc.StatusCode.OK))
        for call in calls:
            self.assertEqual(call.code(), grpc.StatusCode.OK, call.details())
        self.assertEqual(self.server.process.wait(timeout=30), 0)
        print(f"{unfinished} unary calls were under way at SIGTERM", flush=True)

    def test_an_answer_on_its_way_arrives_though_the_client_goes_on_sending(self):
        self.start("--lame_duck_seconds=0", "--drain_seconds=20", mapping="f1(landmarks=500)", columns=1)
        body = self.transforms.TransformRequest(reference="one", examples=self.dense(1000)).SerializeToString()
        with Connection(self.server.address, window=2**30) as reader:
            reader.send(request(1, TRANSFORM) + frame(DATA, END_STREAM, 1, message(body)))
            # The answer has been computed, and the server still holds most of its 2 MB.
            self.assertTrue(reader.read_until(lambda: reader.received.get(1, 0) > 0))
            self.server.terminate()
            while reader.read(10, size=16 << 10):
                reader.send(frame(PING, 0, 0, bytes(8)))
                time.sleep(0.001)
            self.assertGreaterEqual(reader.received[1], 2_000_000)
            self.assertEqual(reader.statuses, {1: 0})
        self.assertEqual(self.server.process.wait(timeout=30), 0)


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", "protoc", "plugin", "proto_dir")
    unittest.main()
