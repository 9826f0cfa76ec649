"""CRC-32C (Castagnoli), which Python's library lacks, at numpy's speed.

A CRC is linear: of the halves of a string it is that of the first, moved on by as many zero bytes as the second has, XOR
that of the second. So the data is cut into lanes of equal length whose CRCs advance together, a byte of each at a step,
and the lanes are then joined pairwise.
"""
from __future__ import annotations

from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78  # reflected
_LANES = 4096

_Words = np.ndarray[Any, np.dtype[np.uint32]]


def _byte_table() -> _Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


_TABLE = _byte_table()
# The identity, by columns, and the matrix that moves a CRC on by one zero byte: what becomes of each single bit.
_BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)
_ONE_BYTE: _Words = _TABLE[_BITS & 0xFF] ^ _BITS >> 8


def _apply(matrix: _Words, vectors: _Words) -> _Words:
    """Each of `vectors` times a matrix of 32 columns over the field of two elements."""
    out = np.zeros_like(vectors)
    for bit in range(32):
        out ^= np.where(vectors >> bit & 1, matrix[bit], np.uint32(0))
    return out


def _power(matrix: _Words, exponent: int) -> _Words:
    out = _BITS
    while exponent:
        if exponent & 1:
            out = _apply(matrix, out)
        matrix = _apply(matrix, matrix)
        exponent >>= 1
    return out


def crc32c(data: bytes) -> int:
    """The CRC-32C of `data`, as in RFC 3720: of b"123456789" it is 0xE3069283."""
    length = max(-(-len(data) // _LANES), 4)  # of a lane
    # Leading zeros change nothing while the register is 0, so they fill the first lanes up; that it starts at all ones
    # is as if the first four bytes were inverted, of which zeros after the end take part when there are fewer.
    padded = np.zeros(length * _LANES + 4, np.uint8)
    start = length * _LANES - len(data)
    padded[start:start + len(data)] = np.frombuffer(data, np.uint8)
    padded[start:start + 4] ^= 0xFF
    lanes = np.ascontiguousarray(padded[:length * _LANES].reshape(_LANES, length).T)
    crcs = np.zeros(_LANES, np.uint32)
    for step in lanes:
        crcs = _TABLE[(crcs ^ step) & 0xFF] ^ crcs >> 8
    move = _power(_ONE_BYTE, length)
    while len(crcs) > 1:
        crcs = _apply(move, crcs[0::2]) ^ crcs[1::2]
        move = _apply(move, move)
    # The start's inversion beyond the end has not moved through the register and is added here.
    after_end = int.from_bytes(padded[length * _LANES:].tobytes(), "little")
    return int(crcs[0]) ^ after_end ^ 0xFFFFFFFF
