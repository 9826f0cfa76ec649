"""Requests of the API, and a server, for tests of errors."""

import threading
import uuid

import grpc
import numpy
import server
from phimap.rpc import error_details_pb2
from phimap.v1 import (evaluation_service_pb2 as evaluation, evaluation_service_pb2_grpc, examples_pb2, mapping_service_pb2 as api,
                       mapping_service_pb2_grpc, transform_service_pb2, transform_service_pb2_grpc)


def details_of(error):
    """Returns {type: bytes} for the details of an error, decoded as gRPC's richer error model defines."""
    packed = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
    return {detail.type_url.removeprefix("type.googleapis.com/google.rpc."): detail.value
            for detail in error_details_pb2.Status.FromString(packed).details}


def dense(rows):
    rows = numpy.asarray(rows, "<f8")
    return examples_pb2.Examples(dense=examples_pb2.DenseRows(
        rows=rows.shape[0], columns=rows.shape[1], float64_le=rows.tobytes()))


def sparse(offsets=(0, 2), columns=(1, 3)):
    """Returns one row of four columns with two entries."""
    return examples_pb2.Examples(sparse=examples_pb2.SparseRows(
        rows=1, columns=4, row_offsets_le=numpy.array(offsets, "<i8").tobytes(),
        column_indices_le=numpy.array(columns, "<i4").tobytes(), float32_le=numpy.ones(2, "<f4").tobytes()))


def text(*values):
    return examples_pb2.Examples(text=examples_pb2.TextExamples(values=values))


def spec(text="f1(landmarks=3)", kernel="rbf(gamma=1)", mapping="m", build_id=None, **fields):
    message = api.BuildSpec(mapping=mapping, build_id=str(build_id or uuid.uuid4()), kernel=kernel, **fields)
    message.spec.text = text
    return api.BuildRequest(spec=message)


def build_of(rows, *messages, count=None, **fields):
    """Returns all request messages of a build."""
    return [spec(**fields), *messages, api.BuildRequest(examples=dense(rows)),
            api.BuildRequest(finish=api.BuildFinish(row_count=len(rows) if count is None else count))]


def labeled_spec(**fields):
    return evaluation.EvaluateRequest(spec=evaluation.EvaluationSpec(**{"reference": "m", **fields}))


def labeled(examples, labels=None):
    if labels is None:
        labels = [str(i % 2) for i in range(len(ROWS))]
    return evaluation.EvaluateRequest(examples=evaluation.LabeledExamples(examples=examples, labels=labels))


def evaluation_of(rows, labels=None, count=None, **fields):
    """Returns all request messages of an evaluation."""
    count = len(rows) if count is None else count
    return [labeled_spec(**fields), labeled(dense(rows), labels),
            evaluation.EvaluateRequest(finish=evaluation.EvaluateFinish(row_count=count))]


class Open:
    """A request stream that the client keeps open."""

    def __init__(self, *messages):
        self._messages = messages
        self._closed = threading.Event()

    def __iter__(self):
        yield from self._messages
        self._closed.wait()

    def close(self):
        self._closed.set()


ROWS = numpy.random.default_rng(1).standard_normal((50, 4))
# The Gram matrix of ROWS under the linear kernel.
GRAM = ROWS @ ROWS.T
# With this many rows, a build holds some out and measures errors on them.
MORE_ROWS = numpy.random.default_rng(2).standard_normal((500, 4))


class Phimapd:
    """A server with stubs for its calls."""

    def __init__(self, test, *flags, token=None):
        self.server = server.Server(*flags)
        test.addCleanup(self.server.close)
        self.channel = grpc.insecure_channel(self.server.address)
        test.addCleanup(self.channel.close)
        self.mappings = mapping_service_pb2_grpc.MappingServiceStub(self.channel)
        self.transforms = transform_service_pb2_grpc.TransformServiceStub(self.channel)
        self.evaluations = evaluation_service_pb2_grpc.EvaluationServiceStub(self.channel)

    def build(self, mapping="m", rows=ROWS, **fields):
        *_, last = self.mappings.Build(iter(build_of(rows, mapping=mapping, **fields)))
        return last.version

    def build_text(self, mapping):
        *_, last = self.mappings.Build(iter([
            spec(mapping=mapping, kernel="jaccard(n=1, unit=word)"), api.BuildRequest(examples=text("a b", "b c", "c")),
            api.BuildRequest(finish=api.BuildFinish(row_count=3))]))
        return last.version

    def transform(self, examples, reference="m", **fields):
        return self.transforms.Transform(
            transform_service_pb2.TransformRequest(reference=reference, examples=examples, **fields))
