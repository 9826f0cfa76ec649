"""The clients of the estimators."""
from __future__ import annotations

import functools
import os
from typing import Any

from phimap._access import access_key, server_or_default
from phimap.client import Client


def client_of(server: str | None) -> Client:
    """Returns the client that the estimators of this process share for a server. The client is
    never closed, so a fitted estimator works after any `with` block."""
    target = server_or_default(server)
    return _client_of(os.getpid(), target, access_key(target))


# One client per process, because channels do not survive a fork and joblib may fork. One client per
# `access`, because the environment may change: a token or a TLS certificate may be replaced.
@functools.lru_cache(maxsize=16)
def _client_of(process: int, server: str, access: tuple[Any, ...]) -> Client:
    return Client(server)


def forget_clients() -> None:
    """Forgets all clients: the next call makes a new connection."""
    _client_of.cache_clear()
