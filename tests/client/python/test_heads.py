"""Tests the estimators that predict against a real phimapd: what `fit` makes on the server, and that answers have
scikit-learn's form."""
import pickle
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import phimap
from phimap.sklearn import F2, F2Classifier, F2Regressor, KernelClassifier, KernelRegressor, from_version


@pytest.fixture(scope="module")
def blobs():
    """400 rows of 3 classes, whose centres are 4 deviations from each other."""
    random = np.random.default_rng(5)
    places = random.integers(0, 3, 400)
    return random.standard_normal((400, 4)) + 4 / np.sqrt(2) * np.eye(3, 4)[places], places


@pytest.fixture(scope="module")
def curve():
    """400 rows whose target is a sine of the first column with noise of deviation 0.1."""
    random = np.random.default_rng(6)
    rows = random.uniform(-2, 2, (400, 2))
    return rows, np.sin(2 * rows[:, 0]) + 0.1 * random.standard_normal(400)


def classifier(phimapd, **arguments):
    return F2Classifier(50, server=phimapd.address, **arguments)


def regressor(phimapd, **arguments):
    return F2Regressor(50, gamma=1.0, server=phimapd.address, **arguments)


# The server sorts names that are all integers by their value and others as texts, so that it has the last in another order.
@pytest.mark.parametrize("names, texts", [
    (["ham", "spam", "tea"], ("ham", "spam", "tea")), ([7, 20, 100], ("7", "20", "100")), ([-1.0, 2.0, 10.0], ("-1.0", "10.0", "2.0"))])
def test_classes_keep_their_type_and_every_answer_agrees_with_the_label(phimapd, blobs, names, texts):
    rows, places = blobs
    y = np.array(names)[places]
    with classifier(phimapd) as model:
        labels = model.fit(rows, y).predict(rows)
        assert labels.dtype == y.dtype and model.classes_.tolist() == names
        assert (labels == y).mean() > 0.9  # the best rule errs on about 4 % of the rows
        assert model.score(rows, y) == (labels == y).mean()
        scores, probabilities = model.decision_function(rows), model.predict_proba(rows)
        assert scores.shape == probabilities.shape == (400, 3)
        assert (model.classes_[scores.argmax(axis=1)] == labels).all()
        assert (model.classes_[probabilities.argmax(axis=1)] == labels).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
        assert model.head_.task == "classes" and model.head_.class_names == texts


@pytest.mark.parametrize("names", [[False, True], [2.0, 10.0], ["b", "a"]])
def test_the_score_of_two_classes_is_over_0_for_the_second(phimapd, blobs, names):
    rows, places = blobs[0][blobs[1] < 2], blobs[1][blobs[1] < 2]
    y = np.array(names)[places]
    with classifier(phimapd) as model:
        scores = model.fit(rows, y).decision_function(rows)
        assert scores.shape == (len(rows),)
        assert (np.where(scores > 0, model.classes_[1], model.classes_[0]) == model.predict(rows)).all()
        assert (model.predict(rows) == y).mean() > 0.9
        order = np.argsort(scores)
        assert (np.diff(model.predict_proba(rows)[order, 1]) >= 0).all()


def test_sets_grow_with_the_confidence_and_hold_most_classes(phimapd, blobs):
    rows, places = blobs
    with classifier(phimapd) as model:
        model.fit(rows, places)
        few, more = model.predict_set(rows, confidence=0.5), model.predict_set(rows, confidence=0.9)
        assert few.shape == more.shape == (400, 3) and more.dtype == bool
        assert (few <= more).all() and few.sum() < more.sum()
        # The rows were trained on for the most part, so this is no test of the guarantee.
        assert more[np.arange(400), places].mean() > 0.8


def test_intervals_and_deviations_are_those_of_the_target(phimapd, curve):
    rows, y = curve
    with regressor(phimapd) as model:
        values = model.fit(rows, y).predict(rows)
        assert model.score(rows, y) > 0.9
        low, high = model.predict_interval(rows, confidence=0.8)
        lower, higher = model.predict_interval(rows, confidence=0.9)
        assert (lower <= low).all() and (low <= values).all() and (values <= high).all() and (high <= higher).all()
        ends = np.array(model.predict_interval(rows, confidence=0.9999))
        assert (ends == [[-np.inf], [np.inf]]).all()  # takes 9,999 calibration rows
        again, deviations = model.predict(rows, return_std=True)
        assert (again == values).all() and deviations.shape == (400,)
        # The deviation of an observation is that of the noise at least, up to the error of its estimate.
        assert 0.05 < np.median(deviations) < 0.5


