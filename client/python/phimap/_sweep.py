"""A learner's error over specs, measured point by point and stored in a file, so that an
interrupted sweep can resume."""
from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping as Dictionary, Sequence
from typing import Any, Union

import numpy as np

from phimap import progress as _progress
from phimap._blocks import strings_of
from phimap._evaluate import texts_of
from phimap._pins import reference_to
from phimap._spec_text import spec_text
from phimap.client import Client
from phimap.feature_map import build, list_capabilities
from phimap.progress import Observer, Progress, ProgressArgument
from phimap.results import Capabilities, Evaluation, Version

FORMAT = "phimap-sweep-1"

# Seconds after which a version expires if its sweep was killed. Otherwise it is deleted once it is
# measured.
_TTL = 86_400

# Maximum number of rows of a timed transform, and how often it is timed.
_TIMED_ROWS = 4096
_TIMED_CALLS = 5

Specs = Union[str, Iterable[str], "Dictionary[str, Sequence[Any]]"]


@dataclasses.dataclass(frozen=True)
class SweepPoint:
    """The measurements of one version with a learner: a line of the file.

    Attributes:
        spec, kernel, seed, learner: the request, as it was written. With `data` and `standardize`
            they identify the point.
        family, landmarks, policy, output_columns: facts about the version that was built;
            landmarks and policy are None if the family has no landmarks.
        error, error_standard_error, accuracy: those of the learner, measured on `tested_rows` of
            the `rows`, on which it was not trained.
        error_low, error_high: interval of the error on rows to come, confidence 0.95 (see
            Evaluation); None in lines of earlier releases.
        kernel_error_mean: mean of |K(x, y) − F(x)·F(y)| over held-out rows; None if it was not
            measured.
        microseconds_per_row: time of Transform as this client sees it, in the fastest of 5 calls of up to 4,096 rows.
        digest: SHA-256 of the version's artifact.
        data: SHA-256 of the labels and rows.
        standardize: whether the columns were shifted and scaled.
    """

    spec: str
    kernel: str
    seed: int
    learner: str
    family: str
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
    error_low: float | None = None
    error_high: float | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return self.spec, self.kernel, self.seed, self.learner, self.data, self.standardize

    def line(self) -> str:
        return json.dumps({"format": FORMAT, **dataclasses.asdict(self)}, ensure_ascii=False, allow_nan=False)

    @staticmethod
    def of_line(line: str) -> SweepPoint:
        """Returns the point of a line. ValueError if the line does not have this format. Ignores
        fields that this release does not know."""
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise ValueError(f'expected a JSON object with "format": "{FORMAT}", got {line:.60}')
        if "mapping" in fields:  # so called before 0.2
            fields.setdefault("family", fields["mapping"])
        known = {field.name for field in dataclasses.fields(SweepPoint)}
        try:
            return SweepPoint(**{name: value for name, value in fields.items() if name in known})
        except TypeError as error:
            raise ValueError(f"a field is missing: {error}") from None


def sweep(rows: Any, labels: Iterable[Any], *, specs: Specs, client: Client | None = None,
          kernel: str | Sequence[str] | None = None, seeds: Sequence[int] = (0,),
          learner: str | None = None, standardize: bool = False, path: str | os.PathLike[str] | None = None,
          progress: ProgressArgument = None) -> list[SweepPoint]:
    """Builds each spec from the rows, and measures a learner's error on its features, their
    kernel error, and the time to map a row.

    The maps are built in this process or, with `client`, as versions on its server, each of which is
    deleted once it is measured. Each finished point becomes a line of the file at
    `path`, which survives a crash. A point that is in the file, for the same rows and labels, is
    not measured again. Points of other data and other specs stay in the file and are not
    returned.

    Args:
        rows, labels: see Client.evaluate; in memory. The versions are built from all the rows, the learner learns from 70 %
            of them, drawn by the seed, and is tested on the rest.
        specs: texts such as "f2(landmarks=300, policy=rpcholesky)", or a dictionary whose combinations are taken:
            {"family": ["f1", "fourier"], "landmarks": [100, 300], "dimensions": [200]}. Each family
            takes those of the parameters that it has; ValueError for one that no family has.
        kernel, seeds: each is combined with each spec; a kernel of None is the family's default.
        client: the client of the server that builds and measures; None means this process.
        learner, standardize: see Client.evaluate and Client.build; a learner of None is the default one.
        path: a file of JSON lines, which `SweepDisplay.from_file` and `phimap sweep` can read too;
            None writes no file.
        progress: a function that takes `Progress`, or True for a bar on stderr.
    """
    texts = texts_of(labels)
    data = digest_of(rows, texts)
    kernels = [kernel or ""] if kernel is None or isinstance(kernel, str) else list(kernel)
    offered = list_capabilities() if client is None else client.list_capabilities()
    learner = learner if learner is not None else _default_learner(offered)
    asked = list(itertools.product(specs_of(specs, offered), kernels, [int(seed) for seed in seeds]))
    done = {point.key: point for point in read_sweep(path, missing_ok=True)} if path is not None else {}
    points = []
    with _progress.observing(progress) as observer:
        for place, (spec, one, seed) in enumerate(asked):
            observer(Progress(f"point {place + 1} of {len(asked)}: {spec}", len(texts), len(texts), place / len(asked)))
            key = (spec, one, seed, learner, data, standardize)
            if key not in done:
                asked_for = (rows, texts, spec, one, seed, learner, data, standardize)
                done[key] = _measured_here(*asked_for) if client is None else _measured_there(client, *asked_for)
                if path is not None:
                    _append(path, done[key])
            points.append(done[key])
        _finished(observer, len(asked), len(texts))
    return points


