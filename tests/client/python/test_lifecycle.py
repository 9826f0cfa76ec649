"""Tests aliases and deletion with both clients and with the estimators."""
import asyncio
import io
import uuid

import pytest
from sklearn.exceptions import NotFittedError

import phimap
from phimap.aio import AsyncClient
from phimap.sklearn import F2


@pytest.fixture
def name(client, rows):
    """Returns the name of a mapping with two versions: the first has 10 features, the second 20."""
    mapping = f"m-{uuid.uuid4().hex}"
    for landmarks in (10, 20):
        client.build(mapping, rows, spec=f"f2(landmarks={landmarks})", kernel="rbf(gamma=scale)")
    return mapping


def test_an_alias_is_followed_when_it_moves(client, name, rows):
    client.set_alias(f"{name}@1", "prod")
    assert client.transform(f"{name}@prod", rows).shape == (300, 10)
    client.set_alias(f"{name}@2", "prod")
    features, version = client.transform_with_version(f"{name}@prod", rows)
    assert features.shape == (300, 20) and version.number == 2


def test_an_etag_that_is_not_the_current_one_is_aborted_with_the_current_one(client, name):
    alias = client.set_alias(f"{name}@1", "prod", etag="none")
    assert (alias.name, alias.version) == ("prod", 1) and alias.etag
    for etag in ("none", "other"):
        with pytest.raises(phimap.Aborted) as raised:
            client.set_alias(f"{name}@2", "prod", etag=etag)
        assert raised.value.metadata["etag"] == alias.etag
    moved = client.set_alias(f"{name}@2", "prod", etag=alias.etag)
    with pytest.raises(phimap.Aborted):
        client.delete_alias(name, "prod", etag=alias.etag)
    client.delete_alias(name, "prod", etag=moved.etag)
    assert not client.get_mapping(name).aliases


def test_a_deleted_version_is_forgotten_by_the_client_that_deleted_it(client, name, rows):
    client.transform(name, rows)
    assert client.pinned[name].number == 2
    client.delete_version(f"{name}@2")
    assert client.transform(name, rows).shape == (300, 10)


def test_another_clients_pin_says_that_its_version_is_gone(phimapd, client, name, rows):
    with phimap.Client(phimapd.address) as other:
        other.transform(name, rows)
        client.delete_version(f"{name}@2")
        with pytest.raises(phimap.NotFound) as raised:
            other.transform(name, rows)
        assert f"{name!r} is pinned to {name}@2" in raised.value.__notes__[0]
        other.unpin(name)
        assert other.transform(name, rows).shape == (300, 10)


def test_a_deleted_mapping_is_gone(client, name):
    client.delete_mapping(name)
    with pytest.raises(phimap.NotFound):
        client.get_mapping(name)


def test_what_an_alias_points_at_is_not_deleted(client, name):
    client.set_alias(f"{name}@2", "prod")
    with pytest.raises(phimap.FailedPrecondition):
        client.delete_version(f"{name}@2")
    with pytest.raises(phimap.FailedPrecondition):
        client.delete_mapping(name)


def test_the_asynchronous_client_does_the_same(phimapd, client, name):
    async def run():
        async with AsyncClient(phimapd.address) as other:
            alias = await other.set_alias(f"{name}@1", "prod")
            await other.delete_alias(name, "prod", etag=alias.etag)
            await other.delete_version(f"{name}@1")
            assert [version.ref.number for version in await other.list_versions(name)] == [2]
            await other.delete_mapping(name)

    asyncio.run(run())
    with pytest.raises(phimap.NotFound):
        client.get_mapping(name)


def test_delete_removes_a_fresh_mapping_with_all_its_versions(phimapd, client, rows):
    estimator = F2(10, server=phimapd.address).fit(rows).fit(rows)
    mapping = estimator.reference_.split("@")[0]
    assert client.get_mapping(mapping).version_count == 2
    estimator.delete()
    with pytest.raises(phimap.NotFound):
        client.get_mapping(mapping)
    with pytest.raises(NotFittedError):
        estimator.transform(rows)
    estimator.delete()  # deleting twice is not an error


def test_a_with_block_deletes_at_its_end(phimapd, client, rows):
    with F2(10, server=phimapd.address) as estimator:
        mapping = estimator.fit(rows).reference_.split("@")[0]
        assert estimator.transform(rows).shape == (300, 10)
    with pytest.raises(phimap.NotFound):
        client.get_mapping(mapping)


def test_of_a_named_mapping_delete_removes_what_was_built_and_leaves_the_rest(phimapd, client, name, rows):
    F2(10, name=name, server=phimapd.address).fit(rows).delete()
    assert [version.ref.number for version in client.list_versions(name)] == [2, 1]


def test_a_version_that_was_only_looked_up_stays(phimapd, client, name, rows):
    F2.from_version(f"{name}@1", server=phimapd.address).delete()
    assert client.transform(f"{name}@1", rows).shape == (300, 10)


def test_from_version_keeps_what_the_alias_named(phimapd, client, name, rows):
    client.set_alias(f"{name}@1", "prod")
    estimator = F2.from_version(f"{name}@prod", server=phimapd.address)
    client.set_alias(f"{name}@2", "prod")
    assert estimator.transform(rows).shape == (300, 10)
    assert estimator.fit(rows).transform(rows).shape == (300, 20)  # transform looks the version up again


class _Breaks(io.BytesIO):
    """A file on a disk that fails after the first few bytes. The server does not answer before it has more bytes."""

    def read(self, size=-1):
        if self.tell():
            raise OSError("the disk failed")
        return super().read(100)


@pytest.mark.parametrize("file, error, message", [
    (io.StringIO("not bytes"), TypeError, "file: expected a path, or a file of bytes .*, got StringIO, which reads text"),
    (b"the artifact itself", TypeError, "file: expected a path, or a file of bytes .*, got bytes b'the artifact itself'"),
    (_Breaks(b"x" * 3_000_000), OSError, "the disk failed")])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_import_of_what_cannot_be_read_says_why_and_stores_nothing(phimapd, client, asynchronous, file, error, message):
    async def import_():
        async with AsyncClient(phimapd.address) as other:
            await other.import_("unreadable", file)

    if hasattr(file, "seek"):
        file.seek(0)
    with pytest.raises(error, match=message):
        asyncio.run(import_()) if asynchronous else client.import_("unreadable", file)
    with pytest.raises(phimap.NotFound):
        client.get_mapping("unreadable")


def test_an_export_to_a_file_of_text_is_refused(client, name):
    with pytest.raises(TypeError, match="got StringIO, which takes text"):
        client.export(name, io.StringIO())
