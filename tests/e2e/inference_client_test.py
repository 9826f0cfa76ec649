"""Tests a client that uses the Open Inference Protocol, and knows nothing about phimap except that protocol's proto.

The client's stubs are generated from that proto alone. The features that it gets are compared, bit for bit, with
those that the command `phimap` gets for the same rows.

    inference_client_test.py --phimapd=… --phimap=… --protoc=… --plugin=… --proto_dir=…
"""

import hashlib
import importlib
import pathlib
import subprocess
import sys
import tempfile
import unittest

import grpc
import numpy as np
from phimapd import Phimapd, take_flags

PROTO = "inference/inference_service.proto"
DATATYPES = {"FP32": np.float32, "FP64": np.float64}

arguments = None


def generate_stubs(folder):
    subprocess.run(
        [arguments.protoc, f"-I{arguments.proto_dir}", f"--python_out={folder}", f"--grpc_out={folder}",
         f"--plugin=protoc-gen-grpc={arguments.plugin}", PROTO],
        check=True)
    sys.path.insert(0, str(folder))
    return (importlib.import_module("inference.inference_service_pb2"),
            importlib.import_module("inference.inference_service_pb2_grpc"))


class InferenceClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        stubs = cls.folder / "stubs"
        stubs.mkdir()
        cls.pb2, pb2_grpc = generate_stubs(stubs)
        cls.server = Phimapd(arguments)
        cls.addClassCleanup(cls.server.__exit__)
        cls.address = cls.server.address
        cls.channel = grpc.insecure_channel(cls.address, options=[("grpc.enable_http_proxy", 0)])
        cls.addClassCleanup(cls.channel.close)
        grpc.channel_ready_future(cls.channel).result(timeout=60)
        cls.stub = pb2_grpc.GRPCInferenceServiceStub(cls.channel)
        cls.rows = np.random.default_rng(1).uniform(-1, 1, (300, 5)).astype(np.float32)
        np.save(cls.folder / "rows.npy", cls.rows)
        cls.native = {name: cls.build(name, serving)
                      for name, serving in (("single", "float32"), ("double", "float64"))}

    @classmethod
    def build(cls, name, serving):
        """Builds a version and returns the features that the native client gets for all rows."""
        cls.server.phimap("build", name, f"--input={cls.folder}/rows.npy", "--kernel=rbf(gamma=0.5)",
                   f"--spec=f2(landmarks=40, serving_type={serving})")
        features = cls.folder / f"{name}.npy"
        cls.server.phimap("transform", name, f"--input={cls.folder}/rows.npy", f"--output={features}")
        return np.load(features)

    def request(self, model, rows, raw):
        """Makes a request according to the model's metadata. Apart from these, only the model's name is known
        here."""
        metadata = self.stub.ModelMetadata(self.pb2.ModelMetadataRequest(name=model))
        tensor = metadata.inputs[0]
        self.assertEqual(list(tensor.shape), [-1, rows.shape[1]])
        request = self.pb2.ModelInferRequest(model_name=model)
        datatype = {np.dtype(kind): name for name, kind in DATATYPES.items()}[rows.dtype]
        x = request.inputs.add(name=tensor.name, datatype=datatype, shape=rows.shape)
        if raw:
            request.raw_input_contents.append(rows.tobytes())
        else:
            getattr(x.contents, f"{datatype.lower()}_contents").extend(rows.ravel().tolist())
        return request

    @staticmethod
    def features(response):
        output = response.outputs[0]
        numbers = np.frombuffer(response.raw_output_contents[0], DATATYPES[output.datatype])
        return numbers.reshape(output.shape)

    def test_raw_and_typed_contents_of_either_precision_get_the_bits_of_the_native_client(self):
        for model, native in self.native.items():
            for kind in DATATYPES.values():
                for raw in (True, False):
                    with self.subTest(model=model, kind=kind.__name__, raw=raw):
                        answer = self.stub.ModelInfer(self.request(model, self.rows.astype(kind), raw))
                        features = self.features(answer)
                        self.assertEqual(features.dtype, native.dtype)
                        self.assertEqual(features.shape, native.shape)
                        self.assertEqual(features.tobytes(), native.tobytes())

    def test_a_digest_or_the_beginning_of_it_is_a_version(self):
        artifact = self.folder / "single.phimap"
        self.server.phimap("export", "single", f"--output={artifact}")
        digest = hashlib.sha256(artifact.read_bytes()).hexdigest()
        request = self.request("single", self.rows, raw=True)
        for digits in (7, 64):
            request.model_version = f"sha256:{digest[:digits]}"
            answer = self.stub.ModelInfer(request)
            self.assertEqual(answer.model_version, "1")
            self.assertEqual(self.features(answer).tobytes(), self.native["single"].tobytes())
            ready = self.pb2.ModelReadyRequest(name="single", version=request.model_version)
            self.assertTrue(self.stub.ModelReady(ready).ready)
        request.model_version = "sha256:" + "0" * 64
        with self.assertRaises(grpc.RpcError) as raised:
            self.stub.ModelInfer(request)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn("model_version", raised.exception.details())

    def test_a_row_alone_has_the_bits_it_has_among_others(self):
        for row in (0, 7, 299):
            answer = self.stub.ModelInfer(self.request("single", self.rows[row:row + 1], raw=True))
            self.assertEqual(self.features(answer).tobytes(), self.native["single"][row].tobytes())

    def test_a_stream_answers_each_request_in_its_turn_and_outlives_those_that_fail(self):
        requests = [self.request("single" if i % 2 else "double", self.rows[i:i + 3], raw=i % 3 == 0)
                    for i in range(60)]
        for i, request in enumerate(requests):
            request.id = str(i)
        requests[7].model_name = "nobody"
        requests[8].inputs[0].parameters["shared_memory_region"].string_param = "rows"
        requests[9].outputs.add(name="features").parameters["classification"].int64_param = 3
        answers = list(self.stub.ModelStreamInfer(iter(requests), timeout=60))
        self.assertEqual([answer.infer_response.id for answer in answers], [request.id for request in requests])
        self.assertEqual({i: answer.error_message.split(":")[0] for i, answer in enumerate(answers) if answer.error_message},
                         {7: "MAPPING_NOT_FOUND", 8: "PARAMETER_NOT_SUPPORTED", 9: "PARAMETER_NOT_SUPPORTED"})
        for i, answer in enumerate(answers):
            self.assertTrue(answer.infer_response.parameters["triton_final_response"].bool_param)
            if not answer.error_message:
                native = self.native["single" if i % 2 else "double"]
                self.assertEqual(self.features(answer.infer_response).tobytes(), native[i:i + 3].tobytes())

    def test_triton_s_other_calls_are_answered(self):
        self.assertEqual(list(self.stub.ServerMetadata(self.pb2.ServerMetadataRequest()).extensions),
                         ["model_configuration", "statistics"])
        config = self.stub.ModelConfig(self.pb2.ModelConfigRequest(name="single")).config
        self.assertEqual((list(config.input[0].dims), list(config.output[0].dims)),
                         ([5], [self.native["single"].shape[1]]))
        index = self.stub.RepositoryIndex(self.pb2.RepositoryIndexRequest(ready=True))
        self.assertEqual([(model.name, model.version, model.state) for model in index.models],
                         [("double", "1", "READY"), ("single", "1", "READY")])

        def rows():
            statistics = self.stub.ModelStatistics(self.pb2.ModelStatisticsRequest(name="single")).model_stats
            return statistics[0].inference_count

        before = rows()
        self.stub.ModelInfer(self.request("single", self.rows[:11], raw=True))
        self.assertEqual(rows(), before + 11)
        with self.assertRaises(grpc.RpcError) as refused:
            self.channel.unary_unary("/inference.GRPCInferenceService/RepositoryModelLoad")(b"")
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_the_server_and_its_models_describe_themselves(self):
        self.assertTrue(self.stub.ServerLive(self.pb2.ServerLiveRequest()).live)
        self.assertTrue(self.stub.ServerReady(self.pb2.ServerReadyRequest()).ready)
        self.assertEqual(self.stub.ServerMetadata(self.pb2.ServerMetadataRequest()).name, "phimap")
        self.assertTrue(self.stub.ModelReady(self.pb2.ModelReadyRequest(name="single", version="1")).ready)
        metadata = self.stub.ModelMetadata(self.pb2.ModelMetadataRequest(name="double"))
        self.assertEqual(list(metadata.versions), ["1"])
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in metadata.outputs],
                         [("features", "FP64", [-1, self.native["double"].shape[1]]), ("residual", "FP64", [-1, 1])])

    def test_the_answer_carries_the_id_and_takes_timeout_and_outputs(self):
        request = self.request("single", self.rows[:2], raw=True)
        request.id = "one request"
        request.parameters["timeout"].int64_param = 60_000_000
        request.outputs.add(name="features")
        answer = self.stub.ModelInfer(request, timeout=60)
        self.assertEqual((answer.id, answer.model_name, answer.model_version), ("one request", "single", "1"))

    def refusal(self, request):
        with self.assertRaises(grpc.RpcError) as raised:
            self.stub.ModelInfer(request)
        return raised.exception.code(), raised.exception.details()

    def test_a_malformed_request_is_told_what_is_wrong_with_it(self):
        def nan(request):
            rows = self.rows[:2].copy()
            rows[1, 3] = np.nan
            request.raw_input_contents[0] = rows.tobytes()

        cases = [
            (lambda r: r.inputs[0].shape.__setitem__(1, 4),
             ["raw_input_contents[0]", '"x"', "FP32", "[2, 4]", "32 bytes", "got 40"]),
            (lambda r: r.inputs[0].shape.__setitem__(0, -1), ["inputs[x].shape", "[-1, 5]"]),
            (lambda r: setattr(r.inputs[0], "datatype", "INT8"), ["inputs[x].datatype", "FP32 or FP64", "INT8"]),
            (lambda r: r.inputs.add(name="y"), ["inputs", '"x", "y"']),
            (lambda r: r.outputs.add(name="logits"), ["outputs[0].name", '"logits"', '"features"']),
            (lambda r: r.parameters["timeout"].SetInParent(), ["parameters[timeout]", "microseconds", "nothing"]),
            (lambda r: r.inputs[0].contents.fp32_contents.append(1), ["inputs[x].contents", "raw_input_contents"]),
            (nan, ["inputs[x].rows[1].columns[3]", "nan"]),
        ]
        for change, words in cases:
            request = self.request("single", self.rows[:2], raw=True)
            change(request)
            code, details = self.refusal(request)
            with self.subTest(details):
                self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
                for word in words:
                    self.assertIn(word, details)

    def test_an_unknown_model_or_version_is_not_found(self):
        for model, version in (("nothing", ""), ("single", "2"), ("single", "prod")):
            request = self.request("single", self.rows[:1], raw=True)
            request.model_name, request.model_version = model, version
            self.assertEqual(self.refusal(request)[0], grpc.StatusCode.NOT_FOUND)


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", "protoc", "plugin", "proto_dir")
    unittest.main()
