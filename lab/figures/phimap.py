"""Figures of the experiment beyond the papers."""

import numpy as np

from . import style

# Line style and legend name of each mapping. scikit-learn's lines differ in colour, dashes and
# marker from each other and from phimap's: Nystroem grey and dotted with x, RBFSampler magenta and
# dashed with +.
NYSTROEM = {"color": "0.45", "linewidth": 1.1, "linestyle": (0, (1, 1.5)), "marker": "x", "markersize": 5.5}
RBF_SAMPLER = {"color": "#d6007a", "linewidth": 1.3, "linestyle": (0, (7, 3)), "marker": "+", "markersize": 8,
               "markeredgewidth": 1.6}
LINES = {
    "F1": (style.line(6, linestyle=(0, (8, 2))), "F1"),
    "F2, uniform": (style.line(0), "F2, uniform"),
    "F2, rpcholesky": (style.line(1), "F2, rpcholesky"),
    "F3 of 2d landmarks": (style.line(3), "F3, 2d landmarks"),
    "kernel PCA of 2d landmarks": (style.line(4), "kernel PCA, 2d landmarks"),
    "Fourier, sine and cosine": (style.line(2), "Fourier, sine and cosine"),
    "Fourier, phase": (style.line(5), "Fourier, phase"),
    "Fourier, orthogonal": (style.line(7), "Fourier, orthogonal"),
    "scikit-learn Nystroem": (NYSTROEM, "scikit-learn Nystroem"),
    "scikit-learn RBFSampler": (RBF_SAMPLER, "scikit-learn RBFSampler"),
}
# Landmark policies of F2, drawn beside uniform landmarks.
POLICIES = {
    "F2, uniform": LINES["F2, uniform"],
    "F2, rpcholesky": LINES["F2, rpcholesky"],
    "F2, d2": (style.line(3), "F2, d2"),
    "F2, kmeans": (style.line(2), "F2, kmeans"),
    "scikit-learn Nystroem": LINES["scikit-learn Nystroem"],
}
OTHER_KERNELS = {
    "F2, uniform": (style.line(0), "rbf: F2, uniform"),
    "Fourier, sine and cosine": (style.line(2), "rbf: Fourier"),
    "Matérn: F2, uniform": (style.line(1), "Matérn: F2, uniform"),
    "Matérn: Fourier": (style.line(4), "Matérn: Fourier"),
    "exp: F2, uniform": (style.line(3), "exp: F2, uniform"),
    "exp: positive": (style.line(5), "exp: positive"),
    "exp: positive, orthogonal": (style.line(7), "exp: positive, orthogonal"),
}
AUTO = {"color": "#c0392b", "marker": "*", "markersize": 11, "markerfacecolor": "white", "linestyle": "none"}
AUTO_LABEL = "F2, auto"


def number_ticks(axis, ticks):
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def draw(axis, rows, mapping, quantity, scale=1.0, bars=True, lines=None):
    """Draws a line over d; `bars` adds standard errors."""
    here = rows.where(mapping=mapping)
    if not here or not isinstance(here[0][quantity], float):
        return
    look, label = (lines or LINES)[mapping]
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
    first = [label for _, label in LINES.values() if label in entries]
    labels = first + [label for label in entries if label not in first]
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
    auto = results.table("auto").where(data="letter")
    left.plot(auto.column("features"), auto.column("kernel error"), label=AUTO_LABEL, **AUTO)
    right.plot(auto.column("features"), 100 * np.array(auto.column("test error")), label=AUTO_LABEL, **AUTO)
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


def policies(results):
    """Draws the errors of landmark policies as multiples of those of uniform landmarks, because the
    curves themselves nearly coincide."""
    figure, axes, columns = data_panels(results, 2)
    for column, rows in columns:
        for axis, quantity in zip(column, ("kernel error", "RMS kernel error")):
            uniform = {row["d"]: row[quantity] for row in rows.where(mapping="F2, uniform")}
            for mapping, (look, label) in POLICIES.items():
                here = rows.where(mapping=mapping)
                axis.plot(here.column("d"), [row[quantity] / uniform[row["d"]] for row in here], label=label, **look)
            number_ticks(axis, every_other_size(rows))
    axes[0, 0].set_ylabel("kernel error : uniform's")
    axes[1, 0].set_ylabel("RMS kernel error : uniform's")
    legend_below(figure, axes.flat, 5, 0.3)
    return figure


