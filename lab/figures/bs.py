"""Figures of Blum 2005: random separators."""

import numpy as np

from figures import style

PI = np.pi


def angles(axes, rows):
    axes.plot([0, 180], [0, 1], color="0.3", label="law: α/π")
    axes.errorbar(rows.column("angle (degrees)"), rows.column("frequency"), 5 * np.array(rows.column("standard deviation")),
                  label="frequency, ±5 deviations", **style.line(1, linestyle=""))
    axes.set(xlabel="angle α between w and x (degrees)", ylabel="Pr(h·x ≤ 0), given h·w ≥ 0", xticks=range(0, 181, 45),
             xlim=(-5, 185), ylim=(-0.03, 1.03), title="Figure 1")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))


def errors(axes, rows):
    margin = np.linspace(0, 1, 101)
    axes.plot(margin, 0.5 - margin / PI, color="black", linestyle=(0, (5, 1.5)), label="bound: 1/2 − γ/π")
    axes.plot(margin, np.arccos(margin) / PI, color="0.5", label="law: arccos(γ)/π")
    for number, name in [(1, "sphere"), (2, "four points")]:
        axes.errorbar(rows.column("margin"), rows.column(name), 5 * np.array(rows.column(f"{name} standard error")), label=name,
                      **style.line(number, linestyle=""))
    axes.set(xlabel="margin γ", ylabel="mean error, given h·w ≥ 0", xlim=(0, 1), ylim=(0, 0.53), title="Proof of Theorem 1")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))


def success(axes, rows):
    margin = np.geomspace(0.04, 1, 101)
    axes.plot(rows.column("margin"), rows.column("bound"), color="black", linestyle=(0, (5, 1.5)),
              label="bound: 0.0683 γ")
    axes.plot(margin, np.arcsin(margin) / PI, color="0.5", label="law on four points: arcsin(γ)/π")
    for number, name, low, high in [(1, "sphere", "sphere low", "sphere high"), (2, "four points", "low", "high")]:
        share = np.array(rows.column(name))
        axes.errorbar(rows.column("margin"), share, [share - rows.column(low), rows.column(high) - share], label=name,
                      **style.line(number, linestyle=""))
    axes.set(xscale="log", yscale="log", xlabel="margin γ", ylabel="Pr(error ≤ 1/2 − γ/4)", xlim=(0.04, 1), ylim=(0.002, 1),
             title="Theorem 1")
    axes.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    axes.minorticks_off()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))


def figure1(results):
    figure, (left, middle, right) = style.panels(1, 3, width=3.1, height=3.6)
    angles(left, results.table("angles"))
    errors(middle, results.table("errors"))
    success(right, results.table("success"))
    return figure


FIGURES = {"bs_figure1": {"bs_figure1": figure1}}

CAPTIONS = {
    "bs_figure1": {
        "bs_figure1":
            "Random separators h. Left: how often x is on the wrong side, over its angle with w. Middle: their mean error on "
            "data of margin γ; bars of 5 standard errors are smaller than the marks. Right: how often a draw of Algorithm 1 "
            "succeeds, with 95 % intervals, beside the constant that the proof gives for Ω(γ).",
    },
}
