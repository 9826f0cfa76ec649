"""Tests that the details of a server's error become attributes of the exception."""
import pickle

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2

import phimap
from phimap.errors import connection_broke, from_rpc_error, moved_by, of_stream
from phimap.rpc import error_details_pb2 as details_pb


class RpcError(grpc.RpcError):
    def __init__(self, code, message, details=b""):
        self._code, self._message, self._details = code, message, details

    def code(self):
        return self._code

    def details(self):
        return self._message

    def trailing_metadata(self):
        return (("grpc-status-details-bin", self._details),) if self._details else None


def packed(*details):
    status = details_pb.Status()
    for detail in details:
        status.details.append(any_pb2.Any(type_url=f"type.googleapis.com/google.rpc.{type(detail).__name__}",
                                          value=detail.SerializeToString()))
    return status.SerializeToString()


def bad_field(field):
    return details_pb.BadRequest(field_violations=[details_pb.BadRequest.FieldViolation(field=field)])


def test_field_row_column_limit_reason_and_retry_time_are_attributes():
    details = packed(
        bad_field("examples.dense.rows[17].columns[3]"),
        details_pb.ErrorInfo(reason="QUEUE_FULL", domain="phimap", metadata={"limit": "268435456", "actual": "3"}),
        details_pb.RetryInfo(retry_delay=duration_pb2.Duration(seconds=1, nanos=500_000_000)))
    error = from_rpc_error(RpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full", details), "h:1")
    assert isinstance(error, phimap.ResourceExhausted)
    assert str(error) == error.message == "the queue is full"
    assert error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.field == "examples.dense.rows[17].columns[3]"
    assert (error.row, error.column) == (17, 3)
    assert error.limit == 268435456
    assert error.reason == "QUEUE_FULL"
    assert error.metadata["actual"] == "3"
    assert error.retry_after == 1.5


def test_a_row_of_a_stream_wins_over_that_of_its_message():
    details = packed(bad_field("examples.dense.rows[3]"),
                     details_pb.ErrorInfo(metadata={"row": "3", "stream_row": "7003", "column": "2"}))
    error = from_rpc_error(RpcError(grpc.StatusCode.INVALID_ARGUMENT, "no", details), "h:1")
    assert (error.row, error.column) == (7003, 2)


def test_an_error_of_a_build_names_the_row_of_the_input_everywhere():
    error = of_stream(phimap.InvalidArgument(
        "examples.dense.rows[3].columns[2]: row 7003 of the stream: expected a finite number, got nan",
        field="examples.dense.rows[3].columns[2]", reason="VALUE_NOT_FINITE",
        metadata={"row": "3", "stream_row": "7003", "column": "2"}))
    assert error.message == "examples.dense.rows[7003].columns[2]: expected a finite number, got nan"
    assert error.field == "examples.dense.rows[7003].columns[2]"
    assert (error.row, error.column, error.reason, error.metadata["row"]) == (7003, 2, "VALUE_NOT_FINITE", "7003")
    other = phimap.InvalidArgument("kernel: no", field="kernel", metadata={"column": "3"})
    assert of_stream(other) is other


@pytest.mark.parametrize("text, limit", [("12", 12), ("0.001", 0.001), ("5m", "5m")])
def test_a_limit_is_a_number_where_it_is_one(text, limit):
    assert phimap.Error("no", metadata={"limit": text}).limit == limit


@pytest.mark.parametrize("details", [b"", b"\xff\xff", packed(bad_field(""))[:-1]])
def test_code_and_message_survive_details_that_are_missing_or_malformed(details):
    error = from_rpc_error(RpcError(grpc.StatusCode.NOT_FOUND, "no mapping", details), "h:1")
    assert isinstance(error, phimap.NotFound)
    assert error.message == "no mapping"
    assert error.row is None and error.limit is None and error.retry_after is None


@pytest.mark.parametrize("code, kind, base", [
    (grpc.StatusCode.INVALID_ARGUMENT, phimap.InvalidArgument, ValueError),
    (grpc.StatusCode.OUT_OF_RANGE, phimap.OutOfRange, ValueError),
    (grpc.StatusCode.NOT_FOUND, phimap.NotFound, LookupError),
    (grpc.StatusCode.DEADLINE_EXCEEDED, phimap.DeadlineExceeded, TimeoutError),
    (grpc.StatusCode.UNAVAILABLE, phimap.Unavailable, ConnectionError),
    (grpc.StatusCode.UNIMPLEMENTED, phimap.Unimplemented, NotImplementedError),
    (grpc.StatusCode.PERMISSION_DENIED, phimap.PermissionDenied, PermissionError),
    (grpc.StatusCode.FAILED_PRECONDITION, phimap.FailedPrecondition, phimap.Error),
    (grpc.StatusCode.DATA_LOSS, phimap.DataLoss, phimap.Error),
    (grpc.StatusCode.UNKNOWN, phimap.Error, Exception)])
def test_each_code_has_its_class(code, kind, base):
    error = from_rpc_error(RpcError(code, "x"), "h:1")
    assert type(error) is kind and isinstance(error, base) and error.code is code


def test_every_code_but_unknown_has_a_class_of_its_own():
    kinds = {type(from_rpc_error(RpcError(code, "x"), "h:1")) for code in grpc.StatusCode
             if code is not grpc.StatusCode.OK}
    assert len(kinds) == 16


def test_no_answer_names_the_server_that_was_asked():
    error = from_rpc_error(RpcError(grpc.StatusCode.UNAVAILABLE, "connection refused"), "127.0.0.1:7450")
    assert error.message == "no answer from phimapd at 127.0.0.1:7450: connection refused"
    assert connection_broke(error)


def test_errors_pickle_with_all_they_carry():
    error = phimap.InvalidArgument("bad", field="a.rows[2]", reason="R", metadata={"limit": "5"}, retry_after=0.25)
    error.add_note("more")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is phimap.InvalidArgument
    assert again.__dict__ == error.__dict__
    assert again.args == error.args


def test_a_row_of_a_message_becomes_a_row_of_the_input():
    moved = moved_by(phimap.OutOfRange("examples.dense.rows[3]: request 7: overflow", field="examples.dense.rows[3]",
                                       metadata={"row": "3", "column": "1", "request": "7"}), 100)
    assert type(moved) is phimap.OutOfRange
    assert (moved.row, moved.column, moved.field) == (103, 1, "examples.dense.rows[103]")
    assert moved.message == "examples.dense.rows[103]: overflow"
    assert moved.metadata == {"row": "103", "column": "1"}


def test_a_row_that_the_message_does_not_name_is_put_before_it():
    assert moved_by(phimap.OutOfRange("overflow", row=3), 100).message == "row 103 of the input: overflow"
    assert moved_by(phimap.OutOfRange("overflow", row=3), 0).message == "overflow"


def test_an_error_without_a_row_stays_without_one_and_names_no_request():
    moved = moved_by(phimap.NotFound("request 0: no mapping is named \"x\"", metadata={"request": "0"}), 100)
    assert moved.row is None and moved.message == "no mapping is named \"x\""


def test_a_deadline_says_what_sets_it():
    error = from_rpc_error(RpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"), "h:1")
    assert error.message.startswith("phimapd at h:1 had not answered when the time was up; `timeout=` of a call")


def test_reasons_are_those_of_the_enum():
    assert phimap.Reason.ALIAS_NOT_FOUND == "ALIAS_NOT_FOUND"
    assert "COLUMNS_MISMATCH" in dir(phimap.Reason)
    with pytest.raises(AttributeError, match="error_reason.proto lists the reasons"):
        phimap.Reason.NO_SUCH_ALIAS
