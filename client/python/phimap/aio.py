"""The asynchronous client: phimap.Client for asyncio."""
from __future__ import annotations

import datetime
import uuid
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from phimap import _aio_calls, _files, progress as _progress
from phimap._aio_connection import AioConnection
from phimap._access import Tls
from phimap._audit import audit_request
from phimap._artifact import ImportRequests, Receiver
from phimap._build import BuildSession, Spec
from phimap._evaluate import EvaluationSession, spec_of, texts_of
from phimap._files import File
from phimap._pins import reference_to
from phimap._predict import PredictCall
from phimap._retry import BUILD, TRAIN, Deadline
from phimap._rows import async_source_of
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


class AsyncClient:
    """phimap.Client with coroutines as methods. See there for arguments, results and errors.

    Rows may also be an asynchronous iterator of blocks. Create and use a client within one event
    loop. Cancelling a task also cancels its call on the server.
    """

    def __init__(self, server: str | None = None, *, channels: int = 1,
                 service_config: str | dict[str, Any] | None = None,
                 tls: Tls | None = None, token: str | None = None, options: Sequence[tuple[str, Any]] = ()) -> None:
        self._connection = AioConnection(server, channels, service_config, tls, token, options)
        self._pins = self._connection.pins

    @property
    def server(self) -> str:
        return self._connection.server

    def __repr__(self) -> str:
        return f"phimap.aio.AsyncClient({self.server!r})"

    async def close(self) -> None:
        await self._connection.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Building.

    async def build(self, name: str, rows: Any, *, spec: str,
                    kernel: str | None = None, standardize: bool = False, seed: int = 0,
                    build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None, timeout: float | None = None,
                    progress: ProgressArgument = None) -> Version:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        deadline = Deadline(timeout)
        with _progress.observing(progress) as observer:
            wanted = Spec.of(name, spec, kernel, standardize, seed, build_id, ttl)
            session = BuildSession(wanted.of_columns(await source.names()),
                                   connection.config.retries(BUILD, deadline), observer,
                                   source.row_count)
            return Version(await _aio_calls.build(connection, session, source, deadline))

    async def estimate_build(self, name: str, rows: int, columns: int, *, spec: str, kernel: str | None = None,
                             standardize: bool = False) -> BuildEstimate:
        wanted = Spec.of(name, spec, kernel, standardize).message()
        return await self._call("EstimateBuild", service_pb.EstimateBuildRequest(spec=wanted, rows=rows, columns=columns))

    async def get_build(self, name: str, build_id: str | uuid.UUID) -> BuildJob:
        request = service_pb.GetBuildRequest(name=name, build_id=str(build_id))
        return await self._call("GetBuild", request)

    async def cancel_build(self, name: str, build_id: str | uuid.UUID) -> BuildJob:
        request = service_pb.CancelBuildRequest(name=name, build_id=str(build_id))
        return await self._call("CancelBuild", request)

    async def list_builds(self, name: str = "") -> list[BuildJob]:
        return list(map(result_of, await self._connection.pages(
            "ListBuilds", service_pb.ListBuildsRequest(name=name), "builds")))

    # Transforming.

    async def transform(self, reference: str, rows: Any, *, expected_digest: str = "", timeout: float | None = None,
                        progress: ProgressArgument = None) -> Features:
        answer = await self.transform_with_version(
            reference, rows, expected_digest=expected_digest, timeout=timeout, progress=progress)
        return answer[0]

    async def transform_with_version(self, reference: str, rows: Any, *, expected_digest: str = "",
                                     timeout: float | None = None,
                                     progress: ProgressArgument = None) -> tuple[Features, VersionRef]:
        features, ref = await self._map(TransformCall(), reference, rows, expected_digest, timeout, progress)
        return features, VersionRef(ref)

    async def transform_with_residuals(self, reference: str, rows: Any, *, allowances: bool = False,
                                       expected_digest: str = "", timeout: float | None = None,
                                       progress: ProgressArgument = None) -> tuple[Features, ...]:
        both, _ = await self._map(TransformCall(residual=True), reference, rows, expected_digest, timeout, progress)
        return (both[:, :-2], both[:, -2], both[:, -1]) if allowances else (both[:, :-2], both[:, -2])

    def transform_stream(self, reference: str, rows: Any, *, expected_digest: str = "",
                         timeout: float | None = None, window: int = DEFAULT_WINDOW,
                         rows_per_request: int | None = None,
                         progress: ProgressArgument = None) -> AsyncGenerator[Features, None]:
        return self._stream(TransformCall(), reference, rows, expected_digest, timeout, window, rows_per_request, progress)

    # Learning and predicting.

    async def evaluate(self, reference: str, rows: Any, labels: Iterable[Any], *, learner: str | None = None,
                       held_out: float | None = None, folds: int = 0, seed: int = 0, confidence: float = 0.95,
                       expected_digest: str = "", timeout: float | None = None,
                       progress: ProgressArgument = None) -> Evaluation:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        pinned, digest = self._pins.resolve(reference)
        spec = spec_of(pinned, learner, held_out, folds, seed, confidence, expected_digest or digest,
                       await source.names())
        with _progress.observing(progress) as observer:
            session = EvaluationSession(spec, texts_of(labels), observer, source.row_count)
            return Evaluation(await _aio_calls.evaluate(connection, session, source, Deadline(timeout)))

    async def train(self, reference: str, rows: Any, labels: Iterable[Any], *, spec: str | None = None,
                    kernel: str | None = None, standardize: bool = False, learn_scales: bool = False,
                    learner: str | None = None, task: str | None = None, weights: Iterable[float] | None = None, groups: Iterable[Any] | None = None,
                    parts: Iterable[str | None] | None = None, seed: int = 0, build_id: str | uuid.UUID | None = None,
                    ttl: Ttl | None = None, expected_digest: str = "", timeout: float | None = None,
                    progress: ProgressArgument = None) -> Version:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        deadline = Deadline(timeout)
        known = LabeledRows.of(labels, weights, groups, parts)
        wanted = TrainingSpec.of(known, learner, task, seed, build_id, ttl, expected_digest)
        features = TrainedFeatures.of(spec, kernel, standardize, learn_scales)
        with _progress.observing(progress) as observer:
            names = await source.names()
            order = (wanted.on(await self.get_version(reference), names) if features is None
                     else wanted.building(reference, features, names))
            session = BuildSession(order, connection.config.retries(TRAIN, deadline), observer, source.row_count)
            return Version(await _aio_calls.build(connection, session, source, deadline))

    async def tune(self, name: str, rows: Any, labels: Iterable[Any], *, budget: float = 600.0,
                   max_landmarks: int | None = None, learner: str | None = None, task: str | None = None,
                   weights: Iterable[float] | None = None, groups: Iterable[Any] | None = None,
                   parts: Iterable[str | None] | None = None, seed: int = 0, build_id: str | uuid.UUID | None = None,
                   ttl: Ttl | None = None, timeout: float | None = None, progress: ProgressArgument = None) -> Version:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        deadline = Deadline(timeout)
        known = LabeledRows.of(labels, weights, groups, parts)
        wanted = TrainingSpec.of(known, learner, task, seed, build_id, ttl, "")
        with _progress.observing(progress) as observer:
            order = wanted.building(name, TrainedFeatures.tuned(budget, max_landmarks), await source.names())
            session = BuildSession(order, connection.config.retries(TRAIN, deadline), observer, source.row_count)
            return Version(await _aio_calls.build(connection, session, source, deadline))

    async def predict(self, reference: str, rows: Any, *, scores: bool = False, probabilities: bool = False,
                      confidence: float | None = None, deviations: bool = False, expected_digest: str = "",
                      timeout: float | None = None, progress: ProgressArgument = None) -> Prediction:
        call = PredictCall(scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations)
        return (await self._map(call, reference, rows, expected_digest, timeout, progress))[0]

    def predict_stream(self, reference: str, rows: Any, *, scores: bool = False, probabilities: bool = False,
                       confidence: float | None = None, deviations: bool = False, expected_digest: str = "",
                       timeout: float | None = None, window: int = DEFAULT_WINDOW, rows_per_request: int | None = None,
                       progress: ProgressArgument = None) -> AsyncGenerator[Prediction, None]:
        call = PredictCall(scores=scores, probabilities=probabilities, confidence=confidence, deviations=deviations)
        return self._stream(call, reference, rows, expected_digest, timeout, window, rows_per_request, progress)

    def unpin(self, name: str) -> None:
        self._pins.forget(name)

    @property
    def pinned(self) -> dict[str, VersionRef]:
        return {name: VersionRef(ref) for name, ref in self._pins.pinned().items()}

    # Finding.

    async def list_mappings(self) -> list[Mapping]:
        return list(map(result_of, await self._connection.pages("ListMappings", service_pb.ListMappingsRequest(), "mappings")))

    async def get_mapping(self, name: str) -> Mapping:
        return await self._call("GetMapping", service_pb.GetMappingRequest(name=name))

    async def list_versions(self, name: str) -> list[Version]:
        return list(map(result_of, await self._connection.pages(
            "ListVersions", service_pb.ListVersionsRequest(name=name), "versions")))

    async def get_version(self, reference: str) -> Version:
        query = VersionQuery(self._pins, reference)
        while (request := query.request()) is not None:
            try:
                query.take(await self._call("GetVersion", request))
            except NotFound as error:
                query.refuse(error)
        return query.version()

    async def list_capabilities(self) -> Capabilities:
        return await self._call("ListCapabilities", service_pb.ListCapabilitiesRequest())

    async def get_drift(self, name: str) -> Drift:
        return await self._call("GetDrift", service_pb.GetDriftRequest(name=name))

    async def list_audit_entries(self, name: str = "", *, principal: str | None = None,
                                 start_time: datetime.datetime | None = None,
                                 end_time: datetime.datetime | None = None) -> list[AuditEntry]:
        return list(map(result_of, await self._connection.pages(
            "ListAuditEntries", audit_request(name, principal, start_time, end_time), "entries")))

    async def check_health(self, service: str = "", *, timeout: float | None = None) -> bool:
        return await self._connection.serves(service, timeout)

    async def advise(self, *, margin: float, error: float, confidence: float, alpha: float = 0.0, points: int = 0,
                     classes: int = 0, distortion: float = 0.0,
                     kernel_error: float = 0.0) -> Advice:
        return await self._call("Advise", service_pb.AdviseRequest(
            margin=margin, error=error, confidence=confidence, alpha=alpha, points=points, classes=classes,
            distortion=distortion, kernel_error=kernel_error))

    # Managing.

    async def set_alias(self, reference: str, alias: str, *, etag: str = "") -> Alias:
        request = service_pb.SetAliasRequest(reference=reference, alias=alias, etag=etag)
        return await self._call("SetAlias", request)

    async def roll_back_alias(self, name: str, alias: str) -> Alias:
        current = alias_of(await self.get_mapping(name), alias)
        return await self.set_alias(f"{name}@{current.previous_version}", alias, etag=current.etag)

    async def keep_version(self, reference: str, *, ttl: Ttl | None = None) -> Version:
        lifetime = ttl_message(ttl)
        found = await self.get_version(reference)
        request = service_pb.KeepVersionRequest(reference=reference_to(found), ttl=lifetime)
        return await self._call("KeepVersion", request)

    async def delete_alias(self, name: str, alias: str, *, etag: str = "") -> None:
        request = service_pb.DeleteAliasRequest(name=name, alias=alias, etag=etag)
        await self._call("DeleteAlias", request)

    async def delete_version(self, reference: str, *, give_up_rollback: bool = False) -> None:
        request = service_pb.DeleteVersionRequest(
            reference=reference, give_up_rollback=give_up_rollback)
        await self._call("DeleteVersion", request)
        self._pins.forget(reference)

    async def delete_mapping(self, name: str, *, only_if_empty: bool = False) -> None:
        await self._call("DeleteMapping", service_pb.DeleteMappingRequest(name=name, only_if_empty=only_if_empty))
        self._pins.forget(name)

    async def export(self, reference: str, file: File, *, timeout: float | None = None) -> VersionRef:
        """Reads and writes the file in the event loop's own thread."""
        connection = self._connection
        ref = (await self.get_version(reference)).ref
        request = service_pb.ExportRequest(reference=reference_to(ref))
        with _files.written(file) as out:
            receiver = Receiver(out, ref.digest)
            await connection.receive("Export", request, receiver.take, timeout)
            receiver.finish()
        return ref

    async def import_(self, name: str, file: File, *, timeout: float | None = None) -> Version:
        """Reads the file in the event loop's own thread."""
        with _files.read(file) as source, ImportRequests(name, source) as requests:
            return await self._call("Import", requests, timeout)

    async def _map(self, call: RowCall[T], reference: str, rows: Any, expected_digest: str, timeout: float | None,
                   progress: ProgressArgument) -> tuple[T, mapping_pb.VersionRef]:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        with _progress.observing(progress) as observer:
            return await _aio_calls.map_rows(connection, call, reference, expected_digest, source, Deadline(timeout), observer)

    async def _stream(self, call: RowCall[T], reference: str, rows: Any, expected_digest: str, timeout: float | None,
                      window: int, rows_per_request: int | None, progress: ProgressArgument) -> AsyncGenerator[T, None]:
        connection = self._connection
        connection.check_usable()
        check_stream_options(window, rows_per_request)
        source = async_source_of(rows)
        target = Target.resolve(self._pins, reference, expected_digest)
        with _progress.observing(progress) as observer:
            async with aclosing(_aio_calls.stream(connection, call, target, source, Deadline(timeout), observer, window,
                                                  rows_per_request)) as answers:
                async for answer, version in answers:
                    if not self._pins.observe(reference, version):
                        raise pinned_meanwhile(reference)
                    yield answer

    async def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        return result_of(await self._connection.call(name, request, timeout))
