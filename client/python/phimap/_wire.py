"""Converts rows to messages and messages to features, with as few copies of the values as possible.

protobuf would copy a `bytes` field on assignment, on serialization, and when it is read. Here only
the few small fields go through the generated classes. Values are written directly into the
serialized message (one copy, which also converts) or viewed in place in it (no copy). The wire
format is the same.
"""
from __future__ import annotations

import functools
import io
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from phimap._blocks import FLOAT32, FLOAT64, Block, SparseBlock, StringsBlock, contiguous
from phimap._columns import names_hash
from phimap.errors import Internal
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import examples_pb2 as examples_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as mapping_service_pb
from phimap.v1 import predict_service_pb2 as predict_service_pb
from phimap.v1 import transform_service_pb2 as transform_service_pb

# The API's limit.
MAX_ROWS_PER_MESSAGE = 65_536

# Values of at most this size are copied once more: for a few rows that takes less time than to write them in place.
_SMALL = 1 << 16

_LENGTH_DELIMITED = 2


def _field(message: Any, name: str) -> int:
    return int(message.DESCRIPTOR.fields_by_name[name].number)


_DENSE = _field(examples_pb.Examples, "dense")
_VALUES = {FLOAT32: _field(examples_pb.DenseRows, "float32_le"), FLOAT64: _field(examples_pb.DenseRows, "float64_le")}
_DTYPES = {number: dtype for dtype, number in _VALUES.items()}
_FEATURES = _field(transform_service_pb.TransformResponse, "features")
_TRANSFORM_EXAMPLES = _field(transform_service_pb.TransformRequest, "examples")
_BUILD_EXAMPLES = _field(mapping_service_pb.BuildRequest, "examples")
_EVALUATE_EXAMPLES = _field(learning_pb.EvaluateRequest, "examples")
_LABELED_EXAMPLES = _field(learning_pb.LabeledExamples, "examples")
_TRAIN_EXAMPLES = _field(learning_pb.TrainRequest, "examples")
_TRAINING_EXAMPLES = _field(learning_pb.TrainingExamples, "examples")
_PREDICT_EXAMPLES = _field(predict_service_pb.PredictRequest, "examples")


def transform_request(reference: str, expected_digest: str, block: Block, residual: bool = False) -> bytes:
    """A serialized TransformRequest."""
    if isinstance(block, (SparseBlock, StringsBlock)):
        return _with_examples(_transform_head(reference, expected_digest, block.names, residual), _TRANSFORM_EXAMPLES, block)
    return _with_values(_dense_transform_head(reference, expected_digest, block.names, residual, block.rows, block.columns,
                                              block.dtype), block)


def _transform_head(reference: str, expected_digest: str, names: tuple[str, ...] | None, residual: bool) -> bytes:
    return transform_service_pb.TransformRequest(
        reference=reference, expected_digest=expected_digest, residual=residual,
        column_names_hash=names_hash(names) if reference else 0).SerializeToString()  # in a stream, only the first request has the hash


@functools.lru_cache(maxsize=256)
def _dense_transform_head(reference: str, expected_digest: str, names: tuple[str, ...] | None, residual: bool, rows: int,
                          columns: int, dtype: np.dtype[Any]) -> bytes:
    """Everything before the values, which is the same in each call of a caller who sends a row at a time."""
    return _dense_head(_transform_head(reference, expected_digest, names, residual), _TRANSFORM_EXAMPLES, rows, columns, dtype)


def build_request(block: Block) -> bytes:
    """A serialized BuildRequest that carries rows."""
    return _with_examples(b"", _BUILD_EXAMPLES, block)


def evaluate_request(block: Block, labels: list[str]) -> bytes:
    """A serialized EvaluateRequest that carries rows and their labels."""
    known = learning_pb.LabeledExamples(labels=labels)
    return _nested(_EVALUATE_EXAMPLES, _with_examples(known.SerializeToString(), _LABELED_EXAMPLES, block))


def train_request(block: Block, known: learning_pb.TrainingExamples) -> bytes:
    """A serialized TrainRequest that carries rows and what is known of each."""
    return _nested(_TRAIN_EXAMPLES, _with_examples(known.SerializeToString(), _TRAINING_EXAMPLES, block))


