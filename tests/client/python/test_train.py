"""Tests the stream of a training: what it carries, and what happens when it breaks. What it shares with a build is tested
by test_build_stream.py."""
import asyncio

import grpc
import numpy as np
import pandas as pd
import pytest

import phimap
from conftest import NO_BACKOFF
from phimap.aio import AsyncClient
from phimap.v1 import learning_service_pb2 as learning_pb
from phimap.v1 import mapping_pb2 as mapping_pb
from scripted_server import DIGEST, accepted, built, fail

ROWS = np.arange(400_000.0).reshape(100_000, 4)  # 4 messages
LABELS = np.where(np.arange(100_000) % 3, "a", "b")


class Attempt:
    """The requests that one stream received."""

    def __init__(self):
        self.spec = self.finish = None
        self.labels, self.weights, self.groups, self.parts, self.firsts = [], [], [], [], []

    def read(self, requests):
        for request in requests:
            if request.HasField("spec"):
                self.spec = request.spec
            elif request.HasField("finish"):
                self.finish = request.finish.row_count
            else:
                block = request.examples
                values = np.frombuffer(block.examples.dense.float64_le).reshape(block.examples.dense.rows, -1)
                self.firsts += values[:, 0].tolist()
                for name in ("labels", "weights", "groups", "parts"):
                    getattr(self, name).extend(getattr(block, name))


def completes(attempt, number=2):
    def script(requests, context):
        yield accepted(of=learning_pb.TrainResponse)
        attempt.read(requests)
        yield built(number, learning_pb.TrainResponse)
    return script


def breaks_after_finish(attempt):
    def script(requests, context):
        yield accepted(of=learning_pb.TrainResponse)
        attempt.read(requests)
        context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
    return script


def found(*names, number=1):
    """Answers GetVersion with a version m@1 whose columns have these names."""
    def script(request, context):
        version = mapping_pb.Version(column_names=names)
        version.ref.name, version.ref.number, version.ref.digest = "m", number, DIGEST
        return version
    return script


@pytest.fixture
def server(scripted):
    scripted.script("GetVersion", found())
    return scripted


def test_rows_go_with_all_that_is_known_of_them(server, scripted_client):
    attempt = Attempt()
    server.script("Train", completes(attempt, 7))
    weights, groups = np.arange(1, 100_001) / 8, np.arange(100_000) // 10
    version = scripted_client.train("m", ROWS, LABELS, learner="ridge(alpha=1)", task="classes", weights=weights, groups=groups,
                                    parts=["test", None] * 50_000, seed=5, ttl=3600)
    assert version.ref.number == 7
    assert attempt.firsts == ROWS[:, 0].tolist() and attempt.labels == LABELS.tolist() and attempt.finish == 100_000
    assert attempt.weights == weights.tolist() and attempt.groups == [str(group) for group in groups]
    assert attempt.parts[:2] == [learning_pb.TRAINING_PART_TEST, learning_pb.TRAINING_PART_UNSPECIFIED] and len(attempt.parts) == 100_000
    spec = attempt.spec
    assert (spec.reference, spec.expected_digest, spec.learner, spec.seed) == ("m@1", DIGEST, "ridge(alpha=1)", 5)
    assert spec.task == mapping_pb.HEAD_TASK_CLASSES and spec.ttl.seconds == 3600 and len(spec.build_id) == 36
    assert spec.column_names_hash == 0


def test_what_is_not_known_is_not_sent(server, scripted_client):
    attempt = Attempt()
    server.script("Train", completes(attempt))
    scripted_client.train("m", ROWS[:4], [0.1, 2.0, -1e300, 5])
    assert attempt.labels == ["0.1", "2.0", "-1e+300", "5"]
    assert (attempt.weights, attempt.groups, attempt.parts) == ([], [], [])
    assert attempt.spec.task == mapping_pb.HEAD_TASK_UNSPECIFIED and not attempt.spec.HasField("ttl")


def test_a_training_that_is_sent_again_asks_for_the_version_that_it_began_with(server, scripted_client):
    """The name would mean the trained version once it is stored, and the version is looked up once."""
    first, second = Attempt(), Attempt()

    def attaches(requests, context):
        second.spec = next(requests).spec
        yield accepted(attached=True, of=learning_pb.TrainResponse)
        assert next(requests, None) is None
        yield built(2, learning_pb.TrainResponse)

    server.script("Train", breaks_after_finish(first), attaches)
    assert scripted_client.train("m", ROWS, LABELS).ref.number == 2
    assert second.spec == first.spec and first.spec.reference == "m@1"
    assert "m" not in scripted_client.pinned


