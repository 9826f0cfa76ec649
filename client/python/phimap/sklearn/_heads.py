"""Estimators that predict: `fit` builds a map and trains its head, in this process or on a server."""
from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, TypeVar, Union, overload

import numpy as np
import numpy.typing as npt
from phimap.sklearn._bases import ClassifierMixin, RegressorMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from phimap._evaluate import texts_of
from phimap._lifetime import Ttl
from phimap._pins import reference_to
from phimap._predict import class_names
from phimap.errors import Error, Reason, in_words_of
from phimap.progress import ProgressArgument
from phimap.results import Head, Prediction, Version
from phimap.sklearn import _kernel_function
from phimap.sklearn._clients import client_of, target_of
from phimap.sklearn._kernel import is_precomputed
from phimap.sklearn._kernel_features import AnyFamily
from phimap.sklearn._parameters import seed_of
from phimap.sklearn._residuals import Residuals
from phimap.sklearn._served import Served, Stored

# The caller's names of arguments that Client.train names otherwise.
_NAMES = {"labels": "y", "weights": "sample_weight", "examples": "X"}
# What has a tenth of the rows each, or one of them, where these are too few for the training's own choice.
_PARTS_OF_FEW = ("test", "calibrate-link", "calibrate-sets", "validate")

Numbers = npt.NDArray[np.float64]
_Self = TypeVar("_Self", bound="Predictor")
_SelfC = TypeVar("_SelfC", bound="Classifier")
_T = TypeVar("_T")


