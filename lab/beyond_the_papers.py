"""The experiment beyond the papers: kernel error and accuracy over d of phimap's mappings and of scikit-learn's.

    build/python/venv/bin/python lab/beyond_the_papers.py --phimapd=build/server/phimapd --out=build/lab_results

Starts a phimapd, builds the mappings of served.py by the Python client, fits Nystroem and RBFSampler in this process,
trains LinearSVC on each, and writes the tables and verdicts that phimap_lab would write to OUT/beyond_the_papers.

The exit status is 0 if every verdict came out as expected, 1 if not.
"""

import argparse
import os
import statistics
import time

# An idle gRPC connection checks for changes at this interval, which is 5 s by default. A server
# that shuts down waits for the check.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200")

import numpy as np  # noqa: E402
from beyond_report import add_tables, judge_all  # noqa: E402
from results_writer import ResultsWriter  # noqa: E402
from served import MAPPINGS, RBF, Built, DataSet, add_flags, kernel_errors, learn, server_of, tasks_of  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

NAME = "beyond_the_papers"
FULL = [DataSet("letter", [16, 32, 64, 128, 256, 512, 1024], 3, 2500, 3000),
        DataSet("spam", [16, 32, 64, 128, 256, 512, 1024], 3, 2500, 1500),
        DataSet("cancer", [16, 32, 64, 128, 256], 5, 1000, 1000),
        DataSet("ionosphere", [16, 32, 64, 128], 5, 1000, 1000)]
QUICK = [DataSet("letter", [64, 256], 2, 700, 700),
         DataSet("ionosphere", [16, 64], 3, 1000, 1000)]
# Residual shares that auto is asked for, on data sets that have rows enough to decide it and, on
# spam, to reach it.
GOALS = {"letter": [0.5, 0.35, 0.2], "spam": [0.5]}


class Experiment:
    """All runs, and the queries on them that beyond_report.py needs."""

    mappings = MAPPINGS

    def __init__(self, arguments, server):
        self.arguments = arguments
        self.sets = QUICK if arguments.quick else FULL
        self.server = server
        self.runs = []
        self.autos = []

    def run(self):
        start = time.perf_counter()
        for data in self.sets:
            for number, task in enumerate(tasks_of(data, self.arguments, self.server)):
                for d in data.dimensions:
                    for mapping in self.mappings:
                        if d <= min(mapping.most, task.most_landmarks):
                            self.run_one(data, task, d, mapping)
                for goal in GOALS.get(data.name, []):
                    self.run_auto(data, task, goal)
                print(f"  {data.name}, split {number + 1} of {data.seeds}: {time.perf_counter() - start:.0f} s", flush=True)

    def run_one(self, data, task, d, mapping):
        """Fits a mapping, measures it, and deletes it from the server."""
        train_rows, test_rows = mapping.kernel.rows(task.train), mapping.kernel.rows(task.test)
        fitted = mapping.make(d, task).fit(train_rows)
        train, test = fitted.transform(train_rows), fitted.transform(test_rows)
        mean, rms = kernel_errors(mapping.kernel, task, test) if mapping.approximates else (None, None)
        learned = learn(task, train, test, mapping.is_parallel)
        self.runs.append({
            "data": data.name, "mapping": mapping.name, "d": d, "seed": task.seed, "features": train.shape[1],
            "kernel error": mean, "RMS kernel error": rms, "test error": learned.error, "solver": learned.solver,
            "converged": "yes" if learned.converged else "no"})
        if mapping.is_phimap:
            fitted.delete()

    def run_auto(self, data, task, goal):
        """Lets a build find the number of landmarks for a residual share, and measures what was
        reached on rows that the build did not see. K(x, x) is 1."""
        fitted = Built(f"f2(landmarks=auto(residual={goal}))", RBF.text(task.gamma), task).fit(task.train)
        train, test = fitted.transform(task.train), fitted.transform(task.test)
        shares = 1 - (test.astype(float)**2).sum(axis=1)
        self.autos.append({
            "data": data.name, "residual": goal, "seed": task.seed, "features": train.shape[1],
            "reached": float(np.quantile(shares, 0.95)), "kernel error": kernel_errors(RBF, task, test)[0],
            "test error": learn(task, train, test).error})
        fitted.delete()

    # Results of the run.

    def values(self, data, mapping, d, name):
        """Returns one value per seed."""
        return [run[name] for run in self.runs if (run["data"], run["mapping"], run["d"]) == (data, mapping, d)]

    def mean(self, data, mapping, d, name):
        return statistics.mean(self.values(data, mapping, d, name))

    def places(self, *mappings):
        """Returns the (data, d) for which all these mappings were run."""
        return [(data.name, d) for data in self.sets for d in data.dimensions
                if all(self.values(data.name, mapping, d, "d") for mapping in mappings)]


