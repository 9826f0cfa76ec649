"""Tests the lifetimes of versions: how a build sets them, and how they are shown, extended and cleared."""
import asyncio
import datetime
import uuid

import pytest

import phimap
from phimap.aio import AsyncClient

DAY = 24 * 3600


@pytest.fixture
def name():
    return f"m-{uuid.uuid4().hex}"


def test_a_version_lives_for_ever_unless_its_build_asks_for_less(client, name, rows):
    for_ever = client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)")
    assert for_ever.ttl is None and for_ever.expire_time is None
    version = client.build(name, rows, spec="f1(landmarks=4)", kernel="rbf(gamma=scale)", ttl=datetime.timedelta(days=7))
    assert version.ttl.total_seconds() == 7 * DAY
    assert version.expire_time - version.create_time == datetime.timedelta(days=7)
    assert client.get_version(f"{name}@2").expire_time == version.expire_time
    assert "7 days, 0:00:00 after its last use, so far until 20" in str(version) and "lives" not in str(for_ever)
    newest, oldest = client.list_versions(name)
    assert newest.ttl == version.ttl and oldest.ttl is None


def test_a_ttl_is_seconds_too_and_is_checked(client, name, rows):
    assert client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=90.5).ttl == datetime.timedelta(seconds=90.5)
    for ttl in (0, 59, -60, 36500 * DAY + 1):
        with pytest.raises(phimap.InvalidArgument) as raised:
            client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=ttl)
        assert raised.value.reason == "FIELD_OUT_OF_RANGE" and raised.value.field == "ttl"
    for ttl in (float("inf"), float("nan")):
        with pytest.raises(ValueError, match="ttl"):
            client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=ttl)
    for ttl in ("7d", True):
        with pytest.raises(TypeError, match="ttl"):
            client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=ttl)


def test_the_same_build_with_another_ttl_is_another_build(client, name, rows):
    build_id = uuid.uuid4()
    first = client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", build_id=build_id, ttl=DAY)
    assert client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", build_id=build_id, ttl=DAY).ref == first.ref
    for ttl in (None, 2 * DAY):
        with pytest.raises(phimap.AlreadyExists):
            client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", build_id=build_id, ttl=ttl)


def test_keep_extends_and_clears_and_never_shortens(client, name, rows):
    client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=DAY)
    kept = client.keep_version(f"{name}@1", ttl=datetime.timedelta(days=30))
    assert kept.ttl.total_seconds() == 30 * DAY and kept.expire_time - kept.create_time >= datetime.timedelta(days=30)

    def is_refused(ttl):
        with pytest.raises(phimap.FailedPrecondition) as raised:
            client.keep_version(name, ttl=ttl)
        assert raised.value.reason == "TTL_TOO_SHORT" and raised.value.field == "ttl"

    is_refused(29 * DAY)
    client.set_alias(f"{name}@1", "prod")
    is_refused(29 * DAY)
    assert client.keep_version(name, ttl=31 * DAY).ttl.total_seconds() == 31 * DAY
    client.delete_alias(name, "prod")
    kept = client.keep_version(name)
    assert kept.ref.number == 1 and kept.ttl is None and kept.expire_time is None
    is_refused(365 * DAY)
    assert client.get_version(name).ttl is None
    with pytest.raises(phimap.NotFound):
        client.keep_version(f"{name}@9")
    with pytest.raises(phimap.InvalidArgument):
        client.keep_version(name, ttl=1)


def test_an_alias_keeps_what_it_points_at(client, name, rows):
    client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=DAY)
    client.set_alias(f"{name}@1", "prod")
    version = client.get_version(name)
    assert version.ttl.total_seconds() == DAY and version.expire_time is None
    client.delete_alias(name, "prod")
    assert client.get_version(name).expire_time is not None


def test_the_asynchronous_client_does_the_same(phimapd, name, rows):
    async def run():
        async with AsyncClient(phimapd.address) as client:
            version = await client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)", ttl=DAY)
            assert version.ttl.total_seconds() == DAY
            assert (await client.keep_version(f"{name}@1", ttl=2 * DAY)).ttl.total_seconds() == 2 * DAY
            assert (await client.keep_version(name)).ttl is None

    asyncio.run(run())