def predict_request(wanted: predict_service_pb.PredictRequest, reference: str, expected_digest: str, block: Block) -> bytes:
    """A serialized PredictRequest that asks for what `wanted` asks for."""
    head = predict_service_pb.PredictRequest(
        reference=reference, expected_digest=expected_digest, column_names_hash=names_hash(block.names) if reference else 0)
    head.MergeFrom(wanted)
    return _with_examples(head.SerializeToString(), _PREDICT_EXAMPLES, block)


def _nested(field: int, content: bytes) -> bytes:
    return _tag(field) + _varint(len(content)) + content


def _with_examples(head: bytes, field: int, block: Block) -> bytes:
    if isinstance(block, (SparseBlock, StringsBlock)):
        examples = _sparse_examples(block) if isinstance(block, SparseBlock) else _string_examples(block)
        return head + _tag(field) + _varint(len(examples)) + examples
    return _with_values(_dense_head(head, field, block.rows, block.columns, block.dtype), block)


def _dense_head(head: bytes, field: int, rows: int, columns: int, dtype: np.dtype[Any]) -> bytes:
    """Returns `head` and what stands before the values of dense examples in the field `field`."""
    value_bytes = rows * columns * dtype.itemsize
    shape = examples_pb.DenseRows(rows=rows, columns=columns).SerializeToString()
    dense = shape + _tag(_VALUES[dtype]) + _varint(value_bytes)
    examples = _tag(_DENSE) + _varint(len(dense) + value_bytes) + dense
    return head + _tag(field) + _varint(len(examples) + value_bytes) + examples


def _with_values(head: bytes, block: Block) -> bytes:
    """Returns `head` and the values of a dense block."""
    value_bytes = block.rows * block.columns * block.dtype.itemsize
    if value_bytes <= _SMALL:
        return head + contiguous(block).tobytes()
    # gRPC accepts only `bytes`. This makes a `bytes` object without a second copy: BytesIO writes
    # into the zeroed object that it is given, and returns that object.
    message = io.BytesIO(bytes(len(head) + value_bytes))
    message.write(head)
    with message.getbuffer() as view:
        values = np.frombuffer(view, block.dtype, offset=len(head)).reshape(block.rows, block.columns)
        block.write_to(values)
        del values  # otherwise the view could not be released
    return message.getvalue()


def _sparse_examples(block: SparseBlock) -> bytes:
    rows = examples_pb.SparseRows(
        rows=block.rows, columns=block.columns,
        row_offsets_le=block.csr.indptr.astype("<i8").tobytes(),
        column_indices_le=block.csr.indices.astype("<i4").tobytes())
    values = block.csr.data.astype(block.dtype).tobytes()
    if block.dtype == FLOAT32:
        rows.float32_le = values
    else:
        rows.float64_le = values
    return examples_pb.Examples(sparse=rows).SerializeToString()


def _string_examples(block: StringsBlock) -> bytes:
    if block.are_texts:
        return examples_pb.Examples(text=examples_pb.TextExamples(values=block.values)).SerializeToString()
    return examples_pb.Examples(bytes=examples_pb.BytesExamples(values=block.values)).SerializeToString()


def features_of(answer: bytes, rows: int,
                residual: bool = False) -> tuple[mapping_pb.VersionRef | None, np.ndarray[Any, Any]]:
    """Returns the version (if the answer has one) and the features of a serialized
    TransformResponse to `rows` rows.

    The array is a read-only view of the answer's bytes. If the values are not aligned there, it is
    a copy: numpy accepts unaligned arrays, but compiled code that users pass them to may not.
    """
    known = _frames.get((len(answer), rows))
    if known is not None and not residual and answer.startswith(known.before) and answer.endswith(known.after):
        return known.version, _features_in(answer, rows, known.columns, known.dtype, len(known.before))
    try:
        version, dense, values, residuals, allowances = _split(answer)
    except (DecodeError, IndexError) as error:
        raise Internal(f"the server's answer is not a message: {error}") from None
    if values is None:
        raise Internal("the server's answer has features with neither float32_le nor float64_le")
    dtype, start, stop = values
    if dense.rows != rows or dense.columns < 1 or stop - start != rows * dense.columns * dtype.itemsize:
        raise Internal(f"the server answered {dense.rows} rows of {dense.columns} features in {stop - start} bytes to a "
                       f"request of {rows} rows")
    features = _features_in(answer, rows, dense.columns, dtype, start)
    if residual:
        return version, _with_residuals(features, residuals, allowances)
    if len(_frames) >= _MOST_FRAMES:
        _frames.clear()
    _frames[len(answer), rows] = _Frame(answer[:start], answer[stop:], version, dense.columns, dtype)
    return version, features


