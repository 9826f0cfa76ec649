"""Results that calls return: messages of the API that print as short text, and as tables in notebooks."""
from __future__ import annotations

import dataclasses
import datetime
import html
import keyword
import re
from typing import TYPE_CHECKING, Any, ClassVar, Union

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from phimap import _result_text
from phimap.v1 import examples_pb2 as examples_pb
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

_NUMBERS = frozenset({
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64, FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE})

__all__ = ["Advice", "Alias", "AliasDrift", "AuditEntry", "BuildEstimate", "BuildJob", "Capabilities", "Capability", "Certificate", "Drift",
           "Evaluation", "Head", "Mapping", "Parameter", "Prediction", "Result", "TrainingReport", "Version", "VersionRef", "result_of"]


class Result:
    """An immutable message. Its fields are attributes: a nested message is a Result, a repeated
    field a tuple, an enum a word such as "done", a time a datetime, and a number that was not
    measured is None. A field whose name is a keyword has an underscore behind it (`lambda_`). A
    nested message that is absent, such as the kernel error of a mapping that approximates no
    kernel, is a Result that is false and whose numbers are None. `message` is the message itself.
    `result == other` compares the content with that of a Result or a message. Can be pickled.
    Thread-safe.
    """

    __slots__ = ("_absent", "message")
    # The message's class, and the classes of results by the full name of their message.
    _type: ClassVar[Any]
    _kinds: ClassVar[dict[str, type[Result]]] = {}
    # Results are compared by content and, like messages, are not hashable.
    __hash__ = None  # type: ignore[assignment]

    message: Any
    # Whether the message that has this one as a field does not have it.
    _absent: bool

    def __init__(self, message: Any = None, **fields: Any) -> None:
        if message is None:
            message = self._type(**{name: value.message if isinstance(value, Result) else value for name, value in fields.items()})
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "_absent", False)

    def __init_subclass__(cls, of: Any) -> None:
        super().__init_subclass__()
        cls._type = of
        Result._kinds[of.DESCRIPTOR.full_name] = cls

    if not TYPE_CHECKING:  # A type checker sees the fields that each class declares.
        def __getattr__(self, name: str) -> Any:
            if name in Result.__slots__ or name.startswith("__"):  # `message` is not set yet while a Result is copied
                raise AttributeError(name)
            plain = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
            field = self.message.DESCRIPTOR.fields_by_name.get(plain)
            return getattr(self.message, name) if field is None else self._value(field, getattr(self.message, plain))

    def _value(self, field: Any, value: Any) -> Any:
        if field.label == FieldDescriptor.LABEL_REPEATED:
            return tuple(map(result_of, value))
        if field.message_type is None:
            if field.containing_oneof is not None and not self.message.HasField(field.name):
                return None
            if field.enum_type is not None:
                return _word_of(field.enum_type, value)
            return None if self._absent and field.cpp_type in _NUMBERS else value
        absent = self._absent or not self.message.HasField(field.name)
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return None if absent else value.ToDatetime(datetime.timezone.utc)
        if field.message_type.full_name == "google.protobuf.Duration":
            return None if absent else value.ToTimedelta()
        nested = result_of(value)
        object.__setattr__(nested, "_absent", absent)
        return nested

    def __bool__(self) -> bool:
        return not self._absent

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: a {type(self).__name__} is an answer of the server and cannot be changed")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.message.DESCRIPTOR.fields_by_name]

    def __eq__(self, other: object) -> bool:
        return bool(self.message == (other.message if isinstance(other, Result) else other))

    def __reduce__(self) -> Any:
        return _revived, (type(self.message), self.message.SerializeToString(), self._absent)

    def __repr__(self) -> str:
        return _result_text.line_of(self)

    def __str__(self) -> str:
        facts = _result_text.facts_of(self)
        if not facts:
            return repr(self)
        width = max(len(name) for name, _ in facts)
        return "\n".join([_result_text.title_of(self), *(f"  {name:{width}}  {value}" for name, value in facts)])

    def _repr_html_(self) -> str:
        facts = _result_text.facts_of(self) or [("", repr(self))]
        # Without colours: a notebook may be light or dark.
        cells = "".join(f'<tr><th style="text-align:left">{html.escape(name)}</th>'
                        f'<td style="text-align:left">{html.escape(value)}</td></tr>' for name, value in facts)
        return f"<table><caption>{html.escape(_result_text.title_of(self))}</caption>{cells}</table>"


