"""Tests what both clients say about drift."""
import asyncio
import uuid

import numpy as np
import pytest

import phimap
from phimap.aio import AsyncClient


@pytest.fixture(scope="module")
def stream():
    return np.random.default_rng(5).normal(size=(2000, 3))


@pytest.fixture
def name(client, stream):
    """Returns the name of a mapping whose alias "prod" is tested, and whose alias "small" is of a version that has
    too few rows for that."""
    mapping = f"m-{uuid.uuid4().hex}"
    client.build(mapping, stream, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    client.build(mapping, stream[:50], spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    client.set_alias(f"{mapping}@1", "prod")
    client.set_alias(f"{mapping}@2", "small")
    return mapping


def test_each_alias_has_its_evidence(client, name):
    drift = client.get_drift(name)
    prod, small = drift.aliases
    assert (prod.alias, prod.version, prod.not_tested) == ("prod", 1, "")
    assert prod.evidence == 0 and prod.rows == 0 and prod.promised_rows == 30 * 86400 * 10
    assert prod.shift is None and prod.shift_scale is None  # not measured, which is not 0
    assert small.alias == "small" and "fewer than 100 held-out rows" in small.not_tested
    assert repr(drift).startswith("<Drift prod: evidence 0 of 1, 0 rows, small: not tested")
    assert "evidence" in str(prod) and "not tested" in str(small)


def test_served_rows_are_tested(client, name, stream):
    client.transform(f"{name}@prod", stream[:10])
    while (prod := client.get_drift(name).aliases[0]).rows == 0:
        client.transform(f"{name}@prod", stream[:10])
    assert prod.rows >= 1 and prod.evidence < 1


def test_the_asynchronous_client_says_the_same(phimapd, client, name):
    async def asked():
        async with AsyncClient(phimapd.address) as connected:
            return await connected.get_drift(name)
    assert asyncio.run(asked()) == client.get_drift(name)


def test_an_unknown_mapping_is_not_found(client):
    with pytest.raises(phimap.NotFound):
        client.get_drift("unknown")
