"""Tests predictions: how answers are read, and what happens when the stream of them breaks. What predictions share with
transforms is tested by test_transform_stream.py and test_unary.py."""
import asyncio
import pickle

import grpc
import numpy as np
import pytest

import phimap
from conftest import NO_BACKOFF
from phimap.aio import AsyncClient
from phimap.rpc import error_details_pb2 as details_pb
from phimap.v1 import predict_service_pb2 as predict_pb
from scripted_server import DIGEST, fail

ROWS = np.arange(600.0).reshape(300, 2)
NAMES = ["a", "b", "c"]
# The class, and the value, that the scripts answer to a row: a function of its first value.
PLACES = (ROWS[:, 0] // 2).astype(int) % 3


def matrix(values):
    rows = predict_pb.PredictResponse().scores
    rows.rows, rows.columns = values.shape
    rows.float64_le = values.astype("<f8").tobytes()
    return rows


def classes(request, names=NAMES, first=True):
    """Returns the answer of a head for these classes; `first`: with the version and the names."""
    dense = request.examples.dense
    rows = np.frombuffer(dense.float64_le, "<f8").reshape(dense.rows, dense.columns)
    places = (rows[:, 0] // 2).astype(int) % len(names)
    answer = predict_pb.PredictResponse(labels=places)
    if first:
        answer.version.name, answer.version.number, answer.version.digest = "m", 2, DIGEST
        answer.class_names.extend(names)
    likely = np.where(np.arange(len(names)) == places[:, None], 0.5, 0.5 / (len(names) - 1))
    if request.scores:
        answer.scores.CopyFrom(matrix(np.log(likely)))
    if request.probabilities:
        answer.probabilities.CopyFrom(matrix(likely))
    if request.confidence:
        for place in places:  # the class c is never alone, and the class a is so unlike any other that its set is empty
            answer.sets.add(classes=[[], [1], [1, 2]][place])
    return answer


def numbers(request, first=True):
    dense = request.examples.dense
    values = np.frombuffer(dense.float64_le, "<f8").reshape(dense.rows, dense.columns)[:, 0]
    answer = predict_pb.PredictResponse(values=values)
    if first:
        answer.version.name, answer.version.number, answer.version.digest = "m", 2, DIGEST
    if request.scores:
        answer.scores.CopyFrom(matrix(values[:, None]))
    if request.confidence:
        answer.interval_lows.extend(values - request.confidence)
        answer.interval_highs.extend(np.full(len(values), np.inf))
    if request.deviations:
        answer.deviations.extend(np.zeros(len(values)))
    return answer


def once(answer, seen=None):
    def script(request, context):
        if seen is not None:
            seen.append(request)
        return answer(request)
    return script


def stream(seen, stop_after=None, answer=classes):
    """Returns a script that answers `stop_after` requests and then breaks. Without `stop_after`, it answers all requests."""
    def script(requests, context):
        for number, request in enumerate(requests):
            if number == stop_after:
                context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
            seen.append(request)
            # As the server does, by what the first request asks for.
            yield answer(request, first=number == 0)
    return script


def test_classes_are_answered_in_one_call_by_their_names(scripted, scripted_client):
    seen = []
    scripted.script("Predict", once(classes, seen))
    prediction = scripted_client.predict("m", ROWS, expected_digest=DIGEST)
    assert prediction.labels.tolist() == [NAMES[place] for place in PLACES] and prediction.indices.tolist() == PLACES.tolist()
    assert prediction.classes.tolist() == NAMES and len(prediction) == 300
    assert prediction.version.number == 2 and str(prediction.version) == "m@2"
    assert (seen[0].reference, seen[0].expected_digest) == ("m", DIGEST)
    for other in ("values", "scores", "probabilities", "sets", "intervals", "deviations"):
        assert getattr(prediction, other) is None
    assert not (seen[0].scores or seen[0].probabilities or seen[0].confidence or seen[0].deviations)


@pytest.mark.parametrize("names, expected", [
    (["-1", "3", "20"], [-1, 3, 20]), (["1", "02"], ["1", "02"]), (["1", "1.5"], ["1", "1.5"]), (["0", "9" * 20], ["0", "9" * 20]),
    (["0", "-0"], ["0", "-0"]), (["-9223372036854775808", "9223372036854775807"], [-2**63, 2**63 - 1]), (["1", " 2"], ["1", " 2"])])
def test_classes_are_integers_if_all_of_their_names_are(scripted, scripted_client, names, expected):
    scripted.script("Predict", once(lambda request: classes(request, names)))
    prediction = scripted_client.predict("m", ROWS[:3])
    assert prediction.classes.tolist() == expected
    assert prediction.labels.tolist() == [expected[place] for place in prediction.indices]


def test_what_is_asked_for_has_a_row_for_each_row(scripted, scripted_client):
    scripted.script("Predict", once(classes))
    prediction = scripted_client.predict("m", ROWS[:6], scores=True, probabilities=True, confidence=0.9)
    assert prediction.scores.shape == prediction.probabilities.shape == prediction.sets.shape == (6, 3)
    assert prediction.probabilities.argmax(axis=1).tolist() == PLACES[:6].tolist()
    assert [prediction.classes[row].tolist() for row in prediction.sets[:3]] == [[], ["b"], ["b", "c"]]


def test_numbers_come_with_intervals_and_deviations(scripted, scripted_client):
    scripted.script("Predict", once(numbers))
    prediction = scripted_client.predict("m", ROWS[:4], confidence=0.75, deviations=True, scores=True)
    assert prediction.values.tolist() == [0, 2, 4, 6] and prediction.labels is None and prediction.classes is None
    assert prediction.intervals.tolist() == [[-0.75, np.inf], [1.25, np.inf], [3.25, np.inf], [5.25, np.inf]]
    assert prediction.deviations.tolist() == [0] * 4 and prediction.scores.tolist() == [[0], [2], [4], [6]]


def test_many_rows_are_streamed_and_gathered_and_names_come_once(scripted, scripted_client):
    seen = []
    scripted.script("PredictStream", stream(seen))
    rows = np.tile(ROWS, (40, 1))  # 12,000 rows, more than go into one request
    prediction = scripted_client.predict("m", rows, probabilities=True, confidence=0.9)
    assert prediction.labels.tolist() == [NAMES[place] for place in PLACES] * 40
    assert prediction.probabilities.shape == prediction.sets.shape == (12_000, 3)
    assert [request.reference for request in seen] == ["m"] + [""] * (len(seen) - 1)
    assert all(request.probabilities and request.confidence == 0.9 for request in seen)
    assert max(request.examples.dense.rows for request in seen) <= 4096


def test_a_stream_yields_predictions_block_by_block_with_the_names(scripted, scripted_client):
    scripted.script("PredictStream", stream([]))
    blocks = list(scripted_client.predict_stream("m", ROWS, rows_per_request=100))
    assert [len(block) for block in blocks] == [100] * 3
    assert np.concatenate([block.labels for block in blocks]).tolist() == [NAMES[place] for place in PLACES]
    assert all(block.version.number == 2 for block in blocks)


def test_a_broken_stream_goes_on_at_the_first_request_without_an_answer(scripted, scripted_client):
    first, second = [], []
    scripted.script("PredictStream", stream(first, 7), stream(second))
    blocks = list(scripted_client.predict_stream("m", ROWS, rows_per_request=10))
    assert np.concatenate([block.indices for block in blocks]).tolist() == PLACES.tolist()
    assert (len(first), len(second)) == (7, 23)
    assert (second[0].reference, second[0].expected_digest) == ("m@2", DIGEST)


def test_a_call_that_finds_the_server_unavailable_is_repeated(scripted, scripted_client):
    def unavailable(request, context):
        context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    scripted.script("Predict", unavailable, unavailable, once(classes))
    assert len(scripted_client.predict("m", ROWS)) == 300


def test_an_answer_that_is_too_large_for_a_message_is_streamed(scripted, scripted_client):
    def too_large(request, context):
        fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "too large", details_pb.ErrorInfo(reason="MESSAGE_TOO_LARGE"))

    scripted.script("Predict", too_large)
    scripted.script("PredictStream", stream([]))
    assert scripted_client.predict("m", ROWS).indices.tolist() == PLACES.tolist()


def test_both_clients_predict_alike(scripted, scripted_client):
    wanted = {"scores": True, "probabilities": True, "confidence": 0.8}

    async def run():
        async with AsyncClient(scripted.address, service_config=NO_BACKOFF) as client:
            return (await client.predict("m", ROWS[:200], **wanted),
                    [block async for block in client.predict_stream("m", ROWS, rows_per_request=10, **wanted)])

    scripted.script("Predict", once(classes), once(classes))
    scripted.script("PredictStream", stream([]), stream([], 4), stream([]))
    whole = scripted_client.predict("m", ROWS[:200], **wanted)
    blocks = list(scripted_client.predict_stream("m", ROWS, rows_per_request=10, **wanted))
    assert asyncio.run(run()) == (whole, blocks)


def test_a_pinned_version_without_a_head_says_why_it_was_asked(scripted, scripted_client):
    def headless(request, context):
        fail(context, grpc.StatusCode.FAILED_PRECONDITION, "m@1 has no head", details_pb.ErrorInfo(reason="HEAD_MISSING"))

    scripted.script("Predict", headless)
    scripted_client._pins.observe("m", phimap.VersionRef(name="m", number=1, digest=DIGEST).message)
    with pytest.raises(phimap.FailedPrecondition) as raised:
        scripted_client.predict("m", ROWS)
    assert "'m' is pinned to m@1" in raised.value.__notes__[0] and raised.value.reason == phimap.Reason.HEAD_MISSING


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, float("nan"), "much", True])
def test_a_confidence_of_no_use_is_refused_without_a_call(scripted, scripted_client, confidence):
    for method in (scripted_client.predict, scripted_client.predict_stream):
        with pytest.raises(ValueError, match=r"confidence: expected a number in \(0, 1\)"):
            method("m", ROWS, confidence=confidence)
    assert not scripted.peers


