"""Estimators whose families have landmarks: F1, F2, F3 and kernel PCA."""
from __future__ import annotations

from typing import Any, ClassVar

from phimap._lifetime import Ttl
from phimap.progress import ProgressArgument
from phimap.sklearn._mapping import Mapping


class F1(Mapping):
    """Similarities to landmarks, F1(x) = (K(x, x_1) … K(x, x_d)): for any similarity K. See F2 for
    the parameters."""

    _family = "f1"

    def __init__(self, landmarks: int | None = None, *, n_components: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 serving_type: str | None = None, name: str | None = None, version: str | None = None,
                 ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class F2(Mapping):
    """Orthogonal projection of φ(x) onto the span of landmarks, for a positive semidefinite kernel: scikit-learn's Nystroem up
    to a rotation, built and applied by a phimapd.

    Args:
        landmarks: number of rows of X that are landmarks, which span the features; None means 100.
            Limited to the number of rows of X, with a warning. A landmark that depends on the
            others gives no feature of its own.
        n_components: scikit-learn's name for `landmarks`.
        kernel: one of four kinds. (1) "rbf", "laplacian", "poly", "polynomial", "sigmoid", "linear"
            or "cosine", with their meaning and defaults in scikit-learn. (2) The server's text,
            such as "rbf(gamma=scale)" or "laplacian() + 0.5*cosine()". For kernels of text, such as
            "normalize(spectrum(n=3))" or "jaccard(n=1, unit=word)", X is a list of str, or of bytes
            if unit=byte. (3) A function of two matrices of rows, like those of
            sklearn.metrics.pairwise, or of two rows. Its values are computed in this process and
            sent; the landmarks and the certificate come from a sample of `pool_rows` rows. (4)
            "precomputed": X is the Gram matrix.
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
            landmarks leave; "given" takes the first `landmarks` rows of X, which are then used only
            as landmarks.
        pool_rows: number of rows of the uniform sample from which landmarks are drawn; None means
            max(20·landmarks, 20,000), or, for a kernel that is a function max(4·landmarks, 2,048).
        serving_type: type of the features, "float32" or "float64"; None means float32 unless that would be inaccurate.
        name: name of the mapping on the server, to which each `fit` adds a version; None means a
            new name.
        version: a stored version, such as "letters@prod": `fit` looks it up and builds nothing. The
            parameters above then describe that version.
        ttl: how long after its last use the server deletes the version that `fit` built, in seconds
            or a timedelta; None means 7 days without `name`, and never with `name`.
        server: "HOST:PORT" or "unix:PATH"; None means PHIMAP_SERVER of the environment, or the local server.
        timeout: seconds for each `fit` and each `transform`.
        progress: a function that takes phimap.Progress, or True for a bar on stderr.

    Attributes:
        reference_, digest_: the version, such as "letters@3", and the SHA-256 of its artifact.
        kernel_, spec_: the kernel and the spec that were built, with all defaults written
            out.
        component_indices_: which rows of X are landmarks, for a kernel that is a function or
            "precomputed". components_ are these rows, for a function.
        n_features_in_, feature_names_in_: as in any estimator.

    A version that `fit` built without `name` is deleted after a time without use (`ttl`), so a
    grid search leaves nothing behind. `keep()` keeps the version of this estimator. `delete()`
    deletes the version at once. So does the end of a `with` block in which the estimator is the
    context manager.
    """

    _family = "f2"

    def __init__(self, landmarks: int | None = None, *, n_components: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 serving_type: str | None = None, name: str | None = None, version: str | None = None,
                 ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class F3(Mapping):
    """F2 followed by a random projection to `dimensions`, folded into one matrix. See F2 for the
    other parameters.

    Args:
        landmarks: see F2; None means 200.
        dimensions: number of features, at most `landmarks`; None means 100. Limited together with the
            landmarks.
        n_components: scikit-learn's name for `dimensions`.
        projection: "gaussian" (the default), or another one that the server offers.
    """

    _family = "f3"
    _text_parameters = ("landmarks", "dimensions", "projection", "input_dimensions", "policy", "pool_rows",
                        "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"landmarks": 200, "dimensions": 100}

    def __init__(self, landmarks: int | None = None, dimensions: int | None = None, *, n_components: int | None = None,
                 projection: str | None = None, kernel: Any = "rbf", gamma: float | str | None = None,
                 degree: int | None = None, coef0: float | None = None, standardize: bool = False,
                 seed: int | None = None, random_state: Any = None, input_dimensions: int | None = None,
                 policy: str | None = None, pool_rows: int | None = None, serving_type: str | None = None,
                 name: str | None = None, version: str | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]


class KernelPCA(Mapping):
    """Kernel principal components of landmarks: scikit-learn's KernelPCA on the landmarks, built
    and applied by a phimapd. See F2 for the other parameters.

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
    _text_parameters = ("landmarks", "dimensions", "centred", "gram_sparsify", "quantise", "rounding", "input_dimensions",
                        "policy", "pool_rows", "serving_type")
    _components = "dimensions"
    _defaults: ClassVar[dict[str, Any]] = {"landmarks": 500, "dimensions": 10}

    def __init__(self, landmarks: int | None = None, dimensions: int | None = None, *, n_components: int | None = None,
                 centred: bool = True, gram_sparsify: float | None = None, quantise: bool = False,
                 rounding: float | None = None, input_dimensions: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 policy: str | None = None, pool_rows: int | None = None, serving_type: str | None = None,
                 name: str | None = None, version: str | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]

    def _least_rows(self) -> int:
        return 2 if self.centred else 1  # a single row equals its mean, so nothing would vary
