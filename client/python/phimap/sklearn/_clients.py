"""The clients of the estimators."""
from __future__ import annotations

import functools
import os
from typing import Any

from phimap._access import access_key, server_or_default
from phimap.client import Client


def client_of(server: str | None) -> Client:
    """The one that the estimators of this process share for a server. Nobody closes it, so a fitted estimator outlives every
    `with` block that its user wrote."""
    target = server_or_default(server)
    return _client_of(os.getpid(), target, access_key(target))


# One for each process, since channels do not survive a fork, and joblib may fork; and for what calls are made with, which
# the environment may say anew: a token or a certificate that was replaced.
@functools.lru_cache(maxsize=16)
def _client_of(process: int, server: str, access: tuple[Any, ...]) -> Client:
    return Client(server)


def forget_clients() -> None:
    """The next call connects anew."""
    _client_of.cache_clear()
