"""Tables and verdicts of the experiment beside the literature (beside_the_literature.py)."""

import statistics
from dataclasses import dataclass

from served import machine


@dataclass(frozen=True)
class Published:
    error: float | None
    says: str


HSU_LIN = "Hsu, Lin, *A comparison of methods for multiclass support vector machines*, 2002"
# Published test errors of SVMs with an rbf kernel.
PUBLISHED = {
    "letter": [Published(0.0202, f"one against one, accuracy 97.98 % ({HSU_LIN})"),
               Published(0.0212, f"one against all, accuracy 97.88 % ({HSU_LIN})")],
}
# Data sets of the same comparisons that are not in lab/data.
ABSENT = "satimage, shuttle, dna, vowel"
MAX_LANDMARKS = 8192
FOLDS = 3


def seconds(experiment, cell, name):
    return statistics.mean(run.seconds[name] for run in experiment.of(*cell))


def add_tables(experiment, results, loads):
    runs = results.add_table("runs", ["data", "features", "d", "seed", "gamma", "C", "cross-validated error", "test error",
                                      "tune s", "build s", "map s", "train s"])
    for run in experiment.runs:
        runs.add(run.data, run.features, run.d, run.seed, run.setting.gamma, run.setting.cost, float(run.cross_validated),
                 float(run.test_error), *(run.seconds[name] for name in ("tune", "build", "map", "train")))
    shown = results.add_table(
        "errors", ["data", "train, test", "features", "d", "γ", "C", "cross-validated %", "test error %", "tune s", "build s",
                   "map s", "train s"],
        f"Errors, with γ and C of the first split, and seconds; means where there are several splits (their number follows the "
        f"rows). C of the kernel's SVM is of another loss. Measured on {machine(loads)}.")
    for data in experiment.sets:
        for features, d in experiment.cells(data.name):
            cell = data.name, features, d
            here = experiment.of(*cell)
            shown.add(data.name, experiment.sizes[data.name] + (f", {len(here)} splits" if len(here) > 1 else ""), features,
                      d or "–", f"{here[0].setting.gamma:g}", f"{here[0].setting.cost:g}",
                      f"{100 * statistics.mean(run.cross_validated for run in here):.2f}",
                      f"{100 * statistics.mean(run.test_error for run in here):.2f}",
                      *(f"{seconds(experiment, cell, name):.1f}" for name in ("tune", "build", "map", "train")))
    add_published(experiment, results)
    add_limits(experiment, results)


def best_features(experiment, data):
    """Returns the features with the least cross-validated error, which is what a user would choose."""
    cells = [(features, d) for features, d in experiment.cells(data) if d]
    return min(cells, key=lambda cell: statistics.mean(run.cross_validated for run in experiment.of(data, *cell)))


def add_published(experiment, results):
    table = results.add_table(
        "published", ["data", "features chosen by cross-validation", "test error %", "the kernel itself %", "published %", "published by"],
        "Beside the literature. Of the sets without a published number we know no published error of an rbf SVM on a split that "
        "can be repeated from the file.")
    for data in experiment.sets:
        features, d = best_features(experiment, data.name)
        ours = f"{100 * experiment.error(data.name, features, d):.2f}"
        kernel = f"{100 * experiment.error(data.name, *experiment.kernel_cell):.2f}"
        for published in PUBLISHED.get(data.name, [Published(None, "–")]):
            table.add(data.name, f"{features}, d = {d}", ours, kernel,
                      "–" if published.error is None else f"{100 * published.error:.2f}", published.says)


