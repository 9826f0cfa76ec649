"""Generates the Python stubs that a user of the Open Inference Protocol would generate from its proto."""

import subprocess
import sys

import document


def generate(folder):
    """Generates `inference.inference_service_pb2` and its stubs in `folder`, and makes them importable."""
    proto = document.SOURCE / "proto"
    subprocess.run(["protoc", f"--proto_path={proto}", f"--python_out={folder}", f"--grpc_out={folder}",
                    "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin",
                    str(proto / "inference/inference_service.proto")], check=True)
    sys.path.insert(0, str(folder))
