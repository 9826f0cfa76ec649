"""Imports the clients of Triton and KServe from clones of their repositories, without installing them.

Both packages import far more than their clients use. What Debian does not have of that is stood in for; what the clients
send and how they read answers is their own code."""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types


def triton():
    """The module tritonclient.http."""
    sys.path.insert(0, str(pathlib.Path(os.environ["TRITON_CLIENT_SOURCE"]) / "src/python/library"))
    import tritonclient.http
    return tritonclient.http


def triton_grpc(folder):
    """The module tritonclient.grpc, whose stubs are generated in `folder`, as Triton's own build does."""
    sys.path.insert(0, str(pathlib.Path(os.environ["TRITON_CLIENT_SOURCE"]) / "src/python/library"))
    generate(folder, pathlib.Path(os.environ["TRITON_COMMON_SOURCE"]) / "protobuf", "grpc_service.proto", "model_config.proto")
    for name, generated in (("model_config_pb2", "model_config_pb2"), ("service_pb2", "grpc_service_pb2"),
                            ("service_pb2_grpc", "grpc_service_pb2_grpc")):
        sys.modules[f"tritonclient.grpc.{name}"] = importlib.import_module(generated)
    import tritonclient.grpc
    return tritonclient.grpc


def generate(folder, source, *protos):
    """Generates stubs for Debian's protobuf, and lets Python find them."""
    subprocess.run(["protoc", f"--proto_path={source}", f"--python_out={folder}", f"--grpc_out={folder}",
                    "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin", *protos], check=True)
    sys.path.insert(0, str(folder))


class StandIn(types.ModuleType):
    """A package whose every name is a class that nobody uses."""
    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def stand_in(name, **values):
    module = StandIn(name)
    vars(module).update(values)
    sys.modules[name] = module


def kserve(folder):
    """The modules kserve.inference_client and kserve.protocol.infer_type. `folder`: for what is generated."""
    source = pathlib.Path(os.environ["KSERVE_SOURCE"]) / "python/kserve/kserve"
    # The package's own __init__ imports its server and its client of Kubernetes.
    package = types.ModuleType("kserve")
    package.__path__ = [str(source)]
    sys.modules["kserve"] = package
    if importlib.util.find_spec("cloudevents") is None:
        for name in ("cloudevents", "cloudevents.conversion", "cloudevents.http"):
            stand_in(name)
    if importlib.util.find_spec("psutil") is None:
        stand_in("psutil")
    # The server's types, for another pydantic than Debian's.
    for name in ("kserve.protocol.rest", "kserve.protocol.rest.v2_datamodels"):
        stand_in(name)
    if importlib.util.find_spec("orjson") is None:
        # Python's own JSON writes the same bytes.
        def dumps(value):
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        stand_in("orjson", dumps=dumps, loads=json.loads, JSONDecodeError=json.JSONDecodeError)
        sys.modules["orjson"].orjson = sys.modules["orjson"]
    # The stubs in the repository are for a later protobuf than Debian's.
    generate(folder, source / "protocol/grpc", "grpc_predict_v2.proto")
    for name in ("grpc_predict_v2_pb2", "grpc_predict_v2_pb2_grpc"):
        sys.modules[f"kserve.protocol.grpc.{name}"] = importlib.import_module(name)
    return importlib.import_module("kserve.inference_client"), importlib.import_module("kserve.protocol.infer_type")
