"""Pins: within a client, a name always means the version that it first resolved to."""
from __future__ import annotations

import re
import threading
from typing import Any

from phimap.errors import Error, Reason
from phimap.v1 import mapping_pb2 as mapping_pb

# Errors of the server about a version that no longer exists, or that another has replaced.
_GONE = (Reason.VERSION_NOT_FOUND, Reason.DIGEST_MISMATCH)
_REFERENCE = re.compile(r"(?P<name>[^@]*)(?:@(?:(?P<number>\d+)|(?P<alias>.*)))?")


def reference_to(version: Any) -> str:
    """Returns text such as "letters@3" for a Version or a VersionRef; for one that no server stores, the start of its
    digest, which names it for people."""
    ref = getattr(version, "ref", version)
    return f"{ref.name}@{ref.number}" if ref.number else f"sha256:{ref.digest[:12]}"


def checked(reference: Any) -> str:
    """Returns `reference`. TypeError if it is not a text, because protobuf's own error would not
    mention the argument."""
    if not isinstance(reference, str):
        found = type(reference).__name__
        raise TypeError(f'expected a reference such as "letters", "letters@3" or "letters@prod", got {found}'
                        + (f"; phimap.reference_to() makes one of a {found}" if found in ("Version", "VersionRef") else ""))
    return reference


def by_digest(reference: str, digest: str) -> str | None:
    """Returns the reference by digest for a reference by number such as "letters@3"; None for any
    other reference, or if there is no digest.

    A number is valid on one server only, because after an export and an import the same artifact
    has another number. The digest identifies the pinned version on any server.
    """
    found = _REFERENCE.fullmatch(reference)
    if found is None or found["number"] is None or not digest:
        return None
    return f"{found['name']}@sha256:{digest}"


def elsewhere(reference: str, digest: str, error: Error) -> str | None:
    """Returns the reference by digest for a pinned version whose number the server refused with
    `error`; None if there is no other reference to try."""
    return by_digest(reference, digest) if error.reason in _GONE else None


def nowhere(error: Error) -> bool:
    """Returns True if the server has no version with the requested digest, or does not support
    references by digest."""
    return error.reason in (Reason.VERSION_NOT_FOUND, Reason.REFERENCE_INVALID)


class Pins:
    """Remembers what references resolved to, since features of different versions are not comparable.

    A bare name is pinned to the version that it resolves to first. A number is pinned to that
    version's digest, so that a mapping that was deleted and created again on another server is
    noticed; if the number is gone, the version is requested by its digest. An alias is not pinned.
    Malformed references are sent to the server, whose errors explain them. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By bare name, and by name@number.
        self._versions: dict[str, mapping_pb.VersionRef] = {}

    def resolve(self, reference: str) -> tuple[str, str]:
        """Returns the reference to send and the expected digest, "" if any digest will do."""
        known = self._versions.get(checked(reference))
        return (reference_to(known), known.digest) if known else (reference, "")

    def observe(self, reference: str, version: mapping_pb.VersionRef) -> bool:
        """Records what `reference` resolved to. Returns False if another thread pinned it to
        another version."""
        if self._versions.get(reference) is version or not self._pinnable(reference):
            return True
        with self._lock:
            pinned = self._versions.setdefault(reference, version)
            if pinned.digest != version.digest:
                return False
            self._versions[reference] = version  # its number may have changed
        return True

    def forget(self, reference: str) -> None:
        """Forgets the pins of a mapping, or of the version "name@7" or "name@sha256:digest"."""
        name, _, version = reference.partition("@")
        digest = version.removeprefix("sha256:")
        with self._lock:
            for key, known in list(self._versions.items()):
                if known.name == name and (version in ("", str(known.number)) or (
                        digest != version and known.digest.startswith(digest))):
                    del self._versions[key]

    def pinned(self) -> dict[str, mapping_pb.VersionRef]:
        """Returns the bare names and what they are pinned to."""
        with self._lock:
            return {key: version for key, version in self._versions.items() if "@" not in key}

    @staticmethod
    def _pinnable(reference: str) -> bool:
        found = _REFERENCE.fullmatch(reference)
        return found is not None and found["alias"] is None
