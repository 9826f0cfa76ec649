"""Tests CRC-32C against the test vectors of RFC 3720, and against a simple bitwise implementation."""
import numpy as np
import pytest

from phimap._crc32c import _LANES, crc32c


def bit_by_bit(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("data, expected", [
    (b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E), (bytes(range(31, -1, -1)), 0x113FDB5C)])
def test_known_vectors(data, expected):
    assert crc32c(data) == expected


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, _LANES - 1, _LANES, _LANES + 1, 4 * _LANES, 4 * _LANES + 3, 50_001])
def test_equals_the_bitwise_definition_around_the_lanes(length):
    data = np.random.default_rng(length).bytes(length)
    assert crc32c(data) == bit_by_bit(data)
