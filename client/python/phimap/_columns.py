"""Column names: checks that rows have the columns of a version, and puts the columns in the
version's order."""
from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence

from phimap._blocks import Block
from phimap.errors import Error, InvalidArgument, Reason

# Maximum number of names that a message lists.
_SHOWN = 40


@functools.lru_cache(maxsize=256)
def names_hash(names: tuple[str, ...] | None) -> int:
    """Returns the hash that is sent in place of the names (TransformRequest.column_names_hash); 0
    if there are none."""
    if not names:
        return 0
    digest = hashlib.sha256()
    for name in names:
        encoded = name.encode()
        digest.update(len(encoded).to_bytes(4, "little") + encoded)
    return int.from_bytes(digest.digest()[:8], "little") or 1


def in_order(block: Block, expected: Sequence[str], reference: str) -> Block:
    """Returns the block with its columns in the order of `expected`, or unchanged if the block or
    the version has no names. InvalidArgument, with both lists, if the names are not the same."""
    names = block.names
    if names is None or not expected or names == tuple(expected):
        return block
    if set(names) != set(expected):
        raise _differ(names, expected, reference)
    return block.arranged(tuple(expected))


def check_same(came: Sequence[str], expected: Sequence[str], reference: str) -> None:
    """Raises InvalidArgument, with both lists, if the names or their order differ."""
    if tuple(came) != tuple(expected):
        raise _differ(came, expected, reference)


class ColumnOrders:
    """The column names of versions that have refused rows with other names, by reference. Later
    rows whose names are in another order are rearranged before they are sent; the server still
    checks them. Thread-safe: each step is atomic in the interpreter."""

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
    return error.reason == Reason.COLUMN_NAMES_MISMATCH


def _differ(came: Sequence[str], expected: Sequence[str], reference: str) -> InvalidArgument:
    missing, unknown = _without(expected, came), _without(came, expected)
    said = [f"{_shown(missing)} {'is' if len(missing) == 1 else 'are'} missing"] if missing else []
    if not missing and not unknown:
        said.append("they are in another order")
    if unknown:
        said.append(f"{_shown(unknown)} {'is' if len(unknown) == 1 else 'are'} not among the version's columns")
    return InvalidArgument(
        f"columns: got {len(came)} columns; {', and '.join(said)}; expected the {len(expected)} of {reference}: "
        f"{_shown(expected)}; got {len(came)}: {_shown(came)}", field="columns", reason=Reason.COLUMN_NAMES_MISMATCH,
        metadata={"expected": str(len(expected)), "actual": str(len(came))})


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    known = set(others)
    return [name for name in names if name not in known]


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f'"{name}"' for name in names[:_SHOWN]) + more
