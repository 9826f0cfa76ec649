"""Tests Dask collections. They are mapped lazily and in other processes, and the features must be bit-for-bit those
of the server. Versions can be built from them."""
import os
import signal

import dask
import numpy as np
import pandas
import pytest
import scipy.sparse
from dask import array, bag
from dask import dataframe as frames
from dask.distributed import Client as Cluster
from dask.distributed import Event, LocalCluster

import phimap
from phimap.dask import _default_rows, build, sample, transform

SPEC = {"spec": "f2(landmarks=20)", "kernel": "rbf(gamma=0.5)"}
PROCESSES = {"scheduler": "processes", "num_workers": 2}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Dask cluster of four processes. The connect timeout is set to 5 s because a worker tries to fetch data from a
    killed worker for that long; the default is 30 s."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "5s")
        with (LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None,
                           local_directory=str(tmp_path_factory.mktemp("workers"))) as workers,
              Cluster(workers) as connected):
            yield connected


def test_an_array_has_the_bits_of_one_call(phimapd, client, rows):
    client.build("dask-array", rows, **SPEC)
    features = transform(array.from_array(rows, chunks=(70, 5)), "dask-array", server=phimapd.address)
    expected = client.transform("dask-array", rows)
    assert (features.shape, features.dtype) == (expected.shape, expected.dtype)
    assert features.chunks == ((70, 70, 70, 70, 20), (expected.shape[1],))
    np.testing.assert_array_equal(features.compute(**PROCESSES), expected)


def test_a_frame_keeps_its_index_also_of_empty_partitions(phimapd, client, rows):
    client.build("dask-frame", rows, **SPEC)
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    data = frames.from_pandas(frame, npartitions=3)
    data = data.map_partitions(lambda part: part[part.index < 100])  # this leaves the last partitions without rows
    features = transform(data, "dask-frame", server=phimapd.address)
    computed = features.compute(**PROCESSES)
    assert features.divisions == data.divisions
    assert list(computed.index) == list(range(100))
    assert list(computed.columns) == list(features.columns)
    assert (computed.dtypes == features.dtypes).all()
    np.testing.assert_array_equal(computed.to_numpy(), client.transform("dask-frame", rows[:100]))


def test_columns_of_a_frame_are_put_in_order_by_name(phimapd, client, rows):
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    assert list(build("dask-names", frames.from_pandas(frame, npartitions=3), server=phimapd.address, **SPEC).column_names) == list("abcde")
    data = frames.from_pandas(frame[list("edcba")], npartitions=3)
    features = transform(data, "dask-names", server=phimapd.address).compute(**PROCESSES)
    np.testing.assert_array_equal(features.to_numpy(), client.transform("dask-names", rows))
    renamed = frames.from_pandas(frame.rename(columns={"a": "x"}), npartitions=3)
    with pytest.raises(phimap.InvalidArgument, match='"a" is missing'):
        transform(renamed, "dask-names", server=phimapd.address).compute(scheduler="synchronous")


def test_a_bag_of_texts_gives_a_bag_of_features(phimapd, client):
    texts = [f"text {i * i} of many" for i in range(60)]
    client.build("dask-bag", texts, spec="f2(landmarks=20)", kernel="normalize(spectrum(n=3))")
    features = transform(bag.from_sequence(texts, npartitions=4), "dask-bag", server=phimapd.address)
    np.testing.assert_array_equal(np.array(features.compute(**PROCESSES)), client.transform("dask-bag", texts))


def test_sparse_blocks_are_mapped_as_dense_ones(phimapd, client, rows):
    client.build("dask-sparse", rows, **SPEC)
    data = array.from_array(rows, chunks=(70, 5)).map_blocks(scipy.sparse.csr_matrix)
    features = transform(data, "dask-sparse", server=phimapd.address)
    np.testing.assert_array_equal(features.compute(**PROCESSES), client.transform("dask-sparse", rows))


def test_workers_with_the_artifact_ask_no_server(own_phimapd, engine_library, rows):
    with phimap.Client(own_phimapd.address) as client:
        client.build("dask-alone", rows, **SPEC)
        expected = client.transform("dask-alone", rows)
    kinds = [array.from_array(rows, chunks=(70, 5)), frames.from_pandas(pandas.DataFrame(rows), npartitions=4),
             bag.from_sequence(rows.tolist(), npartitions=4)]
    lazy = [transform(data, "dask-alone", server=own_phimapd.address, on_workers=True) for data in kinds]
    own_phimapd.kill()
    for features in lazy:
        np.testing.assert_array_equal(np.array(features.compute(**PROCESSES)), expected)


def test_columns_in_several_chunks_are_refused(phimapd, client, rows):
    client.build("dask-chunks", rows, **SPEC)
    with pytest.raises(ValueError, match="rechunk"):
        transform(array.from_array(rows, chunks=(70, 2)), "dask-chunks", server=phimapd.address)


