"""Draws the pictures of the documents, with phimap.plot, from a running server and lab/data/spam.csv.

    build/python/venv/bin/python docs/pictures/draw.py [--server=HOST:PORT] [--output=FOLDER] [--quick]

certificate.svg, margin.svg and sweep.svg are written to the folder of this file, or to another. They have no background, and
texts in a grey that can be read on white and on black. --quick sweeps over fewer landmarks.
"""
from __future__ import annotations

import argparse
import pathlib
import uuid

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

import phimap  # noqa: E402
from phimap.plot import CertificateDisplay, MarginDisplay, SweepDisplay  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SPAM = HERE.parents[1] / "lab/data/spam.csv"
GREY = "#7a828c"  # 3.9:1 on white, 4.8:1 on GitHub's black

STYLE = {"svg.fonttype": "none", "svg.hashsalt": "phimap", "savefig.transparent": True, "font.family": "sans-serif",
         **{name: GREY for name in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color",
                                    "axes.titlecolor", "grid.color")}}


def write(folder: pathlib.Path, name: str, display: CertificateDisplay | MarginDisplay | SweepDisplay) -> None:
    display.figure_.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(display.figure_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="HOST:PORT or unix:PATH")
    parser.add_argument("--output", type=pathlib.Path, default=HERE)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()

    table = np.genfromtxt(SPAM, delimiter=",", skip_header=1, dtype=str)
    rows, labels = table[:, :-1].astype(float), table[:, -1]
    landmarks = [10, 30] if arguments.quick else [30, 100, 300, 1000]
    name = f"spam-{uuid.uuid4().hex}"
    with plt.rc_context(STYLE), phimap.Client(arguments.server) as client:
        version = client.build(name, rows[::2], spec="f2(landmarks=300)", kernel="rbf(gamma=scale)", standardize=True)
        try:
            display = CertificateDisplay.from_version(version)
            display.name = ""
            write(arguments.output, "certificate", display.plot())
            evaluation = client.evaluate(phimap.reference_to(version), rows[1::2], labels[1::2])
            display = MarginDisplay.from_evaluation(evaluation)
            display.name = "linear_svm(C=1) on spam"
            write(arguments.output, "margin", display.plot())
        finally:
            client.delete_mapping(name)
        points = phimap.sweep(rows, labels, client=client, kernel="rbf(gamma=scale)", standardize=True, specs={
            "family": ["f1", "f2"], "landmarks": landmarks, "policy": ["uniform", "rpcholesky"]})
        write(arguments.output, "sweep", SweepDisplay.from_sweep(points))


if __name__ == "__main__":
    main()
