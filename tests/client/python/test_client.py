"""Tests the synchronous and the asynchronous client against a real phimapd."""
import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import phimap
from phimap import _transform
from phimap.aio import AsyncClient
from phimap.v1 import transform_service_pb2 as transform_pb
from phimap.v1 import transform_service_pb2_grpc as transform_grpc

SPEC = "f2(landmarks=20)"


@pytest.fixture
def name():
    return f"m-{uuid.uuid4().hex}"


@pytest.fixture
def version(client, name, rows):
    return client.build(name, rows, spec=SPEC, kernel="rbf(gamma=scale)")


def test_a_build_answers_the_version_with_its_certificate(version, name):
    assert phimap.reference_to(version) == phimap.reference_to(version.ref) == f"{name}@1"
    assert version.input_columns == 5 and version.output_columns == version.certificate.rank
    assert version.certificate.stream_rows == 300
    assert version.kernel_text.startswith("rbf(gamma=0.")


def test_features_are_those_that_generated_code_gets(phimapd, client, version, rows):
    with grpc.insecure_channel(phimapd.address, (("grpc.enable_http_proxy", 0),)) as channel:
        request = transform_pb.TransformRequest(reference=phimap.reference_to(version))
        request.examples.dense.rows, request.examples.dense.columns = rows.shape
        request.examples.dense.float64_le = rows.tobytes()
        answer = transform_grpc.TransformServiceStub(channel).Transform(request)
    expected = np.frombuffer(answer.features.float32_le, "<f4").reshape(300, version.output_columns)
    features, ref = client.transform_with_version(phimap.reference_to(version), rows)
    assert ref == version.ref == answer.version
    assert features.dtype == np.float32 and (features == expected).all()
    assert features.flags.aligned


def test_residuals_bound_the_error_of_the_kernel(client, version, rows):
    reference = phimap.reference_to(version)
    features, residuals, allowances = client.transform_with_residuals(reference, rows, allowances=True)
    assert (features == client.transform(reference, rows)).all()
    assert residuals.shape == (300,) and (residuals >= 0).all() and (residuals <= 1).all()
    assert allowances.shape == (300,) and (allowances > 0).all() and (allowances < 1e-2).all()
    gamma = float(version.kernel_text.removeprefix("rbf(gamma=").removesuffix(")"))
    distances = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    wide = features.astype(float)
    error = np.abs(np.exp(-gamma * distances) - wide @ wide.T)
    bounds = residuals.astype(float) + allowances
    assert (error <= np.sqrt(np.outer(bounds, bounds))).all()
    # Streams and the asynchronous client must give the same features and residuals.
    blocks = [client.transform_with_residuals(reference, iter([rows[:7], rows[7:]]))]

    async def again():
        async with AsyncClient(client.server) as other:
            return await other.transform_with_residuals(reference, rows)

    blocks.append(asyncio.run(again()))
    for same_features, same_residuals in blocks:
        assert (same_features == features).all() and (same_residuals == residuals).all()
    with pytest.raises(phimap.FailedPrecondition, match="only f2"):
        other = client.build(f"m-{uuid.uuid4().hex}", rows, spec="f1(landmarks=5)", kernel="rbf(gamma=scale)")
        client.transform_with_residuals(phimap.reference_to(other), rows)


def test_every_kind_of_rows_gives_the_same_bits(client, version, rows):
    reference = phimap.reference_to(version)
    rows = rows.astype(np.float32)
    expected = client.transform(reference, rows)
    frame = pd.DataFrame(rows, columns=list("abcde"))
    for same in (rows.astype(float), np.asfortranarray(rows), rows[::-1][::-1], rows.tolist(), frame,
                 scipy.sparse.csr_matrix(rows), scipy.sparse.csc_array(rows), (rows[i:i + 7] for i in range(0, 300, 7)),
                 iter([frame[:100], scipy.sparse.coo_matrix(rows[100:101]), rows[101:]])):
        assert (client.transform(reference, same) == expected).all()
    for blocks in (client.transform_stream(reference, rows, rows_per_request=9), map(
            lambda row: client.transform(reference, row.reshape(1, -1)), rows)):
        assert (np.concatenate(list(blocks)) == expected).all()


