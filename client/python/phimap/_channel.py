"""Connections to a server."""
from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

from phimap._retry import BUILD, EVALUATE, PREDICT, PREDICT_STREAM, TRAIN, TRANSFORM, TRANSFORM_STREAM, Method, ServiceConfig
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_service_pb2 as service_pb

# While no call is under way, gRPC checks only at this interval whether a connection is up again.
# With its default of 5 seconds, a server that restarts in a tenth of a second would be missed for
# that long. gRPC reads the variable on first use.
os.environ.setdefault("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200")

MAX_MESSAGE_BYTES = 64 << 20
MAX_CHANNELS = 64


def path_of(method: Method) -> str:
    return f"/{method[0]}/{method[1]}"


def channel_count(channels: int) -> int:
    if not 1 <= channels <= MAX_CHANNELS:
        raise ValueError(f"channels: expected 1..{MAX_CHANNELS}, got {channels}")
    return channels


def channel_options(config: ServiceConfig, extra: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        # Proxy settings of the environment are ignored: they are for the web and cannot reach a
        # loopback address.
        ("grpc.enable_http_proxy", 0),
        ("grpc.primary_user_agent", "phimap-python"),
        ("grpc.service_config", config.for_grpc()),
        ("grpc.enable_retries", 1),
        # gRPC does not retry a call that is larger than this. It is enough for the largest call of
        # Client.transform.
        ("grpc.per_rpc_retry_buffer_size", 8 << 20),
        # Without this, channels with equal arguments share one connection.
        ("grpc.use_local_subchannel_pool", 1),
        # A server that keeps gRPC's defaults hangs up on clients that ping more often than every 5 minutes.
        ("grpc.keepalive_time_ms", 360_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        # Calls reconnect to a restarted server by their own backoff, so the connection's backoff
        # must not be slower.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.min_reconnect_backoff_ms", 5_000),
        ("grpc.max_reconnect_backoff_ms", 5_000),
        *extra,
    ]


def stubs(channels: Sequence[Any]) -> dict[Method, list[Any]]:
    """Returns the stubs of the methods that rows are sent to. Those that map rows are on each
    channel, with bytes in and bytes out (see _wire), and those that learn from rows on the first."""
    answers: dict[Method, Any] = {BUILD: service_pb.BuildResponse, TRAIN: learning_pb.TrainResponse, EVALUATE: learning_pb.EvaluateResponse}
    return {
        **{method: [channel.unary_unary(path_of(method)) for channel in channels] for method in (TRANSFORM, PREDICT)},
        **{method: [channel.stream_stream(path_of(method)) for channel in channels] for method in (TRANSFORM_STREAM, PREDICT_STREAM)},
        **{method: [channels[0].stream_stream(path_of(method), response_deserializer=answer.FromString)]
           for method, answer in answers.items()}}


class Turns:
    """Hands out 0 … count-1 in turn. Thread-safe: `next` of itertools.count is atomic in the
    interpreter."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turns = itertools.count()

    def __call__(self) -> int:
        return next(self._turns) % self._count
