"""Tests references by digest, and clients that are pinned to a version number. When that number is gone, they must
find the version by its digest."""
import asyncio
import io
import pickle
import uuid

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import phimap
from phimap.aio import AsyncClient
from phimap.sklearn import F2
from phimapd import Phimapd


@pytest.fixture
def version(client, rows):
    return client.build(f"m-{uuid.uuid4().hex}", rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")


@pytest.fixture
def other_phimapd(tmp_path):
    with Phimapd(tmp_path / "other") as server:
        yield server


def by_digest(version, digits=64):
    return f"{version.ref.name}@sha256:{version.ref.digest[:digits]}"


def moved(client, version):
    """Exports the version, deletes it and imports it again. The import gives it another number."""
    artifact = io.BytesIO()
    with phimap.Client(client.server) as admin:
        admin.export(phimap.reference_to(version), artifact)
        admin.delete_version(f"{version.ref.name}@{version.ref.number}")
        artifact.seek(0)
        again = admin.import_(version.ref.name, artifact)
    assert again.ref.number != version.ref.number and again.ref.digest == version.ref.digest
    return again


@pytest.mark.parametrize("digits", [7, 12, 64])
def test_a_digest_is_a_reference_everywhere(client, version, rows, digits):
    reference = by_digest(version, digits)
    expected = client.transform(phimap.reference_to(version), rows)
    features, used = client.transform_with_version(reference, rows)
    assert features.tobytes() == expected.tobytes() and used == version.ref
    blocks = list(client.transform_stream(reference, rows, rows_per_request=100))
    assert np.concatenate(blocks).tobytes() == expected.tobytes()
    assert client.get_version(reference).ref == version.ref
    assert client.export(reference, io.BytesIO()) == version.ref
    assert client.evaluate(reference, rows, rows[:, 0] > 0).version == version.ref
    assert phimap.rows_mapper(reference, server=client.server)(rows).tobytes() == expected.tobytes()
    alias = client.set_alias(f"{version.ref.name}@sha256:{version.ref.digest[:digits]}", "prod")
    assert (alias.version, alias.digest) == (version.ref.number, version.ref.digest)


def test_digests_that_are_not_there_or_are_none(client, version, rows):
    with pytest.raises(phimap.NotFound) as raised:
        client.transform(f"{version.ref.name}@sha256:{'0' * 64}", rows)
    assert raised.value.reason == "VERSION_NOT_FOUND" and raised.value.field == "reference"
    for wrong in ("sha256:", "sha256:012345", f"sha256:{version.ref.digest.upper()}", f"sha256:{version.ref.digest}0"):
        with pytest.raises(phimap.InvalidArgument) as raised:
            client.transform(f"{version.ref.name}@{wrong}", rows)
        assert raised.value.reason == "REFERENCE_INVALID" and "sha256:" in raised.value.message
    with pytest.raises(phimap.FailedPrecondition) as raised:
        client.transform(by_digest(version), rows, expected_digest="0" * 64)
    assert raised.value.reason == "DIGEST_MISMATCH"
    with pytest.raises(ValueError, match="sha256:"):
        client.set_alias(f"{version.ref.name}@sha1:0123456", "prod")


def test_of_two_builds_with_the_same_bytes_the_newest_is_meant(client, version, rows):
    again = client.build(version.ref.name, rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    assert again.ref.number == version.ref.number + 1 and again.ref.digest == version.ref.digest
    assert client.get_version(by_digest(version, 12)).ref == again.ref
    client.delete_version(f"{version.ref.name}@{again.ref.number}")
    assert client.get_version(by_digest(version, 12)).ref == version.ref


def test_a_pinned_version_is_found_by_its_digest_when_its_number_is_gone(client, version, rows):
    mapping, number = version.ref.name, phimap.reference_to(version)
    expected = client.transform(number, rows)
    client.transform(mapping, rows)
    again = moved(client, version)
    for reference in (mapping, number):
        features, used = client.transform_with_version(reference, rows)
        assert features.tobytes() == expected.tobytes() and used == again.ref
    # From now on, the client must use the new number.
    assert client.pinned[mapping] == again.ref
    other = phimap.Client(client.server)
    other.transform(number, rows, expected_digest=version.ref.digest)
    assert client.get_version(number).ref == again.ref
    assert client.evaluate(number, rows, rows[:, 0] > 0).version == again.ref
    assert np.concatenate(list(client.transform_stream(number, rows))).tobytes() == expected.tobytes()
    other.close()


def test_what_knows_number_and_digest_falls_back_before_it_was_used(phimapd, client, version, rows):
    expected = client.transform(phimap.reference_to(version), rows)
    mapper = phimap.rows_mapper(phimap.reference_to(version), server=phimapd.address)
    moved(client, version)
    assert mapper(rows).tobytes() == expected.tobytes()
    with phimap.Client(phimapd.address) as fresh:
        number = phimap.reference_to(version)
        assert fresh.evaluate(number, rows, rows[:, 0] > 0, expected_digest=version.ref.digest).version.digest == (
            version.ref.digest)
        blocks = fresh.transform_stream(number, rows, expected_digest=version.ref.digest, rows_per_request=100)
        assert np.concatenate(list(blocks)).tobytes() == expected.tobytes()


def test_a_number_that_is_another_version_by_now_is_not_used(other_phimapd, client, version, rows):
    """After a restored backup, a number may belong to a version with another digest."""
    artifact = io.BytesIO()
    client.export(phimap.reference_to(version), artifact)
    artifact.seek(0)
    with phimap.Client(other_phimapd.address) as other:
        other.build(version.ref.name, rows, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)")
        imported = other.import_(version.ref.name, artifact)
        features, used = other.transform_with_version(
            phimap.reference_to(version), rows, expected_digest=version.ref.digest)
        assert used == imported.ref
        assert features.tobytes() == client.transform(phimap.reference_to(version), rows).tobytes()


def test_where_the_digest_is_gone_too_the_error_is_the_numbers(client, version, rows):
    number = phimap.reference_to(version)
    client.transform(number, rows)
    client.transform(version.ref.name, rows)
    with phimap.Client(client.server) as admin:
        admin.delete_version(f"{version.ref.name}@{version.ref.number}")
    calls = (lambda: client.transform(number, rows), lambda: list(client.transform_stream(number, rows)),
             lambda: client.get_version(number), lambda: client.evaluate(number, rows, rows[:, 0] > 0))
    for call in calls:
        with pytest.raises(phimap.NotFound) as raised:
            call()
        assert f"has no version {version.ref.number}" in raised.value.message
    with pytest.raises(phimap.NotFound) as raised:
        client.get_version(version.ref.name)
    assert f"{version.ref.name!r} is pinned to {number}" in raised.value.__notes__[0]


def test_an_expected_digest_of_a_name_that_moves_stays_an_error(client, version, rows):
    mapping = version.ref.name
    other = client.build(mapping, rows, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)")
    client.set_alias(f"{mapping}@{other.ref.number}", "prod")
    for reference in (mapping, f"{mapping}@prod"):
        with pytest.raises(phimap.FailedPrecondition) as raised:
            client.transform(reference, rows, expected_digest=version.ref.digest)
        assert raised.value.reason == "DIGEST_MISMATCH"


def test_a_pickled_pipeline_has_the_same_bits_after_import_and_on_another_server(phimapd, other_phimapd, client, rows):
    mapping = f"m-{uuid.uuid4().hex}"
    labels = rows[:, 0] > 0
    model = make_pipeline(F2(landmarks=10, name=mapping, server=phimapd.address), LogisticRegression())
    expected = model.fit(rows, labels).decision_function(rows)
    pickled = pickle.dumps(model)
    again = moved(client, client.get_version(mapping))
    assert pickle.loads(pickled).decision_function(rows).tobytes() == expected.tobytes()
    artifact = io.BytesIO()
    client.export(phimap.reference_to(again), artifact)
    artifact.seek(0)
    with phimap.Client(other_phimapd.address) as other:
        other.build(mapping, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)")
        other.import_(mapping, artifact)
    elsewhere = pickle.loads(pickled)
    elsewhere[0].set_params(server=other_phimapd.address)
    assert elsewhere.decision_function(rows).tobytes() == expected.tobytes()


def test_the_asynchronous_client_does_the_same(phimapd, client, version, rows):
    number = phimap.reference_to(version)
    expected = client.transform(number, rows)

    async def run():
        async with AsyncClient(phimapd.address) as other:
            assert (await other.transform(by_digest(version, 7), rows)).tobytes() == expected.tobytes()
            await other.transform(number, rows)
            again = moved(client, version)
            for _ in range(2):
                features, used = await other.transform_with_version(number, rows)
                assert features.tobytes() == expected.tobytes() and used == again.ref
            assert (await other.get_version(number)).ref == again.ref
            labels = rows[:, 0] > 0
            assert (await other.evaluate(number, rows, labels)).version == again.ref
            async with AsyncClient(phimapd.address) as fresh:
                evaluation = await fresh.evaluate(number, rows, labels, expected_digest=version.ref.digest)
                assert evaluation.version == again.ref
            alias = await other.set_alias(f"{version.ref.name}@sha256:{version.ref.digest}", "prod")
            assert alias.version == again.ref.number

    asyncio.run(run())
