"""Tests the estimators as replacements for scikit-learn's own. The parameters must have scikit-learn's names and
meanings."""
import pickle
import uuid
import warnings

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from phimap._spec_text import spec_text
from phimap.sklearn import F1, F2, F3, FourierFeatures, KernelPCA, RandomProjection, _kernel
from phimap.sklearn._parameters import seed_of

LANDMARKS = 60


def of_nystroems_landmarks(phimapd, rows, theirs, **parameters):
    """Fits an F2 in float64 with the landmarks that the fitted Nystroem `theirs` has chosen. For this, those rows are
    put first, and the policy is "given"."""
    order = np.concatenate([theirs.component_indices_, np.setdiff1d(np.arange(len(rows)), theirs.component_indices_)])
    return F2(n_components=LANDMARKS, policy="given", serving_type="float64", server=phimapd.address,
              **parameters).fit(rows[order])


# Both estimators compute the same features up to a rotation, so the inner products of the features agree. They differ
# only by rounding errors, multiplied by the condition number of the Gram matrix of the 60 landmarks, and because
# Nystroem raises small eigenvalues to 1e-12.
@pytest.mark.parametrize("parameters", [
    {}, {"kernel": "rbf"}, {"kernel": "rbf", "gamma": 0.7}, {"kernel": "laplacian"}, {"kernel": "laplacian", "gamma": 0.1},
    {"kernel": "poly"}, {"kernel": "polynomial", "degree": 2, "gamma": 0.5, "coef0": 2.0}, {"kernel": "poly", "coef0": 0.5},
    {"kernel": "linear"}, {"kernel": "linear", "gamma": 3.0}, {"kernel": "cosine"}])
def test_f2_is_nystroem_up_to_a_rotation(phimapd, rows, parameters):
    theirs = Nystroem(n_components=LANDMARKS, random_state=0, **parameters).fit(rows)
    ours = of_nystroems_landmarks(phimapd, rows, theirs, **parameters)
    expected = theirs.transform(rows)
    features = ours.transform(rows)
    gram = expected @ expected.T
    assert np.abs(features @ features.T - gram).max() < 1e-6 * np.abs(gram).max()


# A sigmoid kernel is not positive semidefinite, so only its values can be compared.
@pytest.mark.parametrize("parameters", [{}, {"gamma": 0.3}, {"gamma": 0.3, "coef0": 0.5}])
def test_a_sigmoid_has_scikit_learns_values(phimapd, rows, parameters):
    from sklearn.metrics.pairwise import sigmoid_kernel
    ours = F1(300, kernel="sigmoid", serving_type="float64", policy="given", server=phimapd.address, **parameters)
    with pytest.warns(UserWarning, match="299 are used"):
        features = ours.fit_transform(rows)
    assert np.abs(features - sigmoid_kernel(rows, rows[:299], **parameters)).max() < 1e-12


@pytest.mark.parametrize("parameters", [{}, {"gamma": 0.3}])
def test_chi2_has_scikit_learns_values(phimapd, rows, parameters):
    from sklearn.metrics.pairwise import chi2_kernel
    counts = np.abs(rows)
    ours = F1(300, kernel="chi2", serving_type="float64", policy="given", server=phimapd.address, **parameters)
    with pytest.warns(UserWarning, match="299 are used"):
        features = ours.fit_transform(counts)
    assert np.abs(features - chi2_kernel(counts, counts[:299], **parameters)).max() < 1e-12


# The features of scikit-learn's AdditiveChi2Sampler approximate the kernel Σ 2xy/(x + y). scikit-learn's
# additive_chi2_kernel, however, is −Σ (x − y)²/(x + y).
def test_additive_chi2_is_the_kernel_of_scikit_learns_sampler(phimapd, rows):
    with pytest.raises(ValueError, match=r"is negative, so it has no features; kernel='additive_chi2\(\)'"):
        _kernel.kernel_text("additive_chi2", {"gamma": None}, 5)
    x = np.abs(rows).astype(np.float64)
    ours = F1(300, kernel="additive_chi2()", serving_type="float64", policy="given", server=phimapd.address)
    with pytest.warns(UserWarning, match="299 are used"):
        features = ours.fit_transform(x)
    a, b = x[:, None, :], x[None, :299, :]
    with np.errstate(invalid="ignore"):
        terms = np.nan_to_num(2 * a * b / (a + b))
    assert np.abs(features - terms.sum(axis=2)).max() < 1e-12 * np.abs(features).max()


