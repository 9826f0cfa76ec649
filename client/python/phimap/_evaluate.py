"""The decisions of one evaluation: what to send, and what an event means. The clients do the input
and output. See _build."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from phimap import _wire
from phimap._blocks import Block
from phimap._build import check_text, seed_number
from phimap._columns import in_order, names_hash
from phimap._pins import elsewhere, nowhere
from phimap.errors import Error, Internal, InvalidArgument, Reason
from phimap.progress import Observer, Progress
from phimap.v1 import learning_service_pb2 as learning_pb


def texts_of(labels: Iterable[Any]) -> list[str]:
    """Returns labels as the texts that the server takes: `str` of each label that is not a text. A
    numpy number is converted as the plain number. Raises InvalidArgument with the row if a label is
    missing: None, NaN, NA or NaT, or an empty text."""
    if isinstance(labels, (str, bytes)):
        raise TypeError("labels: expected one for each row, got a single text")
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if any(isinstance(value, (list, tuple)) for value in values):
        raise InvalidArgument("labels: expected one dimension, got more")
    for row, value in enumerate(values):
        if is_missing(value):
            raise InvalidArgument(f"labels[{row}]: row {row} has no label: got {value!r}; leave the row out, or give it a "
                                  'label of its own, for example "unknown"')
    return [value if isinstance(value, str) else str(value) for value in values]


def is_missing(label: Any) -> bool:
    """Returns True for the values by which Python, numpy and pandas say that there is no value, and
    for an empty text."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, float):
        return label != label
    return isinstance(label, (str, bytes)) and not label.strip()


def check_labeled(labels: int, rows: int, *, or_more: bool = False) -> None:
    """Raises InvalidArgument unless each of the rows, or of the rows so far if `or_more` may come,
    has a label."""
    if labels < rows or (labels > rows and not or_more):
        raise InvalidArgument(f"labels: expected one for each row, got {labels} labels and {rows}{' or more' if or_more else ''} "
                              "rows")


def spec_of(reference: str, learner: str | None, held_out: float | None, folds: int, seed: int, confidence: float,
            expected_digest: str, names: tuple[str, ...] | None = None) -> bytes:
    if learner is not None:
        check_text("learner", learner)
    return learning_pb.EvaluateRequest(spec=learning_pb.EvaluationSpec(
        reference=reference, learner=learner or "", held_out=held_out or 0.0, folds=folds, seed=seed_number(seed),
        confidence=confidence, expected_digest=expected_digest, column_names_hash=names_hash(names))).SerializeToString()


class EvaluationSession:
    """The state of one evaluation: the rows and labels to send, and the server's answers."""

    def __init__(self, spec: bytes, labels: list[str], observer: Observer, total_rows: int | None) -> None:
        self.spec = spec
        self._labels = labels
        self._observer = observer
        self._total_rows = total_rows
        self._rows_sent = 0
        # The version's column names in the version's order, if the rows come in another order; see
        # arrange.
        self._names: tuple[str, ...] = ()
        self._evaluation: learning_pb.Evaluation | None = None
        self._forgot_history = False
        # The error after which the version was requested by its digest; None if it was not.
        self._refused: Error | None = None
        if total_rows is not None:
            check_labeled(len(labels), total_rows)

    def may_repeat_after(self, error: Error) -> bool:
        """Returns True if the call may be repeated, with `spec` as it is now. If the version was
        requested by its digest and was not found either, raises the error with which its number was
        refused."""
        if self._rows_sent:
            return False
        if error.reason == Reason.REVISION_HISTORY_MISMATCH:
            first, self._forgot_history = not self._forgot_history, True
            return first
        if self._refused is not None and nowhere(error):
            raise self._refused from None
        request = learning_pb.EvaluateRequest.FromString(self.spec)
        found = elsewhere(request.spec.reference, request.spec.expected_digest, error)
        if found is None:
            return False
        request.spec.reference = found
        self.spec, self._refused = request.SerializeToString(), error
        return True

    @property
    def reference(self) -> str:
        """The reference that `spec` asks for."""
        return str(learning_pb.EvaluateRequest.FromString(self.spec).spec.reference)

    def arrange(self, names: tuple[str, ...]) -> None:
        """Puts the columns of the rows in the order of `names`, the version's column names. Called
        after the version refused the rows for their column names."""
        request = learning_pb.EvaluateRequest.FromString(self.spec)
        request.spec.column_names_hash = names_hash(names)
        self.spec, self._names = request.SerializeToString(), names

    def request(self, block: Block) -> bytes:
        if self._names:
            block = in_order(block, self._names, self.reference)
        begin = self._rows_sent
        self._rows_sent += block.rows
        check_labeled(len(self._labels), self._rows_sent, or_more=True)
        return _wire.evaluate_request(block, self._labels[begin:self._rows_sent])

    def report_sent(self) -> None:
        total = self._total_rows
        self._observer(Progress("sending", self._rows_sent, total, self._rows_sent / total if total else None))

    def finish(self) -> bytes:
        check_labeled(len(self._labels), self._rows_sent)
        return learning_pb.EvaluateRequest(
            finish=learning_pb.EvaluateFinish(row_count=self._rows_sent)).SerializeToString()

    def take(self, event: learning_pb.EvaluateResponse) -> None:
        if event.HasField("evaluation"):
            self._evaluation = event.evaluation
        elif event.progress.state in (learning_pb.EvaluateProgress.STATE_QUEUED, learning_pb.EvaluateProgress.STATE_COMPUTING):
            phase = "queued" if event.progress.state == learning_pb.EvaluateProgress.STATE_QUEUED else "computing"
            self._observer(Progress(phase, self._rows_sent, self._total_rows, event.progress.fraction))

    def result(self) -> learning_pb.Evaluation:
        """Returns the evaluation. Called when the stream has ended."""
        if self._evaluation is None:
            raise Internal("the server ended the evaluation without a result")
        return self._evaluation
