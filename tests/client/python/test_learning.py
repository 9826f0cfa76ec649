"""Tests trainings and predictions of both clients against a real phimapd."""
import asyncio
import uuid

import numpy as np
import pandas as pd
import pytest

import phimap
from phimap.aio import AsyncClient


@pytest.fixture(scope="module")
def labeled():
    random = np.random.default_rng(3)
    rows = random.standard_normal((600, 5))
    return rows, np.where(rows[:, 0] + 0.3 * rows[:, 1] > 0, "positive", "not")


@pytest.fixture
def name(client, labeled):
    name = f"m-{uuid.uuid4().hex}"
    client.build(name, labeled[0], spec="f2(landmarks=20)", kernel="rbf(gamma=scale)")
    return name


def test_a_trained_version_is_the_next_of_its_name_with_the_same_features(client, name, labeled):
    rows, labels = labeled
    first = client.get_version(f"{name}@1")
    assert not first.head and first.head.task == ""
    version = client.train(name, rows, labels)
    assert (version.ref.name, version.ref.number) == (name, 2) and version.head
    head = version.head
    assert (head.task, head.class_names, head.features_digest) == ("classes", ("not", "positive"), first.ref.digest)
    assert head.learner.startswith("ridge(alpha=") and head.has_probabilities and head.calibration_rows > 0
    assert version.head == client.get_version(f"{name}@2").head
    assert (client.transform(f"{name}@2", rows) == client.transform(f"{name}@1", rows)).all()
    parts = head.report.parts
    assert parts.train + parts.validate + parts.calibrate_link + parts.calibrate_sets + parts.test == 600
    assert head.report.classes.rows == parts.test and head.report.classes.error.high > head.report.classes.error.low
    assert not head.report.numbers and head.report.numbers.rows is None
    assert f"of {parts.test} test rows" in str(version)


def test_features_and_all_choices_can_come_from_the_rows(client, name, labeled):
    rows, labels = labeled
    own = client.train(f"{name}-own", rows, labels, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)", standardize=True)
    assert own.ref.number == 1 and own.head.report.classes.error.value < 0.3
    tuned = client.tune(f"{name}-tuned", rows, labels, budget=20, max_landmarks=40)
    tried = [trial for trial in tuned.head.report.trials if trial.error is not None]
    assert tried and all(trial.microseconds > 0 for trial in tried) and "landmarks=40" in tuned.spec_text
    answers = client.predict(phimap.reference_to(tuned), rows)
    assert (answers.labels == np.asarray(labels)).mean() > 0.8


def test_predictions_agree_with_their_scores_probabilities_and_sets(client, name, labeled):
    rows, labels = labeled
    model = phimap.reference_to(client.train(name, rows, labels))
    prediction = client.predict(model, rows, scores=True, probabilities=True, confidence=0.9)
    assert prediction.version.number == 2 and prediction.classes.tolist() == ["not", "positive"]
    assert (prediction.labels == labels).mean() > 0.8  # a hyperplane separates the classes
    assert prediction.scores.shape == (600, 1) and ((prediction.scores[:, 0] > 0) == prediction.indices).all()
    order = np.argsort(prediction.scores[:, 0])
    assert (np.diff(prediction.probabilities[order, 1]) >= 0).all()
    np.testing.assert_allclose(prediction.probabilities.sum(axis=1), 1, rtol=1e-12)
    wider = client.predict(model, rows, confidence=0.95)
    assert (prediction.sets <= wider.sets).all() and wider.scores is None and wider.probabilities is None


def test_alone_in_a_stream_and_with_the_other_client_a_row_has_the_same_answer(phimapd, client, name, labeled):
    rows, labels = labeled
    model = phimap.reference_to(client.train(name, rows, labels))
    wanted = {"scores": True, "probabilities": True, "confidence": 0.8}
    whole = client.predict(model, rows, **wanted)
    blocks = list(client.predict_stream(model, rows, rows_per_request=64, **wanted))
    assert [len(block) for block in blocks] == [64] * 9 + [24]
    for field in ("indices", "scores", "probabilities", "sets"):
        assert (np.concatenate([getattr(block, field) for block in blocks]) == getattr(whole, field)).all()
    for row in (0, 77, 599):
        alone = client.predict(model, rows[row:row + 1], **wanted)
        assert (alone.scores == whole.scores[row]).all() and (alone.sets == whole.sets[row]).all()

    async def run():
        async with AsyncClient(phimapd.address) as other:
            return (await other.predict(model, rows, **wanted),
                    [block async for block in other.predict_stream(model, rows, rows_per_request=64, **wanted)])

    assert asyncio.run(run()) == (whole, blocks)


def test_both_clients_train_the_same_bytes_from_arrays_and_blocks(phimapd, client, name, labeled):
    rows, labels = labeled
    arguments = {"learner": "logistic(C=1)", "seed": 9}
    digests = [client.train(f"{name}@1", rows, labels, **arguments).ref.digest,
               client.train(f"{name}@1", iter(np.array_split(rows, 7)), list(labels), **arguments).ref.digest]

    async def run():
        async with AsyncClient(phimapd.address) as other:
            return (await other.train(f"{name}@1", rows, labels, **arguments)).ref.digest

    assert {asyncio.run(run()), *digests} == {digests[0]}


