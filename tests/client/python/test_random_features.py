"""Tests FourierFeatures and RandomProjection against scikit-learn's counterparts."""
import pickle
import uuid

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import LinearSVC

import phimap.sklearn
from phimap.errors import FailedPrecondition
from phimap.sklearn import F2, FourierFeatures, RandomProjection

SEEDS = range(8)
DIMENSIONS = 256


def rms(estimators, rows, exact):
    """Returns the root mean square of F(x)·F(y) − K(x, y), over all pairs and all estimators."""
    squares = []
    for estimator in estimators:
        features = estimator.fit_transform(rows).astype(np.float64)
        squares.append(np.mean((features @ features.T - exact)[np.triu_indices(len(rows), 1)] ** 2))
    return np.sqrt(np.mean(squares))


def fourier(phimapd, **parameters):
    return [FourierFeatures(DIMENSIONS, kernel="rbf(gamma=0.05)", seed=seed, server=phimapd.address, **parameters)
            for seed in SEEDS]


def projections(phimapd, **parameters):
    return [RandomProjection(DIMENSIONS, seed=seed, server=phimapd.address, **parameters) for seed in SEEDS]


# The errors of all pairs are correlated within one draw. Therefore the root mean square over 8 draws still varies by
# about 10 %.
def test_phases_err_as_rbf_sampler_does_and_the_other_forms_less(phimapd, rows):
    exact = rbf_kernel(rows, gamma=0.05)
    sampler = rms([RBFSampler(gamma=0.05, n_components=DIMENSIONS, random_state=seed) for seed in SEEDS], rows, exact)
    phase = rms(fourier(phimapd, form="phase"), rows, exact)
    pairs = rms(fourier(phimapd), rows, exact)
    assert 0.7 * sampler < phase < 1.4 * sampler
    assert pairs < 0.95 * sampler
    assert rms(fourier(phimapd, orthogonal=True), rows, exact) < pairs


# With D features (cosines and sines of frequencies drawn from a Cauchy distribution), the variance of F(x)·F(y) is (1
# − K²)/D. The root mean square varies as in the test above.
def test_features_of_a_laplacian_err_as_their_law_says(phimapd, rows):
    exact = laplacian_kernel(rows, gamma=0.1)
    expected = np.sqrt(np.mean((1 - exact[np.triu_indices(len(rows), 1)] ** 2) / DIMENSIONS))
    features = [FourierFeatures(DIMENSIONS, kernel="laplacian(gamma=0.1)", seed=seed, server=phimapd.address)
                for seed in SEEDS]
    assert 0.7 * expected < rms(features, rows, exact) < 1.4 * expected


def test_monomials_are_the_polynomial_kernel(client, rows):
    name = f"m-{uuid.uuid4().hex}"
    version = client.build(name, rows, spec="polynomial(dimensions=56, serving_type=float64)",
                           kernel="poly(degree=3, gamma=0.5, coef0=1)")
    features = client.transform(name, rows)
    exact = polynomial_kernel(rows, degree=3, gamma=0.5, coef0=1)
    assert version.output_columns == 56
    assert np.abs(features @ features.T - exact).max() < 1e-12 * np.abs(exact).max()


@pytest.mark.filterwarnings("ignore:The number of components is higher than the number of features")
def test_blocks_of_multiclass_are_random_projections(client, rows):
    name = f"m-{uuid.uuid4().hex}"
    client.build(name, rows, spec="multiclass(classes=3, dimensions=256, serving_type=float64)", kernel="linear()")
    blocks = client.transform(name, rows).reshape(len(rows), 3, 256)
    gaussian = rms([GaussianRandomProjection(DIMENSIONS, random_state=seed) for seed in SEEDS], rows, rows @ rows.T)
    for y in range(3):
        error = (blocks[:, y] @ blocks[:, y].T - rows @ rows.T)[np.triu_indices(len(rows), 1)]
        assert 0.4 * gaussian < np.sqrt(np.mean(error ** 2)) < 2 * gaussian