class VersionRef(Result, of=mapping_pb.VersionRef):
    """A reference to one version; its `str` is the reference that calls take, such as "letters@3"."""

    name: str
    number: int
    digest: str

    def __str__(self) -> str:
        return _result_text.reference(self) or repr(self)


class DenseRows(Result, of=examples_pb.DenseRows):
    """A block of rows."""

    rows: int
    columns: int
    float32_le: bytes | None
    float64_le: bytes | None


class SelfCheck(Result, of=mapping_pb.SelfCheck):
    """Reference vectors: rows, and the bits of their features."""

    rows: DenseRows
    features: DenseRows


class Verdict(Result, of=mapping_pb.Verdict):
    """The server's judgement of a version, and what to do."""

    grade: str
    cause: str
    reason: str
    advice: str


class Certificate(Result, of=mapping_pb.Certificate):
    """Measurements of a version, made when it was built."""

    class PairBound(Result, of=mapping_pb.Certificate.PairBound):
        pairs: int
        largest: float
        share: float

    class Error(Result, of=mapping_pb.Certificate.Error):
        mean: float
        max: float
        scale: float
        count: int
        half_width: float | None
        interval_low: float | None
        interval_high: float | None
        pair_bound: Certificate.PairBound

    class EffectiveDimension(Result, of=mapping_pb.Certificate.Spectrum.EffectiveDimension):
        lambda_: float
        kernel: float
        mapping: float

    class Spectrum(Result, of=mapping_pb.Certificate.Spectrum):
        rows: int
        trace: float
        residual: float
        eigenvalues: tuple[float, ...]
        effective_dimensions: tuple[Certificate.EffectiveDimension, ...]
        held_out: bool

    class ResidualShare(Result, of=mapping_pb.Certificate.ResidualShare):
        median: float
        quantile_95: float
        rows: int
        zero_rows: int

    class Smoother(Result, of=mapping_pb.Certificate.Fidelity.Smoother):
        lambda_: float
        distance: float

    class Fidelity(Result, of=mapping_pb.Certificate.Fidelity):
        rows: int
        smoothers: tuple[Certificate.Smoother, ...]
        gram_error: float
        centred_gram_error: float
        self_error_median: float
        self_error_quantile_95: float
        distance_error_quantile_95: float

    class EffectiveRows(Result, of=mapping_pb.Certificate.EffectiveRows):
        kernel: float
        error: float

    class Interval(Result, of=mapping_pb.Certificate.Interval):
        low: float
        high: float

    stream_rows: int
    pool_rows: int
    held_out_rows: int
    landmarks: int
    rank: int | None
    tolerance: float | None
    largest_residual: float | None
    trace_residual: float | None
    held_out_trace_residual: float | None
    kernel_error: Certificate.Error
    serving_error: Certificate.Error
    policy: str
    theorem: str
    warnings: tuple[str, ...]
    pivots: tuple[float, ...]
    self_check: SelfCheck
    pool_trace_residual: float | None
    spectrum: Certificate.Spectrum
    mean_squared_norm: float | None
    landmark_rows: tuple[int, ...]
    residual_share: Certificate.ResidualShare
    zero_landmarks: int | None
    theorem_scope: str
    serving_share: float | None
    fidelity: Certificate.Fidelity
    left_out_distance: float | None
    effective_rows: Certificate.EffectiveRows
    residual_mass: Certificate.Interval
    serving_distance: float | None
    kernel_rank: int | None
    verdict: Verdict