def other_kernels(results):
    figure, axes, columns = data_panels(results, 2)
    for (top, bottom), rows in columns:
        for mapping in OTHER_KERNELS:
            draw(top, rows, mapping, "kernel error", bars=False, lines=OTHER_KERNELS)
            draw(bottom, rows, mapping, "test error", 100, bars=False, lines=OTHER_KERNELS)
        error_axes(top, every_other_size(rows))
        number_ticks(bottom, every_other_size(rows))
    axes[0, 0].set_ylabel("mean |K(x, y) − F(x)·F(y)|")
    axes[1, 0].set_ylabel("test error of a linear SVM, %")
    legend_below(figure, axes.flat, 4, 0.45)
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


def speed_over_d(results):
    times = results.table("times")
    figure, axis = style.panels(1, 1, width=7, height=3.4)
    for mapping in ("F2, uniform", "Fourier, phase", "scikit-learn Nystroem", "scikit-learn RBFSampler"):
        look, label = LINES[mapping]
        rows = times.where(mapping=mapping)
        axis.plot(rows.column("d"), rows.column("us"), label=label if "learn" in mapping else f"{label}, phimapd", **look)
        timed = [row for row in rows if isinstance(row["python client us"], float)]
        if timed:
            axis.plot([row["d"] for row in timed], [row["python client us"] for row in timed], **{**look, "alpha": 0.5},
                      label=f"{label}, phimapd, Python client")
    axis.set(yscale="log", xlabel="features d", ylabel="µs to map one row")
    number_ticks(axis, sorted(set(times.column("d"))))
    ticks = [tick for tick in (10, 20, 50, 100, 200, 500, 1000, 2000) if axis.get_ylim()[0] <= tick <= axis.get_ylim()[1]]
    axis.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def literature_letter(results):
    errors = results.table("runs").where(data="letter")
    figure, axis = style.panels(1, 1, width=7, height=3.2)
    for number, features in enumerate(name for name in errors.values("features") if name != "the kernel itself"):
        rows = errors.where(features=features)
        axis.plot(rows.column("d"), 100 * np.array(rows.column("test error")), label=features, **style.line(2 * number))
    kernel = 100 * errors.where(features="the kernel itself")[0]["test error"]
    axis.axhline(kernel, color="0.45", linestyle=(0, (5, 2)), linewidth=1.1, label="the kernel itself, libsvm")
    published = [row for row in results.table("published").where(data="letter") if isinstance(row["published %"], float)]
    if published:
        axis.axhline(published[0]["published %"], color="#d6007a", linestyle=(0, (1, 1)), linewidth=1.4, label="published")
    axis.set(yscale="log", xlabel="features d", ylabel="rows in the wrong class, %")
    number_ticks(axis, sorted(set(errors.column("d")) - {0.0}))
    low, high = axis.get_ylim()
    ticks = [tick for tick in (1, 2, 3, 5, 7, 10, 15, 20, 30) if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


FIGURES = {"beyond_the_papers": {"error_over_d": error_over_d, "all_data": all_data, "policies": policies, "other_kernels": other_kernels},
           "one_row_speed": {"error_over_time": error_over_time, "speed_over_d": speed_over_d},
           "beside_the_literature": {"literature_letter": literature_letter}}

CAPTIONS = {"beyond_the_papers": {
    "error_over_d": "letter.csv: kernel error and test error over the number of features, phimap's mappings through a running "
                    "server beside scikit-learn's in the same run; means of the splits ± standard error. Every SVM is trained to "
                    "convergence. Stars are builds that found d for a residual share of .5, .35 and .2.",
    "all_data": "All four data sets: kernel error and test error over the number of features; means of the splits, test "
                "errors ± standard error.",
    "policies": "Landmark policies of F2: kernel error and its root mean square as multiples of those of uniform landmarks; "
                "Nystroem draws uniformly too, and shows what chance does. All three policies have a smaller root mean square "
                "at larger d on letter, spam and cancer; their mean can be larger, as on spam and ionosphere.",
    "other_kernels": "Other kernels beside the rbf: landmarks and random features. Kernel errors of different kernels are not "
                     "comparable, test errors are."},
    "one_row_speed": {
    "error_over_time": "letter.csv: errors over the time that one row takes, p50 of one caller: through a phimapd on the same "
                       "machine, or by scikit-learn in process. Along each line d grows.",
    "speed_over_d": "Time of one row over d, p50 of one caller. A call's own cost is nearly all of it with few features, most of "
                    "all from Python."},
    "beside_the_literature": {
    "literature_letter": "letter.csv, the literature's split: test error over the number of features, beside the same SVM with the "
                         "kernel itself, and what was published."}}
