"""Figures of the experiment beyond the papers."""

import numpy as np

from . import style

# Line style and legend name of each mapping. scikit-learn's lines are grey and dotted, with the
# markers x and +.
SKLEARN = {"color": "0.45", "linewidth": 1.0, "linestyle": (0, (1, 1)), "markerfacecolor": "0.45"}
LINES = {
    "F1": (style.line(6, linestyle=(0, (8, 2))), "F1"),
    "F2, uniform": (style.line(0), "F2, uniform"),
    "F2, rpcholesky": (style.line(1), "F2, rpcholesky"),
    "F3 of 2d landmarks": (style.line(3), "F3, 2d landmarks"),
    "kernel PCA of 2d landmarks": (style.line(4), "kernel PCA, 2d landmarks"),
    "Fourier, sine and cosine": (style.line(2), "Fourier, sine and cosine"),
    "Fourier, phase": (style.line(5), "Fourier, phase"),
    "Fourier, orthogonal": (style.line(7), "Fourier, orthogonal"),
    "scikit-learn Nystroem": ({**SKLEARN, "marker": "x", "markersize": 5.5}, "scikit-learn Nystroem"),
    "scikit-learn RBFSampler": ({**SKLEARN, "marker": "+", "markersize": 6.5}, "scikit-learn RBFSampler"),
}


def number_ticks(axis, ticks):
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def draw(axis, rows, mapping, quantity, scale=1.0, bars=True):
    """Draws a line over d; `bars` adds standard errors."""
    here = rows.where(mapping=mapping)
    if not here or not isinstance(here[0][quantity], float):
        return
    look, label = LINES[mapping]
    d, mean = here.column("d"), scale * np.array(here.column(quantity))
    error = scale * np.array(here.column(f"{quantity} deviation")) / np.sqrt(np.array(here.column("runs")))
    axis.plot(d, mean, label=label, **look)
    if bars:
        axis.errorbar(d, mean, yerr=error, fmt="none", ecolor=look["color"], elinewidth=0.8, capsize=0)


def share_ticks(axis):
    """Sets the ticks of a logarithmic axis of percentages."""
    low, high = axis.get_ylim()
    ticks = [tick for tick in (5, 7, 10, 15, 20, 30, 40, 60, 80) if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def error_axes(axis, ticks):
    axis.set(yscale="log")
    number_ticks(axis, ticks)


def legend_below(figure, axes, columns, inches):
    """Adds one legend for all axes, with phimap's mappings first, in `inches` of space below the
    axes."""
    entries = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    labels = [label for _, label in LINES.values() if label in entries]
    share = inches / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    figure.legend([entries[label] for label in labels], labels, loc="lower center", ncol=columns, columnspacing=1.2,
                  handlelength=3)


def error_over_d(results):
    rows = results.table("summary").where(data="letter")
    figure, (left, right) = style.panels(1, 2, width=3.5, height=3.3)
    ticks = sorted(set(rows.column("d")))
    for mapping in LINES:
        draw(left, rows, mapping, "kernel error")
        draw(right, rows, mapping, "test error", 100)
    for axis in (left, right):
        axis.set_xlabel("features d")
        error_axes(axis, ticks)
    left.set(title="kernel error", ylabel="mean |K(x, y) − F(x)·F(y)|")
    right.set(title="test error of a linear SVM", ylabel="rows in the wrong class, %")
    share_ticks(right)
    legend_below(figure, (left, right), 4, 0.6)
    return figure


def data_panels(results, rows):
    """Returns (figure, axes, [(axes of a data set, its rows of the table)]), with a column of axes
    per data set."""
    summary = results.table("summary")
    names = [name for name in ("letter", "spam", "cancer", "ionosphere") if name in summary.values("data")]
    figure, axes = style.panels(rows, len(names), width=2.6, height=2.5, sharex="col", squeeze=False)
    columns = [(axes[:, i], summary.where(data=name)) for i, name in enumerate(names)]
    for column, of_data in columns:
        column[0].set_title(f"{of_data[0]['data']}.csv")
        column[-1].set_xlabel("features d")
    return figure, axes, columns


def every_other_size(rows):
    return sorted(set(rows.column("d")))[::2]


def all_data(results):
    figure, axes, columns = data_panels(results, 2)
    for (top, bottom), rows in columns:
        for mapping in LINES:
            draw(top, rows, mapping, "kernel error", bars=False)
            draw(bottom, rows, mapping, "test error", 100, bars=rows[0]["data"] != "letter")  # see error_over_d
        error_axes(top, every_other_size(rows))
        number_ticks(bottom, every_other_size(rows))
    axes[0, 0].set_ylabel("mean |K(x, y) − F(x)·F(y)|")
    axes[1, 0].set_ylabel("test error of a linear SVM, %")
    legend_below(figure, axes.flat, 5, 0.45)
    return figure


def all_data_rms(results):
    figure, axes, columns = data_panels(results, 1)
    for (axis,), rows in columns:
        for mapping in LINES:
            draw(axis, rows, mapping, "RMS kernel error", bars=False)
        error_axes(axis, every_other_size(rows))
    axes[0, 0].set_ylabel("RMS kernel error")
    legend_below(figure, axes.flat, 5, 0.45)
    return figure


def error_over_time(results):
    times = results.table("times")
    figure, (left, right) = style.panels(1, 2, width=3.5, height=3.4)
    for mapping, (look, label) in LINES.items():
        rows = times.where(mapping=mapping)
        if rows and isinstance(rows[0]["kernel error"], float):
            left.plot(rows.column("us"), rows.column("kernel error"), label=label, **look)
        right.plot(rows.column("us"), 100 * np.array(rows.column("test error")), label=label, **look)
    for axis in (left, right):
        axis.set(xscale="log", yscale="log", xlabel="µs to map one row")
        low, high = axis.get_xlim()
        ticks = [tick for tick in (20, 50, 100, 200, 500, 1000, 2000, 5000) if low <= tick <= high]
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.minorticks_off()
    left.set(title="kernel error", ylabel="mean |K(x, y) − F(x)·F(y)|")
    right.set(title="test error of a linear SVM", ylabel="rows in the wrong class, %")
    share_ticks(right)
    legend_below(figure, (left, right), 4, 0.6)
    return figure


FIGURES = {"beyond_the_papers": {"error_over_d": error_over_d, "all_data": all_data, "all_data_rms": all_data_rms,
                                  "error_over_time": error_over_time}}

CAPTIONS = {"beyond_the_papers": {
    "error_over_d": "letter.csv: kernel error and test error over the number of features, phimap's mappings through a running "
                    "server beside scikit-learn's in the same run; means of the splits ± standard error.",
    "all_data": "All four data sets: kernel error and test error over the number of features; means of the splits, test "
                "errors ± standard error.",
    "all_data_rms": "The root mean square of the kernel error in place of its mean: large errors count more, and at larger d "
                    "rpcholesky makes fewer of them.",
    "error_over_time": "letter.csv: errors over the time that one row takes, p50 of one caller: through a phimapd on the same "
                       "machine, or by scikit-learn in process. Along each line d grows."}}
