"""Compares learners of phimap with scikit-learn's Perceptron and SGDClassifier, on real data.

    sklearn_test.py LEARNED_MODELS

The program LEARNED_MODELS trains phimap's learners and writes the order in which they visited the rows. scikit-learn
gets the rows in that order, without shuffling. It must end with the same weights, because both compute their weights as
sums of the same rows in the same order.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from sklearn.linear_model import Perceptron, SGDClassifier

LEARNED_MODELS = sys.argv.pop(1)


class SklearnTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([LEARNED_MODELS, cls.folder.name], check=True, timeout=120)

    def case(self, name):
        stem = Path(self.folder.name) / name
        load = lambda what, kind: np.loadtxt(f"{stem}.{what}", dtype=kind, ndmin=1)
        order = load("order", np.int64)
        return load("rows", np.float64)[order], load("labels", np.int64)[order], load("weights", np.float64)

    def assert_close(self, ours, theirs):
        # Weights are sums of some 10,000 rows of magnitude under 10, with a rounding in each step.
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-8)

    def test_two_classes_are_the_perceptron(self):
        for name in ("perceptron_ionosphere", "perceptron_spam"):
            with self.subTest(name):
                rows, labels, weights = self.case(name)
                theirs = Perceptron(shuffle=False).partial_fit(rows, labels, classes=[0, 1])
                ours = (weights[1] - weights[0]) / 2
                self.assert_close(ours[:-1], theirs.coef_[0])
                self.assert_close(ours[-1], theirs.intercept_[0])
                self.assertGreater(np.abs(ours).max(), 1)

    def test_the_mean_is_the_averaged_perceptron(self):
        rows, labels, weights = self.case("averaged_ionosphere")
        theirs = SGDClassifier(loss="perceptron", penalty=None, learning_rate="constant", eta0=1, shuffle=False, average=True)
        theirs.partial_fit(rows, labels, classes=[0, 1])
        ours = (weights[1] - weights[0]) / 2
        self.assert_close(ours[:-1], theirs.coef_[0])
        self.assert_close(ours[-1], theirs.intercept_[0])

    def test_kernel_sgd_of_the_linear_kernel_is_sgd_with_logistic_loss(self):
        for name in ("sgd_ionosphere", "sgd_spam", "sgd_letter"):
            with self.subTest(name):
                rows, labels, weights = self.case(name)
                theirs = SGDClassifier(
                    loss="log_loss", penalty=None, learning_rate="constant", eta0=0.05, fit_intercept=False, shuffle=False
                )
                theirs.partial_fit(rows, labels, classes=np.arange(len(weights)))
                ours = weights[:, :-1] if len(weights) > 2 else weights[1:, :-1]
                self.assert_close(ours, theirs.coef_)
                self.assertGreater(np.abs(ours).max(), 0.1)


if __name__ == "__main__":
    unittest.main()
