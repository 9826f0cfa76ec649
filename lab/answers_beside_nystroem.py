"""Answers of phimap beside scikit-learn's Nystroem with the same learner: ridge, with alpha from the same grid.

    build/python/venv/bin/python lab/answers_beside_nystroem.py --phimapd=build/server/phimapd

On spam, letter, ionosphere and Friedman's first function, in 20 random splits each: 60 % of the rows are trained on, 20 %
choose alpha and are then learned from too, 20 % are tested. Both have the same kernel on the same standardised columns,
the same number of uniform landmarks, and the same rows in each part. The error of a split is the mean over several draws of
the landmarks, because one draw says more about luck than about either. Prints, for each data set, the mean error or RMSE of
both, and the upper 95 % bound of the mean difference over the splits (Student's t).
"""

import argparse
import math
import os

os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200")

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from scipy.stats import t as student  # noqa: E402
from served import add_flags, server_of  # noqa: E402
from sklearn.kernel_approximation import Nystroem  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from phimap import Client, spec_text  # noqa: E402

# What a version reports as the grid: 1 and 3 times powers of ten (core/learn/ridge.h).
ALPHAS = [digit * 10.0**k for k in range(-4, 5) for digit in (1, 3)]
LANDMARKS = {"ionosphere": 100, "spam": 300, "letter": 500, "friedman": 300}
DRAWS = {"ionosphere": 30, "spam": 4, "letter": 2, "friedman": 6}


def friedman(seed):
    draw = np.random.default_rng(seed)
    x = draw.uniform(size=(2000, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5)**2 + 10 * x[:, 3] + 5 * x[:, 4] + draw.normal(size=2000)
    return x, y


def data_of(name, folder, seed):
    if name == "friedman":
        return friedman(seed)
    table = pd.read_csv(folder / f"{name}.csv")
    return table.drop(columns="label").to_numpy(np.float64), table["label"].astype(str).to_numpy()


def parts_of(rows, seed):
    order = np.random.default_rng(seed).permutation(rows)
    parts = np.empty(rows, object)
    parts[order[:rows * 3 // 5]] = "train"
    parts[order[rows * 3 // 5:rows * 4 // 5]] = "validate"
    parts[order[rows * 4 // 5:]] = "test"
    return parts


def targets_of(labels, classes):
    """Ridge's targets: 1 for the rows of a class and -1 for others; numbers as they are."""
    if classes is None:
        return labels[:, None].astype(float)
    return np.where(labels[:, None] == classes[None, :], 1.0, -1.0)


def ridge(features, targets, alpha):
    mean = targets.mean(axis=0)
    gram = features.T @ features + alpha * np.eye(features.shape[1])
    return np.linalg.solve(gram, features.T @ (targets - mean)), mean


def error_of(scores, labels, classes):
    if classes is None:
        return math.sqrt(np.mean((scores[:, 0] - labels)**2))
    return float(np.mean(classes[np.argmax(scores, axis=1)] != labels))


def by_nystroem(x, labels, parts, gamma, landmarks, seed):
    classes = None if labels.dtype.kind == "f" else np.unique(labels)
    train = parts == "train"
    scaler = StandardScaler().fit(x[train])
    nystroem = Nystroem(gamma=gamma, n_components=landmarks, random_state=seed).fit(scaler.transform(x[train]))
    features = nystroem.transform(scaler.transform(x))
    targets = targets_of(labels, classes)
    validate, test = parts == "validate", parts == "test"

    def loss(alpha):
        weights, mean = ridge(features[train], targets[train], alpha)
        return np.mean((features[validate] @ weights + mean - targets[validate])**2)

    alpha = min(reversed(ALPHAS), key=loss)
    weights, mean = ridge(features[~test], targets[~test], alpha)
    return error_of(features[test] @ weights + mean, labels[test], classes)


def by_phimap(client, x, labels, parts, gamma, landmarks, seed):
    numbers = labels.dtype.kind == "f"
    version = client.train("beside", x, labels, spec=spec_text("f2", landmarks=landmarks),
                           kernel=spec_text("rbf", gamma=float(gamma)), standardize=True, learner="ridge()", parts=parts.tolist(),
                           seed=seed, task="numbers" if numbers else "classes")
    report = version.head.report
    return report.numbers.rmse.value if numbers else report.classes.error.value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_flags(parser)
    parser.add_argument("--splits", type=int, default=20)
    flags = parser.parse_args()
    print(f"{'data':12} {'phimap':>9} {'Nystroem':>9} {'difference':>10} {'at most':>9}   bar")
    with server_of(flags.phimapd) as address, Client(address) as client:
        for name, landmarks in LANDMARKS.items():
            ours, theirs = [], []
            for split in range(flags.splits):
                x, labels = data_of(name, flags.data, split)
                gamma = 1.0 / x.shape[1]
                parts = parts_of(len(x), split)
                seeds = [1000 * split + draw for draw in range(DRAWS[name])]
                ours.append(np.mean([by_phimap(client, x, labels, parts, gamma, landmarks, seed) for seed in seeds]))
                theirs.append(np.mean([by_nystroem(x, labels, parts, gamma, landmarks, seed) for seed in seeds]))
            differences = np.asarray(ours) - np.asarray(theirs)
            bound = differences.mean() + student.ppf(0.95, len(differences) - 1) * differences.std(ddof=1) / math.sqrt(
                len(differences))
            # 2 % of the other's, or .3 points of a share of errors.
            bar = max(0.02 * float(np.mean(theirs)), 0.003 if name != "friedman" else 0.0)
            print(f"{name:12} {np.mean(ours):9.4f} {np.mean(theirs):9.4f} {differences.mean():10.5f} {bound:9.5f}   {bar:.5f} "
                  f"{'held' if bound <= bar else 'MISSED'}", flush=True)


if __name__ == "__main__":
    main()
