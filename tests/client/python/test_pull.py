"""Tests maps that come from a server: cached by their digest, and followed."""
import os
import threading

import numpy as np
import pytest

import phimap

pytestmark = pytest.mark.usefixtures("engine_library")


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def built(client, rows, seed):
    return client.build("pulled", rows, spec="f2(landmarks=20)", kernel="rbf(gamma=0.5)", seed=seed)


def test_an_artifact_is_transferred_once_and_checked_each_time(client, phimapd, rows, cache):
    version = built(client, rows, 0)
    pulled = phimap.pull("pulled", server=phimapd.address, cache=cache)
    assert pulled.digest == version.ref.digest
    assert os.stat(cache).st_mode & 0o777 == 0o700
    path, = cache.iterdir()
    written = path.stat().st_mtime_ns
    assert phimap.pull("pulled", server=phimapd.address, cache=cache) == pulled
    assert path.stat().st_mtime_ns == written
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    assert phimap.pull("pulled", server=phimapd.address, cache=cache) == pulled  # fetched again
    assert path.read_bytes() == pulled.artifact


def test_a_folder_that_others_may_write_is_refused(client, phimapd, rows, cache):
    built(client, rows, 0)
    cache.mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="chmod 700"):
        phimap.pull("pulled", server=phimapd.address, cache=cache)


def test_a_followed_alias_swaps_whole(client, phimapd, rows, cache):
    first, second = built(client, rows, 1), built(client, rows, 2)
    client.set_alias(phimap.reference_to(first), "prod")
    features = {client.transform(phimap.reference_to(one), rows).tobytes() for one in (first, second)}
    moved = threading.Event()
    with phimap.follow("pulled@prod", server=phimapd.address, every=0.02, cache=cache) as followed:
        assert followed.digest == first.ref.digest
        client.set_alias(phimap.reference_to(second), "prod")
        while followed.digest != second.ref.digest:
            assert followed.transform(rows).tobytes() in features
            moved.wait(0.005)
        np.testing.assert_array_equal(followed.transform(rows), client.transform(phimap.reference_to(second), rows))


def test_without_its_server_a_followed_map_stays(own_phimapd, rows, cache):
    with phimap.Client(own_phimapd.address) as client:
        built(client, rows, 1)
        client.set_alias("pulled@1", "prod")
    with pytest.warns(UserWarning, match="stays what it was"):
        with phimap.follow("pulled@prod", server=own_phimapd.address, every=0.02, cache=cache) as followed:
            expected = followed.transform(rows)
            own_phimapd.kill()
            while not followed.failing:
                threading.Event().wait(0.01)
            np.testing.assert_array_equal(followed.transform(rows), expected)
