"""What the experiments in Python share: a phimapd, data sets, the mappings that are compared, and their errors."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import uuid
import warnings
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from phimap import Client
from phimap.sklearn import F1, F2, F3, FourierFeatures, KernelPCA

PAIR_ROWS = 600


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


def add_flags(parser):
    """Adds the flags of every experiment in Python."""
    parser.add_argument("--phimapd", type=pathlib.Path, default=pathlib.Path("build/server/phimapd"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/lab_results"))
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "data")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--quick", action="store_true", help="fewer data sets, sizes and rows")


def machine(loads):
    """Says what the times were measured on."""
    model = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "a processor of unknown name")
    return f"{os.cpu_count()} cores of {model}; load average {loads[0]:.1f} before and {loads[1]:.1f} after"


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
    def most_landmarks(self):
        """Returns the maximum number of landmarks: a build holds out a tenth of the rows, to
        measure the certificate on."""
        return int(0.9 * len(self.train)) - 1


@dataclass(frozen=True)
class DataSet:
    name: str
    dimensions: list[int]
    seeds: int
    train_rows: int
    test_rows: int


def read(folder, name):
    """Returns (rows, labels) of a file of lab/data, in its order."""
    table = pd.read_csv(folder / f"{name}.csv")
    labels = table.pop("label").to_numpy()
    return table.to_numpy(float), labels


def tasks_of(data, arguments, server):
    """Yields a task for each seed: rows split 70:30, standardised by the training rows, and cut to
    the data set's number of rows."""
    rows, labels = read(arguments.data, data.name)
    for number in range(data.seeds):
        seed = 1000 * arguments.seed + number
        train, test, train_labels, test_labels = train_test_split(rows, labels, test_size=0.3, random_state=seed)
        scaler = StandardScaler().fit(train)
        yield Task(scaler.transform(train)[:data.train_rows], scaler.transform(test)[:data.test_rows],
                   train_labels[:data.train_rows], test_labels[:data.test_rows], 1 / rows.shape[1], seed, server)


@dataclass(frozen=True)
class Kernel:
    """A kernel in phimap's text, and its values by numpy."""

    name: str
    text: Callable[[float], str]
    values: Callable[[Any, float], Any]
    # Returns the rows as this kernel gets them.
    rows: Callable[[Any], Any] = lambda rows: rows


def length_scale(gamma):
    """Returns the length ℓ of exp(−r²/(2ℓ²)) = exp(−gamma·r²), which Matérn gets too."""
    return (0.5 / gamma) ** 0.5


def of_equal_length(rows):
    """Returns the rows scaled to the length √p, about what a standardised row has. exp(xᵀy/p) of rows
    of any length spans twenty orders of magnitude on spam.csv."""
    return rows * (rows.shape[1]**0.5 / np.linalg.norm(rows, axis=1, keepdims=True))


RBF = Kernel("rbf", lambda gamma: f"rbf(gamma={gamma!r})", lambda rows, gamma: rbf_kernel(rows, gamma=gamma))
MATERN = Kernel("Matérn", lambda gamma: f"matern(nu=1.5, length_scale={length_scale(gamma)!r})",
                lambda rows, gamma: Matern(length_scale(gamma), nu=1.5)(rows))
EXP = Kernel("exp", lambda gamma: f"exp({gamma!r}*linear())", lambda rows, gamma: np.exp(gamma * rows @ rows.T),
             of_equal_length)


class Built:
    """An estimator of a mapping that has no class of its own in phimap.sklearn."""

    def __init__(self, spec, kernel, task):
        self.spec, self.kernel, self.task = spec, kernel, task
        self.client = Client(task.server)

    def fit(self, rows):
        self.name = f"lab-{uuid.uuid4()}"
        version = self.client.build(self.name, rows, spec=self.spec, kernel=self.kernel, seed=self.task.seed)
        self.reference_ = f"{self.name}@{version.ref.number}"
        return self

    def transform(self, rows):
        return self.client.transform(self.reference_, rows)

    def delete(self):
        self.client.delete_mapping(self.name)
        self.client.close()


@dataclass(frozen=True)
class Mapping:
    name: str
    make: Callable[[int, Task], Any]
    kernel: Kernel = RBF
    is_phimap: bool = True
    # Whether F(x)·F(y) approximates K(x, y).
    approximates: bool = True
    # Largest d to build; expensive mappings and other kernels have a limit.
    most: int = 1 << 30
    # Whether the columns are nearly parallel, so that coordinate descent does not converge.
    is_parallel: bool = False


