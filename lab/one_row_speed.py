"""The experiment on speed: what one row costs at every d, through a running server and by scikit-learn in process.

    build/python/venv/bin/python lab/one_row_speed.py --phimapd=build/server/phimapd --out=build/lab_results

Times letter.csv at one split, and writes the tables and verdicts that phimap_lab would write to OUT/one_row_speed. Times
need an idle machine: `lab/run one_row_speed` repeats them alone.

The exit status is 0 if every verdict came out as expected, 1 if not.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

# An idle gRPC connection checks for changes at this interval, which is 5 s by default. A server
# that shuts down waits for the check.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200")

from results_writer import ResultsWriter  # noqa: E402
from served import EXP, MAPPINGS, MATERN, DataSet, add_flags, kernel_errors, learn, machine, server_of, tasks_of  # noqa: E402
from threadpoolctl import threadpool_limits  # noqa: E402

from phimap import Client  # noqa: E402

NAME = "one_row_speed"
FULL = DataSet("letter", [16, 32, 64, 128, 256, 512, 1024], 1, 2500, 3000)
QUICK = DataSet("letter", [64, 256], 1, 700, 700)
# The mappings that the Python client is timed with too.
BY_PYTHON = ("F2, uniform", "Fourier, phase")
# Pairs of a mapping and the one of scikit-learn that computes the same.
PAIRS = [("F2, uniform", "scikit-learn Nystroem"), ("Fourier, phase", "scikit-learn RBFSampler")]


class Clock:
    """Measures the microseconds per row for one caller that maps one row after the other."""

    def __init__(self, phimap, server, seconds):
        self.phimap, self.server, self.seconds = phimap, server, seconds

    def through_server(self, reference):
        """Returns the p50 of Transform calls by `phimap bench`. On a busy machine not one call may end
        in the time, so that there is no p50; then the time is doubled."""
        seconds = self.seconds
        while True:
            done = subprocess.run(
                [self.phimap, f"--server={self.server}", "bench", reference, "--callers=1", "--rows=1",
                 f"--seconds={seconds}", "--warmup=0.03", "--json"], capture_output=True, text=True, check=True)
            p50 = json.loads(done.stdout)["latency_us"]["p50"]
            if p50 > 0:
                return p50
            seconds *= 2

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
    """All times, with the errors that belong to them."""

    def __init__(self, arguments, server):
        self.quick = arguments.quick
        self.data = QUICK if arguments.quick else FULL
        self.rounds = 2 if arguments.quick else 4
        self.clock = Clock(arguments.phimap, server, 0.03 if arguments.quick else 0.08)
        self.task = next(tasks_of(self.data, arguments, server))
        self.times = []

    def run(self):
        kept = [(mapping, d, mapping.make(d, self.task).fit(mapping.kernel.rows(self.task.train))) for d in self.data.dimensions
                for mapping in MAPPINGS if d <= min(mapping.most, self.task.most_landmarks)]
        # The best of several rounds over all mappings, so that a temporary disturbance of the machine
        # spoils a round, not a mapping.
        rounds = [[self.clock.of(mapping, fitted, self.task) for mapping, _, fitted in kept] for _ in range(self.rounds)]
        for (mapping, d, fitted), turns in zip(kept, zip(*rounds)):
            self.times.append({"mapping": mapping.name, "d": d, "us": min(turns),
                               "python us": self.clock.by_python(fitted, self.task) if mapping.name in BY_PYTHON else None,
                               **self.errors_of(mapping, fitted)})
            if mapping.is_phimap:
                fitted.delete()

    def errors_of(self, mapping, fitted):
        """Returns the errors for the figure, which has the rbf kernel's mappings alone."""
        if mapping.kernel in (EXP, MATERN):
            return {"kernel error": None, "test error": None}
        train, test = fitted.transform(self.task.train), fitted.transform(self.task.test)
        error = kernel_errors(mapping.kernel, self.task, test)[0] if mapping.approximates else None
        return {"kernel error": error, "test error": learn(self.task, train, test, mapping.is_parallel).error}

    def us(self, mapping, d, clock="us"):
        return next(one[clock] for one in self.times if (one["mapping"], one["d"]) == (mapping, d))

    def ratios(self, ours, theirs, clock="us"):
        """Returns {d: time of one of phimap's mappings divided by the time of scikit-learn's}. `clock` is
        "us" for the native caller and "python us" for the Python client."""
        return {d: self.us(ours, d, clock) / self.us(theirs, d) for d in self.data.dimensions}


