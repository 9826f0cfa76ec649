"""The style of all figures: readable in black and white, and with the same bytes for the same
numbers."""

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

plt.rcParams.update({
    "svg.hashsalt": "phimap",  # otherwise ids are random
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.5,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
})

# Lines are distinguished by markers and dashes; grey or colour only helps.
COLOURS = ["#000000", "#0b5fa5", "#c0392b", "#2e7d32", "#7b3fa0", "#b8860b", "#5d5d5d", "#008b8b"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
DASHES = ["-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)),
          (0, (2, 2)), (0, (1, 3))]


def line(number, **changes):
    """Returns keyword arguments of plot() and errorbar() for line `number` of a figure."""
    n = number % len(COLOURS)
    return {"color": COLOURS[n], "marker": MARKERS[n], "linestyle": DASHES[n], "markerfacecolor": "white", **changes}


def panels(rows=1, columns=1, width=3.4, height=2.7, **options):
    """Returns (figure, axes): a grid of axes, each `width` by `height` inches."""
    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), **options)


def save(figure, path):
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
