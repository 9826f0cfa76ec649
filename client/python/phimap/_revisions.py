"""The newest revision that a client knows. Servers that share a store report their revision, and
each call asks for at least the newest known one."""
from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from phimap.errors import Error, Reason

_TOLD = "phimap-revision"
_ASKED = "phimap-min-revision"


class _Metadata(tuple[Any, ...]):
    """Metadata of a call, with the number of histories that had been left behind when it began."""

    history: int


class Revisions:
    """Remembers the newest revision that a server has reported, so that after a change no server
    shows this client an older state.

    A server with a store of its own reports revisions too; asking it for them costs nothing.
    Thread-safe.
    """

    def __init__(self, metadata: Any) -> None:
        self._access = metadata
        # Metadata of the next call.
        self.metadata = metadata
        # As the server told it, ID:NUMBER, and the number; "" if none is known.
        self._known = ("", 0)
        # Histories that were left behind.
        self._history = 0
        self._lock = threading.Lock()

    @property
    def without(self) -> Any:
        """Metadata of a call that depends on no earlier one."""
        return self._access

    def learn(self, trailers: Iterable[tuple[str, Any]] | None, asked: Any = None) -> None:
        """Learns the revision in the trailing metadata of a successful call, which was made with
        the metadata `asked`: it replaces the known one if its number is larger, unless the call
        asked for a revision of a history that has been left behind since.
        """
        for key, value in trailers or ():
            if value == self._known[0]:
                continue
            identity, _, number = str(value).rpartition(":")
            if key == _TOLD and identity and number.isdecimal():
                with self._lock:
                    current = getattr(asked, "history", self._history) == self._history
                    if current and (not self._known[0] or int(number) > self._known[1]):
                        self._set(str(value), int(number))

    def noted(self, error: Error) -> Error:
        """Returns `error`. If the server refused the revision as one of another history, from
        before a failover or a restored backup, leaves that history behind, and remembers the
        revision of the new one that the error tells."""
        if error.reason == Reason.REVISION_HISTORY_MISMATCH:
            with self._lock:
                if not self._known[0] or self._known[0] != error.metadata.get("actual"):
                    return error
                self._history += 1
                self._set("", 0)
            self.learn([(_TOLD, error.metadata.get("expected", ""))])
        return error

    def _set(self, revision: str, number: int) -> None:
        self._known = (revision, number)
        metadata = _Metadata((*(self._access or ()), *([(_ASKED, revision)] if revision else ())))
        metadata.history = self._history
        self.metadata = metadata if revision else self._access
