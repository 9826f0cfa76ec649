"""Where estimators build and apply their maps: in this process, or on a server, by a client that they share."""
from __future__ import annotations

import functools
import os
import warnings
from typing import Any

from phimap._access import access_key, server_or_default
from phimap.client import Client


# The parameter `server` that means the server that the environment names.
_OF_ENVIRONMENT = "env"
_VARIABLE = "PHIMAP_SERVER"


def is_here(server: str | None) -> bool:
    """Returns True if the parameter `server` means this process."""
    if server is not None:
        return False
    if os.environ.get(_VARIABLE):
        _warn_of_server()
    return True


@functools.cache
def _warn_of_server() -> None:
    warnings.warn(f"{_VARIABLE} is set, but estimators compute in this process unless server=\"{_OF_ENVIRONMENT}\", or another "
                  "server, is given", UserWarning, stacklevel=5)


def target_of(server: str) -> str:
    """Returns the address that the parameter `server` means. ValueError for "env" if the environment names none."""
    if server != _OF_ENVIRONMENT:
        return server_or_default(server)
    if not os.environ.get(_VARIABLE):
        raise ValueError(f"server={_OF_ENVIRONMENT!r} is the server that {_VARIABLE} of the environment names, and it is not set")
    return server_or_default(None)


def client_of(server: str) -> Client:
    """Returns the client that the estimators of this process share for a server. The client is
    never closed, so a fitted estimator works after any `with` block."""
    known = isinstance(server, str) and server != _OF_ENVIRONMENT
    return _client_of(os.getpid(), _checked(server) if known else target_of(server), access_key())


_checked = functools.lru_cache(maxsize=64)(server_or_default)


# One client per process, because channels do not survive a fork and joblib may fork. One client per
# `access`, because the environment may change: a token or a TLS certificate may be replaced.
@functools.lru_cache(maxsize=16)
def _client_of(process: int, server: str, access: tuple[Any, ...]) -> Client:
    return Client(server)


def forget_clients() -> None:
    """Forgets all clients: the next call makes a new connection."""
    _client_of.cache_clear()
