"""Tests estimators that compute in the test's own process."""
import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import phimap
import phimap.sklearn
from phimap.sklearn import (F1, F2, F3, F2Classifier, F2Regressor, KernelClassifier, KernelFeatures, KernelPCA,
                            KernelRegressor)

pytestmark = pytest.mark.usefixtures("engine_library")

KERNEL = "rbf(gamma=0.5)"


@pytest.fixture
def labels(rows):
    return (np.linalg.norm(rows, axis=1) > 2).astype(int)


def test_an_estimator_here_has_the_features_of_one_with_a_server(phimapd, rows, labels):
    for here in (F2(landmarks=50, kernel=KERNEL, standardize=True), F3(landmarks=50, dimensions=7, kernel=KERNEL),
                 KernelFeatures("fourier(dimensions=32)", kernel=KERNEL), F2(landmarks=50, kernel=rbf_kernel),
                 F2Classifier(landmarks=50, kernel=KERNEL)):
        there = clone(here).set_params(server=phimapd.address)
        with there:
            here.fit(rows, labels)
            there.fit(rows, labels)
            assert here.digest_ == there.digest_
            method = "predict_proba" if hasattr(here, "predict_proba") else "transform"
            np.testing.assert_array_equal(getattr(here, method)(rows), getattr(there, method)(rows))


def test_a_search_with_processes_and_with_threads_leaves_nothing_anywhere(rows, labels):
    for backend in ({"n_jobs": 2}, {"n_jobs": 2, "pre_dispatch": 2}):
        model = make_pipeline(F2(n_components=10, kernel=KERNEL), LinearSVC(dual=False))
        search = GridSearchCV(model, {"f2__n_components": [5, 50], "f2__gamma": [None]}, cv=2, **backend).fit(rows, labels)
        assert search.best_score_ > 0.6
    import joblib
    with joblib.parallel_backend("threading", n_jobs=2):
        search = GridSearchCV(model, {"f2__n_components": [5, 50]}, cv=2).fit(rows, labels)
    assert hasattr(search.best_estimator_.named_steps["f2"], "map_")


def test_a_pickled_estimator_needs_no_server(rows):
    fitted = F2(landmarks=50, kernel=KERNEL).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickled = pickle.dumps((fitted, rows))
    program = "import pickle, sys; f, rows = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(f.transform(rows).tobytes())"
    done = subprocess.run([sys.executable, "-c", program], input=pickled, stdout=subprocess.PIPE, check=True)
    assert done.stdout == fitted.transform(rows).tobytes()


def test_a_fitted_estimator_is_published_saved_and_loaded(phimapd, rows, labels, tmp_path):
    fitted = F2Classifier(landmarks=50, kernel=KERNEL).fit(rows, labels)
    version = fitted.publish("of-estimator", server=phimapd.address)
    assert version.ref.digest == fitted.digest_
    there = F2Classifier.from_version(phimap.reference_to(version), server=phimapd.address)
    np.testing.assert_array_equal(there.predict_proba(rows), fitted.predict_proba(rows))
    np.testing.assert_array_equal(there.predict(rows), fitted.predict(rows))
    fitted.save(tmp_path / "model.phimap")
    for stored in (tmp_path / "model.phimap", fitted.map_):
        again = F2Classifier.from_version(stored)
        np.testing.assert_array_equal(again.predict(rows), fitted.predict(rows))
    assert isinstance(phimap.sklearn.from_version(tmp_path / "model.phimap"), F2)
    there = F2(landmarks=50, kernel=KERNEL, server=phimapd.address).fit(rows)
    with there:
        there.save(tmp_path / "there.phimap")
        assert phimap.load(tmp_path / "there.phimap").digest == there.digest_


def test_a_version_may_be_a_file(rows, tmp_path):
    F2(landmarks=20, kernel=KERNEL).fit(rows).save(tmp_path / "f2.phimap")
    reused = F2(version=tmp_path / "f2.phimap").fit(rows)
    assert reused.digest_ == phimap.load(tmp_path / "f2.phimap").digest
    with pytest.raises(ValueError, match="4 features, but .* expecting 5"):
        F2(version=tmp_path / "f2.phimap").fit(rows[:, :4])


def test_what_only_a_server_has_is_refused_without_one(rows):
    for parameters in ({"name": "letters"}, {"ttl": 100.0}):
        with pytest.raises(ValueError, match="give server too"):
            F2(landmarks=20, kernel=KERNEL, **parameters).fit(rows)


