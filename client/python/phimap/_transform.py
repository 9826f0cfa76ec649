"""The decisions of one transform or prediction over a stream: what to send next, what an answer means,
and whether to retry.

The synchronous and the asynchronous client share this code; each does only its own input and output.
"""
from __future__ import annotations

import collections
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from phimap import _wire
from phimap._blocks import Block
from phimap._columns import in_order, refused_for_names
from phimap._pins import Pins, elsewhere, nowhere, reference_to
from phimap._retry import TRANSFORM, TRANSFORM_STREAM, Method, Retries
from phimap._rows import BlockLimits
from phimap.errors import Aborted, Error, FailedPrecondition, Internal, InvalidArgument, NotFound, Reason, ResourceExhausted
from phimap.errors import moved_by
from phimap.v1 import mapping_pb2 as mapping_pb

# Target size of a request, and of its answer: large enough to hide the cost per message, and small
# enough that a window of messages takes little memory.
MESSAGE_BYTES = 1 << 20
# Largest request for one Transform call, without a stream.
UNARY_BYTES = 4 << 20
# Number of rows of the first request, before the width of the features is known: so few that even
# 65,536 doubles per row stay under a quarter of the message limit.
FIRST_ROWS = 16
DEFAULT_WINDOW = 8

Features = np.ndarray[Any, np.dtype[Any]]
# What a call answers to some rows: features, or a prediction.
T = TypeVar("T")


class Gathered(Protocol[T]):
    """All answers of a stream as one."""

    def add(self, answer: T) -> None: ...

    def result(self) -> T:
        """Returns the answers as one. REQUIRES: there is at least one."""


class RowCall(Generic[T]):
    """The request that a call makes for each block of its rows, and how its answers are read. For one
    call."""

    # Its methods for one block and for a stream of them.
    unary: ClassVar[Method]
    stream: ClassVar[Method]
    # Its phase in Progress.
    phase: ClassVar[str]
    # Limit of the rows of a request.
    most_rows: ClassVar[int] = _wire.MAX_ROWS_PER_MESSAGE
    # Bytes of a row of an answer before any has come, from above; None if they are not known at all.
    first_row_bytes: int | None = None
    # Calls whose answers to a version have rows of the same size have the same kind.
    kind: str = ""

    def request(self, reference: str, expected_digest: str, block: Block) -> bytes:
        """Returns the serialized request. In a stream, only the first one has a reference."""
        raise NotImplementedError

    def take(self, answer: bytes, rows: int) -> tuple[mapping_pb.VersionRef | None, T]:
        """Returns the version, if the answer has one, and the answer to `rows` rows."""
        raise NotImplementedError

    def row_bytes(self, answer: T) -> int:
        """Returns the bytes of a row of `answer` in a message."""
        raise NotImplementedError

    def gathered(self, row_count: int | None) -> Gathered[T]:
        """Returns what gathers the answers to `row_count` rows, None if their number is not known."""
        raise NotImplementedError


class TransformCall(RowCall[Features]):
    """With `residual`, the last two columns of the features are residuals and allowances."""

    unary, stream, phase = TRANSFORM, TRANSFORM_STREAM, "transforming"

    def __init__(self, residual: bool = False) -> None:
        self._residual = residual

    def request(self, reference: str, expected_digest: str, block: Block) -> bytes:
        return _wire.transform_request(reference, expected_digest, block, self._residual)

    def take(self, answer: bytes, rows: int) -> tuple[mapping_pb.VersionRef | None, Features]:
        return _wire.features_of(answer, rows, self._residual)

    def row_bytes(self, answer: Features) -> int:
        return int(answer.shape[1] * answer.itemsize)

    def gathered(self, row_count: int | None) -> Gathered[Features]:
        return GatheredFeatures(row_count)


