"""Achlioptas, McSherry, Schölkopf 2001: sampled Gram matrices, rounded expansions, kernels of projected rows."""

from matplotlib.ticker import FuncFormatter, LogLocator

from figures import style


def way_name(way, s):
    return way if way == "quantised" else f"{way}, s = {s:g}"


def bound(number, **changes):
    """Returns the style of a line that is computed, not measured: without markers."""
    return style.line(number, marker="", **changes)


def norm_lines(axes, rows, x):
    """Draws measured norms over a column, with their bounds."""
    at = rows.column(x)
    axes.errorbar(at, rows.column("norm"), yerr=rows.column("norm deviation"),
                  label="measured, mean ± deviation", **style.line(0, linestyle="none"))
    axes.plot(at, rows.column("2σ′√m"), label="semicircle, mean row: 2σ′√m", **bound(1))
    axes.plot(at, rows.column("2σ″√m"), label="semicircle, heaviest row: 2σ″√m", **bound(2))
    axes.plot(at, rows.column("Bernstein"), label="matrix Bernstein", **bound(3))
    axes.plot(at, rows.column("4σ√m"), label="AMS: 4σ√m", **bound(4))
    axes.set_xscale("log")
    log_numbers(axes)


def legend_below(figure, axes, lines=2):
    """Adds one legend of `lines` lines below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    share = (0.1 + 0.17 * lines) / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, share, 1, 1 - share))
    figure.legend(handles, labels, loc="lower center", ncols=-(-len(labels) // lines))


def plain_ticks(axis, ticks):
    axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def log_numbers(axes):
    """Makes the y axis logarithmic, with numbers also within a decade."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_ticks([], minor=True)


def norms(results):
    table = results.table("norms")
    figure, grid = style.panels(2, 3, height=2.4, width=2.9, sharex=True)
    for row, data in enumerate(table.values("data")):
        for column, (way, s) in enumerate([("sparsified", 10), ("quantised", 1), ("both", 10)]):
            axes = grid[row][column]
            rows = table.where(data=data, way=way, s=s)
            norm_lines(axes, rows, "m")
            plain_ticks(axes.xaxis, rows.column("m"))
            axes.set_title(f"{data}: {way_name(way, s)}")
            axes.set_ylabel(r"spectral norm of $\hat{K} - K$" if column == 0 else "")
            axes.set_xlabel("rows m" if row == 1 else "")
    legend_below(figure, grid[0][0])
    return figure


def norms_over_s(results):
    table = results.table("largest")
    figure, grid = style.panels(2, 2, height=2.4)
    for row, data in enumerate(table.values("data")):
        for column, way in enumerate(["sparsified", "both"]):
            axes = grid[row][column]
            rows = table.where(data=data, way=way)
            norm_lines(axes, rows, "s")
            plain_ticks(axes.xaxis, rows.column("s"))
            axes.set_title(f"{data}, m = {rows[0]['m']:,g}: {way}")
            axes.set_ylabel(r"spectral norm of $\hat{K} - K$" if column == 0 else "")
            axes.set_xlabel("s: one entry in s is kept" if row == 1 else "")
    legend_below(figure, grid[0][0])
    return figure


# Smallest threshold, as a multiple of ‖E‖, that is drawn. Below 1, Theorem 2 says nothing.
LEAST_DISTANCE = 0.8