class Predictor(Served):
    """The part that classifiers and regressors share; F2Classifier describes it."""

    learner: Any

    # Set by `fit`.
    head_: Head
    # As Head.task has it.
    _task: ClassVar[str]

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Builds a map from the rows of X, or looks up the one that the parameter `version` says,
        and trains a head on it. Rows whose weight is 0 are left out."""
        X = self._validated(X, reset=True)
        y = self._target(y)
        check_consistent_length(X, y)
        weights = np.ones(len(y)) if sample_weight is None else _weights_of(sample_weight, len(y))
        kept = np.flatnonzero(weights)
        built = X
        if len(kept) < len(y):
            X, y, weights = _kernel_function.taken(X, kept), y[kept], weights[kept]
            built = X[:, kept] if is_precomputed(self.kernel) else X
        labels = self._labels(y)
        seed = seed_of(self.seed, self.random_state)
        self._build(built, seed)
        if hasattr(self, "component_indices_"):
            self.component_indices_ = kept[self.component_indices_]
        self._train(X, labels, None if sample_weight is None else weights, seed)
        return self

    def _target(self, y: Any) -> npt.NDArray[Any]:
        """Returns the labels as an array. ValueError if they are not labels of this task."""
        raise NotImplementedError

    def _labels(self, y: npt.NDArray[Any]) -> list[str]:
        """Returns the labels as the texts that a training gets."""
        return texts_of(y)

    def _train(self, X: Any, labels: list[str], weights: Numbers | None, seed: int) -> None:
        """Trains the head of the version that was built from these rows, and uses the version that has
        it."""
        ttl = None if hasattr(self, "map_") else self._lifetime()
        parts: list[str] | None = None
        while True:
            try:
                asked: dict[str, Any] = {"learner": self.learner, "task": self._task, "weights": weights, "parts": parts, "seed": seed,
                                         "timeout": self.timeout, "progress": self.progress}
                if hasattr(self, "map_"):
                    self._use_map(self.map_.train(self._sent(X, named=True), labels, **asked))
                    return
                version = client_of(self.server).train(self.reference_, self._sent(X, named=True), labels, ttl=ttl,
                                                       expected_digest=self.digest_, **asked)
                break
            except Error as error:
                if error.reason != Reason.ROWS_TOO_FEW or parts is not None:
                    raise in_words_of(error, _NAMES) from None
            parts = _parts_of_few(len(labels), seed)
            warnings.warn(f"X has {len(labels)} rows, too few or too many equal ones to hold some out by their content: a few are "
                          "held out at random, and probabilities, sets, intervals and the report say little", UserWarning,
                          stacklevel=3)
        server = target_of(self.server)
        # What delete() deletes: the mapping, or these versions. One that was only looked up is not among them.
        if self.version is not None:
            self.made_ = (server, version.ref.name, (version.ref.number,))
        elif isinstance(built := self.made_[2], int):
            self.made_ = (server, version.ref.name, (version.ref.number, built))
        self.ttl_ = ttl
        self._use(version)

    def _predict(self, X: Any, *, scores: bool = False, probabilities: bool = False, confidence: float | None = None,
                 deviations: bool = False) -> Prediction:
        named = hasattr(X, "columns")
        check_is_fitted(self)
        sent = self._sent(self._validated(X, reset=False), named)
        if hasattr(self, "map_"):
            return self.map_.predict(sent, scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations)
        return client_of(self.server).predict(
            self.reference_, sent, scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations,
            expected_digest=self.digest_, timeout=self.timeout, progress=self.progress)

    def _take_facts(self: _Self, version: Version) -> _Self:
        self.head_ = version.head
        return super()._take_facts(version)

    @classmethod
    def from_version(cls: type[_Self], reference: Stored, *, server: str | None = None) -> _Self:
        """Returns an estimator that is already fitted, with a map that has a head; see F2.from_version for `reference`.

        `fit` looks the reference up again, and trains a new head on the features of that map. ValueError if the map has no
        head, or one for the other task.
        """
        estimator = super().from_version(reference, server=server)
        head = estimator.head_
        if head.task != cls._task:
            raise ValueError(f"{reference_to(estimator._version())} {f'answers {head.task}' if head else 'has no head'}: {cls.__name__} expects a "
                             f"version whose head answers {cls._task}")
        return estimator

    @classmethod
    def _other_parameters_of(cls, version: Version) -> dict[str, Any]:
        return {"learner": version.head.learner or None}

    def _least_rows(self) -> int:
        return 2  # one to train on and one to test on

    # Rows without weight are left out, and the others make the same bits. The check also shuffles
    # the rows, whose order decides the order of landmarks, and with it rounding.
    def _more_tags(self) -> dict[str, Any]:
        return {"_xfail_checks": {"check_sample_weights_invariance": "another order of the rows is another rounding"}}


class Classifier(ClassifierMixin, Predictor):
    """The part that classifiers share; F2Classifier describes it."""

    classes_: npt.NDArray[Any]
    families: ClassVar[dict[str, type[Classifier]]] = {}
    _for_any_family = "KernelClassifier"
    _task = "classes"

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Returns the class of each row: the likeliest, as scikit-learn expects it. Client.predict's is
        the one of the highest score. With two classes, the two may differ for rows near 0.5,
        because probabilities are calibrated on other rows than the scores were fitted to."""
        if self._decides_by_probability():
            return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]
        return self.classes_[np.argsort(self._places())[self._predict(X).indices]]

    def decision_function(self, X: Any) -> Numbers:
        """Returns scores, of which the highest is that of the answer; with two classes, the logarithm
        of the odds of the second, which is over 0 if that is the answer."""
        if self._decides_by_probability():
            logarithms = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).smallest_subnormal))
            return logarithms[:, 1] - logarithms[:, 0]
        scores, places = _given(self._predict(X, scores=True).scores), self._places()
        if len(places) == 2:
            return scores[:, 0] * (1 if places[1] == 1 else -1)
        return scores[:, places]

    def predict_proba(self, X: Any) -> Numbers:
        """Returns the probability of each class, calibrated on rows that the head was not fitted on."""
        return _given(self._predict(X, probabilities=True).probabilities)[:, self._places()]

    def predict_set(self, X: Any, confidence: float = 0.9) -> npt.NDArray[np.bool_]:
        """Returns which classes are in the set of each row, rows × classes_. A set holds the row's
        class with at least this probability if the row and those that calibrated the head are
        exchangeable; it may have no class, or all of them."""
        return _given(self._predict(X, confidence=confidence).sets)[:, self._places()]

    def _target(self, y: Any) -> npt.NDArray[Any]:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return y

    def _labels(self, y: npt.NDArray[Any]) -> list[str]:
        self.classes_, indices = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y: expected at least two classes, got one class, {self.classes_[0]!r}")
        names = np.array(texts_of(self.classes_), dtype=object)
        return names[indices].tolist()

    def _decides_by_probability(self) -> bool:
        check_is_fitted(self)
        return len(self.classes_) == 2 and self.head_.has_probabilities

    def _places(self) -> npt.NDArray[np.intp]:
        """Returns the place of each class of classes_ among those of the head, which sorts texts."""
        places = {name: place for place, name in enumerate(self.head_.message.class_names)}
        return np.array([places[name] for name in texts_of(self.classes_)])

    @classmethod
    def from_version(cls: type[_SelfC], reference: Stored, *, server: str | None = None) -> _SelfC:
        estimator = super().from_version(reference, server=server)
        estimator.classes_ = _given(class_names(estimator.head_.class_names))
        return estimator


