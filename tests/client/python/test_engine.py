"""Tests that executing an artifact in the test's process gives bit-for-bit the same features as the server's
Transform."""
import io
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pandas
import pytest
import scipy.sparse

import phimap
from phimap._engine import Engine, process_engine

pytestmark = pytest.mark.usefixtures("engine_library")

# The mappings below cover every kind of mapping, of stage and of kernel operation.
RBF = "rbf(gamma=0.5)"
KINDS = {
    "f1": ("f1(landmarks=20)", RBF),
    "f1-wide": ("f1(landmarks=20, serving_type=float64)", RBF),
    "f2": ("f2(landmarks=20)", RBF),
    "f2-wide": ("f2(landmarks=20, serving_type=float64)", RBF),
    "f2-rpcholesky": ("f2(landmarks=20, policy=rpcholesky)", RBF),
    "f2-given": ("f2(landmarks=20, policy=given)", RBF),
    "f2-projected": ("f2(landmarks=20, input_dimensions=3)", RBF),
    "f2-poly": ("f2(landmarks=20)", "poly(degree=3, gamma=0.5, coef0=1)"),
    "f2-laplacian": ("f2(landmarks=20)", "laplacian(gamma=0.2)"),
    "f2-sum": ("f2(landmarks=20)", "rbf(gamma=0.5)*laplacian(gamma=0.1) + 0.5*cosine()"),
    "f2-exp": ("f2(landmarks=20)", "normalize(exp(0.1*linear()))"),
    "f1-sigmoid": ("f1(landmarks=20)", "sigmoid(gamma=0.3, coef0=0.5)"),
    "f1-bilinear": ("f1(landmarks=20)", "bilinear(diagonal=[1, 2, 3, 4, 5])"),
    "f1-delta": ("f1(landmarks=20)", "delta()"),
    "f3": ("f3(landmarks=40, dimensions=8)", RBF),
    "kpca": ("kpca(landmarks=40, dimensions=8)", RBF),
    "kpca-rounded": ("kpca(landmarks=40, dimensions=8, sparsify=2, quantise=true, rounding=4)", RBF),
    "fourier": ("fourier(dimensions=32)", RBF),
    "fourier-phase": ("fourier(dimensions=32, form=phase)", "laplacian(gamma=0.2)"),
    "fourier-orthogonal": ("fourier(dimensions=32, orthogonal=true)", RBF),
    "projection": ("random_projection(dimensions=8)", "linear()"),
    "multiclass": ("multiclass(classes=3, dimensions=8)", "linear()"),
    "polynomial": ("polynomial(dimensions=56)", "poly(degree=2, gamma=1, coef0=1)"),
}


def artifact_of(client, reference):
    file = io.BytesIO()
    return file, client.export(reference, file).digest


def engine_of(client, reference):
    file, digest = artifact_of(client, reference)
    return Engine(file.getvalue(), digest)


def same_bits(ours, servers):
    assert (ours.dtype, ours.shape) == (servers.dtype, servers.shape)
    assert ours.tobytes() == np.ascontiguousarray(servers).tobytes()


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_mapping_has_the_bits_of_the_server(client, rows, kind, standardize):
    spec, kernel = KINDS[kind]
    name = f"engine-{kind}-{standardize}".lower()
    client.build(name, rows, spec=spec, kernel=kernel, standardize=standardize)
    engine = engine_of(client, name)
    new = np.random.default_rng(2).standard_normal((97, 5))
    new[np.random.default_rng(3).random(new.shape) < 0.6] = 0
    sparse = scipy.sparse.csr_matrix(new)
    for given in (new, new.astype(np.float32), new[:1], new[:, ::-1], np.asfortranarray(new), pandas.DataFrame(new), sparse,
                  sparse.astype(np.float32)):
        same_bits(engine.transform(given), client.transform(name, given))


def test_versions_of_sparse_streams_have_the_bits_of_the_server(client):
    rows = scipy.sparse.random(300, 2000, density=0.01, random_state=1, format="csr")
    client.build("engine-sparse", rows, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)", standardize=True)
    engine = engine_of(client, "engine-sparse")
    for given in (rows[:70], rows[:70].toarray(), rows[:70].astype(np.float32)):
        same_bits(engine.transform(given), client.transform("engine-sparse", given))


