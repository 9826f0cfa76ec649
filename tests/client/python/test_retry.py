"""Tests the service config: the part that is passed to gRPC, and the part that phimap's client implements itself."""
import json

import pytest

from phimap._retry import BUILD, TRANSFORM, TRANSFORM_STREAM, Deadline, Retries, RetryPolicy, ServiceConfig
from phimap.errors import InvalidArgument, ResourceExhausted, Unavailable

POLICY = {"maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "3s", "backoffMultiplier": 2,
          "retryableStatusCodes": ["UNAVAILABLE"]}


def test_grpc_gets_neither_retries_nor_timeouts():
    config = {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [
        {"name": [{}], "timeout": "7s", "retryPolicy": POLICY},
        {"name": [{"service": BUILD[0], "method": BUILD[1]}], "maxRequestMessageBytes": 5, "retryPolicy": POLICY}]}
    assert json.loads(ServiceConfig(config).for_grpc()) == {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [{"name": [{}]},
                         {"name": [{"service": BUILD[0], "method": BUILD[1]}], "maxRequestMessageBytes": 5}]}


def test_the_most_specific_timeout_is_the_methods():
    config = ServiceConfig({"methodConfig": [
        {"name": [{}], "timeout": "7s"}, {"name": [{"service": BUILD[0], "method": "GetBuild"}], "timeout": "1.5s"},
        {"name": [{"service": BUILD[0], "method": BUILD[1]}]}]})
    assert config.timeout(TRANSFORM) == 7
    assert config.timeout((BUILD[0], "GetBuild")) == 1.5
    assert config.timeout(BUILD) is None


def test_the_most_specific_entry_is_the_policy():
    config = ServiceConfig({"methodConfig": [
        {"name": [{}], "retryPolicy": POLICY | {"maxAttempts": 2}},
        {"name": [{"service": TRANSFORM[0]}], "retryPolicy": POLICY | {"maxAttempts": 3}},
        {"name": [{"service": TRANSFORM[0], "method": TRANSFORM[1]}], "retryPolicy": POLICY | {"maxAttempts": 4}}]})
    assert [config.retry_policy(method).max_attempts for method in (BUILD, TRANSFORM_STREAM, TRANSFORM)] == [2, 3, 4]


SERVER_SHUTTING_DOWN = Unavailable("bye", reason="SERVER_SHUTTING_DOWN")


def test_the_packages_own_config_tries_everything_again_that_is_safe():
    config = ServiceConfig(None)
    for method in (BUILD, TRANSFORM_STREAM, TRANSFORM, (BUILD[0], "GetVersion"), (BUILD[0], "CancelBuild"),
                   (BUILD[0], "SetAlias"), (BUILD[0], "DeleteMapping")):
        assert config.retry_policy(method).max_attempts == 5
        assert config.retries(method, Deadline(None)).wait_after(Unavailable("gone")) is not None
    # The chunks of an import are used up when the call fails, so an import is never repeated.
    assert config.retries((BUILD[0], "Import"), Deadline(None)).wait_after(SERVER_SHUTTING_DOWN) is None


def test_without_a_policy_only_what_was_not_begun_is_tried_again():
    retries = ServiceConfig({}).retries(TRANSFORM, Deadline(None))
    assert retries.wait_after(Unavailable("gone")) is None
    assert retries.wait_after(ResourceExhausted("full", retry_after=1)) is None
    assert retries.wait_after(SERVER_SHUTTING_DOWN) == 0.2


def test_a_backoff_is_spread_by_a_fifth():
    waits = {ServiceConfig(None).retries(TRANSFORM, Deadline(None)).wait_after(SERVER_SHUTTING_DOWN, spread=True)
             for _ in range(100)}
    assert len(waits) > 1 and all(0.16 <= wait <= 0.24 for wait in waits)


@pytest.mark.parametrize("config", ["{", "[]", {"methodConfig": [{"name": [{}], "timeout": "soon"}]}, {"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2}}]}])
def test_what_is_no_service_config_is_refused(config):
    with pytest.raises(ValueError, match="service_config: expected a gRPC service config, got"):
        ServiceConfig(config)


def test_backoff_doubles_up_to_its_limit():
    policy = RetryPolicy.of(POLICY)
    assert [policy.backoff_before(attempt) for attempt in (2, 3, 4, 5)] == [1, 2, 3, 3]


def test_attempts_end_and_progress_begins_them_anew():
    retries = Retries(RetryPolicy.of(POLICY), Deadline(None))
    error = Unavailable("gone")
    assert [retries.wait_after(error) for _ in range(3)] == [1, 2, None]
    retries.progressed()
    assert retries.wait_after(error) == 1


def test_a_server_that_says_when_to_come_back_is_obeyed():
    retries = Retries(RetryPolicy.of(POLICY), Deadline(None))
    assert retries.wait_after(ResourceExhausted("full", retry_after=2.5)) == 2.5
    assert retries.wait_after(ResourceExhausted("too large")) is None


def test_errors_of_the_caller_are_final():
    assert Retries(RetryPolicy.of(POLICY), Deadline(None)).wait_after(InvalidArgument("no")) is None


def test_nobody_waits_beyond_the_deadline():
    assert Retries(RetryPolicy.of(POLICY), Deadline(0.5)).wait_after(Unavailable("gone")) is None
    assert Retries(RetryPolicy.of(POLICY), Deadline(3600)).wait_after(Unavailable("gone")) == 1