def test_a_name_that_scikit_learn_does_not_know_is_the_servers(phimapd, rows):
    assert F1(5, kernel="matern", server=phimapd.address).fit(rows).kernel_.startswith("matern(")
    with pytest.raises(ValueError, match="unknown kernel 'rbff'"):
        F1(5, kernel="rbff", server=phimapd.address).fit(rows)
    assert _kernel.kernel_text("cosine() + 2*delta()", {}, 5) == "cosine() + 2*delta()"


@pytest.mark.parametrize("kernel, parameters, message", [
    ("rbf(gamma=1)", {"gamma": 0.1}, r"gamma=0.1 and kernel='rbf\(gamma=1\)' are both set"),
    ("rbf()*laplacian()", {"degree": 2, "coef0": 0}, r"degree=2, coef0=0 and kernel="),
    ("precomputed", {"gamma": 0.1}, "gamma=0.1 and kernel='precomputed' are both set"),
    (np.dot, {"coef0": 1}, "coef0=1 and kernel=<function dot")])
def test_a_kernel_that_holds_its_parameters_takes_no_others(phimapd, rows, kernel, parameters, message):
    with pytest.raises(ValueError, match=message):
        F2(5, kernel=kernel, server=phimapd.address, **parameters).fit(rows)


@pytest.mark.parametrize("kind, parameters, message", [
    (F1, {"landmarks": 5}, "landmarks=5 and n_components=7 are the same parameter: set one of them"),
    (F2, {"landmarks": 5}, "landmarks=5 and n_components=7"), (F3, {"dimensions": 5}, "dimensions=5 and n_components=7"),
    (FourierFeatures, {"dimensions": 4}, "dimensions=4 and n_components=7"),
    (KernelPCA, {"dimensions": 5}, "dimensions=5 and n_components=7"),
    (RandomProjection, {"dimensions": 5}, "dimensions=5 and n_components=7")])
def test_an_alias_and_its_parameter_are_a_value_error_that_names_both(phimapd, rows, kind, parameters, message):
    estimator = kind(**parameters, n_components=7, server=phimapd.address)
    with pytest.raises(ValueError, match=message):
        estimator.fit(rows)
    with pytest.raises(ValueError, match="seed=1 and random_state=2 are the same parameter"):
        estimator.set_params(n_components=None, seed=1, random_state=2).fit(rows)


@pytest.mark.parametrize("kind, columns", [(F1, 7), (F2, 7), (F3, 7), (KernelPCA, 7), (RandomProjection, 7)])
def test_n_components_is_the_number_of_features(phimapd, rows, kind, columns):
    assert kind(n_components=7, random_state=1, server=phimapd.address).fit_transform(rows).shape == (300, columns)
    assert FourierFeatures(n_components=8, gamma=1.0, server=phimapd.address).fit_transform(rows).shape == (300, 8)


def test_parameters_are_stored_unchanged_and_none_is_the_default(phimapd, rows):
    state = np.random.RandomState(3)
    estimator = F2(n_components=9, gamma=0.2, random_state=state, server=phimapd.address)
    fitted = estimator.fit(rows)
    assert estimator.get_params()["random_state"] is state and estimator.landmarks is None and estimator.gamma == 0.2
    assert "landmarks=9" in fitted.spec_ and fitted.kernel_ == "rbf(gamma=0.2)"
    assert "landmarks=100" in F2(server=phimapd.address).fit(rows).spec_
    assert clone(estimator).get_params().keys() == estimator.get_params().keys()


def test_a_random_state_is_a_seed_and_none_is_zero(phimapd, rows):
    def digest(**parameters):
        return F2(5, server=phimapd.address, **parameters).fit(rows).digest_
    assert digest() == digest(seed=0) == digest(random_state=0) != digest(random_state=1) == digest(seed=1)
    assert digest(random_state=np.random.RandomState(5)) == digest(random_state=np.random.RandomState(5))
    assert seed_of(None, np.random.RandomState(5)) != seed_of(None, np.random.RandomState(6))