def test_every_kind_of_rows_builds_the_same_version(client, version, name, rows):
    for same in (pd.DataFrame(rows), (rows[i:i + 7] for i in range(0, 300, 7))):
        assert client.build(name, same, spec=SPEC, kernel="rbf(gamma=scale)").ref.digest == version.ref.digest
    assert client.build(name, rows, spec=SPEC, kernel="rbf(gamma=scale)", seed=1).ref.digest != version.ref.digest


def test_sparse_rows_are_not_shifted_by_a_build(client, version, name, rows):
    blocks = (scipy.sparse.csr_matrix(rows[i:i + 90]) for i in range(0, 300, 90))
    digests = {client.build(name, same, spec=SPEC, kernel="rbf(gamma=scale)").ref.digest for same in (scipy.sparse.csr_matrix(rows), blocks)}
    assert len(digests) == 1 and version.ref.digest not in digests
    # If rows are not standardized, dense and sparse rows give the same version.
    digests = {client.build(name, same, spec=SPEC, kernel="linear()", standardize=False).ref.digest
               for same in (rows, scipy.sparse.csr_matrix(rows))}
    assert len(digests) == 1


def test_wide_sparse_rows_are_mapped_without_being_dense_all_at_once(client, name):
    matrix = scipy.sparse.random(500, 20_000, density=0.001, format="csr", random_state=1)
    client.build(name, matrix, spec=SPEC, kernel="linear()")
    assert (client.transform(name, matrix) == client.transform(name, matrix.toarray())).all()


def test_the_serving_type_is_that_of_the_features(client, name, rows):
    client.build(name, rows, spec="f2(landmarks=20, serving_type=float64)", kernel="rbf(gamma=scale)")
    assert client.transform(name, rows.astype(np.float32)).dtype == np.float64


def test_many_rows_go_over_a_stream_and_come_back_as_one_array(client, version, rows):
    many = np.tile(rows, (400, 1))
    assert many.nbytes > _transform.UNARY_BYTES
    seen = []
    features = client.transform(phimap.reference_to(version), many, progress=seen.append)
    assert (features == np.tile(client.transform(phimap.reference_to(version), rows), (400, 1))).all()
    counts = [step.rows for step in seen]
    assert counts == sorted(counts) and counts[-1] == len(many) and len(counts) > 3


