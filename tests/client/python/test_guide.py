"""Tests that the names of the Python client that the documentation mentions exist. The code blocks are run by
tests/docs/page_test.py."""
import dataclasses
import os
import pathlib
import re

import sklearn.decomposition
import sklearn.kernel_approximation
import sklearn.random_projection

import phimap
import phimap.sklearn

SOURCE = pathlib.Path(os.environ["PHIMAP_SOURCE"])
PAGE = (SOURCE / "docs/coming_from_scikit_learn.md").read_text(encoding="utf-8")


def test_the_table_names_estimators_and_parameters_that_there_are():
    theirs = vars(sklearn.kernel_approximation) | vars(sklearn.random_projection) | vars(sklearn.decomposition)
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .* \|$", PAGE, re.M)
    calls = [(column, call) for row in rows for column, cell in enumerate(row)
             for call in re.findall(r"`(\w+)\(([^`]*)\)`", cell)]
    assert len(calls) >= 18
    for column, (name, arguments) in calls:
        kind = vars(phimap.sklearn)[name] if column else theirs[name]
        named = set(re.findall(r"(\w+)=", arguments))
        assert named <= set(kind._get_param_names()), (name, named)


def test_the_format_of_sweeps_is_documented():
    page = (SOURCE / "docs/formats.md").read_text(encoding="utf-8").split("## Sweeps")[1]
    named = {name for cell in re.findall(r"^\| ([a-z_, ]+) \|", page, re.M) for name in cell.split(", ")} - {"name", "format"}
    assert named == {field.name for field in dataclasses.fields(phimap.SweepPoint)}
