"""Estimators whose mappings are drawn at random, without landmarks: Fourier features and projections."""
from __future__ import annotations

import numbers
from typing import Any, ClassVar

from phimap._lifetime import Ttl
from phimap.progress import ProgressArgument
from phimap.sklearn._mapping import Mapping


class FourierFeatures(Mapping):
    """Random Fourier features of an rbf kernel or a Laplacian: without landmarks, with inner products that are K(x, y) on average.
    What RBFSampler is, built and applied by a phimapd. Other parameters as of F2.

    Args:
        dimensions: of the features, 100 if it is None; even with form="sincos".
        n_components: the same under scikit-learn's name.
        form: "sincos": a cosine and a sine of each random frequency; or "phase", RBFSampler's: a cosine of each at a random
            phase, which errs more. None is "sincos" of an even number of features, and "phase" of an odd one.
        orthogonal: frequencies that are orthogonal to each other, as many at a time as X has columns; errs less. Of
            an rbf kernel only.
        kernel: "rbf", "laplacian", or a text as "rbf(gamma=scale)", "2*laplacian(gamma=0.1)".
        gamma: of a kernel that is a name alone; None is 1/n_features. RBFSampler's default is 1.
        pool_rows: rows that pairs are drawn from for gamma="median".
    """

    _family = "fourier"
    _text_parameters = ("dimensions", "form", "orthogonal", "pool_rows", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"dimensions": 100}

    def __init__(self, dimensions: int | None = None, *, n_components: int | None = None, form: str | None = None,
                 orthogonal: bool = False, kernel: Any = "rbf", gamma: float | str | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 pool_rows: int | None = None, serving_type: str | None = None, mapping: str | None = None,
                 version: str | None = None, ttl: Ttl | None = None, server: str | None = None,
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
    """A Johnson-Lindenstrauss projection of the rows themselves, which keeps inner products on average. What
    GaussianRandomProjection and SparseRandomProjection are, built and applied by a phimapd. Other parameters as of F2.

    Args:
        dimensions: of the features, 100 if it is None.
        n_components: the same under scikit-learn's name.
        projection: "gaussian", which None is; "sign", fair coins; "sparse", a third of the entries not zero; or
            "orthonormal" rows, at most as many as X has columns.
        kernel: "linear", or a positive multiple of it as "2*linear()".
    """

    _family = "random_projection"
    _text_parameters = ("dimensions", "projection", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"dimensions": 100}

    def __init__(self, dimensions: int | None = None, *, n_components: int | None = None, projection: str | None = None,
                 kernel: Any = "linear", standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 serving_type: str | None = None, mapping: str | None = None, version: str | None = None,
                 ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        return []