def test_a_name_keeps_meaning_what_it_meant_first(client, name, version, rows):
    first = client.transform(name, rows)
    client.build(name, rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    assert (client.transform(name, rows) == first).all()
    assert client.get_version(name).ref.number == 1
    assert client.pinned[name] == version.ref
    client.unpin(name)
    assert client.transform(name, rows).shape == (300, 10)


def test_another_client_starts_with_the_newest(phimapd, client, name, version, rows):
    client.build(name, rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    with phimap.Client(phimapd.address) as other:
        assert other.transform(name, rows).shape == (300, 10)


def test_a_digest_that_is_not_the_versions_is_a_failed_precondition(client, version, rows):
    with pytest.raises(phimap.FailedPrecondition):
        client.transform(phimap.reference_to(version), rows, expected_digest="0" * 64)
    assert client.transform(phimap.reference_to(version), rows, expected_digest=version.ref.digest).shape[0] == 300


@pytest.mark.parametrize("count", [10, 300, 200_000])
def test_a_bad_value_is_named_by_row_and_column_of_the_input(client, version, count):
    many = np.zeros((count, 5))
    many[count - 3, 2] = np.nan
    with pytest.raises(phimap.InvalidArgument) as raised:
        client.transform(phimap.reference_to(version), many)
    assert (raised.value.row, raised.value.column, raised.value.reason) == (count - 3, 2, "VALUE_NOT_FINITE")


def test_a_bad_value_of_a_build_is_named_too(client, name):
    blocks = [np.ones((40_000, 5)) for _ in range(5)]
    blocks[3][123, 4] = np.inf
    with pytest.raises(phimap.InvalidArgument) as raised:
        client.build(name, iter(blocks), spec=SPEC, kernel="rbf(gamma=scale)")
    assert (raised.value.row, raised.value.column) == (120_123, 4)
    with pytest.raises(phimap.NotFound):
        client.get_mapping(name)


def test_errors_of_the_server_carry_field_and_what_was_expected(client, version, rows):
    with pytest.raises(phimap.InvalidArgument) as raised:
        client.transform(phimap.reference_to(version), rows[:, :3])
    assert raised.value.metadata["expected"] == "5" and raised.value.metadata["actual"] == "3"
    with pytest.raises(LookupError):
        client.transform("nothing-of-this-name", rows)


# The caller reads the names of arguments and parameters, never those of the request's messages.
@pytest.mark.parametrize("arguments, field", [
    ({"spec": "f2(landmark=3)"}, "landmark"), ({"spec": "f2(landmarks=9000)"}, "landmarks"), ({"spec": "f2"}, "landmarks"),
    ({"spec": "f2(landmarks=3"}, "spec"), ({"kernel": "rbf(gamma=-1)"}, "gamma"), ({"kernel": "rbf("}, "kernel"),
    ({"seed": 3, "ttl": 1}, "ttl"), ({"name": "M"}, "name")])
def test_an_error_of_a_build_names_what_its_caller_wrote(client, rows, arguments, field):
    with pytest.raises(phimap.InvalidArgument, match=f"^{field}: ") as raised:
        client.build(**{"name": "m", "rows": rows, "spec": SPEC, "kernel": "rbf", **arguments})
    assert raised.value.field == field and "spec." not in str(raised.value)


def test_an_estimate_is_of_the_build_with_these_arguments(client, name):
    small, large = (client.estimate_build(name, 10_000, 5, spec=f"f2(landmarks={n})", kernel="rbf") for n in (10, 1000))
    assert 0 < small.flops < large.flops and small.artifact_size_bytes < large.artifact_size_bytes
    with pytest.raises(phimap.InvalidArgument, match="^landmarks: "):
        client.estimate_build(name, 10, 5, spec="f2")


def test_health_is_that_of_the_server_or_of_a_service(client):
    assert client.check_health() is True and client.check_health("phimap.v1.LearningService", timeout=10) is True
    with pytest.raises(phimap.NotFound):
        client.check_health("no.such.Service")


def test_a_known_build_id_follows_the_build_and_another_spec_is_refused(client, name, rows):
    build_id = uuid.uuid4()
    first = client.build(name, rows, spec=SPEC, kernel="rbf(gamma=scale)", build_id=build_id)
    again = client.build(name, iter([]), spec=SPEC, kernel="rbf(gamma=scale)", build_id=build_id)
    assert again.ref == first.ref
    assert client.get_build(name, build_id).state == "done"
    assert client.cancel_build(name, build_id).version == first.ref
    assert str(build_id) in [job.build_id for job in client.list_builds(name)]
    with pytest.raises(phimap.AlreadyExists):
        client.build(name, rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)", build_id=build_id)


def test_lists_have_all_pages(client, name, version, rows, monkeypatch):
    monkeypatch.setattr("phimap._connection.PAGE_SIZE", 2)
    for landmarks in range(1, 6):
        client.build(name, rows, spec=f"f1(landmarks={landmarks})", kernel="rbf(gamma=scale)")
    assert [found.ref.number for found in client.list_versions(name)] == [6, 5, 4, 3, 2, 1]
    assert [job.version.number for job in client.list_builds(name)] == [6, 5, 4, 3, 2, 1]
    assert name in [mapping.name for mapping in client.list_mappings()]
    assert client.get_mapping(name).newest_version == 6


def test_progress_of_a_build_ends_with_the_servers_phases(client, name, rows):
    seen = []
    # So long that no phase is over before the server has told of it.
    many = np.random.default_rng(7).normal(size=(20_000, rows.shape[1]))
    client.build(name, many, spec="f2(landmarks=500)", kernel="rbf(gamma=scale)", progress=seen.append)
    sending = [step.rows for step in seen if step.phase == "sending"]
    assert seen[0].phase == "sending" and sending == sorted(sending) and sending[-1] == 20_000
    assert any(step.job is not None for step in seen)


def test_the_asynchronous_client_does_the_same(phimapd, client, name, version, rows):
    many = np.tile(rows, (100, 1))

    async def blocks():
        for start in range(0, 300, 77):
            yield rows[start:start + 77]

    async def run():
        async with AsyncClient(phimapd.address, channels=2) as other:
            for same in (rows, blocks(), rows.tolist(), pd.DataFrame(rows)):
                assert (await other.build(name, same, spec=SPEC, kernel="rbf(gamma=scale)")).ref.digest == version.ref.digest
            reference = phimap.reference_to(version)
            expected = client.transform(reference, rows)
            for same in (rows, blocks(), iter([rows[:5], rows[5:]]), scipy.sparse.csr_matrix(rows)):
                assert (await other.transform(reference, same) == expected).all()
            assert (await other.transform(reference, many) == np.tile(expected, (100, 1))).all()
            singles = await asyncio.gather(*[other.transform(name, row.reshape(1, -1)) for row in rows])
            assert (np.concatenate(singles) == expected).all()
            streamed = [block async for block in other.transform_stream(name, rows, rows_per_request=50)]
            assert len(streamed) == 6 and (np.concatenate(streamed) == expected).all()
            assert [found.ref.number for found in await other.list_versions(name)] == [5, 4, 3, 2, 1]
            assert name in [mapping.name for mapping in await other.list_mappings()]
            assert (await other.get_mapping(name)).newest_version == 5
            assert (await other.get_version(name)).ref.number == other.pinned[name].number
            job = (await other.list_builds(name))[0]
            assert (await other.get_build(name, job.build_id)).state == "done"
            assert (await other.cancel_build(name, job.build_id)).state == "done"
            other.unpin(name)
            assert not other.pinned
            with pytest.raises(phimap.InvalidArgument) as raised:
                await other.transform(reference, np.full((200_000, 5), np.nan))
            assert raised.value.row == 0

    asyncio.run(run())


def test_a_row_of_a_build_that_is_refused_is_the_one_of_the_input(phimapd, client, name):
    rows = np.zeros((150_000, 5))  # too many rows for one message
    rows[140_007, 3] = np.nan
    expected = (140_007, 3, "examples.dense.rows[140007].columns[3]",
                "examples.dense.rows[140007].columns[3]: expected a finite number, got nan")

    async def build():
        async with AsyncClient(phimapd.address) as other:
            await other.build(name, rows, spec=SPEC, kernel="rbf(gamma=scale)")

    for attempt in (lambda: client.build(name, rows, spec=SPEC, kernel="rbf(gamma=scale)"), lambda: asyncio.run(build())):
        with pytest.raises(phimap.InvalidArgument) as raised:
            attempt()
        error = raised.value
        assert (error.row, error.column, error.field, error.message) == expected


def test_a_closed_client_says_so(phimapd, rows):
    closed = phimap.Client(phimapd.address)
    closed.close()
    for call in (closed.list_mappings, lambda: closed.transform("m", rows), lambda: closed.build("m", rows, spec=SPEC, kernel="rbf(gamma=scale)"),
                 lambda: next(closed.transform_stream("m", rows))):
        with pytest.raises(RuntimeError, match="this client is closed"):
            call()

    async def run():
        async with AsyncClient(phimapd.address) as client:
            pass
        await client.close()
        for call in (client.list_mappings(), client.transform("m", rows), client.build("m", rows, spec=SPEC, kernel="rbf(gamma=scale)"),
                     anext(client.transform_stream("m", rows))):
            with pytest.raises(RuntimeError, match="this client is closed"):
                await call

    asyncio.run(run())


def test_advice_is_that_of_the_server(client):
    advice = client.advise(margin=0.2, error=0.1, confidence=0.95)
    assert advice.proposal.startswith("f") and len(advice.lines) > 3
    with pytest.raises(phimap.InvalidArgument) as raised:
        client.advise(margin=2, error=0.1, confidence=0.95)
    assert raised.value.field == "margin"


def test_threads_share_a_client(client, version, rows):
    reference = phimap.reference_to(version)
    expected = client.transform(reference, rows)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: client.transform(reference, rows[i:i + 1]), range(300)))
    assert (np.concatenate(answers) == expected).all()
