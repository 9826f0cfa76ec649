"""Figures of Balcan, Blum, Vempala 2006: the theorems, and the drawing of φ_c."""

import numpy as np

from figures import style

NAMES = ["one rare direction", "8 rare directions", "100 rare directions", "sphere"]
DELTA = 0.05


def between(rows, share, low, high):
    """Returns error bars from the share down to `low` and up to `high`."""
    centre = np.array(rows.column(share))
    # At 0 and 1, rounding can give −1e-17.
    return np.maximum([centre - rows.column(low), np.array(rows.column(high)) - centre], 0)


def failures(axes, spans, laws):
    for number, name in enumerate(NAMES):
        rows = spans.where(distribution=name)
        look = style.line(number)
        of_law = laws.where(distribution=name)
        measured = {} if not of_law else {"linestyle": ""}
        axes.errorbar(rows.column("of_literal"), rows.column("failed"), between(rows, "failed", "failed_low", "failed_high"),
                      label=name, elinewidth=0.7, **{**look, **measured})
        # With one rare direction, the upper end is the law itself.
        known = [row for row in of_law if name == NAMES[0] or row["law_high"] - row["law_low"] < 0.05]
        axes.plot([row["of_literal"] for row in known], [row["law_high"] for row in known],
                  color=look["color"], linestyle=look["linestyle"], linewidth=0.9)
        derived = rows.where(tier="derived")[0]
        axes.plot(derived["of_literal"], DELTA, zorder=5, **style.line(number, linestyle="", markersize=7.5,
                                                                      markerfacecolor=look["color"]))
    axes.axhline(DELTA, color="0.35", linewidth=0.8)
    axes.text(0.0012, DELTA + 0.012, "δ = 0.05", color="0.25", fontsize=8)
    axes.axvline(1, color="0.35", linewidth=0.8, linestyle=":")
    axes.text(0.95, 0.62, "literal d", rotation=90, ha="right", va="center", color="0.25", fontsize=8)
    axes.plot([], [], marker="s", linestyle="", color="0.4", label="filled, on the line of δ: the derived d")
    axes.set(xscale="log", xlim=(0.001, 1.15), ylim=(-0.02, 1.03), xlabel="landmarks d, as a share of the literal d",
             ylabel="share of draws that fail", title="Lemma 1: w and its part in the span differ\nby more than γ/2 on a mass over ε")


def kept(axes, spans, projections):
    for number, name in enumerate(NAMES):
        rows = spans.where(distribution=name)
        axes.errorbar(rows.column("of_literal"), rows.column("kept_share"), between(rows, "kept_share", "kept_low", "kept_high"),
                      label=f"F2: {name}", elinewidth=0.7, **style.line(number))
    axes.errorbar(projections.column("of_exact"), projections.column("kept_share"),
                  between(projections, "kept_share", "kept_low", "kept_high"), label="F3: sphere, over 544 dimensions",
                  elinewidth=0.7, **style.line(4))
    axes.axhline(1 - DELTA, color="0.35", linewidth=0.8)
    axes.text(0.0044, 1 - DELTA - 0.015, "1 − δ = 0.95", color="0.25", fontsize=8, va="top")
    axes.set(xscale="log", xlim=(0.001, 1.15), ylim=(-0.02, 1.03), xlabel="landmarks or dimensions, as a share of the theorem's",
             ylabel="share of draws that keep it", title="Theorem 1: F2 keeps γ/2 at error ε;\nTheorem 3: F3 keeps γ/4")


def theorems(results):
    spans = results.table("spans")
    figure, (left, right) = style.panels(1, 2, width=3.9, height=3.7)
    failures(left, spans, results.table("laws"))
    kept(right, spans, results.table("projections"))
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=1)
    return figure


