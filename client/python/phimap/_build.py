"""The decisions of one build: what to send, what an event means, and whether to retry. The clients
do the input and output."""
from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from google.protobuf.duration_pb2 import Duration

from phimap import _wire
from phimap._blocks import Block
from phimap._lifetime import Ttl, ttl_message
from phimap._retry import Retries
from phimap._rows import BlockLimits
from phimap.errors import Aborted, DeadlineExceeded, Error, Internal, of_stream
from phimap.progress import Observer, Progress
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

# Large enough that the cost per message is negligible, and small enough that a few queued messages
# take little memory.
BLOCK_LIMITS = BlockLimits(_wire.MAX_ROWS_PER_MESSAGE, 1 << 20)
# Maximum number of messages that wait for the network.
QUEUED_MESSAGES = 4
# Seconds for telling the server that a build was cancelled: the user is waiting.
CANCEL_TIMEOUT = 5.0


@dataclass(frozen=True)
class Spec:
    """Describes what to build. See Client.build."""

    mapping: str
    spec: str | mapping_pb.MappingSpec
    kernel: str
    standardize: bool
    seed: int
    build_id: str
    ttl: Duration | None = None
    column_names: tuple[str, ...] = ()

    @staticmethod
    def of(mapping: str, spec: str | mapping_pb.MappingSpec, kernel: str | None, standardize: bool, seed: int,
           build_id: str | uuid.UUID | None, ttl: Ttl | None = None) -> Spec:
        if kernel is None:
            kernel = "linear()" if _is_linear(spec) else "rbf(gamma=scale)"
        for name, text in (("mapping", mapping), ("kernel", kernel)):
            if not isinstance(text, str):
                raise TypeError(f"{name}: expected text, got {type(text).__name__} {text!r:.80}")
        if not isinstance(spec, (str, mapping_pb.MappingSpec)):
            raise TypeError(f'spec: expected text such as "f2(landmarks=500)", or a MappingSpec, got {type(spec).__name__}')
        if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 64:
            raise ValueError(f"seed: expected an integer, 0..2**64-1, got {seed!r}")
        if not isinstance(standardize, (bool, np.bool_)):  # any text would count as true
            raise TypeError(f"standardize: expected True or False, got {type(standardize).__name__} {standardize!r:.80}")
        return Spec(mapping, spec, kernel, bool(standardize), int(seed), str(build_id or uuid.uuid4()), ttl_message(ttl))

    def of_columns(self, names: tuple[str, ...] | None) -> Spec:
        """Returns the spec for rows whose columns have these names. With the kernel precomputed(),
        the columns are kernel values, so their names are not stored."""
        if names is None or self.kernel.lstrip().startswith("precomputed"):
            return self
        return replace(self, column_names=names)

    def message(self) -> bytes:
        spec = mapping_pb.MappingSpec(text=self.spec) if isinstance(self.spec, str) else self.spec
        return service_pb.BuildRequest(spec=service_pb.BuildSpec(
            mapping=self.mapping, build_id=self.build_id, spec=spec, kernel=self.kernel, standardize=self.standardize,
            seed=self.seed, ttl=self.ttl, column_names=self.column_names)).SerializeToString()


def _is_linear(spec: str | mapping_pb.MappingSpec) -> bool:
    """Returns True for mappings of a linear or polynomial kernel, whose default is linear()."""
    if isinstance(spec, str):
        return spec.split("(")[0].strip() in ("random_projection", "multiclass", "polynomial")
    if not isinstance(spec, mapping_pb.MappingSpec):
        return False
    if spec.text:
        return _is_linear(spec.text)
    return spec.kind in (mapping_pb.MappingSpec.RANDOM_PROJECTION, mapping_pb.MappingSpec.MULTICLASS,
                         mapping_pb.MappingSpec.POLYNOMIAL)


class BuildSession:
    """The state of one build: the rows to send, and the server's events.

    All attempts have the same build_id. A build that has received all its rows continues on the
    server even if the connection breaks. A build that has not is lost when the connection breaks,
    and its rows are sent again if their source can rewind.
    """

    def __init__(self, spec: Spec, retries: Retries, observer: Observer, total_rows: int | None) -> None:
        self.spec = spec
        self._retries = retries
        self._observer = observer
        self._total_rows = total_rows
        self._rows_sent = 0
        self._attached = False
        # True once all rows and `finish` are sent, or if the server already has all rows.
        self.finished_sending = False
        self.version: mapping_pb.Version | None = None
        self._furthest = 0.0

    def wants_rows(self, source: Any) -> bool:
        """Returns True if the rows must be sent, and rewinds the source if they were sent before.
        REQUIRES: the server has sent `accepted`."""
        if self._attached:
            return False
        self.finished_sending = False
        if self._rows_sent and not source.rewind():
            raise Aborted(
                "the connection broke, the server no longer knows the build, and the rows came from an iterator, which "
                "is read only once: start the build again")
        self._rows_sent = 0
        return True

    def request(self, block: Block) -> bytes:
        # The block counts as sent even if it is not, because the source has handed it out.
        self._rows_sent += block.rows
        return _wire.build_request(block)

    def report_sent(self) -> None:
        total = self._total_rows
        self._observer(Progress("sending", self._rows_sent, total, self._rows_sent / total if total else None))

    def finish(self) -> bytes:
        self.finished_sending = True
        return service_pb.BuildRequest(finish=service_pb.BuildFinish(row_count=self._rows_sent)).SerializeToString()

    def take(self, event: service_pb.BuildResponse) -> None:
        if event.HasField("accepted"):
            self._attached = event.accepted.attached
            self.finished_sending |= self._attached
        elif event.HasField("progress"):
            job = event.progress
            self._note_progress(job)
            phase = job.phase or mapping_pb.BuildJob.State.Name(job.state).lower()
            self._observer(Progress(phase, self._rows_sent or job.rows_received, self._total_rows, job.fraction, job))
        elif event.HasField("version"):
            self.version = event.version

    def _note_progress(self, job: mapping_pb.BuildJob) -> None:
        # A retried build may repeat work. Only progress beyond that of earlier attempts resets the
        # count of attempts.
        if self.finished_sending and job.fraction > self._furthest:
            self._retries.progressed()
        self._furthest = max(self._furthest, job.fraction)

    def result(self) -> mapping_pb.Version:
        """Returns the version. Called when the stream has ended."""
        if self.version is None:
            raise Internal("the server ended the build without a version")
        return self.version

    def wait_after(self, error: Error, rewinds: bool) -> float:
        """Returns the seconds to wait before the next attempt. Raises the error if there must be no
        further attempt."""
        # The server may notice a broken stream later than this client does, and holds the build id
        # until then.
        still_held = isinstance(error, Aborted) and self._retries.attempt > 1
        can_go_on = self.finished_sending or rewinds or not self._rows_sent
        # The server has already retried its calls to the kernel service.
        can_go_on = can_go_on and not error.reason.startswith("KERNEL_SERVICE_")
        wait = self._retries.wait_after(error, also=still_held) if can_go_on else None
        if wait is not None:
            return wait
        if isinstance(error, DeadlineExceeded) and self.finished_sending:
            error.metadata["build_id"] = self.spec.build_id
            error.add_note(f"The build goes on: build() with build_id={self.spec.build_id!r} and the same arguments "
                           "follows it, cancel_build() ends it.")
        raise of_stream(error) from None
