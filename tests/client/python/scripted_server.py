"""A gRPC server in the test's process. The test defines its answers. It is for cases that occur on the real server
only when something breaks."""
from __future__ import annotations

import threading
from concurrent import futures

import grpc
import numpy as np
from google.protobuf import any_pb2

from phimap.rpc import error_details_pb2 as details_pb
from phimap.v1 import learning_service_pb2_grpc as learning_grpc
from phimap.v1 import mapping_service_pb2 as mapping_service_pb
from phimap.v1 import mapping_service_pb2_grpc as mapping_grpc
from phimap.v1 import predict_service_pb2_grpc as predict_grpc
from phimap.v1 import transform_service_pb2 as transform_pb
from phimap.v1 import transform_service_pb2_grpc as transform_grpc

DIGEST = "d" * 64


class ScriptedServer(mapping_grpc.MappingServiceServicer, transform_grpc.TransformServiceServicer,
                     learning_grpc.LearningServiceServicer, predict_grpc.PredictServiceServicer):
    """Answers each call with the next script of its method. If there is no script left, the call fails with INTERNAL.

    A script is a function with two arguments: the request (or the iterator of requests, for a stream) and the
    context.
    """

    def __init__(self) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[
            ("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        mapping_grpc.add_MappingServiceServicer_to_server(self, self._server)
        transform_grpc.add_TransformServiceServicer_to_server(self, self._server)
        learning_grpc.add_LearningServiceServicer_to_server(self, self._server)
        predict_grpc.add_PredictServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self.scripts = {}
        self.peers = []

    def __enter__(self) -> ScriptedServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()

    def script(self, method: str, *scripts) -> None:
        self.scripts[method] = list(scripts)

    def _next(self, method: str, context):
        self.peers.append(context.peer())
        if not self.scripts.get(method):
            context.abort(grpc.StatusCode.INTERNAL, f"the test has no script for this call of {method}")
        return self.scripts[method].pop(0)

    def Build(self, request_iterator, context):
        yield from self._next("Build", context)(request_iterator, context)

    def Train(self, request_iterator, context):
        yield from self._next("Train", context)(request_iterator, context)

    def PredictStream(self, request_iterator, context):
        yield from self._next("PredictStream", context)(request_iterator, context)

    def Predict(self, request, context):
        return self._next("Predict", context)(request, context)

    def TransformStream(self, request_iterator, context):
        yield from self._next("TransformStream", context)(request_iterator, context)

    def Transform(self, request, context):
        return self._next("Transform", context)(request, context)

    def CancelBuild(self, request, context):
        return self._next("CancelBuild", context)(request, context)

    def GetVersion(self, request, context):
        return self._next("GetVersion", context)(request, context)

    def SetAlias(self, request, context):
        return self._next("SetAlias", context)(request, context)

    def Export(self, request, context):
        yield from self._next("Export", context)(request, context)


def fail(context, code: grpc.StatusCode, message: str, *details) -> None:
    """Ends the call with an error, and with error details encoded the way phimapd encodes them."""
    status = details_pb.Status(code=code.value[0], message=message)
    for detail in details:
        status.details.append(any_pb2.Any(
            type_url=f"type.googleapis.com/google.rpc.{type(detail).__name__}", value=detail.SerializeToString()))
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, message)


def sums(examples, number: int | None = 1) -> transform_pb.TransformResponse:
    """Returns an answer with one feature for each row: the sum of the row's values. `number` is the version number in
    the answer. If it is None, the answer contains no version."""
    dense = examples.dense
    values = np.frombuffer(dense.float64_le, "<f8").reshape(dense.rows, dense.columns)
    answer = transform_pb.TransformResponse()
    if number is not None:
        answer.version.name, answer.version.number, answer.version.digest = "m", number, DIGEST
    answer.features.rows, answer.features.columns = dense.rows, 1
    answer.features.float64_le = values.sum(axis=1).tobytes()
    return answer


def stream_answer(examples, number: int | None) -> transform_pb.TransformResponse:
    return transform_pb.TransformResponse.FromString(sums(examples, number).SerializeToString())


def accepted(attached: bool = False, of=mapping_service_pb.BuildResponse):
    """Returns the first answer to a Build; `of` is TrainResponse for a Train."""
    return of(accepted=mapping_service_pb.BuildAccepted(attached=attached))


def built(number: int = 1, of=mapping_service_pb.BuildResponse):
    event = of()
    event.version.ref.name, event.version.ref.number = "m", number
    return event
