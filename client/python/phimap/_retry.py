"""Timeouts and retries of calls: the service config, and the retries that gRPC leaves to its
users."""
from __future__ import annotations

import copy
import importlib.resources
import json
import numbers
import random
import time
import uuid
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from phimap.errors import Error, Reason, ResourceExhausted, connection_broke, was_not_begun

_DEFAULT_CONFIG = importlib.resources.files("phimap").joinpath("service_config.json").read_text()

# Service and name.
Method = tuple[str, str]

TRANSFORM: Method = ("phimap.v1.TransformService", "Transform")
TRANSFORM_STREAM: Method = ("phimap.v1.TransformService", "TransformStream")
PREDICT: Method = ("phimap.v1.PredictService", "Predict")
PREDICT_STREAM: Method = ("phimap.v1.PredictService", "PredictStream")
BUILD: Method = ("phimap.v1.MappingService", "Build")
TRAIN: Method = ("phimap.v1.LearningService", "Train")
EVALUATE: Method = ("phimap.v1.LearningService", "Evaluate")
# How often a call is repeated at once because its revision is of another history. Once is enough,
# unless the history changes again meanwhile.
_HISTORIES_LEFT = 3
# Never retried: its chunks are read from a file while they are sent.
_ONCE = frozenset({(BUILD[0], "Import")})


@dataclass(frozen=True)
class RetryPolicy:
    """A retryPolicy of a service config; the default never retries."""

    max_attempts: int = 1
    initial_backoff: float = 0.0
    max_backoff: float = 0.0
    multiplier: float = 1.0
    codes: frozenset[str] = frozenset()

    @staticmethod
    def of(fields: dict[str, Any] | None) -> RetryPolicy:
        if not fields:
            return RetryPolicy()
        return RetryPolicy(
            int(fields["maxAttempts"]), _seconds(fields["initialBackoff"]), _seconds(fields["maxBackoff"]),
            float(fields["backoffMultiplier"]), frozenset(str(code) for code in fields["retryableStatusCodes"]))

    def backoff_before(self, attempt: int) -> float:
        """Returns the seconds to wait before attempt number `attempt` >= 2, counted from 1."""
        return min(self.max_backoff, self.initial_backoff * self.multiplier ** (attempt - 2))


# The policy of calls for which a service config has no retryPolicy: only calls that the server
# reports as not begun are retried. gRPC itself also retries calls that left no trace on any server.
_NOT_BEGUN = RetryPolicy(max_attempts=5, initial_backoff=0.2, max_backoff=5.0, multiplier=2.0)


def named(request: Any) -> Any:
    """Returns the request; one that changes something gets an id, so that the store makes the
    change once, however often it is sent."""
    if isinstance(request, Message) and "operation_id" in request.DESCRIPTOR.fields_by_name:
        request.operation_id = str(uuid.uuid4())
    return request


class ServiceConfig:
    """A gRPC service config, as JSON text or a dictionary; None means the package's
    service_config.json. ValueError if it is not a service config."""

    def __init__(self, config: str | dict[str, Any] | None) -> None:
        try:
            self._config = json.loads(config or _DEFAULT_CONFIG) if not isinstance(config, dict) else config
            for entry in self._config.get("methodConfig", []):
                _seconds(entry.get("timeout", "0s"))
                RetryPolicy.of(entry.get("retryPolicy"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"service_config: expected a gRPC service config, got {config!r}: {error!r}") from None

        # By method. Each step is atomic in the interpreter.
        self._timeouts: dict[Method, float | None] = {}

    def retry_policy(self, method: Method) -> RetryPolicy:
        fields = self._entry(method).get("retryPolicy")
        if method in _ONCE:
            return RetryPolicy()
        return RetryPolicy.of(fields) if fields else _NOT_BEGUN

    def retries(self, method: Method, deadline: Deadline) -> Retries:
        return Retries(self.retry_policy(method), deadline)

    def timeout(self, method: Method) -> float | None:
        """Returns the timeout of one call in seconds; None if there is no limit."""
        if method not in self._timeouts:
            timeout = self._entry(method).get("timeout")
            self._timeouts[method] = None if timeout is None else _seconds(timeout)
        return self._timeouts[method]

    def for_grpc(self) -> str:
        """Returns the config as JSON, without the retries and timeouts, which this client handles
        itself.

        gRPC's retries know neither the delays that the server asks for nor which calls it did not
        begin, and they do not retry a stream after its first answer. gRPC's timeouts from a config
        are up to a second too short. gRPC still retries calls that left no trace on any server."""
        config = copy.deepcopy(self._config)
        for entry in config.get("methodConfig", []):
            entry.pop("timeout", None)
            entry.pop("retryPolicy", None)
        return json.dumps(config)

    def _entry(self, method: Method) -> dict[str, Any]:
        """Returns the entry that gRPC would choose: the one for the method, or else the one for its
        service, or else the one for all."""
        for wanted in ({"service": method[0], "method": method[1]}, {"service": method[0]}, {}):
            for entry in self._config.get("methodConfig", []):
                if wanted in entry.get("name", []):
                    return dict(entry)
        return {}


class Deadline:
    """The deadline of a call with all its attempts. If the timeout is None there is no deadline,
    and the service config's timeout applies: to a unary call with all its attempts, to a stream
    each time it is opened."""

    def __init__(self, timeout: float | None) -> None:
        self._end: float | None = None
        if timeout is not None:
            if not ((type(timeout) is float or isinstance(timeout, numbers.Real)) and timeout > 0):
                raise ValueError(f"timeout: expected seconds > 0, or None, got {timeout!r}")
            self._end = time.monotonic() + float(timeout)

    def remaining(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def or_else(self, timeout: float | None) -> Deadline:
        """Returns this deadline or, if there is none, the one `timeout` seconds from now."""
        return self if self._end is not None else Deadline(timeout)

    def allows(self, seconds: float) -> bool:
        remaining = self.remaining()
        return remaining is None or remaining > seconds


class Retries:
    """Decides whether a failed call is retried."""

    def __init__(self, policy: RetryPolicy, deadline: Deadline) -> None:
        self._policy = policy
        self._deadline = deadline
        self.attempt = 1
        # Number of refusals because of a revision of another history.
        self._refused = 0

    def progressed(self) -> None:
        """Resets the count of attempts."""
        self.attempt = 1
        self._refused = 0

    def wait_after(self, error: Error, *, also: bool = False, spread: bool = False) -> float | None:
        """Returns the seconds to wait before the next attempt, and counts that attempt; None if the
        call is not retried.

        Retries calls that the server did not begin. If the policy has codes, also retries errors
        with these codes and refusals with a retry delay. With `also`, retries any error. With
        `spread`, varies the backoff by a fifth, for calls that many clients may make at the same
        moment.
        """
        if error.reason == Reason.REVISION_HISTORY_MISMATCH and self._refused < _HISTORIES_LEFT:
            self._refused += 1
            return 0.0
        if not (also or self._can_help(error)) or self.attempt >= self._policy.max_attempts:
            return None
        self.attempt += 1
        backoff = self._policy.backoff_before(self.attempt) * (random.uniform(0.8, 1.2) if spread else 1.0)
        wait = max(backoff, error.retry_after or 0.0)
        return wait if self._deadline.allows(wait) else None

    def _can_help(self, error: Error) -> bool:
        codes = self._policy.codes
        named = error.code.name in codes or ("UNAVAILABLE" in codes and connection_broke(error))
        refused = bool(codes) and isinstance(error, ResourceExhausted) and error.retry_after is not None
        return named or refused or was_not_begun(error)


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))
