"""The synchronous client."""
from __future__ import annotations

import datetime
import uuid
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from typing import Any

from phimap import _calls, _files, progress as _progress
from phimap._access import Tls
from phimap._audit import audit_request
from phimap._artifact import ImportRequests, Receiver
from phimap._build import BuildSession, Spec
from phimap._connection import Connection
from phimap._evaluate import EvaluationSession, spec_of, texts_of
from phimap._files import File
from phimap._pins import reference_to
from phimap._predict import PredictCall
from phimap._retry import BUILD, TRAIN, Deadline
from phimap._rows import RowSource, source_of
from phimap._lifetime import Ttl, ttl_message
from phimap._train import LabeledRows, TrainedFeatures, TrainingSpec
from phimap._version_query import VersionQuery, alias_of
from phimap._transform import DEFAULT_WINDOW, Features, RowCall, T, Target, TransformCall, check_stream_options, pinned_meanwhile
from phimap.errors import NotFound
from phimap.progress import ProgressArgument
from phimap.results import (Advice, Alias, AuditEntry, BuildEstimate, BuildJob, Capabilities, Drift, Evaluation, Mapping, Prediction,
                            Version, VersionRef, result_of)
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb


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

    def build(self, name: str, rows: Any, *, spec: str, kernel: str | None = None,
              standardize: bool = False, seed: int = 0, build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None,
              timeout: float | None = None, progress: ProgressArgument = None) -> Version:
        """Builds a version of the mapping `name` from unlabeled rows and returns it with its certificate.

        The rows are streamed, in bounded memory on both sides. If the connection breaks once the
        server has all rows, the build continues. Before that, the rows are sent again, unless they
        come from an iterator.

        Args:
            name: the name of the mapping, [a-z]([a-z0-9-]{0,61}[a-z0-9])?; it is created by its first version.
            rows: see the class. The column names of a DataFrame or an Arrow table are stored with
                the version.
            spec: the family and its parameters, such as "f2(landmarks=500)"; `phimap.spec_text` makes
                one of values.
            kernel: the kernel's text, such as "rbf(gamma=scale)" or "poly(degree=2, gamma=1, coef0=1)". None means the
                family's default (`list_capabilities`).
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
            wanted = Spec.of(name, spec, kernel, standardize, seed, build_id, ttl)
            session = BuildSession(wanted.of_columns(source.names()),
                                   connection.config.retries(BUILD, deadline), observer,
                                   source.row_count)
            return Version(_calls.build(connection, session, source, deadline))

    def estimate_build(self, name: str, rows: int, columns: int, *, spec: str, kernel: str | None = None,
                       standardize: bool = False) -> BuildEstimate:
        """Estimates the cost of a `build` with these arguments from so many rows and columns."""
        wanted = Spec.of(name, spec, kernel, standardize).message()
        return self._call("EstimateBuild", service_pb.EstimateBuildRequest(spec=wanted, rows=rows, columns=columns))

    def get_build(self, name: str, build_id: str | uuid.UUID) -> BuildJob:
        """Returns the state of a build or a training."""
        request = service_pb.GetBuildRequest(name=name, build_id=str(build_id))
        return self._call("GetBuild", request)

    def cancel_build(self, name: str, build_id: str | uuid.UUID) -> BuildJob:
        """Cancels a build or a training and returns it. A build that has finished is returned unchanged."""
        request = service_pb.CancelBuildRequest(name=name, build_id=str(build_id))
        return self._call("CancelBuild", request)

    def list_builds(self, name: str = "") -> list[BuildJob]:
        """Returns the builds and trainings that the server process knows, newest first: of one mapping, or of
        all."""
        return list(map(result_of, self._connection.pages("ListBuilds", service_pb.ListBuildsRequest(name=name), "builds")))

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
        return self._map(TransformCall(), reference, rows, expected_digest, timeout, progress)[0]

    def transform_with_version(self, reference: str, rows: Any, *, expected_digest: str = "",
                               timeout: float | None = None,
                               progress: ProgressArgument = None) -> tuple[Features, VersionRef]:
        """Like `transform`, but also returns the version that answered."""
        features, ref = self._map(TransformCall(), reference, rows, expected_digest, timeout, progress)
        return features, VersionRef(ref)

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
        both, _ = self._map(TransformCall(residual=True), reference, rows, expected_digest, timeout, progress)
        return (both[:, :-2], both[:, -2], both[:, -1]) if allowances else (both[:, :-2], both[:, -2])

    def transform_stream(self, reference: str, rows: Any, *, expected_digest: str = "", timeout: float | None = None,
                         window: int = DEFAULT_WINDOW, rows_per_request: int | None = None,
                         progress: ProgressArgument = None) -> Generator[Features, None, None]:
        """Yields the features of `rows` block by block, in order, for more rows than fit into
        memory.

        The rows are read while the features are consumed, up to `window` requests ahead. One
        version maps all rows. With rows_per_request None, messages have about 1 MiB. See
        `transform` for the rest.
        """
        return self._stream(TransformCall(), reference, self._source(rows, window, rows_per_request), expected_digest, timeout,
                            window, rows_per_request, progress)

    # Learning and predicting.

    def evaluate(self, reference: str, rows: Any, labels: Iterable[Any], *, learner: str | None = None,
                 held_out: float | None = None, folds: int = 0, seed: int = 0, confidence: float = 0.95,
                 expected_digest: str = "", timeout: float | None = None,
                 progress: ProgressArgument = None) -> Evaluation:
        """Trains a learner on labeled rows mapped by one version, tests it on others, and measures
        margins. Nothing is stored. The answer is described in
        proto/phimap/v1/learning_service.proto.

        Args:
            reference: see the class. A bare name means the version that it is pinned to, or else
                the newest, which this call does not pin.
            rows: see the class.
            labels: one per row, of any type. Labels that are not texts are converted by `str`, and
                equal texts are one class.
            learner: the learner's text, such as "linear_svm(C=1)", "perceptron(epochs=20)" or "kernel_svm"; None means
                the server's default.
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

    def train(self, reference: str, rows: Any, labels: Iterable[Any], *, spec: str | None = None, kernel: str | None = None,
              standardize: bool = False, learn_scales: bool = False, learner: str | None = None, task: str | None = None,
              weights: Iterable[float] | None = None, groups: Iterable[Any] | None = None,
              parts: Iterable[str | None] | None = None, seed: int = 0, build_id: str | uuid.UUID | None = None,
              ttl: Ttl | None = None, expected_digest: str = "", timeout: float | None = None,
              progress: ProgressArgument = None) -> Version:
        """Trains a head on a version, and returns the next version of the same name: the same
        features, bit for bit, and the head, with which `predict` answers. Or, if `spec` is given,
        builds the features first, from those of these rows that are trained on.

        Some rows are held out: to choose parameters, to calibrate probabilities, sets and
        intervals, and for a report. Training is a build, as in `build`: the rows are streamed,
        and sent again if the connection breaks before the server has them all; `cancel_build` and
        the like know it by its build_id.

        Args:
            reference: see the class. A bare name means the version that it is pinned to, or else
                the newest, which this call does not pin: a name that is already pinned goes on
                meaning the version without the head. With `spec`, the name of the mapping.
            rows: see the class.
            spec, kernel, standardize: what to build, as in `build`; None means the features of `reference`.
            learn_scales: whether a length scale of each column is learned from the labels.
            labels: one per row, of any type. Labels that are not texts are converted by `str`, and
                equal texts are one class; numbers are read back exactly.
            learner: the learner's text, such as "ridge(alpha=auto)", "logistic(C=1)" or
                "svr(C=1, epsilon=0.1)"; None means ridge.
            task: "classes" or "numbers"; None means that the labels tell it, or InvalidArgument if
                they do not.
            weights: a weight of each row, over 0; None means 1.
            groups: rows of equal groups are in one part. None, or a group that is None, means that
                rows of equal content are.
            parts: what each row is used for: "train", "validate" (chooses parameters),
                "calibrate-link" (calibrates probabilities), "calibrate-sets" (calibrates sets and
                intervals) or "test" (for the report). None, or a part that is None, means the
                choice by a hash of the row or its group.
            seed: seed of the parts and of the learner.
            build_id, ttl, timeout: see `build`.
            expected_digest: if set, the call raises FailedPrecondition for a version with another digest.
            progress: a function that takes `Progress`, or True for a bar on stderr.
        """
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        deadline = Deadline(timeout)
        known = LabeledRows.of(labels, weights, groups, parts)
        wanted = TrainingSpec.of(known, learner, task, seed, build_id, ttl, expected_digest)
        features = TrainedFeatures.of(spec, kernel, standardize, learn_scales)
        with _progress.observing(progress) as observer:
            order = (wanted.on(self.get_version(reference), source.names()) if features is None
                     else wanted.building(reference, features, source.names()))
            session = BuildSession(order, connection.config.retries(TRAIN, deadline), observer, source.row_count)
            return Version(_calls.build(connection, session, source, deadline))

    def tune(self, name: str, rows: Any, labels: Iterable[Any], *, budget: float = 600.0, max_landmarks: int | None = None,
             learner: str | None = None, task: str | None = None, weights: Iterable[float] | None = None,
             groups: Iterable[Any] | None = None, parts: Iterable[str | None] | None = None, seed: int = 0,
             build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None, timeout: float | None = None,
             progress: ProgressArgument = None) -> Version:
        """Chooses kernel, length scales, landmarks and learner by labeled rows, and returns the
        version that is trained with them; `version.head.report.trials` says what was tried.

        Everything is chosen by rows of the part validate. The report is about test rows, which no
        choice has seen.

        Args:
            name: the name of the mapping, as in `build`.
            rows, labels, task, weights, groups, parts, seed, build_id, ttl, timeout, progress: see `train`.
            budget: seconds for all trials and the version, once the server has the rows.
            max_landmarks: no more are tried; None means the server's default, 4,096.
            learner: see `train`; None means that it is chosen too.
        """
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        deadline = Deadline(timeout)
        known = LabeledRows.of(labels, weights, groups, parts)
        wanted = TrainingSpec.of(known, learner, task, seed, build_id, ttl, "")
        with _progress.observing(progress) as observer:
            order = wanted.building(name, TrainedFeatures.tuned(budget, max_landmarks), source.names())
            session = BuildSession(order, connection.config.retries(TRAIN, deadline), observer, source.row_count)
            return Version(_calls.build(connection, session, source, deadline))

    def predict(self, reference: str, rows: Any, *, scores: bool = False, probabilities: bool = False,
                confidence: float | None = None, deviations: bool = False, expected_digest: str = "",
                timeout: float | None = None, progress: ProgressArgument = None) -> Prediction:
        """Returns the classes or the numbers that a version with a head answers to `rows`, and what is
        asked for beside them. See `train`, and `transform` for what both do alike.

        FailedPrecondition for a version without a head (reason HEAD_MISSING), or if its head does
        not have what is asked for (OUTPUT_NOT_AVAILABLE).

        Args:
            reference: "letters", "letters@3" or "letters@prod"; see the class.
            scores: whether to answer scores, of which the highest, or whose sign, is the answer.
            probabilities: whether to answer a probability of each class.
            confidence: if set, a number in (0, 1): answers a set of classes or an interval for each
                row, which holds the truth with at least this probability if the row and those that
                calibrated the head are exchangeable.
            deviations: whether to answer standard deviations; for numbers by ridge on F2.
            expected_digest: if set, the call raises FailedPrecondition for a version with another digest.
            timeout: seconds for the whole call; None means the service config's timeout.
            progress: a function that takes `Progress`, or True for a bar on stderr.
        """
        call = PredictCall(scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations)
        return self._map(call, reference, rows, expected_digest, timeout, progress)[0]

    def predict_stream(self, reference: str, rows: Any, *, scores: bool = False, probabilities: bool = False,
                       confidence: float | None = None, deviations: bool = False, expected_digest: str = "",
                       timeout: float | None = None, window: int = DEFAULT_WINDOW, rows_per_request: int | None = None,
                       progress: ProgressArgument = None) -> Generator[Prediction, None, None]:
        """Yields the predictions of `rows` block by block, in order, for more rows than fit into
        memory. See `predict` and `transform_stream`."""
        call = PredictCall(scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations)
        return self._stream(call, reference, self._source(rows, window, rows_per_request), expected_digest, timeout,
                            window, rows_per_request, progress)

    def unpin(self, name: str) -> None:
        """Forgets which version a name means: the next call finds the newest."""
        self._pins.forget(name)

    @property
    def pinned(self) -> dict[str, VersionRef]:
        """Returns the names that were used, each with the version that it is pinned to."""
        return {name: VersionRef(ref) for name, ref in self._pins.pinned().items()}

    # Finding.

    def list_mappings(self) -> list[Mapping]:
        """Returns all mappings, ordered by name."""
        return list(map(result_of, self._connection.pages("ListMappings", service_pb.ListMappingsRequest(), "mappings")))

    def get_mapping(self, name: str) -> Mapping:
        return self._call("GetMapping", service_pb.GetMappingRequest(name=name))

    def list_versions(self, name: str) -> list[Version]:
        """Returns all versions of a mapping, newest first, without certificates."""
        return list(map(result_of, self._connection.pages(
            "ListVersions", service_pb.ListVersionsRequest(name=name), "versions")))

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

    def list_capabilities(self) -> Capabilities:
        """Returns the families, kernels, policies and learners that this server offers, each with its parameters."""
        return self._call("ListCapabilities", service_pb.ListCapabilitiesRequest())

    def get_drift(self, name: str) -> Drift:
        """Returns, for each alias of a mapping, the evidence that the rows which the server serves differ from those
        that the alias's version was built from. Each server tests its own rows."""
        return self._call("GetDrift", service_pb.GetDriftRequest(name=name))

    def list_audit_entries(self, name: str = "", *, principal: str | None = None,
                           start_time: datetime.datetime | None = None,
                           end_time: datetime.datetime | None = None) -> list[AuditEntry]:
        """Returns who changed what and what was refused, newest first: of one mapping or of all, by one caller or by
        anyone, from `start_time` and before `end_time`. Needs the role admin."""
        return list(map(result_of, self._connection.pages(
            "ListAuditEntries", audit_request(name, principal, start_time, end_time), "entries")))

    def check_health(self, service: str = "", *, timeout: float | None = None) -> bool:
        """Returns whether the server serves `service`, such as "phimap.v1.TransformService"; an empty
        text means the server as a whole. False while the server shuts down; NotFound if it has no
        such service. Not retried."""
        return self._connection.serves(service, timeout)

    def advise(self, *, margin: float, error: float, confidence: float, alpha: float = 0.0, points: int = 0,
               classes: int = 0, distortion: float = 0.0, kernel_error: float = 0.0) -> Advice:
        """Returns the landmarks and dimensions that suffice, by every theorem of the papers.
        Arguments and answer are described in proto/phimap/v1/mapping_service.proto."""
        return self._call("Advise", service_pb.AdviseRequest(
            margin=margin, error=error, confidence=confidence, alpha=alpha, points=points, classes=classes,
            distortion=distortion, kernel_error=kernel_error))

    # Managing.

    def set_alias(self, reference: str, alias: str, *, etag: str = "") -> Alias:
        """Points an alias at a version, in one step.

        reference: "letters@3", or "letters@sha256:" with at least 7 digits of the digest.

        etag: "" always; "*" only if the alias exists; "none" only if it does not; any other text
        only if the alias has that etag. A mismatch is Aborted, with the current etag in
        `metadata["etag"]`.
        """
        request = service_pb.SetAliasRequest(reference=reference, alias=alias, etag=etag)
        return self._call("SetAlias", request)

    def roll_back_alias(self, name: str, alias: str) -> Alias:
        """Points an alias back at its previous version; a second call undoes the first. NotFound if
        there is no such alias, FailedPrecondition if it has never moved, and Aborted if another
        client moves it meanwhile."""
        current = alias_of(self.get_mapping(name), alias)
        return self.set_alias(f"{name}@{current.previous_version}", alias, etag=current.etag)

    def keep_version(self, reference: str, *, ttl: Ttl | None = None) -> Version:
        """Lets a version live for ever or, with `ttl`, for that time after its last use, starting
        now. See `build`. FailedPrecondition if the version would expire sooner than before. Returns
        the version without its certificate."""
        lifetime = ttl_message(ttl)
        found = self.get_version(reference)
        request = service_pb.KeepVersionRequest(reference=reference_to(found), ttl=lifetime)
        return self._call("KeepVersion", request)

    def delete_alias(self, name: str, alias: str, *, etag: str = "") -> None:
        """Removes an alias. etag: see `set_alias`."""
        self._call("DeleteAlias", service_pb.DeleteAliasRequest(name=name, alias=alias, etag=etag))

    def delete_version(self, reference: str, *, give_up_rollback: bool = False) -> None:
        """Deletes one version, given as in `set_alias`; its number is never used again.

        FailedPrecondition while an alias points at the version or, unless `give_up_rollback` is
        set, while an alias could be rolled back to it.
        """
        self._call("DeleteVersion", service_pb.DeleteVersionRequest(
            reference=reference, give_up_rollback=give_up_rollback))
        self._pins.forget(reference)

    def delete_mapping(self, name: str, *, only_if_empty: bool = False) -> None:
        """Deletes a mapping with all its versions. FailedPrecondition while it has an alias or, with
        `only_if_empty`, a version."""
        self._call("DeleteMapping", service_pb.DeleteMappingRequest(name=name, only_if_empty=only_if_empty))
        self._pins.forget(name)

    def export(self, reference: str, file: File, *, timeout: float | None = None) -> VersionRef:
        """Writes a version's artifact to `file`, a path or an open file, and returns the version.
        The bytes are checked against the version's digest. A file at a path appears only if it is
        complete."""
        connection = self._connection
        ref = self.get_version(reference).ref
        request = service_pb.ExportRequest(reference=reference_to(ref))
        with _files.written(file) as out:
            receiver = Receiver(out, ref.digest)
            connection.receive("Export", request, receiver.take, timeout)
            receiver.finish()
        return ref

    def import_(self, name: str, file: File, *, timeout: float | None = None) -> Version:
        """Stores an exported artifact, read from a path or an open file, as a new version of the
        mapping `name`."""
        with _files.read(file) as source, ImportRequests(name, source) as requests:
            return self._call("Import", requests, timeout)

    def _source(self, rows: Any, window: int, rows_per_request: int | None) -> RowSource:
        self._connection.check_usable()
        check_stream_options(window, rows_per_request)
        return source_of(rows)

    def _map(self, call: RowCall[T], reference: str, rows: Any, expected_digest: str, timeout: float | None,
             progress: ProgressArgument) -> tuple[T, mapping_pb.VersionRef]:
        connection = self._connection
        connection.check_usable()
        source = source_of(rows)
        if progress is None:  # a context manager takes a fiftieth of the time of a call
            return _calls.map_rows(connection, call, reference, expected_digest, source, Deadline(timeout), _progress.ignored)
        with _progress.observing(progress) as observer:
            return _calls.map_rows(connection, call, reference, expected_digest, source, Deadline(timeout), observer)

    def _stream(self, call: RowCall[T], reference: str, source: RowSource, expected_digest: str, timeout: float | None,
                window: int, rows_per_request: int | None, progress: ProgressArgument) -> Generator[T, None, None]:
        target = Target.resolve(self._pins, reference, expected_digest)
        with (_progress.observing(progress) as observer,
              closing(_calls.stream(self._connection, call, target, source, Deadline(timeout), observer, window,
                                    rows_per_request)) as answers):
            for answer, version in answers:
                if not self._pins.observe(reference, version):
                    raise pinned_meanwhile(reference)
                yield answer

    def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        return result_of(self._connection.call(name, request, timeout))


def _revived(server: str, arguments: dict[str, Any], pinned: dict[str, VersionRef]) -> Client:
    client = Client(server, **arguments)
    for name, version in pinned.items():
        client._pins.observe(name, version.message)
    return client
