"""Provokes the errors that docs/api.md lists for the calls of the Open Inference Protocol."""

import numpy
from api_requests import GRAM, ROWS
from phimap.v1 import mapping_service_pb2 as api


class InferenceErrors:
    """A mixin of ApiErrorsTest. It uses `fails` of that class. REQUIRES: inference_stubs.generate was called, and the
    other tests of ApiErrorsTest have built their versions."""

    def inference(self, phimapd):
        from inference import inference_service_pb2 as protocol, inference_service_pb2_grpc

        stub = inference_service_pb2_grpc.GRPCInferenceServiceStub(phimapd.channel)
        for call in ("ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"):
            request = getattr(protocol, call + "Request")
            self.fails(call, "NAME_INVALID", "INVALID_ARGUMENT", getattr(stub, call), request(name="M"))
            self.fails(call, "VERSION_INVALID", "INVALID_ARGUMENT", getattr(stub, call), request(name="m", version="007"))
        raw = ROWS.astype("<f4").tobytes()

        def fails(reason, code="INVALID_ARGUMENT", *, datatype="FP32", shape=ROWS.shape, name="x", contents=None,
                  inputs=1, raw_contents=(raw,), outputs=(), timeout=None, **fields):
            request = protocol.ModelInferRequest(**{"model_name": "m", **fields}, raw_input_contents=raw_contents)
            for _ in range(inputs):
                tensor = request.inputs.add(name=name, datatype=datatype, shape=shape)
                for values in (contents or {}).items():
                    getattr(tensor.contents, values[0]).extend(values[1])
            for output in outputs:
                request.outputs.add(name=output)
            if timeout is not None:
                request.parameters["timeout"].MergeFrom(timeout)
            self.fails("ModelInfer", reason, code, stub.ModelInfer, request)

        parameter = protocol.InferParameter
        fails("NAME_INVALID", model_name="M")
        fails("VERSION_INVALID", model_version="-1")
        fails("MAPPING_NOT_FOUND", "NOT_FOUND", model_name="other")
        fails("VERSION_NOT_FOUND", "NOT_FOUND", model_version="9")
        fails("ALIAS_NOT_FOUND", "NOT_FOUND", model_version="nobody")
        fails("INPUT_MISSING", inputs=0)
        fails("INPUTS_TOO_MANY", inputs=2)
        fails("INPUT_UNKNOWN", name="y")
        fails("DATATYPE_NOT_SUPPORTED", datatype="INT8")
        fails("SHAPE_MISMATCH", shape=[200])
        fails("FIELD_OUT_OF_RANGE", shape=[0, 4])
        fails("COLUMNS_MISMATCH", shape=[40, 5])
        fails("LENGTH_MISMATCH", raw_contents=[raw[:-1]])
        fails("CONTENTS_MISMATCH", raw_contents=[], contents={"fp64_contents": [0.0] * 200})
        fails("CONTENTS_MIXED", contents={"fp32_contents": [0.0] * 200})
        fails("CONTENTS_MISSING", raw_contents=[])
        fails("VALUE_NOT_FINITE", raw_contents=[b"\xff" * len(raw)])
        fails("OUTPUT_UNKNOWN", outputs=["y"])
        fails("OUTPUT_DUPLICATED", outputs=["features", "features"])
        fails("RESIDUAL_NOT_AVAILABLE", "FAILED_PRECONDITION", outputs=["residual"])
        values = GRAM[:, list(phimapd.mappings.GetVersion(
            api.GetVersionRequest(reference="gram")).certificate.landmark_rows)].astype("<f4")
        fails("SELF_VALUES_MISSING", model_name="gram", shape=values.shape, raw_contents=[values.tobytes()],
              outputs=["residual"])
        fails("PARAMETER_NOT_SUPPORTED", parameters={"sequence_id": parameter(int64_param=1)})
        fails("PARAMETER_TYPE_MISMATCH", timeout=parameter(string_param="1 s"))
        fails("FIELD_OUT_OF_RANGE", timeout=parameter(int64_param=-1))
        fails("FIELD_TOO_LONG", id="i" * 513)
        zeros = numpy.zeros((65536, 1), "<f4")
        fails("MESSAGE_TOO_LARGE", "RESOURCE_EXHAUSTED", model_name="wide", shape=zeros.shape,
              raw_contents=[zeros.tobytes()])
        self.fails("RepositoryIndex", "PARAMETER_NOT_SUPPORTED", "INVALID_ARGUMENT", stub.RepositoryIndex,
                   protocol.RepositoryIndexRequest(repository_name="models"))