class Widths:
    """Bytes of a row of an answer when each reference was last used. They are guesses, from which
    the size of messages is chosen. Thread-safe: each step is atomic in the interpreter."""

    def __init__(self) -> None:
        self._row_bytes: dict[tuple[str, str], int] = {}

    def row_bytes(self, call: RowCall[T], reference: str) -> int | None:
        return self._row_bytes.get((call.kind, reference), call.first_row_bytes)

    def observe(self, call: RowCall[T], target: Target, version: mapping_pb.VersionRef, answer: T) -> None:
        row_bytes = call.row_bytes(answer)
        if self._row_bytes.get((call.kind, target.reference)) != row_bytes:
            for reference in (target.reference, reference_to(version)):
                self._row_bytes[call.kind, reference] = row_bytes

    def fit_one_call(self, call: RowCall[T], target: Target, block: Block) -> bool:
        """Returns True if the rows fit into one message and, as far as the size is known, so do their
        answers."""
        row_bytes = self.row_bytes(call, target.reference)
        rows = FIRST_ROWS if row_bytes is None else min(UNARY_BYTES // row_bytes, call.most_rows)
        return block.rows <= rows and block.fitting(0, UNARY_BYTES) >= block.rows


class Target(NamedTuple):
    """A resolved pin: the version that a call requests, and the digest that it must have."""

    asked: str
    reference: str
    expected_digest: str

    @staticmethod
    def resolve(pins: Pins, reference: str, expected_digest: str) -> Target:
        pinned, digest = pins.resolve(reference)
        if expected_digest and digest and expected_digest != digest:
            raise FailedPrecondition(
                f"expected_digest: {reference!r} is pinned to {pinned} of digest {digest}, got {expected_digest}; "
                "unpin() forgets the pin", field="expected_digest", reason=Reason.DIGEST_MISMATCH,
                metadata={"expected": expected_digest, "actual": digest})
        return Target(reference, pinned, expected_digest or digest)

    def elsewhere(self, error: Error) -> Target | None:
        """Returns the target that requests the version by its digest, if `error` refused the
        version's number; else None."""
        found = elsewhere(self.reference, self.expected_digest, error)
        return Target(self.asked, found, self.expected_digest) if found else None


class RowSession(Generic[T]):
    """The state of one call over a stream: its unanswered requests, and the version that answers
    them.

    After a stream breaks, the next one begins with the first unanswered request, on the version
    that answered before. The call changes nothing, so this is always safe. A refusal with a retry
    delay is handled in the same way.
    """

    def __init__(self, call: RowCall[T], target: Target, retries: Retries, row_bytes: int | None,
                 window: int | None, rows_per_request: int | None) -> None:
        self.call = call
        self._target = target
        self._retries = retries
        # Bytes of a row in an answer; None until they are known.
        self._row_bytes = row_bytes
        self._window = window or DEFAULT_WINDOW
        self._rows_per_request = rows_per_request
        self._unanswered: collections.deque[Block] = collections.deque()
        self._ended = False
        # Rows with an answer.
        self.rows_done = 0
        # Number of answers on the stream that is open now.
        self._answered_here = 0
        self._first_request = True
        self._version: mapping_pb.VersionRef | None = None
        # The error that refused the version's number, if the version was then requested by digest.
        self._refused: Error | None = None
        # The version's column names, once it has refused rows with other names.
        self._names: tuple[str, ...] | None = None

    def limits(self) -> BlockLimits | None:
        """Returns the limits of the next request; None while the window is full or the input has
        ended."""
        known = self._row_bytes is not None or self._rows_per_request is not None
        if self._ended or len(self._unanswered) >= (self._window if known else 1):
            return None
        if self._rows_per_request is not None:
            return BlockLimits(self._rows_per_request, _wire.MAX_ROWS_PER_MESSAGE * MESSAGE_BYTES)
        if self._row_bytes is None:
            return BlockLimits(FIRST_ROWS, MESSAGE_BYTES)
        fitting = max(1, MESSAGE_BYTES // self._row_bytes)
        return BlockLimits(min(fitting, self.call.most_rows), MESSAGE_BYTES)

    def request(self, block: Block) -> bytes:
        block = in_order(block, self._names or (), self._target.reference)
        self._unanswered.append(block)
        return self._serialized(block)

    def wants_names_after(self, error: Error) -> str | None:
        """Returns the reference of the version if it refused the rows for their column names: the
        caller must then pass the version's names to `arrange`. None after any other error."""
        return self._target.reference if refused_for_names(error) and self._names is None else None

    def arrange(self, names: tuple[str, ...]) -> None:
        """Puts the columns of unanswered and later rows in the order of `names`, the version's column
        names. InvalidArgument, with both lists, if the rows have other names."""
        self._names = names
        for i, block in enumerate(self._unanswered):
            self._unanswered[i] = in_order(block, names, self._target.reference)

    def end(self) -> None:
        """Ends the input: there are no more rows."""
        self._ended = True

    def finished(self) -> bool:
        return self._ended and not self._unanswered

    def again(self) -> list[bytes]:
        """Returns the messages with which a reopened stream starts: the unanswered requests."""
        self._first_request = True
        self._answered_here = 0
        return [self._serialized(block) for block in self._unanswered]

    def take(self, answer: bytes | None) -> tuple[T, mapping_pb.VersionRef]:
        """Returns the answer to the first unanswered request, and the version that answers for all
        rows. An answer of None is the end of the stream."""
        if answer is None:
            raise Internal(f"the server ended the stream and left {len(self._unanswered)} requests unanswered")
        block = self._unanswered[0]
        version, taken = self.call.take(answer, block.rows)
        if self._version is None:
            if version is None:
                raise Internal("the server's first answer has no version")
            self._version = version
            self._target = Target(self._target.asked, reference_to(version), version.digest)
        self._unanswered.popleft()
        self._answered_here += 1
        self.rows_done += block.rows
        self._row_bytes = self.call.row_bytes(taken)
        self._retries.progressed()
        return taken, self._version

    def wait_after(self, error: Error) -> float:
        """Returns the seconds to wait before the stream is reopened. Raises the error if it must not
        be reopened."""
        error = self._in_input(error)
        found = self._target.elsewhere(error)
        if found is not None:
            # The digest pins the version, so no row has been mapped by another one.
            self._refused = explained(error, self._target)
            self._target = found
            return 0.0
        wait = self._retries.wait_after(error)
        if wait is None:
            # No version has the digest either, so report why the number was refused.
            if self._refused is not None and nowhere(error):
                raise self._refused
            raise explained(error, self._target)
        return wait

    def _serialized(self, block: Block) -> bytes:
        first, self._first_request = self._first_request, False
        target = self._target
        return self.call.request(target.reference if first else "", target.expected_digest if first else "", block)

    def _in_input(self, error: Error) -> Error:
        """Returns the error with its row counted in the input, which users know. The server counts
        rows within a request, and requests within a stream."""
        number = error.metadata.get("request", "")
        index = int(number) - self._answered_here if number.isdecimal() else 0
        between = sum(block.rows for block in list(self._unanswered)[:max(index, 0)])
        return moved_by(error, self.rows_done + between)


def check_stream_options(window: int, rows_per_request: int | None) -> None:
    if window < 1:
        raise ValueError(f"window: expected at least 1, got {window}")
    if rows_per_request is not None and not 1 <= rows_per_request <= _wire.MAX_ROWS_PER_MESSAGE:
        raise ValueError(f"rows_per_request: expected 1..{_wire.MAX_ROWS_PER_MESSAGE}, got {rows_per_request}")


class GatheredFeatures:
    """All features of a stream as one array, which is allocated once their width is known. If a
    single block has all rows, that block is the array."""

    def __init__(self, row_count: int | None) -> None:
        self._row_count = row_count
        self._blocks: list[Features] = []
        self._out: Features | None = None
        self._rows = 0

    def add(self, answer: Features) -> None:
        rows = len(answer)
        if self._row_count is None or rows == self._row_count:
            self._blocks.append(answer)
        else:
            if self._out is None:
                self._out = np.empty((self._row_count, answer.shape[1]), answer.dtype)
            self._out[self._rows:self._rows + rows] = answer
        self._rows += rows

    def result(self) -> Features:
        if self._out is not None:
            return self._out
        return self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)


def needs_stream(error: Error, target: Target) -> bool:
    """Returns True if a refused call should be made as a stream: because of its size, or because a
    RowSession can request the version by its digest or rearrange the columns."""
    return too_large(error) or refused_for_names(error) or target.elsewhere(error) is not None


def too_large(error: Error) -> bool:
    """Returns True if a request or its answer exceeds a message limit. gRPC gives no reason if it is
    this client's own limit."""
    return error.reason == Reason.MESSAGE_TOO_LARGE or (isinstance(error, ResourceExhausted) and not error.reason)


def no_rows() -> InvalidArgument:
    return InvalidArgument("rows: expected at least 1, got none")


def explained(error: Error, target: Target) -> Error:
    """Returns `error`. If it is about a pinned version, which is not the reference that the user
    gave, adds a note that says why that version was requested."""
    missing = isinstance(error, NotFound) or error.reason == Reason.HEAD_MISSING
    if missing and target.asked != target.reference:
        error.add_note(f"{target.asked!r} is pinned to {target.reference}, the version that it meant when this client first "
                       f"used it; unpin({target.asked!r}) forgets that.")
    return error


def pinned_meanwhile(reference: str) -> Aborted:
    return Aborted(f"{reference!r} was pinned to another version by another thread while these rows, which can be read only "
                   "once, were being sent: call again")