def test_a_graph_stays_with_its_version_when_the_alias_moves(phimapd, client, rows):
    client.build("dask-moved", rows, **SPEC)
    client.build("dask-moved", rows * 3, **SPEC)
    client.set_alias("dask-moved@1", "prod")
    features = transform(array.from_array(rows, chunks=(70, 5)), "dask-moved@prod", server=phimapd.address)
    client.set_alias("dask-moved@2", "prod")
    np.testing.assert_array_equal(features.compute(**PROCESSES), client.transform("dask-moved@1", rows))


@pytest.mark.parametrize("on_workers", [False, True])
def test_a_worker_that_is_killed_costs_nothing(request, phimapd, client, rows, cluster, on_workers):
    if on_workers:
        request.getfixturevalue("engine_library")  # because pytest ignores usefixtures marks of parameters
    client.build("dask-killed", rows, **SPEC)
    began, goes = f"begun-{on_workers}", f"go-{on_workers}"
    begun, go = Event(began), Event(goes)

    def held(block):
        Event(began).set()
        assert Event(goes).wait(60)
        return block

    data = array.from_array(rows, chunks=(10, 5)).map_blocks(held, dtype=rows.dtype, meta=rows[:0])
    future = cluster.compute(transform(data, "dask-killed", server=phimapd.address, on_workers=on_workers), optimize_graph=False)
    assert begun.wait(60)
    processes = cluster.run(os.getpid)
    busy = next(address for address, keys in cluster.processing().items() if keys)
    os.kill(processes[busy], signal.SIGKILL)
    go.set()
    np.testing.assert_array_equal(future.result(timeout=120), client.transform("dask-killed", rows))
    assert busy not in cluster.scheduler_info()["workers"]


def test_a_build_has_the_same_bytes_whoever_is_done_first(phimapd, client, rows, cluster):
    frame = frames.from_pandas(pandas.DataFrame(rows), npartitions=20)
    data = array.from_array(rows, chunks=(17, 5))
    arguments = {**SPEC, "standardize": True, "seed": 5, "sample_rows": 150, "server": phimapd.address}
    first = build("dask-build", data, **arguments)
    with dask.config.set(**PROCESSES):
        assert build("dask-build", data, **arguments).ref.digest == first.ref.digest
    assert build("dask-build", data, **{**arguments, "seed": 6}).ref.digest != first.ref.digest
    assert build("dask-build-frame", frame, **arguments).certificate.stream_rows == 150


def test_texts_of_a_bag_are_built_from(phimapd, client):
    texts = [f"text {i * i} of many" for i in range(60)]
    arguments = {"spec": "f2(landmarks=20)", "kernel": "normalize(spectrum(n=3))"}
    data = bag.from_sequence(texts, npartitions=4)
    version = build("dask-texts", data, **arguments, server=phimapd.address)
    assert version.certificate.stream_rows == 60
    assert sorted(sample(data).rows) == sorted(texts)


# The limit is 256 MiB. In float64, these are 100,000 rows of 335.5 columns, or 22,000 rows of 1,525.2 columns.
@pytest.mark.parametrize("columns, expected", [(1, 100_000), (335, 100_000), (336, 99_864), (1525, 22_002), (1526, 22_000),
                                               (65536, 22_000)])
def test_the_default_sample_is_bounded_in_bytes_but_fills_the_default_pool(columns, expected):
    assert _default_rows(array.zeros((10**7, columns), chunks=(10**6, columns)), "array") == expected


def test_a_certificate_speaks_of_the_rows_that_were_sent(phimapd, rows):
    data = array.from_array(rows, chunks=(70, 5))
    drawn = sample(data, rows=150, seed=5)
    assert drawn.total_rows == 300
    version = build("dask-certificate", data, **SPEC, seed=5, sample_rows=150, server=phimapd.address)
    certificate = version.certificate
    assert certificate.stream_rows == 150
    assert certificate.pool_rows + certificate.held_out_rows == 150


def test_a_build_standardizes_by_the_rows_that_were_sent(phimapd, client, rows):
    data = array.from_array(rows * 100 + 7, chunks=(70, 5))
    arguments = {**SPEC, "standardize": True, "seed": 5}
    version = build("dask-moments", data, **arguments, sample_rows=150, server=phimapd.address)
    drawn = sample(data, rows=150, seed=5).rows
    assert client.build("dask-moments-same", drawn, **arguments).ref.digest == version.ref.digest


def test_what_depends_on_the_order_of_rows_is_refused(phimapd, rows):
    data = array.from_array(rows, chunks=(70, 5))
    with pytest.raises(ValueError, match="given"):
        build("dask-given", data, spec="f2(landmarks=20, policy=given)", kernel="rbf(gamma=scale)", server=phimapd.address)
    with pytest.raises(ValueError, match="precomputed"):
        build("dask-gram", data, spec="f2(landmarks=20)", kernel="precomputed()", server=phimapd.address)
