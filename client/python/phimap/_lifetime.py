"""Converts arguments to requests: how long versions live, and which version an alias points to."""
from __future__ import annotations

import datetime
import math
from typing import Union

from google.protobuf.duration_pb2 import Duration

from phimap.v1 import mapping_service_pb2 as service_pb

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


def alias_request(mapping: str, alias: str, version: int | str, etag: str) -> service_pb.SetAliasRequest:
    """Returns the request that points the alias at `version`: a number, or a digest such as
    "sha256:0123456"."""
    if isinstance(version, str):
        prefix, _, digest = version.rpartition(":")
        if prefix not in ("", "sha256"):
            raise ValueError(f'version: expected a number, or a digest such as "sha256:0123456…", got {version!r:.80}')
        return service_pb.SetAliasRequest(mapping=mapping, alias=alias, digest=digest, etag=etag)
    return service_pb.SetAliasRequest(mapping=mapping, alias=alias, version=version, etag=etag)