def test_rows_and_labels_are_sent_again_if_the_server_lost_them(server, scripted_client):
    first, second = Attempt(), Attempt()
    server.script("Train", breaks_after_finish(first), completes(second))
    scripted_client.train("m", ROWS, LABELS)
    assert second.spec == first.spec and second.labels == LABELS.tolist() and second.firsts == first.firsts


def test_blocks_of_an_iterator_take_their_labels_in_turn(server, scripted_client):
    attempt = Attempt()
    server.script("Train", completes(attempt))
    scripted_client.train("m", iter(np.array_split(ROWS[:1000], 7)), iter(LABELS[:1000]))
    assert attempt.labels == LABELS[:1000].tolist() and attempt.finish == 1000


def test_asynchronous_trainings_are_sent_again_alike(server):
    first, second = Attempt(), Attempt()

    async def blocks():
        for block in np.array_split(ROWS[:1000], 3):
            yield block

    async def run(rows, labels):
        async with AsyncClient(server.address, service_config=NO_BACKOFF) as client:
            return await client.train("m", rows, labels, task="classes")

    server.script("Train", breaks_after_finish(first), completes(second))
    assert asyncio.run(run(ROWS, LABELS)).ref.number == 2
    assert second.labels == LABELS.tolist() and second.spec == first.spec
    server.script("GetVersion", found())
    server.script("Train", completes(second := Attempt()))
    asyncio.run(run(blocks(), LABELS[:1000]))
    assert second.labels == LABELS[:1000].tolist() and second.finish == 1000


def test_columns_with_names_are_sent_in_the_versions_order(scripted, scripted_client):
    attempt = Attempt()
    scripted.script("GetVersion", found("x", "y"), found("x", "z"))
    scripted.script("Train", completes(attempt), completes(Attempt()))
    frame = pd.DataFrame({"y": [1.0, 2.0], "x": [3.0, 4.0]})
    scripted_client.train("m", frame, ["a", "b"])
    assert attempt.firsts == [3.0, 4.0] and attempt.spec.column_names_hash
    with pytest.raises(phimap.InvalidArgument, match='"z" is missing, and "y" is not among the version\'s columns'):
        scripted_client.train("m", frame, ["a", "b"])


def test_an_interrupt_cancels_the_training_on_the_server(server, scripted_client):
    asked = []

    def computes(requests, context):
        yield accepted(of=learning_pb.TrainResponse)
        (attempt := Attempt()).read(requests)
        asked.append(("m", attempt.spec.build_id))
        yield learning_pb.TrainResponse(progress=mapping_pb.BuildJob(state=mapping_pb.BuildJob.STATE_COMPUTING, phase="learn"))
        for _ in requests:
            pass

    def cancel(request, context):
        asked.append((request.name, request.build_id))
        return mapping_pb.BuildJob(state=mapping_pb.BuildJob.STATE_CANCELLED)

    def interrupt(progress):
        if progress.phase == "learn":
            raise KeyboardInterrupt

    server.script("Train", computes)
    server.script("CancelBuild", cancel)
    with pytest.raises(KeyboardInterrupt):
        scripted_client.train("m", ROWS, LABELS, progress=interrupt)
    assert len(asked) == 2 and asked[0] == asked[1]


def test_an_end_without_a_version_says_what_ended(server, scripted_client):
    def ends(requests, context):
        yield accepted(of=learning_pb.TrainResponse)
        Attempt().read(requests)

    server.script("Train", ends)
    with pytest.raises(phimap.Internal, match="the server ended the training without a version"):
        scripted_client.train("m", ROWS, LABELS)


@pytest.mark.parametrize("rows, labels", [(ROWS, LABELS[:-1]), (iter([ROWS[:10]]), LABELS[:9]), (iter([ROWS[:10]]), LABELS[:11])])
def test_labels_that_are_not_one_for_each_row_are_refused(server, scripted_client, rows, labels):
    server.script("Train", completes(Attempt()))
    with pytest.raises(phimap.InvalidArgument, match="labels: expected one for each row, got"):
        scripted_client.train("m", rows, labels)


