"""Estimators for scikit-learn whose mapping is built and applied by a phimapd.

    from phimap.sklearn import F2, F2Classifier

    model = make_pipeline(F2(n_components=500, standardize=True), LinearSVC()).fit(X, y)
    model = F2Classifier(n_components=500, standardize=True).fit(X, y)

`fit` builds a version on the server and `transform` calls it; that of a classifier or a regressor also
trains the version's head, and `predict` calls that. A fitted estimator has the version's
reference and digest but no connection, so it can be pickled. The process that loads it must be able
to reach the server, and the server must still have the version. A version that was built without a
name is deleted after a week without use: `name=` gives it a name, and `keep()` keeps it.
"""
from __future__ import annotations

from phimap.sklearn._clients import client_of
from phimap.sklearn._heads import F2Classifier, F2Regressor, KernelClassifier, KernelRegressor
from phimap.sklearn._kernel_features import KernelFeatures
from phimap.sklearn._landmark_mappings import F1, F2, F3, KernelPCA
from phimap.sklearn._mapping import Mapping
from phimap.sklearn._parameters import parsed
from phimap.sklearn._random_mappings import FourierFeatures, RandomProjection

__all__ = ["F1", "F2", "F2Classifier", "F2Regressor", "F3", "FourierFeatures", "KernelClassifier", "KernelFeatures", "KernelPCA",
           "KernelRegressor", "RandomProjection", "from_version"]


def from_version(reference: str, *, server: str | None = None) -> Mapping:
    """Returns the estimator that applies a stored version: of the mapping's own class if it has
    one, else KernelFeatures. See F2.from_version."""
    version = client_of(server).get_version(reference)
    kind = Mapping.families.get(parsed(version.spec_text)[0], KernelFeatures)
    return kind.from_version(reference, server=server)
