"""Artifacts of a server as maps of this process: cached by their digest, and followed while an alias moves."""
from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import stat
import threading
import warnings
from typing import Any

from phimap._pins import by_digest, reference_to
from phimap.client import Client
from phimap.errors import DataLoss, Error
from phimap.feature_map import FeatureMap, Kernel
from phimap.results import Prediction, Version


def pull(reference: str, *, server: str | None = None, cache: str | os.PathLike[str] | None = None,
         kernel: Kernel | None = None) -> FeatureMap:
    """Returns the map of a server's version, such as "letters@prod" or "letters@3".

    Its artifact is kept in a folder that only this user may read, and is not transferred again while it is
    there; each time it is read, its SHA-256 must be the version's digest.

    Args:
        server: see Client.
        cache: the folder; None means phimap in $XDG_CACHE_HOME, or ~/.cache/phimap.
        kernel: see FeatureMap.
    """
    with Client(server) as client:
        return _pulled(client, client.get_version(reference), _private_folder(cache), kernel)


class FollowedMap:
    """The map that an alias points at: `pull`ed again when the alias has moved, and swapped whole, so a call is
    answered by one version. Created by `follow`. Thread-safe; it cannot be pickled.

    A thread asks the server every `every` seconds. While the server does not answer, the map stays what it
    was, with a warning.
    """

    def __init__(self, reference: str, server: str | None, every: float, cache: str | os.PathLike[str] | None,
                 kernel: Kernel | None) -> None:
        self.reference = reference
        self._server, self._every, self._cache, self._kernel = server, every, cache, kernel
        # The map of now, replaced in one step.
        self.map = pull(reference, server=server, cache=cache, kernel=kernel)
        # Whether the server did not answer the last time.
        self.failing = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="phimap-follow", daemon=True)
        self._thread.start()

    def transform(self, rows: Any, *, threads: int = 0) -> Any:
        return self.map.transform(rows, threads=threads)

    def predict(self, rows: Any, **wanted: Any) -> Prediction:
        return self.map.predict(rows, **wanted)

    @property
    def digest(self) -> str:
        return self.map.digest

    def close(self) -> None:
        """Stops following. The map stays what it is."""
        self._closed.set()
        self._thread.join()

    def __enter__(self) -> FollowedMap:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"phimap.follow({self.reference!r}): {self.map!r}"

    def _follow(self) -> None:
        with Client(self._server) as client:
            while not self._closed.wait(self._every):
                try:
                    version = client.get_version(self.reference)
                    if version.ref.digest != self.map.digest:
                        self.map = _pulled(client, version, _private_folder(self._cache), self._kernel)
                    self.failing = False
                except (Error, OSError) as error:
                    if not self.failing:
                        self.failing = True
                        with contextlib.suppress(Warning):  # where warnings are errors, following goes on
                            warnings.warn(f"{self.reference} stays what it was, sha256:{self.map.digest[:12]}: {error}")


def follow(reference: str, *, server: str | None = None, every: float = 5.0, cache: str | os.PathLike[str] | None = None,
           kernel: Kernel | None = None) -> FollowedMap:
    """Returns a map that follows an alias; see FollowedMap and, for the arguments, `pull`."""
    return FollowedMap(reference, server, every, cache, kernel)


def _pulled(client: Client, version: Version, folder: pathlib.Path, kernel: Kernel | None) -> FeatureMap:
    digest = version.ref.digest
    path = folder / f"{digest}.phimap"
    artifact = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(artifact).hexdigest() != digest:  # not there, or not what was written
        # By its digest: the number may mean another version by now.
        client.export(by_digest(reference_to(version), digest) or reference_to(version), str(path))
        artifact = path.read_bytes()
        if hashlib.sha256(artifact).hexdigest() != digest:
            path.unlink()
            raise DataLoss(f"{reference_to(version)}: the server gave other bytes than those of sha256:{digest}")
    return FeatureMap(artifact, kernel=kernel)


def _private_folder(given: str | os.PathLike[str] | None) -> pathlib.Path:
    """Returns the folder, made if it is not there. PermissionError if another user could change what is in it."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(given) if given is not None else pathlib.Path(home) / "phimap"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = folder.stat()
    if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
        raise PermissionError(f"{folder}: expected a folder of this user alone, mode 0700, for artifacts, got mode "
                              f"{stat.S_IMODE(state.st_mode):o} of user {state.st_uid}; chmod 700 it, or give cache=")
    return folder
