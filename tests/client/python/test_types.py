"""Tests what a type checker finds in the programs of users: nothing in those that are right, and each misspelt name."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(os.environ["PHIMAP_SOURCE"]) / "client/python/examples"

# A program with a misspelt name in each line after the first five.
TYPOS = """\
import numpy as np
import phimap
from phimap.sklearn import F2, F2Classifier, FourierFeatures
X = np.zeros((40, 3))
y = np.zeros(40)
F2(landmark=3)
F2(landmarks=3).fti(X)
F2(landmarks=3).fit(X).tranform(X)
F2(landmarks=3).fit_tranform(X)
F2(landmarks=3).fit(X).map_.certificat
F2Classifier(learners="ridge")
F2Classifier().fit(X, y).predict_probas(X)
FourierFeatures().set_param(dimensions=3)
phimap.biuld(X, spec="f2", kernel="rbf")
phimap.build(X, specs="f2", kernel="rbf")
phimap.load("m.phimap").transfrom(X)
phimap.load("m.phimap").verfy()
phimap.Client("localhost:7450").transfer("m", X)
phimap.Client("localhost:7450").transform("m", X, expected_digests="")
phimap.Client("localhost:7450").get_version("m").certificate.verdicts
"""


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mypy")

    def run(*files):
        """Returns what mypy --strict says of the files."""
        return subprocess.run(
            ["/usr/bin/mypy", "--strict", "--python-executable", sys.executable, "--cache-dir", folder / "cache",
             "--ignore-missing-imports", "--no-error-summary", *files], capture_output=True, text=True, cwd=folder).stdout

    return run


def test_examples_have_no_fault(check):
    files = sorted(EXAMPLES.glob("*.py"))
    assert len(files) >= 2
    assert check(*files) == ""


def test_each_misspelt_name_is_found(check, tmp_path):
    program = tmp_path / "typos.py"
    program.write_text(TYPOS)
    said = check(program)
    found = {int(line) for line in re.findall(r"typos\.py:(\d+): error", said)}
    assert found == set(range(6, TYPOS.count("\n") + 1)), said