def angles(results):
    table = results.table("sines")
    figure, grid = style.panels(2, 2, height=2.6, sharex=True, sharey=True)
    for row, data in enumerate(table.values("data")):
        for inequality in (1, 2):
            axes = grid[row][inequality - 1]
            rows = table.where(data=data, inequality=inequality)
            for number, (way, s) in enumerate(dict.fromkeys((r["way"], r["s"]) for r in rows)):
                chosen = [r for r in rows.where(way=way, s=s) if r["bound"] <= 1 / LEAST_DISTANCE]
                axes.plot([1 / r["bound"] for r in chosen], [r["norm largest"] for r in chosen], label=way_name(way, s),
                          **style.line(number + 1, linestyle="none", markersize=3.5))
            ends = [LEAST_DISTANCE, max(1 / r["bound"] for r in table)]
            axes.plot([1, ends[1]], [1, 1 / ends[1]], label="Theorem 2: ‖E‖/b", **bound(0))
            axes.plot([ends[0], 1], [1, 1], **bound(0))
            axes.set_xscale("log")
            log_numbers(axes)
            plain_ticks(axes.xaxis, [1, 2, 5, 10, 20])
            axes.set_xlim(*ends)
            axes.set_ylim(8e-3, 1.5)
            axes.set_title(f"{data}: norm of " + (r"$\hat{F}^T(t)\,F_\perp(t-b)$" if inequality == 1 else
                                                  r"$F^T(t+b)\,\hat{F}_\perp(t)$"))
            axes.set_xlabel("b over ‖E‖" if row == 1 else "")
            axes.set_ylabel("sine of the largest angle" if inequality == 1 else "")
    legend_below(figure, grid[0][0])
    return figure


def rounding(results):
    scales = results.table("scales")
    tails = results.table("tails")
    figure, grid = style.panels(2, 2, height=2.6)
    weights, changes, errors, shares = grid.flat
    for number, data in enumerate(scales.values("data")):
        rows = scales.where(data=data)
        at = rows.column("s/√m")
        weights.errorbar(at, rows.column("weights"), yerr=rows.column("weights deviation"), label=f"{data}, left",
                         **style.line(number + 1, linestyle="none"))
        changes.plot(at, rows.column("95 % of changes"), label=f"{data}, measured",
                     **style.line(number + 1, linestyle="none"))
        errors.plot(at, rows.column("relative error"), label=data, **style.line(number + 1))
        chosen = tails.where(data=data, **{"s/√m": 0.5})
        shares.plot(chosen.column("t"), chosen.column("share of changes"),
                    label=f"{data}, measured", **style.line(number + 1, linestyle="none"))
    rows = scales.where(data=scales.values("data")[0])
    at = rows.column("s/√m")
    weights.plot(at, rows.column("limit 2s√m"), label="Theorem 5: 2s√m", **bound(0))
    weights.plot(at, rows.column("s√m"), label="mean at most: s√m", **bound(3))
    weights.axhline(rows[0]["m"], label=f"all: m = {rows[0]['m']:g}", color="0.5", linewidth=1)
    changes.plot(at, rows.column("Hoeffding 95 %"), label="eq. 1 allows", **bound(0))
    chosen = tails.where(data=rows[0]["data"], **{"s/√m": 0.5})
    shares.plot(chosen.column("t"), chosen.column("Hoeffding"), label="eq. 1 allows", **bound(0))
    for axes in (weights, changes, errors):
        axes.set_xscale("log", base=2)
        log_numbers(axes)
        axes.set_xlabel("scale s over √m")
        plain_ticks(axes.xaxis, at)
    shares.set_yscale("log")
    shares.set_ylim(2e-5, 2)
    weights.set_ylabel("weights of a component")
    changes.set_ylabel("95 % quantile of the change")
    errors.set_ylabel(r"root mean square of $\hat{f} - f$ over f")
    shares.set_xlabel(r"change t of $\hat{f}$, at s = √m/2")
    shares.set_ylabel("share of changes ≥ t")
    weights.legend()
    changes.legend(loc="lower left")
    errors.legend()
    shares.legend(loc=(0.5, 0.27))
    return figure


