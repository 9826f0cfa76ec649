"""Estimators whose mappings are drawn at random, without landmarks: Fourier features and projections."""
from __future__ import annotations

import numbers
from typing import Any, ClassVar

from phimap._lifetime import Ttl
from phimap.progress import ProgressArgument
from phimap.sklearn._mapping import Mapping
from phimap.sklearn._served import Stored


class FourierFeatures(Mapping):
    """Random Fourier features of an rbf or a Laplacian kernel. They need no landmarks, and their
    inner products are K(x, y) on average. Replaces RBFSampler. See F2 for the other parameters.

    Args:
        dimensions: number of features; None means 100. Must be even with form="sincos".
        n_components: scikit-learn's name for `dimensions`.
        form: "sincos", a cosine and a sine of each random frequency; or "phase", as in RBFSampler:
            a cosine of each frequency at a random phase, which has a larger error. None means
            "sincos" for an even number of features, and "phase" for an odd one.
        orthogonal: draw frequencies that are orthogonal to each other, in groups whose size is the
            number of columns of X. For an rbf kernel this lowers the variance for rows near each
            other; for rows far apart it can be a little larger. Only for rbf and matern.
        kernel: "rbf", "laplacian", or a text such as "rbf(gamma=scale)", "2*laplacian(gamma=0.1)".
        gamma: parameter of a kernel that is only a name; None means 1/n_features. RBFSampler's default
            is 1.
        pool_rows: number of rows from which pairs are drawn for gamma="median".
    """

    _family = "fourier"
    _text_parameters = ("dimensions", "form", "orthogonal", "pool_rows", "held_out_rows", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"dimensions": 100}

    def __init__(self, dimensions: int | None = None, *, n_components: int | None = None, form: str | None = None,
                 orthogonal: bool = False, kernel: Any = "rbf", gamma: float | str | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 pool_rows: int | None = None, held_out_rows: int | None = None, serving_type: str | None = None,
                 name: str | None = None, version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None,
                 timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _values(self) -> dict[str, Any]:
        values = super()._values()
        if values["form"] is None and isinstance(values["dimensions"], numbers.Integral) and values["dimensions"] % 2:
            values["form"] = "phase"
        return values

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        return []


class RandomProjection(Mapping):
    """A Johnson-Lindenstrauss projection of the rows themselves, which keeps inner products on
    average. Replaces GaussianRandomProjection and SparseRandomProjection. See F2 for the other
    parameters.

    Args:
        dimensions: number of features; None means 100.
        n_components: scikit-learn's name for `dimensions`.
        projection: "gaussian" (the default); "sign", random signs; "sparse", with a third of the
            entries nonzero; or "orthonormal" rows, at most as many as X has columns.
        kernel: "linear", or a positive multiple of it, such as "2*linear()".
    """

    _family = "random_projection"
    _text_parameters = ("dimensions", "projection", "held_out_rows", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"dimensions": 100}

    def __init__(self, dimensions: int | None = None, *, n_components: int | None = None, projection: str | None = None,
                 kernel: Any = "linear", standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 held_out_rows: int | None = None, serving_type: str | None = None, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        return []
