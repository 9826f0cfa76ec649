"""The part that all estimators share: a map that `fit` builds, in this process or as a version on a server, and later
calls use."""
from __future__ import annotations

import datetime
import inspect
import io
import os
import uuid
import warnings
from typing import Any, ClassVar, TypeVar, Union

import numpy as np
from phimap.sklearn._bases import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from phimap import feature_map
from phimap._blocks import is_frame, strings_of
from phimap._columns import check_same
from phimap._files import File
from phimap._lifetime import Ttl
from phimap._pins import by_digest, reference_to
from phimap._spec_text import spec_text
from phimap.errors import Error, NotFound, in_words_of
from phimap.feature_map import FeatureMap
from phimap.results import Certificate, Version
from phimap.sklearn import _kernel_function
from phimap.sklearn._clients import client_of, is_here, target_of
from phimap.sklearn._kernel import is_precomputed, kernel_text
from phimap.sklearn._parameters import given, parsed, seed_of

# Parameters that have another name in the text. scikit-learn mistakes an estimator with an
# attribute `sparsify` for a linear model.
_TEXT_NAMES = {"gram_sparsify": "sparsify"}
# Parameters of a kernel that has one of scikit-learn's names.
_KERNEL_PARAMETERS = ("gamma", "degree", "coef0")
# Seconds that a version which is built without a name lives after its last use.
_DEFAULT_TTL = 7 * 86_400.0

# Types of numbers that are not converted.
_NUMBERS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})

_Self = TypeVar("_Self", bound="Served")
# What from_version takes: a reference on a server, or without a server a map or the path of one.
Stored = Union[str, "os.PathLike[str]", FeatureMap]


