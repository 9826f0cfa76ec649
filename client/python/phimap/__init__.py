"""Client of phimapd: kernels as explicit features, built from a stream and served.

    import phimap

    with phimap.Client() as client:
        version = client.build("letters", rows, spec="f2(landmarks=500)", kernel="rbf(gamma=scale)", standardize=True)
        features = client.transform("letters", rows)

`phimap.aio` has the same client for asyncio, `phimap.sklearn` has estimators for scikit-learn, and
`phimap.v1` has the generated messages. Calls return the results of `phimap.results`, which wrap
these messages.
"""
import importlib.metadata

from phimap._access import Tls
from phimap._pins import reference_to
from phimap._rows_mapper import RowsMapper, rows_mapper
from phimap._sweep import SweepPoint, read_sweep, sweep
from phimap.client import Client
from phimap.errors import (Aborted, AlreadyExists, Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition,
                           Internal, InvalidArgument, NotFound, OutOfRange, PermissionDenied, ResourceExhausted,
                           Unauthenticated, Unavailable, Unimplemented)
from phimap.progress import Progress, ProgressBar
from phimap.results import Advice, Alias, AliasDrift, BuildJob, Capabilities, Capability, Certificate, Drift, Evaluation, Mapping, Version
from phimap.v1.mapping_pb2 import MappingSpec, VersionRef

__version__ = importlib.metadata.version("phimap")

__all__ = [
    "Aborted", "Advice", "Alias", "AliasDrift", "AlreadyExists", "BuildJob", "Cancelled", "Capabilities", "Capability", "Certificate", "Client", "DataLoss",
    "DeadlineExceeded", "Drift", "Error", "Evaluation", "FailedPrecondition", "Internal", "InvalidArgument", "Mapping", "MappingSpec",
    "NotFound", "OutOfRange", "PermissionDenied", "Progress", "ProgressBar", "ResourceExhausted", "RowsMapper", "Tls",
    "SweepPoint", "Unauthenticated", "Unavailable", "Unimplemented", "Version", "VersionRef", "read_sweep", "reference_to",
    "__version__", "rows_mapper", "sweep",
]
