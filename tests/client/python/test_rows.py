"""Tests which types are accepted as rows, in which type rows are sent, and how they are split into messages."""
import asyncio

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import phimap
from phimap._blocks import FLOAT32, FLOAT64, SparseBlock, block_of
from phimap._rows import BlockLimits, async_source_of, source_of

ALL = BlockLimits(rows=1 << 40, bytes=1 << 40)


def values_of(block):
    out = np.empty((block.rows, block.columns), block.dtype)
    block.write_to(out)
    return out


def read(source, limits):
    blocks = []
    while (block := source.next(limits)) is not None:
        blocks.append(values_of(block))
    return blocks


@pytest.mark.parametrize("dtype, wire", [
    (np.float32, FLOAT32), (">f4", FLOAT32), (np.float16, FLOAT32), (np.float64, FLOAT64), (">f8", FLOAT64),
    (np.longdouble, FLOAT64), (np.int64, FLOAT64), (np.uint8, FLOAT64), (bool, FLOAT64)])
def test_floats_travel_as_they_are_and_other_numbers_as_float64(dtype, wire):
    values = np.array([[0, 1], [1, 1], [1, 0]], dtype)
    block = block_of(values)
    assert block.dtype == wire
    assert (values_of(block) == values.astype(float)).all()


@pytest.mark.parametrize("values", [
    [[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], object), np.asfortranarray([[1.0, 2], [3, 4]]),
    np.arange(1, 9).reshape(2, 4)[:, :2] + np.array([[0, 0], [-2, -2]]), pd.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
    pd.DataFrame({"a": pd.array([1, 3], "Int64"), "b": pd.array([2, 4], "Float32")}),
    scipy.sparse.csr_matrix([[1, 2], [3, 4]]), scipy.sparse.coo_array([[1, 2], [3, 4]])])
def test_layout_and_container_do_not_matter(values):
    assert values_of(block_of(values)).tolist() == [[1, 2], [3, 4]]


def test_a_frame_of_float32_columns_stays_float32():
    assert block_of(pd.DataFrame(np.ones((2, 2), np.float32))).dtype == FLOAT32
    assert block_of(pd.DataFrame({"a": np.ones(2, np.float32), "b": [1, 2]})).dtype == FLOAT64


def test_a_missing_value_of_a_frame_is_nan():
    frame = pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [1.0, 2.0]})
    assert np.isnan(values_of(block_of(frame))[1, 0])


@pytest.mark.parametrize("values, message", [
    (np.zeros(3), "expected 2 dimensions, rows × columns, got 1: one row x is x.reshape(1, -1)"),
    (np.zeros((2, 2, 2)), "expected 2 dimensions, rows × columns, got 3"),
    (np.zeros((3, 0)), "expected at least 1 column, got 0"),
    (None, "expected an array, a list of lists, a DataFrame, a sparse matrix, a list of texts or an iterator of blocks of these, got NoneType"),
    ("letter.csv", "or an iterator of blocks of these, got str 'letter.csv'"),
    ({"a": [1]}, "or an iterator of blocks of these, got dict"),
    ([[1, 2], [3]], "expected the same number of values in each row: "),
    (np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [0, 1]]), "rows[1].columns[1]: expected a value, got a masked one"),
    (np.zeros((1, 1), complex), "expected real numbers, got the rows of type complex128"),
    (np.array([["a"]]), "expected real numbers, got the rows of type <U1"),
    (np.array([["a", 1]], object), "expected numbers, got objects: could not convert string to float: 'a'"),
    (pd.DataFrame({"x": [1.0], "label": ["A"]}), "expected real numbers, got column 'label' of type object"),
    (pd.DataFrame({"x": pd.Categorical(["A"])}), "expected real numbers, got column 'x' of type object"),
    (scipy.sparse.csr_matrix(np.ones((1, 1), complex)), "expected real numbers, got the rows of type complex128")])
