"""Kernels as explicit features, in this process or served by a phimapd, with the same bytes and bits in both.

    import phimap

    letters = phimap.train(rows, labels, spec="f2(landmarks=500)", kernel="rbf(gamma=scale)", standardize=True)
    features = letters.transform(rows)
    predicted = letters.predict(rows).labels
    letters.save("letters.phimap")                     # phimap.load("letters.phimap")
    letters.publish("letters", server="HOST:7450")

    with phimap.Client("HOST:7450") as client:         # the same calls, by a server
        features = client.transform("letters", rows)

`phimap.aio` has the client for asyncio, `phimap.sklearn` has estimators for scikit-learn, and
`phimap.v1` has the generated messages. Calls return the results of `phimap.results`, which wrap
these messages.
"""
import importlib.metadata

from phimap._access import Tls
from phimap._pins import reference_to
from phimap._pull import FollowedMap, follow, pull
from phimap._rows_mapper import RowsMapper, rows_mapper
from phimap._spec_text import spec_text
from phimap._sweep import SweepPoint, read_sweep, sweep
from phimap.client import Client
from phimap.errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition,
                           Internal, InvalidArgument, NotFound, OutOfRange, PermissionDenied, Reason, ResourceExhausted,
                           Unauthenticated, Unavailable, Unimplemented)
from phimap.feature_map import FeatureMap, build, list_capabilities, load, train, tune
from phimap.progress import Progress, ProgressBar
from phimap.results import (Advice, Alias, AliasDrift, AuditEntry, BuildEstimate, BuildJob, Capabilities, Capability, Certificate, Drift, Evaluation,
                            Head, Mapping, Parameter, Prediction, Version, VersionRef)

__version__ = importlib.metadata.version("phimap")

__all__ = [
    "__version__", "Aborted", "Advice", "Alias", "AliasDrift", "AlreadyExists", "AuditEntry", "build", "BuildEstimate", "BuildJob",
    "Cancelled", "Capabilities", "Capability", "Certificate", "Client", "DataLoss", "DeadlineExceeded", "Drift", "Error",
    "Evaluation", "FailedPrecondition", "FeatureMap", "follow", "FollowedMap", "Head", "Internal", "InvalidArgument",
    "list_capabilities", "load", "Mapping", "NotFound", "OutOfRange", "Parameter", "PermissionDenied", "Prediction",
    "Progress", "ProgressBar", "pull", "read_sweep", "Reason", "reference_to", "ResourceExhausted", "rows_mapper",
    "RowsMapper", "spec_text", "sweep", "SweepPoint", "Tls", "train", "tune", "Unauthenticated", "Unavailable",
    "Unimplemented", "Version", "VersionRef",
]
