"""The least-squares SVM on explicit features: ridge regression on ±1, one class against all others.

It minimises ‖w‖²/2 + C·Σ(y − w·(x, 1))² for each class; the constant's weight is penalised too, as in liblinear. A
solution takes products and one Cholesky factor, so thousands of features are within reach where coordinate descent is
not, and the errors of folds come from one pass over the rows (Suykens, Vandewalle, 1999).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

BLOCK_ROWS = 2000


def with_constant(rows):
    """Returns the rows in float64, with a column of 1."""
    return np.hstack([rows.astype(float), np.ones((len(rows), 1))])


@dataclass
class Moments:
    """XᵀX and XᵀY of some rows, which add up."""

    gram: np.ndarray
    targets: np.ndarray

    @staticmethod
    def of(rows, targets):
        """Adds up blocks, so that the rows need not be copied to float64 as a whole."""
        size = rows.shape[1] + 1
        sums = Moments(np.zeros((size, size)), np.zeros((size, targets.shape[1])))
        for first in range(0, len(rows), BLOCK_ROWS):
            block = with_constant(rows[first:first + BLOCK_ROWS])
            sums.gram += block.T @ block
            sums.targets += block.T @ targets[first:first + BLOCK_ROWS]
        return sums

    def minus(self, other):
        return Moments(self.gram - other.gram, self.targets - other.targets)

    def weights(self, cost):
        """Returns the weights for a C, a column per class."""
        penalised = self.gram.copy()
        penalised.flat[::len(penalised) + 1] += 1 / (2 * cost)
        return cho_solve(cho_factor(penalised, lower=True, overwrite_a=True, check_finite=False), self.targets,
                         check_finite=False)


def targets_of(labels):
    """Returns (classes, ±1 for each row and class)."""
    classes = np.unique(labels)
    return classes, np.where(labels[:, None] == classes, 1.0, -1.0)


def error_on(weights, classes, rows, labels):
    """Returns the share of rows whose largest score is not that of their class."""
    wrong = 0
    for first in range(0, len(rows), BLOCK_ROWS):
        scores = with_constant(rows[first:first + BLOCK_ROWS]) @ weights
        wrong += int((classes[scores.argmax(axis=1)] != labels[first:first + BLOCK_ROWS]).sum())
    return wrong / len(rows)


def cross_validated(rows, labels, costs, folds):
    """Returns {C: mean error over the folds}. `folds` has the rows that are held out in turn."""
    classes, targets = targets_of(labels)
    every = Moments.of(rows, targets)
    errors = {cost: [] for cost in costs}
    for held in folds:
        rest = every.minus(Moments.of(rows[held], targets[held]))
        for cost in costs:
            errors[cost].append(error_on(rest.weights(cost), classes, rows[held], labels[held]))
    return {cost: float(np.mean(of_folds)) for cost, of_folds in errors.items()}


class LeastSquaresSvm:
    """A trained model."""

    def __init__(self, cost):
        self.cost = cost

    def fit(self, rows, labels):
        self.classes, targets = targets_of(labels)
        self.weights = Moments.of(rows, targets).weights(self.cost)
        return self

    def error(self, rows, labels):
        return error_on(self.weights, self.classes, rows, labels)