def test_what_are_no_rows_is_refused_with_what_is_expected(values, message):
    with pytest.raises(phimap.InvalidArgument) as raised:
        block_of(values)
    assert message in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("values", [
    np.arange(70.0).reshape(10, 7), pd.DataFrame(np.arange(70.0).reshape(10, 7)),
    scipy.sparse.csr_matrix(np.arange(70.0).reshape(10, 7))])
@pytest.mark.parametrize("limits", [ALL, BlockLimits(3, 1 << 40), BlockLimits(1 << 40, 4 * 7 * 8), BlockLimits(1 << 40, 1), BlockLimits(10, 10 * 7 * 8)])
def test_cut_parts_are_the_rows_in_order_and_within_the_limits(values, limits):
    source = source_of(values)
    for _ in range(2):
        blocks = read(source, limits)
        assert np.concatenate(blocks).tolist() == np.arange(70.0).reshape(10, 7).tolist()
        assert all(len(block) <= limits.rows for block in blocks)
        if not scipy.sparse.issparse(values):
            assert all(block.nbytes <= limits.bytes or len(block) == 1 for block in blocks)
        assert source.rewind()


def test_sparse_rows_are_cut_by_what_they_take_as_csr():
    # The first 100 rows have 2 values each, and take 2 × (4 + 8) + 8 = 32 bytes each. The last row has 1,000 values.
    dense = np.zeros((101, 1000))
    dense[:100, :2] = 1
    dense[100] = 1
    source = source_of(scipy.sparse.csr_matrix(dense))
    sizes = []
    while (block := source.next(BlockLimits(1000, 320))) is not None:
        assert isinstance(block, SparseBlock)
        sizes.append(block.rows)
    assert sizes == [10] * 10 + [1]


def test_csr_that_is_not_in_order_is_put_in_order_without_touching_the_callers():
    matrix = scipy.sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    block = block_of(matrix)
    assert block.csr.indices.tolist() == [0, 2] and block.csr.data.tolist() == [2, 4]
    assert matrix.indices.tolist() == [2, 0, 2]


def test_an_iterator_is_a_stream_of_blocks_of_any_kind():
    blocks = [np.zeros((3, 2)), np.zeros((0, 2)), [[1, 1]], pd.DataFrame({"a": [2], "b": [2]}),
              scipy.sparse.csr_matrix([[3, 3]])]
    source = source_of(iter(blocks))
    assert np.concatenate(read(source, BlockLimits(2, 1 << 20)))[:, 0].tolist() == [0, 0, 0, 1, 2, 3]
    assert source.row_count is None and not source.rewinds


def test_blocks_of_an_iterator_must_agree_on_their_columns():
    source = source_of(iter([np.zeros((1, 2)), np.zeros((1, 3))]))
    source.next(ALL)
    with pytest.raises(phimap.InvalidArgument, match="block 1: expected 2 columns, as in the blocks before, got 3"):
        source.next(ALL)


def test_an_iterator_of_single_rows_says_that_blocks_are_expected():
    with pytest.raises(phimap.InvalidArgument, match="expected 2 dimensions") as raised:
        source_of(iter(np.zeros((3, 2)))).next(ALL)
    assert raised.value.__notes__ == ["The error is in block 0 of the iterator, counted from 0; each block must be rows × columns."]


def test_a_masked_array_without_a_masked_value_is_an_array():
    assert values_of(block_of(np.ma.array([[1.0, 2.0]]))).tolist() == [[1, 2]]


def test_asynchronous_iterators_are_cut_alike():
    async def blocks():
        yield np.zeros((3, 2))
        yield scipy.sparse.csr_matrix([[3, 3]])

    async def rows_of(rows):
        source = async_source_of(rows)
        found = []
        while (block := await source.next(BlockLimits(2, 1 << 20))) is not None:
            found.append((block.rows, isinstance(block, SparseBlock)))
        return found

    for rows in (blocks(), iter([np.zeros((3, 2)), scipy.sparse.csr_matrix([[3, 3]])])):
        assert asyncio.run(rows_of(rows)) == [(2, False), (1, False), (1, True)]
    assert asyncio.run(rows_of(np.zeros((3, 2)))) == [(2, False), (1, False)]
