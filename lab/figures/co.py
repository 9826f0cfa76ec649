"""Figures of the Cornell lecture's demonstrations."""

import numpy as np
from matplotlib.lines import Line2D

from . import style

# Labels 1 and −1, drawn as hollow circles and filled squares.
CLASSES = [(1, {"marker": "o", "markerfacecolor": "none", "color": "#0b5fa5", "markersize": 2.2, "markeredgewidth": 0.5}),
           (-1, {"marker": "s", "color": "#c0392b", "markersize": 2.2, "markeredgewidth": 0})]
LABEL_NAMES = {1: "label 1", -1: "label −1"}


def grid(results, name):
    """Returns (middles of the squares, values)."""
    header, rows = results.text_table(name)
    return np.array([float(cell) for cell in header[1:]]), np.array([[float(cell) for cell in row[1:]] for row in rows])


def square(axis, title):
    axis.set(title=title, xlabel="$x_1$", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axis.set_xticks([0, 0.5, 1])
    axis.set_yticks([0, 0.5, 1])
    axis.grid(False)


def regions(results):
    figure, (left, right) = style.panels(1, 2, width=3.4, height=3.6, sharey=True)
    middles, truth = grid(results, "region_truth")
    scores = grid(results, "region_scores")[1]
    left.contourf(middles, middles, truth, levels=[-2, 0], colors=["0.82"])
    for label, marks in CLASSES:
        rows = results.table("training_rows").where(label=label)
        left.plot(rows.column("x1"), rows.column("x2"), label=f"training row, {LABEL_NAMES[label]}", linestyle="", **marks)
    # Scores are smooth, so every second one suffices.
    smooth = middles[::2], middles[::2], scores[::2, ::2]
    right.contourf(*smooth, levels=[-1e9, 0], colors=["0.82"])
    right.contour(*smooth, levels=[0], colors="black", linewidths=1.2)
    right.contour(middles, middles, truth, levels=[0], colors="black", linewidths=0.9, linestyles=[(0, (4, 2))])
    wrong = [row for row in results.table("test_rows") if row["label"] != row["predicted"]]
    right.plot([row["x1"] for row in wrong], [row["x2"] for row in wrong], marker="x", color="#c0392b", linestyle="",
               markeredgewidth=1.1)
    square(left, "the lecture's classes: true regions, training rows")
    square(right, "decision regions of kernel logistic regression")
    left.set_ylabel("$x_2$")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), handletextpad=0.2, markerscale=1.6)
    right.legend(handles=[Line2D([], [], color="black", label="score 0"),
                          Line2D([], [], color="black", linewidth=0.9, linestyle=(0, (4, 2)), label="true boundary"),
                          Line2D([], [], color="#c0392b", marker="x", linestyle="",
                                 label=f"test row in the wrong class ({len(wrong)})")],
                 loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=1)
    return figure


def costs(results):
    times = results.table("times")
    figure, axes = style.panels(2, 3, width=2.75, height=2.75, sharex=True, sharey=True)
    numbers = {"n": 1, "d": 2, "D": 3, "T": 4}
    growth = np.array([1, 8])
    for axis, approach in zip(axes.flat, times.values("approach")):
        of_approach = times.where(approach=approach)
        for exponent in (0, 1, 2):
            axis.plot(growth, growth**exponent, color="0.7", linewidth=1, zorder=1)
        seen = {}
        for variable, term in dict.fromkeys((row["variable"], row["term"]) for row in of_approach):
            rows = of_approach.where(variable=variable, term=term)
            sizes, seconds = np.array(rows.column("size")), np.array(rows.column("CPU s"))
            again = seen.get(variable, 0)
            seen[variable] = again + 1
            changes = {"markerfacecolor": "0.6"} if again else {}
            axis.plot(sizes / sizes[0], seconds / seconds[0], label=f"{variable}: {term.split(';')[0]}",
                      **style.line(numbers[variable], **changes))
        axis.set(title=f"{approach}\n{cost_of(results, approach)}", xscale="log", yscale="log", ylim=(0.45, 110))
        axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axis.set_yticks([1, 8, 64], ["1", "8", "64"])
        axis.minorticks_off()
        axis.legend(loc="upper left", fontsize=7, handlelength=2.6)
    for axis in axes[-1]:
        axis.set_xlabel("times the smallest size")
    for axis in axes[:, 0]:
        axis.set_ylabel("times its CPU time")
    return figure


