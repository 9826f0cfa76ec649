"""Passes the requests of a stream from the caller's thread to gRPC's."""
from __future__ import annotations

import collections
import threading


class Feed:
    """An iterator for gRPC, filled by the caller.

    Rows are therefore read, and observers called, on the caller's own thread, where an exception or
    an interrupt ends the call as expected. gRPC's thread only takes messages that are ready. Up to
    `limit` messages are queued.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._messages: collections.deque[bytes] = collections.deque()
        self._changed = threading.Condition()
        self._closed = False
        self._over = False

    def put(self, message: bytes) -> bool:
        """Blocks until the queue has capacity and adds `message`. Returns False if the call is
        over; reading its answers then raises the reason."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._limit is None or len(self._messages) < self._limit)
            self._messages.append(message)
            self._changed.notify_all()
            return not self._over

    def close(self) -> None:
        """Ends the requests."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def call_is_over(self) -> None:
        """Ends the feed; gRPC calls this when the call ends."""
        with self._changed:
            self._over = True
            self._messages.clear()
            self._changed.notify_all()

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._closed or bool(self._messages))
            if self._over or not self._messages:
                raise StopIteration
            message = self._messages.popleft()
            self._changed.notify_all()
            return message
