"""Tunes on letter: 15,000 rows to learn from and 5,000 to test on, in the file's order and in two random splits.

    build/python/venv/bin/python lab/tuned_letter.py --phimapd=build/server/phimapd

Prints the error of each split on its 5,000 test rows, which no choice has seen, what was chosen, and how long it took.
"""

import argparse
import json
import os
import time

os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from served import add_flags, server_of  # noqa: E402

from phimap import Client  # noqa: E402

TRAIN = 15_000


def orders(rows, splits):
    """Yields a name and an order of the rows for each split."""
    yield "the file's order", np.arange(rows)
    for seed in range(1, splits):
        yield f"random split {seed}", np.random.default_rng(seed).permutation(rows)


def tuned(client, data, order, budget, seed):
    rows = data.iloc[order]
    inputs = rows.drop(columns="label").to_numpy(np.float32)
    labels = rows["label"].tolist()
    parts = [None] * TRAIN + ["test"] * (len(rows) - TRAIN)
    begin = time.monotonic()
    version = client.tune("letter", inputs, labels, parts=parts, budget=budget, seed=seed, task="classes")
    took = time.monotonic() - begin
    # Counted here, and not taken from the report.
    answers = np.asarray(client.predict(str(version.ref), inputs[TRAIN:]).labels)
    wrong = float(np.mean(answers != np.asarray(labels[TRAIN:], dtype=answers.dtype)))
    return version, wrong, took


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_flags(parser)
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds for each split")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--trials", action="store_true", help="print every trial")
    flags = parser.parse_args()
    data = pd.read_csv(flags.data / "letter.csv")
    errors = []
    with server_of(flags.phimapd) as address, Client(address) as client:
        for name, order in orders(len(data), flags.splits):
            version, wrong, took = tuned(client, data, order, flags.budget, flags.seed)
            errors.append(wrong)
            report = version.head.report
            print(json.dumps({"split": name, "error": wrong, "reported": report.classes.error.value, "seconds": round(took),
                              "spec": version.spec_text, "kernel": version.kernel_text, "learner": version.head.learner,
                              "trained": report.parts.train, "trials": len(report.trials)}), flush=True)
            if flags.trials:
                for trial in report.trials:
                    print(f"  {trial.loss} {trial.error} {trial.microseconds} {trial.rows} {trial.spec} {trial.kernel[:60]} "
                          f"{'std ' if trial.standardize else ''}{trial.learner}", flush=True)
    print(f"mean error {100 * np.mean(errors):.2f} %")


if __name__ == "__main__":
    main()
