"""The peer of phimapd in the benchmarks: scikit-learn's Nystroem behind grpcio with one BLAS thread,
which is what an ML engineer would use without phimap.

The peer takes the same TransformRequest and answers with the same TransformResponse. The mapping is
F2 of an RBF kernel on 64 inputs, as sklearn.kernel_approximation.Nystroem computes it, so that the
comparison measures serving, not mathematics.

    peer_server.py --generated=FOLDER [--features=512] [--listen=127.0.0.1:0] [--threads=N]

FOLDER holds the Python that protoc and grpc_python_plugin wrote (bench/run does that).
"""
import argparse
import os
import signal
import sys
from concurrent import futures

# Must be set before numpy loads OpenBLAS: BLAS threads would compete with gRPC's threads.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

import grpc
import numpy
from sklearn.kernel_approximation import Nystroem

INPUTS = 64
MAX_MESSAGE_SIZE_BYTES = 64 << 20


def fitted(features):
    """Returns a Nystroem map of `features` landmarks, fitted to standard normal rows."""
    rows = numpy.random.default_rng(1).standard_normal((2 * features, INPUTS)).astype(numpy.float32)
    mapping = Nystroem(kernel="rbf", gamma=1 / INPUTS, n_components=features, random_state=1).fit(rows)
    mapping.normalization_ = mapping.normalization_.astype(numpy.float32)
    return mapping


def servicer(mapping, messages, services):
    class Transform(services.TransformServiceServicer):
        def Transform(self, request, context):
            dense = request.examples.dense
            rows = numpy.frombuffer(dense.float32_le, numpy.float32).reshape(dense.rows, dense.columns)
            features = numpy.ascontiguousarray(mapping.transform(rows), numpy.float32)
            answer = messages.TransformResponse()
            answer.version.name = request.reference
            answer.version.number = 1
            answer.features.rows, answer.features.columns = features.shape
            answer.features.float32_le = features.tobytes()
            return answer

    return Transform()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--generated", required=True)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--listen", default="127.0.0.1:0")
    # More threads than processors would only compete for the interpreter's lock.
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.generated)
    from phimap.v1 import transform_service_pb2 as messages
    from phimap.v1 import transform_service_pb2_grpc as services

    server = grpc.server(
        futures.ThreadPoolExecutor(arguments.threads),
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_SIZE_BYTES),
        ],
    )
    services.add_TransformServiceServicer_to_server(servicer(fitted(arguments.features), messages, services), server)
    port = server.add_insecure_port(arguments.listen)
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: server.stop(None))
    print(f"peer_server ready: grpc=127.0.0.1:{port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
