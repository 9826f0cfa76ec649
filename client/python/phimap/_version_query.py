"""The decisions of asking for a version: one that may be pinned, by its number, then by its digest;
and the previous one of an alias. The clients make the calls."""
from __future__ import annotations

from phimap._pins import Pins, by_digest, elsewhere, nowhere
from phimap._transform import Target, explained
from phimap.errors import Error, FailedPrecondition, NotFound
from phimap.results import Alias, Mapping, Version
from phimap.v1 import mapping_service_pb2 as service_pb


def alias_of(mapping: Mapping, name: str) -> Alias:
    """Returns the alias of this name, which has a previous version."""
    alias = next((alias for alias in mapping.aliases if alias.name == name), None)
    if alias is None:
        raise NotFound(f"mapping {mapping.name!r} has no alias {name!r}")
    if not alias.previous_version:
        raise FailedPrecondition(f"{mapping.name}@{name} has pointed at version {alias.version} since it was made; there is no "
                                 "previous version")
    return alias


class VersionQuery:
    """One or two GetVersion calls."""

    def __init__(self, pins: Pins, reference: str) -> None:
        self._target = Target.resolve(pins, reference, "")
        self._next: str | None = self._target.reference
        self._refused: Error | None = None
        self._version: Version | None = None

    def request(self) -> service_pb.GetVersionRequest | None:
        """Returns the next request; None once the version is known."""
        return None if self._next is None else service_pb.GetVersionRequest(reference=self._next)

    def take(self, version: Version) -> None:
        digest = self._target.expected_digest
        other = self._refused is None and digest not in ("", version.ref.digest)
        # If another version has the pinned number, ask for the pinned digest.
        self._next = by_digest(self._target.reference, digest) if other and self._version is None else None
        self._version = version

    def refuse(self, error: Error) -> None:
        """Handles the error of a request: raises it, unless the version can still be requested by
        its digest."""
        if self._refused is not None and nowhere(error):
            raise self._refused
        self._next = elsewhere(self._next or "", self._target.expected_digest, error)
        if self._next is None:
            raise explained(error, self._target)
        self._refused = explained(error, self._target)

    def version(self) -> Version:
        assert self._version is not None
        return self._version
