"""The part of estimators on the features of F2 that says how much of a row these features leave out."""
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from phimap.sklearn import _kernel_function
from phimap.sklearn._clients import client_of
from phimap.sklearn._served import Served


class Residuals(Served):
    """Scores of rows by their residuals, ρ(x) = K(x, x) − ‖F(x)‖²."""

    def score_samples(self, X: Any) -> np.ndarray[Any, Any]:
        """Returns −ρ(x) of each row, where ρ(x) = K(x, x) − ‖F(x)‖², from 0 to K(x, x), is the part of the row that lies
        outside the span of the landmarks. As in scikit-learn's detectors of outliers, a lower score means a row that is less
        like those of `fit`.

        A kernel that is a function is called for each row, for K(x, x). A ValueError for kernel="precomputed", whose rows do
        not have K(x, x); FailedPrecondition with `input_dimensions`."""
        named = hasattr(X, "columns")
        check_is_fitted(self)
        return -self._with_residuals(self._with_self_values(self._validated(X, reset=False), named))[1]

    def _with_self_values(self, X: Any, named: bool) -> Any:
        """Returns what the map gets of validated rows to compute their residuals."""
        if hasattr(self, "components_"):
            return _kernel_function.blocks(self.kernel, X, self.components_, self_values=True)
        if hasattr(self, "component_indices_"):
            raise ValueError("kernel='precomputed': rows of X are kernel values with other rows, and a residual needs K(x, x) too")
        return super()._sent(X, named)

    def _with_residuals(self, sent: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        if hasattr(self, "map_"):
            features, residuals = self.map_.transform_with_residuals(sent)
        else:
            features, residuals = client_of(self.server).transform_with_residuals(
                self.reference_, sent, expected_digest=self.digest_, timeout=self.timeout, progress=self.progress)
        # A server's come in the type of the features, and so do those of this process: the same bits.
        return features, residuals.astype(features.dtype, copy=False)