def read_sweep(path: str | os.PathLike[str], *, missing_ok: bool = False) -> list[SweepPoint]:
    """Returns the points of a file, in the order of its lines. Ignores a last line without a line
    end, which is the rest of an interrupted write. The message of ValueError contains the number of
    a line that is not a point."""
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


def specs_of(specs: Specs, offered: Capabilities) -> list[str]:
    """Returns texts of specs, each once; for a dictionary, those of each family with all combinations
    of the values of its parameters."""
    if isinstance(specs, str):
        return [specs]
    if not isinstance(specs, Dictionary):
        return list(dict.fromkeys(specs))
    if "family" not in specs:
        raise ValueError(f'specs: expected "family" among the keys, as in {{"family": ["f2"], "landmarks": [100]}}, got '
                         f"{sorted(specs)}")
    parameters = {one.name: {parameter.name for parameter in one.parameters} for one in offered.families}
    families = [specs["family"]] if isinstance(specs["family"], str) else list(specs["family"])
    for family in families:
        if family not in parameters:
            raise ValueError(f"specs: the server has no family {family!r}; it has {', '.join(parameters)}")
    for name in specs:
        if name != "family" and not any(name in parameters[family] for family in families):
            raise ValueError(f"specs: none of {', '.join(families)} has a parameter {name!r}")
    texts: list[str] = []
    for family in families:
        names = [name for name in specs if name in parameters[family]]
        texts += [spec_text(family, **dict(zip(names, values))) for values in itertools.product(*(specs[name] for name in names))]
    return list(dict.fromkeys(texts))


def digest_of(rows: Any, labels: Sequence[str]) -> str:
    """Returns the SHA-256, in hexadecimal, of all labels and rows: for each row its label in UTF-8,
    a zero byte, and the row. A row is its numbers as little-endian float64, or its text in UTF-8
    and another zero byte."""
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


def _default_learner(offered: Capabilities) -> str:
    """Returns the text of the server's default learner, as `phimap sweep` writes it, because each
    point records its learner."""
    return "".join(f"{one.name}()" for one in offered.learners if one.is_default)


def _measured_here(rows: Any, labels: Sequence[str], spec: str, kernel: str, seed: int, learner: str, data: str,
                   standardize: bool) -> SweepPoint:
    made = build(rows, spec=spec, kernel=kernel or None, standardize=standardize, seed=seed)
    evaluation = made.evaluate(rows, labels, learner=learner, seed=seed)
    return _point(made.version, evaluation, _microseconds(made.transform, rows), spec, kernel, seed, learner, data, standardize)


def _measured_there(client: Client, rows: Any, labels: Sequence[str], spec: str, kernel: str, seed: int, learner: str,
                    data: str, standardize: bool) -> SweepPoint:
    name = f"sweep-{uuid.uuid4().hex}"
    version = client.build(name, rows, spec=spec, kernel=kernel or None, standardize=standardize, seed=seed, ttl=_TTL)
    try:
        reference = reference_to(version)
        evaluation = client.evaluate(reference, rows, labels, learner=learner, seed=seed)
        microseconds = _microseconds(functools.partial(client.transform, reference), rows)
        return _point(version, evaluation, microseconds, spec, kernel, seed, learner, data, standardize)
    finally:
        client.delete_mapping(name)


def _point(version: Version, evaluation: Evaluation, microseconds: float, spec: str, kernel: str, seed: int, learner: str,
           data: str, standardize: bool) -> SweepPoint:
    certificate = version.certificate
    return SweepPoint(
        spec, kernel, seed, learner, version.spec_text.partition("(")[0], certificate.landmarks or None,
        certificate.policy or None, version.output_columns, evaluation.error, evaluation.error_standard_error,
        1 - evaluation.error, certificate.kernel_error.mean if certificate.kernel_error else None,
        microseconds, evaluation.rows, evaluation.tested_rows, version.ref.digest, data,
        standardize, evaluation.error_low, evaluation.error_high)


def _microseconds(transform: Callable[[Any], Any], rows: Any) -> float:
    few = rows.iloc[:_TIMED_ROWS] if hasattr(rows, "iloc") else rows[:_TIMED_ROWS]
    count = few.shape[0] if hasattr(few, "shape") else len(few)
    seconds = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        transform(few)
        seconds.append(time.perf_counter() - start)
    return round(1e6 * min(seconds) / count, 3)


def _append(path: str | os.PathLike[str], point: SweepPoint) -> None:
    """Appends the point to the file. Returns when the line is on the disk."""
    with open(path, "ab+") as file:
        _cut_unfinished(file)
        file.write(point.line().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _cut_unfinished(file: Any) -> None:
    """Removes an incomplete last line, which would run into the next line."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)


def _finished(observer: Observer, points: int, rows: int) -> None:
    observer(Progress(f"{points} of {points} points", rows, rows, 1.0))
