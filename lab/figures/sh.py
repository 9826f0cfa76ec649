"""The figures of Shi, Shen, Hill, van den Hengel 2012."""

import math

from figures import style


def _points(axes, s, title):
    """Draws the four points of figure 1, two lines to project onto, and the sector of lines that
    separate the classes."""
    for sign in (1, -1):  # lines within atan(1/s) of the vertical axis separate the classes
        slope = math.atan2(1, s)
        wedge = [(0, 0)] + [(1.9 * math.sin(angle), sign * 1.9 * math.cos(angle))
                            for angle in (slope * t / 10 for t in range(-10, 11))]
        axes.fill(*zip(*wedge), color="0.85", zorder=0, label="separating lines" if sign > 0 else None)
    axes.plot([-s, s], [1, 1], "o", color="black", markersize=6, label="class +")
    axes.plot([-s, s], [-1, -1], "s", color="black", markerfacecolor="white", markersize=6, label="class −")
    for number, angle in enumerate((20, 65)):
        x, y = math.sin(math.radians(angle)), math.cos(math.radians(angle))
        reach = min(4.6 / x, 2.1 / y)
        axes.plot([-reach * x, reach * x], [-reach * y, reach * y], color="0.35", linewidth=1,
                  linestyle=style.DASHES[1 + number], label=f"line at {angle}° from vertical")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlim=(-4.6, 4.6), ylim=(-2.2, 5), yticks=(-2, -1, 0, 1, 2), title=title, xlabel="first coordinate",
             ylabel="second coordinate")
    axes.legend(loc="upper center", ncol=2, columnspacing=1, fontsize=7.5, handlelength=1.6)


def figure1(results):
    figure, ((near, far), (lines, leads)) = style.panels(2, 2, width=3.6, height=2.9)
    _points(near, 1, "s = 1: half of all lines separate")
    _points(far, 4, "s = 4: 15.6 % do; the margin is still 1")
    rows = results.table("lines")
    lines.plot(rows.column("s"), rows.column("law"), color="black", linewidth=1, label="law, 2 atan(1/s)/π")
    lines.errorbar(rows.column("s"), rows.column("frequency"), yerr=[3 * e for e in rows.column("standard error")],
                   **style.line(0, linestyle="none"), label="drawn lines, ± 3 s.e.")
    lines.plot(rows.column("s"), rows.column("normalised margin"), **style.line(1, marker=""), label="normalised margin")
    lines.plot(rows.column("s"), rows.column("unnormalised margin"), **style.line(2, marker=""), label="unnormalised margin")
    lines.set(xscale="log", ylim=(-0.03, 1.08), xlabel="s, half the distance of a class's points",
              ylabel="probability or margin", title="two classes, one dimension")
    lines.legend(loc="center right")
    rows = results.table("leads")
    s = [max(value, 0.3) for value in rows.column("s")]
    leads.plot(s, rows.column("law"), color="black", linewidth=1, label="law of the cosine, n = 50")
    leads.errorbar(s, rows.column("frequency"), yerr=[3 * e for e in rows.column("standard error")],
                   **style.line(0, linestyle="none"), label="drawn, ± 3 s.e.")
    leads.plot(s, [value / 11 for value in rows.column("unnormalised lead")], **style.line(2, marker=""),
               label="unnormalised lead, / 11")
    leads.set(xscale="log", ylim=(0, 1.08), xlabel="s (the first point is s = 0)",
              ylabel="probability to lead, or lead", title="three classes, 50 dimensions")
    leads.legend(loc="center left")
    return figure


def figure2(results):
    rows = results.table("rejections")
    figure, panels = style.panels(2, 2, width=3.6, height=2.9, sharex=True, sharey=True)
    groups = [("acute", [0.827, 0.527]), ("obtuse", [-0.062, -0.0165, -0.827])]
    for line, (kind, shown) in enumerate(groups):
        for column, (probability, what) in enumerate((("P1", "angle"), ("P2", "inner product"))):
            axes = panels[line][column]
            number = 0
            for epsilon in (0.1, 0.3):
                for cosine in shown:
                    points = rows.where(cosine=cosine, epsilon=epsilon)
                    look = style.line(number)
                    axes.plot(points.column("n"), points.column(f"{probability} law"), color=look["color"],
                              linestyle=look["linestyle"])
                    axes.errorbar(points.column("n"), points.column(f"{probability} drawn"),
                                  yerr=[3 * e for e in points.column(f"{probability} standard error")],
                                  **{**look, "linestyle": "none"})
                    axes.plot([], [], **look, label=f"{cosine:g}".replace("-", "−") + f", ε = {epsilon:g}")
                    number += 1
            axes.set(title=f"({'abcd'[2 * line + column]}) {what}, {kind}", ylim=(-0.03, 1.03), xlim=(20, 310))
        panels[line][1].legend(title="cosine", loc="upper left", bbox_to_anchor=(1.01, 1.02))
    for line in panels:
        line[0].set_ylabel("rejection probability P₁")
        line[1].set_ylabel("rejection probability P₂")
    for axes in panels[1]:
        axes.set_xlabel("dimensions n")
    return figure


