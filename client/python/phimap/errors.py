"""Exceptions for the errors that a server reports.

Each canonical gRPC code has a subclass of `Error`. It also derives from Python's own exception
where there is one: a bad argument is a `ValueError`, an unknown name a `LookupError`, a missed
deadline a `TimeoutError`, a lost server a `ConnectionError`.
"""
from __future__ import annotations

import re
from typing import Any, Mapping

import grpc
from google.protobuf.message import DecodeError

from phimap.rpc import error_details_pb2 as details_pb
from phimap.v1 import error_reason_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_ROW = re.compile(r"\brows\[(\d+)\]")
_COLUMN = re.compile(r"\bcolumns\[(\d+)\]")


class _Reasons:
    """The values of the generated enum phimap.v1.error_reason_pb2.ErrorReason, as the texts that
    `Error.reason` has, which are their names without ERROR_REASON_."""

    def __getattr__(self, name: str) -> str:
        if f"ERROR_REASON_{name}" not in error_reason_pb2.ErrorReason.keys():
            raise AttributeError(f"no error has the reason {name!r}; phimap/v1/error_reason.proto lists the reasons")
        return name

    def __dir__(self) -> list[str]:
        return [name.removeprefix("ERROR_REASON_") for name in error_reason_pb2.ErrorReason.keys()]


Reason = _Reasons()
# The errors of a call after the server has itself retried its calls to a kernel service.
KERNEL_SERVICE_LOST = (Reason.KERNEL_SERVICE_UNAVAILABLE, Reason.KERNEL_SERVICE_TIMED_OUT)


class Error(Exception):
    """An error of a call, with the server's own details.

    Attributes:
        code: the canonical gRPC code.
        message: what was expected, what came, and the limit in force.
        field: the argument at fault, or the parameter in its text (`gamma`, `landmarks`), or its
            path in the request; or None.
        row, column: position in the input as it was given, from 0, or None. Rows are counted over
            all the rows of a call, however many messages carried them. Without a row, `column` is
            the position of the error in the text of `field`, from 1.
        limit: the limit that was exceeded, or None.
        reason: a stable text for programs to switch on, such as `phimap.Reason.ALIAS_NOT_FOUND`; ""
            if the server gave none. A newer server may give one that `phimap.Reason` does not have.
        metadata: the numbers of the message in machine-readable form, as text.
        retry_after: seconds after which the same call may succeed, or None if waiting does not help.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, *, code: grpc.StatusCode | None = None, field: str | None = None,
                 reason: str = "", metadata: Mapping[str, str] | None = None, retry_after: float | None = None,
                 row: int | None = None) -> None:
        super().__init__(message)
        self.code = code if code is not None else type(self).code
        self.message = message
        self.field = field
        self.reason = reason
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        self.row = row if row is not None else self._place("stream_row", "row", pattern=_ROW)
        self.column = self._place("column", pattern=_COLUMN)
        self.limit = _number(self.metadata.get("limit"))

    def _place(self, *keys: str, pattern: re.Pattern[str]) -> int | None:
        for key in keys:
            if self.metadata.get(key, "").isdecimal():
                return int(self.metadata[key])
        found = pattern.search(self.field or "")
        return int(found[1]) if found else None

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process returns errors by pickling, whose default would call __init__ with the
        # message alone.
        return _revive, (type(self), self.message, self.__dict__)


class Cancelled(Error):
    code = grpc.StatusCode.CANCELLED


class InvalidArgument(Error, ValueError):
    code = grpc.StatusCode.INVALID_ARGUMENT


class DeadlineExceeded(Error, TimeoutError):
    code = grpc.StatusCode.DEADLINE_EXCEEDED


class NotFound(Error, LookupError):
    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(Error):
    code = grpc.StatusCode.ALREADY_EXISTS


class PermissionDenied(Error, PermissionError):
    code = grpc.StatusCode.PERMISSION_DENIED


class ResourceExhausted(Error):
    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPrecondition(Error):
    code = grpc.StatusCode.FAILED_PRECONDITION


class Aborted(Error):
    code = grpc.StatusCode.ABORTED


class OutOfRange(Error, ValueError):
    code = grpc.StatusCode.OUT_OF_RANGE


class Unimplemented(Error, NotImplementedError):
    code = grpc.StatusCode.UNIMPLEMENTED


class Internal(Error):
    code = grpc.StatusCode.INTERNAL


class Unavailable(Error, ConnectionError):
    code = grpc.StatusCode.UNAVAILABLE


class DataLoss(Error):
    code = grpc.StatusCode.DATA_LOSS


class Unauthenticated(Error, PermissionError):
    code = grpc.StatusCode.UNAUTHENTICATED


_CLASSES: dict[grpc.StatusCode, type[Error]] = {
    kind.code: kind
    for kind in (Cancelled, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied,
                 ResourceExhausted, FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal, Unavailable,
                 DataLoss, Unauthenticated)
}


def from_rpc_error(error: grpc.RpcError, target: str) -> Error:
    """Returns the exception for a call to `target` that failed. Ignores details that are unknown or
    malformed."""
    code = error.code()
    message = error.details() or ""
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    packed = trailers.get(_DETAILS_KEY)
    known = _read_details(packed) if isinstance(packed, bytes) else {}
    message = _in_callers_words(message, known)
    if code is grpc.StatusCode.UNAVAILABLE and not known:
        message = f"no answer from phimapd at {target}: {message}"
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED and message == "Deadline Exceeded":
        message = (f"phimapd at {target} had not answered when the time was up; `timeout=` of a call, or else the service "
                   "config, says how long it may take")
    return _CLASSES.get(code, Error)(message, code=code, **known)


def of_details(number: int, packed: bytes) -> Error:
    """Returns the exception for the number of a canonical code and the serialized details of phimap's library."""
    code = next((code for code in grpc.StatusCode if code.value[0] == number), grpc.StatusCode.UNKNOWN)
    known = _read_details(packed)
    message = _in_callers_words(details_pb.Status.FromString(packed).message or "not enough memory", known)
    return _CLASSES.get(code, Error)(message, code=code, **known)


