"""A client's knowledge of the revisions of names: servers that share a store tell them, and calls ask for as much."""
from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from phimap.errors import Error

_TOLD = "phimap-revision"
_ASKED = "phimap-min-revision"
OF_ANOTHER_HISTORY = "REVISION_HISTORY_MISMATCH"


class Revisions:
    """The newest revision that an answer told: after a change every server shows it, and nothing older, to this client.

    A server with a store of its own tells revisions too; asking it for them costs nothing. Thread-safe.
    """

    def __init__(self, metadata: Any) -> None:
        self._access = metadata
        # Metadata of the next call.
        self.metadata = metadata
        self._known: tuple[str, int] | None = None
        self._lock = threading.Lock()

    @property
    def without(self) -> Any:
        """Metadata of a call that depends on no earlier one."""
        return self._access

    def learn(self, trailers: Iterable[tuple[str, Any]] | None, asked: Any = None) -> None:
        """From the trailing metadata of a call that succeeded and was made with the metadata `asked`.

        Numbers of one epoch grow. Another epoch is newer, except the one that the call asked for: while it was on its way,
        that one was forgotten or replaced.
        """
        for key, value in trailers or ():
            epoch, _, number = str(value).rpartition(":")
            if key == _TOLD and epoch and number.isdecimal():
                with self._lock:
                    if self._is_news(epoch, int(number), asked):
                        self._set((epoch, int(number)))

    def noted(self, error: Error) -> Error:
        """Returns the error; forgets a revision of another history, from before a failover or a restored backup."""
        if error.reason == OF_ANOTHER_HISTORY:
            with self._lock:
                if self._known is not None and self._known[0] == error.metadata.get("actual"):
                    self._set(None)
        return error

    def _is_news(self, epoch: str, number: int, asked: Any) -> bool:
        if self._known is not None and self._known[0] == epoch:
            return self._known[1] < number
        return not asked or asked[-1][0] != _ASKED or asked[-1][1].rpartition(":")[0] != epoch

    def _set(self, known: tuple[str, int] | None) -> None:
        self._known = known
        self.metadata = self._access if known is None else (
            *(self._access or ()), (_ASKED, f"{known[0]}:{known[1]}"))
