"""What one training sends: the version whose features the head gets, and what is known of each row.
See _build."""
from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.duration_pb2 import Duration

from phimap import _wire
from phimap._blocks import Block
from phimap._build import Order, check_text, seed_number
from phimap._columns import in_order, names_hash
from phimap._evaluate import check_labeled, is_missing, texts_of
from phimap._lifetime import Ttl, ttl_message
from phimap._pins import reference_to
from phimap._retry import TRAIN
from phimap.errors import InvalidArgument
from phimap.results import Version
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

_TASKS = {None: mapping_pb.HEAD_TASK_UNSPECIFIED, "classes": mapping_pb.HEAD_TASK_CLASSES,
          "numbers": mapping_pb.HEAD_TASK_NUMBERS}
# By the names that the server's messages and the command line have for the parts.
_PARTS = {"train": learning_pb.TRAINING_PART_TRAIN, "validate": learning_pb.TRAINING_PART_VALIDATE,
          "calibrate-link": learning_pb.TRAINING_PART_CALIBRATE_LINK,
          "calibrate-sets": learning_pb.TRAINING_PART_CALIBRATE_SETS, "test": learning_pb.TRAINING_PART_TEST}


@dataclass(frozen=True)
class LabeledRows:
    """What is known of each row beside its values. See Client.train. The lists are empty if nothing
    is known, and otherwise have an entry for each row."""

    labels: list[str]
    weights: npt.NDArray[np.float64]
    groups: list[str]
    parts: list[learning_pb.TrainingPart]

    @staticmethod
    def of(labels: Iterable[Any], weights: Iterable[float] | None, groups: Iterable[Any] | None,
           parts: Iterable[str | None] | None) -> LabeledRows:
        """Raises InvalidArgument for a value that the server would refuse, with its row."""
        known = LabeledRows(texts_of(labels), np.empty(0) if weights is None else _weights_of(weights),
                            [] if groups is None else ["" if is_missing(group) else str(group) for group in groups],
                            [] if parts is None else [_part_of(row, part) for row, part in enumerate(parts)])
        for name, given, count in (("weights", weights, len(known.weights)), ("groups", groups, len(known.groups)),
                                   ("parts", parts, len(known.parts))):
            if given is not None and count != len(known.labels):
                raise InvalidArgument(f"{name}: expected one for each row, got {count} {name} and {len(known.labels)} labels",
                                      field=name)
        return known

    def message(self, begin: int, end: int) -> learning_pb.TrainingExamples:
        """Returns what is known of some rows, without the rows."""
        return learning_pb.TrainingExamples(labels=self.labels[begin:end], weights=self.weights[begin:end].tolist(),
                                            groups=self.groups[begin:end], parts=self.parts[begin:end])


@dataclass(frozen=True)
class TrainedFeatures:
    """TrainedFeatures that a training builds from its own rows. See Client.train and Client.tune."""

    spec: str
    kernel: str
    standardize: bool
    learn_scales: bool
    tuning: learning_pb.Tuning | None = None

    @staticmethod
    def of(spec: str | None, kernel: str | None, standardize: bool, learn_scales: bool) -> TrainedFeatures | None:
        """Returns None if no spec is given. ValueError for what only has a meaning with one."""
        if spec is None:
            for name, given in (("kernel", kernel is not None), ("standardize", standardize), ("learn_scales", learn_scales)):
                if given:
                    raise ValueError(f"{name}: is of features that are built from these rows; give spec too")
            return None
        check_text("spec", spec)
        if kernel is not None:
            check_text("kernel", kernel)
        return TrainedFeatures(spec, kernel or "", bool(standardize), bool(learn_scales))

    @staticmethod
    def tuned(budget: float, max_landmarks: int | None) -> TrainedFeatures:
        if not budget > 0:
            raise ValueError(f"budget: expected seconds over 0, got {budget!r}")
        if max_landmarks is not None and max_landmarks < 1:
            raise ValueError(f"max_landmarks: expected at least 1, or None, got {max_landmarks!r}")
        tuning = learning_pb.Tuning(max_landmarks=max_landmarks or 0)
        tuning.budget.FromNanoseconds(round(budget * 1e9))
        return TrainedFeatures("", "", False, False, tuning)


