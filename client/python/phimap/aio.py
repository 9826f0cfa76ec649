"""The asynchronous client: phimap.Client for asyncio."""
from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any


from phimap import _aio_calls, _files, progress as _progress
from phimap._aio_connection import AioConnection
from phimap._access import Tls
from phimap._artifact import ImportRequests, Receiver
from phimap._build import BuildSession, Spec
from phimap._calls import Features
from phimap._evaluate import EvaluationSession, spec_of, texts_of
from phimap._files import File
from phimap._pins import reference_to
from phimap._retry import BUILD, Deadline
from phimap._rows import async_source_of
from phimap._lifetime import Ttl, alias_request, ttl_message
from phimap._transform import DEFAULT_WINDOW, Target, check_stream_options, pinned_meanwhile
from phimap._version_query import VersionQuery
from phimap.errors import NotFound
from phimap.progress import ProgressArgument
from phimap.results import Advice, Alias, BuildJob, Capabilities, Drift, Evaluation, Mapping, Version, result_of
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

    async def build(self, mapping: str, rows: Any, *, spec: str | mapping_pb.MappingSpec,
                    kernel: str | None = None, standardize: bool = False, seed: int = 0,
                    build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None, timeout: float | None = None,
                    progress: ProgressArgument = None) -> Version:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        deadline = Deadline(timeout)
        with _progress.observing(progress) as observer:
            wanted = Spec.of(mapping, spec, kernel, standardize, seed, build_id, ttl)
            session = BuildSession(wanted.of_columns(await source.names()),
                                   connection.config.retries(BUILD, deadline), observer,
                                   source.row_count)
            return Version(await _aio_calls.build(connection, session, source, deadline))

    async def get_build(self, mapping: str, build_id: str | uuid.UUID) -> BuildJob:
        request = service_pb.GetBuildRequest(mapping=mapping, build_id=str(build_id))
        return await self._call("GetBuild", request)

    async def cancel_build(self, mapping: str, build_id: str | uuid.UUID) -> BuildJob:
        request = service_pb.CancelBuildRequest(mapping=mapping, build_id=str(build_id))
        return await self._call("CancelBuild", request)

    async def list_builds(self, mapping: str = "") -> list[BuildJob]:
        request = service_pb.ListBuildsRequest(mapping=mapping)
        return list((await self._call("ListBuilds", request)).builds)

    # Transforming.

    async def transform(self, reference: str, rows: Any, *, expected_digest: str = "", timeout: float | None = None,
                        progress: ProgressArgument = None) -> Features:
        answer = await self.transform_with_version(
            reference, rows, expected_digest=expected_digest, timeout=timeout, progress=progress)
        return answer[0]

    async def transform_with_version(self, reference: str, rows: Any, *, expected_digest: str = "",
                                     timeout: float | None = None,
                                     progress: ProgressArgument = None) -> tuple[Features, mapping_pb.VersionRef]:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        with _progress.observing(progress) as observer:
            return await _aio_calls.transform(
                connection, reference, expected_digest, source, Deadline(timeout), observer)

    async def transform_with_residuals(self, reference: str, rows: Any, *, allowances: bool = False,
                                       expected_digest: str = "", timeout: float | None = None,
                                       progress: ProgressArgument = None) -> tuple[Features, ...]:
        connection = self._connection
        connection.check_usable()
        source = async_source_of(rows)
        with _progress.observing(progress) as observer:
            both, _ = await _aio_calls.transform(
                connection, reference, expected_digest, source, Deadline(timeout), observer, residual=True)
        return (both[:, :-2], both[:, -2], both[:, -1]) if allowances else (both[:, :-2], both[:, -2])

    async def transform_blocks(self, reference: str, rows: Any, *, expected_digest: str = "",
                               timeout: float | None = None, window: int = DEFAULT_WINDOW,
                               rows_per_request: int | None = None,
                               progress: ProgressArgument = None) -> AsyncGenerator[Features, None]:
        connection = self._connection
        connection.check_usable()
        check_stream_options(window, rows_per_request)
        source = async_source_of(rows)
        target = Target.resolve(self._pins, reference, expected_digest)
        with _progress.observing(progress) as observer:
            async with aclosing(_aio_calls.stream(connection, target, source, Deadline(timeout), observer, window,
                                                  rows_per_request)) as answers:
                async for features, version in answers:
                    if not self._pins.observe(reference, version):
                        raise pinned_meanwhile(reference)
                    yield features

    async def evaluate(self, reference: str, rows: Any, labels: Iterable[Any], *, learner: str = "linear_svm(C=1)",
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

    def unpin(self, mapping: str) -> None:
        self._pins.forget(mapping)

    @property
    def pinned(self) -> dict[str, mapping_pb.VersionRef]:
        return self._pins.pinned()

    # Finding.

    async def list_mappings(self) -> list[Mapping]:
        return list(map(result_of, await self._connection.pages("ListMappings", service_pb.ListMappingsRequest(), "mappings")))

    async def get_mapping(self, mapping: str) -> Mapping:
        return await self._call("GetMapping", service_pb.GetMappingRequest(mapping=mapping))

    async def list_versions(self, mapping: str) -> list[Version]:
        return list(map(result_of, await self._connection.pages(
            "ListVersions", service_pb.ListVersionsRequest(mapping=mapping), "versions")))

    async def get_version(self, reference: str) -> Version:
        query = VersionQuery(self._pins, reference)
        while (request := query.request()) is not None:
            try:
                query.take(await self._call("GetVersion", request))
            except NotFound as error:
                query.refuse(error)
        return query.version()

    async def capabilities(self) -> Capabilities:
        return await self._call("ListCapabilities", service_pb.ListCapabilitiesRequest())

    async def drift(self, mapping: str) -> Drift:
        return await self._call("GetDrift", service_pb.GetDriftRequest(mapping=mapping))

    async def advise(self, *, margin: float, error: float, confidence: float, alpha: float = 0.0, points: int = 0,
                     classes: int = 0, distortion: float = 0.0,
                     kernel_error: float = 0.0) -> Advice:
        return await self._call("Advise", service_pb.AdviseRequest(
            margin=margin, error=error, confidence=confidence, alpha=alpha, points=points, classes=classes,
            distortion=distortion, kernel_error=kernel_error))

    # Managing.

    async def set_alias(self, mapping: str, alias: str, version: int | str, *, etag: str = "") -> Alias:
        request = alias_request(mapping, alias, version, etag)
        return await self._call("SetAlias", request)

    async def keep(self, reference: str, *, ttl: Ttl | None = None) -> Version:
        lifetime = ttl_message(ttl)
        found = await self.get_version(reference)
        request = service_pb.KeepVersionRequest(reference=reference_to(found), ttl=lifetime)
        return await self._call("KeepVersion", request)

    async def delete_alias(self, mapping: str, alias: str, *, etag: str = "") -> None:
        request = service_pb.DeleteAliasRequest(mapping=mapping, alias=alias, etag=etag)
        await self._call("DeleteAlias", request)

    async def delete_version(self, mapping: str, version: int, *, give_up_rollback: bool = False) -> None:
        request = service_pb.DeleteVersionRequest(
            mapping=mapping, version=version, give_up_rollback=give_up_rollback)
        await self._call("DeleteVersion", request)
        self._pins.forget(mapping, version)

    async def delete_mapping(self, mapping: str) -> None:
        await self._call("DeleteMapping", service_pb.DeleteMappingRequest(mapping=mapping))
        self._pins.forget(mapping)

    async def export_(self, reference: str, file: File, *, timeout: float | None = None) -> mapping_pb.VersionRef:
        """Reads and writes the file in the event loop's own thread."""
        connection = self._connection
        ref: mapping_pb.VersionRef = (await self.get_version(reference)).ref
        request = service_pb.ExportRequest(reference=reference_to(ref))
        with _files.written(file) as out:
            receiver = Receiver(out, ref.digest)
            await connection.receive("Export", request, receiver.take, timeout)
            receiver.finish()
        return ref

    async def import_(self, mapping: str, file: File, *, timeout: float | None = None) -> Version:
        """Reads the file in the event loop's own thread."""
        with _files.read(file) as source, ImportRequests(mapping, source) as requests:
            return await self._call("Import", requests, timeout)

    async def _call(self, name: str, request: Any, timeout: float | None = None) -> Any:
        return result_of(await self._connection.call(name, request, timeout))