class TrainingReport(Result, of=mapping_pb.TrainingReport):
    """How well a head answers, measured on test rows that neither training nor any choice has seen."""

    class Estimate(Result, of=mapping_pb.TrainingReport.Estimate):
        value: float
        low: float
        high: float

    class Parts(Result, of=mapping_pb.TrainingReport.Parts):
        train: int
        validate: int
        calibrate_link: int
        calibrate_sets: int
        test: int
        unused: int

    class Class(Result, of=mapping_pb.TrainingReport.Classes.Class):
        rows: int
        predicted: int
        correct: int

    class Confusion(Result, of=mapping_pb.TrainingReport.Classes.Confusion):
        actual: int
        predicted: int
        count: int

    class RocPoint(Result, of=mapping_pb.TrainingReport.Classes.RocPoint):
        threshold: float
        false_positives: float
        true_positives: float

    class ReliabilityBin(Result, of=mapping_pb.TrainingReport.Classes.ReliabilityBin):
        bin: int
        rows: int
        correct: int
        mean_confidence: float

    class Classes(Result, of=mapping_pb.TrainingReport.Classes):
        rows: int
        errors: int
        error: TrainingReport.Estimate
        classes: tuple[TrainingReport.Class, ...]
        confusion: tuple[TrainingReport.Confusion, ...]
        balanced_accuracy: float
        auc: float | None
        roc: tuple[TrainingReport.RocPoint, ...]
        log_loss: float | None
        brier: float | None
        calibration_error: float | None
        reliability: tuple[TrainingReport.ReliabilityBin, ...]
        margin_quantiles: tuple[float, ...]

    class Numbers(Result, of=mapping_pb.TrainingReport.Numbers):
        rows: int
        rmse: TrainingReport.Estimate
        mae: TrainingReport.Estimate
        r_squared: TrainingReport.Estimate
        residual_quantiles: tuple[float, ...]
        standardised_error: float | None

    class Coverage(Result, of=mapping_pb.TrainingReport.Coverage):
        confidence: float
        rows: int
        covered: int
        mean_size: float

    class Baseline(Result, of=mapping_pb.TrainingReport.Baseline):
        name: str
        error: float

    class Candidate(Result, of=mapping_pb.TrainingReport.Choice.Candidate):
        value: float
        loss: float

    class Choice(Result, of=mapping_pb.TrainingReport.Choice):
        parameter: str
        loss: str
        chosen: float
        candidates: tuple[TrainingReport.Candidate, ...]

    class Folding(Result, of=mapping_pb.TrainingReport.Folding):
        rows: int
        largest_difference: float
        changed: int

    class Trial(Result, of=mapping_pb.TrainingReport.Trial):
        spec: str
        kernel: str
        standardize: bool
        learner: str
        rows: int
        loss: float | None
        error: float | None
        microseconds: float | None

    parts: TrainingReport.Parts
    confidence: float
    premise: str
    classes: TrainingReport.Classes
    numbers: TrainingReport.Numbers
    coverage: tuple[TrainingReport.Coverage, ...]
    baselines: tuple[TrainingReport.Baseline, ...]
    choice: TrainingReport.Choice
    folding: TrainingReport.Folding
    notes: tuple[str, ...]
    trials: tuple[TrainingReport.Trial, ...]


class Head(Result, of=mapping_pb.Head):
    """What makes answers of features: classes or numbers, whichever `task` says."""

    task: str
    learner: str
    class_names: tuple[str, ...]
    features_digest: str
    folded: bool
    calibration_rows: int
    class_conditional: bool
    has_deviations: bool
    has_probabilities: bool
    report: TrainingReport


class Version(Result, of=mapping_pb.Version):
    """One version of a mapping, with its certificate and its head if the call returns them."""

    ref: VersionRef
    artifact_size_bytes: int
    create_time: datetime.datetime | None
    input_columns: int
    output_columns: int
    serving_type: str
    spec_text: str
    kernel_text: str
    certificate: Certificate
    imported: bool
    standardize: bool | None
    seed: int | None
    column_names: tuple[str, ...]
    head: Head
    ttl: datetime.timedelta | None
    expire_time: datetime.datetime | None
    made_by: str


