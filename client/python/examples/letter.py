"""Compares F2 with scikit-learn's Nystroem on letter.csv: the accuracy of a linear SVM, and the wall time of the
mapping.

    python client/python/examples/letter.py                       # F2 in this process, about three minutes
    python client/python/examples/letter.py --server=127.0.0.1:7450
    python client/python/examples/letter.py --phimapd=build/server/phimapd --threads=1

For each seed the rows are split 70 : 30 and standardised; both mappings have the same kernel,
landmarks and seed, and both are followed by LinearSVC. "fit" is the time of fit(training rows).
"transform" is the time of transform(training rows) and transform(test rows), which is what a
Pipeline does when it is fitted and scored. The mappings take turns, five rounds for each seed.

--threads limits OpenBLAS in this process, and the transforms of a phimapd that is started here, to
this number of threads. F2 in this process maps with a thread for each processor. The OpenBLAS of phimapd always has one thread
for each call. Both processes inherit OPENBLAS_CORETYPE.

The exit status is 3 if F2 is less accurate by more than 0.5 points, or takes more wall time.
"""
from __future__ import annotations

import argparse
import contextlib
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_info, threadpool_limits

from phimap.sklearn import F2

LETTER = pathlib.Path(__file__).resolve().parents[3] / "lab/data/letter.csv"
ROUNDS = 5
POINTS_ALLOWED = 0.5


@contextlib.contextmanager
def server_of(arguments: argparse.Namespace) -> Iterator[str | None]:
    """Yields the server to use: one that is started here, or the one that --server gives; None is this process."""
    if arguments.phimapd is None:
        yield arguments.server
        return
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [arguments.phimapd, f"--data_dir={folder}/store", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
             "--log_level=error", f"--compute_threads={arguments.threads}"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        ready = server.stdout.readline()
        if "grpc=" not in ready:
            raise SystemExit(f"{arguments.phimapd} did not start")
        try:
            yield ready.split("grpc=")[1].split()[0]
        finally:
            server.terminate()


def timed(mapping: Any, train: np.ndarray[Any, Any], test: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Returns the seconds that fit and transform take."""
    start = time.perf_counter()
    mapping.fit(train)
    fitted = time.perf_counter()
    mapping.transform(train)
    mapping.transform(test)
    return fitted - start, time.perf_counter() - fitted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, default=LETTER)
    parser.add_argument("--server", help="HOST:PORT or unix:PATH; without it F2 computes in this process")
    parser.add_argument("--phimapd", help="start this binary and use it")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--landmarks", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="use only this many rows, for a quick look")
    arguments = parser.parse_args()

    letters = pd.read_csv(arguments.data, nrows=arguments.rows)
    labels = letters.pop("label").to_numpy()
    rows = letters.to_numpy(float)
    # rbf(gamma=scale) of standardised rows.
    gamma = 1 / rows.shape[1]
    accuracy: dict[str, list[float]] = {"Nystroem": [], "F2": []}
    seconds: dict[str, list[tuple[float, float]]] = {"Nystroem": [], "F2": []}
    with server_of(arguments) as server, threadpool_limits(arguments.threads, "blas"):
        blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
        print("BLAS of this process:", ", ".join(
            f"{library['internal_api']} {library['version']} ({library.get('architecture')}), "
            f"{library['num_threads']} thread(s)" for library in blas))
        for seed in range(arguments.seeds):
            split = train_test_split(rows, labels, test_size=0.3, random_state=seed)
            scaler = StandardScaler().fit(split[0])
            train, test = scaler.transform(split[0]), scaler.transform(split[1])
            with F2(arguments.landmarks, kernel=f"rbf(gamma={gamma})", seed=seed, server=server) as f2:
                mappings = {
                    "Nystroem": Nystroem(gamma=gamma, n_components=arguments.landmarks, random_state=seed), "F2": f2}
                for round_number in range(ROUNDS):
                    names = list(mappings) if round_number % 2 == 0 else list(mappings)[::-1]
                    for name in names:
                        seconds[name].append(timed(mappings[name], train, test))
                for name, mapping in mappings.items():
                    model = make_pipeline(mapping, LinearSVC(random_state=seed)).fit(train, split[2])
                    accuracy[name].append(100 * model.score(test, split[3]))
    return report(arguments, len(rows), accuracy, seconds)


def report(arguments: argparse.Namespace, rows: int, accuracy: dict[str, list[float]],
           seconds: dict[str, list[tuple[float, float]]]) -> int:
    print(f"{rows:,} rows, {arguments.landmarks} landmarks, {arguments.seeds} seed(s), {arguments.threads} thread(s); "
          f"accuracy is the mean over the seeds, seconds are medians of {ROUNDS * arguments.seeds}\n")
    print(f"{'':10}{'accuracy':>10}{'fit':>10}{'transform':>11}{'both':>10}")
    both = {}
    for name, times in seconds.items():
        fit, transform = (statistics.median(part) for part in zip(*times))
        both[name] = statistics.median(sum(pair) for pair in times)
        print(f"{name:10}{statistics.mean(accuracy[name]):8.2f} %{fit:8.3f} s{transform:9.3f} s{both[name]:8.3f} s")
    lead = statistics.mean(accuracy["F2"]) - statistics.mean(accuracy["Nystroem"])
    ratio = both["F2"] / both["Nystroem"]
    passed = lead >= -POINTS_ALLOWED and ratio < 1
    print(f"\nF2 leads by {lead:+.2f} points (at least -{POINTS_ALLOWED} wanted) and takes {ratio:.2f} of the time "
          f"(under 1 wanted): {'passed' if passed else 'FAILED'}")
    return 0 if passed else 3


if __name__ == "__main__":
    raise SystemExit(main())
