"""The experiment beyond the papers: kernel error and accuracy over d of phimap's mappings and of scikit-learn's.

    build/python/venv/bin/python lab/beyond_the_papers.py --phimapd=build/server/phimapd --out=build/lab_results

Starts a phimapd, builds F1, F2 (uniform, rpcholesky), F3, Fourier features (sines and cosines, phase, orthogonal) and
kernel PCA by the Python client's estimators, fits Nystroem and RBFSampler in this process, trains LinearSVC on each, and
writes the tables and verdicts that phimap_lab would write to OUT/beyond_the_papers.

The exit status is 0 if every verdict came out as expected, 1 if not.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass
from typing import Any, Callable

# An idle gRPC connection checks for changes at this interval, which is 5 s by default. A server
# that shuts down waits for the check.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from beyond_report import add_tables, judge_all  # noqa: E402
from results_writer import ResultsWriter  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sklearn.kernel_approximation import Nystroem, RBFSampler  # noqa: E402
from sklearn.metrics.pairwise import rbf_kernel  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from phimap import Client  # noqa: E402
from phimap.sklearn import F1, F2, F3, FourierFeatures, KernelPCA  # noqa: E402

NAME = "beyond_the_papers"
PAIR_ROWS = 600


@dataclass(frozen=True)
class Task:
    """The data and settings that each mapping gets."""

    train: Any
    test: Any
    train_labels: Any
    test_labels: Any
    gamma: float
    seed: int
    server: str

    @property
    def kernel(self):
        return f"rbf(gamma={self.gamma!r})"

    @property
    def most_landmarks(self):
        """Returns the maximum number of landmarks: a build holds out a tenth of the rows, to
        measure the certificate on."""
        return int(0.9 * len(self.train)) - 1


@dataclass(frozen=True)
class Mapping:
    name: str
    make: Callable[[int, Task], Any]
    is_phimap: bool = True
    # Whether F(x)·F(y) approximates K(x, y).
    approximates: bool = True
    # Largest d to build; expensive mappings have a limit.
    most: int = 1 << 30


def of_phimap(estimator, **changes):
    """Returns a factory of estimators with d landmarks."""
    return lambda d, task: estimator(d, kernel=task.kernel, seed=task.seed, server=task.server, **changes)


def of_twice_the_landmarks(estimator, **changes):
    """Returns a factory of estimators with d features of 2d landmarks, or of fewer if there are not
    as many."""
    return lambda d, task: estimator(min(2 * d, task.most_landmarks), d, kernel=task.kernel, seed=task.seed,
                                     server=task.server, **changes)


MAPPINGS = [
    Mapping("F1", of_phimap(F1), approximates=False),
    Mapping("F2, uniform", of_phimap(F2)),
    Mapping("F2, rpcholesky", of_phimap(F2, policy="rpcholesky")),
    Mapping("F3 of 2d landmarks", of_twice_the_landmarks(F3)),
    Mapping("kernel PCA of 2d landmarks", of_twice_the_landmarks(KernelPCA, centred=False), most=256),
    Mapping("Fourier, sine and cosine", of_phimap(FourierFeatures)),
    Mapping("Fourier, phase", of_phimap(FourierFeatures, form="phase")),
    Mapping("Fourier, orthogonal", of_phimap(FourierFeatures, orthogonal=True)),
    Mapping("scikit-learn Nystroem",
            lambda d, task: Nystroem(gamma=task.gamma, n_components=d, random_state=task.seed), is_phimap=False),
    Mapping("scikit-learn RBFSampler",
            lambda d, task: RBFSampler(gamma=task.gamma, n_components=d, random_state=task.seed), is_phimap=False),
]


@dataclass(frozen=True)
class DataSet:
    name: str
    dimensions: list[int]
    seeds: int
    train_rows: int
    test_rows: int


FULL = [DataSet("letter", [16, 32, 64, 128, 256, 512, 1024], 3, 2500, 3000),
        DataSet("spam", [16, 32, 64, 128, 256, 512, 1024], 3, 2500, 1500),
        DataSet("cancer", [16, 32, 64, 128, 256], 5, 1000, 1000),
        DataSet("ionosphere", [16, 32, 64, 128], 5, 1000, 1000)]
QUICK = [DataSet("letter", [64, 256], 2, 700, 700),
         DataSet("ionosphere", [16, 64], 3, 1000, 1000)]
# The data set on which mappings are timed.
TIMED_DATA = "letter"


@contextlib.contextmanager
def server_of(phimapd):
    """Starts a server with one thread, and yields its address."""
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [phimapd, f"--data_dir={folder}/store", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--log_level=error",
             "--compute_threads=1"], stdout=subprocess.PIPE, text=True) as server:
        ready = server.stdout.readline()
        if "grpc=" not in ready:
            raise SystemExit(f"{phimapd} did not start")
        try:
            yield ready.split("grpc=")[1].split()[0]
        finally:
            server.terminate()


def tasks_of(data, arguments, server):
    """Yields a task for each seed: rows split 70:30, standardised by the training rows, and cut to
    the data set's number of rows."""
    table = pd.read_csv(arguments.data / f"{data.name}.csv")
    labels = table.pop("label").to_numpy()
    rows = table.to_numpy(float)
    for number in range(data.seeds):
        seed = 1000 * arguments.seed + number
        train, test, train_labels, test_labels = train_test_split(rows, labels, test_size=0.3, random_state=seed)
        scaler = StandardScaler().fit(train)
        yield Task(scaler.transform(train)[:data.train_rows], scaler.transform(test)[:data.test_rows],
                   train_labels[:data.train_rows], test_labels[:data.test_rows], 1 / rows.shape[1], seed, server)


