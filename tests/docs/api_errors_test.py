"""Provokes the errors that docs/api.md lists: for each call, every reason that a request alone can cause."""

import collections
import os
import pathlib
import tempfile
import time
import unittest
import uuid

import document
import grpc
import inference_stubs
import numpy
from api_requests import (GRAM, MORE_ROWS, ROWS, Open, Phimapd, build_of, dense, details_of, evaluation_of, labeled, labeled_spec,
                          sparse, spec, text)
from inference_errors import InferenceErrors
from phimap._crc32c import crc32c
from phimap.rpc import error_details_pb2
from phimap.v1 import (evaluation_service_pb2 as evaluation, examples_pb2, mapping_pb2, mapping_service_pb2 as api,
                       transform_service_pb2)

# Reasons that need more than a request: a full disk, a broken machine, a newer phimap, a race, digests with a common
# beginning, a faulty kernel service or a hostile artifact. Other tests cause them.
ELSEWHERE = {
    "BUILD_INTERRUPTED", "DIGEST_AMBIGUOUS", "ARTIFACT_REMOVED", "BUILD_TAKEN_OVER", "FLEET_TOO_OLD", "DATABASE_EXHAUSTED", "DATABASE_READ_ONLY", "DATABASE_REFUSED", "DATABASE_UNAVAILABLE",
    "ARTIFACT_TOO_LARGE", "KERNEL_PROGRAM_INVALID", "PLAN_INVALID", "TIMEOUT_INVALID", "TLS_CERTIFICATE_MISSING",
    "CERTIFICATE_TOO_LARGE", "COMMIT_IN_DOUBT", "REVISION_NOT_REACHED", "REQUEST_TRUNCATED", "ENCODING_MISSING", "DATABASE_BUSY", "DATABASE_DAMAGED", "DATABASE_FAILED", "DISK_FULL",
    "FILE_IO_FAILED", "CERTIFICATE_INVALID", "KERNEL_EXAMPLES_TOO_LARGE", "KERNEL_QUEUE_FULL",
    "KERNEL_SERVICE_ANSWER_INVALID", "KERNEL_SERVICE_FAILED", "KERNEL_SERVICE_TIMED_OUT", "KERNEL_SERVICE_UNAVAILABLE", "REQUEST_MEMORY_FULL", "FILE_PERMISSION_DENIED", "MACHINE_MEMORY_FULL", "PROJECTION_TOO_LARGE", "QUEUE_FULL",
    "FILE_SYSTEM_READ_ONLY", "SAMPLE_TOO_LARGE", "SELF_CHECK_FAILED", "SELF_CHECK_SHAPE_MISMATCH", "SERVER_SHUTTING_DOWN", "READER_TOO_SLOW", "REQUEST_TOO_SLOW", "STREAM_TOO_SLOW", "EXPORT_LIMIT_REACHED",
    "IMPORT_LIMIT_REACHED", "OPEN_FILE_LIMIT_REACHED", "ROWS_TOO_MANY", "ARITHMETIC_UNKNOWN", "FORMAT_UNKNOWN", "KERNEL_OPERATION_UNKNOWN",
    "TEXT_UNREADABLE"}
# More such reasons, but each in a single call only.
ELSEWHERE_OF = {
    ("Evaluate", "MESSAGE_TOO_LARGE", "RESOURCE_EXHAUSTED"),
    ("Import", "VALUE_NOT_REPRESENTABLE", "FAILED_PRECONDITION"),
    ("Loading a version", "ARTIFACT_MALFORMED", "DATA_LOSS"),
    ("Loading a version", "KERNEL_SERVICE_NOT_LISTED", "FAILED_PRECONDITION"),
    ("ModelInfer", "VALUE_NOT_REPRESENTABLE", "OUT_OF_RANGE"),
}


