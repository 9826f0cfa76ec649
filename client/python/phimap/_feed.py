"""The requests of a stream on their way from the caller's thread to gRPC's."""
from __future__ import annotations

import collections
import threading


class Feed:
    """An iterator for gRPC, fed by the caller.

    So the rows are read, and observers called, on the caller's own thread, where an exception or an interrupt ends the
    call as one would expect; gRPC's thread only takes what is ready. At most `limit` messages wait in between.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._messages: collections.deque[bytes] = collections.deque()
        self._changed = threading.Condition()
        self._closed = False
        self._over = False

    def put(self, message: bytes) -> bool:
        """Waits until a message fits into the queue. False if the call is over; reading its answers then says why."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._limit is None or len(self._messages) < self._limit)
            self._messages.append(message)
            self._changed.notify_all()
            return not self._over

    def close(self) -> None:
        """There are no more messages."""
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