class Regressor(RegressorMixin, Predictor):
    """The part that regressors share; F2Regressor describes it."""

    families: ClassVar[dict[str, type[Regressor]]] = {}
    _for_any_family = "KernelRegressor"
    _task = "numbers"

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Numbers: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Numbers, Numbers]: ...

    def predict(self, X: Any, return_std: bool = False) -> Union[Numbers, tuple[Numbers, Numbers]]:
        """Returns a number for each row, and with `return_std` the standard deviation of an observation
        of the target at that row, which ridge on F2 has."""
        prediction = self._predict(X, deviations=return_std)
        values = _given(prediction.values)
        return (values, _given(prediction.deviations)) if return_std else values

    def predict_interval(self, X: Any, confidence: float = 0.9) -> tuple[Numbers, Numbers]:
        """Returns the low and the high ends of an interval for each row. It holds the target with at
        least this probability if the row and those that calibrated the head are exchangeable; ends
        are infinite if too few rows calibrated the head for this confidence."""
        intervals = _given(self._predict(X, confidence=confidence).intervals)
        return intervals[:, 0], intervals[:, 1]

    def _target(self, y: Any) -> npt.NDArray[Any]:
        y = column_or_1d(y, warn=True).astype(np.float64)
        assert_all_finite(y)
        return y


class F2Classifier(Residuals, Classifier):
    """Classes by a linear learner on the features of F2: the kernel machine of scikit-learn's
    make_pipeline(Nystroem(), …), with calibrated probabilities and sets. One map has the features and
    the learner. It is built, trained and applied in this process, or with `server` by a phimapd.

    Args:
        learner: the learner's text, such as "logistic(C=1)", "linear_svm(C=1)" or
            "ridge(alpha=0.1)"; None means ridge, whose alpha the validation rows choose.
            `phimap.list_capabilities()` lists learners.
        seed, random_state: see F2; also the seed of the parts and of the learner.
        version: see F2; `fit` trains on its features and builds none.
        name: see F2; each `fit` adds a version with features and one with the head too.
        ttl: see F2; also of what `fit` adds to the mapping of `version`.

    See F2 for the other parameters, `keep` and `delete`.

    Attributes:
        classes_: the classes in y, sorted.
        head_: the head, phimap.Head; `head_.report` says how well it answers, by rows that
            nothing else has seen.
        digest_, map_, reference_, kernel_, spec_, component_indices_, components_, n_features_in_,
            feature_names_in_: see F2; of the map that has the head.

    A part of the rows is held out, to choose alpha, to calibrate, and to test. Landmarks and
    scaling are those of all rows, without their labels.
    """

    _family = "f2"

    def __init__(self, landmarks: int | str | None = None, *, learner: str | None = None, n_components: int | str | None = None,
                 kernel: Any = "rbf", gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 held_out_rows: int | None = None, serving_type: str | None = None, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class F2Regressor(Residuals, Regressor):
    """Numbers by ridge regression, or by another linear learner, on the features of F2: an approximate
    Gaussian process, with intervals and standard deviations.

    Args:
        learner: the learner's text, such as "ridge(alpha=0.1)" or "svr(C=1, epsilon=0.1)"; None
            means ridge, whose alpha the validation rows choose.

    See F2Classifier for the other parameters and the attributes.
    """

    _family = "f2"

    def __init__(self, landmarks: int | str | None = None, *, learner: str | None = None, n_components: int | str | None = None,
                 kernel: Any = "rbf", gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 held_out_rows: int | None = None, serving_type: str | None = None, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class KernelClassifier(AnyFamily, Classifier):
    """Classes by a linear learner on features of any family. See
    KernelFeatures for the family and its parameters, and F2Classifier for the others."""

    def __init__(self, spec: str = "f2(landmarks=100)", *, learner: str | None = None, n_components: int | None = None,
                 kernel: Any = "rbf", gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None, **parameters: Any) -> None:
        self._store(locals())


class KernelRegressor(AnyFamily, Regressor):
    """Numbers by a linear learner on features of any family. See
    KernelFeatures for the family and its parameters, and F2Regressor for the others."""

    def __init__(self, spec: str = "f2(landmarks=100)", *, learner: str | None = None, n_components: int | None = None,
                 kernel: Any = "rbf", gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None, **parameters: Any) -> None:
        self._store(locals())


def _weights_of(sample_weight: Any, rows: int) -> Numbers:
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight: expected one for each of {rows} rows, got an array of shape {weights.shape}")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"sample_weight[{row}]: expected a finite number of at least 0, got {weights[row]}")
    if not weights.any():
        raise ValueError("sample_weight: expected rows with a weight over 0, got none")
    return weights


def _parts_of_few(rows: int, seed: int) -> list[str]:
    """Returns a part of each row, drawn by the seed: one row at least for each of the parts that are
    needed most, as far as half of the rows go."""
    each = max(rows // 10, 1)
    held = [part for part in _PARTS_OF_FEW for _ in range(each)][:max(rows // 2, 1)]
    order = np.random.default_rng(seed).permutation(rows)
    parts = ["train"] * rows
    for row, part in zip(order, held):
        parts[row] = part
    return parts


def _given(answer: _T | None) -> _T:
    """Returns what was asked for, which a Prediction then has."""
    assert answer is not None
    return answer
