"""Figures of section 6 of Balcan, Blum, Vempala 2006: its two tables."""

from matplotlib.lines import Line2D

from figures import style

METHODS = ["F1 + Winnow", "F1 + SVM", "F2 + Winnow", "F2 + SVM", "SVM"]


def offsets(count, width=0.7):
    """Returns the positions of the marks of a group, relative to its middle."""
    return [width * (i / (count - 1) - 0.5) for i in range(count)]


def interval(row):
    """Returns the distances of the mean to the ends of its interval, for errorbar()."""
    return [[max(row["mean"] - row["low"], 0)], [max(row["high"] - row["mean"], 0)]]


def two_errors(row):
    """Returns two standard errors, for errorbar(), cut so that the error is not below 0."""
    return [[min(2 * row["standard_error"], row["mean"])], [2 * row["standard_error"]]]


def measured_mark(number):
    return style.line(number, linestyle="none", markersize=4)


def draw_group(axes, rows, middle, methods):
    """Draws one row of a paper's table: for each method a mark with its interval, and beside it the
    printed number."""
    for number, (method, shift) in enumerate(zip(methods, offsets(len(methods)))):
        row = rows.where(method=method)[0]
        axes.errorbar([middle + shift - 0.03], [row["mean"]], yerr=interval(row), **measured_mark(number))
        if "printed" in row:
            axes.plot([middle + shift + 0.04], [row["printed"]], marker="_", markersize=7, markeredgewidth=1.6, color="0.35",
                      linestyle="none", zorder=4)


def legend_above(axes, handles, columns, above=1.08):
    """Adds a legend above the title. It belongs to the axes, because the layout leaves space for
    legends of axes."""
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, above), ncol=columns)


def method_handles(methods):
    return [Line2D([], [], **measured_mark(number), label=method) for number, method in enumerate(methods)]


def printed_handle():
    return Line2D([], [], marker="_", markersize=7, markeredgewidth=1.6, color="0.35", linestyle="none", label="printed in the paper")


def name_groups(axes, names):
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    for edge in range(len(names) - 1):
        axes.axvline(edge + 0.5, color="0.8", linewidth=0.8)
    axes.set_xlim(-0.5, len(names) - 0.5)


def near_zero(axes, top):
    """Scales the y axis so that errors of 0 and of a tenth fit on it."""
    axes.set_yscale("symlog", linthresh=0.01, linscale=0.6)
    ticks = [0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
    axes.set_yticks([tick for tick in ticks if tick <= top], [f"{tick:g}" for tick in ticks if tick <= top])
    axes.minorticks_off()
    axes.set_ylim(-0.001, top)


def surface_name(row):
    shape, distribution = row["surface"].split(", ")
    return f"{row['row']:.0f}\n{shape}\n{distribution}"


def table1(results):
    errors = results.table("errors")
    figure, panels = style.panels(2, 1, width=7, height=2.6)
    for axes, numbers, title in zip(panels, ([1, 2, 3, 4], [5, 6, 7, 8]),
                                    ("b = 1, c = .2, M = 1.2", "b = .5, c = .1, M = 1.1")):
        names = []
        for middle, number in enumerate(numbers):
            rows = type(errors)(errors.where(row=number))
            draw_group(axes, rows, middle, METHODS)
            names.append(surface_name(rows[0]))
        name_groups(axes, names)
        near_zero(axes, 0.4)
        axes.set_ylabel("mean test error (share)")
        axes.set_title(title)
    legend_above(panels[0], [*method_handles(METHODS), printed_handle()], 3)
    return figure


def table2(results):
    errors = results.table("errors")
    figure, axes = style.panels(1, 1, width=7, height=3.4)
    names = errors.values("data")
    for middle, name in enumerate(names):
        draw_group(axes, errors.where(data=name), middle, METHODS)
    name_groups(axes, names)
    near_zero(axes, 0.4)
    axes.set_ylabel("mean test error (share)")
    legend_above(axes, [*method_handles(METHODS), printed_handle()], 3, above=1)
    return figure


CHOICES = ["uniform", "rpcholesky", "uniform, literal d"]


def literal_tables(results):
    errors = results.table("errors")
    names = errors.values("row")
    figure, panels = style.panels(2, 1, width=7, height=2.8, sharex=True)
    for axes, method in zip(panels, ("F1 + SVM", "F2 + SVM")):
        for middle, name in enumerate(names):
            rows = errors.where(row=name)
            svm = rows.where(method="SVM", landmarks="uniform")[0]
            marks = [rows.where(method=method, landmarks=choice) for choice in CHOICES]
            for number, (found, shift) in enumerate(zip(marks, offsets(4)[:3])):
                if found:
                    axes.errorbar([middle + shift], [found[0]["mean"]], yerr=two_errors(found[0]), **measured_mark(number))
            axes.errorbar([middle + offsets(4)[3]], [svm["mean"]], yerr=two_errors(svm), **measured_mark(4))
        short = [str(name).split(":")[0] for name in names]
        name_groups(axes, [f"Table 1\nrow {name}" if name.isdigit() else name.replace(" ", "\n") for name in short])
        axes.tick_params(axis="x", labelsize=6.5, labelbottom=True)
        near_zero(axes, 0.2)
        axes.set_ylabel("mean test error (share)")
        axes.set_title(method)
    handles = [Line2D([], [], **measured_mark(number), label=label) for number, label in
               enumerate(["d1 of the paper, uniform", "d1, rpcholesky", "literal d, uniform"])]
    handles.append(Line2D([], [], **measured_mark(4), label="SVM with the kernel"))
    legend_above(panels[0], handles, 4)
    return figure


FIGURES = {
    "bbv_table1": {"bbv_table1": table1},
    "bbv_table2": {"bbv_table2": table2},
    "bbv_literal_tables": {"bbv_literal_tables": literal_tables},
}

INTERVAL = "bars are the central 99.8 % of means of as many runs as the paper's number is of"

CAPTIONS = {
    "bbv_table1": {"bbv_table1": f"Table 1: mean errors of the five methods, and the paper's beside them; {INTERVAL}, 10. "
                                 "The scale is linear up to .01, then logarithmic. Winnow at its best setting of the grid."},
    "bbv_table2": {"bbv_table2": f"Table 2: mean errors of the five methods, and the paper's beside them; {INTERVAL}: 1 for Cancer, 20 for "
                                 "Ionosphere, 10 for IRIS. The scale is linear up to .01, then logarithmic. Winnow at its best setting of the grid."},
    "bbv_literal_tables": {"bbv_literal_tables": "Tables 1 and 2 with other landmarks: the paper's few, drawn uniformly or by rpcholesky, "
                                                 "and, where the product can hold them, as many as Lemma 1 asks for; bars are two "
                                                 "standard errors of the mean. The scale is linear up to .01, then logarithmic."},
}
