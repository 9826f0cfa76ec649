"""Tests phimap.sweep: its points, the file in which it keeps them, and how a stopped sweep is continued."""
import hashlib
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import phimap
from phimap import _sweep
from phimap._sweep import SweepPoint, digest_of, specs_of

SPECS = {"family": ["f1", "f2"], "landmarks": [5, 20], "policy": ["uniform", "given"]}
FIELDS = ["format", "spec", "kernel", "seed", "learner", "family", "landmarks", "policy", "output_columns", "error",
          "error_standard_error", "accuracy", "kernel_error_mean", "microseconds_per_row", "rows", "tested_rows", "digest",
          "data", "standardize", "error_low", "error_high"]


@pytest.fixture
def labels(rows):
    return ["far" if radius > 2 else "near" for radius in np.linalg.norm(rows, axis=1)]


def test_each_combination_is_a_point_and_nothing_stays_on_the_server(client, rows, labels):
    before = {mapping.name for mapping in client.list_mappings()}
    points = phimap.sweep(rows, labels, client=client, specs=SPECS, kernel="rbf(gamma=0.5)")
    assert [(point.family, point.landmarks, point.policy) for point in points] == [
        (family, landmarks, policy) for family in ("f1", "f2") for landmarks in (5, 20) for policy in ("uniform", "given")]
    for point in points:
        assert point.output_columns == point.landmarks and point.rows == 300 and point.tested_rows == 90
        assert point.accuracy == 1 - point.error and 0 <= point.error < 0.6 and point.microseconds_per_row > 0
        assert (point.kernel_error_mean is None) == (point.family == "f1")
    assert {mapping.name for mapping in client.list_mappings()} <= before
    [fourier] = phimap.sweep(rows, labels, client=client, specs="fourier(dimensions=6)", kernel="rbf(gamma=0.5)")
    assert fourier.landmarks is None and fourier.policy is None and fourier.output_columns == 6


def test_a_point_has_the_numbers_of_its_own_build_and_evaluation(client, rows, labels):
    [point] = phimap.sweep(rows, labels, client=client, specs=["f2(landmarks=20)"], kernel="rbf(gamma=0.5)", seeds=[7],
                           standardize=True)
    version = client.build("one-point", rows, spec="f2(landmarks=20)", kernel="rbf(gamma=0.5)", seed=7, standardize=True)
    evaluation = client.evaluate(phimap.reference_to(version), rows, labels, seed=7)
    assert (point.digest, point.error, point.error_standard_error) == (
        version.ref.digest, evaluation.error, evaluation.error_standard_error)
    assert (point.error_low, point.error_high) == (evaluation.error_low, evaluation.error_high)
    assert 0 <= point.error_low <= point.error < point.error_high <= 1
    assert point.kernel_error_mean == version.certificate.kernel_error.mean


def test_a_file_has_a_line_for_each_point_and_what_is_there_is_not_run_again(client, rows, labels, tmp_path, monkeypatch):
    path = tmp_path / "sweep.jsonl"
    first = phimap.sweep(rows, labels, client=client, specs=["f2(landmarks=5)"], kernel="rbf(gamma=scale)", path=path)
    lines = path.read_text().splitlines()
    assert list(json.loads(lines[0])) == FIELDS and json.loads(lines[0])["format"] == "phimap-sweep-1"
    measured = []

    def spy(*arguments, original=_sweep._measured_there):
        measured.append(arguments[3])
        return original(*arguments)

    monkeypatch.setattr(_sweep, "_measured_there", spy)
    both = phimap.sweep(rows, labels, client=client, specs=["f2(landmarks=5)", "f2(landmarks=9)"], kernel="rbf(gamma=scale)", path=path)
    assert measured == ["f2(landmarks=9)"] and both[0] == first[0]
    assert phimap.read_sweep(path) == both and len(path.read_text().splitlines()) == 2
    # Other labels, another seed or another learner make another point, which must be measured.
    phimap.sweep(rows, labels[::-1], client=client, specs=["f2(landmarks=5)"], kernel="rbf(gamma=scale)", path=path)
    phimap.sweep(rows, labels, client=client, specs=["f2(landmarks=5)"], kernel="rbf(gamma=scale)", seeds=[1], path=path)
    phimap.sweep(rows, labels, client=client, specs=["f2(landmarks=5)"], kernel="rbf(gamma=scale)", learner="perceptron()", path=path)
    assert len(measured) == 4 and len(phimap.read_sweep(path)) == 5


