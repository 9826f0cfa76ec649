"""The servers of the tests: phimapd itself, and one in this process whose answers a test writes."""
from __future__ import annotations

import os

import numpy as np
import pytest

import phimap
from phimapd import Phimapd
from scripted_server import ScriptedServer


@pytest.fixture(scope="session")
def phimapd(tmp_path_factory):
    """A server for tests that leave it running."""
    with Phimapd(tmp_path_factory.mktemp("store")) as server:
        yield server


@pytest.fixture
def own_phimapd(tmp_path):
    """A server that the test may kill and start again. It listens on a socket file too, whose name survives it."""
    with Phimapd(tmp_path / "store", f"--unix_listen={tmp_path}/socket") as server:
        yield server


@pytest.fixture
def client(phimapd):
    with phimap.Client(phimapd.address) as connected:
        yield connected


@pytest.fixture
def scripted():
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def scripted_client(scripted):
    with phimap.Client(scripted.address, service_config=NO_BACKOFF) as connected:
        yield connected


# The package's own policy with the shortest waits: gRPC refuses a backoff of 0.
_RETRY = {"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
          "retryableStatusCodes": ["UNAVAILABLE"]}
NO_BACKOFF = {"methodConfig": [{"name": [{}], "retryPolicy": _RETRY}]}


@pytest.fixture
def engine_library():
    """Of tests that execute artifacts themselves: they are skipped where libphimap_engine was built for a sanitizer."""
    if not os.environ.get("PHIMAP_ENGINE_LIBRARY"):
        pytest.skip("libphimap_engine needs its sanitizer's runtime")


@pytest.fixture
def rows():
    """300 rows of 5 columns that differ."""
    return np.random.default_rng(1).standard_normal((300, 5))