def _spoil(**changes):
    def answer(request):
        spoiled = classes(request)
        for name, change in changes.items():
            change(getattr(spoiled, name))
        return spoiled
    return answer


@pytest.mark.parametrize("answer, message", [
    (_spoil(labels=lambda labels: labels.pop()), "answered 2 labels to a request of 3 rows"),
    (_spoil(labels=lambda labels: labels.__setitem__(0, 3)), "not the index of one of 3 classes"),
    (_spoil(labels=lambda labels: labels.__setitem__(0, -1)), "not the index of one of 3 classes"),
    (_spoil(sets=lambda sets: sets[0].classes.append(3)), "not one of 3 classes"),
    (_spoil(sets=lambda sets: sets.pop()), "answered 2 sets to a request of 3 rows"),
    (_spoil(probabilities=lambda dense: setattr(dense, "columns", 2)), "answered 3 × 2 numbers in 72 bytes"),
    (_spoil(scores=lambda dense: setattr(dense, "rows", 2)), "answered 2 × 3 numbers in 72 bytes"),
    (_spoil(version=lambda version: version.Clear()), None),
    (lambda request: classes(request, first=False), "first answer has no version")])
def test_an_answer_that_is_none_is_an_internal_error(scripted, scripted_client, answer, message):
    scripted.script("Predict", once(answer))
    if message is None:  # an empty version is one
        assert len(scripted_client.predict("m", ROWS[:3])) == 3
        return
    with pytest.raises(phimap.Internal, match=message):
        scripted_client.predict("m", ROWS[:3], scores=True, probabilities=True, confidence=0.9)


