"""The bytes of a TransformRequest, for generators that send the same body every time."""

import struct


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def framed(reference: str, row: bytes) -> bytes:
    """Asks for the features of one row, little-endian float32 values, as gRPC frames it."""
    dense = b"\x08\x01" + b"\x10" + varint(len(row) // 4) + field(3, row)
    message = field(1, reference.encode()) + field(3, field(1, dense))
    return b"\0" + struct.pack(">I", len(message)) + message
