"""What one call of predictions asks for, and how its answers are read."""
from __future__ import annotations

import numbers
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from phimap import _wire
from phimap._blocks import Block
from phimap._retry import PREDICT, PREDICT_STREAM
from phimap._transform import Gathered, RowCall
from phimap.errors import Internal
from phimap.results import ClassNames, Prediction, VersionRef
from phimap.v1 import examples_pb2 as examples_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import predict_service_pb2 as predict_pb

# The API's limit.
_MAX_CLASSES = 1000
# Bytes of a label or a value in a message, and of what else belongs to a row, from above.
_ROW_BYTES = 16
_DOUBLE_BYTES = 8
# Bytes of a class in a set: an index under 2**14 takes two.
_SET_BYTES = 2


class PredictCall(RowCall[Prediction]):
    """Keeps what only the first answer of a stream has: the version and the names of its classes."""

    unary, stream, phase = PREDICT, PREDICT_STREAM, "predicting"
    # The server computes the features of a request that it cannot fold into the scores, so that the
    # features of 4,096 rows and not the small answers limit a request.
    most_rows = 4096

    def __init__(self, *, scores: bool = False, probabilities: bool = False, confidence: float | None = None,
                 deviations: bool = False) -> None:
        if confidence is not None and not (isinstance(confidence, numbers.Real) and 0 < confidence < 1):
            raise ValueError(f"confidence: expected a number in (0, 1), or None for neither sets nor intervals, got {confidence!r}")
        self._wanted = predict_pb.PredictRequest(scores=bool(scores), probabilities=bool(probabilities),
                                                 confidence=confidence or 0.0, deviations=bool(deviations))
        self.kind = f"predict {self._wanted}"
        self.first_row_bytes = self._row_bytes_of(_MAX_CLASSES)
        self._version: VersionRef | None = None
        self._classes: ClassNames | None = None

    def request(self, reference: str, expected_digest: str, block: Block) -> bytes:
        return _wire.predict_request(self._wanted, reference, expected_digest, block)

    def take(self, answer: bytes, rows: int) -> tuple[mapping_pb.VersionRef | None, Prediction]:
        message = _wire.prediction_of(answer)
        if message.HasField("version"):
            self._version = VersionRef(message.version)
            self._classes = class_names(message.class_names)
        if self._version is None:
            raise Internal("the server's first answer has no version")
        return message.version if message.HasField("version") else None, self._prediction(message, self._version, rows)

    @property
    def wanted(self) -> bytes:
        """The serialized request without version and rows."""
        return bytes(self._wanted.SerializeToString())

    def of_map(self, answer: bytes, rows: int, version: VersionRef) -> Prediction:
        """Returns the prediction of a serialized answer of this process, which names classes and no version."""
        message = _wire.prediction_of(answer)
        self._classes = class_names(message.class_names)
        return self._prediction(message, version, rows)

    def row_bytes(self, answer: Prediction) -> int:
        return self._row_bytes_of(0 if answer.classes is None else len(answer.classes))

    def gathered(self, row_count: int | None) -> Gathered[Prediction]:
        return _GatheredPredictions()

    def _row_bytes_of(self, classes: int) -> int:
        wanted = self._wanted
        row_bytes = _ROW_BYTES + _DOUBLE_BYTES * wanted.deviations
        row_bytes += _DOUBLE_BYTES * max(classes, 1) * (wanted.scores + wanted.probabilities)
        return row_bytes + (2 * _DOUBLE_BYTES + _SET_BYTES * classes) * (wanted.confidence > 0)

    def _prediction(self, message: predict_pb.PredictResponse, version: VersionRef, rows: int) -> Prediction:
        """Returns the prediction of `rows` rows. Internal if the message is not one."""
        wanted, classes = self._wanted, self._classes
        count = 0 if classes is None else len(classes)
        indices = values = sets = intervals = None
        if classes is not None:
            indices = _column(message.labels, np.int32, "labels", rows)
            if not np.all((0 <= indices) & (indices < count)):
                raise Internal(f"the server answered a label that is not the index of one of {count} classes")
            sets = _sets_of(message.sets, rows, count) if wanted.confidence else None
        else:
            values = _column(message.values, np.float64, "values", rows)
            if wanted.confidence:
                intervals = np.column_stack([_column(message.interval_lows, np.float64, "interval_lows", rows),
                                             _column(message.interval_highs, np.float64, "interval_highs", rows)])
        return Prediction(
            version=version, classes=classes, indices=indices, values=values,
            scores=_matrix(message.scores, rows) if wanted.scores else None,
            probabilities=_matrix(message.probabilities, rows, count) if wanted.probabilities else None,
            sets=sets, intervals=intervals,
            deviations=_column(message.deviations, np.float64, "deviations", rows) if wanted.deviations else None)


class _GatheredPredictions:
    def __init__(self) -> None:
        self._predictions: list[Prediction] = []

    def add(self, answer: Prediction) -> None:
        self._predictions.append(answer)

    def result(self) -> Prediction:
        first = self._predictions[0]
        if len(self._predictions) == 1:
            return first
        per_row = [field.name for field in fields(first) if field.name not in ("version", "classes")]
        return replace(first, **{name: np.concatenate([getattr(prediction, name) for prediction in self._predictions])
                                 for name in per_row if getattr(first, name) is not None})


def class_names(names: Any) -> ClassNames | None:
    """Returns the names of classes as an array, of integers if all are integers; None if there are
    none, which a head for numbers has."""
    if not names:
        return None
    texts = list(names)
    if all(_is_integer(text) for text in texts):
        return np.array([int(text) for text in texts], np.int64)
    return np.array(texts, np.str_)


def _is_integer(text: str) -> bool:
    """Returns True for the decimal form of an integer of 64 bits, as str writes it."""
    try:
        return str(int(text)) == text and -1 << 63 <= int(text) < 1 << 63
    except ValueError:
        return False


def _column(values: Any, dtype: npt.DTypeLike, name: str, rows: int) -> npt.NDArray[Any]:
    if len(values) != rows:
        raise Internal(f"the server answered {len(values)} {name} to a request of {rows} rows")
    return np.array(values, dtype)


def _matrix(dense: examples_pb.DenseRows, rows: int, columns: int | None = None) -> npt.NDArray[np.float64]:
    shape = (rows, dense.columns if columns is None else columns)
    if (dense.rows, dense.columns) != shape or len(dense.float64_le) != _DOUBLE_BYTES * rows * dense.columns:
        raise Internal(f"the server answered {dense.rows} × {dense.columns} numbers in {len(dense.float64_le)} bytes to a request "
                       f"of {rows} rows")
    return np.frombuffer(dense.float64_le, "<f8").reshape(shape)


def _sets_of(sets: Any, rows: int, classes: int) -> npt.NDArray[np.bool_]:
    if len(sets) != rows:
        raise Internal(f"the server answered {len(sets)} sets to a request of {rows} rows")
    members = np.zeros((rows, classes), np.bool_)
    row_of_each = np.repeat(np.arange(rows), [len(one.classes) for one in sets])
    indices = np.array([index for one in sets for index in one.classes], np.int64)
    if not np.all((0 <= indices) & (indices < classes)):
        raise Internal(f"the server answered a set with an index that is not one of {classes} classes")
    members[row_of_each, indices] = True
    return members
