"""docs/coming_from_scikit_learn.md: every block of Python runs, one after the other, and prints what its comments say."""
import contextlib
import io
import os
import pathlib
import re

import sklearn.kernel_approximation
import sklearn.random_projection
import sklearn.decomposition

import phimap
import phimap.sklearn

SOURCE = pathlib.Path(os.environ["PHIMAP_SOURCE"])
PAGE = (SOURCE / "docs/coming_from_scikit_learn.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?:```python\n(.*?)^```$|<!-- run python\n(.*?)^-->$)", re.M | re.S)


def test_every_block_runs_and_prints_what_the_page_says(phimapd, monkeypatch):
    monkeypatch.setenv("PHIMAP_SERVER", phimapd.address)
    monkeypatch.chdir(SOURCE)
    names = {"__name__": "__main__"}
    blocks = [shown or hidden for shown, hidden in BLOCK.findall(PAGE)]
    assert len(blocks) >= 4
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "coming_from_scikit_learn.md", "exec"), names)  # pylint: disable=exec-used
        said = "".join(f"{line}\n" for line in re.findall(r"^ *print\(.*\)  +# (.*)$", block, re.M))
        assert printed.getvalue() == said, block


def test_the_table_names_estimators_and_parameters_that_there_are():
    theirs = vars(sklearn.kernel_approximation) | vars(sklearn.random_projection) | vars(sklearn.decomposition)
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .* \|$", PAGE, re.M)
    calls = [(column, call) for row in rows for column, cell in enumerate(row) for call in re.findall(r"`(\w+)\(([^`]*)\)`", cell)]
    assert len(calls) >= 18
    for column, (name, arguments) in calls:
        kind = vars(phimap.sklearn)[name] if column else theirs[name]
        named = set(re.findall(r"(\w+)=", arguments))
        assert named <= set(kind._get_param_names()), (name, named)


def test_the_format_of_sweeps_is_documented():
    import dataclasses
    page = (SOURCE / "docs/formats.md").read_text(encoding="utf-8").split("## Sweeps")[1]
    named = {name for cell in re.findall(r"^\| ([a-z_, ]+) \|", page, re.M) for name in cell.split(", ")} - {"name", "format"}
    assert named == {field.name for field in dataclasses.fields(phimap.SweepPoint)}
