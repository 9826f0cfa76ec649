"""Feature maps in this process: loaded, built and trained without a server, with its bytes and bits.

    letters = phimap.build(rows, spec="f2(landmarks=500)", kernel="rbf(gamma=scale)", standardize=True)
    features = letters.transform(rows)
    model = letters.train(rows, labels)
    model.save("letters.phimap")

    model = phimap.load("letters.phimap")
    predicted = model.predict(rows).labels
"""
from __future__ import annotations

import ctypes
import io
import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from phimap import _files, _native, progress as _progress
from phimap._blocks import FLOAT32, FLOAT64, Block
from phimap._build import BLOCK_LIMITS, Spec
from phimap._columns import in_order
from phimap._evaluate import check_labeled, spec_of, texts_of
from phimap._files import File
from phimap._native import Bytes, GivenRows, Job, address, check, check_call, taken
from phimap._predict import PredictCall
from phimap._rows import BlockLimits, RowSource, source_of
from phimap._train import LabeledRows, TrainedFeatures, TrainingSpec
from phimap._transform import no_rows
from phimap.client import Client
from phimap.errors import DeadlineExceeded, Error, of_stream
from phimap.progress import Observer, Progress, ProgressArgument
from phimap.results import Capabilities, Certificate, Evaluation, Head, Prediction, Version
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

# Largest memory that a map may take when it is loaded.
MAX_BYTES = 16 << 30
# Most bytes that a training which builds its features keeps on disk.
SPOOL_BYTES = 16 << 30
# A map that was built here has no name; a spec for it must have one.
_UNNAMED = "local"
# Rows that one call of the library maps: between two calls, Ctrl-C ends the work.
_ROWS_AT_ONCE = 65_536
_PARTS = BlockLimits(_ROWS_AT_ONCE, 1 << 62)

# Bytes of the numbers that are not converted.
_SIZES = {FLOAT32: 4, FLOAT64: 8}

Features = np.ndarray[Any, np.dtype[Any]]
Kernel = Callable[[Any], Any]