@dataclass(frozen=True)
class TrainingSpec(Order):
    """Describes what to train. See Client.train."""

    method, noun, verb, request = TRAIN, "training", "train", learning_pb.TrainRequest

    known: LabeledRows
    learner: str
    task: mapping_pb.HeadTask
    seed: int
    build_id: str
    ttl: Duration | None
    expected_digest: str
    # Set by `on`.
    name: str = ""
    reference: str = ""
    column_names: tuple[str, ...] = ()
    names_hash: int = 0
    features: TrainedFeatures | None = None

    @staticmethod
    def of(known: LabeledRows, learner: str | None, task: str | None, seed: int, build_id: str | uuid.UUID | None,
           ttl: Ttl | None, expected_digest: str) -> TrainingSpec:
        if learner is not None:
            check_text("learner", learner)
        if task not in _TASKS:
            raise ValueError(f"task: expected 'classes', 'numbers' or None, got {task!r}")
        return TrainingSpec(known, learner or "", _TASKS[task], seed_number(seed), str(build_id or uuid.uuid4()), ttl_message(ttl),
                            expected_digest)

    def on(self, version: Version, names: tuple[str, ...] | None) -> TrainingSpec:
        """Returns the spec for the version that gets the head, and for rows whose columns have these
        names.

        The version is requested by its number: a training that is sent again would otherwise find
        the version that it has made, which is then the newest of its name.
        """
        return replace(self, name=version.ref.name, reference=reference_to(version), column_names=version.column_names,
                       expected_digest=self.expected_digest or version.ref.digest,
                       names_hash=names_hash(version.column_names) if names is not None else 0)

    def building(self, name: str, features: TrainedFeatures, names: tuple[str, ...] | None) -> TrainingSpec:
        """Returns the spec for features that are built from the rows, whose columns have these names."""
        check_text("name", name)
        return replace(self, name=name, column_names=names or (), features=features)

    def message(self) -> learning_pb.TrainingSpec:
        if self.features is not None:
            build = service_pb.BuildSpec(
                name=self.name, spec=self.features.spec, kernel=self.features.kernel, standardize=self.features.standardize,
                seed=self.seed, column_names=self.column_names)
            return learning_pb.TrainingSpec(
                build_id=self.build_id, learner=self.learner, task=self.task, seed=self.seed, ttl=self.ttl, build=build,
                learn_scales=self.features.learn_scales, tuning=self.features.tuning)
        return learning_pb.TrainingSpec(
            reference=self.reference, build_id=self.build_id, learner=self.learner, task=self.task, seed=self.seed,
            expected_digest=self.expected_digest, column_names_hash=self.names_hash, ttl=self.ttl)

    def rows_request(self, block: Block, begin: int) -> bytes:
        end = begin + block.rows
        check_labeled(len(self.known.labels), end, or_more=True)
        if self.features is None:
            block = in_order(block, self.column_names, self.reference)
        return _wire.train_request(block, self.known.message(begin, end))

    def check_count(self, rows: int) -> None:
        check_labeled(len(self.known.labels), rows)


def _weights_of(weights: Iterable[float]) -> npt.NDArray[np.float64]:
    try:
        values = np.asarray(weights if hasattr(weights, "__len__") else list(weights), np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"weights: expected numbers: {error}", field="weights") from None
    if values.ndim != 1:
        raise InvalidArgument(f"weights: expected one dimension, got {values.ndim}", field="weights")
    wrong = ~(np.isfinite(values) & (values > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidArgument(f"weights[{row}]: expected a finite number over 0, got {values[row]}; leave out rows that shall not "
                              "count", field=f"weights[{row}]", row=row)
    return values


def _part_of(row: int, part: str | None) -> learning_pb.TrainingPart:
    if part is None:
        return learning_pb.TRAINING_PART_UNSPECIFIED
    if part not in _PARTS:
        raise InvalidArgument(f"parts[{row}]: expected {', '.join(map(repr, _PARTS))} or None, got {part!r}", field=f"parts[{row}]",
                              row=row)
    return _PARTS[part]