def test_numbers_reach_the_server_as_they_are():
    assert spec_text("f2", a=np.float64(0.1) + 0.2, b=np.int64(3), c=np.bool_(True), d="uniform", e=None, f=[1, 0.5],
                     g="auto(residual=0.1)", h="1:3") == \
        "f2(a=0.30000000000000004, b=3, c=true, d=uniform, f=[1, 0.5], g=auto(residual=0.1), h=1:3)"
    single = spec_text("rbf", gamma=np.float32(0.1)).removeprefix("rbf(gamma=").removesuffix(")")
    assert float(single) == np.float32(0.1)
    for value, kind in (("uniform, landmarks=9", ValueError), ("", ValueError), (float("nan"), ValueError), (len, TypeError)):
        with pytest.raises(kind, match="^policy: expected"):
            spec_text("f2", policy=value)
    assert _kernel.kernel_text("poly", {"gamma": np.float64(1e-7), "degree": np.int64(2)}, 4) \
        == "poly(degree=2, gamma=1e-07, coef0=1)"
    assert _kernel.kernel_text("rbf", {"gamma": "median"}, 4) == "rbf(gamma=median)"


@pytest.fixture
def circles():
    return make_circles(240, noise=0.1, factor=0.4, random_state=0)


def test_grids_and_distributions_search_over_scikit_learns_names(phimapd, circles):
    rows, labels = circles
    model = make_pipeline(F2(server=phimapd.address), LinearSVC(dual=False))
    grid = {"f2__n_components": [5, 40], "f2__kernel": ["rbf", "poly"], "f2__gamma": [None, 1.0], "f2__random_state": [0]}
    search = GridSearchCV(model, grid, cv=3).fit(rows, labels)
    assert search.best_score_ > 0.95
    drawn = RandomizedSearchCV(model, {"f2__gamma": loguniform(1e-3, 1e3)}, n_iter=4, cv=2, random_state=0)
    assert drawn.fit(rows, labels).best_score_ > 0.95


@pytest.mark.parametrize("kind", [F1, F2, F3, FourierFeatures, KernelPCA, RandomProjection])
def test_a_step_that_scales_in_place_can_write_to_the_features(phimapd, rows, kind):
    model = make_pipeline(kind(n_components=4, server=phimapd.address), StandardScaler(copy=False))
    scaled = model.fit_transform(rows)
    assert np.abs(scaled.mean(axis=0)).max() < 1e-5
    assert (model.transform(rows[:10]) == scaled[:10]).all()


def test_a_model_outlives_the_block_of_a_client(phimapd, circles):
    import phimap
    rows, labels = circles
    with phimap.Client(phimapd.address) as client:
        model = make_pipeline(F2(30, gamma=1.0, server=client.server), LinearSVC(dual=False)).fit(rows, labels)
    assert model.score(rows, labels) > 0.95


def test_an_estimator_with_a_name_pickles_silently(phimapd, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = F2(5, name=f"m-{uuid.uuid4().hex}", server=phimapd.address).fit(rows)
        pickle.loads(pickle.dumps(fitted))


def test_one_that_an_earlier_release_pickled_has_the_defaults_of_later_parameters(phimapd, rows):
    fitted = F2(5, name=f"m-{uuid.uuid4().hex}", server=phimapd.address).fit(rows)
    state = {name: value for name, value in fitted.__getstate__().items()
             if name not in ("n_components", "gamma", "degree", "coef0", "random_state", "ttl", "ttl_")}
    old = F2.__new__(F2)
    old.__setstate__(state)
    assert (old.transform(rows) == fitted.transform(rows)).all() and repr(old) == repr(fitted)
    assert clone(old).get_params() == fitted.get_params()


def test_a_subclass_may_have_parameters_of_its_own(phimapd, rows):
    class Doubled(F2):
        def __init__(self, n_components=None, factor=2, server=None):
            super().__init__(n_components=n_components, server=server)
            self.factor = factor

        def transform(self, X):
            return self.factor * super().transform(X)

    doubled = clone(Doubled(n_components=6, server=phimapd.address)).fit(rows)
    assert (doubled.transform(rows) == 2 * F2(6, server=phimapd.address).fit_transform(rows)).all()