@pytest.mark.parametrize("arguments, kind, message", [
    ({"task": "regression"}, ValueError, "task: expected 'classes', 'numbers' or None, got 'regression'"),
    ({"learner": 3}, TypeError, "learner: expected text, got int 3"),
    ({"seed": -1}, ValueError, r"seed: expected an integer, 0..2\*\*64-1, got -1"),
    ({"labels": ["a", None, "b"]}, phimap.InvalidArgument, r"labels\[1\]: row 1 has no label: got None"),
    ({"weights": [1, 2]}, phimap.InvalidArgument, "weights: expected one for each row, got 2 weights and 3 labels"),
    ({"weights": []}, phimap.InvalidArgument, "weights: expected one for each row, got 0 weights and 3 labels"),
    ({"weights": [1, 0, 2]}, phimap.InvalidArgument, r"weights\[1\]: expected a finite number over 0, got 0.0"),
    ({"weights": [1, 1, np.inf]}, phimap.InvalidArgument, r"weights\[2\]: expected a finite number over 0, got inf"),
    ({"weights": ["much", 1, 2]}, phimap.InvalidArgument, "weights: expected numbers: could not convert"),
    ({"weights": [[1], [1], [2]]}, phimap.InvalidArgument, "weights: expected one dimension, got 2"),
    ({"groups": [1]}, phimap.InvalidArgument, "groups: expected one for each row, got 1 groups and 3 labels"),
    ({"parts": ["test"] * 4}, phimap.InvalidArgument, "parts: expected one for each row, got 4 parts and 3 labels"),
    ({"parts": [None, "tests", None]}, phimap.InvalidArgument, r"parts\[1\]: expected 'train', 'validate', .* got 'tests'")])
def test_arguments_of_no_use_are_refused_without_a_call(scripted, scripted_client, arguments, kind, message):
    with pytest.raises(kind, match=message):
        scripted_client.train(**{"reference": "m", "rows": ROWS[:3], "labels": ["a", "b", "a"], **arguments})
    assert not scripted.peers


def test_an_error_names_the_row_of_the_stream(server, scripted_client):
    from phimap.rpc import error_details_pb2 as details_pb

    def refuses(requests, context):
        yield accepted(of=learning_pb.TrainResponse)
        Attempt().read(requests)
        fail(context, grpc.StatusCode.INVALID_ARGUMENT, "row 70000 of the stream (from 0): expected a finite number, got \"a\"",
             details_pb.BadRequest(field_violations=[details_pb.BadRequest.FieldViolation(field="labels")]),
             details_pb.ErrorInfo(reason="LABEL_INVALID", metadata={"stream_row": "70000"}))

    server.script("Train", refuses)
    with pytest.raises(phimap.InvalidArgument) as raised:
        scripted_client.train("m", ROWS, LABELS, task="numbers")
    assert (raised.value.row, raised.value.field, raised.value.reason) == (70_000, "labels", phimap.Reason.LABEL_INVALID)


def test_a_training_builds_its_features_under_a_name(scripted, scripted_client):
    attempt = Attempt()
    scripted.script("Train", completes(attempt, 1))
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    version = scripted_client.train("own", frame, LABELS, spec="f2(landmarks=5)", kernel="rbf(gamma=1)", standardize=True,
                                    learn_scales=True, learner="ridge()", seed=9)
    assert version.ref.number == 1
    spec = attempt.spec
    assert not spec.reference and not spec.expected_digest and not spec.column_names_hash and not spec.HasField("tuning")
    assert (spec.build.name, spec.build.spec, spec.build.kernel, spec.build.standardize, spec.build.seed) == (
        "own", "f2(landmarks=5)", "rbf(gamma=1)", True, 9)
    assert list(spec.build.column_names) == ["a", "b", "c", "d"] and spec.learn_scales and spec.seed == 9
    assert not spec.build.build_id and len(spec.build_id) == 36
    assert attempt.firsts == ROWS[:, 0].tolist() and attempt.finish == 100_000


def test_tune_leaves_all_to_the_server_but_the_time(scripted, scripted_client):
    attempt = Attempt()
    scripted.script("Train", completes(attempt, 1))
    scripted_client.tune("own", ROWS, LABELS, budget=90.5, max_landmarks=300)
    spec = attempt.spec
    assert (spec.build.name, spec.build.spec, spec.build.kernel, spec.learner) == ("own", "", "", "")
    assert spec.tuning.budget.ToTimedelta().total_seconds() == 90.5 and spec.tuning.max_landmarks == 300


def test_what_builds_features_goes_with_a_spec(scripted_client):
    for argument in ({"kernel": "rbf(gamma=1)"}, {"standardize": True}, {"learn_scales": True}):
        with pytest.raises(ValueError, match=f"{next(iter(argument))}.*give spec"):
            scripted_client.train("m", ROWS, LABELS, **argument)
    with pytest.raises(ValueError, match="budget"):
        scripted_client.tune("m", ROWS, LABELS, budget=0)