def of_phimap(estimator, kernel=RBF, **changes):
    """Returns a factory of estimators with d landmarks."""
    return lambda d, task: estimator(d, kernel=kernel.text(task.gamma), seed=task.seed, server=task.server, **changes)


def of_twice_the_landmarks(estimator, **changes):
    """Returns a factory of estimators with d features of 2d landmarks, or of fewer if there are not
    as many."""
    return lambda d, task: estimator(min(2 * d, task.most_landmarks), d, kernel=RBF.text(task.gamma), seed=task.seed,
                                     server=task.server, **changes)


def of_text(spec, kernel):
    """Returns a factory of mappings in phimap's text, in which {d} stands for d."""
    return lambda d, task: Built(spec.format(d=d), kernel.text(task.gamma), task)


F2_UNIFORM = Mapping("F2, uniform", of_phimap(F2))
NYSTROEM = Mapping("scikit-learn Nystroem", lambda d, task: Nystroem(gamma=task.gamma, n_components=d, random_state=task.seed),
                   is_phimap=False)
RBF_SAMPLER = Mapping("scikit-learn RBFSampler",
                      lambda d, task: RBFSampler(gamma=task.gamma, n_components=d, random_state=task.seed), is_phimap=False)
MAPPINGS = [
    Mapping("F1", of_phimap(F1), approximates=False, is_parallel=True),
    F2_UNIFORM,
    Mapping("F2, rpcholesky", of_phimap(F2, policy="rpcholesky")),
    Mapping("F2, d2", of_phimap(F2, policy="d2")),
    Mapping("F2, kmeans", of_phimap(F2, policy="kmeans")),
    Mapping("F3 of 2d landmarks", of_twice_the_landmarks(F3)),
    Mapping("kernel PCA of 2d landmarks", of_twice_the_landmarks(KernelPCA, centred=False), most=256),
    Mapping("Fourier, sine and cosine", of_phimap(FourierFeatures)),
    Mapping("Fourier, phase", of_phimap(FourierFeatures, form="phase")),
    Mapping("Fourier, orthogonal", of_phimap(FourierFeatures, orthogonal=True)),
    NYSTROEM,
    RBF_SAMPLER,
    Mapping("Matérn: F2, uniform", of_phimap(F2, MATERN), kernel=MATERN, most=256),
    Mapping("Matérn: Fourier", of_phimap(FourierFeatures, MATERN), kernel=MATERN, most=256),
    Mapping("exp: F2, uniform", of_phimap(F2, EXP), kernel=EXP, most=256),
    Mapping("exp: positive", of_text("positive(dimensions={d})", EXP), kernel=EXP, most=256),
    Mapping("exp: positive, orthogonal", of_text("positive(dimensions={d}, orthogonal=true)", EXP), kernel=EXP, most=256),
]


def kernel_errors(kernel, task, features):
    """Returns the mean and the root mean square of |K(x, y) − F(x)·F(y)| over all pairs x ≠ y of up
    to PAIR_ROWS held-out rows."""
    rows, mapped = kernel.rows(task.test[:PAIR_ROWS]), features[:PAIR_ROWS].astype(float)
    off = np.abs(kernel.values(rows, task.gamma) - mapped @ mapped.T)[~np.eye(len(rows), dtype=bool)]
    return float(off.mean()), float(np.sqrt((off**2).mean()))


@dataclass(frozen=True)
class Learned:
    """A linear SVM's error on the test rows, and how it was trained."""

    error: float
    # "dual": coordinate descent, which takes a few tens of passes on most features. "primal":
    # Newton steps on the same objective, where 100 passes do not suffice.
    solver: str
    converged: bool


def fitted_svm(task, train, **options):
    """Returns (LinearSVC, whether it converged)."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        model = LinearSVC(C=1, random_state=task.seed, **options).fit(train, task.train_labels)
    return model, not any(issubclass(one.category, ConvergenceWarning) for one in said)


def learn(task, train, test, is_parallel=False):
    """Trains LinearSVC with C = 1 to convergence."""
    train, test = train.astype(float), test.astype(float)
    solver, converged = "dual", False
    if not is_parallel:
        model, converged = fitted_svm(task, train, tol=0.01, max_iter=100)
    if not converged:
        model, converged = fitted_svm(task, train, tol=1e-4, max_iter=1000, dual=False)
        solver = "primal"
    return Learned(1 - model.score(test, task.test_labels), solver, converged)