class FeatureMap:
    """A feature map in this process, and its head if it has one.

    Rows are what Client takes: arrays, DataFrames, Arrow tables, scipy.sparse matrices, lists of texts.
    Features and answers have the bits of a server's. Immutable. Thread-safe: any number of threads may
    use it, and the interpreter's lock is free while it computes. It can be pickled, and survives a fork.

    Args:
        artifact: the bytes of an artifact. They are checked as an import into a server checks them.
        kernel: for an artifact whose kernel phimap does not compute, a function that returns, for rows,
            their kernel values with each landmark, rows × landmarks; `phimap.feature_map.given_values`
            if the rows are these values.
        max_bytes: limit of the memory for the map. ResourceExhausted for an artifact that may take more.
    """

    def __init__(self, artifact: bytes, *, kernel: Kernel | None = None, max_bytes: int = MAX_BYTES) -> None:
        library = _native.engine()
        handle = ctypes.c_void_p()
        check_call(library.phimap_map_load, artifact, len(artifact), max_bytes, int(kernel is not None), ctypes.byref(handle))
        self._handle = handle
        self._library = library
        # Not at the interpreter's exit, when daemon threads may still be using the map.
        weakref.finalize(self, library.phimap_map_free, handle).atexit = False
        self._kernel = None if kernel is given_values else kernel
        self._takes_values = kernel is not None
        self._max_bytes = max_bytes
        described = Bytes()
        check_call(library.phimap_map_describe, handle, ctypes.byref(described))
        self.version = Version(mapping_pb.Version.FromString(taken(described)))
        # Number of features, and their type.
        self.columns: int = self.version.output_columns
        self.dtype: np.dtype[Any] = FLOAT64 if self.version.serving_type == "float64" else FLOAT32
        # Read for each row: attributes of a result take a microsecond.
        self._names = self.version.column_names
        self._transform_dense = library.phimap_map_transform_dense

    @property
    def digest(self) -> str:
        """The SHA-256 of the artifact, by which servers name it too."""
        return self.version.ref.digest

    @property
    def artifact(self) -> bytes:
        size = ctypes.c_int64()
        start = self._library.phimap_map_artifact(self._handle, ctypes.byref(size))
        return _native.content(start, size.value)

    @property
    def spec(self) -> str:
        """The text of the spec, with all defaults written out; `kernel` is that of the kernel."""
        return self.version.spec_text

    @property
    def kernel(self) -> str:
        return self.version.kernel_text

    @property
    def input_columns(self) -> int:
        """Number of columns of the rows; 0 for strings."""
        return self.version.input_columns

    @property
    def column_names(self) -> tuple[str, ...]:
        return self._names

    @property
    def certificate(self) -> Certificate:
        """Measurements of the map, made when it was built."""
        return self.version.certificate

    @property
    def head(self) -> Head:
        """What makes answers of features. False if the map has features alone."""
        return self.version.head

    def __repr__(self) -> str:
        head = f", {self.head.learner}" if self.head else ""
        return f"<phimap.FeatureMap {self.spec}, {self.kernel}{head}, sha256:{self.digest[:12]}>"

    def _repr_html_(self) -> str:
        return self.version._repr_html_()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureMap) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> Any:
        return _revived, (self.artifact, self._given_kernel(), self._max_bytes)

    # Mapping and predicting.

    def transform(self, rows: Any, *, threads: int = 0) -> Features:
        """Returns the features of `rows`, an array of rows × features.

        Columns with names, as in a DataFrame, are compared with the map's column names, if it has any, and
        put in their order. float32 and float64 arrays in C order are not copied.

        Args:
            rows: see the class.
            threads: of more rows than one, how many threads map; 0 means one for each processor.
        """
        if type(rows) is np.ndarray and rows.ndim == 2 and self._kernel is None:
            size = _SIZES.get(rows.dtype)
            flags = rows.flags
            if size is not None and flags.c_contiguous and flags.aligned and 0 < len(rows) <= _ROWS_AT_ONCE:
                count, columns = rows.shape
                features = np.empty((count, self.columns), self.dtype)
                error = Bytes()
                code = self._transform_dense(self._handle, address(rows), size, count, columns, address(features), threads,
                                             ctypes.byref(error))
                if code:
                    check(code, error)
                return features
        return self._mapped(rows, threads, residuals=False)[0]

    def transform_with_residuals(self, rows: Any, *, allowances: bool = False, threads: int = 0) -> tuple[Features, ...]:
        """Like `transform`, but also returns the residual of each row, ρ(x) = max(0, K(x, x) − ‖F(x)‖²), in
        float64, and with `allowances` their allowances for rounding; see Client.transform_with_residuals."""
        features, residuals, allowed = self._mapped(rows, threads, residuals=True)
        return (features, residuals, allowed) if allowances else (features, residuals)

    def predict(self, rows: Any, *, scores: bool = False, probabilities: bool = False, confidence: float | None = None,
                deviations: bool = False, threads: int = 0) -> Prediction:
        """Returns the classes or the numbers that the head answers to `rows`, and what is asked for beside
        them; see Client.predict. FailedPrecondition without a head (reason HEAD_MISSING), or if it does
        not have what is asked for (OUTPUT_NOT_AVAILABLE)."""
        call = PredictCall(scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations)
        request = call.wanted
        answers = call.gathered(None)
        for block in self._parts(rows):
            given, answer = GivenRows(block), Bytes()
            check_call(self._library.phimap_map_predict, self._handle, request, len(request), ctypes.byref(given.rows), threads,
                       ctypes.byref(answer))
            answers.add(call.of_map(taken(answer), block.rows, self.version.ref))
        return answers.result()

    # Learning.

    def train(self, rows: Any, labels: Iterable[Any], *, learner: str | None = None, task: str | None = None,
              weights: Iterable[float] | None = None, groups: Iterable[Any] | None = None,
              parts: Iterable[str | None] | None = None, seed: int = 0, timeout: float | None = None,
              progress: ProgressArgument = None, threads: int = 0) -> FeatureMap:
        """Trains a head on these features, and returns the map that has it: the same features, bit for bit.
        See Client.train for the arguments."""
        wanted = TrainingSpec.of(LabeledRows.of(labels, weights, groups, parts), learner, task, seed, None, None, "")
        return self._with_kernel(_trained(wanted, self, self._block_source(rows), timeout, progress, threads))

    def evaluate(self, rows: Any, labels: Iterable[Any], *, learner: str | None = None, held_out: float | None = None,
                 folds: int = 0, seed: int = 0, confidence: float = 0.95, timeout: float | None = None,
                 progress: ProgressArgument = None) -> Evaluation:
        """Measures the error of a learner on these features; see Client.evaluate."""
        texts = texts_of(labels)
        source = self._block_source(rows)
        request = learning_pb.EvaluateRequest.FromString(spec_of("", learner, held_out, folds, seed, confidence, ""))
        spec = request.spec.SerializeToString()
        with (_progress.observing(progress) as observer,
              Job("phimap_job_evaluate", self._handle, spec, len(spec)) as job):
            in_time = _InTime(timeout)
            rows_sent = _sent(job, source, observer, in_time, self._names,
                              lambda begin, end: learning_pb.TrainingExamples(labels=texts[begin:end]).SerializeToString())
            check_labeled(len(texts), rows_sent)
            result = job.finish(_watched(observer, rows_sent, in_time))
        return Evaluation(learning_pb.Evaluation.FromString(result))

    # Keeping.

    def verify(self) -> bool:
        """Checks the artifact again, and computes the features of its reference vectors. Returns whether
        there were any that this machine can compare bit for bit. DataLoss if something is wrong."""
        ran = ctypes.c_int32()
        check_call(self._library.phimap_map_verify, self._handle, ctypes.byref(ran))
        return ran.value != 0

    def save(self, file: File) -> None:
        """Writes the artifact to `file`, a path or an open file. A file at a path appears only if it is
        complete. `phimap.load` reads it, and `phimap import` stores it on a server."""
        with _files.written(file) as out:
            out.write(self.artifact)

    def to_onnx(self, *, outputs: str | None = None) -> bytes:
        """Returns the map as an ONNX model (opset 13), for runtimes that are not phimap's, whose numbers differ from this map's in
        rounding. Its input is `rows`, in the type of the features.

        Args:
            outputs: "features", for `features`; "answers", for the `label`, `scores` and `probabilities` of a head for
                classes or the `value` of one for numbers; None means answers if the map has a head.

        Unimplemented, with the reason, for what ONNX cannot say: kernels of strings, and those that phimap does not compute.
        """
        if outputs not in (None, "features", "answers"):
            raise ValueError(f"outputs: expected 'features', 'answers' or None, got {outputs!r}")
        answers = outputs == "answers" or (outputs is None and bool(self.head))
        model = Bytes()
        check_call(self._library.phimap_map_onnx, self._handle, int(answers), ctypes.byref(model))
        return taken(model)

    def publish(self, name: str, *, server: str | None = None, alias: str | None = None) -> Version:
        """Stores this artifact on a server as the next version of the mapping `name`, and returns the
        version, whose digest is this map's. With `alias`, the alias then points at it. server: see Client."""
        with Client(server) as client:
            version = client.import_(name, io.BytesIO(self.artifact))
            if alias is not None:
                client.set_alias(f"{name}@{version.ref.number}", alias)
        return version

    def _with_kernel(self, artifact: bytes) -> FeatureMap:
        return FeatureMap(artifact, kernel=self._given_kernel(), max_bytes=self._max_bytes)

    def _given_kernel(self) -> Kernel | None:
        return given_values if self._takes_values and self._kernel is None else self._kernel

    def _values(self, rows: Any) -> Any:
        return rows if self._kernel is None else self._kernel(rows)

    def _block_source(self, rows: Any) -> RowSource:
        return source_of(self._values(rows))

    def _parts(self, rows: Any) -> Iterable[Block]:
        source, empty = self._block_source(rows), True
        while (block := source.next(_PARTS)) is not None:
            empty = False
            yield in_order(block, self._names, "the map")
        if empty:
            raise no_rows()

    def _mapped(self, rows: Any, threads: int, residuals: bool) -> tuple[Features, Features, Features]:
        # Each part is mapped before the next is read: an iterator may yield the same memory again.
        mapped: list[tuple[Features, Features, Features]] = []
        for part in self._parts(rows):
            given, count = GivenRows(part), part.rows
            features = np.empty((count, self.columns), self.dtype)
            left, allowed = np.empty(count if residuals else 0), np.empty(count if residuals else 0)
            check_call(self._library.phimap_map_transform, self._handle, ctypes.byref(given.rows), address(features),
                       address(left) if residuals else None, address(allowed) if residuals else None, threads)
            mapped.append((features, left, allowed))
        if len(mapped) == 1:
            return mapped[0]
        features, left, allowed = (np.concatenate(pieces) for pieces in zip(*mapped))
        return features, left, allowed