def figure3(results):
    rows = results.table("rejections")
    figure, panels = style.panels(2, 2, width=3.4, height=2.6, sharex=True, sharey=True)
    for index, margin in enumerate(rows.values("margin")):
        axes = panels[index // 2][index % 2]
        for number, epsilon in enumerate(rows.values("epsilon")):
            points = rows.where(margin=margin, epsilon=epsilon)
            axes.errorbar(points.column("n"), points.column("rejected"), yerr=points.column("standard error"),
                          **style.line(number), label=f"ε = {epsilon:g}")
        axes.set(title=f"({'abcd'[index]}) {margin}", xscale="log", ylim=(-0.03, 1.03))
        axes.legend(loc="upper right" if index < 2 else "lower left")
    for axes in panels[1]:
        axes.set_xlabel("dimensions n")
    for line in panels:
        line[0].set_ylabel("share of projections rejected")
    return figure


def figure3_promises(results):
    rows = results.table("promises")
    names = [name for name in rows.values("theorem") if "sharper" not in name]
    figure, panels = style.panels(1, len(names), width=3.1, height=2.9, sharex=True)
    for axes, name in zip(panels, names):
        points = rows.where(theorem=name)
        axes.plot(points.column("n"), points.column("median measured"), **style.line(0), label="measured, median")
        axes.plot(points.column("n"), points.column("least measured"), **style.line(1), label="measured, least")
        for number, (theorem, label) in enumerate(((name, "promised"), (f"{name}, sharper by the same proof", "sharper"))):
            promised = [(row["n"], row["promised margin"]) for row in rows.where(theorem=theorem)
                        if row["promised margin"] != "nothing"]
            if promised:
                axes.plot(*zip(*promised), **style.line(2 + number), label=label)
        axes.axhline(points[0]["margin before"], color="0.4", linewidth=0.8,
                     label="before" if name != "Theorem 9" else "before (Definition 7)")
        axes.set(title=name, xscale="log", xlabel="dimensions n", ylim=(0, None))
        axes.legend(**({"loc": "center right", "bbox_to_anchor": (1, 0.7)} if name == "Theorem 9" else {"loc": "lower left"}))
    panels[0].set_ylabel("margin")
    return figure


def figure4(results):
    rows = results.table("errors")
    raw = results.table("raw")[0]
    figure, axes = style.panels(1, 1, width=5.2, height=3.4)
    axes.errorbar(rows.column("n"), rows.column("one-parameter"), yerr=rows.column("standard error"), **style.line(0),
                  label="one-parameter, n weights")
    axes.errorbar(rows.column("n"), rows.column("Crammer-Singer on n projections"), yerr=rows.column("its standard error"),
                  **style.line(1), label="Crammer–Singer on n projections, 26(n + 1) weights")
    axes.axhline(raw["Crammer-Singer on the rows"], color=style.COLOURS[2], linestyle=style.DASHES[2],
                 label="Crammer–Singer on the 16 columns, 442 weights")
    axes.set_xscale("log", base=2)
    axes.set_xticks(rows.column("n"), [f"{n:g}" for n in rows.column("n")])
    axes.set(xlabel="dimensions n", ylabel="test error, letter.csv", ylim=(0, 1))
    axes.legend()
    return figure


FIGURES = {
    "sh_figure1": {"sh_figure1": figure1},
    "sh_figure2": {"sh_figure2": figure2},
    "sh_figure3": {"sh_figure3": figure3, "sh_figure3_promises": figure3_promises},
    "sh_figure4": {"sh_figure4": figure4},
}

CAPTIONS = {
    "sh_figure1": {
        "sh_figure1": "Above: the four points for s = 1 and s = 4, the sector of the lines on which the projected classes are "
                      "apart (grey), and two lines. Below: with what probability a random line keeps two classes apart while s "
                      "grows, and the same of a lead of several classes after 50 dimensions.",
    },
    "sh_figure2": {
        "sh_figure2": "Rejection probabilities of cosine and inner product: the laws (lines) and the shares of drawn "
                      "projections (marks, three standard errors of the law). The cosine −0.827 is not in the paper.",
    },
    "sh_figure3": {
        "sh_figure3": "The share of projections that change a margin by more than a share ε, with one standard error.",
        "sh_figure3_promises": "Margins after the projection beside what Theorems 6, 8 and 9 promise with probability .95, "
                               "where they promise anything.",
    },
    "sh_figure4": {
        "sh_figure4": "Test errors of the one-parameter method and of Crammer–Singer over the number of dimensions, with one "
                      "standard error over the splits.",
    },
}