class _Frame(NamedTuple):
    """What surrounds the values in an answer: answers of a version to as many rows differ in nothing else."""

    before: bytes
    after: bytes
    version: mapping_pb.VersionRef | None
    columns: int
    dtype: np.dtype[Any]


# By the size of the answer and the number of its rows. Each step is atomic in the interpreter.
_frames: dict[tuple[int, int], _Frame] = {}
_MOST_FRAMES = 256


def _features_in(answer: bytes, rows: int, columns: int, dtype: np.dtype[Any], start: int) -> np.ndarray[Any, Any]:
    features = np.frombuffer(answer, dtype, rows * columns, start).reshape(rows, columns)
    return features if features.flags.aligned else _read_only_copy(features)


def prediction_of(answer: bytes) -> predict_service_pb.PredictResponse:
    """Returns a serialized PredictResponse, whose numbers are few beside those of features."""
    try:
        return predict_service_pb.PredictResponse.FromString(answer)
    except DecodeError as error:
        raise Internal(f"the server's answer is not a message: {error}") from None


def _with_residuals(features: np.ndarray[Any, Any], residuals: np.ndarray[Any, Any],
                    allowances: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Appends residuals and allowances as the last two columns. An allowance is rounded upwards and
    makes up for the rounding of its residual, so that their sum remains a bound."""
    rows, columns = features.shape
    if len(residuals) != rows or len(allowances) != rows:
        raise Internal(f"the server answered {len(residuals)} residuals and {len(allowances)} allowances to a request of "
                       f"{rows} rows")
    wider = np.empty((rows, columns + 2), features.dtype)
    wider[:, :columns] = features
    wider[:, columns] = residuals
    left = residuals - wider[:, columns] + allowances
    rounded = left.astype(features.dtype)
    wider[:, columns + 1] = np.where(rounded < left, np.nextafter(rounded, features.dtype.type(np.inf)), rounded)
    return wider


def _read_only_copy(features: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    features = features.copy()
    features.flags.writeable = False
    return features


# dtype, start and end of the values.
_Values = tuple[np.dtype[Any], int, int]


def _split(answer: bytes) -> tuple[mapping_pb.VersionRef | None, examples_pb.DenseRows, _Values | None,
                                   np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Splits a serialized answer. The generated classes parse every field but the values, in its
    original order."""
    rest = small = b""
    values: _Values | None = None
    at = 0
    while at < len(answer):
        number, start, end = _next_field(answer, at)
        if number != _FEATURES:
            rest += answer[at:end]
        else:
            inner = start
            while inner < end:
                inner_number, inner_start, inner_end = _next_field(answer, inner)
                if inner_number in _DTYPES:
                    values = (_DTYPES[inner_number], inner_start, inner_end)
                else:
                    small += answer[inner:inner_end]
                inner = inner_end
        at = end
    message = transform_service_pb.TransformResponse.FromString(rest)
    return (message.version if message.HasField("version") else None,
            examples_pb.DenseRows.FromString(small), values, np.array(message.residuals, FLOAT64),
            np.array(message.residual_allowances, FLOAT64))


def _next_field(data: bytes, at: int) -> tuple[int, int, int]:
    """Returns the number, the start of the content and the end of the field at `at`. IndexError at
    the end of the data."""
    key, at = _read_varint(data, at)
    kind = key & 7
    if kind == _LENGTH_DELIMITED:
        length, at = _read_varint(data, at)
        end = at + length
    elif kind == 0:
        end = _read_varint(data, at)[1]
    elif kind in (1, 5):
        end = at + (8 if kind == 1 else 4)
    else:
        raise DecodeError(f"unknown wire type {kind}")
    if end > len(data):
        raise IndexError("it is cut short")
    return key >> 3, at, end


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise DecodeError("a number has more than 64 bits")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(field: int) -> bytes:
    return _varint(field << 3 | _LENGTH_DELIMITED)