def test_a_fit_makes_the_same_bits_again_and_a_seed_others(phimapd, blobs):
    with classifier(phimapd) as one, classifier(phimapd) as other, classifier(phimapd, seed=1) as seeded:
        one.fit(*blobs), other.fit(*blobs), seeded.fit(*blobs)
        assert one.digest_ == other.digest_ != seeded.digest_
        assert one.head_.features_digest == other.head_.features_digest


def test_rows_without_weight_are_left_out_and_weights_of_one_change_nothing(phimapd, blobs):
    rows, places = blobs
    weights = np.where(np.arange(400) % 4, 1.0, 0.0)
    with classifier(phimapd) as one, classifier(phimapd) as other:
        one.fit(rows, places, sample_weight=weights)
        other.fit(rows[weights > 0], places[weights > 0])
        assert (one.decision_function(rows) == other.decision_function(rows)).all()
    with classifier(phimapd) as heavy, classifier(phimapd) as light:
        first = (places == 0)
        heavy.fit(rows, places, sample_weight=np.where(first, 100.0, 1.0))
        light.fit(rows, places, sample_weight=np.where(first, 0.01, 1.0))
        assert (heavy.predict(rows) == 0).sum() > (light.predict(rows) == 0).sum()


@pytest.mark.parametrize("weights, message", [
    ([1, 1], r"sample_weight: expected one for each of 400 rows, got an array of shape \(2,\)"),
    (np.where(np.arange(400) == 7, -1, 1), r"sample_weight\[7\]: expected a finite number of at least 0, got -1.0"),
    (np.where(np.arange(400) == 7, np.nan, 1), r"sample_weight\[7\]: expected a finite number of at least 0, got nan"),
    (np.zeros(400), "sample_weight: expected rows with a weight over 0, got none")])
def test_weights_of_no_use_are_refused(phimapd, blobs, weights, message):
    with pytest.raises(ValueError, match=message):
        classifier(phimapd).fit(*blobs, sample_weight=weights)


def test_kernels_that_are_functions_or_matrices_predict_alike(phimapd, blobs):
    rows, places = blobs
    weights = np.where(np.arange(400) % 5, 2.0, 0.0)
    gram = rbf_kernel(rows, gamma=0.25)
    with classifier(phimapd, kernel=lambda x, z: rbf_kernel(x, z, gamma=0.25)) as called, \
            classifier(phimapd, kernel="precomputed") as precomputed:
        called.fit(rows, places, sample_weight=weights), precomputed.fit(gram, places, sample_weight=weights)
        assert (called.components_ == rows[called.component_indices_]).all()
        assert (weights[precomputed.component_indices_] > 0).all()
        # Their kernel values differ in the last bits, and with them the rows that are held out.
        assert called.score(rows, places) > 0.9 and precomputed.score(gram, places) > 0.9
        assert (called.predict(rows) == precomputed.predict(gram)).mean() > 0.95


def test_texts_are_classified(phimapd):
    texts = [f"{'good' if i % 2 else 'bad'} number {i}" for i in range(200)]
    y = np.arange(200) % 2
    with classifier(phimapd, kernel="normalize(spectrum(n=3))") as model:
        assert model.fit(texts, y).score(texts, y) > 0.9


def test_columns_must_be_those_of_fit(phimapd, blobs):
    frame = pd.DataFrame(blobs[0], columns=["a", "b", "c", "d"])
    with classifier(phimapd) as model:
        labels = model.fit(frame, blobs[1]).predict(frame)
        assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"] and (labels == blobs[1]).mean() > 0.9
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["b", "a", "c", "d"]])


def test_pipelines_grids_and_clones_work(phimapd, blobs):
    model = make_pipeline(StandardScaler(), KernelClassifier("f2", landmarks=30, server=phimapd.address))
    search = GridSearchCV(model, {"kernelclassifier__learner": ["ridge(alpha=1)", "logistic(C=1)"],
                                  "kernelclassifier__landmarks": [2, 30]}, cv=2).fit(*blobs)
    assert search.best_score_ > 0.9 and search.best_params_["kernelclassifier__landmarks"] == 30
    assert cross_val_score(clone(regressor(phimapd)), np.linspace(-1, 1, 200)[:, None], np.linspace(0, 1, 200), cv=2).shape == (2,)
    with KernelRegressor("fourier", dimensions=64, gamma=1.0, server=phimapd.address) as fourier:
        x = np.linspace(-1, 1, 300)[:, None]
        assert fourier.fit(x, x[:, 0] ** 2).score(x, x[:, 0] ** 2) > 0.9


