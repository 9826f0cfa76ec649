"""Draws the figures of experiments from their results.

    python3 lab/draw.py FOLDER [NAME…]      FOLDER/NAME/*.csv to FOLDER/NAME/*.svg; all if no NAME is given

Each paper has a module in lab/figures, with FIGURES: {experiment: {figure: function of the Results}}, and CAPTIONS:
{experiment: {figure: what the figure shows}}. Each function returns a matplotlib figure.
"""

import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from figures import style  # noqa: E402
from figures.results import Results  # noqa: E402

PAPERS = ["bbv", "bbv_theory", "bs", "ams", "sh", "co", "phimap"]


def modules():
    return [importlib.import_module(f"figures.{paper}") for paper in PAPERS
            if (pathlib.Path(__file__).parent / f"figures/{paper}.py").exists()]


def figures_of(experiment):
    """Returns the figures of an experiment, as {figure: function}."""
    return next((m.FIGURES[experiment] for m in modules() if experiment in m.FIGURES), {})


def captions_of(experiment):
    """Returns the captions of an experiment, as {figure: caption}."""
    return next((m.CAPTIONS[experiment] for m in modules() if experiment in m.FIGURES), {})


def main(arguments):
    out = pathlib.Path(arguments[0])
    names = arguments[1:] or sorted(about.parent.name for about in out.glob("*/about.csv"))
    for name in names:
        results = Results(out / name)
        for figure, draw in figures_of(name).items():
            style.save(draw(results), out / name / f"{figure}.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
