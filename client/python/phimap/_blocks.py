"""Blocks of rows: wrappers of anything that holds rows, which write parts of it into messages.

Accepted: numpy arrays and whatever numpy can convert to one, pandas DataFrames, tables and record
batches of Arrow, and scipy.sparse matrices. For kernels of strings a block is a list of str, or of
bytes, or a one-dimensional array or pandas Series of these. float32 stays float32 and float64 stays
float64; float16 becomes float32, every other number float64. Nothing is converted or copied here: a
block is a view that is written once, into its message.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from phimap.errors import InvalidArgument, Reason

FLOAT32: np.dtype[Any] = np.dtype("<f4")
FLOAT64: np.dtype[Any] = np.dtype("<f8")


class Block(Protocol):
    """Rows of one width and type."""

    rows: int
    columns: int
    # FLOAT32 or FLOAT64.
    dtype: np.dtype[Any]
    # Names of its columns; None if they have none.
    names: tuple[str, ...] | None

    def fitting(self, start: int, max_bytes: int) -> int:
        """Returns how many rows from row `start` on fit into `max_bytes` on the wire, at least
        1."""

    def part(self, start: int, stop: int) -> Block:
        """Returns rows start..stop-1."""

    def write_to(self, out: np.ndarray[Any, Any]) -> None:
        """Writes the values into `out`, rows × columns."""

    def arranged(self, names: tuple[str, ...]) -> Block:
        """Returns the block with its columns in this order. REQUIRES: the block has exactly these names, in any order."""


def block_of(values: Any) -> Block:
    """Returns `values` as a block. InvalidArgument if they are not rows."""
    if type(values) is np.ndarray and values.ndim == 2 and values.dtype.kind == "f":
        return _ArrayBlock(values)
    if (strings := strings_of(values)) is not None:
        return StringsBlock(strings)
    if is_sparse(values):
        return SparseBlock(values)
    if is_frame(values):
        return _FrameBlock(values)
    if _is_arrow(values):
        return _ArrowBlock(values)
    return _ArrayBlock(_array(values))


def contiguous(block: Block) -> np.ndarray[Any, Any]:
    """Returns the values of a dense block in rows of its type, one after another: its own memory if that has
    this form, else a copy."""
    if isinstance(block, _ArrayBlock):
        values = block.values
        if values.dtype == block.dtype and values.flags.c_contiguous and values.flags.aligned:
            return values
    dense = np.empty((block.rows, block.columns), block.dtype)
    block.write_to(dense)
    return dense


class _Unnamed:
    """A block whose columns have no names."""

    names: tuple[str, ...] | None = None

    def arranged(self, names: tuple[str, ...]) -> Block:
        raise NotImplementedError


class _DenseBlock(_Unnamed):
    """A block that is sent dense."""

    def __init__(self, values: Any, dtype: np.dtype[Any]) -> None:
        self._values = values
        self.dtype = dtype
        self.rows, self.columns = _shape(values)
        if self.columns == 0:
            raise InvalidArgument("rows: expected at least 1 column, got 0")

    def fitting(self, start: int, max_bytes: int) -> int:
        return max(1, min(self.rows - start, max_bytes // (self.columns * self.dtype.itemsize)))


class _ArrayBlock(_DenseBlock):
    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        super().__init__(values, _wire_type(values.dtype, "the rows"))
        self.values = values

    def part(self, start: int, stop: int) -> Block:
        return _ArrayBlock(self._values[start:stop])

    def write_to(self, out: np.ndarray[Any, Any]) -> None:
        out[...] = self._values


class _FrameBlock(_DenseBlock):
    """A pandas DataFrame. It is converted part by part, since the whole may be much larger than a
    message."""

    def __init__(self, frame: Any, dtype: np.dtype[Any] | None = None) -> None:
        super().__init__(frame, dtype if dtype is not None else _common_type(frame))
        self.names = _names_of(frame.columns)

    def arranged(self, names: tuple[str, ...]) -> Block:
        return _FrameBlock(self._values[list(names)], self.dtype)

    def part(self, start: int, stop: int) -> Block:
        return _FrameBlock(self._values.iloc[start:stop], self.dtype)

    def write_to(self, out: np.ndarray[Any, Any]) -> None:
        # A missing value of a nullable column becomes NaN, which the server rejects with its row
        # and column.
        out[...] = self._values.to_numpy(dtype=self.dtype, na_value=np.nan)


class _ArrowBlock(_DenseBlock):
    """A pyarrow Table or RecordBatch, as Parquet files are read into. It is converted part by part, as a frame is."""

    def __init__(self, table: Any, dtype: np.dtype[Any] | None = None) -> None:
        super().__init__(table, dtype if dtype is not None else _common_type_of_fields(table.schema))
        self.names = _names_of(table.schema.names)

    def arranged(self, names: tuple[str, ...]) -> Block:
        return _ArrowBlock(self._values.select(list(names)), self.dtype)

    def part(self, start: int, stop: int) -> Block:
        return _ArrowBlock(self._values.slice(start, stop - start), self.dtype)

    def write_to(self, out: np.ndarray[Any, Any]) -> None:
        for i, column in enumerate(self._values.columns):
            # A null becomes NaN, which the server rejects with its row and column.
            values = np.asarray(column)
            out[:, i] = values if values.dtype != object else [np.nan if v is None else v for v in values]


class SparseBlock(_Unnamed):
    """A scipy.sparse matrix or array, sent as CSR."""

    def __init__(self, values: Any) -> None:
        csr = values.tocsr()
        self.dtype = _wire_type(csr.dtype, "the rows")
        if not csr.has_canonical_format:
            # The wire format requires column indices that increase within a row, without
            # duplicates.
            csr = csr.copy()
            csr.sum_duplicates()
        self.csr = csr
        self.rows, self.columns = (int(n) for n in csr.shape)

    def fitting(self, start: int, max_bytes: int) -> int:
        ends = self._ends
        return max(1, int(np.searchsorted(ends, ends[start] + max_bytes, side="right")) - 1 - start)

    @functools.cached_property
    def _ends(self) -> np.ndarray[Any, Any]:
        """Returns, for each row, the bytes on the wire of all rows before it. A row has an offset,
        and each of its values has a column and a number."""
        return np.arange(self.rows + 1) * 8 + self.csr.indptr.astype(np.int64) * (4 + self.dtype.itemsize)

    def part(self, start: int, stop: int) -> Block:
        return SparseBlock(self.csr[start:stop])

    def write_to(self, out: np.ndarray[Any, Any]) -> None:
        out[...] = self.csr.toarray()


# Bytes of a string on the wire besides its content: a tag, and a length of at most 4 bytes.
_STRING_OVERHEAD_BYTES = 5


class StringsBlock(_Unnamed):
    """Texts or bytes, each of which is an example."""

    columns = 0
    dtype = FLOAT32  # unused: there are no numbers

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values  # all str, or all bytes
        self.rows = len(values)

    @property
    def are_texts(self) -> bool:
        return isinstance(self.values[0], str)

    def encoded(self) -> list[bytes]:
        return [_encoded(value, i) for i, value in enumerate(self.values)]

    def fitting(self, start: int, max_bytes: int) -> int:
        ends = self._ends
        return max(1, int(np.searchsorted(ends, ends[start] + max_bytes, side="right")) - 1 - start)

    @functools.cached_property
    def _ends(self) -> np.ndarray[Any, Any]:
        """Returns, for each string, the bytes on the wire of all strings before it."""
        sizes = [len(value) + _STRING_OVERHEAD_BYTES for value in self.encoded()]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def part(self, start: int, stop: int) -> Block:
        return StringsBlock(self.values[start:stop])

    def write_to(self, out: np.ndarray[Any, Any]) -> None:
        raise NotImplementedError


def _encoded(value: str | bytes, row: int) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else value
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"rows[{row}]: expected text that UTF-8 can hold: {error}", field=f"rows[{row}]") from None


def strings_of(values: Any) -> list[Any] | None:
    """Returns `values` as a list if they are a sequence of strings, else None. InvalidArgument if
    only some are strings."""
    if isinstance(values, (str, bytes)):
        return None
    if isinstance(values, np.ndarray):
        if values.ndim != 1 or values.dtype.kind not in "OSU":
            return None
        values = values.tolist()
    elif _is_series(values):
        values = values.tolist()
    elif not isinstance(values, (list, tuple)):
        return None
    if not values or not isinstance(values[0], (str, bytes)):
        return None
    kind = str if isinstance(values[0], str) else bytes
    for row, value in enumerate(values):
        if not isinstance(value, kind):
            raise InvalidArgument(f"rows[{row}]: expected {kind.__name__} like the first row, got {_shown(value)}",
                                  field=f"rows[{row}]")
    # Accepts numpy's own types of str and bytes. Returns a copy, which does not see later changes.
    return list(values)


def _array(values: Any) -> np.ndarray[Any, Any]:
    _refuse_masked(values)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidArgument(f"rows: expected the same number of values in each row: {error}") from None
    if array.ndim == 0:
        raise InvalidArgument("rows: expected an array, a list of lists, a DataFrame, a sparse matrix, a list of texts or an "
                              f"iterator of blocks of these, got {_shown(values)}")
    if array.dtype == object:
        try:
            array = array.astype(FLOAT64)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"rows: expected numbers, got objects: {error}") from None
    if array.ndim != 2:
        raise InvalidArgument(f"rows: expected 2 dimensions, rows × columns, got {array.ndim}: one row x is "
                              "x.reshape(1, -1), one column is x.reshape(-1, 1)")
    return array


def _refuse_masked(values: Any) -> None:
    """Rejects masked values: numpy would send the values under the mask."""
    mask: np.ndarray[Any, Any] = np.array(values.mask if isinstance(values, np.ma.MaskedArray) else False)
    if mask.ndim == 2 and mask.any():
        row, column = (int(i) for i in np.argwhere(mask)[0])
        raise InvalidArgument(f"rows[{row}].columns[{column}]: expected a value, got a masked one; fill masked values, or "
                              "leave their rows out", field=f"rows[{row}].columns[{column}]")


def _shown(values: Any) -> str:
    kind = type(values).__name__
    return f"{kind} {values!r:.40}" if isinstance(values, (str, bytes, int, float)) else kind


def _wire_type(dtype: np.dtype[Any], what: str) -> np.dtype[Any]:
    if dtype.kind == "f" and dtype.itemsize <= 4:
        return FLOAT32
    if dtype.kind in "fiub":
        return FLOAT64
    raise InvalidArgument(f"rows: expected real numbers, got {what} of type {dtype}")


def _common_type(frame: Any) -> np.dtype[Any]:
    """Returns float32 if all columns are float32 or narrower, else float64. The
    message of InvalidArgument contains the first column that has no numbers."""
    types = {_wire_type(_numpy_type(dtype), f"column {name!r}") for name, dtype in frame.dtypes.items()}
    return FLOAT32 if types == {FLOAT32} else FLOAT64


def _common_type_of_fields(schema: Any) -> np.dtype[Any]:
    """Does the same as _common_type for the columns of an Arrow schema."""
    types = {_wire_type(_numpy_type_of_arrow(field.type), f"column {field.name!r}") for field in schema}
    return FLOAT32 if types == {FLOAT32} else FLOAT64


def _numpy_type_of_arrow(kind: Any) -> np.dtype[Any]:
    try:
        return np.dtype(kind.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        return np.dtype(object)


def _shape(values: Any) -> tuple[int, int]:
    if _is_arrow(values):
        return int(values.num_rows), int(values.num_columns)
    rows, columns = values.shape
    return int(rows), int(columns)


def _numpy_type(dtype: Any) -> np.dtype[Any]:
    """Returns the numpy type of a pandas column. A nullable type has an attribute with its numpy
    type. Any other type is either numpy's own or has no numbers, and one without numbers becomes
    object."""
    known = getattr(dtype, "numpy_dtype", dtype)
    return known if isinstance(known, np.dtype) else np.dtype(object)


def _names_of(columns: Any) -> tuple[str, ...] | None:
    """Returns _checked_names of the columns, which caches its result."""
    return _checked_names(tuple(columns))


@functools.lru_cache(maxsize=256)
def _checked_names(names: tuple[Any, ...]) -> tuple[str, ...] | None:
    """Returns the names if a version can store them: printable texts of up to 256 bytes. Returns
    None for other labels, such as positions (0, 1 …). InvalidArgument if the names are ambiguous:
    only some are texts, or two are equal."""
    texts = sum(isinstance(name, str) for name in names)
    if 0 < texts < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise InvalidArgument(f"columns: expected names that are all text, or none of them, got {other!r} among them; "
                              "frame.columns.astype(str) makes them text", field="columns", reason=Reason.COLUMN_NAMES_INVALID)
    if texts and len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidArgument(f"columns: {twice!r} is the name of more than one column; give each column its own name",
                              field="columns", reason=Reason.COLUMN_NAMES_INVALID)
    usable = (all(isinstance(name, str) and name and name.isprintable() and len(name.encode(errors="replace")) <= 256
                  for name in names))
    return names if names and usable else None


# A caller that passes a DataFrame, a table or a sparse matrix has imported its package, so this
# client does not need to.
def is_frame(values: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, pandas.DataFrame)


def _is_arrow(values: Any) -> bool:
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(values, (pyarrow.Table, pyarrow.RecordBatch))


def _is_series(values: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, pandas.Series)


def is_sparse(values: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(values)
