"""Estimators for scikit-learn whose maps are built and applied in this process, or by a phimapd.

    from phimap.sklearn import F2, F2Classifier

    model = make_pipeline(F2(n_components=500, standardize=True), LinearSVC()).fit(X, y)
    model = F2Classifier(n_components=500, standardize=True).fit(X, y)

Without `server` everything happens in this process, and a fitted estimator can be pickled with its map; `save` writes the
artifact, and `publish` stores it on a server. With `server="HOST:PORT"`, or "env" for that of PHIMAP_SERVER, `fit` builds a
version on that server and `transform` calls it; that of a classifier or a regressor also trains the version's head, and
`predict` calls that. The estimator then has the version's reference and digest but no connection, so it can be pickled, and the
process that loads it must be able to reach the server. A version that was built without a name is deleted after a week without
use: `name=` gives it a name, and `keep()` keeps it.
"""
from __future__ import annotations

from phimap.feature_map import FeatureMap, load
from phimap.sklearn._clients import client_of, is_here
from phimap.sklearn._heads import F2Classifier, F2Regressor, KernelClassifier, KernelRegressor
from phimap.sklearn._kernel_features import KernelFeatures
from phimap.sklearn._landmark_mappings import F1, F2, F3, KernelPCA
from phimap.sklearn._mapping import Mapping
from phimap.sklearn._parameters import parsed
from phimap.sklearn._random_mappings import FourierFeatures, RandomProjection
from phimap.sklearn._served import Stored

__all__ = ["F1", "F2", "F2Classifier", "F2Regressor", "F3", "FourierFeatures", "KernelClassifier", "KernelFeatures", "KernelPCA",
           "KernelRegressor", "RandomProjection", "from_version"]


def from_version(reference: Stored, *, server: str | None = None) -> Mapping:
    """Returns the estimator that applies a stored version: of the mapping's own class if it has
    one, else KernelFeatures. See F2.from_version."""
    if is_here(server):
        reference = reference if isinstance(reference, FeatureMap) else load(reference)
        version = reference.version
    else:
        version = client_of(str(server)).get_version(str(reference))
    kind = Mapping.families.get(parsed(version.spec_text)[0], KernelFeatures)
    return kind.from_version(reference, server=server)