CLAIM = (
    "Phimap's mappings through a running server do what scikit-learn's kernel approximations do in process, at the "
    "same d: F2 is as accurate as Nystroem and phase features as RBFSampler; sines and cosines and orthogonal "
    "frequencies err less, and so do landmarks by rpcholesky, d2 and kmeans at larger d, in the root mean square. "
    "Other kernels have the same two ways: landmarks for all, random features for Matérn and exp(γ·xᵀy).")
PROTOCOL = (
    "A phimapd is started, mappings are built and applied by the Python client, and Nystroem and RBFSampler are "
    "fitted in the same process. Rows are split 70:30 and standardised by the training rows; of letter and spam 2,500 "
    "rows are trained on (quick: 700), to keep it short. The kernel is rbf(gamma = 1/p), p the columns, unless a name "
    "says otherwise: Matérn has ν = 3/2 and the length scale √(p/2) of that rbf, exp is exp(xᵀy/p) of rows scaled to "
    "the length √p, as attention has it. F3 and kernel PCA (uncentred, so that it stands for K) have 2d landmarks, or "
    "nine tenths of the training rows; kernel PCA and the other kernels have d up to 256. LinearSVC with C = 1 learns "
    "from the features as they are: coordinate descent with tolerance .01; or, for F1, whose columns are nearly "
    "parallel, and where 100 passes do not suffice, Newton's method on the same objective with tolerance .0001 and up "
    "to 1,000 steps. The kernel error is the mean of abs(K(x, y) − F(x)·F(y)) over all pairs of 600 held-out rows, "
    "RMS its root mean square; F1 has none. auto finds the number of landmarks for a residual share; its goal is "
    "compared with the 95 % quantile of 1 − ‖F(x)‖² on the test rows.")


def about(arguments, seconds):
    sets = QUICK if arguments.quick else FULL
    sizes = "; ".join(f"{data.name}: {data.seeds} splits, d = {data.dimensions[0]} to {data.dimensions[-1]}" for data in sets)
    return {"name": NAME, "paper": "phimap", "item": "beyond the papers",
            "title": "kernel error and accuracy over d, beside scikit-learn", "claim": CLAIM,
            "protocol": f"{PROTOCOL} {sizes}.", "run": "quick" if arguments.quick else "full", "seed": str(arguments.seed),
            "seconds": f"{seconds:.0f}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    arguments = parser.parse_args()
    print(f"{NAME:24} phimap, beyond the papers", flush=True)
    start = time.perf_counter()
    results = ResultsWriter()
    with server_of(arguments.phimapd) as server, threadpool_limits(1, "blas"):
        experiment = Experiment(arguments, server)
        experiment.run()
    add_tables(experiment, results)
    judge_all(experiment, results)
    seconds = time.perf_counter() - start
    results.write(arguments.out / NAME, about(arguments, seconds))
    expected = results.print_verdicts()
    print(f"  {seconds:.1f} s")
    return 0 if expected else 1


if __name__ == "__main__":
    raise SystemExit(main())
