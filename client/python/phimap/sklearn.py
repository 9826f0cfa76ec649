"""Estimators for scikit-learn whose mapping is built and applied by a phimapd.

    from phimap.sklearn import F2

    with F2(landmarks=500, standardize=True) as f2:
        model = make_pipeline(f2, LinearSVC()).fit(X, y)

`fit` builds a version on the server and `transform` calls it. A fitted estimator holds the version's reference and digest
and nothing of a connection, so it pickles; whoever loads it needs the server, with the version still there.
"""
from __future__ import annotations

import functools
import os
import re
import uuid
import warnings
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from phimap._access import access_key, server_or_default
from phimap._pins import reference_to
from phimap._rows import strings_of
from phimap.client import Client
from phimap.errors import Error, NotFound
from phimap.progress import ProgressArgument
from phimap.v1 import mapping_pb2 as mapping_pb

__all__ = ["F1", "F2", "F3", "FourierFeatures", "KernelPCA", "RandomProjection", "from_version"]

# As "f2(landmarks=500, policy=uniform)".
_MAPPING_TEXT = re.compile(r"(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\w+)=([^,()]+(?:\([^()]*\))?)")

# Parameters that the text names otherwise: scikit-learn takes what has a `sparsify` for a linear model.
_TEXT_NAMES = {"gram_sparsify": "sparsify"}

_Self = TypeVar("_Self", bound="_Mapping")


