"""Tests estimators that compute in the test's own process."""
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
from phimap.sklearn import F2, F3, F2Classifier, KernelFeatures

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
