"""Tests phimap.kernel_server, which serves Python kernels. A real phimapd and a plain gRPC client call them."""
from __future__ import annotations

import sys

import grpc
import numpy as np
import pytest
import scipy.sparse

import phimap
from phimap.kernel_server import KernelServer
from phimap.v1 import examples_pb2, kernel_service_pb2, kernel_service_pb2_grpc
from phimapd import Phimapd



def rbf(left, right):
    return np.exp(-0.2 * ((left[:, None] - right[None, :]) ** 2).sum(-1))


def text(*words):
    return examples_pb2.Examples(text=examples_pb2.TextExamples(values=words))


@pytest.fixture
def words():
    """Starts a server with kernels on words. Yields a stub for calling it."""
    def common(left, right):
        return [[len(set(a) & set(b)) for b in right] for a in left]

    def wrong_shape(left, right):
        return np.zeros((1, 1))

    def no_words(left, right):
        raise ValueError("not one of my words")

    with KernelServer({"common": common, "wrong_shape": wrong_shape, "no_words": no_words}) as server:
        with grpc.insecure_channel(server.address) as channel:
            yield kernel_service_pb2_grpc.KernelServiceStub(channel)


def request(kernel="common", **fields):
    return kernel_service_pb2.ComputeBlockRequest(kernel=kernel, left=text("ab", "cd", "abcd"), **fields)


def test_a_kernel_of_a_service_gives_the_features_of_the_built_in_one(tmp_path, rows):
    with KernelServer({"rbf": rbf}) as kernels, Phimapd(tmp_path, f"--kernel_service=here={kernels.address}") as phimapd:
        with phimap.Client(phimapd.address) as client:
            for spec in ("f1(landmarks=20, serving_type=float64)", "f2(landmarks=20, serving_type=float64)"):
                features = []
                for kernel in ("service(endpoint=here, kernel=rbf)", "rbf(gamma=0.2)"):
                    version = client.build("m", rows, spec=spec, kernel=kernel)
                    features.append(client.transform(f"m@{version.ref.number}", rows))
                np.testing.assert_allclose(*features, rtol=0, atol=1e-6)
            with pytest.raises(phimap.FailedPrecondition) as refused:
                client.build("other", rows, spec="f1(landmarks=2)", kernel="service(endpoint=here, kernel=nothing)")
            assert refused.value.reason == "KERNEL_SERVICE_FAILED"
            assert "it has rbf" in str(refused.value)


def test_columns_that_were_sent_are_known_by_their_digest(words):
    first = words.ComputeBlock(request(right_examples=text("a", "bd"), right_digest="d1", want_diagonal=True))
    assert (first.block.rows, first.block.columns) == (3, 2)
    np.testing.assert_array_equal(np.frombuffer(first.block.float64_le), [1, 1, 0, 1, 1, 2])
    np.testing.assert_array_equal(np.frombuffer(first.diagonal_float64_le), [2, 2, 4])
    again = words.ComputeBlock(request(known_right_digest="d1"))
    assert again.block == first.block
    assert not again.diagonal_float64_le
    with pytest.raises(grpc.RpcError) as unknown:
        words.ComputeBlock(request(known_right_digest="d2"))
    assert unknown.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("kernel, code, message", [
    ("nothing", "INVALID_ARGUMENT", "there is no kernel 'nothing' on this server; it has common, no_words, wrong_shape"),
    ("no_words", "INVALID_ARGUMENT", "not one of my words"),
    ("wrong_shape", "INTERNAL", r"returned the shape \(1, 1\), expected \(3, 2\)"),
])
def test_what_a_kernel_cannot_compute_is_an_error_that_says_why(words, kernel, code, message):
    with pytest.raises(grpc.RpcError) as failed:
        words.ComputeBlock(request(kernel, right_examples=text("a", "b")))
    assert failed.value.code().name == code
    failed.match(message)


def test_dense_rows_come_as_arrays_of_either_type(words):
    numbers = np.arange(6, dtype="<f4").reshape(2, 3)
    seen = []

    def kernel(left, right):
        seen.append((left, right))
        return left @ right.T

    with KernelServer({"linear": kernel}) as server, grpc.insecure_channel(server.address) as channel:
        def dense(field, values):
            return examples_pb2.Examples(dense=examples_pb2.DenseRows(rows=2, columns=3, **{field: values.tobytes()}))

        answer = kernel_service_pb2_grpc.KernelServiceStub(channel).ComputeBlock(
            kernel_service_pb2.ComputeBlockRequest(kernel="linear", left=dense("float32_le", numbers),
                                                   right_examples=dense("float64_le", numbers.astype("<f8"))))
    np.testing.assert_array_equal(np.frombuffer(answer.block.float64_le).reshape(2, 2), numbers @ numbers.T)
    assert seen[0][0].dtype == seen[0][1].dtype == np.float64


