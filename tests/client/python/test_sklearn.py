"""Tests the scikit-learn estimators."""
import io
import pickle
import subprocess
import sys
import uuid

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import phimap
import phimap.sklearn
from phimap import _wire
from phimap.sklearn import F1, F2, F3

KERNEL = "rbf(gamma=0.5)"


@pytest.fixture
def name():
    return f"m-{uuid.uuid4().hex}"


@pytest.fixture
def labels(rows):
    return (np.linalg.norm(rows, axis=1) > 2).astype(int)


@pytest.fixture
def make(phimapd):
    def of(kind=F2, **parameters):
        return kind(**{"landmarks": 50, "kernel": KERNEL, "server": phimapd.address, **parameters})
    return of


@pytest.mark.parametrize("policy", ["uniform", "rpcholesky", "given"])
def test_landmarks_are_chosen_by_policy_and_are_no_more_than_the_rows_allow(phimapd, policy):
    rows = np.random.default_rng(3).standard_normal((40, 3))
    with pytest.warns(UserWarning, match="are used"):
        with F2(landmarks=60, policy=policy, server=phimapd.address) as f2:
            features = f2.fit_transform(rows)
            text = f2.spec_
    assert f"landmarks={39 if policy == 'given' else 40}, policy={policy}" in text
    assert features.shape[1] <= (39 if policy == "given" else 40)


def test_f2_on_all_rows_as_landmarks_is_the_kernel(make, rows):
    features = make(landmarks=300, serving_type="float64").fit_transform(rows)
    # F2 drops the part of K whose pivots are at most 300·2⁻⁵³ each. The tolerance is larger, because errors can be as
    # large as the square root of the rounding errors.
    assert np.abs(features @ features.T - rbf_kernel(rows, gamma=0.5)).max() < 1e-6


def test_f1_are_kernel_values(make, rows):
    features = make(F1, landmarks=300).fit_transform(rows)
    kernel = rbf_kernel(rows, gamma=0.5)
    # The landmarks are all rows, in another order. So each feature must be a column of the kernel matrix, rounded to
    # float32.
    for feature in features.T:
        assert np.abs(kernel - feature).max(axis=1).min() < 1e-5


def test_f3_has_as_many_features_as_dimensions(make, rows):
    assert make(F3, dimensions=7).fit(rows).transform(rows).shape == (300, 7)


@pytest.mark.parametrize("kind, parameters, warned", [
    (F1, {}, ["landmarks=50 is more than F1 can have from 20 rows: 20 are used"]),
    (F2, {}, ["landmarks=50 is more than F2 can have from 20 rows: 20 are used"]),
    (F3, {"dimensions": 5}, ["landmarks=50 is more than F3 can have from 20 rows: 20 are used"]),
    (F3, {"dimensions": 30}, ["landmarks=50 is more than F3 can have from 20 rows: 20 are used",
                              "dimensions=30 is more than F3 can have from 20 rows: 20 are used"])])
def test_what_the_rows_are_too_few_for_is_cut_with_a_warning(make, rows, kind, parameters, warned):
    estimator = make(kind, **parameters)
    with pytest.warns(UserWarning) as warnings:
        estimator.fit(rows[:20])
    assert [str(warning.message) for warning in warnings] == warned
    assert estimator.transform(rows).shape == (300, min(parameters.get("dimensions", 20), 20))
    assert estimator.landmarks == 50  # the parameter keeps the value that the user set


def test_a_pipeline_learns_what_is_not_linear(make, rows, labels):
    model = make_pipeline(make(), LinearSVC(dual=False)).fit(rows, labels)
    assert model.score(rows, labels) > LinearSVC(dual=False).fit(rows, labels).score(rows, labels) + 0.2


def test_a_grid_search_fits_clones_in_other_processes(make, rows, labels, name, client):
    model = make_pipeline(make(name=name), LinearSVC(dual=False))
    grid = {"f2__landmarks": [5, 50], "f2__kernel": [KERNEL, "rbf(gamma=median)"]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=2).fit(rows, labels)
    assert search.best_score_ > 0.7
    best = search.best_estimator_.named_steps["f2"]
    assert best.reference_ == f"{name}@9"  # there were 9 builds: 4 points × 2 folds, and the refit
    assert client.get_mapping(name).version_count == 9


def test_a_fitted_estimator_pickles_without_its_connection(make, rows):
    fitted = make().fit(rows)
    expected = fitted.transform(rows)
    pickled = pickle.dumps(fitted)
    assert b"grpc" not in pickled and len(pickled) < 1000
    program = """
import pickle, sys, numpy
estimator, rows = pickle.load(sys.stdin.buffer)
numpy.save(sys.stdout.buffer, estimator.transform(rows))
"""
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps((fitted, rows)), capture_output=True,
                          check=True)
    assert (np.load(io.BytesIO(done.stdout)) == expected).all()
    assert (pickle.loads(pickled).transform(rows) == expected).all()


def test_a_clone_is_unfitted_and_equal(make, rows):
    fitted = make(seed=3, standardize=True).fit(rows)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(rows)
    assert copy.fit(rows).digest_ == fitted.digest_
    assert copy.reference_ != fitted.reference_


def test_names_of_features_come_in_and_go_out(make, rows):
    frame = pd.DataFrame(rows, columns=list("abcde"))
    estimator = make(landmarks=3).fit(frame)
    assert estimator.feature_names_in_.tolist() == list("abcde") and estimator.n_features_in_ == 5
    assert estimator.get_feature_names_out().tolist() == ["f2_0", "f2_1", "f2_2"]
    out = estimator.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["f2_0", "f2_1", "f2_2"] and len(out) == 300


