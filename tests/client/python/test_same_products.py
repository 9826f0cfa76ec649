"""Tests that F2 with given landmarks and no other choice has the inner products of scikit-learn's recipe in float64: the
inverse root of the landmarks' Gram matrix, as sklearn.kernel_approximation.Nystroem computes it. float32 is the default
type only where it loses nothing, which matters where rows have outliers."""
import uuid

import numpy as np
import pytest
from scipy.linalg import svd
from sklearn.metrics import pairwise

LANDMARKS = 100


def distances(x, y):
    return np.sqrt(((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2))


def matern(x, y):
    r = np.sqrt(3) * distances(x, y)
    return (1 + r) * np.exp(-r)


# One expression of every kernel of numbers, by the name of its leaf kernel.
KERNELS = {
    "linear": ("linear()", pairwise.linear_kernel),
    "poly": ("poly(degree=2, gamma=0.1111, coef0=1)",
             lambda x, y: pairwise.polynomial_kernel(x, y, degree=2, gamma=0.1111, coef0=1)),
    "rbf": ("rbf(gamma=0.1111)", lambda x, y: pairwise.rbf_kernel(x, y, gamma=0.1111)),
    "laplacian": ("laplacian(gamma=0.1111)", lambda x, y: pairwise.laplacian_kernel(x, y, gamma=0.1111)),
    "cosine": ("cosine()", pairwise.cosine_similarity),
    "delta": ("delta()", lambda x, y: (x[:, None, :] == y[None, :, :]).all(axis=2).astype(float)),
    "bilinear": ("bilinear(diagonal=[2, 1, 0.5, 3, 1, 1, 2, 1, 1])", None),
    "matern": ("matern(nu=1.5, length_scale=1)", matern),
    "rational_quadratic": ("rational_quadratic(alpha=1, length_scale=1)",
                           lambda x, y: 1 / (1 + distances(x, y) ** 2 / 2)),
    "chi2": ("chi2(gamma=0.5)", lambda x, y: pairwise.chi2_kernel(x, y, gamma=0.5)),
    "additive_chi2": ("additive_chi2()", None),
    "histogram_intersection": ("histogram_intersection()",
                               lambda x, y: np.minimum(x[:, None, :], y[None, :, :]).sum(axis=2)),
}
# Kernels of strings, one that is not positive semidefinite, and operations on kernels; weight() is a factor of one.
OTHERS = {"spectrum", "jaccard", "sigmoid", "weight", "exp", "normalize", "*", "+"}
NONNEGATIVE = {"chi2", "additive_chi2", "histogram_intersection"}


def bilinear(x, y):
    return x * np.array([2, 1, 0.5, 3, 1, 1, 2, 1, 1]) @ y.T


def additive_chi2(x, y):
    total = x[:, None, :] + y[None, :, :]
    product = 2 * x[:, None, :] * y[None, :, :]
    return np.divide(product, total, out=np.zeros_like(product), where=total > 0).sum(axis=2)


def plain_rows():
    return np.random.default_rng(5).standard_normal((3000, 9))


def spiky_rows():
    """Standardised rows with outliers: each number .01·N(0, 1), and with probability .004 also 30·N(0, 1)."""
    draw = np.random.default_rng(6)
    rows = 0.01 * draw.standard_normal((6000, 9))
    rows += np.where(draw.random(rows.shape) < 0.004, 30 * draw.standard_normal(rows.shape), 0)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def recipe(kernel, landmarks, rows):
    """Nystroem.fit and transform, with given landmarks."""
    u, s, v = svd(kernel(landmarks, landmarks))
    normalization = np.dot(u / np.sqrt(np.maximum(s, 1e-12)), v)
    return kernel(rows, landmarks) @ normalization.T


def test_no_kernel_is_left_out(client):
    assert {kernel.name for kernel in client.list_capabilities().kernels} - OTHERS == KERNELS.keys()


@pytest.mark.parametrize("rows_of", [plain_rows, spiky_rows])
@pytest.mark.parametrize("name", KERNELS)
def test_f2_has_the_inner_products_of_scikit_learns_recipe(client, name, rows_of):
    text, kernel = KERNELS[name]
    kernel = kernel or {"bilinear": bilinear, "additive_chi2": additive_chi2}[name]
    rows = rows_of()
    if name in NONNEGATIVE:
        rows = np.abs(rows)
    mapping = f"p-{uuid.uuid4().hex}"
    client.build(mapping, rows, spec=f"f2(landmarks={LANDMARKS}, policy=given)", kernel=text, seed=1)
    some = rows[LANDMARKS:LANDMARKS + 400]
    features = client.transform(mapping, some).astype(float)
    expected = recipe(kernel, rows[:LANDMARKS], some)
    gram = expected @ expected.T
    # float32 features err by up to 1e-3 (the tolerance of serving), and a version is served in float32 only if a
    # learner's smoother differs by at most .02; the products themselves differ far less.
    assert np.linalg.norm(features @ features.T - gram) <= 2e-3 * np.linalg.norm(gram)
