"""Compares kernels with scikit-learn's values. With all rows as landmarks, the features of F1 are the kernel
matrix."""
import uuid

import numpy as np
import pytest
from sklearn.metrics import pairwise

# gamma=scale means 1/(columns × variance of all entries).
KERNELS = {
    "linear()": pairwise.linear_kernel,
    "poly(degree=3, gamma=0.5, coef0=1)": lambda x, y: pairwise.polynomial_kernel(x, y, degree=3, gamma=0.5, coef0=1),
    "sigmoid(gamma=0.3, coef0=0.5)": lambda x, y: pairwise.sigmoid_kernel(x, y, gamma=0.3, coef0=0.5),
    "sigmoid()": lambda x, y: pairwise.sigmoid_kernel(x, y, gamma=1 / (x.shape[1] * x.var()), coef0=0),
    "rbf(gamma=0.5)": lambda x, y: pairwise.rbf_kernel(x, y, gamma=0.5),
    "laplacian(gamma=0.2)": lambda x, y: pairwise.laplacian_kernel(x, y, gamma=0.2),
    "laplacian()": lambda x, y: pairwise.laplacian_kernel(x, y, gamma=1 / (x.shape[1] * x.var())),
    "cosine()": pairwise.cosine_similarity,
    "normalize(linear())": pairwise.cosine_similarity,
    "rbf(gamma=0.5)*laplacian(gamma=0.1) + 0.5*cosine()": lambda x, y: (
        pairwise.rbf_kernel(x, y, gamma=0.5) * pairwise.laplacian_kernel(x, y, gamma=0.1)
        + 0.5 * pairwise.cosine_similarity(x, y)),
    "exp(0.1*linear())": lambda x, y: np.exp(0.1 * pairwise.linear_kernel(x, y)),
}


@pytest.fixture
def features(client, rows):
    """Returns a function that maps all rows with F1, in float64 and with a given kernel. All rows are landmarks.
    Their order is the same for every kernel, because the seed is."""
    def of(kernel):
        name = f"k-{uuid.uuid4().hex}"
        client.build(name, rows, spec="f1(landmarks=300, serving_type=float64)", kernel=kernel, seed=3)
        return client.transform(name, rows)
    return of


def test_kernels_are_scikit_learns(features, rows):
    # Feature j of row i is 1 if landmark j is row i, so the features of delta() show the order of the landmarks.
    same = features("delta()")
    assert np.array_equal(np.sort(same, axis=1)[:, -2:], np.tile([0.0, 1.0], (len(rows), 1)))
    order = np.argmax(same, axis=0)
    assert sorted(order) == list(range(len(rows)))
    for kernel, expected in KERNELS.items():
        matrix = expected(rows, rows)[:, order]
        assert np.abs(features(kernel) - matrix).max() <= 1e-11 * np.abs(matrix).max(), kernel
