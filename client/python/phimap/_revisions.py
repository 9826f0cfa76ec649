"""The newest revision that a client knows. Servers that share a store report their revision, and
each call asks for at least the newest known one."""
from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from phimap.errors import Error

_TOLD = "phimap-revision"
_ASKED = "phimap-min-revision"
OF_ANOTHER_HISTORY = "REVISION_HISTORY_MISMATCH"


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
        self._known: tuple[str, int] | None = None
        self._lock = threading.Lock()

    @property
    def without(self) -> Any:
        """Metadata of a call that depends on no earlier one."""
        return self._access

    def learn(self, trailers: Iterable[tuple[str, Any]] | None, asked: Any = None) -> None:
        """Learns the revision in the trailing metadata of a successful call, which was made with
        the metadata `asked`.

        Within an epoch the larger number wins. Another epoch replaces the known one, unless the
        call asked for that epoch, because it was then forgotten or replaced while the call was
        under way.
        """
        for key, value in trailers or ():
            epoch, _, number = str(value).rpartition(":")
            if key == _TOLD and epoch and number.isdecimal():
                with self._lock:
                    if self._is_news(epoch, int(number), asked):
                        self._set((epoch, int(number)))

    def noted(self, error: Error) -> Error:
        """Returns `error`. If the server refused the revision as one of another history, from
        before a failover or a restored backup, forgets the revision."""
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
