"""The decisions of one build or training: what to send, what an event means, and whether to retry.
The clients do the input and output."""
from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from google.protobuf.duration_pb2 import Duration

from phimap import _wire
from phimap._blocks import Block
from phimap._lifetime import Ttl, ttl_message
from phimap._retry import BUILD, Method, Retries
from phimap._rows import BlockLimits
from phimap.errors import KERNEL_SERVICE_LOST, Aborted, DeadlineExceeded, Error, Internal, of_stream
from phimap.progress import Observer, Progress
from phimap.results import BuildJob
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb

# Large enough that the cost per message is negligible, and small enough that a few queued messages
# take little memory.
BLOCK_LIMITS = BlockLimits(_wire.MAX_ROWS_PER_MESSAGE, 1 << 20)
# Maximum number of messages that wait for the network.
QUEUED_MESSAGES = 4
# Seconds for telling the server that a build was cancelled: the user is waiting.
CANCEL_TIMEOUT = 5.0


def seed_number(seed: int) -> int:
    """Returns the argument `seed` of a call. ValueError if it is not a seed."""
    if not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 64:
        raise ValueError(f"seed: expected an integer, 0..2**64-1, got {seed!r}")
    return int(seed)


def check_text(argument: str, text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{argument}: expected text, got {type(text).__name__} {text!r:.80}")


class Order:
    """Describes what makes a version: a build, or a training. Their streams have messages of one
    shape."""

    method: ClassVar[Method]
    # What it is, the method of Client that makes the call, and the message of a request.
    noun: ClassVar[str]
    verb: ClassVar[str]
    request: ClassVar[Any]
    # The mapping that gets the version.
    name: str
    build_id: str

    def message(self) -> Any:
        """Returns the first message of the stream."""
        raise NotImplementedError

    def rows_request(self, block: Block, begin: int) -> bytes:
        """Returns the serialized request that carries rows, of which `begin` rows were sent before."""
        raise NotImplementedError

    def check_count(self, rows: int) -> None:
        """Raises InvalidArgument if the stream must not have this number of rows."""


@dataclass(frozen=True)
class Spec(Order):
    """Describes what to build. See Client.build."""

    method, noun, verb, request = BUILD, "build", "build", service_pb.BuildRequest

    name: str
    spec: str
    kernel: str
    standardize: bool
    seed: int
    build_id: str
    ttl: Duration | None = None
    column_names: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, spec: str, kernel: str | None, standardize: bool, seed: int = 0,
           build_id: str | uuid.UUID | None = None, ttl: Ttl | None = None) -> Spec:
        for argument, text in (("name", name), ("spec", spec), ("kernel", "" if kernel is None else kernel)):
            check_text(argument, text)
        seed = seed_number(seed)
        if not isinstance(standardize, (bool, np.bool_)):  # any text would count as true
            raise TypeError(f"standardize: expected True or False, got {type(standardize).__name__} {standardize!r:.80}")
        return Spec(name, spec, kernel or "", bool(standardize), seed, str(build_id or uuid.uuid4()), ttl_message(ttl))

    def of_columns(self, names: tuple[str, ...] | None) -> Spec:
        """Returns the spec for rows whose columns have these names. With the kernel precomputed(),
        the columns are kernel values, so their names are not stored."""
        if names is None or self.kernel.lstrip().startswith("precomputed"):
            return self
        return replace(self, column_names=names)

    def message(self) -> service_pb.BuildSpec:
        return service_pb.BuildSpec(
            name=self.name, build_id=self.build_id, spec=self.spec, kernel=self.kernel, standardize=self.standardize,
            seed=self.seed, ttl=self.ttl, column_names=self.column_names)

    def rows_request(self, block: Block, begin: int) -> bytes:
        return _wire.build_request(block)


class BuildSession:
    """The state of one build or training: the rows to send, and the server's events.

    All attempts have the same build_id. A build that has received all its rows continues on the
    server even if the connection breaks. A build that has not is lost when the connection breaks,
    and its rows are sent again if their source can rewind.
    """

    def __init__(self, spec: Order, retries: Retries, observer: Observer, total_rows: int | None) -> None:
        if total_rows is not None:
            spec.check_count(total_rows)
        self.spec = spec
        self.method = spec.method
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

    def first(self) -> bytes:
        return bytes(self.spec.request(spec=self.spec.message()).SerializeToString())

    def request(self, block: Block) -> bytes:
        # The block counts as sent even if it is not, because the source has handed it out.
        begin = self._rows_sent
        self._rows_sent += block.rows
        return self.spec.rows_request(block, begin)

    def report_sent(self) -> None:
        total = self._total_rows
        self._observer(Progress("sending", self._rows_sent, total, self._rows_sent / total if total else None))

    def finish(self) -> bytes:
        self.spec.check_count(self._rows_sent)
        self.finished_sending = True
        finish = service_pb.BuildFinish(row_count=self._rows_sent)
        return bytes(self.spec.request(finish=finish).SerializeToString())

    def take(self, event: service_pb.BuildResponse | learning_pb.TrainResponse) -> None:
        if event.HasField("accepted"):
            self._attached = event.accepted.attached
            self.finished_sending |= self._attached
        elif event.HasField("progress"):
            job = event.progress
            self._note_progress(job)
            phase = job.phase or BuildJob(job).state
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
            raise Internal(f"the server ended the {self.spec.noun} without a version")
        return self.version

    def wait_after(self, error: Error, rewinds: bool) -> float:
        """Returns the seconds to wait before the next attempt. Raises the error if there must be no
        further attempt."""
        # The server may notice a broken stream later than this client does, and holds the build id
        # until then.
        still_held = isinstance(error, Aborted) and self._retries.attempt > 1
        can_go_on = self.finished_sending or rewinds or not self._rows_sent
        # The server has already retried its calls to the kernel service.
        can_go_on = can_go_on and error.reason not in KERNEL_SERVICE_LOST
        wait = self._retries.wait_after(error, also=still_held) if can_go_on else None
        if wait is not None:
            return wait
        if isinstance(error, DeadlineExceeded) and self.finished_sending:
            error.metadata["build_id"] = self.spec.build_id
            error.add_note(f"The server goes on: {self.spec.verb}() with build_id={self.spec.build_id!r} and the same arguments "
                           "follows it, cancel_build() ends it.")
        raise of_stream(error) from None