def test_a_fitted_model_pickles_and_comes_back_from_its_version(phimapd, client, blobs, curve):
    rows, places = blobs
    name = f"m-{uuid.uuid4().hex}"
    fitted = classifier(phimapd, name=name).fit(rows, places)
    assert fitted.reference_ == f"{name}@2"  # its features are the first
    expected = fitted.predict_proba(rows)
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(rows) == expected).all()
    client.set_alias(f"{name}@2", "prod")
    for kind in (F2Classifier, KernelClassifier):
        back = kind.from_version(f"{name}@prod", server=phimapd.address)
        assert (back.predict_proba(rows) == expected).all() and back.classes_.tolist() == [0, 1, 2]
        assert back.learner == fitted.head_.learner and back.n_features_in_ == 4
    # Its features are those of F2 still.
    assert from_version(f"{name}@prod", server=phimapd.address).transform(rows).shape == (400, 50)
    with pytest.raises(ValueError, match=f"{name}@1 has no head: F2Classifier expects a version whose head answers classes"):
        F2Classifier.from_version(f"{name}@1", server=phimapd.address)
    with pytest.raises(ValueError, match=f"{name}@2 answers classes: F2Regressor expects a version whose head answers numbers"):
        F2Regressor.from_version(f"{name}@2", server=phimapd.address)
    client.delete_alias(name, "prod")
    fitted.delete()
    assert client.list_versions(name) == [] and not hasattr(fitted, "head_") and not hasattr(fitted, "classes_")


def test_a_version_gets_a_head_and_loses_only_what_fit_made(phimapd, client, blobs):
    rows, places = blobs
    name = f"m-{uuid.uuid4().hex}"
    client.build(name, rows, spec="f2(landmarks=40)", kernel="rbf(gamma=0.2)")
    with F2Classifier(version=f"{name}@1", server=phimapd.address) as model:
        assert model.fit(rows, places).score(rows, places) > 0.9
        assert model.reference_.startswith(f"{name}@") and model.reference_ != f"{name}@1"
        assert model.head_.features_digest == client.get_version(f"{name}@1").ref.digest
        trained = client.get_version(model.reference_)
        assert trained.ttl is not None  # a model without a name of its own is not kept
        assert (client.transform(model.reference_, rows) == client.transform(f"{name}@1", rows)).all()
    assert [version.ref.number for version in client.list_versions(name)] == [1]
    # No fit is made of F2 by accident.
    assert F2.from_version(f"{name}@1", server=phimapd.address).transform(rows).shape[0] == 400


def test_rows_that_are_too_few_to_hold_some_out_are_trained_on_with_a_warning(phimapd):
    rows = np.array([[1.0], [1.0], [1.0], [1.0], [2.0], [2.0], [2.0], [2.0]])
    y = np.array(["low"] * 4 + ["high"] * 4)
    with classifier(phimapd) as model:
        with pytest.warns(UserWarning, match="X has 8 rows, too few or too many equal ones"):
            model.fit(rows, y)
        assert (model.predict(rows) == y).all() and model.predict_proba(rows).shape == (8, 2)


def test_errors_name_what_the_caller_wrote(phimapd, blobs, curve):
    rows, places = blobs
    with pytest.raises(ValueError, match="y: expected at least two classes, got one class, 'a'"):
        classifier(phimapd).fit(rows, ["a"] * 400)
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier(phimapd).fit(*curve)
    with pytest.raises(phimap.InvalidArgument) as raised:
        classifier(phimapd, learner="ridge(alpha=x)").fit(rows, places)
    assert raised.value.field in ("learner", "alpha")
    with pytest.raises(phimap.InvalidArgument) as raised:
        regressor(phimapd, learner="logistic(C=1)").fit(*curve)
    assert raised.value.reason == phimap.Reason.LEARNER_NOT_APPLICABLE
    with regressor(phimapd, learner="svr(C=1)") as model, pytest.raises(phimap.FailedPrecondition) as raised:
        model.fit(*curve).predict(curve[0], return_std=True)
    assert raised.value.reason == phimap.Reason.OUTPUT_NOT_AVAILABLE
    for confidence in (0, 1):
        with classifier(phimapd) as model, pytest.raises(ValueError, match=r"confidence: expected a number in \(0, 1\)"):
            model.fit(rows, places).predict_set(rows, confidence=confidence)


def test_pickling_a_model_that_will_be_deleted_warns(phimapd, blobs):
    with classifier(phimapd) as model:
        model.fit(*blobs)
        with pytest.warns(UserWarning, match="the server deletes"):
            pickle.dumps(model)
        model.keep()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pickle.dumps(model)