def test_threads_share_an_engine(client, rows):
    client.build("engine-threads", rows, spec="f2(landmarks=20)", kernel=RBF)
    engine = engine_of(client, "engine-threads")
    expected = client.transform("engine-threads", rows)
    answers = []

    def work():
        for _ in range(200):
            answers.append(np.array_equal(engine.transform(rows), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 800 and all(answers)


def test_errors_name_the_place_as_the_server_does(client, rows):
    client.build("engine-errors", rows, spec="f2(landmarks=20)", kernel=RBF)
    engine = engine_of(client, "engine-errors")
    bad = rows.copy()
    bad[7, 3] = np.nan
    with pytest.raises(phimap.InvalidArgument) as raised:
        engine.transform(bad)
    assert (raised.value.row, raised.value.column) == (7, 3)
    with pytest.raises(phimap.InvalidArgument, match="5.*4"):
        engine.transform(rows[:, :4])
    broken = scipy.sparse.csr_matrix(rows)
    broken.indptr = broken.indptr.copy()
    broken.indptr[3] = 10**6  # points beyond the last entry
    broken.has_canonical_format = True
    with pytest.raises(phimap.InvalidArgument):
        engine.transform(broken)


def test_an_artifact_of_another_digest_is_not_loaded(client, rows):
    client.build("engine-digest", rows, spec="f2(landmarks=20)", kernel=RBF)
    file, digest = artifact_of(client, "engine-digest")
    assert process_engine(file.getvalue(), digest) is process_engine(file.getvalue(), digest)
    damaged = bytearray(file.getvalue())
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(phimap.DataLoss, match=digest):
        Engine(bytes(damaged), digest)


def test_what_the_artifact_alone_cannot_map_is_refused(phimapd, client, rows):
    client.build("engine-gram", rows @ rows.T, spec="f2(landmarks=20)", kernel="precomputed()")
    client.build("engine-text", [f"text {i * i}" for i in range(60)], spec="f2(landmarks=20)", kernel="spectrum(n=3)")
    for name, error in (("engine-gram", phimap.FailedPrecondition), ("engine-text", phimap.Unimplemented)):
        with pytest.raises(error, match="on_workers"):
            phimap.rows_mapper(name, server=phimapd.address, on_workers=True)
        with pytest.raises(error, match="use the server"):  # the library itself wrote this message
            engine_of(client, name)


IN_ANOTHER_PROCESS = """
import pickle, sys
mapper, rows = pickle.load(sys.stdin.buffer)
pickle.dump(mapper(rows), sys.stdout.buffer)
"""


def test_a_mapper_with_the_artifact_needs_no_server(own_phimapd, rows):
    with phimap.Client(own_phimapd.address) as client:
        client.build("engine-alone", rows, spec="f2(landmarks=20)", kernel=RBF)
        expected = client.transform("engine-alone", rows)
    mapper = phimap.rows_mapper("engine-alone", server=own_phimapd.address, on_workers=True)
    own_phimapd.kill()
    run = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], input=pickle.dumps((mapper, rows)),
                         stdout=subprocess.PIPE, check=True)
    same_bits(pickle.loads(run.stdout), expected)


def test_columns_have_the_names_that_the_version_has(phimapd, client, rows):
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    client.build("engine-names", frame, spec="f2(landmarks=20)", kernel="rbf(gamma=0.5)")
    mapper = phimap.rows_mapper("engine-names", server=phimapd.address, on_workers=True)
    expected = client.transform("engine-names", rows)
    np.testing.assert_array_equal(mapper(frame[list("edcba")]).to_numpy(), expected)
    np.testing.assert_array_equal(mapper(rows), expected)
    with pytest.raises(phimap.InvalidArgument, match='"a" is missing, and "x" is not among'):
        mapper(frame.rename(columns={"a": "x"}))


@pytest.mark.parametrize("path, says", [("", "ninja -C build phimap_engine"), ("/nowhere.so", "/nowhere.so")])
def test_without_the_library_the_error_says_what_to_do(phimapd, client, rows, path, says):
    client.build("engine-missing", rows, spec="f2(landmarks=20)", kernel=RBF)
    mapper = phimap.rows_mapper("engine-missing", server=phimapd.address, on_workers=True)
    run = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], input=pickle.dumps((mapper, rows)),
                         capture_output=True, env={**os.environ, "PHIMAP_ENGINE_LIBRARY": path})
    assert run.returncode == 1
    assert says in run.stderr.decode()