def load(file: File, *, kernel: Kernel | None = None, max_bytes: int = MAX_BYTES) -> FeatureMap:
    """Returns the map of an artifact: a file that `save`, Client.export or the command line wrote, given
    as a path or an open file. See FeatureMap for the other arguments. Nothing in the file is trusted, and
    none of it is code. InvalidArgument or DataLoss, with the place, if it is damaged."""
    chunks, size = [], 0
    with _files.read(file) as source:
        while size <= max_bytes and (chunk := source.read(1 << 24)):
            chunks.append(chunk)
            size += len(chunk)
    return FeatureMap(b"".join(chunks), kernel=kernel, max_bytes=max_bytes)


def given_values(rows: Any) -> Any:
    """The `kernel` of a map whose rows are already the kernel's values."""
    return rows


def build(rows: Any, *, spec: str, kernel: str | None = None, standardize: bool = False, seed: int = 0,
          timeout: float | None = None, progress: ProgressArgument = None, threads: int = 0) -> FeatureMap:
    """Builds a map from unlabeled rows, in this process. The same rows, spec and seed give the bytes that a
    server's build gives, where OpenBLAS runs on the same kind of processor.

    Args:
        rows: see FeatureMap; also an iterator of blocks, which are read in bounded memory. The column
            names of a DataFrame or an Arrow table are stored with the map.
        spec, kernel, standardize, seed: see Client.build.
        timeout: seconds; DeadlineExceeded after that.
        progress: a function that takes `Progress`, or True for a bar on stderr.
        threads: how many threads compute; 0 means one for each processor.
    """
    source = source_of(rows)
    wanted = Spec.of(_UNNAMED, spec, kernel, standardize, seed).of_columns(source.names()).message().SerializeToString()
    with (_progress.observing(progress) as observer,
          Job("phimap_job_build", wanted, len(wanted), threads) as job):
        in_time = _InTime(timeout)
        count = _sent(job, source, observer, in_time, (), lambda *_: b"")
        artifact = job.finish(_watched(observer, count, in_time))
    return FeatureMap(artifact, kernel=given_values if (kernel or "").lstrip().startswith("precomputed") else None)


