"""Tests evaluations with the synchronous and the asynchronous client against a real phimapd."""
import asyncio
import uuid

import numpy as np
import pandas as pd
import pytest

import phimap
from phimap.aio import AsyncClient


@pytest.fixture(scope="module")
def labeled():
    rows = np.random.default_rng(3).standard_normal((400, 5))
    return rows, np.where(rows[:, 0] + 0.3 * rows[:, 1] > 0, "positive", "not")


@pytest.fixture
def name(client, labeled):
    name = f"m-{uuid.uuid4().hex}"
    client.build(name, labeled[0], spec="f2(landmarks=20)", kernel="rbf(gamma=scale)")
    return name


def test_an_evaluation_tells_errors_classes_and_margins(client, name, labeled):
    rows, labels = labeled
    evaluation = client.evaluate(name, rows, labels)
    assert evaluation.version.name == name and evaluation.version.number == 1
    assert evaluation.rows == 400 and evaluation.tested_rows == 120
    assert evaluation.error == evaluation.errors / 120
    assert evaluation.error < 0.2  # a hyperplane separates the classes
    assert [c.label for c in evaluation.classes] == ["not", "positive"]
    assert sum(c.rows for c in evaluation.classes) == 400
    assert len(evaluation.margin_quantiles) == 101
    assert len(evaluation.certified_margins) == 11
    assert name not in client.pinned


def test_blocks_lists_and_both_clients_give_the_same_evaluation(phimapd, client, name, labeled):
    rows, labels = labeled
    arguments = {"learner": "perceptron(epochs=3)", "folds": 4, "seed": 9}
    whole = client.evaluate(name, rows, labels, **arguments)
    assert whole.tested_rows == 400 and len(whole.folds) == 4
    assert client.evaluate(name, iter(np.array_split(rows, 7)), list(labels), **arguments) == whole

    async def run():
        async with AsyncClient(phimapd.address) as other:
            return await other.evaluate(name, rows, labels, **arguments)

    assert asyncio.run(run()) == whole


def test_labels_may_be_numbers_and_any_texts(client, name, labeled):
    rows, _ = labeled
    evaluation = client.evaluate(name, rows, np.arange(400) % 3)
    assert [c.label for c in evaluation.classes] == ["0", "1", "2"]
    evaluation = client.evaluate(name, rows, ["-", "ü, or not"] * 200)
    assert [c.label for c in evaluation.classes] == ["-", "ü, or not"]


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, "", " ", pd.NA, pd.NaT])
def test_a_missing_label_is_refused_with_its_row(client, name, labeled, missing):
    rows, labels = labeled
    given = [*labels[:17], missing, *labels[18:]]
    for container in (given, pd.Series(given, dtype=object), np.array(given, dtype=object)):
        with pytest.raises(phimap.InvalidArgument, match=r"labels\[17\]: row 17 has no label"):
            client.evaluate(name, rows, container)


def test_a_text_that_stands_for_nan_is_refused_by_the_server(client, name, labeled):
    rows, labels = labeled
    with pytest.raises(phimap.InvalidArgument, match=r"row 17 of the stream \(from 0\) has no label") as refused:
        client.evaluate(name, rows, [*labels[:17], "nan", *labels[18:]])
    assert refused.value.reason == "LABEL_MISSING"


def test_a_numeric_target_is_refused_with_a_hint(client, name, labeled):
    rows, _ = labeled
    with pytest.raises(phimap.InvalidArgument, match="looks like the target of a regression") as refused:
        client.evaluate(name, rows, rows[:, 0])
    assert refused.value.reason == "LABELS_NOT_CLASSES"


def test_no_error_is_no_certainty(client, name, labeled):
    rows, _ = labeled
    sides = np.where(np.arange(400) % 2, 3.0, -3.0)
    evaluation = client.evaluate(name, np.column_stack([sides, 0.01 * rows[:, 1:]]), np.where(sides > 0, "a", "b"))
    assert evaluation.errors == 0 and evaluation.error_low == 0
    assert evaluation.error_high == pytest.approx(1 - 0.025 ** (1 / evaluation.tested_rows))
    assert "error 0 % (0 % to 3.03 % with confidence 0.95) of 120 tested rows" in repr(evaluation)
    assert "assumes that the tested rows" in evaluation.error_premise and evaluation.error_premise in str(evaluation)
    folds = client.evaluate(name, rows, labeled[1], folds=4)
    assert "approximate" in folds.error_premise and folds.error_low < folds.error < folds.error_high


def test_labels_that_are_not_one_for_each_row_are_refused_here(client, name, labeled):
    rows, labels = labeled
    for wrong in (labels[:-1], np.concatenate([labels, labels])):
        with pytest.raises(phimap.InvalidArgument, match="one for each row"):
            client.evaluate(name, rows, wrong)
        with pytest.raises(phimap.InvalidArgument, match="one for each row"):
            client.evaluate(name, iter([rows]), wrong)
    with pytest.raises(TypeError):
        client.evaluate(name, rows, "text")
    with pytest.raises(phimap.InvalidArgument):
        client.evaluate(name, rows, labels.reshape(-1, 2))


def test_the_servers_errors_have_their_class_and_place(client, name, labeled):
    rows, labels = labeled
    with pytest.raises(phimap.InvalidArgument) as failed:
        client.evaluate(name, rows, labels, learner="svm()")
    assert failed.value.reason == "EXPRESSION_INVALID" and failed.value.field == "learner"
    with pytest.raises(phimap.InvalidArgument) as failed:
        client.evaluate(name, rows[:10], labels[:10], folds=11)
    assert failed.value.reason == "FOLDS_TOO_MANY"
    endless = rows.copy()
    endless[333, 2] = np.nan
    for given in (endless, iter(np.array_split(endless, 5))):
        with pytest.raises(phimap.InvalidArgument) as failed:
            client.evaluate(name, given, labels)
        assert (failed.value.row, failed.value.column) == (333, 2)
    with pytest.raises(phimap.NotFound):
        client.evaluate("nobody", rows, labels)
    with pytest.raises(phimap.InvalidArgument) as failed:
        client.evaluate(name, rows, ["one"] * 400)
    assert failed.value.reason == "CLASSES_TOO_FEW"


def test_progress_begins_with_the_rows_and_goes_on_with_the_server(client, name, labeled):
    phases = []
    client.evaluate(name, *labeled, progress=lambda progress: phases.append(progress.phase))
    assert phases[0] == "sending"
    # The server reports only its newest state, so some states may not be reported.
    assert set(phases) <= {"sending", "queued", "computing"}
