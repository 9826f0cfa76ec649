"""How long versions live, as an argument and as a message."""
from __future__ import annotations

import datetime
import math
from typing import Union

from google.protobuf.duration_pb2 import Duration

# How long a version lives after its last use: a timedelta, or seconds.
Ttl = Union[datetime.timedelta, int, float]


def ttl_message(ttl: Ttl | None) -> Duration | None:
    """Returns `ttl` as a message. None, which means for ever, stays None."""
    if ttl is None:
        return None
    if isinstance(ttl, datetime.timedelta):
        ttl = ttl.total_seconds()
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)):
        raise TypeError(f"ttl: expected a timedelta or seconds, got {type(ttl).__name__} {ttl!r:.80}")
    if not math.isfinite(ttl) or abs(ttl) > 1e11:
        raise ValueError(f"ttl: expected seconds from 60 to 3153600000, or None for ever, got {ttl!r}")
    message = Duration()
    message.FromMicroseconds(round(ttl * 1e6))
    return message