def add_tables(experiment, results, loads):
    table = results.add_table("times", ["mapping", "d", "us", "python client us", "kernel error", "test error"])
    for one in experiment.times:
        table.add(*("" if value is None else value for value in one.values()))
    sizes = experiment.data.dimensions
    shown = results.add_table(
        "speed", ["mapping", *(f"d = {d}" for d in sizes)],
        f"Microseconds of one row, p50 of one caller: phimap's mappings through the server, scikit-learn's in process; measured on "
        f"{machine(loads)}. The last lines divide the first by the second.")
    for mapping in MAPPINGS:
        here = {one["d"]: one for one in experiment.times if one["mapping"] == mapping.name}
        shown.add(mapping.name, *(f"{here[d]['us']:.0f}" if d in here else "–" for d in sizes))
        if mapping.name in BY_PYTHON:
            shown.add(f"{mapping.name}, Python client", *(f"{here[d]['python us']:.0f}" for d in sizes))
    for ours, theirs in PAIRS:
        for clock, said in (("us", ""), ("python us", ", Python client")):
            shown.add(f"{ours}{said} : {theirs}", *(f"{ratio:.2f}" for ratio in experiment.ratios(ours, theirs, clock).values()))


def judge_largest(experiment, results):
    ratios = experiment.ratios(*PAIRS[0])
    largest = max(ratios)
    factor = 10.0 if experiment.quick else 1.0
    results.judge(
        claim=f"With d = {largest} a row takes less time through a phimapd, connection and all, than by Nystroem.transform in "
              "process.",
        measured=f"{ratios[largest]:.2f} times as long: {experiment.us('F2, uniform', largest):.0f} µs; at each d "
                 f"{', '.join(f'{ratio:.2f}' for ratio in ratios.values())}",
        rule=f"p50 of one caller, the best of {experiment.rounds} rounds: F2 below {factor:g} times Nystroem's"
             + (", as tests share the machine" if experiment.quick else ""), agrees=ratios[largest] < factor)


def judge_python(experiment, results, pair, why_not):
    """Judges the claim for callers in Python and every d, which is known not to hold: a call has a
    cost of its own. A native caller's times are shown and not judged for every d, as the call's cost
    depends on the machine."""
    ours, theirs = pair
    ratios = experiment.ratios(ours, theirs, "python us")
    results.judge(
        claim=f"From Python, {ours} takes less time through a phimapd than {theirs[13:]}.transform in process at every d.",
        measured=f"{', '.join(f'{ratio:.2f}' for ratio in ratios.values())} times as long at d = "
                 f"{', '.join(map(str, ratios))}",
        rule=f"below 1 at each of {len(ratios)} sizes", agrees=max(ratios.values()) < 1, why_not=why_not)


def judge_all(experiment, results):
    judge_largest(experiment, results)
    if experiment.quick:
        return  # tests share the machine
    judge_python(experiment, results, PAIRS[0],
                 "a call of the Python client costs more than a small map: with few landmarks it is nearly all of the time, and "
                 "one who maps single rows in a Python process is served sooner by that process")
    judge_python(experiment, results, PAIRS[1],
                 "RBFSampler.transform is one small product and a cosine in process; a call of the Python client costs several "
                 "times that at every d measured")


CLAIM = (
    "One row through a running phimapd, connection and all, costs little more at d = 256 than at d = 16, because the "
    "call costs more than the map. From Python a call costs more than scikit-learn's transform in the same process; how "
    "a native caller compares depends on d and on the machine, and the table says it for each d.")
PROTOCOL = (
    "A phimapd with one thread is started on the same machine. letter.csv, one split, 2,500 rows to build from "
    "(quick: 700), mappings and kernels as in beyond the papers. For phimap's mappings: p50 of one-row Transform "
    "calls of one caller (phimap bench), and for two of them of the Python client's transform. For scikit-learn's: "
    "p50 of transform of one row in this process, one thread. The best of four rounds over all mappings (quick: two).")


def about(arguments, seconds):
    return {"name": NAME, "paper": "phimap", "item": "speed over d", "title": "what one row costs, beside scikit-learn in process",
            "claim": CLAIM, "protocol": PROTOCOL, "run": "quick" if arguments.quick else "full", "seed": str(arguments.seed),
            "seconds": f"{seconds:.0f}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    parser.add_argument("--phimap", type=pathlib.Path, help="the command; by default, client/cli/phimap of the same build")
    arguments = parser.parse_args()
    if arguments.phimap is None:
        arguments.phimap = arguments.phimapd.resolve().parents[1] / "client/cli/phimap"
    print(f"{NAME:24} phimap, speed over d", flush=True)
    start, before = time.perf_counter(), os.getloadavg()[0]
    results = ResultsWriter()
    with server_of(arguments.phimapd) as server, threadpool_limits(1, "blas"):
        experiment = Experiment(arguments, server)
        experiment.run()
    add_tables(experiment, results, (before, os.getloadavg()[0]))
    judge_all(experiment, results)
    seconds = time.perf_counter() - start
    results.write(arguments.out / NAME, about(arguments, seconds))
    expected = results.print_verdicts()
    print(f"  {seconds:.1f} s")
    return 0 if expected else 1


if __name__ == "__main__":
    raise SystemExit(main())