def test_the_environments_server_is_asked_only_by_name(phimapd, rows, monkeypatch):
    from phimap.sklearn import _clients
    monkeypatch.setenv("PHIMAP_SERVER", phimapd.address)
    _clients._warn_of_server.cache_clear()
    with pytest.warns(UserWarning, match="PHIMAP_SERVER is set"):
        here = F2(landmarks=20, kernel=KERNEL).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F2(landmarks=20, kernel=KERNEL).fit(rows)  # once
    assert not hasattr(here, "reference_")
    with F2(landmarks=20, kernel=KERNEL, server="env") as there:
        assert there.fit(rows).reference_
    monkeypatch.delenv("PHIMAP_SERVER")
    with pytest.raises(ValueError, match="PHIMAP_SERVER"):
        F2(landmarks=20, kernel=KERNEL, server="env").fit(rows)


def test_errors_name_the_parameters_that_were_given(rows):
    with pytest.raises(phimap.InvalidArgument) as raised:
        F2(n_components=0, kernel=KERNEL).fit(rows)
    assert raised.value.field == "n_components" and "n_components" in str(raised.value)
    with pytest.raises(phimap.InvalidArgument) as raised:
        F2(landmarks=20, kernel="rbf(gamma=-1)").fit(rows)
    assert raised.value.field == "gamma"


def test_names_of_columns_are_kept(rows):
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    fitted = F2(landmarks=3, kernel=KERNEL).fit(frame)
    assert fitted.map_.column_names == tuple("abcde")
    out = fitted.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["f2_0", "f2_1", "f2_2"]


def test_delete_forgets_the_map(rows):
    with F2(landmarks=20, kernel=KERNEL) as fitted:
        fitted.fit(rows).keep()
        assert fitted.certificate().landmarks == 20
    with pytest.raises(NotFittedError):
        fitted.transform(rows)


def test_the_description_of_f2_lists_all_policies_and_kernels():
    offered = phimap.list_capabilities()
    words = " ".join(inspect.getdoc(F2).split())
    for policy in offered.policies:
        assert f'"{policy.name}"' in words, policy.name
    assert '"auto(residual=' in words  # the only value of `landmarks` that has a parameter
    for kernel in offered.kernels:
        parameters = ", ".join(parameter.name for parameter in kernel.parameters)
        # Operators, and functions of other kernels, have no parameters.
        of_kernels = f"K1 {kernel.name} K2" if kernel.name in "+*" else f"{kernel.name}(K)"
        shown = f"{kernel.name}({parameters})" if parameters else of_kernels
        assert shown in words, shown


# Estimators that have landmarks, each with the parameter for which n_components is another name.
WITH_LANDMARKS = [
    (F1(), "landmarks"), (F2(), "landmarks"), (F3(landmarks=300), "dimensions"), (KernelPCA(landmarks=300), "dimensions"),
    (F2Classifier(), "landmarks"), (F2Regressor(), "landmarks"), (KernelFeatures("f2"), "landmarks"),
    (KernelFeatures("f3(landmarks=300)"), "dimensions"), (KernelClassifier("f1"), "landmarks"),
    (KernelRegressor("kpca(landmarks=300)"), "dimensions")]
each_with_landmarks = pytest.mark.parametrize(
    "kind, size", WITH_LANDMARKS, ids=lambda one: one if isinstance(one, str) else type(one).__name__)


@pytest.mark.filterwarnings("ignore:landmarks=300")  # a fold has 150 rows
@each_with_landmarks
def test_n_components_is_a_parameter_of_a_grid(kind, size, rows, labels):
    estimator = clone(kind).set_params(kernel=KERNEL, n_components=9)
    assert estimator.get_params()["n_components"] == clone(estimator).get_params()["n_components"] == 9
    assert f"{size}=9," in estimator.fit(rows, labels).spec_
    learns = hasattr(kind, "predict")  # features alone need a learner behind them
    model = make_pipeline(estimator) if learns else make_pipeline(estimator, LinearSVC(dual=False))
    name = f"{model.steps[0][0]}__n_components"
    search = GridSearchCV(model, {name: [5, 50]}, cv=2, error_score="raise").fit(rows, labels)
    fitted = search.best_estimator_[0]
    assert fitted.n_components == search.best_params_[name] and f"{size}={fitted.n_components}," in fitted.spec_


@each_with_landmarks
def test_errors_and_warnings_about_n_components_name_it(kind, size, rows, labels):
    for value in (0, -1, 2.5, "many"):
        with pytest.raises(phimap.InvalidArgument, match="n_components") as raised:
            clone(kind).set_params(kernel=KERNEL, n_components=value).fit(rows, labels)
        assert raised.value.field == "n_components"
    with pytest.warns(UserWarning, match="^n_components=1000 is more than .* 300 are used"):
        clone(kind).set_params(kernel=KERNEL, n_components=1000).fit(rows, labels)
    with pytest.raises(ValueError, match=f"{size}=4 and n_components=5 are the same parameter"):
        clone(kind).set_params(**{size: 4}, n_components=5).fit(rows, labels)


