"""Estimators whose mappings have landmarks: F1, F2, F3 and kernel PCA."""
from __future__ import annotations

from typing import Any, ClassVar

from phimap._lifetime import Ttl
from phimap.progress import ProgressArgument
from phimap.sklearn._mapping import Mapping


class F1(Mapping):
    """Similarities to landmarks, F1(x) = (K(x, x_1) … K(x, x_d)): for any similarity K. Parameters as of F2."""

    _family = "f1"

    def __init__(self, landmarks: int | None = None, *, n_components: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 serving_type: str | None = None, mapping: str | None = None, version: str | None = None,
                 ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class F2(Mapping):
    """Orthogonal projection of φ(x) onto the span of landmarks, for a positive semidefinite kernel: scikit-learn's Nystroem up
    to a rotation, built and applied by a phimapd.

    Args:
        landmarks: how many rows of X span the features, 100 if it is None; cut to the rows of X, with a warning. Landmarks that
            depend on the others give no feature of their own.
        n_components: the same under scikit-learn's name.
        kernel: "rbf", "laplacian", "poly", "polynomial", "sigmoid", "linear" or "cosine", with the meaning and the defaults
            that they have in scikit-learn. Or the server's text, as "rbf(gamma=scale)", "laplacian() + 0.5*cosine()". Of text
            "normalize(spectrum(n=3))", "jaccard(n=1, unit=word)" and the like: X is then a list of str, or of bytes for
            kernels with unit=byte. Or a function of two matrices of rows, as those of sklearn.metrics.pairwise, or of two
            rows: its values are computed here and sent; the landmarks, and what the certificate says, are of a sample of
            `pool_rows` rows. Or "precomputed": X is the Gram matrix.
        gamma, degree, coef0: of a kernel that is one of scikit-learn's names; None is what it is there, gamma=1/n_features,
            degree=3, coef0=1. gamma may be "scale" (1/(n_features · variance)) or "median".
        standardize: shift and scale each column to mean 0 and variance 1, as measured over X.
        seed: of all random choices, 0 if it is None; the same X, parameters and seed give the same features, bit for bit.
        random_state: the same under scikit-learn's name: an integer, or a RandomState that one is drawn from.
        input_dimensions: evaluate the kernel on so many random sums and differences of the columns; None is on the columns.
        policy: how landmarks are chosen: "uniform" (None), "rpcholesky" by what the rows before leave of K(x, x), or
            "given", the first `landmarks` rows of X, which are then landmarks and nothing else.
        pool_rows: rows of the uniform sample that landmarks are drawn from; None is max(20·landmarks, 20,000), and for a
            kernel that is a function max(4·landmarks, 2,048).
        serving_type: "float32" or "float64", of the features; None is float32 unless that would be inaccurate.
        mapping: its name on the server, to which each `fit` adds a version; None is a fresh name.
        version: of a mapping that is stored, as "letters@prod": `fit` looks it up and builds nothing. The parameters
            above then describe it.
        ttl: how long after its last use the server deletes what `fit` built, in seconds or a timedelta; None is 7 days
            without `mapping`, and never with it.
        server: "HOST:PORT" or "unix:PATH"; None is PHIMAP_SERVER of the environment, or the local server.
        timeout: seconds for each `fit` and each `transform`.
        progress: a function that takes phimap.Progress, or True for a bar on stderr.

    Attributes:
        reference_, digest_: the version, as "letters@3", and the SHA-256 of its artifact.
        kernel_, mapping_text_: what was built, with all defaults written out.
        component_indices_: which rows of X are landmarks, of a kernel that is a function or "precomputed"; components_ are
            the rows themselves, of a function.
        n_features_in_, feature_names_in_: as of any estimator.

    What `fit` made without `mapping` is deleted when nobody has used it for a while (`ttl`), so a grid search leaves nothing
    behind; `keep()` keeps the version of the estimator that is called. `delete()`, or the end of the block if the estimator is
    used as a context manager, deletes it at once.
    """

    _family = "f2"

    def __init__(self, landmarks: int | None = None, *, n_components: int | None = None, kernel: Any = "rbf",
                 gamma: float | str | None = None, degree: int | None = None, coef0: float | None = None,
                 standardize: bool = False, seed: int | None = None, random_state: Any = None,
                 input_dimensions: int | None = None, policy: str | None = None, pool_rows: int | None = None,
                 serving_type: str | None = None, mapping: str | None = None, version: str | None = None,
                 ttl: Ttl | None = None, server: str | None = None, timeout: float | None = None,
                 progress: ProgressArgument = None) -> None:
        self._store(locals())


class F3(Mapping):
    """F2 followed by a random projection to `dimensions`, folded into one matrix. Other parameters as of F2.

    Args:
        landmarks: 200 if it is None.
        dimensions: of the features, at most `landmarks`, and 100 if it is None; cut with them.
        n_components: the same under scikit-learn's name.
        projection: "gaussian", which None is, or what else the server offers.
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
                 mapping: str | None = None, version: str | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]


class KernelPCA(Mapping):
    """Kernel principal components of landmarks: what scikit-learn's KernelPCA is on the landmarks, built and applied by
    a phimapd. Other parameters as of F2.

    Args:
        landmarks: how many rows of X the axes are found from, 500 if it is None; cut to the rows of X, with a warning.
        dimensions: components, at most `landmarks`, and 10 if it is None; cut with them. Those without variance are dropped.
        n_components: the same under scikit-learn's name.
        centred: whether the axes go through the landmarks' mean in φ-space, as scikit-learn's do, or the origin.
        gram_sparsify, quantise: keep one entry in `gram_sparsify` of the Gram matrix, and of each only a sign; faster and smaller,
            and off by what the certificate measures.
        rounding: round weights of unit expansions at this scale; fewer landmarks are left. None is not.
        input_dimensions: evaluate the kernel on so many random sums and differences of the columns. None is on the columns.
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
                 mapping: str | None = None, version: str | None = None, ttl: Ttl | None = None,
                 server: str | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> None:
        self._store(locals())

    def _limits(self, rows: int) -> list[tuple[str, int]]:
        limit = self._landmark_limit(rows)
        return [("landmarks", limit), ("dimensions", limit)]

    def _least_rows(self) -> int:
        return 2 if self.centred else 1  # one row is its own mean: nothing varies