def test_a_sweep_that_was_stopped_goes_on(client, rows, labels, tmp_path):
    path = tmp_path / "sweep.jsonl"

    def stop(progress):
        if progress.phase.startswith("point 2 "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        phimap.sweep(rows, labels, client=client, specs=["f1(landmarks=3)", "f1(landmarks=4)"], kernel="rbf(gamma=scale)", path=path, progress=stop)
    with path.open("a") as file:
        file.write('{"format":"phimap-sweep-1","spec":"f1(la')  # as a crash in the middle of a line would leave it
    points = phimap.sweep(rows, labels, client=client, specs=["f1(landmarks=3)", "f1(landmarks=4)"], kernel="rbf(gamma=scale)", path=path)
    assert phimap.read_sweep(path) == points and len(points) == 2


def test_progress_names_each_point(client, rows, labels):
    seen = []
    phimap.sweep(rows, labels, client=client, specs=["f1(landmarks=3)", "f1(landmarks=4)"], kernel="rbf(gamma=scale)", progress=seen.append)
    assert [(step.phase, step.fraction) for step in seen] == [
        ("point 1 of 2: f1(landmarks=3)", 0.0), ("point 2 of 2: f1(landmarks=4)", 0.5), ("2 of 2 points", 1.0)]


def test_the_digest_is_of_labels_and_numbers_whatever_holds_them(rows):
    few, labels = rows[:3], ["a", "b", "ü"]
    expected = hashlib.sha256(b"".join(label.encode() + b"\0" + row.astype("<f8").tobytes()
                                       for label, row in zip(labels, few))).hexdigest()
    for same in (few, few.tolist(), pd.DataFrame(few), scipy.sparse.csc_matrix(few), np.asfortranarray(few)):
        assert digest_of(same, labels) == expected
    assert digest_of(few[::-1], labels) != expected != digest_of(few, ["a", "b", "u"])
    assert digest_of(["x", "y"], ["a", "b"]) == hashlib.sha256(b"a\0x\0b\0y\0").hexdigest()
    with pytest.raises(ValueError, match="got 2 labels and 3 rows"):
        digest_of(few, ["a", "b"])


def test_a_line_that_is_no_point_is_named(tmp_path):
    path = tmp_path / "other.jsonl"
    for text, message in (('{"format":"other"}\n', r'other.jsonl, line 1: expected a JSON object with "format": "phimap-sweep-1"'),
                          ('{"format":"phimap-sweep-1"}\n', "line 1: a field is missing"), ("no\n", "line 1: ")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            phimap.read_sweep(path)
    with pytest.raises(FileNotFoundError):
        phimap.read_sweep(tmp_path / "none.jsonl")


def test_each_family_takes_the_parameters_that_it_has(client):
    offered = client.list_capabilities()
    assert specs_of({"family": ["f1", "f3", "fourier"], "landmarks": [8], "dimensions": [2, 4]}, offered) == [
        "f1(landmarks=8)", "f3(landmarks=8, dimensions=2)", "f3(landmarks=8, dimensions=4)", "fourier(dimensions=2)",
        "fourier(dimensions=4)"]
    assert specs_of({"family": "f2", "landmarks": [1, 2, 1]}, offered) == ["f2(landmarks=1)", "f2(landmarks=2)"]
    for specs, message in (({"landmarks": [1]}, r"\"family\" among the keys.*got \['landmarks'\]"),
                           ({"family": ["f1", "f9"]}, "no family 'f9'"),
                           ({"family": ["fourier"], "landmarks": [1]}, "none of fourier has a parameter 'landmarks'")):
        with pytest.raises(ValueError, match=message):
            specs_of(specs, offered)


def test_a_line_of_a_later_release_may_know_more():
    point = SweepPoint("f1(landmarks=1)", "linear()", 0, "l", "f1", 1, "uniform", 1, 0.5, 0.1, 0.5, None, 3.0, 4, 2, "d", "x")
    assert SweepPoint.of_line(point.line()[:-1] + ', "more": 1}') == point
    assert SweepPoint.of_line(point.line().replace('"family"', '"mapping"')) == point  # of a release before 0.2