def kernel_errors(task, features):
    """Returns the mean and the root mean square of |K(x, y) − F(x)·F(y)| over all pairs x ≠ y of up
    to PAIR_ROWS held-out rows."""
    rows, mapped = task.test[:PAIR_ROWS], features[:PAIR_ROWS].astype(float)
    off = np.abs(rbf_kernel(rows, gamma=task.gamma) - mapped @ mapped.T)[~np.eye(len(rows), dtype=bool)]
    return float(off.mean()), float(np.sqrt((off**2).mean()))


def test_error(task, train, test):
    with warnings.catch_warnings():
        # On F1, whose columns are nearly parallel, even 1,000 iterations do not converge; on other
        # features, 20 to 40 suffice.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=1, tol=0.01, max_iter=100, random_state=task.seed).fit(train.astype(float), task.train_labels)
    return 1 - model.score(test.astype(float), task.test_labels)


class Clock:
    """Measures the microseconds per row for one caller that maps one row after the other."""

    def __init__(self, phimap, server, seconds):
        self.phimap, self.server, self.seconds = phimap, server, seconds

    def through_server(self, reference):
        """Returns the p50 of Transform calls by `phimap bench`."""
        done = subprocess.run(
            [self.phimap, f"--server={self.server}", "bench", reference, "--callers=1", "--rows=1",
             f"--seconds={self.seconds}", "--warmup=0.03", "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["latency_us"]["p50"]

    def in_process(self, transform, rows):
        """Returns the p50 of transform(one row)."""
        took = []
        end = time.perf_counter() + self.seconds
        while len(took) < 5 or time.perf_counter() < end:
            row = rows[len(took) % len(rows)][None, :]
            start = time.perf_counter()
            transform(row)
            took.append(time.perf_counter() - start)
        return 1e6 * statistics.median(took)

    def of(self, mapping, fitted, task):
        """Times phimap's mappings through the server, and scikit-learn's in this process."""
        return self.through_server(fitted.reference_) if mapping.is_phimap else self.in_process(
            fitted.transform, task.test)

    def by_python(self, fitted, task):
        """Times calls of the Python client through the server."""
        with Client(self.server) as client:
            return self.in_process(lambda row: client.transform(fitted.reference_, row), task.test)


class Experiment:
    """All runs, and the queries on them that beyond_report.py needs."""

    mappings = MAPPINGS
    timed_data = TIMED_DATA

    def __init__(self, arguments, server):
        self.arguments = arguments
        self.sets = QUICK if arguments.quick else FULL
        self.server = server
        self.clock = Clock(arguments.phimap, server, 0.03 if arguments.quick else 0.08)
        self.runs = []
        self.times = []

    def run(self):
        start = time.perf_counter()
        for data in self.sets:
            for number, task in enumerate(tasks_of(data, self.arguments, self.server)):
                timed = number == 0 and data.name == self.timed_data
                kept = [(mapping, d, self.run_one(data, task, d, mapping, keep=timed)) for d in data.dimensions
                        for mapping in self.mappings if d <= min(mapping.most, task.most_landmarks)]
                if timed:
                    self.time_all(kept, task)
                print(f"  {data.name}, split {number + 1} of {data.seeds}: {time.perf_counter() - start:.0f} s", flush=True)

    def run_one(self, data, task, d, mapping, keep):
        """Fits a mapping, measures it, and returns it. Unless `keep`, deletes it from the
        server."""
        fitted = mapping.make(d, task).fit(task.train)
        train, test = fitted.transform(task.train), fitted.transform(task.test)
        mean, rms = kernel_errors(task, test) if mapping.approximates else (None, None)
        self.runs.append({
            "data": data.name, "mapping": mapping.name, "d": d, "seed": task.seed, "features": train.shape[1],
            "kernel error": mean, "RMS kernel error": rms, "test error": test_error(task, train, test)})
        if mapping.is_phimap and not keep:
            fitted.delete()
        return fitted

    def time_all(self, kept, task):
        """Takes the best of several rounds over all mappings, so that a temporary disturbance of
        the machine spoils a round, not a mapping."""
        rounds = [[self.clock.of(mapping, fitted, task) for mapping, _, fitted in kept]
                  for _ in range(2 if self.arguments.quick else 4)]
        for (mapping, d, fitted), turns in zip(kept, zip(*rounds)):
            by_python = self.clock.by_python(fitted, task) if mapping.name == "F2, uniform" else None
            self.times.append({"mapping": mapping.name, "d": d, "us": min(turns), "python us": by_python})
            if mapping.is_phimap:
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
    "frequencies err less, and so does rpcholesky at larger d, in the root mean square.")
PROTOCOL = (
    "A phimapd is started, mappings are built and applied by the Python client's estimators, and Nystroem and "
    "RBFSampler are fitted in the same process. Rows are split 70:30 and standardised by the training rows; of "
    "letter and spam 2,500 rows are trained on (quick: 700), to keep it short. All have the kernel rbf(gamma = 1/p), "
    "p the columns. F3 and kernel PCA (uncentred, so that it stands for K; d up to 256) have 2d landmarks, or nine "
    "tenths of the training rows. LinearSVC with C = 1, tolerance .01 and at most 100 iterations, which are too few "
    "for F1 alone, learns from the features as they are. The kernel error is the mean of abs(K(x, y) − F(x)·F(y)) "
    "over all pairs of 600 held-out rows, RMS its root mean square; F1 has none. Times are of letter.csv at one "
    "split: p50 of one-row Transform calls of one caller (phimap bench) on the same machine, and of "
    "Nystroem.transform and RBFSampler.transform of one row in process; one thread each.")


def about(arguments, seconds):
    sets = QUICK if arguments.quick else FULL
    sizes = "; ".join(f"{data.name}: {data.seeds} splits, d = {data.dimensions[0]} to {data.dimensions[-1]}" for data in sets)
    return {"name": NAME, "paper": "phimap", "item": "beyond the papers",
            "title": "kernel error and accuracy over d, beside scikit-learn", "claim": CLAIM,
            "protocol": f"{PROTOCOL} {sizes}.", "run": "quick" if arguments.quick else "full", "seed": str(arguments.seed),
            "seconds": f"{seconds:.0f}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phimapd", type=pathlib.Path, default=pathlib.Path("build/server/phimapd"))
    parser.add_argument("--phimap", type=pathlib.Path,
                        help="the command, for one-row times; by default, client/cli/phimap of the same build")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/lab_results"))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "data")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--quick", action="store_true", help="fewer data sets, sizes and rows")
    arguments = parser.parse_args()
    if arguments.phimap is None:
        arguments.phimap = arguments.phimapd.resolve().parents[1] / "client/cli/phimap"

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