class Evaluation(Result, of=learning_pb.Evaluation):
    """A learner's error on a version's features, and its margins."""

    class Class(Result, of=learning_pb.Evaluation.Class):
        label: str
        rows: int
        tested_rows: int
        predicted: int
        correct: int

    class Confusion(Result, of=learning_pb.Evaluation.Confusion):
        actual: int
        predicted: int
        count: int

    class Fold(Result, of=learning_pb.Evaluation.Fold):
        trained_rows: int
        tested_rows: int
        errors: int
        unseen_classes: int
        summary: str

    class CertifiedMargin(Result, of=learning_pb.Evaluation.CertifiedMargin):
        alpha: float
        rows_margin: float
        margin: float | None

    version: VersionRef
    learner: str
    seed: int
    held_out: float
    rows: int
    tested_rows: int
    errors: int
    error: float
    error_standard_error: float
    classes: tuple[Evaluation.Class, ...]
    confusion: tuple[Evaluation.Confusion, ...]
    folds: tuple[Evaluation.Fold, ...]
    margin_quantiles: tuple[float, ...]
    unnormalised_margin_quantiles: tuple[float, ...]
    kernel_margin_quantiles: tuple[float, ...]
    intercept_scale: float
    certified_margins: tuple[Evaluation.CertifiedMargin, ...]
    confidence: float
    warnings: tuple[str, ...]
    error_low: float | None
    error_high: float | None
    error_premise: str


class Alias(Result, of=mapping_pb.Alias):
    """A name for a version that can be moved."""

    name: str
    version: int
    etag: str
    previous_version: int
    move_time: datetime.datetime | None
    digest: str
    moved_by: str


class Mapping(Result, of=mapping_pb.Mapping):
    """A mapping: its name, its aliases and how many versions it has."""

    name: str
    newest_version: int
    version_count: int
    aliases: tuple[Alias, ...]
    create_time: datetime.datetime | None


class BuildJob(Result, of=mapping_pb.BuildJob):
    """A build and its state: "receiving", "queued", "computing", "publishing", "done", "failed" or "cancelled"."""

    name: str
    build_id: str
    state: str
    rows_received: int
    phase: str
    fraction: float
    seconds_left: float
    version: VersionRef
    error_code: int
    error_message: str
    owner: str


class BuildEstimate(Result, of=service_pb.EstimateBuildResponse):
    """The cost of a build, estimated from above."""

    peak_memory_bytes: int
    artifact_size_bytes: int
    flops: float
    seconds: float
    reserved_memory_bytes: int
    memory_limit_bytes: int


class Advice(Result, of=service_pb.AdviseResponse):
    """How many landmarks and dimensions suffice."""

    class Line(Result, of=service_pb.AdviseResponse.Line):
        subject: str
        source: str
        tier: str
        dimensions: int | None
        margin: float | None
        note: str
        landmarks: int | None
        error: float | None
        distortion: float | None
        success: float | None
        draws: int | None

    lines: tuple[Advice.Line, ...]
    verdict: str
    proposal: str
    f3_helps: bool
    f3_helps_below_error: float
    to_do: str
    to_measure: str


class Parameter(Result, of=service_pb.ParameterInfo):
    """A parameter in the texts of specs, kernels and learners."""

    name: str
    type: str
    required: bool
    default_value: str
    least: float | None
    largest: float | None
    above_least: bool
    words: tuple[str, ...]
    unit: str
    line: str
    expected: str


class Capability(Result, of=service_pb.Capability):
    """A family, kernel, policy or learner: its name in texts, a line of description, and its parameters."""

    name: str
    line: str
    formula: str
    parameters: tuple[Parameter, ...]
    kernels: str
    leaf_kernels: tuple[str, ...]
    default_kernel: str
    theorem: str
    learns_from_kernel: bool
    takes_strings: bool
    takes_remote_kernels: bool
    is_default: bool


class Capabilities(Result, of=service_pb.ListCapabilitiesResponse):
    """The families, kernels, policies and learners of a server."""

    families: tuple[Capability, ...]
    kernels: tuple[Capability, ...]
    policies: tuple[Capability, ...]
    learners: tuple[Capability, ...]