def add_limits(experiment, results):
    """Says what was not run, and what it would take, from the seconds that were measured."""
    data = experiment.sets[0]
    largest = data.dimensions[-1]
    cell = data.name, "F2, uniform", largest
    build, train = seconds(experiment, cell, "build"), seconds(experiment, cell, "train")
    tune = seconds(experiment, cell, "tune")
    rows = len(experiment.train_labels[data.name])
    growth = rows / largest
    table = results.add_table(
        "limits", ["not reached", "why, and what it would take"],
        "What this machine does not reach in this run; times are extrapolated from the seconds above.")
    table.add(f"{data.name}: every training row a landmark, d = {rows}",
              f"a version holds at most {MAX_LANDMARKS} landmarks. By the cube of d a build and a factor would take about "
              f"{growth**3 * (build + train):.0f} s where d = {largest} takes {build + train:.0f} s, and the map "
              f"{8 * rows**2 / 2**30:.1f} GiB in float64")
    settings = len(data.gammas_at(largest)) * len(data.costs)
    folds = data.folds_at(largest)
    table.add(f"{data.name}: the literature's grid of 15 × 15 in {FOLDS} folds at d = {largest}",
              f"{settings} settings in {folds} fold{'s' if folds > 1 else ''} take {tune:.0f} s; 225 in {FOLDS} folds take about "
              f"{tune * 225 * FOLDS / settings / folds / 3600:.1f} hours at this rate")
    table.add(f"{data.name}: squared hinge loss (liblinear) at d = {largest}",
              f"a pass of coordinate descent touches {rows} × {largest} numbers for each of 26 classes, "
              f"{rows * largest * 26 / 1e9:.1f} billion, and some tens of passes are needed for each C; the least-squares loss stands "
              "in its place")
    table.add(f"the other sets of the comparison: {ABSENT}", "they are not in lab/data")


def judge_all(experiment, results):
    judge_kernel(experiment, results)
    judge_published(experiment, results)
    judge_more_features(experiment, results)


def judge_kernel(experiment, results):
    """Judges the features that cross-validation chose against the kernel's own SVM, with the error of
    a difference of two shares of the same test rows."""
    # In a quick run letter has too few features for its rows.
    sets = experiment.sets[1:] if experiment.quick else experiment.sets
    off = {}
    for data in sets:
        ours = experiment.error(data.name, *best_features(experiment, data.name))
        off[data.name] = ours - experiment.error(data.name, *experiment.kernel_cell)
    room = {data.name: 0.01 + 2 * experiment.standard_error(data.name) for data in sets}
    results.judge(
        claim="On features a linear learner comes within a point of the SVM with the kernel itself.",
        measured=", ".join(f"{name} {100 * value:+.2f}" for name, value in off.items()) + " points",
        rule="at most one point more, plus two standard errors of the test error: "
             + ", ".join(f"{name} {100 * value:.2f}" for name, value in room.items()),
        agrees=all(off[name] <= room[name] for name in off))


def judge_published(experiment, results):
    if experiment.quick:
        return  # fewer rows than the literature trained on
    for data in experiment.sets:
        for published in PUBLISHED.get(data.name, []):
            features, d = best_features(experiment, data.name)
            ours = experiment.error(data.name, features, d)
            results.judge(claim=f"{data.name}: within a point of the published error of an rbf SVM, {published.says}.",
                          printed=f"{100 * published.error:.2f} %", measured=f"{100 * ours:.2f} %: {features}, d = {d}",
                          rule="at most one point more", agrees=ours <= published.error + 0.01)


def judge_more_features(experiment, results):
    """Judges whether the error falls with d, on the set with rows enough to see it."""
    data = experiment.sets[0]
    falls = []
    for features in dict.fromkeys(features for features, d in experiment.cells(data.name) if d):
        errors = [experiment.error(data.name, features, d) for d in data.dimensions]
        falls.append((features, errors))
    results.judge(claim=f"{data.name}: the error falls with the number of features.",
                  measured="; ".join(f"{features}: {', '.join(f'{100 * error:.2f}' for error in errors)} %" for features, errors in falls),
                  rule=f"a smaller test error at each next d of {', '.join(map(str, data.dimensions))}",
                  agrees=all(a > b for _, errors in falls for a, b in zip(errors, errors[1:])))
