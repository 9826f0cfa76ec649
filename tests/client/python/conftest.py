"""Fixtures for the tests' servers: the real phimapd, and a scripted server in the test's process."""
from __future__ import annotations

import os

import numpy as np
import pytest

import phimap
from phimapd import Phimapd
from scripted_server import ScriptedServer


@pytest.fixture(scope="session")
def phimapd(tmp_path_factory):
    """A phimapd for tests that do not stop it."""
    with Phimapd(tmp_path_factory.mktemp("store")) as server:
        yield server


@pytest.fixture
def own_phimapd(tmp_path):
    """A phimapd that the test may kill and start again. It also listens on a socket file, whose name stays the same
    after a restart."""
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


# The package's own retry policy, but with a backoff of 1 ms. gRPC does not allow a backoff of 0.
_RETRY = {"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
          "retryableStatusCodes": ["UNAVAILABLE"]}
NO_BACKOFF = {"methodConfig": [{"name": [{}], "retryPolicy": _RETRY}]}


@pytest.fixture
def engine_library():
    """Skips tests that compute in their own process, if libphimap was built with a sanitizer."""
    if os.environ.get("PHIMAP_TESTED_ENGINE") == "none":
        pytest.skip("libphimap needs its sanitizer's runtime")


@pytest.fixture
def rows():
    """300 different rows of 5 columns."""
    return np.random.default_rng(1).standard_normal((300, 5))