def _in_callers_words(message: str, known: dict[str, Any]) -> str:
    """Makes the field in `known` the argument of the caller, or the parameter in its text, that the request
    carried in its spec. Returns the message with that name."""
    for outer in ("spec.build.", "spec.tuning.", "spec."):
        if known.get("field", "").startswith(outer):
            known["field"] = known["field"].removeprefix(outer)
            return message.removeprefix(outer)
    return message


def in_words_of(error: Error, names: Mapping[str, str]) -> Error:
    """Returns `error` with the caller's own name of the parameter at fault; `names` has them by the
    API's names."""
    name = names.get(error.field or "")
    if name is None:
        return error
    message = re.sub(rf"\b{error.field}\b", name, error.message)
    return type(error)(message, code=error.code, field=name, reason=error.reason, metadata=error.metadata,
                       retry_after=error.retry_after, row=error.row)


def connection_broke(error: Error) -> bool:
    """Returns True if the connection broke or could not be made, or if the server is
    unavailable."""
    # gRPC 1.51 reports "Stream removed" when the transport closes between two operations of a
    # stream.
    return isinstance(error, Unavailable) or (
        error.code is grpc.StatusCode.UNKNOWN and "Stream removed" in error.message)


def was_not_begun(error: Error) -> bool:
    """Returns True if the server reports that it did not begin the call, so that any call may be
    retried."""
    return isinstance(error, Unavailable) and error.reason in (Reason.SERVER_SHUTTING_DOWN,
                                                                 Reason.REVISION_NOT_REACHED)


def moved_by(error: Error, rows: int) -> Error:
    """Returns `error` with its row counted in the input, which users know. The server counts rows
    within a request of the stream; `rows` rows of the input precede that request."""
    metadata = dict(error.metadata)
    message = error.message.replace(f"request {metadata.pop('request', '')}: ", "", 1)
    row, field = error.row, error.field
    if row is not None and "stream_row" not in metadata:
        of_message, row = f"rows[{row}]", row + rows
        if of_message in message:
            message = message.replace(of_message, f"rows[{row}]", 1)
        elif rows:
            message = f"row {row} of the input: {message}"
        field = field.replace(of_message, f"rows[{row}]", 1) if field is not None else None
        metadata["row"] = str(row)
    return type(error)(message, code=error.code, field=field, reason=error.reason, metadata=metadata,
                       retry_after=error.retry_after, row=row)


def of_stream(error: Error) -> Error:
    """Returns `error` with its row counted in the stream, which users know. The server counts rows
    within a message (`row`) and adds the row of the stream (`stream_row`)."""
    metadata = dict(error.metadata)
    row = metadata.get("stream_row", "")
    if not row.isdecimal():
        return error
    of_message = f"rows[{metadata.get('row', row)}]"
    message = error.message.replace(of_message, f"rows[{row}]", 1)
    if f"rows[{row}]" in message:
        message = message.replace(f"row {row} of the stream: ", "", 1)
    field = error.field.replace(of_message, f"rows[{row}]", 1) if error.field is not None else None
    metadata["row"] = row
    return type(error)(message, code=error.code, field=field, reason=error.reason, metadata=metadata,
                       retry_after=error.retry_after)


def _read_details(packed: bytes) -> dict[str, Any]:
    """Returns arguments of Error from the trailing metadata; {} if there is nothing to read."""
    known: dict[str, Any] = {}
    try:
        for detail in details_pb.Status.FromString(packed).details:
            # Our messages have the same wire format as the canonical messages that the URL names.
            name = detail.type_url.rpartition("/")[2]
            if name == "google.rpc.BadRequest":
                for violation in details_pb.BadRequest.FromString(detail.value).field_violations[:1]:
                    known["field"] = violation.field
            elif name == "google.rpc.ErrorInfo":
                info = details_pb.ErrorInfo.FromString(detail.value)
                known |= {"reason": info.reason, "metadata": dict(info.metadata)}
            elif name == "google.rpc.RetryInfo":
                delay = details_pb.RetryInfo.FromString(detail.value).retry_delay
                known["retry_after"] = max(delay.seconds + delay.nanos / 1e9, 0.0)
    except DecodeError:
        pass
    return known


def _number(text: str | None) -> int | float | str | None:
    """Returns a limit as a number, or as the server wrote it if it is not a number ("5m")."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def _revive(kind: type[Error], message: str, state: dict[str, Any]) -> Error:
    error = kind(message)
    error.__dict__.update(state)
    return error
