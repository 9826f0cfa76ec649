"""KernelPCA beside scikit-learn's."""
import numpy as np
import pytest
import sklearn.decomposition

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
    """`features` with the sign of each column of `reference`."""
    return features * np.sign((features * reference).sum(axis=0))


# All rows are landmarks. Vectors of the iteration are off by 1e-10 of the largest eigenvalue over the gaps, here over
# 1/1000 of it; scikit-learn's are LAPACK's.
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
