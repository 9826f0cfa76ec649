"""phimap.kernel_server: kernels in Python, called by a real phimapd and as any client would."""
from __future__ import annotations

import grpc
import numpy as np
import pytest

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
    """A server of kernels of words, and a stub to call it."""
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
            assert refused.value.reason == "KERNEL_SERVICE_ERROR"
            assert "there is rbf" in str(refused.value)


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
    ("nothing", "INVALID_ARGUMENT", "there is no kernel 'nothing' here; there is common, no_words, wrong_shape"),
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


def test_a_server_needs_a_kernel_and_an_address_of_its_own():
    with pytest.raises(ValueError):
        KernelServer({})
    with KernelServer({"rbf": rbf}) as server, pytest.raises((OSError, RuntimeError)):
        KernelServer({"rbf": rbf}, server.address)
