"""Files of artifacts, given by a path or as an open file."""
from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Union, cast

File = Union[str, "os.PathLike[str]", BinaryIO]


@contextlib.contextmanager
def read(file: File) -> Iterator[BinaryIO]:
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb") as opened:
            yield opened
        return
    if not hasattr(file, "read"):
        raise _wrong("rb", f"{type(file).__name__} {file!r:.40}")
    if not isinstance(file.read(0), bytes):
        raise _wrong("rb", f"{type(file).__name__}, which reads text")
    yield file


@contextlib.contextmanager
def written(file: File) -> Iterator[BinaryIO]:
    """Opens `file` for writing. A file at a path is created or replaced only after everything was
    written without an error."""
    if not isinstance(file, (str, os.PathLike)):
        if not hasattr(file, "write"):
            raise _wrong("wb", f"{type(file).__name__} {file!r:.40}")
        if isinstance(file, io.TextIOBase):
            raise _wrong("wb", f"{type(file).__name__}, which takes text")
        yield file
        return
    path = os.fspath(file)
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", prefix=".phimap-", delete=False) as temporary:
        try:
            yield cast(BinaryIO, temporary)
            temporary.flush()
            os.chmod(temporary.name, 0o666 & ~_umask())
            os.replace(temporary.name, path)
        except BaseException:
            os.unlink(temporary.name)
            raise


def _wrong(mode: str, got: str) -> TypeError:
    return TypeError(f"file: expected a path, or a file of bytes such as open(path, {mode!r}) or io.BytesIO, got {got}")


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask
