"""Which version a name means: the one it meant first."""
from __future__ import annotations

import re
import threading
from typing import Any

from phimap.errors import Error
from phimap.v1 import mapping_pb2 as mapping_pb

# Errors of the server about a version that no longer exists, or that another has replaced.
_GONE = ("VERSION_NOT_FOUND", "DIGEST_MISMATCH")
_REFERENCE = re.compile(r"(?P<mapping>[^@]*)(?:@(?:(?P<number>\d+)|(?P<alias>.*)))?")


def reference_to(version: Any) -> str:
    """Text such as "letters@3", for a Version or a VersionRef."""
    ref = getattr(version, "ref", version)
    return f"{ref.mapping}@{ref.number}"


def checked(reference: Any) -> str:
    """TypeError if it is no text: protobuf's own would not say which argument is meant."""
    if not isinstance(reference, str):
        found = type(reference).__name__
        raise TypeError(f'expected a reference as "letters", "letters@3" or "letters@prod", got {found}'
                        + (f"; phimap.reference_to() makes one of a {found}" if found in ("Version", "VersionRef") else ""))
    return reference


def by_digest(reference: str, digest: str) -> str | None:
    """The version of that digest, of the mapping of a reference as "letters@3"; None of any other reference.

    A number is a server's own: after an export and an import the same artifact has another one. Whoever pinned a number
    pinned what the digest names.
    """
    found = _REFERENCE.fullmatch(reference)
    if found is None or found["number"] is None or not digest:
        return None
    return f"{found['mapping']}@sha256:{digest}"


def elsewhere(reference: str, digest: str, error: Error) -> str | None:
    """Where to look for a pinned version when the server has refused its number with this error; None: nowhere."""
    return by_digest(reference, digest) if error.reason in _GONE else None


def nowhere(error: Error) -> bool:
    """Whether a version that was looked for by its digest is not there, or the server knows no such references."""
    return error.reason in ("VERSION_NOT_FOUND", "REFERENCE_INVALID")


class Pins:
    """Remembers what references resolved to, since features of different versions are not comparable.

    A bare name is pinned to the version that it resolves to first, and a number to that version's digest, so that a
    mapping that was deleted and made anew on another server is noticed. Where the number is gone, the digest is looked
    for. An alias is followed. Malformed references go to
    the server, whose errors teach. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By bare name, and by name@number.
        self._versions: dict[str, mapping_pb.VersionRef] = {}

    def resolve(self, reference: str) -> tuple[str, str]:
        """The reference to ask the server for, and the expected digest, "" if any will do."""
        with self._lock:
            known = self._versions.get(checked(reference))
        return (reference_to(known), known.digest) if known else (reference, "")

    def observe(self, reference: str, version: mapping_pb.VersionRef) -> bool:
        """Takes note of what `reference` resolved to. False if another thread pinned it to another version."""
        if not self._pinnable(reference):
            return True
        with self._lock:
            pinned = self._versions.setdefault(reference, version)
            if pinned.digest != version.digest:
                return False
            self._versions[reference] = version  # by another number, where the first is gone
        return True

    def forget(self, mapping: str, number: int | None = None) -> None:
        """Of a mapping, or of one version of it."""
        with self._lock:
            for key, version in list(self._versions.items()):
                if version.mapping == mapping and number in (None, version.number):
                    del self._versions[key]

    def pinned(self) -> dict[str, mapping_pb.VersionRef]:
        """The bare names and what they are pinned to."""
        with self._lock:
            return {key: version for key, version in self._versions.items() if "@" not in key}

    @staticmethod
    def _pinnable(reference: str) -> bool:
        found = _REFERENCE.fullmatch(reference)
        return found is not None and found["alias"] is None
