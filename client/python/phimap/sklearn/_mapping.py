"""The part that estimators of features share: `transform` by the map that `fit` builds."""
from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from phimap.sklearn._bases import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from phimap.errors import InvalidArgument
from phimap.sklearn._clients import client_of
from phimap.sklearn._parameters import seed_of
from phimap.sklearn._served import Served

_Self = TypeVar("_Self", bound="Mapping")


class Mapping(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Served):
    """The part that estimators of features share; F2 describes it."""

    families: ClassVar[dict[str, type[Mapping]]] = {}
    _for_any_family = "KernelFeatures"

    def fit(self: _Self, X: Any, y: Any = None) -> _Self:
        """Builds a map from the rows of X, or from a list of strings for a kernel of strings.
        If the parameter `version` is set, looks that version up instead. Ignores y."""
        return self._build(self._validated(X, reset=True), seed_of(self.seed, self.random_state))

    def transform(self, X: Any) -> np.ndarray[Any, Any]:
        """Returns the features of X in the map's serving type, as an array that the caller may
        write to.

        The columns of a DataFrame must be those that `fit` saw, in their order, as in
        scikit-learn's own estimators."""
        if (rows := self._ready(X)) is not None:
            try:
                return self._mapped(rows)
            except InvalidArgument:
                pass  # a value that is not finite, which scikit-learn's own check below names in its words
        named = hasattr(X, "columns")
        check_is_fitted(self)
        return self._mapped(self._sent(self._validated(X, reset=False), named))

    def _mapped(self, X: Any) -> np.ndarray[Any, Any]:
        if hasattr(self, "map_"):
            return self.map_.transform(X)
        features = client_of(self.server).transform(
            self.reference_, X, expected_digest=self.digest_, timeout=self.timeout, progress=self.progress)
        # The client returns a read-only view of the message, but a scaler with copy=False may write
        # to the features.
        return features if features.flags.writeable else features.copy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Returns "f2_0", "f2_1" …; `input_features` is only compared with the names that `fit` saw."""
        count = len(super().get_feature_names_out(input_features))
        return np.asarray([f"{self._family_name()}_{i}" for i in range(count)], dtype=object)

    # The features have the map's type, whatever type the rows have.
    def _more_tags(self) -> dict[str, Any]:
        return {"preserves_dtype": []}

    def __sklearn_tags__(self) -> Any:  # the same tags since scikit-learn 1.6
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