def sparse_examples(matrix, **changes):
    csr = scipy.sparse.csr_matrix(matrix)
    fields = {"rows": csr.shape[0], "columns": csr.shape[1], "row_offsets_le": csr.indptr.astype("<i8").tobytes(),
              "column_indices_le": csr.indices.astype("<i4").tobytes(), "float64_le": csr.data.astype("<f8").tobytes()}
    return examples_pb2.Examples(sparse=examples_pb2.SparseRows(**{**fields, **changes}))


@pytest.fixture
def thin():
    """Returns rows in which two of three numbers are 0."""
    numbers = np.random.default_rng(5).standard_normal((120, 9))
    numbers.flat[np.arange(numbers.size) % 3 != 0] = 0
    numbers[4] = 0
    return numbers


@pytest.mark.parametrize("has_scipy", [True, False])
def test_sparse_rows_come_as_scipy_has_them_and_dense_where_there_is_no_scipy(thin, has_scipy, monkeypatch):
    seen = []

    def linear(left, right):
        seen.append((left, right))
        return left @ right.T

    if not has_scipy:
        monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with KernelServer({"linear": linear}) as server, grpc.insecure_channel(server.address) as channel:
        stub = kernel_service_pb2_grpc.KernelServiceStub(channel)
        answer = stub.ComputeBlock(kernel_service_pb2.ComputeBlockRequest(
            kernel="linear", left=sparse_examples(thin[:7]), right_examples=sparse_examples(thin[2:5]), want_diagonal=True))
        for changes in ({"rows": 6}, {"columns": 2}, {"float64_le": bytes(8)}):
            with pytest.raises(grpc.RpcError) as refused:
                stub.ComputeBlock(kernel_service_pb2.ComputeBlockRequest(
                    kernel="linear", left=sparse_examples(thin[:7], **changes), right_examples=sparse_examples(thin[2:5])))
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    np.testing.assert_allclose(np.frombuffer(answer.block.float64_le).reshape(7, 3), thin[:7] @ thin[2:5].T, atol=1e-12)
    np.testing.assert_allclose(np.frombuffer(answer.diagonal_float64_le), (thin[:7] ** 2).sum(1), atol=1e-12)
    left = seen[0][0]
    if not has_scipy:
        assert isinstance(left, np.ndarray)
        np.testing.assert_array_equal(left, thin[:7])
    else:
        assert scipy.sparse.isspmatrix_csr(left)
        np.testing.assert_array_equal(left.toarray(), thin[:7])


def test_a_kernel_of_sparse_rows_gives_the_features_of_the_built_in_one(tmp_path, thin):
    kinds = set()

    def linear(left, right):
        kinds.update({type(left), type(right)})
        return left @ right.T

    sparse = scipy.sparse.csr_matrix(thin)
    with KernelServer({"linear": linear}) as kernels, Phimapd(tmp_path, f"--kernel_service=here={kernels.address}") as phimapd:
        with phimap.Client(phimapd.address) as client:
            spec = "f2(landmarks=12, serving_type=float64)"
            client.build("served", sparse, spec=spec, kernel="service(endpoint=here, kernel=linear)")
            client.build("built-in", sparse, spec=spec, kernel="linear()")
            served = client.transform("served", sparse)
            assert kinds == {scipy.sparse.csr_matrix}
            # The signs of the features also agree, because they depend only on the pivots, and both builds choose the
            # same pivots.
            np.testing.assert_allclose(served @ served.T, thin @ thin.T, rtol=0, atol=1e-6)
            np.testing.assert_allclose(served, client.transform("built-in", sparse), rtol=0, atol=1e-6)
            # phimapd sends dense rows to the service in the same form as the landmarks, which is sparse here.
            np.testing.assert_array_equal(client.transform("served", thin), served)
            assert kinds == {scipy.sparse.csr_matrix}


def test_a_server_needs_a_kernel_and_an_address_of_its_own():
    with pytest.raises(ValueError):
        KernelServer({})
    with KernelServer({"rbf": rbf}) as server, pytest.raises((OSError, RuntimeError)):
        KernelServer({"rbf": rbf}, server.address)
