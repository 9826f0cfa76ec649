"""Client of phimapd: kernels as explicit features, built from a stream and served.

    import phimap

    with phimap.Client() as client:
        version = client.build("letters", rows, spec="f2(landmarks=500)", kernel="rbf(gamma=scale)", standardize=True)
        features = client.transform("letters", rows)
        model = client.train("letters", rows, labels)
        predicted = client.predict(phimap.reference_to(model), rows).labels

`phimap.aio` has the same client for asyncio, `phimap.sklearn` has estimators for scikit-learn, and
`phimap.v1` has the generated messages. Calls return the results of `phimap.results`, which wrap
these messages.
"""
import importlib.metadata

from phimap._access import Tls
from phimap._pins import reference_to
from phimap._rows_mapper import RowsMapper, rows_mapper
from phimap._spec_text import spec_text
from phimap._sweep import SweepPoint, read_sweep, sweep
from phimap.client import Client
from phimap.errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition,
                           Internal, InvalidArgument, NotFound, OutOfRange, PermissionDenied, Reason, ResourceExhausted,
                           Unauthenticated, Unavailable, Unimplemented)
from phimap.progress import Progress, ProgressBar
from phimap.results import (Advice, Alias, AliasDrift, BuildEstimate, BuildJob, Capabilities, Capability, Certificate, Drift, Evaluation,
                            Head, Mapping, Parameter, Prediction, Version, VersionRef)

__version__ = importlib.metadata.version("phimap")

__all__ = [
    "Aborted", "Advice", "Alias", "AliasDrift", "AlreadyExists", "BuildEstimate", "BuildJob", "Cancelled", "Capabilities", "Capability", "Certificate", "Client", "DataLoss",
    "DeadlineExceeded", "Drift", "Error", "Evaluation", "FailedPrecondition", "Head", "Internal", "InvalidArgument", "Mapping",
    "NotFound", "OutOfRange", "Parameter", "PermissionDenied", "Prediction", "Progress", "ProgressBar", "Reason", "ResourceExhausted", "RowsMapper", "Tls",
    "SweepPoint", "Unauthenticated", "Unavailable", "Unimplemented", "Version", "VersionRef", "read_sweep", "reference_to",
    "__version__", "rows_mapper", "spec_text", "sweep",
]