def distances(results):
    table = results.table("distances")
    figure, grid = style.panels(1, 3, height=3, width=3.1, sharey=True)
    for axes, data in zip(grid, table.values("data")):
        rows = table.where(data=data, way="coins")
        at = rows.column("s")
        axes.plot(at, rows.column("error median"), label="median", **style.line(1))
        axes.plot(at, rows.column("error 95 %"), label="95 % of pairs", **style.line(2))
        axes.errorbar(at, rows.column("error largest"), yerr=rows.column("error largest deviation"),
                      label="largest, mean ± deviation", **style.line(0))
        sampled = table.where(data=data, way="columns")
        axes.plot(sampled.column("s"), sampled.column("error largest"), label="largest, columns sampled",
                  **style.line(4))
        one = [row for row in rows if row["e one pair"] != ""]
        axes.plot([r["s"] for r in one], [r["e one pair"] for r in one], label="eq. 4 at .05: e of one pair",
                  **bound(3))
        every = [row for row in rows if row["e all pairs"] != ""]
        axes.plot([r["s"] for r in every], [r["e all pairs"] for r in every], label="Theorem 6: e of all pairs",
                  **style.line(5))
        axes.set_xscale("log", base=2)
        log_numbers(axes)
        plain_ticks(axes.xaxis, at[::2])
        axes.set_title(f"{data}, d = {rows[0]['d']:,g} columns")
        axes.set_xlabel("sums s")
    grid[0].set_ylabel("relative error of squared distances")
    legend_below(figure, grid[0])
    return figure


def time(results):
    table = results.table("costs")
    figure, (times, errors) = style.panels(1, 2, height=3)
    series = dict.fromkeys((r["mapping"], r["landmarks"]) for r in table)
    for number, (mapping, landmarks) in enumerate(series):
        rows = table.where(mapping=mapping, landmarks=landmarks)
        projected = [r for r in rows if r["s"] != ""]
        whole = [r for r in rows if r["s"] == ""][0]
        name = f"{mapping.upper()}, {landmarks:,g} landmarks"
        times.plot([r["s"] for r in projected], [r["microseconds a row"] for r in projected], label=name,
                   **style.line(number))
        times.axhline(whole["microseconds a row"], **bound(number, linewidth=0.8))
        if whole["mean kernel error"] != "":
            errors.plot([r["s"] for r in projected], [r["mean kernel error"] for r in projected], label=name,
                        **style.line(number))
            errors.axhline(whole["mean kernel error"], label="without a projection", **bound(number, linewidth=0.8))
    times.plot([], [], label="without a projection", color="0.3", linewidth=0.8)
    for axes in (times, errors):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        plain_ticks(axes.xaxis, sorted({r["s"] for r in table if r["s"] != ""}))
        axes.set_xlabel("sums s of 1,024 columns")
        axes.legend()
    log_numbers(times)
    log_numbers(errors)
    times.set_ylim(top=8 * max(r["microseconds a row"] for r in table))
    times.set_ylabel("CPU time of a row, µs")
    errors.set_ylabel("mean kernel error, K(x, x) = 1")
    return figure


FIGURES = {
    "ams_norms": {"ams_norms": norms, "ams_norms_over_s": norms_over_s},
    "ams_angles": {"ams_angles": angles},
    "ams_rounding": {"ams_rounding": rounding},
    "ams_projected_kernel": {"ams_distances": distances, "ams_time": time},
}

CAPTIONS = {
    "ams_norms": {
        "ams_norms": "The spectral norm of K̂ − K over the number of rows, beside what bounds it; both: sparsified, "
                     "then quantised. Coins (quantised, and both) follow Wigner's semicircle; sparsified, where some "
                     "rows have more variance than others, the norm lies between the semicircles of the mean row and "
                     "of the heaviest.",
        "ams_norms_over_s": "The same over s at the largest m of the run.",
    },
    "ams_angles": {
        "ams_angles": "How far features of K̂ turn into the space that Theorem 2 excludes, over the distance b of the "
                      "thresholds: the largest of all draws, for thresholds at the 1st, 2nd, 4th and 8th eigenvalue. The "
                      "line is the theorem's.",
    },
    "ams_rounding": {
        "ams_rounding": "Randomized rounding over the scale s: weights that are left, the change that 95 % of all "
                        "components keep under, the relative error, and the share of changes beyond t at s = √m/2.",
    },
    "ams_projected_kernel": {
        "ams_distances": "Relative error of squared distances after a projection to s sums of coins, beside the e of "
                         "Theorem 6, which begins where the theorem promises one under 1; and after sampling as many "
                         "columns.",
        "ams_time": "CPU time of a row of 1,024 columns, and the mean error of the kernel (F2), over the sums s; thin "
                    "lines: without a projection.",
    },
}