def test_rows_keep_their_type_on_the_way(make, rows, monkeypatch):
    sent = []

    def spy(message, field, block, original=_wire._with_examples):
        sent.append(block.dtype)
        return original(message, field, block)

    monkeypatch.setattr(_wire, "_with_examples", spy)
    for dtype, on_the_wire in ((np.float32, np.float32), (np.float64, np.float64), (int, np.float64)):
        sent.clear()
        make().fit(rows.astype(dtype)).transform(rows.astype(dtype))
        assert set(sent) == {np.dtype(on_the_wire)}


def test_sparse_rows_give_the_same_features(make, rows):
    rows = np.where(np.abs(rows) < 1, 0, rows)
    estimator = make().fit(rows)
    assert (estimator.transform(scipy.sparse.csr_matrix(rows)) == estimator.transform(rows)).all()
    # For sparse rows, a build computes distances relative to 0, and for dense rows relative to the landmarks' mean.
    # Therefore the results differ, but only by rounding errors.
    features = estimator.transform(rows)
    from_sparse = make().fit(scipy.sparse.csc_matrix(rows)).transform(rows)
    assert np.allclose(from_sparse @ from_sparse.T, features @ features.T, atol=1e-4)


def test_a_fresh_name_is_kept_over_fits_and_a_given_name_is_used(make, rows, name):
    fresh = make().fit(rows)
    first = fresh.reference_
    assert first.startswith("f2-") and first.endswith("@1")
    assert fresh.fit(rows).reference_ == first[:-1] + "2"
    assert make(name=name).fit(rows).reference_ == f"{name}@1"


def test_from_version_is_fitted_with_what_is_stored(phimapd, client, rows, name):
    version = client.build(name, rows, spec="f3(landmarks=40, dimensions=8)", kernel=KERNEL, seed=5, standardize=True)
    estimator = F3.from_version(name, server=phimapd.address)
    assert (estimator.landmarks, estimator.dimensions, estimator.kernel) == (40, 8, KERNEL)
    assert (estimator.get_params()["seed"], estimator.get_params()["standardize"]) == (5, True)
    # A new estimator with these parameters builds the same version.
    again = F3(40, 8, kernel=KERNEL, seed=estimator.seed, standardize=estimator.standardize, name=name,
               server=phimapd.address).fit(rows)
    assert again.digest_ == estimator.digest_
    assert estimator.reference_ == f"{name}@1" and estimator.digest_ == version.ref.digest
    assert estimator.n_features_in_ == 5
    assert (estimator.transform(rows) == client.transform(name, rows)).all()
    assert type(phimap.sklearn.from_version(f"{name}@1", server=phimapd.address)) is F3
    assert estimator.certificate().landmarks == 40


def test_from_version_in_a_pipeline_builds_nothing(phimapd, client, rows, labels, name):
    client.build(name, rows, spec="f2(landmarks=40)", kernel=KERNEL)
    model = make_pipeline(clone(F2.from_version(name, server=phimapd.address)), LinearSVC(dual=False))
    assert model.fit(rows, labels).score(rows, labels) > 0.7
    assert client.get_mapping(name).version_count == 1
    with pytest.raises(ValueError, match="X has 3 features, but .*@1 is expecting 5 features as input"):
        model.fit(rows[:, :3], labels)


def test_from_version_of_another_family_names_the_right_class(phimapd, client, rows, name):
    client.build(name, rows, spec="f1(landmarks=40)", kernel="rbf(gamma=scale)")
    with pytest.raises(ValueError, match=r"@1 is f1\(landmarks=40, .*\), not f2\(…\): use F1"):
        F2.from_version(name, server=phimapd.address)


def test_errors_of_the_server_are_value_errors(make, rows):
    with pytest.raises(ValueError, match="rbf has no parameter 'gama'"):
        make(kernel="rbf(gama=1)").fit(rows)
    with pytest.raises(ValueError, match="landmarks"):
        make(landmarks=0).fit(rows)


def test_a_parameter_that_has_no_text_is_named(make, rows):
    with pytest.raises(TypeError, match="serving_type: expected a number or a name, got <class 'numpy.float32'>"):
        make(serving_type=np.float32).fit(rows)
    with pytest.raises(TypeError, match="kernel: expected text, got int"):
        make(kernel=3).fit(rows)


def test_a_delete_that_failed_can_be_made_again_and_hides_no_other_error(phimapd, client):
    rows = np.random.default_rng(5).standard_normal((30, 3))
    f2 = F2(landmarks=10, server=phimapd.address).fit(rows)
    mapping = f2.reference_.partition("@")[0]
    client.set_alias(f"{mapping}@1", "prod")
    with pytest.raises(phimap.FailedPrecondition):
        f2.delete()
    assert f2.transform(rows).shape[0] == 30
    with pytest.warns(UserWarning, match="was not deleted"), pytest.raises(KeyError, match="mine"):
        with f2:
            raise KeyError("mine")
    client.delete_alias(mapping, "prod")
    f2.delete()
    with pytest.raises(phimap.NotFound):
        client.get_mapping(mapping)


def test_a_word_in_place_of_true_or_false_is_refused(phimapd, rows):
    with pytest.raises(TypeError, match="standardize: expected True or False, got str 'no'"):
        F2(landmarks=5, standardize="no", server=phimapd.address).fit(rows)