class Served(BaseEstimator):
    """The part that the estimators share; F2 describes it."""

    # The parameters of `__init__` that all estimators have, as they were given.
    kernel: Any
    standardize: bool
    seed: int | None
    random_state: Any
    n_components: int | str | None
    version: Any
    name: str | None
    ttl: Any
    server: Any
    timeout: float | None
    progress: Any

    # Column names that `fit` saw, if X was a DataFrame, or the column names of a version.
    feature_names_in_: np.ndarray[Any, Any]
    # The map of an estimator that computes in this process, and the version of one that has a server.
    map_: FeatureMap
    reference_: str
    # What `fit` made: the server, the mapping and the versions; None for all versions of a mapping
    # whose name `fit` made up.
    made_: tuple[str, str, int | tuple[int, ...] | None]
    # The classes of estimators of one kind, by their family, and the name of the class for all other
    # families.
    families: ClassVar[dict[str, type[Any]]] = {}
    _for_any_family: ClassVar[str] = ""

    # The family, and its parameters in the spec's text.
    _family = ""
    _text_parameters: tuple[str, ...] = ("landmarks", "input_dimensions", "policy", "pool_rows", "held_out_rows", "serving_type")
    # The parameter for which n_components is another name, and the values that `fit` uses for
    # parameters that are None.
    _components = "landmarks"
    _defaults: ClassVar[dict[str, Any]] = {"landmarks": 100}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls._family:
            cls.families.setdefault(cls._family, cls)

    def _store(self, parameters: dict[str, Any]) -> None:
        """Sets the parameters of __init__ as they were given: `parameters` is `locals()` of
        __init__."""
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _build(self: _Self, X: Any, seed: Any) -> _Self:
        """Builds a map from validated rows, or looks up the one that the parameter `version`
        says."""
        # Remove attributes of an earlier fit with another kernel, or of another place.
        for attribute in ("components_", "component_indices_", "map_", "reference_", "_seen_columns"):
            self.__dict__.pop(attribute, None)
        rows, columns = (len(X), 0) if isinstance(X, list) else X.shape
        if self.version is not None:
            return self._look_up(columns)
        spec = self._text(rows)
        kernel = kernel_text(self.kernel, {name: getattr(self, name, None) for name in _KERNEL_PARAMETERS}, columns)
        pool = self._pool(rows, seed) if callable(self.kernel) else None
        sent = self._named(X) if pool is None else _gram(self.kernel, _kernel_function.taken(X, pool))
        version = self._build_here(sent, spec, kernel, seed) if is_here(self.server) else self._build_there(sent, spec, kernel, seed)
        if pool is not None or is_precomputed(self.kernel):
            chosen = np.asarray(version.certificate.landmark_rows, dtype=np.intp)
            self.component_indices_ = chosen if pool is None else pool[chosen]
        if pool is not None:
            self.components_ = _kernel_function.taken(X, self.component_indices_)
        return self

    def _build_here(self, sent: Any, spec: str, kernel: str, seed: Any) -> Version:
        for name in ("name", "ttl"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name}={getattr(self, name)!r} is of a version on a server, and without `server` the map stays in "
                                 "this process: give server too, or publish() the fitted estimator")
        try:
            self._use_map(feature_map.build(sent, spec=spec, kernel=kernel, standardize=self.standardize, seed=seed,
                                            timeout=self.timeout, progress=self.progress))
        except Error as error:
            raise in_words_of(error, self._own_names()) from None
        return self.map_.version

    def _build_there(self, sent: Any, spec: str, kernel: str, seed: Any) -> Version:
        client = client_of(self.server)
        name, fresh = (self.name, False) if self.name is not None else (self._fresh_name(), True)
        ttl = self._lifetime()
        try:
            version = client.build(name, sent, spec=spec, kernel=kernel, standardize=self.standardize, seed=seed, ttl=ttl,
                                   timeout=self.timeout, progress=self.progress)
        except Error as error:
            raise in_words_of(error, self._own_names()) from None
        self.made_ = (client.server, name, None if fresh else version.ref.number)
        self.ttl_ = ttl
        self._use(version)
        return version

    def _sent(self, X: Any, named: bool) -> Any:
        """Returns what the map gets of validated rows; `named`: with the column names that `fit` saw."""
        if hasattr(self, "components_"):
            return _kernel_function.blocks(self.kernel, X, self.components_)
        if hasattr(self, "component_indices_"):
            return X[:, self.component_indices_]
        return self._named(X) if named else X

    def certificate(self) -> Certificate:
        """Returns the certificate of the map: measurements that were made when it was built."""
        check_is_fitted(self)
        return self._version().certificate

    def publish(self, name: str, *, server: str | None = None, alias: str | None = None) -> Version:
        """Stores the artifact of the fitted map on a server, as the next version of the mapping `name`, and returns the version,
        whose digest is `digest_`. With `alias`, the alias then points at it. server: see phimap.Client."""
        check_is_fitted(self)
        return self._as_map().publish(name, server=server, alias=alias)

    def save(self, file: File) -> None:
        """Writes the artifact of the fitted map to `file`, a path or an open file; `phimap.load` reads it."""
        check_is_fitted(self)
        self._as_map().save(file)

    def _as_map(self) -> FeatureMap:
        if hasattr(self, "map_"):
            return self.map_
        artifact = io.BytesIO()
        client_of(self.server).export(reference_to(self._version()), artifact)
        return FeatureMap(artifact.getvalue(), kernel=feature_map.given_values)

    def keep(self: _Self) -> _Self:
        """Keeps the version on the server for ever. Otherwise, a version that was built without a
        name is deleted after its time to live without use. A map of this process needs no keeping."""
        check_is_fitted(self)
        if not hasattr(self, "map_"):
            client_of(self.server).keep_version(reference_to(self._version()))
        self.ttl_ = None
        return self

    def delete(self) -> None:
        """Deletes from the server what `fit` built, and forgets it: the mapping if `fit` made up
        its name, else the version that was built last. A version that was only looked up is not
        deleted. Copies of this estimator, pickled or not, can no longer be used."""
        made = getattr(self, "made_", None)
        if made is not None:
            server, name, numbers = made
            try:
                if numbers is None:
                    client_of(server).delete_mapping(name)
                for number in numbers if isinstance(numbers, tuple) else () if numbers is None else (numbers,):
                    client_of(server).delete_version(f"{name}@{number}")
            except NotFound:
                pass  # it is already deleted
        # Only after the calls, so that a failed delete can be retried.
        for attribute in _FITTED:
            self.__dict__.pop(attribute, None)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.delete()
        except Error as failed:
            # The error that ended the block is more important than the failed deletion after it.
            if error is None:
                raise
            warnings.warn(f"the version that fit built was not deleted: {failed}", stacklevel=2)

    def __getstate__(self) -> Any:
        self.__dict__.pop("_seen_columns", None)
        ttl = getattr(self, "ttl_", None)
        if ttl is not None:
            warnings.warn(f"the server deletes {self.reference_} after {_duration(ttl)} without use, and this pickle no longer "
                          f"works then; call keep(), or fit with name=NAME", UserWarning,
                          stacklevel=2)
        return super().__getstate__()

    def __setstate__(self, state: Any) -> None:
        for before, now in _BEFORE_0_2.items():
            if before in state:
                state[now] = state.pop(before)
        super().__setstate__(state)
        # A pickle of an earlier release lacks the parameters that were added later.
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if parameter.kind is not parameter.VAR_KEYWORD:
                self.__dict__.setdefault(name, parameter.default)

    @classmethod
    def from_version(cls: type[_Self], reference: Stored, *, server: str | None = None) -> _Self:
        """Returns an estimator that is already fitted: without `server` with a FeatureMap or that of a file, and otherwise with
        a version that the server has, such as "letters@3", "letters@prod" or "letters".

        The estimator uses the version that the reference means now: an alias that moves later does
        not change what a model was trained on. `fit` (in a Pipeline, or of a clone) looks the
        reference up again and builds nothing.
        """
        here = _map_of(reference) if is_here(server) else None
        version = here.version if here is not None else client_of(str(server)).get_version(str(reference))
        made: Any = cls  # whose own __init__ has these parameters
        estimator = made(**cls._parameters_of(version), **cls._other_parameters_of(version), kernel=version.kernel_text,
                         standardize=version.standardize, seed=version.seed, version=reference, server=server)
        if version.input_columns > 0:
            estimator.n_features_in_ = version.input_columns
        if version.column_names:
            estimator.feature_names_in_ = _names(version)
        return estimator._use_map(here) if here is not None else estimator._use(version)

    @classmethod
    def _other_parameters_of(cls, version: Version) -> dict[str, Any]:
        """Returns parameters of __init__ that are not in the texts of spec and kernel."""
        return {}

    @classmethod
    def _parameters_of(cls, version: Version) -> dict[str, Any]:
        """Returns the parameters of __init__ from the version's text. ValueError if the text is
        that of another family."""
        family, parameters = parsed(version.spec_text)
        if family != cls._family:
            raise ValueError(f"{reference_to(version)} is {version.spec_text}, not {cls._family}(…): use "
                             + (cls.families[family].__name__ if family in cls.families else cls._for_any_family))
        named = {name: parameters.get(_TEXT_NAMES.get(name, name)) for name in cls._text_parameters}
        return {name: value for name, value in named.items() if value is not None}

    def _look_up(self: _Self, columns: int) -> _Self:
        if callable(self.kernel):
            raise ValueError(f"version={self.version!r} and a function as kernel are both set: a version does not contain "
                             "the rows with which the function would have to be called")
        here = _map_of(self.version) if is_here(self.server) else None
        version = here.version if here is not None else client_of(self.server).get_version(self.version)
        if version.input_columns != columns:
            raise ValueError(f"X has {columns} features, but {reference_to(version)} is expecting "
                             f"{version.input_columns} features as input")
        if version.column_names and hasattr(self, "feature_names_in_"):
            check_same(tuple(self.feature_names_in_), version.column_names, reference_to(version))
        self.ttl_ = None
        return self._use_map(here) if here is not None else self._use(version)

    def _version(self) -> Version:
        """Returns the fitted version. If its number is gone or belongs to another version, as after
        an import on another server, finds the version by its digest."""
        if hasattr(self, "map_"):
            return self.map_.version
        client = client_of(self.server)
        try:
            version = client.get_version(self.reference_)
            if version.ref.digest == self.digest_:
                return version
        except NotFound:
            pass
        return client.get_version(by_digest(self.reference_, self.digest_) or self.reference_)

    def _use_map(self: _Self, here: FeatureMap) -> _Self:
        self.map_ = here
        return self._take_facts(here.version)

    def _use(self: _Self, version: Version) -> _Self:
        self.reference_ = reference_to(version)
        return self._take_facts(version)

    def _take_facts(self: _Self, version: Version) -> _Self:
        self.digest_ = version.ref.digest
        self.kernel_ = version.kernel_text
        self.spec_ = version.spec_text
        self._n_features_out = version.output_columns
        return self

    def _lifetime(self) -> Ttl | None:
        """Returns the time to live of what `fit` makes."""
        return _DEFAULT_TTL if self.ttl is None and self.name is None else self.ttl

    def _fresh_name(self) -> str:
        """Returns the name that the previous fit made up, so that this fit adds a version to it, or
        a new name."""
        server, name, number = getattr(self, "made_", (None, "", 0))
        if number is None and server == target_of(self.server):
            return str(name)
        return f"{self._family_name().replace('_', '-')}-{uuid.uuid4().hex}"

    def _family_name(self) -> str:
        return self._family

    def _own_names(self) -> dict[str, str]:
        """Returns the names by which the caller knows parameters that have other names in the text."""
        names = {text: name for name, text in _TEXT_NAMES.items()}
        return names if self.n_components is None else {**names, self._components: "n_components"}

    def _values(self) -> dict[str, Any]:
        """Returns the parameters of the text, with aliases and defaults resolved."""
        values = {name: getattr(self, name) for name in self._text_parameters}
        values[self._components] = given(self._components, values[self._components], "n_components", self.n_components)
        for name, value in self._defaults.items():
            if values[name] is None:
                values[name] = value
        return values

    def _text(self, rows: int) -> str:
        """Returns the text of the spec, limited to what `rows` rows allow."""
        values = self._values()
        for name, limit in self._limits(rows):
            if isinstance(values.get(name), (int, np.integer)) and values[name] > limit:
                said = self._own_names().get(name, name)
                warnings.warn(f"{said}={values[name]} is more than {type(self).__name__} can have from {rows} rows: "
                              f"{limit} are used", UserWarning, stacklevel=4)
                values[name] = limit
        return spec_text(self._family_name(), **{_TEXT_NAMES.get(name, name): value for name, value in values.items()})

    def _pool(self, rows: int, seed: Any) -> np.ndarray[Any, Any]:
        """Returns the indices of the rows whose Gram matrix is sent."""
        values = self._values()
        landmarks = values.get("landmarks")
        # What is not a number is refused by the build, which names the parameter.
        count = int(landmarks) if isinstance(landmarks, (int, np.integer)) else 1
        return _kernel_function.pool_of(rows, min(count, rows), values.get("pool_rows"), seed, values.get("policy") == "given")

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        """Returns the parameters that the number of rows limits, each with its limit."""
        return [("landmarks", self._landmark_limit(rows))]

    def _landmark_limit(self, rows: int) -> int:
        """Returns the maximum number of landmarks. Rows given as landmarks are not used for
        anything else, and a build needs at least one more row."""
        return max(rows - 1, 1) if getattr(self, "policy", None) == "given" else rows

    def _least_rows(self) -> int:
        """Returns the minimum number of rows that `fit` needs."""
        return 1

    def _named(self, X: Any) -> Any:
        """Returns validated rows with the column names that `fit` saw, for the map to keep and
        compare. Returns other rows unchanged."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or not isinstance(X, np.ndarray):
            return X
        import pandas

        return pandas.DataFrame(X, columns=names, copy=False)

    def _ready(self, X: Any) -> np.ndarray[Any, Any] | None:
        """Returns the rows of X if the map may have them as they are: rows of numbers in the form that `fit` saw, but for values
        that are not finite, which the map itself refuses. None if scikit-learn's checks, which take longer than a row, have to
        look."""
        known = self.__dict__
        if not ("map_" in known or "reference_" in known) or "component_indices_" in known:
            return None
        names = known.get("feature_names_in_")
        if type(X) is np.ndarray:
            ready = names is None and X.ndim == 2 and X.dtype in _NUMBERS and X.shape[1] == known.get("n_features_in_")
            return X if ready and len(X) else None
        if names is None or not (is_frame(X) and len(X)):
            return None
        # Frames of one source share their columns, whose names are compared once.
        if X.columns is not known.get("_seen_columns"):
            if not np.array_equal(np.asarray(X.columns, dtype=object), names):
                return None
            self._seen_columns = X.columns
        values = X.to_numpy()
        return values if values.dtype in _NUMBERS else None

    def _validated(self, X: Any, reset: bool) -> Any:
        if (texts := strings_of(X)) is not None:
            # As in scikit-learn's own vectorizers, a list of strings sets neither n_features_in_
            # nor feature_names_in_.
            for attribute in ("n_features_in_", "feature_names_in_") if reset else ():
                self.__dict__.pop(attribute, None)
            return texts
        # Rows that the map would refuse are refused here, with scikit-learn's own messages.
        how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": reset,
               "ensure_min_samples": self._least_rows() if reset else 1}
        if hasattr(self, "_validate_data"):
            return self._validate_data(X, **how)
        from sklearn.utils.validation import validate_data  # replaces _validate_data since scikit-learn 1.6

        return validate_data(self, X, **how)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "digest_")

    # Cross-validation must split a Gram matrix along both axes.
    def _more_tags(self) -> dict[str, Any]:
        return {"pairwise": is_precomputed(self.kernel)}

    def __sklearn_tags__(self) -> Any:  # the same tags since scikit-learn 1.6
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


# Names of attributes in pickles of releases before 0.2.
_BEFORE_0_2 = {"mapping": "name", "mapping_text_": "spec_"}
# Attributes that `fit` and `from_version` set.
_FITTED = ("made_", "ttl_", "map_", "reference_", "digest_", "kernel_", "spec_", "components_", "component_indices_",
           "head_", "classes_", "_n_features_out", "n_features_in_", "feature_names_in_")


def _map_of(stored: Stored) -> FeatureMap:
    return stored if isinstance(stored, FeatureMap) else feature_map.load(stored)


def _names(version: Version) -> np.ndarray[Any, Any]:
    return np.asarray(version.column_names, dtype=object)


def _gram(function: Any, rows: Any) -> np.ndarray[Any, Any]:
    return _kernel_function.values(function, rows, rows)


def _duration(ttl: Ttl) -> str:
    """Returns text such as "7 days"."""
    seconds = ttl.total_seconds() if isinstance(ttl, datetime.timedelta) else ttl
    return f"{seconds / 86_400:g} days" if seconds >= 2 * 86_400 else f"{seconds:g} s"
