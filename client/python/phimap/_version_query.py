"""Asking for a version that may be pinned, as decisions: by its number, then by its digest. The clients do the calls."""
from __future__ import annotations

from phimap._pins import Pins, by_digest, elsewhere, nowhere
from phimap._transform import Target, explained
from phimap.errors import Error
from phimap.results import Version
from phimap.v1 import mapping_service_pb2 as service_pb


class VersionQuery:
    """One GetVersion, or two."""

    def __init__(self, pins: Pins, reference: str) -> None:
        self._target = Target.resolve(pins, reference, "")
        self._next: str | None = self._target.reference
        self._refused: Error | None = None
        self._version: Version | None = None

    def request(self) -> service_pb.GetVersionRequest | None:
        """The next question for the server; None once the version is known."""
        return None if self._next is None else service_pb.GetVersionRequest(reference=self._next)

    def take(self, version: Version) -> None:
        digest = self._target.expected_digest
        other = self._refused is None and digest not in ("", version.ref.digest)
        # A number that was given to another version: the digest is what was pinned.
        self._next = by_digest(self._target.reference, digest) if other and self._version is None else None
        self._version = version

    def refuse(self, error: Error) -> None:
        """Raises what is to be raised, unless the digest is to be asked for."""
        if self._refused is not None and nowhere(error):
            raise self._refused
        self._next = elsewhere(self._next or "", self._target.expected_digest, error)
        if self._next is None:
            raise explained(error, self._target)
        self._refused = explained(error, self._target)

    def version(self) -> Version:
        assert self._version is not None
        return self._version