@pytest.mark.filterwarnings("ignore:The number of components is higher than the number of features")
def test_projections_err_as_scikit_learns_do(phimapd, rows):
    exact = rows @ rows.T
    gaussian = rms([GaussianRandomProjection(DIMENSIONS, random_state=seed) for seed in SEEDS], rows, exact)
    sparse = rms([SparseRandomProjection(DIMENSIONS, density=1 / 3, dense_output=True, random_state=seed)
                  for seed in SEEDS], rows, exact)
    assert 0.7 * gaussian < rms(projections(phimapd), rows, exact) < 1.4 * gaussian
    assert 0.7 * sparse < rms(projections(phimapd, projection="sparse"), rows, exact) < 1.4 * sparse


def test_an_odd_number_of_features_has_phases(phimapd, rows):
    odd = FourierFeatures(n_components=7, gamma=1, server=phimapd.address).fit(rows)
    assert odd.transform(rows).shape == (300, 7) and "form=phase" in odd.spec_
    assert "form=sincos" in FourierFeatures(n_components=6, gamma=1, server=phimapd.address).fit(rows).spec_


def test_orthonormal_rows_of_full_size_are_a_rotation(phimapd, rows):
    features = RandomProjection(5, projection="orthonormal", server=phimapd.address).fit_transform(rows)
    # The features are float32, so sums of 5 products of numbers below 5 have rounding errors.
    assert np.abs(features.astype(np.float64) @ features.T - rows @ rows.T).max() < 1e-4


@pytest.mark.parametrize("kind, parameters, names", [
    (FourierFeatures, {"dimensions": 6, "form": "phase", "orthogonal": True}, "fourier_5"),
    (FourierFeatures, {"dimensions": 4, "orthogonal": np.bool_(False)}, "fourier_3"),
    (RandomProjection, {"dimensions": 3, "projection": "sign"}, "random_projection_2")])
def test_estimators_pickle_clone_and_come_back_from_their_version(phimapd, rows, kind, parameters, names):
    fitted = kind(**parameters, seed=3, server=phimapd.address).fit(rows)
    expected = fitted.transform(rows)
    assert fitted.get_feature_names_out()[-1] == names
    assert (pickle.loads(pickle.dumps(fitted)).transform(rows) == expected).all()
    assert clone(fitted).fit(rows).digest_ == fitted.digest_
    found = phimap.sklearn.from_version(fitted.reference_, server=phimapd.address)
    assert type(found) is kind
    assert {name: getattr(found, name) for name in parameters} == parameters
    assert (found.transform(rows) == expected).all()
    with pytest.raises(ValueError, match=f"use {kind.__name__}"):
        F2.from_version(fitted.reference_, server=phimapd.address)


def test_a_pipeline_learns_what_is_not_linear(phimapd, rows):
    labels = (np.linalg.norm(rows, axis=1) > 2).astype(int)
    with FourierFeatures(300, kernel="rbf(gamma=0.3)", standardize=True, name=f"m-{uuid.uuid4().hex}",
                         server=phimapd.address) as features:
        model = make_pipeline(features, LinearSVC(dual=False)).fit(rows, labels)
        assert model.score(rows, labels) > LinearSVC(dual=False).fit(rows, labels).score(rows, labels) + 0.2


def test_what_does_not_go_together_is_a_value_error(phimapd, rows):
    for estimator, message in (
            (FourierFeatures(7, form="sincos"), "even number, got 7"), (FourierFeatures(6, kernel="linear()"), "rbf"),
            (FourierFeatures(6, form="sine"), "form is one of phase, sincos"),
            (RandomProjection(6, kernel="rbf(gamma=1)"), "linear")):
        with pytest.raises(ValueError, match=message):
            estimator.set_params(server=phimapd.address).fit(rows)
    with pytest.raises(FailedPrecondition, match="no more than 5 rows of 5 columns"):
        RandomProjection(6, projection="orthonormal", server=phimapd.address).fit(rows)