def cost_of(results, approach):
    return f"O({results.table('slopes').where(approach=approach)[0]['cost (lecture)']})"


HATCHES = ["", "//", "", "//"]
GREYS = ["1", "1", "0.72", "0.72"]


def takeaway(results):
    cases = results.table("cases")
    figure, axes = style.panels(1, 4, width=2.05, height=3.1, sharey=True)
    short = {"1": "φ on the fly", "2": "φ stored", "3": "K on the fly", "4": "Gram matrix", "5": "ψ on the fly",
             "6": "ψ stored"}
    for axis, case in zip(axes, cases.values("case")):
        rows = cases.where(case=case)
        times = rows.column("CPU ms")
        axis.bar(range(len(rows)), times, color=GREYS, hatch=HATCHES, edgecolor="black", linewidth=0.8)
        for i, row in enumerate(rows):
            axis.annotate(f"{row['CPU ms']:.3g}", (i, row["CPU ms"]), xytext=(0, 2), textcoords="offset points",
                          ha="center", fontsize=8)
        kind = case.split(", ")[1]
        axis.set(title=f"{kind}\nn = {rows[0]['n']:,.0f}, D = {rows[0]['D']:,.0f}", yscale="log")
        axis.set_xticks(range(len(rows)), [short[row["approach"][0]] for row in rows], rotation=35, ha="right")
        axis.grid(False, axis="x")
    axes[0].set_ylabel("CPU time of 20,480 steps, ms")
    axes[0].set_ylim(0.5, 2.5 * max(cases.column("CPU ms")))
    return figure


def error_over_d(results):
    table = results.table("error_over_D")
    figure, axis = style.panels(1, 1, width=5.4, height=4.2)
    for i, form in enumerate(table.values("form")):
        rows = table.where(form=form)
        d = np.array(rows.column("D"))
        rms, high = np.array(rows.column("RMS error")), np.array(rows.column("95 % of errors under"))
        look = style.line(i)
        # Slightly shifted, so that no bar hides another.
        axis.errorbar(d * (0.93, 1.0, 1.07)[i], rms, yerr=[np.zeros_like(rms), high - rms], label=form,
                      **{**look, "linestyle": ""})
        if isinstance(rows[0]["law"], float):
            axis.plot(d, rows.column("law"), color=look["color"], linestyle=look["linestyle"], linewidth=0.9,
                      label=f"{form}: deviation by the law")
            axis.plot(d, rows.column("Hoeffding, 95 %"), color=look["color"], linestyle=look["linestyle"], linewidth=2,
                      label=f"{form}: Hoeffding, probability .95")
    ticks = sorted(set(table.column("D")))
    axis.set(xscale="log", yscale="log", xlabel="features D", ylabel="|K(x, y) − ψ(x)·ψ(y)|", ylim=(2e-5, 2.5))
    axis.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axis.minorticks_off()
    axis.legend(loc="lower left", fontsize=7.5)
    return figure


FIGURES = {
    "co_demonstration": {"co_regions": regions},
    "co_costs": {"co_costs": costs},
    "co_takeaway": {"co_takeaway": takeaway},
    "co_fourier": {"co_fourier_error": error_over_d},
}

CAPTIONS = {
    "co_demonstration": {
        "co_regions": "Left: the regions of the lecture's generator, label −1 in grey, and the training rows of the first run. "
                      "Right: where the learnt score is negative, in grey, beside the true boundary, and the test rows that it "
                      "puts into the wrong class."},
    "co_costs": {
        "co_costs": "CPU time over one variable at a time, both as multiples of the smallest size. The grey lines are slopes of "
                    "0, 1 and 2; the lecture's exponents are in the table."},
    "co_takeaway": {
        "co_takeaway": "CPU time to train by four approaches on the same rows with the same number of steps. φ: exact "
                       "features; ψ: Fourier features; K: kernel values."},
    "co_fourier": {
        "co_fourier_error": "Error of a kernel value over D. Markers: root mean square over draws and pairs; the bars reach up "
                            "to what 95 % of the errors stay under. Thin lines: the deviation by the law. Thick lines: what "
                            "Hoeffding's inequality promises."},
}
