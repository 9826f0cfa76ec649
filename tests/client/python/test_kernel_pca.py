"""Tests KernelPCA against scikit-learn's."""
import numpy as np
import pytest
import sklearn.decomposition
import sklearn.metrics.pairwise

import phimap.sklearn
from phimap.sklearn import KernelPCA

KERNEL = "rbf(gamma=0.1)"


@pytest.fixture
def make(phimapd):
    def of(**parameters):
        return KernelPCA(**{"landmarks": 300, "dimensions": 5, "kernel": KERNEL, "server": phimapd.address,
                            **parameters})
    return of


def aligned(features, reference):
    """Returns `features` with each column multiplied by 1 or −1, so that its sign agrees with the column of
    `reference`."""
    return features * np.sign((features * reference).sum(axis=0))


# All rows are landmarks. phimap's iterative eigenvectors have an error of about 1e-10 times the largest eigenvalue,
# divided by the gaps between eigenvalues. Here the gaps are more than 1/1000 of the largest eigenvalue. scikit-learn
# uses LAPACK, which is exact up to rounding.
def test_components_are_scikit_learns(make, rows):
    other = np.random.default_rng(2).standard_normal((50, 5))
    theirs = sklearn.decomposition.KernelPCA(5, kernel="rbf", gamma=0.1, eigen_solver="dense").fit(rows)
    ours = make(serving_type="float64").fit(rows)
    for x in (rows, other):
        expected = theirs.transform(x)
        assert np.abs(aligned(ours.transform(x), expected) - expected).max() < 1e-6
    served = make().fit(rows).transform(other)
    assert served.dtype == np.float32
    assert np.abs(aligned(served, theirs.transform(other)) - theirs.transform(other)).max() < 1e-3


def test_centred_features_have_mean_zero_and_others_keep_the_kernel(make, rows):
    assert np.abs(make().fit_transform(rows).mean(axis=0)).max() < 1e-5
    features = make(dimensions=150, centred=False, serving_type="float64").fit_transform(rows)
    squares = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    assert np.abs(features @ features.T - np.exp(-0.1 * squares)).max() < 0.01


def test_it_comes_back_from_its_version(make, phimapd, rows):
    fitted = make(centred=False, dimensions=3).fit(rows)
    found = phimap.sklearn.from_version(fitted.reference_, server=phimapd.address)
    assert type(found) is KernelPCA and found.centred is False and found.dimensions == 3
    assert (found.transform(rows) == fitted.transform(rows)).all()
    assert fitted.get_feature_names_out().tolist() == ["kpca_0", "kpca_1", "kpca_2"]


def test_too_few_rows_are_named(make, rows):
    with pytest.raises(ValueError, match="1 sample"):
        make().fit(rows[:1])
    with pytest.warns(UserWarning, match="dimensions=5 is more than KernelPCA can have from 4 rows"):
        assert make().fit(rows[:4]).transform(rows).shape[1] <= 4


# The rows form three clusters, so the leading eigenvalues are much larger than the noise that these randomized
# methods add to the Gram matrix.
@pytest.mark.parametrize("switches", [{"gram_sparsify": 2.5}, {"quantise": True}, {"gram_sparsify": 2, "quantise": True},
                                      {"rounding": 100.0}])
def test_randomized_components_span_nearly_scikit_learns(make, switches):
    random = np.random.default_rng(3)
    sizes = np.repeat(np.arange(3), (150, 100, 50))
    rows = 6 * random.standard_normal((3, 5))[sizes] + 0.3 * random.standard_normal((300, 5))
    theirs = sklearn.decomposition.KernelPCA(2, kernel="rbf", gamma=0.1, eigen_solver="dense").fit_transform(rows)
    ours = make(dimensions=2, **switches).fit(rows)
    assert {name: getattr(phimap.sklearn.from_version(ours.reference_, server=ours.server), name) for name in switches} \
        == switches
    expected, _ = np.linalg.qr(theirs)
    found, _ = np.linalg.qr(ours.transform(rows).astype(np.float64))
    cosines = np.linalg.svd(expected.T @ found)[1]
    assert cosines.min() > 0.9
    assert "Achlioptas" in ours.certificate().theorem


# A random sign projection to 400 dimensions changes squared distances by a relative error of about √(2/400). If the
# relative error of a squared distance is e, the kernel value changes by at most e/exp(1).
def test_a_projected_kernel_is_nearly_scikit_learns(phimapd, rows):
    exact = sklearn.metrics.pairwise.rbf_kernel(rows, gamma=0.1)
    f2 = phimap.sklearn.F2(250, kernel=KERNEL, input_dimensions=400, server=phimapd.address)
    features = f2.fit_transform(rows).astype(np.float64)
    assert np.abs(features @ features.T - exact).max() < 0.2
    assert phimap.sklearn.from_version(f2.reference_, server=phimapd.address).input_dimensions == 400
