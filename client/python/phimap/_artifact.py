"""Export and import of artifacts: chunks with a checksum each, and a digest of the whole
artifact."""
from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

from phimap._crc32c import crc32c
from phimap.errors import DataLoss, Error
from phimap.v1 import mapping_service_pb2 as service_pb

# The API's limit.
CHUNK_BYTES = 1 << 20


class Receiver:
    """Writes chunks to a file. Checks each chunk and, at the end, the whole artifact."""

    def __init__(self, file: BinaryIO, digest: str) -> None:
        self._file = file
        self._digest = digest
        self._hash = hashlib.sha256()
        self._bytes = 0

    def take(self, chunk: service_pb.ArtifactChunk) -> None:
        if chunk.offset_bytes != self._bytes:
            raise DataLoss(f"expected the chunk at byte {self._bytes}, got the one at byte {chunk.offset_bytes}")
        if crc32c(chunk.data) != chunk.crc32c:
            raise DataLoss(f"the chunk at {chunk.offset_bytes} was damaged on its way: its CRC-32C is "
                           f"{crc32c(chunk.data):#010x}, expected {chunk.crc32c:#010x}")
        self._hash.update(chunk.data)
        self._file.write(chunk.data)
        self._bytes += len(chunk.data)

    def finish(self) -> int:
        """Returns the number of bytes received. DataLoss if they do not have the version's
        digest."""
        if self._hash.hexdigest() != self._digest:
            raise DataLoss(f"the artifact that was received, {self._bytes} bytes, has the SHA-256 {self._hash.hexdigest()}, "
                           f"expected {self._digest}")
        return self._bytes


class ImportRequests:
    """The messages of an Import: the name, the chunks, and the digest of what was read.

    gRPC reads the messages on its own thread and would hide an exception that reading the file
    raises. Such an exception therefore ends the messages before the digest, and the server stores
    nothing without a digest. At the end of the `with` block, the exception is raised instead of the
    server's error.
    """

    def __init__(self, name: str, file: BinaryIO) -> None:
        self._messages = _import_messages(name, file)
        self._failure: Exception | None = None

    def __iter__(self) -> ImportRequests:
        return self

    def __next__(self) -> service_pb.ImportRequest:
        try:
            return next(self._messages)
        except StopIteration:
            raise
        except Exception as failure:
            self._failure = failure
            raise StopIteration from None

    def __enter__(self) -> ImportRequests:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._failure is not None and isinstance(error, Error):
            raise self._failure from None


def _import_messages(name: str, file: BinaryIO) -> Iterator[service_pb.ImportRequest]:
    yield service_pb.ImportRequest(name=name)
    sha256 = hashlib.sha256()
    offset = 0
    while data := file.read(CHUNK_BYTES):
        sha256.update(data)
        yield service_pb.ImportRequest(
            chunk=service_pb.ArtifactChunk(offset_bytes=offset, data=data, crc32c=crc32c(data)))
        offset += len(data)
    yield service_pb.ImportRequest(digest=sha256.hexdigest())