class _Mapping(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share; F2 describes it."""

    # The mapping's name in its text, and its parameters there.
    _family = ""
    _text_parameters: tuple[str, ...] = ("landmarks", "input_dimensions", "policy", "pool_rows", "serving_type")

    def fit(self: _Self, X: Any, y: Any = None) -> _Self:
        """Builds a version from the rows of X, or from the texts that X is a list of if the kernel is one of strings; with
        the parameter `version`, looks that one up. y is ignored."""
        X = self._validated(X, reset=True)
        rows, columns = (len(X), 0) if isinstance(X, list) else X.shape
        client = _client(self.server)
        if self.version is not None:
            version = client.get_version(self.version)
            if version.input_columns != columns:
                raise ValueError(f"X has {columns} features, but {reference_to(version)} is expecting "
                                 f"{version.input_columns} features as input")
            return self._use(version)
        mapping, fresh = (self.mapping, False) if self.mapping is not None else (self._fresh_name(), True)
        version = client.build(
            mapping, X, spec=self._text(rows), kernel=self.kernel, standardize=self.standardize, seed=self.seed,
            timeout=self.timeout, progress=self.progress)
        self.made_ = (client.server, mapping, None if fresh else version.ref.number)
        return self._use(version)

    def transform(self, X: Any) -> np.ndarray[Any, Any]:
        """The features of X, in the version's serving type. They may be a view of the message that was received: treat
        the array as read-only, or copy it."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return _client(self.server).transform(
            self.reference_, X, expected_digest=self.digest_, timeout=self.timeout, progress=self.progress)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """"f2_0", "f2_1" …; input_features is only checked against what `fit` saw."""
        count = len(super().get_feature_names_out(input_features))
        return np.asarray([f"{self._family}_{i}" for i in range(count)], dtype=object)

    def certificate(self) -> mapping_pb.Certificate:
        """What was measured about the version when it was built."""
        check_is_fitted(self)
        return _client(self.server).get_version(self.reference_).certificate

    def delete(self) -> None:
        """Deletes from the server what `fit` made there, and forgets it: the mapping if its name was a fresh one, else
        the version that was built last. A version that was only looked up stays. Copies of this estimator, pickled or
        not, can transform no longer."""
        made = getattr(self, "made_", None)
        if made is not None:
            server, mapping, number = made
            try:
                if number is None:
                    _client(server).delete_mapping(mapping)
                else:
                    _client(server).delete_version(mapping, number)
            except NotFound:
                pass  # which is what was asked for
        # Not before: a call that failed can be made again.
        for attribute in _FITTED:
            self.__dict__.pop(attribute, None)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.delete()
        except Error as failed:
            # What ended the block says more than that nothing could be deleted after it.
            if error is None:
                raise
            warnings.warn(f"what fit made was not deleted: {failed}", stacklevel=2)

    @classmethod
    def from_version(cls: type[_Self], reference: str, *, server: str | None = None) -> _Self:
        """An estimator that is fitted already: with a stored version, as "letters@3", "letters@prod" or "letters".

        It is the version that the reference means now; an alias that moves later does not change what a model was
        trained on. `fit` (in a Pipeline, or of a clone) looks the reference up again and builds nothing.
        """
        version = _client(server).get_version(reference)
        family, parameters = _parsed(version.mapping_text)
        if family != cls._family:
            raise ValueError(f"{reference_to(version)} is {version.mapping_text}, not {cls._family}(…)"
                             + (f": use {_FAMILIES[family].__name__}" if family in _FAMILIES else ""))
        named = {name: parameters.get(_TEXT_NAMES.get(name, name)) for name in cls._text_parameters}
        known = {name: value for name, value in named.items() if value is not None}
        estimator = cls(**known, kernel=version.kernel_text, standardize=version.standardize, seed=version.seed,
                        version=reference, server=server)
        if version.input_columns > 0:
            estimator.n_features_in_ = version.input_columns
        return estimator._use(version)

    def _use(self: _Self, version: mapping_pb.Version) -> _Self:
        self.reference_ = reference_to(version)
        self.digest_ = version.ref.digest
        self.kernel_ = version.kernel_text
        self.mapping_text_ = version.mapping_text
        self._n_features_out = version.output_columns
        return self

    def _fresh_name(self) -> str:
        """That of the fit before, which built another version of the mapping, or a new one."""
        server, mapping, number = getattr(self, "made_", (None, "", 0))
        if server == server_or_default(self.server) and number is None:
            return str(mapping)
        return f"{self._family.replace('_', '-')}-{uuid.uuid4().hex}"

    def _text(self, rows: int) -> str:
        """The mapping in its text form, within what the rows allow."""
        values = {name: getattr(self, name) for name in self._text_parameters}
        for name, limit in self._limits(rows):
            if isinstance(values[name], (int, np.integer)) and values[name] > limit:
                warnings.warn(f"{name}={values[name]} is more than {type(self).__name__} can have from {rows} rows: "
                              f"{limit} are used", UserWarning, stacklevel=3)
                values[name] = limit
        for name, value in values.items():
            if not (value is None or isinstance(value, (str, int, float, np.number, np.bool_))):
                raise TypeError(f"{name}: expected a number or a name, got {value!r}")
        given = ", ".join(f"{_TEXT_NAMES.get(name, name)}={_word(value)}" for name, value in values.items()
                          if value is not None)
        return f"{self._family}({given})"

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        """Parameters that the rows bound, each with its bound."""
        return [("landmarks", self._landmark_limit(rows))]

    def _landmark_limit(self, rows: int) -> int:
        """Rows that are given as landmarks are nothing else, and the server wants one more."""
        return max(rows - 1, 1) if getattr(self, "policy", None) == "given" else rows

    def _least_rows(self) -> int:
        """Rows that `fit` needs."""
        return 1

    def _validated(self, X: Any, reset: bool) -> Any:
        if (texts := strings_of(X)) is not None:
            # As of scikit-learn's own vectorizers: such an X has no features that were seen.
            for attribute in ("n_features_in_", "feature_names_in_") if reset else ():
                self.__dict__.pop(attribute, None)
            return texts
        # Rows that the server would refuse are refused here, in scikit-learn's own words.
        how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": reset,
               "ensure_min_samples": self._least_rows() if reset else 1}
        if hasattr(self, "_validate_data"):
            return self._validate_data(X, **how)
        from sklearn.utils.validation import validate_data  # what replaced it in scikit-learn 1.6

        return validate_data(self, X, **how)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "reference_")

    # The features are of the version's type, whatever the rows are of.
    def _more_tags(self) -> dict[str, Any]:
        return {"preserves_dtype": []}

    def __sklearn_tags__(self) -> Any:  # the same for scikit-learn 1.6
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.sparse = True
        return tags


