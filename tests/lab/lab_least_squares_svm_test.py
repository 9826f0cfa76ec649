"""Tests the least-squares SVM of the laboratory against scikit-learn's ridge regression."""

import pathlib
import sys
import unittest

import numpy as np
from sklearn.linear_model import Ridge

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lab"))

from least_squares_svm import LeastSquaresSvm, cross_validated, with_constant  # noqa: E402


def drawn(rows, seed):
    """Three classes of overlapping normal points in five dimensions."""
    random = np.random.default_rng(seed)
    labels = random.integers(3, size=rows)
    return random.normal(size=(rows, 5)) + 0.8 * np.eye(3, 5)[labels], np.array(["a", "b", "c"])[labels]


def ridge_error(cost, rows, labels, test, test_labels):
    """‖w‖²/2 + C·Σ(y − wx)² has the minimum of Σ(y − wx)² + ‖w‖²/(2C)."""
    classes = np.unique(labels)
    model = Ridge(alpha=1 / (2 * cost), fit_intercept=False, solver="svd").fit(
        with_constant(rows), np.where(labels[:, None] == classes, 1.0, -1.0))
    return model, float((classes[model.predict(with_constant(test)).argmax(axis=1)] != test_labels).mean())


class LeastSquaresSvmTest(unittest.TestCase):
    def test_weights_and_error_are_those_of_ridge_regression(self):
        rows, labels = drawn(5000, 1)
        test, test_labels = drawn(500, 2)
        for cost in (0.001, 0.1, 10):
            with self.subTest(cost):
                model, error = ridge_error(cost, rows, labels, test, test_labels)
                ours = LeastSquaresSvm(cost).fit(rows, labels)
                np.testing.assert_allclose(ours.weights, model.coef_.T, rtol=1e-9, atol=1e-12)
                self.assertEqual(ours.error(test, test_labels), error)
                self.assertGreater(error, 0.1)

    def test_folds_are_trained_on_all_other_rows(self):
        rows, labels = drawn(300, 3)
        folds = np.array_split(np.random.default_rng(4).permutation(300), 3)
        found = cross_validated(rows, labels, [0.001, 1.0], folds)
        for cost, error in found.items():
            each = []
            for held in folds:
                rest = np.setdiff1d(np.arange(300), held)
                each.append(ridge_error(cost, rows[rest], labels[rest], rows[held], labels[held])[1])
            self.assertAlmostEqual(error, np.mean(each), places=12)


if __name__ == "__main__":
    unittest.main()