def test_a_training_with_the_same_id_is_followed_and_not_repeated(client, name, labeled):
    build_id = uuid.uuid4()
    first = client.train(f"{name}@1", *labeled, build_id=build_id)
    assert client.train(f"{name}@1", *labeled, build_id=build_id) == first
    assert client.get_build(name, build_id).version == first.ref
    with pytest.raises(phimap.AlreadyExists):
        client.train(f"{name}@1", *labeled, build_id=build_id, seed=1)


def test_labels_that_are_numbers_are_classes_or_targets_as_the_task_says(client, name, labeled):
    rows, _ = labeled
    classes = client.train(f"{name}@1", rows, np.arange(600) % 3)
    assert classes.head.task == "classes"
    assert client.predict(phimap.reference_to(classes), rows[:5]).labels.dtype == np.int64
    numbers = client.train(f"{name}@1", rows, np.arange(600) % 3, task="numbers")
    assert numbers.head.task == "numbers" and numbers.head.class_names == ()
    told = client.train(f"{name}@1", rows, rows[:, 0] / 3)
    assert told.head.task == "numbers" and told.head.report.numbers.rmse.value > 0
    with pytest.raises(phimap.InvalidArgument) as raised:
        client.train(f"{name}@1", rows, np.arange(600) % 2 / 2)
    assert (raised.value.reason, raised.value.field) == (phimap.Reason.TASK_UNCLEAR, "task")
    with pytest.raises(phimap.InvalidArgument) as raised:
        client.train(f"{name}@1", rows, ["0.5"] * 599 + ["half"], task="numbers")
    assert (raised.value.reason, raised.value.row) == (phimap.Reason.LABEL_INVALID, 599)


def test_numbers_are_predicted_with_intervals_and_deviations(client, name, labeled):
    rows, _ = labeled
    target = 100 + 5 * rows[:, 0]
    model = phimap.reference_to(client.train(name, rows, target))
    prediction = client.predict(model, rows, confidence=0.9, deviations=True, scores=True)
    assert np.corrcoef(prediction.values, target)[0, 1] > 0.8 and prediction.classes is None
    assert (prediction.scores[:, 0] == prediction.values).all()
    middle = prediction.intervals.mean(axis=1)
    np.testing.assert_allclose(middle, prediction.values, rtol=1e-12)
    assert (prediction.deviations > 0).all()
    with pytest.raises(phimap.FailedPrecondition) as raised:
        client.predict(model, rows, probabilities=True)
    assert raised.value.reason == phimap.Reason.OUTPUT_NOT_AVAILABLE


def test_given_parts_and_groups_decide_what_a_row_is_used_for(client, name, labeled):
    rows, labels = labeled
    parts = ["test"] * 100 + ["calibrate-link"] * 50 + ["calibrate-sets"] * 60 + ["validate"] * 70 + ["train"] * 320
    report = client.train(f"{name}@1", rows, labels, parts=parts).head.report
    assert [getattr(report.parts, part.replace("-", "_")) for part in ("test", "calibrate-link", "calibrate-sets", "validate", "train")] == [
        100, 50, 60, 70, 320]
    # Of 60 groups of 10 rows, each is in one part as a whole.
    counts = client.train(f"{name}@1", rows, labels, groups=np.arange(600) // 10).head.report.parts
    assert all(getattr(counts, part) % 10 == 0 for part in ("test", "calibrate_link", "calibrate_sets", "validate", "train"))


def test_columns_with_names_are_put_in_the_versions_order(client, labeled):
    rows, labels = labeled
    name = f"m-{uuid.uuid4().hex}"
    frame = pd.DataFrame(rows, columns=list("abcde"))
    client.build(name, frame, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)")
    model = phimap.reference_to(client.train(name, frame, labels))
    other = client.train(f"{name}@1", frame[list("edcba")], labels)
    assert other.ref.digest == client.get_version(model).ref.digest
    assert client.predict(model, frame[list("edcba")]) == client.predict(model, frame)
    with pytest.raises(phimap.InvalidArgument, match='"a" is missing'):
        client.train(f"{name}@1", frame[list("bcde")], labels)


def test_a_version_without_a_head_predicts_nothing(client, name, labeled):
    with pytest.raises(phimap.FailedPrecondition) as raised:
        client.predict(f"{name}@1", labeled[0])
    assert raised.value.reason == phimap.Reason.HEAD_MISSING
    client.transform(name, labeled[0])
    model = client.train(name, *labeled)
    with pytest.raises(phimap.FailedPrecondition) as raised:  # the name was pinned before
        client.predict(name, labeled[0])
    assert f"is pinned to {name}@1" in raised.value.__notes__[0]
    client.unpin(name)
    assert client.predict(name, labeled[0]).version == model.ref


def test_progress_goes_from_sending_to_the_servers_phases(client, name, labeled):
    phases = []
    client.train(name, *labeled, progress=lambda progress: phases.append(progress.phase))
    assert phases[0] == "sending" and len(set(phases)) > 1
