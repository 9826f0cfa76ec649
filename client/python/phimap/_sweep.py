"""A learner's error over mappings, measured point by point and kept in a file, so that a sweep that was stopped goes on."""
from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping as Dictionary, Sequence
from typing import Any, Union

import numpy as np

from phimap import progress as _progress
from phimap._blocks import strings_of
from phimap._evaluate import texts_of
from phimap._pins import reference_to
from phimap.client import Client
from phimap.progress import Observer, Progress, ProgressArgument

FORMAT = "phimap-sweep-1"

# A version is deleted when it is measured; one whose sweep was killed, after so many seconds.
_TTL = 86_400

# A transform is timed on so many rows at most, so often.
_TIMED_ROWS = 4096
_TIMED_CALLS = 5

Specs = Union[str, Iterable[str], "Dictionary[str, Sequence[Any]]"]


@dataclasses.dataclass(frozen=True)
class SweepPoint:
    """One mapping, and what a learner makes of it: a line of the file.

    Attributes:
        spec, kernel, seed, learner: what was asked for, as it was written; with `data` they are what the point is known by.
        mapping, landmarks, policy, output_columns: of the version that was built; landmarks and policy are None without.
        error, error_standard_error, accuracy: of the learner on the `tested_rows` of all `rows`, which it did not learn from.
        kernel_error_mean: of |K(x, y) − F(x)·F(y)| over held-out rows, None where it was not measured.
        microseconds_per_row: of Transform, as this client sees it: the fastest of 5 calls of up to 4,096 rows.
        digest: of the version's artifact.
        data: SHA-256 of the labels and rows.
        standardize: whether the columns were shifted and scaled.
    """

    spec: str
    kernel: str
    seed: int
    learner: str
    mapping: str
    landmarks: int | None
    policy: str | None
    output_columns: int
    error: float
    error_standard_error: float
    accuracy: float
    kernel_error_mean: float | None
    microseconds_per_row: float
    rows: int
    tested_rows: int
    digest: str
    data: str
    standardize: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        return self.spec, self.kernel, self.seed, self.learner, self.data, self.standardize

    def line(self) -> str:
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, ensure_ascii=False, allow_nan=False)

    @staticmethod
    def of_line(line: str) -> SweepPoint:
        """ValueError if it is none of this format. Names that this release does not know are left out."""
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise ValueError(f'expected a JSON object with "format": "{FORMAT}", got {line:.60}')
        known = {field.name for field in dataclasses.fields(SweepPoint)}
        try:
            return SweepPoint(**{name: value for name, value in fields.items() if name in known})
        except TypeError as error:
            raise ValueError(f"a field is missing: {error}") from None


def sweep(client: Client, rows: Any, labels: Iterable[Any], *, specs: Specs,
          kernel: str | Sequence[str] = "rbf(gamma=scale)", seeds: Sequence[int] = (0,),
          learner: str | None = None, standardize: bool = False, path: str | os.PathLike[str] | None = None,
          progress: ProgressArgument = None) -> list[SweepPoint]:
    """Builds each mapping from the rows, and measures the error of a learner on its features, their kernel error and what
    mapping a row takes.

    The versions are deleted when they are measured. Each point that is done becomes a line of the file at `path` that
    survives a crash; a point of which the file has a line, for the same rows and labels, is not measured again. Points of
    other data and other mappings in the file stay there and are not returned.

    Args:
        rows, labels: see Client.evaluate; in memory. The mappings are built from all the rows, the learner learns from 70 %
            of them, drawn by the seed, and is tested on the rest.
        specs: texts as "f2(landmarks=300, policy=rpcholesky)", or a dictionary whose combinations are taken:
            {"mapping": ["f1", "f2"], "landmarks": [100, 300], "policy": ["uniform", "rpcholesky"]}.
        kernel, seeds: each is taken with each spec.
        learner, standardize: see Client.evaluate and Client.build; a learner of None is the server's default.
        path: of a file of JSON lines, which `SweepDisplay.from_file` and `phimap sweep` read too; None keeps none.
        progress: a function that takes `Progress`, or True for a bar on stderr.
    """
    texts = texts_of(labels)
    data = digest_of(rows, texts)
    kernels = [kernel] if isinstance(kernel, str) else list(kernel)
    learner = learner if learner is not None else _default_learner(client)
    asked = list(itertools.product(specs_of(specs), kernels, [int(seed) for seed in seeds]))
    done = {point.key: point for point in read_sweep(path, missing_ok=True)} if path is not None else {}
    points = []
    with _progress.observing(progress) as observer:
        for place, (spec, one, seed) in enumerate(asked):
            observer(Progress(f"point {place + 1} of {len(asked)}: {spec}", len(texts), len(texts), place / len(asked)))
            key = (spec, one, seed, learner, data, standardize)
            if key not in done:
                done[key] = _measured(client, rows, texts, spec, one, seed, learner, data, standardize)
                if path is not None:
                    _append(path, done[key])
            points.append(done[key])
        _finished(observer, len(asked), len(texts))
    return points