class ApiErrorsTest(InferenceErrors, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        inference_stubs.generate(cls.folder)

    def setUp(self):
        self.claimed = {row[:3]: row.when for row in document.errors()}
        self.provoked = set()

    def fails(self, section, reason, code, call, *arguments, **fields):
        """Expects that the call fails with this error, and that the section of docs/api.md lists the error."""
        with self.subTest(section, reason=reason):
            with self.assertRaises(grpc.RpcError) as failed:
                answer = call(*arguments, **fields)
                if not hasattr(answer, "DESCRIPTOR"):
                    collections.deque(answer, maxlen=0)  # reads to the end of the stream
            details = details_of(failed.exception)
            came = error_details_pb2.ErrorInfo.FromString(details.get("ErrorInfo", b"")).reason
            self.assertEqual((came, failed.exception.code().name), (reason, code), failed.exception.details())
            claim = (section, reason, code)
            self.assertIn(claim, self.claimed)
            if "RetryInfo" in details:
                self.assertIn("delay", self.claimed[claim])
            if "try again after the delay" in self.claimed[claim]:
                self.assertIn("RetryInfo", details)
            self.provoked.add(claim)

    def test_every_error_that_the_page_claims_comes(self):
        phimapd = Phimapd(self)
        phimapd.build()
        self.any_call()
        self.what_is_no_request()
        self.references(phimapd)
        self.transform(phimapd)
        self.build_requests(phimapd)
        self.build_rows(phimapd)
        self.build_twice(phimapd)
        self.finding(phimapd)
        self.evaluations(phimapd)
        self.names(phimapd)
        self.artifacts(phimapd)
        self.damage()
        self.small_limits()
        self.silence()
        self.inference(phimapd)
        left = {claim for claim in set(self.claimed) - self.provoked - ELSEWHERE_OF if claim[1] not in ELSEWHERE}
        self.assertEqual(left, set(), "docs/api.md lists these errors, but this test does not provoke them")
        self.assertFalse({claim for claim in self.provoked if claim in ELSEWHERE_OF or claim[1] in ELSEWHERE},
                         "this test provokes these errors, so remove them from ELSEWHERE or ELSEWHERE_OF")

    def any_call(self):
        tokens = self.folder / "tokens"
        tokens.write_text("reader a-token-that-reads\nbuilder a-token-that-builds\n")
        tokens.chmod(0o600)
        phimapd = Phimapd(self, f"--token_file={tokens}")
        mappings = phimapd.mappings
        request = api.ListMappingsRequest()
        for reason, *authorizations in (("TOKEN_MISSING",), ("TOKEN_MALFORMED", "Basic dXNlcg=="),
                                        ("TOKEN_MALFORMED", "Bearer a-token-that-reads", "Bearer twice"),
                                        ("TOKEN_UNKNOWN", "Bearer a-token-of-nobody")):
            self.fails("Any call", reason, "UNAUTHENTICATED", mappings.ListMappings, request,
                       metadata=[("authorization", value) for value in authorizations])
        reader = [("authorization", "Bearer a-token-that-reads")]
        mappings.ListMappings(request, metadata=reader)
        self.fails("Any call", "ROLE_TOO_LOW", "PERMISSION_DENIED", mappings.DeleteMapping,
                   api.DeleteMappingRequest(mapping="m"), metadata=reader)
        list_bytes = phimapd.channel.unary_unary("/phimap.v1.MappingService/ListMappings")
        self.fails("Any call", "REQUEST_MALFORMED", "INVALID_ARGUMENT", list_bytes, b"\x07", metadata=reader)
        builder = [("authorization", "Bearer a-token-that-builds")]
        one_call = Phimapd(self, f"--token_file={tokens}", "--max_calls_per_caller=1")
        requests = Open(spec())
        self.addCleanup(requests.close)
        under_way = one_call.mappings.Build(iter(requests), metadata=builder)
        next(under_way)  # accepted
        self.fails("Any call", "CALL_LIMIT_REACHED", "RESOURCE_EXHAUSTED", one_call.mappings.ListMappings, request,
                   metadata=builder)
        one_call.mappings.ListMappings(request, metadata=reader)

    def what_is_no_request(self):
        phimapd = Phimapd(self, "--max_message_bytes=65536")
        path = "/phimap.v1.MappingService/"
        get = phimapd.mappings.GetMapping
        small, large = (api.GetMappingRequest(mapping="m" * size) for size in (1, 65536))
        for other in (path + "Nothing", "/phimap.v1.NoService/Get"):
            self.fails("Any call", "METHOD_UNKNOWN", "UNIMPLEMENTED", phimapd.channel.unary_unary(other), b"")
        self.fails("Any call", "MESSAGE_COMPRESSED", "UNIMPLEMENTED", get, large, compression=grpc.Compression.Gzip)
        self.fails("Any call", "MESSAGE_TOO_LARGE", "RESOURCE_EXHAUSTED", get, large)
        self.fails("Any call", "HEADERS_TOO_LARGE", "RESOURCE_EXHAUSTED", get, small, metadata=[("x", "y" * 16384)])
        for revision, reason, code in (
                ("7", "REVISION_INVALID", "INVALID_ARGUMENT"), ("0:1", "REVISION_HISTORY_MISMATCH", "FAILED_PRECONDITION"),
                (f"{self.revision_of(phimapd)}0000", "REVISION_HISTORY_MISMATCH", "FAILED_PRECONDITION")):
            self.fails("Any call", reason, code, get, small, metadata=[("phimap-min-revision", revision)])
        self.fails("Any call", "MESSAGE_COUNT_WRONG", "UNIMPLEMENTED",
                   phimapd.channel.stream_unary(path + "GetMapping"), iter([]))

    def revision_of(self, phimapd):
        """Makes a change, and returns the revision in its answer."""
        phimapd.build()
        request = api.SetAliasRequest(mapping="m", alias="a", version=1)
        _, call = phimapd.mappings.SetAlias.with_call(request)
        (revision,) = [value for key, value in call.trailing_metadata() if key == "phimap-revision"]
        phimapd.mappings.GetMapping(api.GetMappingRequest(mapping="m"), metadata=[("phimap-min-revision", revision)])
        return revision

    def references(self, phimapd):
        get = phimapd.mappings.GetVersion
        section = "Names and references"
        for reference in ("m@007", "M", "m@", "", "m@0", "-"):
            self.fails(section, "REFERENCE_INVALID", "INVALID_ARGUMENT", get, api.GetVersionRequest(reference=reference))
        for reason, reference in (("MAPPING_NOT_FOUND", "other"), ("VERSION_NOT_FOUND", "m@9"),
                                  ("ALIAS_NOT_FOUND", "m@prod")):
            self.fails(section, reason, "NOT_FOUND", get, api.GetVersionRequest(reference=reference))
            self.fails(section, reason, "NOT_FOUND", phimapd.transform, dense(ROWS), reference)
        self.fails(section, "NAME_INVALID", "INVALID_ARGUMENT", phimapd.mappings.GetMapping,
                   api.GetMappingRequest(mapping="m-"))

    def transform(self, phimapd):
        phimapd.build("wide", rows=ROWS[:, :1], text="random_projection(dimensions=2000)", kernel="")
        phimapd.build("steep", text="f1(landmarks=3)", kernel="poly(degree=9)")
        kind = examples_pb2.Examples
        wrong = dense(ROWS)
        wrong.dense.rows += 1
        none = dense(ROWS)
        none.dense.rows = 0
        endless = ROWS.copy()
        endless[1, 3] = numpy.inf
        for reason, examples in (
                ("FIELD_MISSING", kind()), ("FIELD_MISSING", kind(dense=examples_pb2.DenseRows(rows=1, columns=4))),
                ("FIELD_OUT_OF_RANGE", none), ("LENGTH_MISMATCH", wrong), ("COLUMNS_MISMATCH", dense(ROWS[:, :3])),
                ("VALUE_NOT_FINITE", dense(endless))):
            self.fails("Transform", reason, "INVALID_ARGUMENT", phimapd.transform, examples)
        phimapd.build("named", column_names=list("abcd"))
        self.fails("Transform", "COLUMN_NAMES_MISMATCH", "INVALID_ARGUMENT", phimapd.transform, dense(ROWS), "named",
                   column_names_hash=1)
        phimapd.transform(sparse())
        self.fails("Transform", "OFFSETS_INVALID", "INVALID_ARGUMENT", phimapd.transform, sparse(offsets=(0, 3)))
        self.fails("Transform", "COLUMN_INDEX_INVALID", "INVALID_ARGUMENT", phimapd.transform, sparse(columns=(1, 4)))
        self.fails("Transform", "EXAMPLE_KIND_MISMATCH", "INVALID_ARGUMENT", phimapd.transform, kind(text={"values": ["x"]}))
        phimapd.build_text("words")
        phimapd.transform(text("a word"), "words")
        self.fails("Transform", "EXAMPLE_KIND_MISMATCH", "INVALID_ARGUMENT", phimapd.transform, dense(ROWS), "words")
        self.fails("Transform", "FIELD_TOO_LONG", "INVALID_ARGUMENT", phimapd.transform, text("x" * (1 << 20) + "x"), "words")
        self.fails("Transform", "DIGEST_MISMATCH", "FAILED_PRECONDITION", phimapd.transform, dense(ROWS),
                   expected_digest="0" * 64)
        self.fails("Transform", "RESIDUAL_NOT_AVAILABLE", "FAILED_PRECONDITION", phimapd.transform, dense(ROWS), residual=True)
        gram = phimapd.build("gram", rows=GRAM, text="f2(landmarks=9)", kernel="precomputed()")
        values = dense(GRAM[:, list(gram.certificate.landmark_rows)])
        self.fails("Transform", "SELF_VALUES_MISSING", "INVALID_ARGUMENT", phimapd.transform, values, "gram", residual=True)
        self.fails("Transform", "VALUE_NOT_REPRESENTABLE", "OUT_OF_RANGE", phimapd.transform, dense(1e30 * ROWS), "steep")
        self.fails("Transform", "MESSAGE_TOO_LARGE", "RESOURCE_EXHAUSTED", phimapd.transform,
                   dense(numpy.zeros((65536, 1))), "wide")
        first = transform_service_pb2.TransformStreamRequest(reference="m", examples=dense(ROWS))
        self.fails("TransformStream", "FIELD_UNEXPECTED", "INVALID_ARGUMENT", phimapd.transforms.TransformStream,
                   iter([first, first]))

    def fails_to_build(self, phimapd, reason, code, messages):
        self.fails("Build", reason, code, phimapd.mappings.Build, iter(messages))

    def build_requests(self, phimapd):
        fields = spec()
        fields.spec.spec.kind = 1
        large, inapplicable = spec(text=""), spec(text="")
        large.spec.spec.MergeFrom(mapping_pb2.MappingSpec(kind="F1", landmarks=8193))
        inapplicable.spec.spec.MergeFrom(mapping_pb2.MappingSpec(kind="F1", landmarks=3, dimensions=2))
        for reason, messages in (
                ("MESSAGE_UNEXPECTED", []), ("MESSAGE_UNEXPECTED", [api.BuildRequest()]),
                ("MESSAGE_UNEXPECTED", [spec(), spec()]), ("FINISH_MISSING", [spec()]),
                ("FIELD_INVALID", [spec(build_id="1")]), ("FIELD_INVALID", [spec(kernel="")]), ("FIELD_INVALID", [fields]),
                ("EXPRESSION_INVALID", [spec(kernel="rbf(gama=1)")]), ("EXPRESSION_INVALID", [spec(text="f9()")]),
                ("EXPRESSION_INVALID", [spec(kernel="(" * 40 + "linear()" + ")" * 40)]),
                ("EXPRESSION_INVALID", [spec(kernel=" " * 4097)]), ("FIELD_OUT_OF_RANGE", [large]),
                ("PARAMETER_NOT_APPLICABLE", [inapplicable]), ("COLUMN_NAMES_INVALID", [spec(column_names=["a", "a"])]),
                ("COLUMN_NAMES_INVALID", build_of(ROWS, column_names=list("abc"))),
                ("KERNEL_NOT_APPLICABLE", [spec(text="random_projection(dimensions=2)")]),
                ("KERNEL_NOT_APPLICABLE", [spec(text="fourier(dimensions=2)", kernel="precomputed()")]),
                ("MATRIX_NOT_SQUARE", build_of(ROWS, text="f1(landmarks=3)", kernel="precomputed()")),
                ("DIMENSIONS_ODD", [spec(text="fourier(dimensions=3)", kernel="rbf()")]),
                ("KERNEL_NOT_POSITIVE_SEMIDEFINITE", [spec(text="f2(landmarks=3)", kernel="-1*linear()")])):
            self.fails_to_build(phimapd, reason, "INVALID_ARGUMENT", messages)
        self.fails_to_build(phimapd, "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "FAILED_PRECONDITION",
                            build_of(ROWS, text="f2(landmarks=20)", kernel="sigmoid(gamma=-1)"))
        self.fails_to_build(phimapd, "KERNEL_PRECISION_TOO_LOW", "FAILED_PRECONDITION",
                            build_of(ROWS + 1e9 * numpy.sign(ROWS[:, :1]), text="f2(landmarks=20)",
                                     kernel="rbf(gamma=1)"))
        self.fails_to_build(phimapd, "MATRIX_NOT_SQUARE", "FAILED_PRECONDITION",
                            build_of(GRAM[:-1], text="f2(landmarks=9)", kernel="precomputed()"))
        self.fails_to_build(phimapd, "KERNEL_NOT_SYMMETRIC", "FAILED_PRECONDITION",
                            build_of(GRAM + numpy.triu(GRAM), text="f2(landmarks=9)", kernel="precomputed()"))
        self.fails_to_build(phimapd, "KERNEL_SERVICE_NOT_LISTED", "FAILED_PRECONDITION",
                            [spec(kernel="service(endpoint=nobody)")])

    def build_rows(self, phimapd):
        kind = examples_pb2.Examples
        wrong = dense(ROWS)
        wrong.dense.columns += 1
        endless = ROWS.copy()
        endless[1, 3] = numpy.nan
        huge = numpy.array([[1.7e308], [-1.7e308]] * 10)
        tiny = numpy.array([[1e-310], [-1e-310]] * 10)
        for reason, code, rows in (
                ("FIELD_MISSING", "INVALID_ARGUMENT", kind()), ("EXAMPLE_KINDS_MIXED", "INVALID_ARGUMENT", kind(text={"values": ["x"]})),
                ("LENGTH_MISMATCH", "INVALID_ARGUMENT", wrong), ("VALUE_NOT_FINITE", "INVALID_ARGUMENT", dense(endless)),
                ("COLUMNS_MISMATCH", "INVALID_ARGUMENT", dense(ROWS[:, :3]))):
            self.fails_to_build(phimapd, reason, code,
                                [spec(), api.BuildRequest(examples=dense(ROWS)), api.BuildRequest(examples=rows)])
        for reason, code, examples in (
                ("KERNEL_NOT_APPLICABLE", "INVALID_ARGUMENT", dense(ROWS)),
                ("FIELD_TOO_LONG", "INVALID_ARGUMENT", text("x" * (1 << 20) + "x"))):
            self.fails_to_build(phimapd, reason, code, [spec(kernel="jaccard(n=2)"), api.BuildRequest(examples=examples)])
        self.fails_to_build(phimapd, "LANDMARKS_TOO_LONG", "FAILED_PRECONDITION",
                            [spec(text="f1(landmarks=9)", kernel="jaccard(n=2)"), api.BuildRequest(examples=text(*["x" * (1 << 20)] * 9)),
                             api.BuildRequest(finish=api.BuildFinish(row_count=9))])
        for reason, rows in (("OFFSETS_INVALID", sparse(offsets=(0, 3))), ("COLUMN_INDEX_INVALID", sparse(columns=(3, 1)))):
            self.fails_to_build(phimapd, reason, "INVALID_ARGUMENT", [spec(), api.BuildRequest(examples=rows)])
        self.fails_to_build(phimapd, "ROW_COUNT_MISMATCH", "DATA_LOSS", build_of(ROWS, count=51))
        self.fails_to_build(phimapd, "STREAM_EMPTY", "FAILED_PRECONDITION",
                            [spec(), api.BuildRequest(finish=api.BuildFinish(row_count=0))])
        self.fails_to_build(phimapd, "VALUES_TOO_LARGE", "INVALID_ARGUMENT", build_of(huge, standardize=True))
        self.fails_to_build(phimapd, "VALUES_TOO_SMALL", "INVALID_ARGUMENT", build_of(tiny, standardize=True))
        for reason, rows, fields in (
                ("ROWS_TOO_FEW", ROWS, {"text": "f1(landmarks=51)"}),
                ("DIMENSIONS_TOO_MANY", ROWS,
                 {"text": "random_projection(dimensions=5, projection=orthonormal)", "kernel": ""}),
                ("GAMMA_UNDEFINED", numpy.ones((50, 4)), {"kernel": "rbf(gamma=scale)"}),
                ("COMPONENT_ROUNDED_AWAY", ROWS,
                 {"text": "kpca(landmarks=20, dimensions=2, rounding=1e-6)", "kernel": "rbf(gamma=1)"}),
                ("KERNEL_ZERO", numpy.zeros((50, 4)), {"text": "f2(landmarks=3)", "kernel": "linear()"}),
                ("VALUE_NOT_REPRESENTABLE", 1e30 * MORE_ROWS,
                 {"text": "f1(landmarks=3, serving_type=float32)", "kernel": "poly(degree=3)"}),
                ("SERVING_PRECISION_TOO_LOW", numpy.concatenate([MORE_ROWS - 1e4, MORE_ROWS + 1e4]),
                 {"text": "f2(landmarks=40, serving_type=float32)", "kernel": "rbf(gamma=0.3)"})):
            self.fails_to_build(phimapd, reason, "FAILED_PRECONDITION", build_of(rows, **fields))

    def build_twice(self, phimapd):
        known = uuid.uuid4()
        phimapd.build(build_id=known)
        self.fails_to_build(phimapd, "BUILD_SPEC_MISMATCH", "ALREADY_EXISTS", [spec(build_id=known, seed=1)])
        under_way = uuid.uuid4()
        requests = Open(spec(build_id=under_way))
        self.addCleanup(requests.close)
        events = phimapd.mappings.Build(iter(requests))
        next(events)  # accepted
        self.fails_to_build(phimapd, "STREAM_OPEN", "ABORTED", [spec(build_id=under_way)])
        phimapd.mappings.CancelBuild(api.CancelBuildRequest(mapping="m", build_id=str(under_way)))
        self.fails("Build", "BUILD_CANCELLED", "CANCELLED", lambda: events)

    def finding(self, phimapd):
        calls = phimapd.mappings
        for call in ("GetBuild", "CancelBuild"):
            request = getattr(api, call + "Request")
            self.fails(call, "FIELD_INVALID", "INVALID_ARGUMENT", getattr(calls, call), request(mapping="m", build_id="1"))
            self.fails(call, "BUILD_NOT_FOUND", "NOT_FOUND", getattr(calls, call),
                       request(mapping="m", build_id=str(uuid.uuid4())))
        for call, mapping in (("ListMappings", {}), ("ListVersions", {"mapping": "m"})):
            request = getattr(api, call + "Request")
            self.fails(call, "FIELD_OUT_OF_RANGE", "INVALID_ARGUMENT", getattr(calls, call), request(page_size=-1, **mapping))
            self.fails(call, "PAGE_TOKEN_INVALID", "INVALID_ARGUMENT", getattr(calls, call),
                       request(page_token="x", **mapping))
        self.fails("Advise", "FIELD_OUT_OF_RANGE", "INVALID_ARGUMENT", calls.Advise,
                   api.AdviseRequest(margin=2, error=0.1, confidence=0.9))
        self.fails("EstimateBuild", "KERNEL_SERVICE_NOT_LISTED", "FAILED_PRECONDITION", calls.EstimateBuild,
                   api.EstimateBuildRequest(spec=spec(kernel="service(endpoint=nobody)").spec, rows=9, columns=4))
        for reason, code, text, rows in (
                ("EXPRESSION_INVALID", "INVALID_ARGUMENT", "f2(", 9), ("FIELD_OUT_OF_RANGE", "INVALID_ARGUMENT", "f2(landmarks=9)", 0),
                ("ROWS_TOO_FEW", "FAILED_PRECONDITION", "f2(landmarks=9)", 8),
                ("DIMENSIONS_TOO_MANY", "FAILED_PRECONDITION", "random_projection(dimensions=9, projection=orthonormal)", 9)):
            self.fails("EstimateBuild", reason, code, calls.EstimateBuild,
                       api.EstimateBuildRequest(spec=spec(text=text, kernel="linear()").spec, rows=rows, columns=4))

    def fails_to_evaluate(self, phimapd, reason, code, messages):
        self.fails("Evaluate", reason, code, phimapd.evaluations.Evaluate, iter(messages))

    def evaluations(self, phimapd):
        first = labeled_spec()
        wrong = dense(ROWS)
        wrong.dense.rows += 1
        endless = ROWS.copy()
        endless[1, 3] = numpy.inf
        for reason, messages in (
                ("MESSAGE_UNEXPECTED", []), ("MESSAGE_UNEXPECTED", [evaluation.EvaluateRequest()]),
                ("MESSAGE_UNEXPECTED", [first, first]), ("MESSAGE_UNEXPECTED", [labeled(dense(ROWS))]),
                ("FINISH_MISSING", [first, labeled(dense(ROWS))]),
                ("EXPRESSION_INVALID", [labeled_spec(learner="svm(")]),
                ("EXPRESSION_INVALID", [labeled_spec(learner="linear_svm(C=0)")]), ("FIELD_OUT_OF_RANGE", [labeled_spec(folds=1)]),
                ("FIELD_OUT_OF_RANGE", [labeled_spec(held_out=1)]), ("FIELD_OUT_OF_RANGE", [labeled_spec(confidence=2)]),
                ("FIELDS_CONTRADICTORY", [labeled_spec(folds=2, held_out=0.5)]),
                ("FIELD_MISSING", [first, labeled(examples_pb2.Examples(), [])]),
                ("LENGTH_MISMATCH", [first, labeled(wrong)]), ("LENGTH_MISMATCH", [first, labeled(dense(ROWS), ["a"])]),
                ("COLUMNS_MISMATCH", [first, labeled(dense(ROWS[:, :3]))]),
                ("VALUE_NOT_FINITE", [first, labeled(dense(endless))]),
                ("LABEL_MISSING", [first, labeled(dense(ROWS), ["a", ""] * 25)]),
                ("LABELS_EQUAL", evaluation_of(numpy.zeros((3, 4)), labels=["1", "1.0", "2"])),
                ("LABELS_NOT_CLASSES", evaluation_of(numpy.zeros((101, 4)), labels=[str(i) for i in range(101)])),
                ("LABEL_TOO_LONG", [first, labeled(dense(ROWS), ["x" * 257] * 50)]),
                ("CLASSES_TOO_MANY", [first, labeled(dense(numpy.zeros((1001, 4))), map(str, range(1001)))]),
                ("CLASSES_TOO_FEW", evaluation_of(ROWS, labels=["a"] * 50)),
                ("FOLDS_TOO_MANY", evaluation_of(ROWS, folds=51))):
            self.fails_to_evaluate(phimapd, reason, "INVALID_ARGUMENT", messages)
        for reason, examples in (("OFFSETS_INVALID", sparse(offsets=(0, 3))), ("COLUMN_INDEX_INVALID", sparse(columns=(1, 4))),
                                 ("EXAMPLE_KIND_MISMATCH", examples_pb2.Examples(text={"values": ["x"]}))):
            self.fails_to_evaluate(phimapd, reason, "INVALID_ARGUMENT", [first, labeled(examples, ["a"])])
        self.fails_to_evaluate(phimapd, "FIELD_TOO_LONG", "INVALID_ARGUMENT",
                               [labeled_spec(reference="words"), labeled(text("x" * (1 << 20) + "x"), ["a"])])
        self.fails_to_evaluate(phimapd, "COLUMN_NAMES_MISMATCH", "INVALID_ARGUMENT",
                               [labeled_spec(reference="named", column_names_hash=1)])
        self.fails_to_evaluate(phimapd, "KERNEL_NOT_AVAILABLE", "FAILED_PRECONDITION",
                               [labeled_spec(reference="words", learner="kernel_svm()")])
        self.fails_to_evaluate(phimapd, "DIGEST_MISMATCH", "FAILED_PRECONDITION",
                               [labeled_spec(expected_digest="0" * 64)])
        self.fails_to_evaluate(phimapd, "KERNEL_NOT_AVAILABLE", "FAILED_PRECONDITION",
                               [labeled_spec(reference="gram", learner="kernel_svm()")])
        self.fails_to_evaluate(phimapd, "VALUE_NOT_REPRESENTABLE", "OUT_OF_RANGE",
                               [labeled_spec(reference="steep"), labeled(dense(1e30 * ROWS))])
        self.fails_to_evaluate(phimapd, "ROW_COUNT_MISMATCH", "DATA_LOSS", evaluation_of(ROWS, count=51))
        under_way = []
        until = time.monotonic() + 60
        while len(under_way) < 16:
            requests = Open(first)
            self.addCleanup(requests.close)
            call = phimapd.evaluations.Evaluate(iter(requests))
            try:
                next(call)  # now the server counts the call
                under_way.append(call)
            except grpc.RpcError as refused:
                # For a moment after a call was refused, the server still counts it as open.
                if refused.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or time.monotonic() > until:
                    raise
        self.fails_to_evaluate(phimapd, "EVALUATION_LIMIT_REACHED", "RESOURCE_EXHAUSTED", [first])
        for call in under_way:
            call.cancel()

    def names(self, phimapd):
        calls = phimapd.mappings
        alias = api.SetAliasRequest(mapping="m", alias="prod", version=1)
        calls.SetAlias(alias)
        self.fails("SetAlias", "FIELD_OUT_OF_RANGE", "INVALID_ARGUMENT", calls.SetAlias,
                   api.SetAliasRequest(mapping="m", alias="prod"))
        self.fails("SetAlias", "ETAG_MISMATCH", "ABORTED", calls.SetAlias,
                   api.SetAliasRequest(mapping="m", alias="prod", version=1, etag="none"))
        self.fails("SetAlias", "DIGEST_INVALID", "INVALID_ARGUMENT", calls.SetAlias,
                   api.SetAliasRequest(mapping="m", alias="prod", digest="012345"))
        self.fails("SetAlias", "FIELDS_CONTRADICTORY", "INVALID_ARGUMENT", calls.SetAlias,
                   api.SetAliasRequest(mapping="m", alias="prod", version=1, digest="0123456"))
        kept = api.KeepVersionRequest(reference="m@1", operation_id=str(uuid.uuid4()))
        calls.KeepVersion(kept)
        self.fails("Any call", "OPERATION_ID_REUSED", "ALREADY_EXISTS", calls.DeleteMapping,
                   api.DeleteMappingRequest(mapping="m", operation_id=kept.operation_id))
        for seconds in (59, 36500 * 86400 + 1):
            self.fails("KeepVersion", "FIELD_OUT_OF_RANGE", "INVALID_ARGUMENT", calls.KeepVersion,
                       api.KeepVersionRequest(reference="m", ttl={"seconds": seconds}))
        self.fails("KeepVersion", "TTL_TOO_SHORT", "FAILED_PRECONDITION", calls.KeepVersion,
                   api.KeepVersionRequest(reference="m", ttl={"seconds": 3600}))
        self.fails("DeleteMapping", "MAPPING_NOT_EMPTY", "FAILED_PRECONDITION", calls.DeleteMapping,
                   api.DeleteMappingRequest(mapping="gram", only_if_empty=True))
        self.fails("DeleteAlias", "ETAG_MISMATCH", "ABORTED", calls.DeleteAlias,
                   api.DeleteAliasRequest(mapping="m", alias="prod", etag="another"))
        self.fails("DeleteVersion", "FIELD_OUT_OF_RANGE", "INVALID_ARGUMENT", calls.DeleteVersion,
                   api.DeleteVersionRequest(mapping="m"))
        self.fails("DeleteVersion", "VERSION_IN_USE", "FAILED_PRECONDITION", calls.DeleteVersion,
                   api.DeleteVersionRequest(mapping="m", version=1))
        calls.SetAlias(api.SetAliasRequest(mapping="m", alias="moved", version=1))
        second = phimapd.build(text="f1(landmarks=4)")
        calls.SetAlias(api.SetAliasRequest(mapping="m", alias="moved", version=second.ref.number))
        third = phimapd.build(text="f1(landmarks=5)")
        calls.SetAlias(api.SetAliasRequest(mapping="m", alias="moved", version=third.ref.number))
        self.fails("DeleteVersion", "VERSION_ROLLBACK_TARGET", "FAILED_PRECONDITION", calls.DeleteVersion,
                   api.DeleteVersionRequest(mapping="m", version=second.ref.number))
        calls.DeleteAlias(api.DeleteAliasRequest(mapping="m", alias="moved"))
        self.fails("DeleteMapping", "MAPPING_IN_USE", "FAILED_PRECONDITION", calls.DeleteMapping,
                   api.DeleteMappingRequest(mapping="m"))
        for i in range(99):
            calls.SetAlias(api.SetAliasRequest(mapping="m", alias=f"a{i}", version=1))
        self.fails("SetAlias", "ALIAS_LIMIT_REACHED", "RESOURCE_EXHAUSTED", calls.SetAlias,
                   api.SetAliasRequest(mapping="m", alias="one-more", version=1))

    def artifacts(self, phimapd):
        chunks = list(phimapd.mappings.Export(api.ExportRequest(reference="m")))
        to = api.ImportRequest(mapping="copy")
        whole = [api.ImportRequest(chunk=chunk) for chunk in chunks]
        digest = chunks[0].version.digest
        size = chunks[0].artifact_size_bytes

        def chunk(data=None, **fields):
            changed = api.ArtifactChunk(offset_bytes=fields.pop("offset_bytes", 0),
                                        data=chunks[0].data if data is None else data,
                                        crc32c=fields.pop("crc32c", chunks[0].crc32c))
            return api.ImportRequest(chunk=changed)

        for reason, code, messages in (
                ("MESSAGE_UNEXPECTED", "INVALID_ARGUMENT", []), ("MESSAGE_UNEXPECTED", "INVALID_ARGUMENT", whole),
                ("MESSAGE_UNEXPECTED", "INVALID_ARGUMENT", [to, *whole]),
                ("CHUNK_SIZE_OUT_OF_RANGE", "INVALID_ARGUMENT", [to, chunk(b"")]),
                ("CHUNK_OFFSET_MISMATCH", "INVALID_ARGUMENT", [to, chunk(offset_bytes=1)]),
                ("CHUNK_CHECKSUM_MISMATCH", "DATA_LOSS", [to, chunk(crc32c=chunks[0].crc32c ^ 1)]),
                ("DIGEST_INVALID", "INVALID_ARGUMENT", [to, *whole, api.ImportRequest(digest="x")]),
                ("DIGEST_MISMATCH", "DATA_LOSS", [to, *whole, api.ImportRequest(digest="0" * 64)]),
                ("ARTIFACT_TOO_LONG", "INVALID_ARGUMENT", [to, *whole, chunk(offset_bytes=size)]),
                ("ARTIFACT_MALFORMED", "INVALID_ARGUMENT", [to, chunk(bytes(1000), crc32c=crc32c(bytes(1000)))])):
            self.fails("Import", reason, code, phimapd.mappings.Import, iter(messages))
        phimapd.mappings.Import(iter([to, *whole, api.ImportRequest(digest=digest)]))

    def damage(self):
        phimapd = Phimapd(self)
        digest = phimapd.build().ref.digest
        [blob] = pathlib.Path(phimapd.server.data_dir).rglob(digest)
        blob.chmod(0o600)
        with open(blob, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))
        self.fails("Export", "ARTIFACT_DAMAGED", "DATA_LOSS", phimapd.mappings.Export,
                   api.ExportRequest(reference="m"))
        self.fails("Loading a version", "ARTIFACT_DAMAGED", "DATA_LOSS", phimapd.transform, dense(ROWS))

    def small_limits(self):
        phimapd = Phimapd(self, "--max_live_bytes=1024", "--build_memory_bytes=10000000", "--max_builds=1")
        phimapd.build(text="f1(landmarks=40)")
        self.fails("Loading a version", "LIVE_VERSIONS_FULL", "RESOURCE_EXHAUSTED", phimapd.transform, dense(ROWS))
        self.fails_to_build(phimapd, "BUILD_MEMORY_FULL", "RESOURCE_EXHAUSTED", build_of(ROWS, text="f1(landmarks=8192)"))
        requests = Open(spec())
        self.addCleanup(requests.close)
        under_way = phimapd.mappings.Build(iter(requests))
        next(under_way)  # accepted
        self.fails_to_build(phimapd, "BUILD_LIMIT_REACHED", "RESOURCE_EXHAUSTED", [spec()])
        tiny = Phimapd(self, "--build_memory_bytes=1024")
        wide = Phimapd(self, "--build_memory_bytes=3000000")
        wide.build()
        self.fails_to_evaluate(wide, "BUILD_MEMORY_FULL", "RESOURCE_EXHAUSTED",
                               [labeled_spec(), labeled(dense(numpy.zeros((65536, 4))), ["a"] * 65536)])
        [chunk] = phimapd.mappings.Export(api.ExportRequest(reference="m"))
        self.fails("Import", "BUILD_MEMORY_FULL", "RESOURCE_EXHAUSTED", tiny.mappings.Import,
                   iter([api.ImportRequest(mapping="m"), api.ImportRequest(chunk=chunk)]))

    def silence(self):
        phimapd = Phimapd(self, "--build_idle_seconds=1", "--stream_idle_seconds=1")
        phimapd.build()
        first = transform_service_pb2.TransformStreamRequest(reference="m", examples=dense(ROWS))
        for section, call, message in (("TransformStream", phimapd.transforms.TransformStream, first),
                                       ("Evaluate", phimapd.evaluations.Evaluate, labeled_spec()),
                                       ("Build", phimapd.mappings.Build, spec()),
                                       ("Import", phimapd.mappings.Import, api.ImportRequest(mapping="m"))):
            requests = Open(message)
            self.addCleanup(requests.close)
            self.fails(section, "STREAM_IDLE", "DEADLINE_EXCEEDED", call, iter(requests))


if __name__ == "__main__":
    unittest.main()
