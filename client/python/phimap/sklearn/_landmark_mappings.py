"""Estimators whose families have landmarks: F1, F2, F3 and kernel PCA."""
from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from phimap._lifetime import Ttl
from phimap.progress import ProgressArgument
from phimap.sklearn._mapping import Mapping
from phimap.sklearn._residuals import Residuals
from phimap.sklearn._served import Stored


class F1(Mapping):
    """Similarities to landmarks, F1(x) = (K(x, x_1) … K(x, x_d)): for any similarity K. See F2 for
    the parameters."""

    _family = "f1"

    def __init__(self, landmarks: int | str | None = None, *, n_components: int | str | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 held_out_rows: int | None = None, serving_type: str | None = None, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class F2(Residuals, Mapping):
    """Orthogonal projection of φ(x) onto the span of landmarks, for a positive semidefinite kernel: scikit-learn's Nystroem up
    to a rotation. The map is built and applied in this process, or with `server` by a phimapd.

    Args:
        landmarks: number of rows of X that are landmarks, which span the features; None means 100.
            Limited to the number of rows of X, with a warning. A landmark that depends on the
            others gives no feature of its own. "auto(residual=0.01)" adds landmarks until ρ(x) is at
            most 0.01·K(x, x) for 95 % of the rows; see score_samples for ρ.
        n_components: scikit-learn's name for `landmarks`.
        kernel: one of four kinds. (1) "rbf", "laplacian", "poly", "polynomial", "sigmoid", "linear",
            "cosine" or "chi2", with their meaning and defaults in scikit-learn. (2) A text of the
            kernels below, such as "rbf(gamma=scale)" or "laplacian() + 0.5*cosine()". (3) A function
            of two matrices of rows, like those of sklearn.metrics.pairwise, or of two rows. Its
            values are computed in this process; the landmarks and the certificate come from a
            sample of `pool_rows` rows. (4) "precomputed": X is the Gram matrix.
        gamma, degree, coef0: parameters of a kernel that has one of scikit-learn's names; None means
            scikit-learn's default: gamma=1/n_features, degree=3, coef0=1. gamma may be "scale"
            (1/(n_features · variance)) or "median".
        standardize: shift and scale each column to mean 0 and variance 1, as measured over X.
        seed: seed of all random choices; None means 0. The same X, parameters and seed give the same
            features, bit for bit.
        random_state: scikit-learn's name for `seed`: an integer, or a RandomState from which a seed
            is drawn.
        input_dimensions: evaluate the kernel on this many random sums and differences of the
            columns; None evaluates the kernel on the columns.
        policy: how landmarks are chosen. "uniform" (the default) draws them uniformly; "rpcholesky"
            draws a row with a probability proportional to the residual of K(x, x) that earlier
            landmarks leave; "d2" takes rows that are far from each other, by the Euclidean distance of
            the scaled columns; "kmeans" takes the centres of k-means clusters by the same distance,
            which are no rows of X; "given" takes the first `landmarks` rows of X, which are then used
            only as landmarks.
        pool_rows: number of rows of the uniform sample from which landmarks are drawn; None means
            max(20·landmarks, 20,000), or, for a kernel that is a function, max(4·landmarks, 2,048).
        held_out_rows: largest number of rows that the certificate is measured on; None means 2,000. The
            landmarks do not depend on it. 128 make `fit` quick: most of its time for a few hundred
            landmarks is the certificate's. Under 136 a map of a kernel that is a function has no
            reference for drift, and under 100 none has.
        serving_type: type of the features, "float32" or "float64"; None means float32 unless that would be inaccurate.
        residual: `transform` appends ρ(x), as a column with the name "residual"; see score_samples.
        version: a map that exists, which `fit` looks up and does not build; the parameters above then
            describe it. A phimap.FeatureMap or the path of one, and with `server` a stored version,
            such as "letters@prod".
        server: None computes in this process. "HOST:PORT" or "unix:PATH" is a phimapd that builds and
            applies the map, and "env" is the one that PHIMAP_SERVER of the environment names.
        name: with `server` the name of the mapping there, to which each `fit` adds a version; None
            means a new name.
        ttl: with `server`, how long after its last use the version that `fit` built is deleted, in
            seconds or a timedelta; None means 7 days without `name`, and never with `name`.
        timeout: seconds for each `fit`, and with `server` for each `transform`.
        progress: a function that takes phimap.Progress, or True for a bar on stderr.

    Kernels of a text, with their parameters:
        Kernels of numbers are linear(columns), poly(degree, gamma, coef0, columns), sigmoid(gamma, coef0, columns),
            rbf(gamma, scales, columns), laplacian(gamma, scales, columns),
            matern(nu, length_scale, scales, columns), rational_quadratic(alpha, length_scale, scales, columns),
            additive_chi2(columns), chi2(gamma, columns), histogram_intersection(columns),
            delta(columns), cosine(columns) and bilinear(matrix, diagonal).
        Kernels of strings are spectrum(n, unit) and jaccard(n, unit). X is then a list of str, or of bytes with
            unit=byte.
        Kernels made of other kernels are K1 + K2, K1 * K2, exp(K), normalize(K) and weight(norm_power, gaussian, constant),
            which is the kernel f(x)·f(y) of a function f.
        phimap.list_capabilities() says what each of them means.

    Attributes:
        digest_: the SHA-256 of the map's artifact.
        map_: the phimap.FeatureMap, without `server`.
        reference_: the version on the server, such as "letters@3", with `server`.
        kernel_, spec_: the kernel and the spec that were built, with all defaults written
            out.
        component_indices_: which rows of X are landmarks, for a kernel that is a function or
            "precomputed". components_ are these rows, for a function.
        n_features_in_, feature_names_in_: as in any estimator.

    Without `server`, a grid search leaves nothing behind. A version that `fit` built on a server
    without `name` is deleted after a time without use (`ttl`; a week). `keep()` keeps the version of this estimator. `delete()`
    deletes it at once, and so does the end of a `with` block in which the estimator is the context
    manager.
    """

    _family = "f2"
    residual: bool

    def __init__(self, landmarks: int | str | None = None, *, n_components: int | str | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 held_out_rows: int | None = None, serving_type: str | None = None, residual: bool = False, name: str | None = None,
                 version: Stored | None = None, ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        names = super().get_feature_names_out(input_features)
        return np.append(names, "residual") if self.residual else names

    def _sent(self, X: Any, named: bool) -> Any:
        return self._with_self_values(X, named) if self.residual else super()._sent(X, named)

    def _mapped(self, X: Any) -> np.ndarray[Any, Any]:
        return np.column_stack(self._with_residuals(X)) if self.residual else super()._mapped(X)


class F3(Mapping):
    """F2 followed by a random projection to `dimensions`, folded into one matrix. See F2 for the
    other parameters.

    Args:
        landmarks: see F2; None means 200.
        dimensions: number of features, at most `landmarks`; None means 100. Limited together with the
            landmarks.
        n_components: scikit-learn's name for `dimensions`.
        projection: entries of the random matrix: "gaussian" (the default), "sign", "sparse" or "orthonormal".
    """

    _family = "f3"
    _text_parameters = ("landmarks", "dimensions", "projection", "input_dimensions", "policy", "pool_rows",
                        "held_out_rows", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"landmarks": 200, "dimensions": 100}

    def __init__(self, landmarks: int | str | None = None, dimensions: int | None = None, *, n_components: int | None = None,
                 projection: str | None = None, kernel: Any = "rbf", gamma: float | str | None = None,
                 degree: int | None = None, coef0: float | None = None, standardize: bool = False,
                 seed: int | None = None, random_state: Any = None, input_dimensions: int | None = None,
                 policy: str | None = None, pool_rows: int | None = None, held_out_rows: int | None = None,
                 serving_type: str | None = None, name: str | None = None, version: Stored | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]


class KernelPCA(Mapping):
    """Kernel principal components of landmarks: scikit-learn's KernelPCA on the landmarks. See F2 for the other parameters.

    Args:
        landmarks: number of rows of X from which the axes are found; None means 500. Limited to the
            number of rows of X, with a warning.
        dimensions: number of components, at most `landmarks`; None means 10. Limited together with the
            landmarks. Components without variance are dropped.
        n_components: scikit-learn's name for `dimensions`.
        centred: whether the axes go through the landmarks' mean in φ-space, as scikit-learn's do, or the origin.
        gram_sparsify, quantise: keep only one in `gram_sparsify` entries of the Gram matrix; keep
            only the sign of each entry. Both make the mapping faster and smaller, with an error
            that the certificate measures.
        rounding: round weights of unit expansions at this scale, which leaves fewer landmarks; None
            does not round.
        input_dimensions: evaluate the kernel on this many random sums and differences of the
            columns. None evaluates the kernel on the columns.
    """

    _family = "kpca"
    centred: bool | None
    _text_parameters = ("landmarks", "dimensions", "centred", "gram_sparsify", "quantise", "rounding", "input_dimensions",
                        "policy", "pool_rows", "held_out_rows", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"landmarks": 500, "dimensions": 10}

    def __init__(self, landmarks: int | None = None, dimensions: int | None = None, *, n_components: int | None = None,
                 centred: bool = True, gram_sparsify: float | None = None, quantise: bool = False,
                 rounding: float | None = None, input_dimensions: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 policy: str | None = None, pool_rows: int | None = None, held_out_rows: int | None = None,
                 serving_type: str | None = None, name: str | None = None, version: Stored | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]

    def _least_rows(self) -> int:
        return 2 if self.centred else 1  # a single row equals its mean, so nothing would vary
