"""How long calls may take and how often they are tried: the service config, and what gRPC leaves to its users."""
from __future__ import annotations

import copy
import importlib.resources
import json
import numbers
import time
from dataclasses import dataclass
from typing import Any

from phimap.errors import Error, ResourceExhausted, connection_broke

_DEFAULT_CONFIG = importlib.resources.files("phimap").joinpath("service_config.json").read_text()

# Service and name.
Method = tuple[str, str]

TRANSFORM: Method = ("phimap.v1.TransformService", "Transform")
TRANSFORM_STREAM: Method = ("phimap.v1.TransformService", "TransformStream")
BUILD: Method = ("phimap.v1.MappingService", "Build")
# gRPC never tries a stream again once anything has come back. This client does, and by itself from the first attempt on:
# two that take turns would multiply their attempts.
_OURS = (TRANSFORM_STREAM, BUILD)


@dataclass(frozen=True)
class RetryPolicy:
    """A retryPolicy of a service config; the default never tries again. Its backoff is taken without jitter: a call of
    many seconds is one client's, so no herd comes back at once."""

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
        """Seconds to wait before attempt number `attempt` >= 2, counted from 1."""
        return min(self.max_backoff, self.initial_backoff * self.multiplier ** (attempt - 2))


class ServiceConfig:
    """A gRPC service config, as JSON text or a dictionary; None is the package's service_config.json. ValueError if it
    is none."""

    def __init__(self, config: str | dict[str, Any] | None) -> None:
        try:
            self._config = json.loads(config or _DEFAULT_CONFIG) if not isinstance(config, dict) else config
            self._policies = {method: RetryPolicy.of(self._entry(method).get("retryPolicy"))
                              for method in (TRANSFORM, *_OURS)}
            for entry in self._config.get("methodConfig", []):
                _seconds(entry.get("timeout", "0s"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"service_config: expected a gRPC service config, got {config!r}: {error!r}") from None

    def retry_policy(self, method: Method) -> RetryPolicy:
        """Of TRANSFORM, TRANSFORM_STREAM or BUILD."""
        return self._policies[method]

    def timeout(self, method: Method) -> float | None:
        """Seconds for one call, None for no end."""
        timeout = self._entry(method).get("timeout")
        return None if timeout is None else _seconds(timeout)

    def for_grpc(self) -> str:
        """As JSON, without what this client does itself: the retries of some methods, and all timeouts, which gRPC takes
        from a config up to a second too short."""
        config = copy.deepcopy(self._config)
        entries = config.setdefault("methodConfig", [])
        ours = [{"service": service, "method": method} for service, method in _OURS]
        without_retries = [copy.deepcopy(self._entry(method)) for method in _OURS]
        for entry in (*entries, *without_retries):
            entry.pop("timeout", None)
        for entry in entries:
            entry["name"] = [name for name in entry.get("name", []) if name not in ours]
        for name, entry in zip(ours, without_retries):
            entry.pop("retryPolicy", None)
            entries.append(entry | {"name": [name]})
        config["methodConfig"] = [entry for entry in entries if entry["name"]]
        return json.dumps(config)

    def _entry(self, method: Method) -> dict[str, Any]:
        """What gRPC would choose: the entry that names the method, else its service, else the one for all."""
        for wanted in ({"service": method[0], "method": method[1]}, {"service": method[0]}, {}):
            for entry in self._config.get("methodConfig", []):
                if wanted in entry.get("name", []):
                    return dict(entry)
        return {}


class Deadline:
    """Of a call with all its attempts. None is none: then the service config's holds for each attempt."""

    def __init__(self, timeout: float | None) -> None:
        self._end: float | None = None
        if timeout is not None:
            if not (isinstance(timeout, numbers.Real) and timeout > 0):
                raise ValueError(f"timeout: expected seconds > 0, or None, got {timeout!r}")
            self._end = time.monotonic() + float(timeout)

    def remaining(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def allows(self, seconds: float) -> bool:
        remaining = self.remaining()
        return remaining is None or remaining > seconds


class Retries:
    """Whether a call that failed is made again."""

    def __init__(self, policy: RetryPolicy, deadline: Deadline) -> None:
        self._policy = policy
        self._deadline = deadline
        self.attempt = 1

    def progressed(self) -> None:
        """What happened before no longer counts."""
        self.attempt = 1

    def wait_after(self, error: Error, *, codes: bool = True, also: bool = False) -> float | None:
        """Seconds to wait before the next attempt, which this begins; None if there is none.

        Tried again is what the policy names, and what the server refused for now and said for how long; `also` if the
        caller knows better. `codes` False leaves the policy's codes out: gRPC has seen to them.
        """
        named = codes and (error.code.name in self._policy.codes or
                           ("UNAVAILABLE" in self._policy.codes and connection_broke(error)))
        refused = isinstance(error, ResourceExhausted) and error.retry_after is not None
        if not (named or refused or also) or self.attempt >= self._policy.max_attempts:
            return None
        self.attempt += 1
        wait = max(self._policy.backoff_before(self.attempt), error.retry_after or 0.0)
        return wait if self._deadline.allows(wait) else None


def _seconds(duration: str) -> float:
    return float(duration.removesuffix("s"))
