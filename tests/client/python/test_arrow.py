"""Tests rows from Arrow and Parquet. The tests are skipped if pyarrow is not installed; Debian 12 has no package of
it."""
import numpy as np
import pytest

from phimap._blocks import FLOAT32, FLOAT64, block_of
from phimap.errors import InvalidArgument

pyarrow = pytest.importorskip("pyarrow")

COLUMNS = {"a": pyarrow.array([1, 2, 3], pyarrow.int8()), "b": pyarrow.array([0.5, 1.5, 2.5], pyarrow.float32()),
           "c": pyarrow.array([True, False, True])}
VALUES = np.array([[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])


def written(block):
    out = np.empty((block.rows, block.columns), block.dtype)
    block.write_to(out)
    return out


@pytest.mark.parametrize("kind", [pyarrow.table, pyarrow.RecordBatch.from_pydict])
def test_a_table_is_its_columns_as_numbers(kind):
    block = block_of(kind(COLUMNS))
    assert (block.rows, block.columns, block.dtype) == (3, 3, FLOAT64)
    np.testing.assert_array_equal(written(block), VALUES)
    np.testing.assert_array_equal(written(block.part(1, 3)), VALUES[1:])


def test_floats_of_four_bytes_stay_so():
    table = pyarrow.table({"a": pyarrow.array([0.1, 0.2], pyarrow.float32())})
    assert block_of(table).dtype == FLOAT32


def test_chunks_are_one_column_and_a_null_is_no_number():
    column = pyarrow.chunked_array([[1, None], [3]])
    np.testing.assert_array_equal(written(block_of(pyarrow.table({"a": column}))), [[1], [np.nan], [3]])
    truths = pyarrow.array([True, None])
    np.testing.assert_array_equal(written(block_of(pyarrow.table({"a": truths}))), [[1], [np.nan]])


def test_a_column_of_texts_is_named():
    with pytest.raises(InvalidArgument, match="column 'b'"):
        block_of(pyarrow.table({"a": [1.0], "b": ["x"]}))


def test_a_parquet_file_is_built_from_and_mapped(client, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = np.random.default_rng(1).normal(size=(300, 4))
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({f"c{i}": rows[:, i] for i in range(4)}), path)
    table = parquet.read_table(path)
    client.build("arrow", table, spec="f2(landmarks=20)", kernel="rbf(gamma=1)")
    expected = client.transform("arrow", rows)
    np.testing.assert_array_equal(client.transform("arrow", table), expected)
    np.testing.assert_array_equal(client.transform("arrow", table.to_batches()[0]), expected)
    np.testing.assert_array_equal(np.vstack(list(client.transform_stream("arrow", iter(table.to_batches(100))))), expected)