def train(rows: Any, labels: Iterable[Any], *, spec: str, kernel: str | None = None, standardize: bool = False,
          learn_scales: bool = False, learner: str | None = None, task: str | None = None,
          weights: Iterable[float] | None = None, groups: Iterable[Any] | None = None,
          parts: Iterable[str | None] | None = None, seed: int = 0, timeout: float | None = None,
          progress: ProgressArgument = None, threads: int = 0) -> FeatureMap:
    """Builds a map from those of the rows that are trained on, trains a head on it, and returns the map
    with the head; see Client.train for the arguments. FeatureMap.train trains on a map that exists."""
    features = TrainedFeatures.of(spec, kernel, standardize, learn_scales)
    wanted = TrainingSpec.of(LabeledRows.of(labels, weights, groups, parts), learner, task, seed, None, None, "")
    return _trained_map(wanted, features, rows, timeout, progress, threads)


def tune(rows: Any, labels: Iterable[Any], *, budget: float = 600.0, max_landmarks: int | None = None,
         learner: str | None = None, task: str | None = None, weights: Iterable[float] | None = None,
         groups: Iterable[Any] | None = None, parts: Iterable[str | None] | None = None, seed: int = 0,
         timeout: float | None = None, progress: ProgressArgument = None, threads: int = 0) -> FeatureMap:
    """Chooses kernel, length scales, landmarks and learner by labeled rows, and returns the map that is
    trained with them; see Client.tune for the arguments."""
    wanted = TrainingSpec.of(LabeledRows.of(labels, weights, groups, parts), learner, task, seed, None, None, "")
    return _trained_map(wanted, TrainedFeatures.tuned(budget, max_landmarks), rows, timeout, progress, threads)


