"""The user's rows as a stream of blocks: one block (_blocks.py), or an iterator of blocks, such as
a generator."""
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from phimap._blocks import Block, block_of
from phimap.errors import InvalidArgument


@dataclass(frozen=True)
class BlockLimits:
    """The maximum size of the next block."""

    rows: int
    bytes: int


class RowSource:
    """Rows of one width, read once and in order, in blocks."""

    # Number of rows, if it is known before they are read.
    row_count: int | None = None
    rewinds = False

    def next(self, limits: BlockLimits) -> Block | None:
        """Returns the next rows, at least one; None at the end."""
        raise NotImplementedError

    def names(self) -> tuple[str, ...] | None:
        """Returns the names of the columns. An iterator has the names of its first block, which is
        read for this."""
        raise NotImplementedError

    def rewind(self) -> bool:
        """Starts again at the first row. Returns False if the source cannot rewind."""
        return False


class MemoryRows(RowSource):
    rewinds = True

    def __init__(self, block: Block) -> None:
        self.block = block
        self.row_count = block.rows
        self._cutter: _Cutter | None = None

    def next(self, limits: BlockLimits) -> Block | None:
        if self._cutter is None:
            self._cutter = _Cutter(self.block)
        return self._cutter.take(limits)

    def names(self) -> tuple[str, ...] | None:
        return self.block.names

    def replace(self, block: Block) -> None:
        """Replaces the values of the rows and starts again at the first row. No-op if `block` is
        the current block."""
        if block is not self.block:
            self.block, self._cutter = block, None

    def rewind(self) -> bool:
        self._cutter = None
        return True


class IteratorRows(RowSource):
    """Blocks of an iterator. Blocks that are too large for a message are cut; small blocks are sent
    unchanged."""

    def __init__(self, blocks: Iterator[Any]) -> None:
        self._blocks = blocks
        self._gathered = _Gathered()

    def next(self, limits: BlockLimits) -> Block | None:
        while (block := self._gathered.take(limits)) is None:
            if not self._refill():
                return None
        return block

    def names(self) -> tuple[str, ...] | None:
        return self._gathered.names if self._gathered.begun or self._refill() else None

    def _refill(self) -> bool:
        """Reads the next block. Returns False at the end."""
        try:
            values = next(self._blocks)
        except StopIteration:
            return False
        self._gathered.refill(values)
        return True


class AsyncRows:
    """A RowSource for coroutines: reads an asynchronous iterator of blocks, or a RowSource."""

    def __init__(self, source: RowSource | AsyncIterator[Any]) -> None:
        self._source = source
        self._gathered = _Gathered()
        self.row_count = source.row_count if isinstance(source, RowSource) else None
        self.rewinds = isinstance(source, RowSource) and source.rewinds
        # All rows, if they are in memory.
        self.block = source.block if isinstance(source, MemoryRows) else None

    async def next(self, limits: BlockLimits) -> Block | None:
        if isinstance(self._source, RowSource):
            return self._source.next(limits)
        while (block := self._gathered.take(limits)) is None:
            if not await self._refill(self._source):
                return None
        return block

    async def names(self) -> tuple[str, ...] | None:
        if isinstance(self._source, RowSource):
            return self._source.names()
        return self._gathered.names if self._gathered.begun or await self._refill(self._source) else None

    async def _refill(self, blocks: AsyncIterator[Any]) -> bool:
        """Reads the next block. Returns False at the end."""
        try:
            values = await anext(blocks)
        except StopAsyncIteration:
            return False
        self._gathered.refill(values)
        return True

    def rewind(self) -> bool:
        return isinstance(self._source, RowSource) and self._source.rewind()

    def replace(self, block: Block) -> None:
        """See MemoryRows.replace. REQUIRES: `block` is not None."""
        if isinstance(self._source, MemoryRows):
            self._source.replace(block)
            self.block = block


class _Cutter:
    """Divides a block into parts."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._next = 0

    def take(self, limits: BlockLimits) -> Block | None:
        """Returns the next part; None at the end."""
        start, block = self._next, self._block
        if start == block.rows:
            return None
        self._next = min(start + limits.rows, start + block.fitting(start, limits.bytes))
        return block if self._next - start == block.rows else block.part(start, self._next)


class _Gathered:
    """The blocks of an iterator, which must agree on their columns."""

    def __init__(self) -> None:
        self._cutter: _Cutter | None = None
        self._blocks = 0
        self._columns = 0
        # Names of the first block.
        self.names: tuple[str, ...] | None = None

    @property
    def begun(self) -> bool:
        return self._blocks > 0

    def take(self, limits: BlockLimits) -> Block | None:
        """Returns the next rows of the latest block; None if there are none left."""
        return self._cutter.take(limits) if self._cutter is not None else None

    def refill(self, values: Any) -> None:
        try:
            block = block_of(values)
        except InvalidArgument as error:
            error.add_note(f"The error is in block {self._blocks} of the iterator, counted from 0; each block must be rows × "
                           "columns.")
            raise
        if self._blocks and block.columns != self._columns:
            raise InvalidArgument(f"block {self._blocks}: expected {self._columns} columns, as in the blocks before, "
                                  f"got {block.columns}")
        if not self._blocks:
            self.names = block.names
        elif block.names is not None and self.names is not None and block.names != self.names:
            if set(block.names) != set(self.names):
                raise InvalidArgument(f"block {self._blocks}: expected the columns of the first block, "
                                      f"{list(self.names)!r:.500}, got {list(block.names)!r:.500}")
            block = block.arranged(self.names)
        self._columns = block.columns
        self._blocks += 1
        self._cutter = _Cutter(block)


def source_of(rows: Any) -> RowSource:
    """Returns a source of the user's rows. An iterator is a stream of blocks; anything else is one
    block."""
    if type(rows) is not np.ndarray and isinstance(rows, Iterator):
        return IteratorRows(rows)
    return MemoryRows(block_of(rows))


def async_source_of(rows: Any) -> AsyncRows:
    if isinstance(rows, Iterator):
        rows = _asynchronous(rows)
    if isinstance(rows, AsyncIterator):
        return AsyncRows(rows)
    return AsyncRows(MemoryRows(block_of(rows)))


async def _asynchronous(blocks: Iterator[Any]) -> AsyncIterator[Any]:
    for block in blocks:
        yield block
