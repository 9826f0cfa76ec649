"""Runs those test cases of gRPC's interoperability tests that apply to phimap's own calls. The client is grpcio.

tests/interop/node runs the same cases with grpc-js as the client.

    interop_test.py --phimapd=… --phimap=… --protoc=… --plugin=… --proto_dir=…
"""

import hashlib
import queue
import time
import unittest
import uuid

import grpc
import numpy as np

from phimapd import Phimapd, generate_stubs, take_flags

COLUMNS = 16
LANDMARKS = 40
# The largest allowed number of rows of a Transform. Here the request then has 4 MiB, and the answer 10 MiB.
LARGE_ROWS = 65536
# The timeout of every wait. The tests assert nothing else about time.
PATIENCE_SECONDS = 60
CONNECTIONS = 200

arguments = None


class Requests:
    """The requests of a stream. Each is sent when the test says so."""

    def __init__(self, *requests):
        self._queue = queue.Queue()
        for request in requests:
            self.send(request)

    def send(self, request):
        self._queue.put(request)

    def half_close(self):
        self._queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        request = self._queue.get()
        if request is None:
            raise StopIteration
        return request


class InteropTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        module = generate_stubs(cls, arguments)
        cls.examples = module("phimap.v1.examples_pb2")
        cls.mapping = module("phimap.v1.mapping_pb2")
        cls.mappings = module("phimap.v1.mapping_service_pb2")
        cls.transforms = module("phimap.v1.transform_service_pb2")
        cls.mapping_stub = module("phimap.v1.mapping_service_pb2_grpc").MappingServiceStub
        cls.transform_stub = module("phimap.v1.transform_service_pb2_grpc").TransformServiceStub
        cls.server = Phimapd(arguments)
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.build("one", f"f1(landmarks={LANDMARKS})", columns=COLUMNS)
        cls.channel = cls.connect(cls.server)
        cls.addClassCleanup(cls.channel.close)
        cls.mapping_calls = cls.mapping_stub(cls.channel)
        cls.transform_calls = cls.transform_stub(cls.channel)
        cls.rows = np.random.default_rng(2).uniform(-1, 1, (64, COLUMNS)).astype(np.float32)

    @staticmethod
    def connect(server):
        """Opens a new connection. By default, grpcio shares a connection between channels."""
        return grpc.insecure_channel(server.address, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)])

    def dense(self, rows):
        return self.examples.Examples(dense=self.examples.DenseRows(
            rows=rows.shape[0], columns=rows.shape[1], float32_le=rows.tobytes()))

    def transform(self, rows, **options):
        return self.transform_calls.Transform(
            self.transforms.TransformRequest(reference="one", examples=self.dense(rows)), **options)

    def stream_request(self, row, reference=""):
        return self.transforms.TransformRequest(
            reference=reference, examples=self.dense(self.rows[row:row + 1]))

    def build_spec(self, mapping, build_id):
        return self.mappings.BuildRequest(spec=self.mappings.BuildSpec(
            name=mapping, build_id=build_id, spec="f1(landmarks=8)",
            kernel="linear()"))

    def get_build(self, mapping, build_id):
        return self.mapping_calls.GetBuild(
            self.mappings.GetBuildRequest(name=mapping, build_id=build_id))

    def error_of(self, call):
        """Returns the error with which `call`, a function without arguments, fails."""
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return caught.exception

    def await_no_build(self, mapping, build_id):
        """Waits until the server has noticed the end of the stream, and has dropped the build."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                self.get_build(mapping, build_id)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)
                return
        self.fail(f"the build {build_id} is still there although its stream has ended")

    def test_empty_unary(self):
        with Phimapd(arguments) as server, self.connect(server) as channel:
            answer = self.mapping_stub(channel).ListMappings(self.mappings.ListMappingsRequest())
            self.assertEqual(answer.SerializeToString(), b"")

    def test_large_unary(self):
        rows = np.tile(self.rows, (LARGE_ROWS // len(self.rows), 1))
        small = self.transform(self.rows).features
        large = self.transform(rows).features
        self.assertEqual((large.rows, large.columns), (LARGE_ROWS, LANDMARKS))
        self.assertEqual(large.float32_le, small.float32_le * (LARGE_ROWS // len(self.rows)))

    def build(self, mapping, rows, text, columns=COLUMNS):
        """Sends all messages of a build and ends the request stream before it reads anything."""
        build_id = str(uuid.uuid4())
        spec = self.build_spec(mapping, build_id)
        spec.spec.spec = text
        data = np.random.default_rng(3).uniform(-1, 1, (rows, columns)).astype(np.float32)
        requests = Requests(spec)
        for begin in range(0, rows, 500):
            requests.send(self.mappings.BuildRequest(examples=self.dense(data[begin:begin + 500])))
        requests.send(self.mappings.BuildRequest(finish=self.mappings.BuildFinish(row_count=rows)))
        requests.half_close()
        events = list(self.mapping_calls.Build(requests, timeout=PATIENCE_SECONDS))
        self.assertEqual(events[0].accepted.build_id, build_id)
        return events[-1].version

    def test_client_streaming_and_half_close(self):
        version = self.build("streamed", rows=2000, text="f1(landmarks=8)")
        self.assertEqual(version.ref.number, 1)
        self.assertEqual(version.certificate.stream_rows, 2000)

    def test_client_stream_that_is_answered_once(self):
        chunks = list(self.mapping_calls.Export(self.mappings.ExportRequest(reference="one")))
        requests = Requests(self.mappings.ImportRequest(name="imported"))
        for chunk in chunks:
            chunk.ClearField("version")
            chunk.ClearField("artifact_size_bytes")
            requests.send(self.mappings.ImportRequest(chunk=chunk))
        digest = hashlib.sha256(b"".join(chunk.data for chunk in chunks)).hexdigest()
        requests.send(self.mappings.ImportRequest(digest=digest))
        requests.half_close()
        self.assertEqual(self.mapping_calls.Import(requests).ref.digest, digest)

    def test_server_streaming_with_a_reader_that_stops_and_goes_on(self):
        # The artifact has 16 MB. This is far more than a connection's flow-control windows and the server's buffers
        # hold.
        self.build("large", rows=4400, text="f1(landmarks=4000)", columns=1000)
        call = self.mapping_calls.Export(self.mappings.ExportRequest(reference="large"))
        first = next(call)
        self.assertGreater(first.artifact_size_bytes, 12 << 20)
        # Other calls on the same connection are answered although the artifact is not read.
        for _ in range(100):
            self.assertEqual(self.transform(self.rows, timeout=PATIENCE_SECONDS).features.rows, len(self.rows))
        received = [first.data]
        for chunk in call:
            self.assertEqual(chunk.offset_bytes, sum(map(len, received)))
            received.append(chunk.data)
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        artifact = b"".join(received)
        self.assertEqual(len(artifact), first.artifact_size_bytes)
        self.assertEqual(hashlib.sha256(artifact).hexdigest(), first.version.digest)

    def test_ping_pong(self):
        expected = self.transform(self.rows).features.float32_le
        requests = Requests()
        call = self.transform_calls.TransformStream(requests, timeout=PATIENCE_SECONDS)
        got = b""
        for row in range(len(self.rows)):
            requests.send(self.stream_request(row, "" if row else "one"))
            got += next(call).features.float32_le
        requests.half_close()
        self.assertEqual(list(call), [])
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        self.assertEqual(got, expected)

    def test_empty_stream(self):
        call = self.transform_calls.TransformStream(iter([]), timeout=PATIENCE_SECONDS)
        self.assertEqual(list(call), [])
        self.assertEqual(call.code(), grpc.StatusCode.OK)

    def test_cancel_after_begin(self):
        requests = Requests()
        call = self.transform_calls.TransformStream(requests)
        call.cancel()
        self.assertEqual(call.code(), grpc.StatusCode.CANCELLED)
        requests.half_close()
        self.assertEqual(self.transform(self.rows).features.rows, len(self.rows))

    def test_cancel_after_first_answer(self):
        build_id = str(uuid.uuid4())
        requests = Requests(self.build_spec("cancelled", build_id))
        call = self.mapping_calls.Build(requests)
        self.assertEqual(next(call).accepted.build_id, build_id)
        self.assertEqual(self.get_build("cancelled", build_id).state, self.mapping.BuildJob.STATE_RECEIVING)
        call.cancel()
        self.assertEqual(call.code(), grpc.StatusCode.CANCELLED)
        requests.half_close()
        self.await_no_build("cancelled", build_id)

    def test_timeout_of_a_stream_that_sleeps(self):
        build_id = str(uuid.uuid4())
        requests = Requests(self.build_spec("slept", build_id))
        call = self.mapping_calls.Build(requests, timeout=0.2)
        self.assertEqual(self.error_of(lambda: list(call)).code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        requests.half_close()
        self.await_no_build("slept", build_id)

    def test_custom_metadata(self):
        metadata = [("x-grpc-test-echo-initial", "test_initial_metadata_value"),
                    ("x-grpc-test-echo-trailing-bin", b"\x0a\x0b\x0a\x0b\x0a\x0b"), ("x-empty-bin", b""),
                    ("x-all-bin", bytes(range(256))), ("x-all-bin", b"\x00")]
        self.assertEqual(self.transform(self.rows, metadata=metadata).features.rows, len(self.rows))
        requests = Requests(self.stream_request(0, "one"))
        requests.half_close()
        self.assertEqual(len(list(self.transform_calls.TransformStream(requests, metadata=metadata))), 1)
        error = self.error_of(lambda: self.mapping_calls.GetMapping(
            self.mappings.GetMappingRequest(name="nobody"), metadata=metadata))
        trailers = dict(error.trailing_metadata())
        self.assertRegex(trailers["phimap-request-id"], "^[0-9a-f]{16}$")
        self.assertIn(b"type.googleapis.com/google.rpc.ErrorInfo", trailers["grpc-status-details-bin"])
        self.assertIn(error.details().encode(), trailers["grpc-status-details-bin"])

    def test_special_status_message(self):
        # In the error message, control characters are escaped. All other characters are unchanged.
        for name, shown in (("größe", "größe"), ("% 100%20%", "% 100%20%"), ("☺ and 😈", "☺ and 😈"),
                            ("\t\ntest with whitespace\r\nand BMP ☺\t\n",
                             r"\t\ntest with whitespace\r\nand BMP ☺\t\n")):
            with self.subTest(name=name):
                error = self.error_of(lambda: self.mapping_calls.GetMapping(
                    self.mappings.GetMappingRequest(name=name)))
                self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
                self.assertTrue(error.details().endswith(f'got "{shown}"'), error.details())

    def test_unimplemented_method_and_service(self):
        for path in ("/phimap.v1.TransformService/UnimplementedCall", "/phimap.v1.Unimplemented/Transform"):
            for kind in (lambda: self.channel.unary_unary(path)(b""),
                         lambda: list(self.channel.stream_stream(path)(iter([b"", b""])))):
                with self.subTest(path=path):
                    error = self.error_of(kind)
                    self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
                    self.assertIn(path, error.details())

    def test_compressed_requests_are_refused_in_words(self):
        for compression, name in ((grpc.Compression.Gzip, "gzip"), (grpc.Compression.Deflate, "deflate")):
            with self.subTest(compression=name):
                error = self.error_of(lambda: self.transform(self.rows * 0, compression=compression))
                self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
                self.assertIn(f'grpc-encoding: expected identity, got "{name}"', error.details())
        self.assertEqual(self.transform(self.rows).features.rows, len(self.rows))

    def test_many_connections(self):
        expected = self.transform(self.rows).features.float32_le
        channels = [self.connect(self.server) for _ in range(CONNECTIONS)]
        for channel in channels:
            self.addCleanup(channel.close)
        request = self.transforms.TransformRequest(reference="one", examples=self.dense(self.rows))
        for _ in range(2):  # the second round uses connections that are already open
            calls = [self.transform_stub(channel).Transform.future(request, timeout=PATIENCE_SECONDS)
                     for channel in channels]
            for call in calls:
                self.assertEqual(call.result().features.float32_le, expected)
        self.assertGreaterEqual(self.server.sockets(), CONNECTIONS)


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", "protoc", "plugin", "proto_dir")
    unittest.main()
