"""Tests the code that writes and reads messages without protobuf's generated classes. The results must equal those of
the generated classes."""
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import phimap
from phimap import _wire
from phimap._blocks import block_of
from phimap.v1 import examples_pb2 as examples_pb
from phimap.v1 import mapping_service_pb2 as mapping_service_pb
from phimap.v1 import transform_service_pb2 as transform_pb


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (127, 1), (128, 128), (16384, 3)])
def test_requests_are_what_protobuf_would_write(dtype, shape):
    rows = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    dense = examples_pb.DenseRows(rows=shape[0], columns=shape[1])
    setattr(dense, "float32_le" if dtype == "<f4" else "float64_le", rows.tobytes())
    examples = examples_pb.Examples(dense=dense)
    block = block_of(rows)
    transform = _wire.transform_request("m@1", "digest", block)
    expected = transform_pb.TransformRequest(reference="m@1", expected_digest="digest", examples=examples)
    assert transform == expected.SerializeToString()
    assert transform_pb.TransformRequest.FromString(transform).examples == examples
    assert _wire.build_request(block) == mapping_service_pb.BuildRequest(examples=examples).SerializeToString()


def test_sparse_requests_are_csr():
    matrix = scipy.sparse.csr_matrix(np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 3]]))
    request = mapping_service_pb.BuildRequest.FromString(_wire.build_request(block_of(matrix)))
    sparse = request.examples.sparse
    assert (sparse.rows, sparse.columns) == (3, 3)
    assert np.frombuffer(sparse.row_offsets_le, "<i8").tolist() == [0, 1, 1, 3]
    assert np.frombuffer(sparse.column_indices_le, "<i4").tolist() == [1, 0, 2]
    assert np.frombuffer(sparse.float64_le, "<f8").tolist() == [1.5, 2, 3]


@pytest.mark.parametrize("rows", [np.ones((1 << 20, 8)), np.ones((8, 1 << 20)).T, np.ones((1 << 20, 8), np.int64)])
def test_values_are_copied_once_on_their_way_into_a_message(rows):
    block = block_of(rows)
    tracemalloc.start()
    message = _wire.transform_request("m", "", block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The peak consists of the message itself and of numpy's conversion buffers, which have a fixed size.
    assert len(message) <= peak < len(message) + (1 << 20)


def answer(rows, columns, dtype, version=True):
    message = transform_pb.TransformResponse()
    if version:
        message.version.name, message.version.number, message.version.digest = "m", 3, "d" * 64
    message.features.rows, message.features.columns = rows, columns
    values = np.arange(rows * columns).astype(dtype)
    setattr(message.features, "float32_le" if dtype == "<f4" else "float64_le", values.tobytes())
    return message, values.reshape(rows, columns)


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_features_see_the_answers_own_bytes_where_they_are_aligned(dtype):
    aligned = 0
    for length in range(8):  # names of different lengths, so that the values begin at every offset modulo 8
        message, values = answer(20, 7, dtype)
        message.version.name = "m" * (length + 1)
        data = message.SerializeToString()
        version, features = _wire.features_of(data, 20)
        assert version == message.version
        assert features.dtype == dtype and (features == values).all()
        assert features.flags.aligned and not features.flags.writeable
        is_view = np.shares_memory(features, np.frombuffer(data, np.uint8))
        offset = data.index(values.tobytes())
        assert is_view == ((np.frombuffer(data, np.uint8).ctypes.data + offset) % features.itemsize == 0)
        aligned += is_view
    assert aligned == 8 // np.dtype(dtype).itemsize


def test_seeing_features_allocates_nothing_of_their_size():
    message, _ = answer(1 << 20, 8, "<f4")
    while True:
        data = message.SerializeToString()
        tracemalloc.start()
        _, features = _wire.features_of(data, 1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if np.shares_memory(features, np.frombuffer(data, np.uint8)):
            assert peak < 1 << 16
            return
        message.version.name += "m"


def test_order_and_unknown_fields_do_not_matter():
    message, values = answer(2, 3, "<f4")
    version = transform_pb.TransformResponse(version=message.version).SerializeToString()
    features = transform_pb.TransformResponse(features=message.features).SerializeToString()
    unknown = b"\xa0\x06\x01" + b"\xa2\x06\x03abc" + b"\xa5\x06abcd" + b"\xa1\x06abcdefgh"  # field 100 with every wire type
    found, array = _wire.features_of(features + unknown + version, 2)
    assert found == message.version and (array == values).all()


def test_an_answer_without_a_version_says_so():
    message, _ = answer(2, 3, "<f4", version=False)
    assert _wire.features_of(message.SerializeToString(), 2)[0] is None


@pytest.mark.parametrize("damage, expected", [
    (lambda m: m.features.ClearField("float32_le"), "with neither float32_le nor float64_le"),
    (lambda m: setattr(m.features, "rows", 3), "the server answered 3 rows of 3 features in 24 bytes to a request of 2 rows"),
    (lambda m: setattr(m.features, "columns", 2), "the server answered 2 rows of 2 features in 24 bytes"),
    (lambda m: setattr(m.features, "float32_le", b"1234"), "the server answered 2 rows of 3 features in 4 bytes")])
def test_a_wrong_answer_is_an_internal_error(damage, expected):
    message, _ = answer(2, 3, "<f4")
    damage(message)
    with pytest.raises(phimap.Internal) as raised:
        _wire.features_of(message.SerializeToString(), 2)
    assert expected in str(raised.value)


def test_every_cut_of_an_answer_is_an_internal_error():
    data = answer(2, 3, "<f4")[0].SerializeToString()
    for length in range(len(data)):
        with pytest.raises(phimap.Internal):
            _wire.features_of(data[:length], 2)