def test_a_warning_names_landmarks_where_n_components_is_something_else(rows):
    with pytest.warns(UserWarning, match="^landmarks=1000 is more than KernelFeatures can have from 300 rows"):
        KernelFeatures("f3(landmarks=1000)", n_components=10, kernel=KERNEL).fit(rows)
    with pytest.raises(phimap.InvalidArgument, match="n_components") as raised:
        F2(n_components="many", kernel=rbf_kernel).fit(rows)
    assert raised.value.field == "n_components"


def test_the_number_of_landmarks_may_be_found(rows):
    fitted = F2(n_components="auto(residual=0.01)", kernel=KERNEL).fit(rows)
    assert "auto(residual=0.01" in fitted.spec_ and fitted.certificate().landmarks > 20


def rbf_of_rows(x, z):
    return float(np.exp(-0.5 * ((x - z) ** 2).sum()))


def rbf_of_matrices(x, z):
    return rbf_kernel(x, z, gamma=0.5)


def expected_residuals(fitted, rows):
    """Returns K(x, x) − ‖F(x)‖² for the kernels of this file, whose K(x, x) is 1."""
    return 1 - (fitted.transform(rows).astype(float) ** 2).sum(axis=1)


def test_scores_are_lower_outside_the_span_of_the_landmarks(rows, labels):
    for estimator in (F2(landmarks=300, kernel=KERNEL), F2Classifier(landmarks=300, kernel=KERNEL),
                      F2Regressor(landmarks=300, kernel=KERNEL)):
        fitted = estimator.fit(rows, labels)
        near, far = fitted.score_samples(rows), fitted.score_samples(rows + 20)
        assert near.shape == (300,) and near.min() > -1e-5  # all rows are landmarks
        np.testing.assert_allclose(far, -1)                 # −K(x, x)
    with pytest.raises(NotFittedError):
        F2().score_samples(rows)
    with pytest.raises(ValueError, match="NaN"):
        fitted.score_samples(np.full((1, 5), np.nan))
    assert not any(hasattr(kind, "score_samples") for kind in (F1, F3, KernelPCA, KernelFeatures))


def test_scores_are_those_of_a_server(phimapd, rows, labels):
    for here in (F2(landmarks=20, kernel=KERNEL), F2(landmarks=20, kernel=KERNEL, serving_type="float64", residual=True),
                 F2(landmarks=20, kernel=rbf_of_rows, residual=True), F2Classifier(landmarks=20, kernel=KERNEL)):
        there = clone(here).set_params(server=phimapd.address)
        with there:
            here.fit(rows, labels)
            there.fit(rows, labels)
            np.testing.assert_array_equal(here.score_samples(rows), there.score_samples(rows))
            if isinstance(here, F2):
                np.testing.assert_array_equal(here.transform(rows), there.transform(rows))


def test_residuals_are_a_column(rows):
    plain = F2(landmarks=20, kernel=KERNEL).fit(rows)
    fitted = F2(landmarks=20, kernel=KERNEL, residual=True).fit(rows)
    assert fitted.digest_ == plain.digest_
    features = fitted.transform(rows)
    assert features.dtype == np.float32 and features.flags.writeable
    np.testing.assert_array_equal(features[:, :-1], plain.transform(rows))
    np.testing.assert_array_equal(features[:, -1], -plain.score_samples(rows))
    np.testing.assert_allclose(features[:, -1], expected_residuals(plain, rows), atol=1e-6)
    np.testing.assert_array_equal(fitted.transform(rows[:1]), features[:1])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(rows), features)
    assert list(fitted.get_feature_names_out()) == [*plain.get_feature_names_out(), "residual"]
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    out = clone(fitted).set_output(transform="pandas").fit(frame).transform(frame)
    assert out.columns[-1] == "residual"
    np.testing.assert_array_equal(out.to_numpy(), features)
    model = make_pipeline(fitted, LinearSVC(dual=False)).fit(rows, rows[:, 0] > 0)
    assert model.n_features_in_ == 5 and model[-1].n_features_in_ == 21


def test_residuals_of_kernel_values(rows):
    for function in (rbf_of_rows, rbf_of_matrices):
        fitted = F2(landmarks=20, kernel=function).fit(rows)
        np.testing.assert_allclose(-fitted.score_samples(rows), expected_residuals(fitted, rows), atol=1e-6)
    fitted = F2(landmarks=20, kernel="precomputed").fit(rbf_kernel(rows))
    with pytest.raises(ValueError, match=r"K\(x, x\)"):
        fitted.score_samples(rbf_kernel(rows))
    with pytest.raises(phimap.FailedPrecondition, match="residual"):
        F2(landmarks=20, kernel=KERNEL, input_dimensions=16, residual=True).fit_transform(rows)