def read_sweep(path: str | os.PathLike[str], *, missing_ok: bool = False) -> list[SweepPoint]:
    """The points of a file, in its order. A last line without its end was being written when the power went, and is left
    out. ValueError names a line that is no point."""
    if missing_ok and not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")[:-1]
    points = []
    for place, line in enumerate(lines, 1):
        try:
            points.append(SweepPoint.of_line(line))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}, line {place}: {error}") from None
    return points


def specs_of(specs: Specs) -> list[str]:
    """Texts of mappings; of a dictionary, one for each combination of its values."""
    if isinstance(specs, str):
        return [specs]
    if not isinstance(specs, Dictionary):
        return list(specs)
    if "mapping" not in specs:
        raise ValueError(f'specs: expected "mapping" among the keys, as in {{"mapping": ["f2"], "landmarks": [100]}}, got '
                         f"{sorted(specs)}")
    families, names = specs["mapping"], [name for name in specs if name != "mapping"]
    return [f"{family}({', '.join(f'{name}={value}' for name, value in zip(names, values))})"
            for family in ([families] if isinstance(families, str) else families)
            for values in itertools.product(*(specs[name] for name in names))]


def digest_of(rows: Any, labels: Sequence[str]) -> str:
    """SHA-256, in hexadecimal, of each label in UTF-8, a zero byte, and the row: its numbers as little-endian float64, or its
    text in UTF-8 and another zero byte."""
    sha = hashlib.sha256()
    count = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    if count != len(labels):
        raise ValueError(f"labels: expected one for each row, got {len(labels)} labels and {count} rows")
    strings = strings_of(rows)
    for label, row in zip(labels, strings if strings is not None else _number_rows(rows)):
        sha.update(label.encode() + b"\0" + row_bytes(row))
    return sha.hexdigest()


def row_bytes(row: Any) -> bytes:
    if isinstance(row, (str, bytes)):
        return (row.encode() if isinstance(row, str) else row) + b"\0"
    return bytes(np.ascontiguousarray(row, "<f8").tobytes())


def _number_rows(rows: Any) -> Iterable[Any]:
    if hasattr(rows, "tocsr"):
        return (row.toarray().ravel() for row in rows.tocsr())
    return np.asarray(rows, np.float64)


def _default_learner(client: Client) -> str:
    """The text of the server's default, as `phimap sweep` writes it: points say which learner they are of."""
    return "".join(f"{one.name}()" for one in client.capabilities().learners if one.is_default)


def _measured(client: Client, rows: Any, labels: Sequence[str], spec: str, kernel: str, seed: int, learner: str,
              data: str, standardize: bool) -> SweepPoint:
    name = f"sweep-{uuid.uuid4().hex}"
    version = client.build(name, rows, spec=spec, kernel=kernel, standardize=standardize, seed=seed, ttl=_TTL)
    try:
        reference = reference_to(version)
        evaluation = client.evaluate(reference, rows, labels, learner=learner, seed=seed)
        certificate = version.certificate
        return SweepPoint(
            spec, kernel, seed, learner, version.mapping_text.partition("(")[0], certificate.landmarks or None,
            certificate.policy or None, version.output_columns, evaluation.error, evaluation.error_standard_error,
            1 - evaluation.error, certificate.kernel_error.mean if certificate.HasField("kernel_error") else None,
            _microseconds(client, reference, rows), evaluation.rows, evaluation.tested_rows, version.ref.digest, data,
            standardize)
    finally:
        client.delete_mapping(name)


def _microseconds(client: Client, reference: str, rows: Any) -> float:
    few = rows.iloc[:_TIMED_ROWS] if hasattr(rows, "iloc") else rows[:_TIMED_ROWS]
    count = few.shape[0] if hasattr(few, "shape") else len(few)
    seconds = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        client.transform(reference, few)
        seconds.append(time.perf_counter() - start)
    return round(1e6 * min(seconds) / count, 3)


def _append(path: str | os.PathLike[str], point: SweepPoint) -> None:
    """Returns when the line is on the disk."""
    with open(path, "ab+") as file:
        _cut_unfinished(file)
        file.write(point.line().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _cut_unfinished(file: Any) -> None:
    """A line without its end would run into the next one."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)


def _finished(observer: Observer, points: int, rows: int) -> None:
    observer(Progress(f"{points} of {points} points", rows, rows, 1.0))