# Attributes that `fit` and `from_version` set.
_FITTED = ("made_", "reference_", "digest_", "kernel_", "mapping_text_", "_n_features_out", "n_features_in_",
           "feature_names_in_")


class F1(_Mapping):
    """Similarities to landmarks, F1(x) = (K(x, x_1) … K(x, x_d)): for any similarity K. Parameters as of F2."""

    _family = "f1"

    def __init__(self, landmarks: int = 100, *, kernel: str = "rbf(gamma=scale)", standardize: bool = False,
                 seed: int = 0, input_dimensions: int | None = None, policy: str | None = None,
                 pool_rows: int | None = None, serving_type: str | None = None, mapping: str | None = None,
                 version: str | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self.landmarks = landmarks
        self.input_dimensions = input_dimensions
        self.kernel = kernel
        self.standardize = standardize
        self.seed = seed
        self.policy = policy
        self.pool_rows = pool_rows
        self.serving_type = serving_type
        self.mapping = mapping
        self.version = version
        self.server = server
        self.timeout = timeout
        self.progress = progress


class F2(_Mapping):
    """Orthogonal projection of φ(x) onto the span of landmarks, for a positive semidefinite kernel: what Nystroem
    approximates a kernel by, built and applied by a phimapd.

    Args:
        landmarks: how many rows of X span the features; cut to the rows of X, with a warning. Landmarks that depend on
            the others give no feature of their own.
        kernel: "rbf(gamma=scale)", "poly(degree=2, gamma=1, coef0=1)", "laplacian()", "cosine()", … or sums and products
            of them. Of text "normalize(spectrum(n=3))", "jaccard(n=1, unit=word)" and the like: X is then a list of str,
            or of bytes for kernels with unit=byte.
        standardize: shift and scale each column to mean 0 and variance 1, as measured over X.
        seed: of all random choices; the same X, parameters and seed give the same features, bit for bit.
        input_dimensions: evaluate the kernel on so many random sums and differences of the columns; None is on the columns.
        policy: how landmarks are chosen: "uniform" (None), "rpcholesky" by what the rows before leave of K(x, x), or
            "given", the first `landmarks` rows of X, which are then landmarks and nothing else.
        pool_rows: rows of the uniform sample that landmarks are drawn from; None is max(20·landmarks, 20,000).
        serving_type: "float32" or "float64", of the features; None is float32 unless that would be inaccurate.
        mapping: its name on the server, to which each `fit` adds a version; None is a fresh name.
        version: of a mapping that is stored, as "letters@prod": `fit` looks it up and builds nothing. The parameters
            above then describe it.
        server: "HOST:PORT" or "unix:PATH"; None is PHIMAP_SERVER of the environment, or the local server.
        timeout: seconds for each `fit` and each `transform`.
        progress: a function that takes phimap.Progress, or True for a bar on stderr.

    Attributes:
        reference_, digest_: the version, as "letters@3", and the SHA-256 of its artifact.
        kernel_, mapping_text_: what was built, with all defaults written out.
        n_features_in_, feature_names_in_: as of any estimator.

    What `fit` made on the server stays there, for those who load the pickled model, until `delete()` or the end of the
    block if the estimator is used as a context manager. A grid search clones its estimators and fits each: give it a
    name, and `Client.delete_mapping` removes all of them.
    """

    _family = "f2"

    def __init__(self, landmarks: int = 100, *, kernel: str = "rbf(gamma=scale)", standardize: bool = False,
                 seed: int = 0, input_dimensions: int | None = None, policy: str | None = None,
                 pool_rows: int | None = None, serving_type: str | None = None, mapping: str | None = None,
                 version: str | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self.landmarks = landmarks
        self.input_dimensions = input_dimensions
        self.kernel = kernel
        self.standardize = standardize
        self.seed = seed
        self.policy = policy
        self.pool_rows = pool_rows
        self.serving_type = serving_type
        self.mapping = mapping
        self.version = version
        self.server = server
        self.timeout = timeout
        self.progress = progress


class F3(_Mapping):
    """F2 followed by a random projection to `dimensions`, folded into one matrix. Other parameters as of F2.

    Args:
        dimensions: of the features, at most `landmarks`; cut with them.
        projection: "gaussian", which None is, or what else the server offers.
    """

    _family = "f3"
    _text_parameters = ("landmarks", "dimensions", "projection", "input_dimensions", "policy", "pool_rows",
                        "serving_type")

    def __init__(self, landmarks: int = 200, dimensions: int = 100, *, projection: str | None = None,
                 kernel: str = "rbf(gamma=scale)", standardize: bool = False, seed: int = 0,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 serving_type: str | None = None, mapping: str | None = None, version: str | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self.landmarks = landmarks
        self.dimensions = dimensions
        self.projection = projection
        self.input_dimensions = input_dimensions
        self.kernel = kernel
        self.standardize = standardize
        self.seed = seed
        self.policy = policy
        self.pool_rows = pool_rows
        self.serving_type = serving_type
        self.mapping = mapping
        self.version = version
        self.server = server
        self.timeout = timeout
        self.progress = progress

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]


class FourierFeatures(_Mapping):
    """Random Fourier features of an rbf kernel or a Laplacian: without landmarks, with inner products that are K(x, y) on average.
    What RBFSampler is, built and applied by a phimapd. Other parameters as of F2.

    Args:
        dimensions: of the features; even, unless the form is "phase".
        form: "sincos", which None is: a cosine and a sine of each random frequency; or "phase", RBFSampler's: a cosine
            of each at a random phase, which errs more.
        orthogonal: frequencies that are orthogonal to each other, as many at a time as X has columns; errs less. Of
            an rbf kernel only.
        kernel: "rbf(gamma=scale)", another gamma, "laplacian(gamma=…)", or a positive multiple of one.
        pool_rows: rows that pairs are drawn from for gamma=median.
    """

    _family = "fourier"
    _text_parameters = ("dimensions", "form", "orthogonal", "pool_rows", "serving_type")

    def __init__(self, dimensions: int = 100, *, form: str | None = None, orthogonal: bool = False,
                 kernel: str = "rbf(gamma=scale)", standardize: bool = False, seed: int = 0,
                 pool_rows: int | None = None, serving_type: str | None = None, mapping: str | None = None,
                 version: str | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self.dimensions = dimensions
        self.form = form
        self.orthogonal = orthogonal
        self.kernel = kernel
        self.standardize = standardize
        self.seed = seed
        self.pool_rows = pool_rows
        self.serving_type = serving_type
        self.mapping = mapping
        self.version = version
        self.server = server
        self.timeout = timeout
        self.progress = progress

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        return []


class RandomProjection(_Mapping):
    """A Johnson-Lindenstrauss projection of the rows themselves, which keeps inner products on average. What
    GaussianRandomProjection and SparseRandomProjection are, built and applied by a phimapd. Other parameters as of F2.

    Args:
        dimensions: of the features.
        projection: "gaussian", which None is; "sign", fair coins; "sparse", a third of the entries not zero; or
            "orthonormal" rows, at most as many as X has columns.
        kernel: "linear()", or a positive multiple of it.
    """

    _family = "random_projection"
    _text_parameters = ("dimensions", "projection", "serving_type")

    def __init__(self, dimensions: int = 100, *, projection: str | None = None, kernel: str = "linear()",
                 standardize: bool = False, seed: int = 0, serving_type: str | None = None, mapping: str | None = None,
                 version: str | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self.dimensions = dimensions
        self.projection = projection
        self.kernel = kernel
        self.standardize = standardize
        self.seed = seed
        self.serving_type = serving_type
        self.mapping = mapping
        self.version = version
        self.server = server
        self.timeout = timeout
        self.progress = progress

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        return []


class KernelPCA(_Mapping):
    """Kernel principal components of landmarks: what scikit-learn's KernelPCA is on the landmarks, built and applied by
    a phimapd. Other parameters as of F2.

    Args:
        landmarks: how many rows of X the axes are found from; cut to the rows of X, with a warning.
        dimensions: components, at most `landmarks`; cut with them. Those without variance are dropped.
        centred: whether the axes go through the landmarks' mean in φ-space, as scikit-learn's do, or the origin.
        gram_sparsify, quantise: keep one entry in `gram_sparsify` of the Gram matrix, and of each only a sign; faster and smaller,
            and off by what the certificate measures.
        rounding: round weights of unit expansions at this scale; fewer landmarks are left. None is not.
        input_dimensions: evaluate the kernel on so many random sums and differences of the columns. None is on the columns.
    """

    _family = "kpca"
    _text_parameters = ("landmarks", "dimensions", "centred", "gram_sparsify", "quantise", "rounding", "input_dimensions",
                        "policy", "pool_rows", "serving_type")

    def __init__(self, landmarks: int = 500, dimensions: int = 10, *, centred: bool = True,
                 gram_sparsify: float | None = None, quantise: bool = False, rounding: float | None = None,
                 input_dimensions: int | None = None,
                 kernel: str = "rbf(gamma=scale)", standardize: bool = False, seed: int = 0, policy: str | None = None,
                 pool_rows: int | None = None, serving_type: str | None = None, mapping: str | None = None,
                 version: str | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self.landmarks = landmarks
        self.dimensions = dimensions
        self.centred = centred
        self.gram_sparsify = gram_sparsify
        self.quantise = quantise
        self.rounding = rounding
        self.input_dimensions = input_dimensions
        self.kernel = kernel
        self.standardize = standardize
        self.seed = seed
        self.policy = policy
        self.pool_rows = pool_rows
        self.serving_type = serving_type
        self.mapping = mapping
        self.version = version
        self.server = server
        self.timeout = timeout
        self.progress = progress

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]

    def _least_rows(self) -> int:
        return 2 if self.centred else 1  # one row is its own mean: nothing varies


_FAMILIES: dict[str, type[_Mapping]] = {
    "f1": F1, "f2": F2, "f3": F3, "fourier": FourierFeatures, "kpca": KernelPCA, "random_projection": RandomProjection}


def from_version(reference: str, *, server: str | None = None) -> _Mapping:
    """The estimator, of whichever class it is, that applies a stored version. See F2.from_version."""
    version = _client(server).get_version(reference)
    family = _parsed(version.mapping_text)[0]
    if family not in _FAMILIES:
        raise ValueError(f"{reference_to(version)} is {version.mapping_text}: there are estimators for "
                         f"{', '.join(_FAMILIES)}; phimap.Client.transform applies any mapping")
    return _FAMILIES[family].from_version(reference, server=server)


def _parsed(mapping_text: str) -> tuple[str, dict[str, Any]]:
    """Family and parameters of the canonical text of a mapping."""
    found = _MAPPING_TEXT.fullmatch(mapping_text)
    if not found:
        return mapping_text, {}
    return found[1], {name: _value(word) for name, word in _PARAMETER.findall(found[2])}


def _word(value: Any) -> str:
    """A parameter as the text form has it."""
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def _value(word: str) -> Any:
    """The parameter of a word that _word could have made."""
    if word in ("false", "true"):
        return word == "true"
    if word.isdecimal():
        return int(word)
    try:
        return float(word)
    except ValueError:
        return word


def _client(server: str | None) -> Client:
    target = server_or_default(server)
    return _client_of(os.getpid(), target, access_key(target))


# One for each process, since channels do not survive a fork, and joblib may fork; and for what calls are made with, which
# the environment may say anew: a token or a certificate that was replaced.
@functools.lru_cache(maxsize=16)
def _client_of(process: int, server: str, access: tuple[Any, ...]) -> Client:
    return Client(server)
