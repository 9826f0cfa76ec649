"""CRC-32C (Castagnoli), which Python's standard library lacks, vectorized with numpy.

A CRC is linear: the CRC of a string is the CRC of its first half, advanced by as many zero bytes as
the second half has, XOR the CRC of the second half. So the data is cut into lanes of equal length.
Their CRCs advance together, one byte of each lane per step, and the lanes are then joined pairwise.
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
# Two matrices of bits, by columns: the identity, and the one that advances a CRC by one zero byte.
# A column is the image of a single bit.
_BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)
_ONE_BYTE: _Words = _TABLE[_BITS & 0xFF] ^ _BITS >> 8


def _apply(matrix: _Words, vectors: _Words) -> _Words:
    """Returns the products of `matrix`, which has 32 columns over GF(2), and each of `vectors`."""
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
    """Returns the CRC-32C of `data`, as in RFC 3720. For b"123456789" it is 0xE3069283."""
    length = max(-(-len(data) // _LANES), 4)  # of a lane
    # Leading zeros change nothing while the register is 0, so they pad the first lanes. The CRC
    # really starts with all ones, which has the same effect as inverting the first four bytes. If
    # the data has fewer than four bytes, zeros after its end are inverted too.
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
    # Bytes that were inverted after the end of the data have not passed through the register, so
    # they are XORed in here.
    after_end = int.from_bytes(padded[length * _LANES:].tobytes(), "little")
    return int(crcs[0]) ^ after_end ^ 0xFFFFFFFF
