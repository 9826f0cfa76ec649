"""The decisions of one evaluation: what to send, and what an event means. The clients do the input
and output. See _build."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from phimap import _wire
from phimap._blocks import Block
from phimap._columns import in_order, names_hash
from phimap._pins import elsewhere, nowhere
from phimap._revisions import OF_ANOTHER_HISTORY
from phimap.errors import Error, Internal, InvalidArgument
from phimap.progress import Observer, Progress
from phimap.v1 import evaluation_service_pb2 as evaluation_pb

EVALUATE = ("phimap.v1.EvaluationService", "Evaluate")


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
        if _is_missing(value):
            raise InvalidArgument(f"labels[{row}]: row {row} has no label: got {value!r}; leave the row out, or give it a "
                                  'label of its own, for example "unknown"')
    return [value if isinstance(value, str) else str(value) for value in values]


def _is_missing(label: Any) -> bool:
    """Returns True for the values by which Python, numpy and pandas say that there is no value, and
    for an empty text."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, float):
        return label != label
    return isinstance(label, (str, bytes)) and not label.strip()


def spec_of(reference: str, learner: str, held_out: float | None, folds: int, seed: int, confidence: float,
            expected_digest: str, names: tuple[str, ...] | None = None) -> bytes:
    if not isinstance(learner, str):
        raise TypeError(f"learner: expected text, got {type(learner).__name__} {learner!r:.80}")
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed: expected an integer, 0..2**64-1, got {seed!r}")
    return evaluation_pb.EvaluateRequest(spec=evaluation_pb.EvaluationSpec(
        reference=reference, learner=learner, held_out=held_out or 0.0, folds=folds, seed=int(seed),
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
        self._evaluation: evaluation_pb.Evaluation | None = None
        self._forgot_history = False
        # The error after which the version was requested by its digest; None if it was not.
        self._refused: Error | None = None
        if total_rows is not None and total_rows != len(labels):
            raise self._mismatch(total_rows)

    def may_repeat_after(self, error: Error) -> bool:
        """Returns True if the call may be repeated, with `spec` as it is now. If the version was
        requested by its digest and was not found either, raises the error with which its number was
        refused."""
        if self._rows_sent:
            return False
        if error.reason == OF_ANOTHER_HISTORY:
            first, self._forgot_history = not self._forgot_history, True
            return first
        if self._refused is not None and nowhere(error):
            raise self._refused from None
        request = evaluation_pb.EvaluateRequest.FromString(self.spec)
        found = elsewhere(request.spec.reference, request.spec.expected_digest, error)
        if found is None:
            return False
        request.spec.reference = found
        self.spec, self._refused = request.SerializeToString(), error
        return True

    @property
    def reference(self) -> str:
        """The reference that `spec` asks for."""
        return str(evaluation_pb.EvaluateRequest.FromString(self.spec).spec.reference)

    def arrange(self, names: tuple[str, ...]) -> None:
        """Puts the columns of the rows in the order of `names`, the version's column names. Called
        after the version refused the rows for their column names."""
        request = evaluation_pb.EvaluateRequest.FromString(self.spec)
        request.spec.column_names_hash = names_hash(names)
        self.spec, self._names = request.SerializeToString(), names

    def request(self, block: Block) -> bytes:
        if self._names:
            block = in_order(block, self._names, self.reference)
        begin = self._rows_sent
        self._rows_sent += block.rows
        if self._rows_sent > len(self._labels):
            raise self._mismatch(self._rows_sent)
        return _wire.evaluate_request(block, self._labels[begin:self._rows_sent])

    def report_sent(self) -> None:
        total = self._total_rows
        self._observer(Progress("sending", self._rows_sent, total, self._rows_sent / total if total else None))

    def finish(self) -> bytes:
        if self._rows_sent != len(self._labels):
            raise self._mismatch(self._rows_sent)
        return evaluation_pb.EvaluateRequest(
            finish=evaluation_pb.EvaluateFinish(row_count=self._rows_sent)).SerializeToString()

    def take(self, event: evaluation_pb.EvaluateResponse) -> None:
        if event.HasField("evaluation"):
            self._evaluation = event.evaluation
        elif event.progress.state in (evaluation_pb.EvaluateProgress.QUEUED, evaluation_pb.EvaluateProgress.COMPUTING):
            phase = evaluation_pb.EvaluateProgress.State.Name(event.progress.state).lower()
            self._observer(Progress(phase, self._rows_sent, self._total_rows, event.progress.fraction))

    def result(self) -> evaluation_pb.Evaluation:
        """Returns the evaluation. Called when the stream has ended."""
        if self._evaluation is None:
            raise Internal("the server ended the evaluation without a result")
        return self._evaluation

    def _mismatch(self, rows: int) -> InvalidArgument:
        return InvalidArgument(f"labels: expected one for each row, got {len(self._labels)} labels and "
                               f"{rows}{'' if self._total_rows is not None else ' or more'} rows")
