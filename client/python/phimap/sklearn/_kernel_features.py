"""Estimators of any family: their parameters, and the one of features."""
from __future__ import annotations

import difflib
from typing import Any, TypeVar

from phimap._lifetime import Ttl
from phimap.feature_map import list_capabilities
from phimap.progress import ProgressArgument
from phimap.results import Version
from phimap.sklearn._clients import client_of, is_here
from phimap.sklearn._mapping import Mapping
from phimap.sklearn._parameters import is_well_formed, parsed
from phimap.sklearn._served import Served, Stored

_Self = TypeVar("_Self", bound="AnyFamily")


class AnyFamily(Served):
    """Parameters of an estimator that are those of a family, by their names in a spec. See
    KernelFeatures."""

    spec: str
    n_components: int | None
    server: str | None

    def _store(self, parameters: dict[str, Any]) -> None:
        super()._store({name: value for name, value in parameters.items() if name != "parameters"})
        self._set_own(parameters["parameters"])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns all parameters by name, including those of the family that were set."""
        return dict(super().get_params(deep)) | self._own()

    def set_params(self: _Self, **params: Any) -> _Self:
        """Sets parameters by name; a name that is not a parameter of this class is one of the
        family's."""
        known = self._get_param_names()
        super().set_params(**{name: value for name, value in params.items() if name in known})
        self._set_own({name: value for name, value in params.items() if name not in known})
        return self

    def _set_own(self, parameters: dict[str, Any]) -> None:
        for name, value in parameters.items():
            if name.startswith("_") or name.endswith("_") or hasattr(type(self), name):
                raise ValueError(f"{name!r} cannot be a parameter of a family")
            setattr(self, name, value)

    def _own(self) -> dict[str, Any]:
        """Returns the family's parameters that were set, even to None. Fitted attributes are not
        parameters: they end with an underscore, as in all estimators of scikit-learn."""
        known = self._get_param_names()
        return {name: value for name, value in vars(self).items()
                if name not in known and not name.startswith("_") and not name.endswith("_")}

    def _family_name(self) -> str:
        return parsed(self.spec)[0]

    def _values(self) -> dict[str, Any]:
        if not isinstance(self.spec, str) or not is_well_formed(self.spec):
            raise ValueError(f"spec: expected a family such as 'fourier', or FAMILY(PARAMETER=VALUE, …), got {self.spec!r}")
        name, values = parsed(self.spec)
        own = {key: value for key, value in self._own().items() if value is not None}
        names = self._parameter_names(name)
        if self.n_components is not None:
            size = _size_of(names)
            if size in own:
                raise ValueError(f"{size}={own[size]!r} and n_components={self.n_components!r} are the same parameter: set "
                                 "one of them")
            own[size] = self.n_components
            values.pop(size, None)
        for key, value in own.items():
            if key in values:
                raise ValueError(f"{key} is set twice: in spec={self.spec!r} and as {value!r}")
            if key not in names:
                raise ValueError(f"{name} has no parameter {key!r}{_meant(key, names)}; it has {', '.join(names)}")
        return values | own

    def _parameter_names(self, family: str) -> list[str]:
        """Returns the names of the parameters of a family. ValueError if there is no such family in this process, or on the
        server."""
        listed = list_capabilities() if is_here(self.server) else client_of(str(self.server)).list_capabilities()
        offered = {one.name: one for one in listed.families}
        if family not in offered:
            raise ValueError(f"spec: there is no family {family!r}{_meant(family, list(offered))}; it has "
                             f"{', '.join(offered)}")
        return [parameter.name for parameter in offered[family].parameters]

    def _own_names(self) -> dict[str, str]:
        return {} if self.n_components is None else {_size_of(self._parameter_names(self._family_name())): "n_components"}

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        values = parsed(self.spec)[1] | self._own()
        limit = max(rows - 1, 1) if values.get("policy") == "given" else rows
        has_landmarks = "landmarks" in self._parameter_names(self._family_name())
        return [("landmarks", limit), ("dimensions", limit)] if has_landmarks else []

    @classmethod
    def _parameters_of(cls, version: Version) -> dict[str, Any]:
        return {"spec": version.spec_text}


class KernelFeatures(AnyFamily, Mapping):
    """Features of any family of this process, or with `server` any that the server has, even one that is newer than this
    package. `phimap.list_capabilities()` and `Client.list_capabilities()` list the families and their parameters. See F2 for
    the other parameters.

    Args:
        spec: the family, or its text with parameters: "fourier", "fourier(dimensions=512)".
        n_components: scikit-learn's name for the number of features: the family's `dimensions` or,
            if it has none, its `landmarks`. Replaces the number in `spec`.
        parameters: parameters of the family, by their names in a spec, such as dimensions=512; None
            means the default. Grids search over them, and `set_params` may set ones that were not
            given here. `fit` raises ValueError for a name that is not a parameter of the
            family.

    The number of landmarks, and the dimensions of a family with landmarks, are limited to the
    number of rows of X, with a warning.
    """

    def __init__(self, spec: str = "f2(landmarks=100)", *, n_components: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 name: str | None = None, version: Stored | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None,
                 **parameters: Any) -> None:
        self._store(locals())


def _size_of(names: list[str]) -> str:
    """Returns the parameter that n_components stands for."""
    return "dimensions" if "dimensions" in names else "landmarks"


def _meant(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