def test_a_prediction_is_a_line_and_is_compared_by_content(scripted, scripted_client):
    scripted.script("Predict", once(classes), once(classes), once(numbers))
    some, again = (scripted_client.predict("m", ROWS[:8], probabilities=True) for _ in range(2))
    assert repr(some) == "<Prediction m@2 of 8 rows: labels 'a', 'b', 'c', 'a', 'b', 'c' …, and probabilities>"
    assert some == again == pickle.loads(pickle.dumps(some)) and not some != again
    value = scripted_client.predict("m", ROWS[:1], deviations=True)
    assert repr(value) == "<Prediction m@2 of 1 rows: values 0.0, and deviations>"  # a zero is not hidden
    assert value != some
    with pytest.raises(AttributeError):
        some.classes = None


def test_a_head_that_measured_zero_says_so():
    head = phimap.Head(task="HEAD_TASK_CLASSES", learner="ridge(alpha=0.1)", class_names=["a", "b"])
    assert repr(head) == ("Head(task='classes', learner='ridge(alpha=0.1)', class_names=('a', 'b'), folded=False, calibration_rows=0, "
                          "class_conditional=False, has_deviations=False, has_probabilities=False)")
    version = phimap.Version(ref=phimap.VersionRef(name="m", number=2), head=head)
    assert repr(version).endswith(", 2 classes by ridge(alpha=0.1)>") and "2 classes by ridge(alpha=0.1)" in str(version)
    assert not phimap.Version().head and phimap.Version().head.calibration_rows is None
