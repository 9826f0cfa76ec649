"""The synchronous client."""
from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from phimap import _calls, _files, progress as _progress
from phimap._access import Tls
from phimap._artifact import ImportRequests, Receiver
from phimap._build import BuildSession, Spec
from phimap._connection import Connection
from phimap._evaluate import EvaluationSession, spec_of, texts_of
from phimap._files import File
from phimap._pins import reference_to
from phimap._retry import BUILD, Deadline
from phimap._rows import source_of
from phimap._lifetime import Ttl, alias_request, ttl_message
from phimap._transform import DEFAULT_WINDOW, Target, check_stream_options, pinned_meanwhile
from phimap._version_query import VersionQuery
from phimap.errors import NotFound
from phimap.progress import ProgressArgument
from phimap.results import Advice, Alias, BuildJob, Capabilities, Drift, Evaluation, Mapping, Version, result_of
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

Features = np.ndarray[Any, np.dtype[Any]]


class Client:
    """A client of one phimapd.

    Rows are numpy arrays (or whatever numpy can convert to one), pandas DataFrames, Arrow tables,
    scipy.sparse matrices, or iterators of blocks of these. float32 and float64 are sent unchanged;
    float16 becomes float32, and other numbers float64. For kernels of strings, rows are lists (or
    one-dimensional arrays, or Series) of str or of bytes, one example each. Features are returned
    as numpy arrays in the version's serving type.

    A bare name ("letters") is pinned: as long as the client lives, it means the version that it
    meant first. "letters@3" is version 3, "letters@sha256:0123456…" is the version whose artifact
    has this digest (at least 7 digits), and "letters@prod" is the version that the alias points at
    when the call is made. If the number of a pinned version is gone or belongs to another version,
    the version is requested by its digest.

    Errors are `phimap.Error`. A call that is interrupted (Ctrl-C) is cancelled on the server too.

    Thread-safe. Not for use after a fork: a client that is used in another process than its own
    raises RuntimeError. Make a client in each process, or send one there: clients can be pickled.

    Args:
        server: "HOST:PORT" or "unix:PATH"; None means PHIMAP_SERVER of the environment, or
            127.0.0.1:7450. Several servers with the same versions are given as
            "ipv4:ADDRESS:PORT,ADDRESS:PORT", "ipv6:…" or "dns:///HOST:PORT", and take the calls in
            turn. Proxy settings of the environment are ignored.
        channels: number of connections, 1..64. One connection keeps about one core busy at each
            end. With more, many threads that call `transform` can use more cores.
        service_config: deadlines and retries of all calls, as a gRPC service config (JSON text or a
            dictionary). None means service_config.json of this package. A call that changes
            something carries an id, so that the store makes the change once, however often it is
            sent.
        tls: TLS settings; None reads PHIMAP_TLS_CA and related variables from the environment.
            Without these, the connection is not encrypted.
        token: authenticates the client, sent with each call; None means PHIMAP_TOKEN of the
            environment. Refused unless the connection uses TLS or stays on this machine.
        options: further gRPC channel arguments.
    """

    def __init__(self, server: str | None = None, *, channels: int = 1,
                 service_config: str | dict[str, Any] | None = None,
                 tls: Tls | None = None, token: str | None = None, options: Sequence[tuple[str, Any]] = ()) -> None:
        self._arguments = {"channels": channels, "service_config": service_config, "tls": tls, "token": token,
                           "options": options}
        self._connection = Connection(server, channels, service_config, tls, token, options)
        self._pins = self._connection.pins

    @property
    def server(self) -> str:
        return self._connection.server

    def __repr__(self) -> str:
        return f"phimap.Client({self.server!r})"

    def close(self) -> None:
        """Closes all connections and ends the calls on them. Later calls raise RuntimeError."""
        self._connection.close()

    def __reduce__(self) -> Any:
        """Pickles the constructor's arguments and the pins. The copy makes its own connections. A
        token that a function gives is left out: the copy reads its token from the environment of
        its process."""
        arguments = dict(self._arguments)
        if callable(arguments["token"]):
            arguments["token"] = None
        return _revived, (self.server, arguments, self.pinned)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Building.

    def build(self, mapping: str, rows: Any, *, spec: str | mapping_pb.MappingSpec, kernel: str | None = None,
              standardize: bool = False, seed: int = 0, build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None,
              timeout: float | None = None, progress: ProgressArgument = None) -> Version:
        """Builds a version of `mapping` from unlabeled rows and returns it with its certificate.

        The rows are streamed, in bounded memory on both sides. If the connection breaks once the
        server has all rows, the build continues. Before that, the rows are sent again, unless they
        come from an iterator.

        Args:
            mapping: the name of the mapping, [a-z]([a-z0-9-]{0,61}[a-z0-9])?; it is created by its first version.
            rows: see the class. The column names of a DataFrame or an Arrow table are stored with
                the version.
            spec: the mapping's text, such as "f2(landmarks=500)".
            kernel: the kernel's text, such as "rbf(gamma=scale)" or "poly(degree=2, gamma=1, coef0=1)". None means
                rbf(gamma=scale), or linear() for the mappings that take no other kernel
                (random_projection, multiclass, polynomial).
            standardize: shift and scale each column to mean 0 and variance 1, as measured over the rows.
            seed: the same rows, spec and seed give the same version, byte for byte.
            build_id: a UUID; None draws one. If the server knows a build with this id,
                follows that build instead of building again.
            ttl: how long the version lives after its last use (a transform, an alias, `keep`), as a
                timedelta or seconds, at least a minute; None means for ever.
            timeout: seconds for the whole build. A build that has all its rows continues on the
                server.
            progress: a function that takes `Progress`, or True for a bar on stderr.
        """
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        deadline = Deadline(timeout)
        with _progress.observing(progress) as observer:
            wanted = Spec.of(mapping, spec, kernel, standardize, seed, build_id, ttl)
            session = BuildSession(wanted.of_columns(source.names()),
                                   connection.config.retries(BUILD, deadline), observer,
                                   source.row_count)
            return Version(_calls.build(connection, session, source, deadline))

    def get_build(self, mapping: str, build_id: str | uuid.UUID) -> BuildJob:
        """Returns the state of a build."""
        request = service_pb.GetBuildRequest(mapping=mapping, build_id=str(build_id))
        return self._call("GetBuild", request)

    def cancel_build(self, mapping: str, build_id: str | uuid.UUID) -> BuildJob:
        """Cancels a build and returns it. A build that has finished is returned unchanged."""
        request = service_pb.CancelBuildRequest(mapping=mapping, build_id=str(build_id))
        return self._call("CancelBuild", request)

    def list_builds(self, mapping: str = "") -> list[BuildJob]:
        """Returns the builds that the server process knows, newest first: of one mapping, or of
        all."""
        return list(self._call("ListBuilds", service_pb.ListBuildsRequest(mapping=mapping)).builds)

    # Transforming.

    def transform(self, reference: str, rows: Any, *, expected_digest: str = "", timeout: float | None = None,
                  progress: ProgressArgument = None) -> Features:
        """Returns the features of `rows`, an array of rows × features.

        Rows that fit into one message take one call, and the array is a view of the received
        message: treat it as read-only (`.copy()` makes a writable one). More rows are sent over one
        stream, several requests at a time, and are all mapped by one version.

        Columns with names, as in a DataFrame or an Arrow table, are compared with the version's
        column names, if it has any, and put in the version's order. A missing, renamed or
        additional column is InvalidArgument, with both lists.

        Args:
            reference: "letters", "letters@3" or "letters@prod"; see the class.
            expected_digest: if set, the call raises FailedPrecondition for a version with another digest.
            timeout: seconds for the whole call; None means the service config's timeout.
            progress: a function that takes `Progress`, or True for a bar on stderr.
        """
        return self.transform_with_version(
            reference, rows, expected_digest=expected_digest, timeout=timeout, progress=progress)[0]

    def transform_with_version(self, reference: str, rows: Any, *, expected_digest: str = "",
                               timeout: float | None = None,
                               progress: ProgressArgument = None) -> tuple[Features, mapping_pb.VersionRef]:
        """Like `transform`, but also returns the version that answered."""
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        with _progress.observing(progress) as observer:
            return _calls.transform(connection, reference, expected_digest, source, Deadline(timeout), observer)

    def transform_with_residuals(self, reference: str, rows: Any, *, allowances: bool = False, expected_digest: str = "",
                                 timeout: float | None = None,
                                 progress: ProgressArgument = None) -> tuple[Features, ...]:
        """Like `transform`, but also returns the residual of each row, ρ(x) = max(0, K(x, x) −
        ‖F(x)‖²), the part of K(x, x) that F2 cannot express.

        ρ(x) is from 0 to K(x, x). If it is near K(x, x), the row x is unlike the rows that the
        version was built from. With `allowances`, a third array has the allowance a(x) of each row
        for the rounding of its features. For any two rows, |K(x, y) − F(x)·F(y)| ≤ √((ρ(x) +
        a(x))·(ρ(y) + a(y))). FailedPrecondition for mappings other than F2.
        """
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        with _progress.observing(progress) as observer:
            both = _calls.transform(connection, reference, expected_digest, source, Deadline(timeout), observer,
                                    residual=True)[0]
        return (both[:, :-2], both[:, -2], both[:, -1]) if allowances else (both[:, :-2], both[:, -2])

    def transform_blocks(self, reference: str, rows: Any, *, expected_digest: str = "", timeout: float | None = None,
                         window: int = DEFAULT_WINDOW, rows_per_request: int | None = None,
                         progress: ProgressArgument = None) -> Generator[Features, None, None]:
        """Yields the features of `rows` block by block, in order, for more rows than fit into
        memory.

        The rows are read while the features are consumed, up to `window` requests ahead. One
        version maps all rows. With rows_per_request None, messages have about 1 MiB. See
        `transform` for the rest.
        """
        connection = self._connection
        connection.check_usable()
        check_stream_options(window, rows_per_request)
        source = source_of(rows)

        def blocks() -> Generator[Features, None, None]:
            target = Target.resolve(self._pins, reference, expected_digest)
            with (_progress.observing(progress) as observer,
                  closing(_calls.stream(connection, target, source, Deadline(timeout), observer, window,
                                        rows_per_request)) as answers):
                for features, version in answers:
                    if not self._pins.observe(reference, version):
                        raise pinned_meanwhile(reference)
                    yield features

        return blocks()

    def evaluate(self, reference: str, rows: Any, labels: Iterable[Any], *, learner: str = "linear_svm(C=1)",
                 held_out: float | None = None, folds: int = 0, seed: int = 0, confidence: float = 0.95,
                 expected_digest: str = "", timeout: float | None = None,
                 progress: ProgressArgument = None) -> Evaluation:
        """Trains a learner on labeled rows mapped by one version, tests it on others, and measures
        margins. Nothing is stored. The answer is described in
        proto/phimap/v1/evaluation_service.proto.

        Args:
            reference: see the class. A bare name means the version that it is pinned to, or else
                the newest, which this call does not pin.
            rows: see the class.
            labels: one per row, of any type. Labels that are not texts are converted by `str`, and
                equal texts are one class.
            learner: the learner's text, such as "linear_svm(C=1)", "perceptron(epochs=20)" or "kernel_svm()".
            held_out: share of the rows that is held out for the test; None means 0.3, or with `folds` none.
            folds: number of cross-validation folds, which together test every row; 0 means one split.
            seed: seed of the split and the learner. The same rows, labels and arguments give the same answer.
            confidence: confidence of the margins that are certified for future rows.
            expected_digest: if set, the call raises FailedPrecondition for a version with another digest.
            timeout: seconds for the whole call.
            progress: a function that takes `Progress`, or True for a bar on stderr.
        """
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        pinned, digest = self._pins.resolve(reference)
        spec = spec_of(pinned, learner, held_out, folds, seed, confidence, expected_digest or digest, source.names())
        with _progress.observing(progress) as observer:
            session = EvaluationSession(spec, texts_of(labels), observer, source.row_count)
            return Evaluation(_calls.evaluate(connection, session, source, Deadline(timeout)))

    def unpin(self, mapping: str) -> None:
        """Forgets which version a name means: the next call finds the newest."""
        self._pins.forget(mapping)

    @property
    def pinned(self) -> dict[str, mapping_pb.VersionRef]:
        """Returns the names that were used, each with the version that it is pinned to."""
        return self._pins.pinned()

    # Finding.

    def list_mappings(self) -> list[Mapping]:
        """Returns all mappings, ordered by name."""
        return list(map(result_of, self._connection.pages("ListMappings", service_pb.ListMappingsRequest(), "mappings")))

    def get_mapping(self, mapping: str) -> Mapping:
        return self._call("GetMapping", service_pb.GetMappingRequest(mapping=mapping))

    def list_versions(self, mapping: str) -> list[Version]:
        """Returns all versions of a mapping, newest first, without certificates."""
        return list(map(result_of, self._connection.pages(
            "ListVersions", service_pb.ListVersionsRequest(mapping=mapping), "versions")))

    def get_version(self, reference: str) -> Version:
        """Returns one version with its certificate. A bare name means the version that it is pinned
        to, or else the newest, which this call does not pin."""
        query = VersionQuery(self._pins, reference)
        while (request := query.request()) is not None:
            try:
                query.take(self._call("GetVersion", request))
            except NotFound as error:
                query.refuse(error)
        return query.version()

    def capabilities(self) -> Capabilities:
        """Returns the mappings, kernels, policies and learners that this server offers, each with its parameters."""
        return self._call("ListCapabilities", service_pb.ListCapabilitiesRequest())

    def drift(self, mapping: str) -> Drift:
        """Returns, for each alias of a mapping, the evidence that the rows which the server serves differ from those
        that the alias's version was built from. Each server tests its own rows."""
        return self._call("GetDrift", service_pb.GetDriftRequest(mapping=mapping))

    def advise(self, *, margin: float, error: float, confidence: float, alpha: float = 0.0, points: int = 0,
               classes: int = 0, distortion: float = 0.0, kernel_error: float = 0.0) -> Advice:
        """Returns the landmarks and dimensions that suffice, by every theorem of the papers.
        Arguments and answer are described in proto/phimap/v1/mapping_service.proto."""
        return self._call("Advise", service_pb.AdviseRequest(
            margin=margin, error=error, confidence=confidence, alpha=alpha, points=points, classes=classes,
            distortion=distortion, kernel_error=kernel_error))

    # Managing.

    def set_alias(self, mapping: str, alias: str, version: int | str, *, etag: str = "") -> Alias:
        """Points an alias at a version, in one step.

        version: a number, or a digest: "sha256:" and at least 7 of its digits.

        etag: "" always; "*" only if the alias exists; "none" only if it does not; any other text
        only if the alias has that etag. A mismatch is Aborted, with the current etag in
        `metadata["etag"]`.
        """
        request = alias_request(mapping, alias, version, etag)
        return self._call("SetAlias", request)

    def keep(self, reference: str, *, ttl: Ttl | None = None) -> Version:
        """Lets a version live for ever or, with `ttl`, for that time after its last use, starting
        now. See `build`. FailedPrecondition if the version would expire sooner than before. Returns
        the version without its certificate."""
        lifetime = ttl_message(ttl)
        found = self.get_version(reference)
        request = service_pb.KeepVersionRequest(reference=reference_to(found), ttl=lifetime)
        return self._call("KeepVersion", request)

    def delete_alias(self, mapping: str, alias: str, *, etag: str = "") -> None:
        """Removes an alias. etag: see `set_alias`."""
        self._call("DeleteAlias", service_pb.DeleteAliasRequest(mapping=mapping, alias=alias, etag=etag))

    def delete_version(self, mapping: str, version: int, *, give_up_rollback: bool = False) -> None:
        """Deletes one version; its number is never used again.

        FailedPrecondition while an alias points at the version or, unless `give_up_rollback` is
        set, while an alias could be rolled back to it.
        """
        self._call("DeleteVersion", service_pb.DeleteVersionRequest(
            mapping=mapping, version=version, give_up_rollback=give_up_rollback))
        self._pins.forget(mapping, version)

    def delete_mapping(self, mapping: str) -> None:
        """Deletes a mapping with all its versions. FailedPrecondition while it has an alias."""
        self._call("DeleteMapping", service_pb.DeleteMappingRequest(mapping=mapping))
        self._pins.forget(mapping)

    def export_(self, reference: str, file: File, *, timeout: float | None = None) -> mapping_pb.VersionRef:
        """Writes a version's artifact to `file`, a path or an open file, and returns the version.
        The bytes are checked against the version's digest. A file at a path appears only if it is
        complete."""
        connection = self._connection
        ref: mapping_pb.VersionRef = self.get_version(reference).ref
        request = service_pb.ExportRequest(reference=reference_to(ref))
        with _files.written(file) as out:
            receiver = Receiver(out, ref.digest)
            connection.receive("Export", request, receiver.take, timeout)
            receiver.finish()
        return ref

    def import_(self, mapping: str, file: File, *, timeout: float | None = None) -> Version:
        """Stores an exported artifact, read from a path or an open file, as a new version of
        `mapping`."""
        with _files.read(file) as source, ImportRequests(mapping, source) as requests:
            return self._call("Import", requests, timeout)

    def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        return result_of(self._connection.call(name, request, timeout))


def _revived(server: str, arguments: dict[str, Any], pinned: dict[str, mapping_pb.VersionRef]) -> Client:
    client = Client(server, **arguments)
    for name, version in pinned.items():
        client._pins.observe(name, version)
    return client