class AuditEntry(Result, of=service_pb.AuditEntry):
    """A change that was made or refused: what, by whom, from where. Numbers are 0 and texts empty where they do not apply."""

    number: int
    time: datetime.datetime | None
    method: str
    principal: str
    peer: str
    request_id: str
    mapping: str
    alias: str
    build_id: str
    previous_version: int
    previous_digest: str
    version: int
    digest: str
    outcome: str
    reason: str
    detail: str


class AliasDrift(Result, of=service_pb.AliasDrift):
    """The test of the rows that an alias's version has served. Evidence of 1 and more is an alarm."""

    class Score(Result, of=service_pb.AliasDrift.Score):
        kind: str
        index: int
        name: str
        location: float
        spread: float

    class Column(Result, of=service_pb.AliasDrift.Column):
        index: int
        name: str
        share: float

    alias: str
    version: int
    not_tested: str
    false_alarms: float
    promised_rows: int
    rows: int
    rows_not_finite: int
    evidence: float
    crossed_time: datetime.datetime | None
    scores: tuple[AliasDrift.Score, ...]
    counted_rows: int
    shift: float | None
    shift_scale: float | None
    beyond_range_share: float
    beyond_range_expected: float
    columns_beyond_range: tuple[AliasDrift.Column, ...]


class Drift(Result, of=service_pb.GetDriftResponse):
    """The evidence for drift of each alias of a mapping."""

    aliases: tuple[AliasDrift, ...]


# Names of classes; integers if all names are integers.
ClassNames = Union[npt.NDArray[np.str_], npt.NDArray[np.int64]]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The answers of a version's head to some rows. What was not asked for, and what the head does not
    have, is None; of the others, an entry or a row belongs to each row.

    `prediction == other` compares the content. Can be pickled.

    Attributes:
        version: the version that answered.
        classes: for classes, their names, in the order of columns and indices.
        indices: for classes, the place of each row's class among `classes`.
        values: for numbers, in the target's units.
        scores: rows × 1 for two classes, where over 0 means the second, and for numbers; else
            rows × classes, of which the highest is the answer.
        probabilities: rows × classes. Each row adds up to 1.
        sets: rows × classes, True for the classes in the row's set: `classes[sets[i]]` are those of
            row i, which may be none or all.
        intervals: rows × 2, from low to high; infinite if too few rows calibrated the head for this
            confidence.
        deviations: the standard deviation of an observation of the target at each row.
    """

    version: VersionRef
    classes: ClassNames | None = None
    indices: npt.NDArray[np.int32] | None = None
    values: npt.NDArray[np.float64] | None = None
    scores: npt.NDArray[np.float64] | None = None
    probabilities: npt.NDArray[np.float64] | None = None
    sets: npt.NDArray[np.bool_] | None = None
    intervals: npt.NDArray[np.float64] | None = None
    deviations: npt.NDArray[np.float64] | None = None

    __hash__ = None  # type: ignore[assignment]

    @property
    def labels(self) -> ClassNames | None:
        """For classes, the name of each row's class: an integer if all names of classes are
        integers, else a text."""
        return None if self.classes is None or self.indices is None else self.classes[self.indices]

    def __len__(self) -> int:
        answers = self.values if self.indices is None else self.indices
        return 0 if answers is None else len(answers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prediction) and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) if field.name != "version" else
            self.version == other.version for field in dataclasses.fields(self))

    def __repr__(self) -> str:
        return _result_text.prediction_line(self)


def result_of(value: Any) -> Any:
    """Returns the Result of a message of the API. Returns anything else unchanged."""
    if not isinstance(value, Message) or value.DESCRIPTOR.file.package != "phimap.v1":
        return value
    return Result._kinds.get(value.DESCRIPTOR.full_name, Result)(value)


def _word_of(enum: Any, number: int) -> str:
    """Returns "data set" for SUBJECT_DATA_SET; an empty text for the unspecified value, and the
    number of a value that this release does not know."""
    if number not in enum.values_by_number:
        return str(number)
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"
    word = enum.values_by_number[number].name.removeprefix(prefix).lower().replace("_", " ")
    return "" if word == "unspecified" else word


def _revived(kind: Any, content: bytes, absent: bool = False) -> Any:
    result = result_of(kind.FromString(content))
    object.__setattr__(result, "_absent", absent)
    return result