def plane(axes, points):
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color="0.75", linewidth=0.8)
    axes.axhline(0, color="0.3", linewidth=1)
    axes.text(0.16, -0.2, "c changes\nsign here", fontsize=8, color="0.2")
    labels = [(0.0, 0.16, "center"), (-0.16, 0.08, "right"), (-0.16, -0.1, "right")]
    names = ["x not in X'", "x in X'\nc(x) = 1", "x in X'\nc(x) = −1"]
    for row, marker, (dx, dy, side), name in zip(points, ["o", "^", "v"], labels, names):
        axes.annotate("", (row["x"], row["y"]), (0, 0), arrowprops={"arrowstyle": "-", "color": "0.45", "linewidth": 0.9})
        axes.plot(row["printed x"], row["printed y"], marker="+", color="black", markersize=16, linestyle="", zorder=4)
        axes.plot(row["x"], row["y"], marker=marker, color="#0b5fa5", markersize=10, linestyle="", zorder=3)
        axes.text(row["x"] + dx, row["y"] + dy, name, ha=side, va="center", fontsize=8)
    for row in points[1:]:
        axes.annotate("", (row["x from elsewhere"], 0.05 * np.sign(row["y"])), (row["x"], row["y"]),
                      arrowprops={"arrowstyle": "->", "linestyle": ":", "color": "#c0392b", "linewidth": 1.1})
    for row in points:
        axes.plot(row["x from elsewhere"], 0, marker="X", color="#c0392b", markersize=6.5, linestyle="", zorder=5)
    axes.text(-0.54, 0.42, "margin\n√3/2", fontsize=8, ha="right", va="center")
    arc = np.linspace(0, 2 * np.pi / 3, 60)
    axes.plot(0.2 * np.cos(arc), 0.2 * np.sin(arc), color="0.45", linewidth=0.9)
    axes.text(0.16, 0.2, "120°", fontsize=8)
    axes.plot([], [], marker="+", color="black", linestyle="", markersize=10, label="printed")
    axes.plot([], [], marker="^", color="#0b5fa5", linestyle="", markersize=7, label="F2, landmarks from D")
    axes.plot([], [], marker="X", color="#c0392b", linestyle="", markersize=7, label="F2, landmarks from elsewhere")
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.2, 1.2), aspect="equal", xlabel=r"first coordinate of $\varphi_c$",
             ylabel=r"second coordinate of $\varphi_c$", title=r"$\varphi_c$: three points, as F2 has them")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17))


def bars(axes, errors):
    learners = errors.values("learner")
    kinds = [("from D", "f1", "white", ""), ("from D", "f2", "0.55", ""), ("from elsewhere", "f1", "white", "////"),
             ("from elsewhere", "f2", "0.55", "////")]
    for number, (landmarks, mapping, colour, hatch) in enumerate(kinds):
        rows = errors.where(landmarks=landmarks, mapping=mapping)
        at = np.arange(len(learners)) + (number - 1.5) * 0.2
        heights = rows.column("error")
        axes.bar(at, heights, 0.19, color=colour, edgecolor="black", linewidth=0.8, hatch=hatch,
                 yerr=rows.column("standard error"), error_kw={"elinewidth": 1, "capsize": 2},
                 label=f"{mapping.upper()}, landmarks {landmarks}")
        for x, height in zip(at, heights):
            if height < 0.005:
                axes.text(x, 0.008, "0" if height == 0 else f"{height:.3f}", ha="center", fontsize=7)
    axes.axhline(0.5, color="black", linewidth=0.8, linestyle=(0, (5, 2)))
    axes.text(len(learners) - 0.55, 0.51, "a coin", fontsize=8, ha="right", va="bottom")
    axes.set_xticks(range(len(learners)), [name.split("(")[0] for name in learners], fontsize=8)
    axes.grid(axis="x", visible=False)
    axes.set(ylim=(0, 0.6), ylabel="error on new words of D", xlabel="learner", title="Theorem 4: landmarks have to come from D")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)


def figure1(results):
    figure, (left, right) = style.panels(1, 2, width=3.9, height=3.9)
    plane(left, results.table("points"))
    bars(right, results.table("errors"))
    return figure


FIGURES = {"bbv_theorems": {"bbv_theorems": theorems}, "bbv_figure1": {"bbv_figure1": figure1}}

CAPTIONS = {
    "bbv_theorems": {
        "bbv_theorems":
            "Left: how often Lemma 1 fails on maps that were built, over d as a share of the literal d: marks, with 95 % "
            "intervals, and the law of the rare directions that are still missing: lines. Filled "
            "marks on the line of δ stand at the derived d. Right: how often F2 keeps half of the margin, and F3 a quarter of it, "
            "over the literal d and over the exact law's 544 dimensions; with many rare directions F2 always did.",
    },
    "bbv_figure1": {
        "bbv_figure1":
            "Left: φ_c as the paper draws it, as F2 has it by landmarks from D, and as F2 has it by landmarks that know nothing "
            "of D, on which both classes fall on one point. Right: errors of four learners on both kinds of features, with "
            "standard errors over the runs.",
    },
}
