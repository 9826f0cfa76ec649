"""Columns by their names: what says that rows come with the columns that a version has, in its order."""
from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

from phimap._blocks import Block
from phimap.errors import Error, InvalidArgument

COLUMN_NAMES_MISMATCH = "COLUMN_NAMES_MISMATCH"
# Names that a message lists.
_SHOWN = 40


@functools.lru_cache(maxsize=256)
def names_hash(names: tuple[str, ...] | None) -> int:
    """The number that stands for the names on the wire (TransformRequest.column_names_hash); 0 for none."""
    if not names:
        return 0
    digest = hashlib.sha256()
    for name in names:
        encoded = name.encode()
        digest.update(len(encoded).to_bytes(4, "little") + encoded)
    return int.from_bytes(digest.digest()[:8], "little") or 1


def in_order(block: Block, expected: Sequence[str], reference: str) -> Block:
    """The block with its columns put in the order of `expected`, by name; as it is if it, or the version, has no names.
    InvalidArgument, with both lists, if its columns are called otherwise."""
    names = block.names
    if names is None or not expected or names == tuple(expected):
        return block
    if set(names) != set(expected):
        raise _differ(names, expected, reference)
    return block.arranged(tuple(expected))


def check_same(came: Sequence[str], expected: Sequence[str], reference: str) -> None:
    """InvalidArgument, with both lists, if these are not the same names in the same order."""
    if tuple(came) != tuple(expected):
        raise _differ(came, expected, reference)


class ColumnOrders:
    """The names of the columns of versions that refused others, by reference: what comes in another order again is put in
    order before it is sent. The server has the last word. Thread-safe: each step is one of the interpreter's."""

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}

    def note(self, reference: str, names: Iterable[str]) -> None:
        self._names[reference] = tuple(names)

    def arranged(self, reference: str, block: Block) -> Block:
        names = self._names.get(reference)
        if names is None or block.names is None or block.names == names or set(block.names) != set(names):
            return block
        return block.arranged(names)


def refused_for_names(error: Error) -> bool:
    return error.reason == COLUMN_NAMES_MISMATCH


def _differ(came: Sequence[str], expected: Sequence[str], reference: str) -> InvalidArgument:
    missing, unknown = _without(expected, came), _without(came, expected)
    said = [f"{_shown(missing)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
    if not missing and not unknown:
        said.append("they are in another order")
    if unknown:
        said.append(f"{_shown(unknown)} {'is' if len(unknown) == 1 else 'are'} not among the version's")
    return InvalidArgument(
        f"columns: {len(came)} columns came; {', and '.join(said)}; expected the {len(expected)} of {reference}: "
        f"{_shown(expected)}; got {len(came)}: {_shown(came)}", field="columns", reason=COLUMN_NAMES_MISMATCH,
        metadata={"expected": str(len(expected)), "actual": str(len(came))})


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [name for name in names if name not in known]


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f'"{name}"' for name in names[:_SHOWN]) + more