def list_capabilities() -> Capabilities:
    """Returns the families, kernels, policies and learners of this process, each with its parameters."""
    listed = Bytes()
    check_call(_native.engine().phimap_capabilities, ctypes.byref(listed))
    return Capabilities(service_pb.ListCapabilitiesResponse.FromString(taken(listed)))


def _trained_map(wanted: TrainingSpec, features: TrainedFeatures | None, rows: Any, timeout: float | None,
                 progress: ProgressArgument, threads: int) -> FeatureMap:
    source = source_of(rows)
    if features is not None:
        wanted = wanted.building(_UNNAMED, features, source.names())
    return FeatureMap(_trained(wanted, None, source, timeout, progress, threads))


def _trained(wanted: TrainingSpec, features: FeatureMap | None, source: RowSource, timeout: float | None,
             progress: ProgressArgument, threads: int) -> bytes:
    spec = wanted.message().SerializeToString()
    known = wanted.known
    names = features.column_names if features is not None else ()

    def labels(begin: int, end: int) -> bytes:
        check_labeled(len(known.labels), end, or_more=True)
        return bytes(known.message(begin, end).SerializeToString())

    with (_progress.observing(progress) as observer,
          Job("phimap_job_train", features._handle if features is not None else None, spec, len(spec),
              os.fsencode(tempfile.gettempdir()), SPOOL_BYTES, threads) as job):
        in_time = _InTime(timeout)
        count = _sent(job, source, observer, in_time, names, labels)
        wanted.check_count(count)
        return job.finish(_watched(observer, count, in_time))


class _InTime:
    """Ends work by an exception once its time is up. The time begins now; None is no limit."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def check(self, *_: Any) -> None:
        if self._end is not None and time.monotonic() > self._end:
            raise DeadlineExceeded(f"timeout: the work had not ended after {self._timeout} seconds")


def _sent(job: Job, source: RowSource, observer: Observer, in_time: _InTime, names: tuple[str, ...],
          known: Callable[[int, int], bytes]) -> int:
    """Gives a job all rows, with what `known` says of the rows from one to another. Returns their number."""
    count = 0
    while (block := source.next(BLOCK_LIMITS)) is not None:
        block = in_order(block, names, "the map")
        end = count + block.rows
        try:
            in_time.check()
            job.add(GivenRows(block), known(count, end), in_time.check)
        except Error as error:
            raise of_stream(error) from None
        count = end
        total = source.row_count
        observer(Progress("reading", count, total, count / total if total else None))
    return count


def _watched(observer: Observer, rows: int, in_time: _InTime) -> _native.Observer:
    """Returns an observer of the library's work that ends it when the time is up."""
    def told(phase: str, fraction: float) -> None:
        in_time.check()
        observer(Progress(phase, rows, rows, fraction))

    return told


def _revived(artifact: bytes, kernel: Kernel | None, max_bytes: int) -> FeatureMap:
    return FeatureMap(artifact, kernel=kernel, max_bytes=max_bytes)


