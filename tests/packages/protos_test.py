"""Tests the protos as a product: from the tarball alone, protoc generates clients; with the descriptor set alone, a client
without generated code finds all services of a real phimapd and calls them."""

import contextlib
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

import grpc
import server
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PRODUCT = next(pathlib.Path(os.environ["BUILD"], "protos").glob("*.tar.gz"))
DESCRIPTORS = PRODUCT.with_name(PRODUCT.name.replace(".tar.gz", ".binpb"))


class ProtosTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def descriptors(self):
        return descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes())

    def test_the_tarball_is_all_that_protoc_needs(self):
        with tarfile.open(PRODUCT) as archive:
            archive.extractall(self.folder)
        (root,) = self.folder.iterdir()
        self.assertEqual(root.name, PRODUCT.name.removesuffix(".tar.gz"))
        self.assertTrue((root / "LICENSE").is_file())
        protos = sorted(str(path.relative_to(root)) for path in root.rglob("*.proto"))
        self.assertIn("phimap/v1/transform_service.proto", protos)
        out = self.folder / "out"
        out.mkdir()
        subprocess.run(["protoc", f"--cpp_out={out}", f"--python_out={out}", "-I", root, *protos], check=True)
        self.assertEqual(len(list(out.rglob("*_pb2.py"))), len(protos))
        # Both parts of the product have the same files.
        described = {file.name for file in self.descriptors().file if not file.name.startswith("google/")}
        self.assertEqual(described, set(protos))

    def test_the_descriptor_set_has_comments_and_imports(self):
        files = {file.name: file for file in self.descriptors().file}
        self.assertIn("google/protobuf/timestamp.proto", files)
        comments = [place.leading_comments for place in files["phimap/v1/mapping.proto"].source_code_info.location]
        self.assertTrue(any(comments))

    def test_a_client_with_the_descriptor_set_alone_calls_each_service_that_the_server_lists(self):
        pool = descriptor_pool.DescriptorPool()
        for file in self.descriptors().file:
            pool.Add(file)

        def message(name, **fields):
            return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(name))(**fields)

        with contextlib.closing(server.Server()) as running, grpc.insecure_channel(running.address) as channel:
            running.build(landmarks=20)
            reflection = channel.stream_stream(
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=type(message("grpc.reflection.v1.ServerReflectionResponse")).FromString)
            (answer,) = reflection(iter([message("grpc.reflection.v1.ServerReflectionRequest", list_services="")]))
            listed = [service.name for service in answer.list_services_response.service]
            self.assertIn("phimap.v1.TransformService", listed)
            for name in listed:
                self.assertEqual(pool.FindServiceByName(name).full_name, name)

            transform = channel.unary_unary(
                "/phimap.v1.TransformService/Transform",
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=type(message("phimap.v1.TransformResponse")).FromString)
            request = message("phimap.v1.TransformRequest")
            request.reference = "letters"
            request.examples.dense.rows = 1
            request.examples.dense.columns = 16
            request.examples.dense.numbers.values.extend(range(16))
            answer = transform(request)
            self.assertEqual(answer.version.number, 1)
            self.assertEqual(answer.features.rows, 1)


if __name__ == "__main__":
    unittest.main()
