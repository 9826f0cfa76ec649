"""Tests column names. A version keeps them, the names of rows are compared with them, and columns in another order
are reordered if it is certain which is which."""
import asyncio
import hashlib
import pickle

import numpy as np
import pandas
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import phimap
import phimap.aio
from phimap._columns import names_hash
from phimap.sklearn import F2

SPEC = {"spec": "f2(landmarks=20)", "kernel": "rbf(gamma=0.5)"}
NAMES = list("abcde")


@pytest.fixture
def frame(rows):
    return pandas.DataFrame(rows, columns=NAMES)


@pytest.fixture
def swapped(frame):
    return frame[["b", "a", "c", "d", "e"]]


@pytest.fixture
def renamed(frame):
    return frame.rename(columns={"a": "x"})


def test_the_hash_is_the_one_that_the_proto_describes():
    names = ("a", "größe")
    encoded = b"".join(len(name.encode()).to_bytes(4, "little") + name.encode() for name in names)
    assert names_hash(names) == int.from_bytes(hashlib.sha256(encoded).digest()[:8], "little")
    assert names_hash(("a",)) != names_hash(("b",))
    assert names_hash(("ab", "c")) != names_hash(("a", "bc"))
    assert names_hash(None) == names_hash(()) == 0


def test_a_version_keeps_the_names_of_a_frame_and_of_nothing_else(client, frame, rows):
    assert list(client.build("named", frame, **SPEC).column_names) == NAMES
    assert list(client.get_version("named").column_names) == NAMES
    assert list(client.build("unnamed", rows, **SPEC).column_names) == []
    numbered = pandas.DataFrame(rows)  # the names 0, 1, 2, … are mere positions, so the version does not keep them
    assert list(client.build("numbered", numbered, **SPEC).column_names) == []


def test_names_are_part_of_the_artifact(client, frame, rows):
    digests = {client.build("names-in-artifact", data, **SPEC).ref.digest for data in (frame, rows, frame.rename(columns=str.upper))}
    assert len(digests) == 3


def test_columns_in_another_order_are_put_in_order(client, frame, swapped, rows):
    client.build("order", frame, **SPEC)
    expected = client.transform("order", rows)
    np.testing.assert_array_equal(client.transform("order", frame), expected)
    np.testing.assert_array_equal(client.transform("order", swapped), expected)
    np.testing.assert_array_equal(client.transform("order", swapped), expected)  # now the client knows the names
    np.testing.assert_array_equal(np.concatenate(list(client.transform_stream("order", swapped))), expected)
    halves = iter([swapped[:100], frame[100:]])
    np.testing.assert_array_equal(client.transform("order", halves), expected)
    large = pandas.concat([swapped] * 400)  # too many rows for one call
    np.testing.assert_array_equal(client.transform("order", large)[:300], expected)


def test_other_names_are_an_error_that_shows_both_lists(client, frame, renamed):
    client.build("other", frame, **SPEC)
    calls = [lambda rows: client.transform("other", rows), lambda rows: client.transform("other", iter([rows])),
             lambda rows: list(client.transform_stream("other", rows)),
             lambda rows: client.evaluate("other", rows, ["p", "q"] * 150)]
    for call in calls:
        with pytest.raises(phimap.InvalidArgument) as caught:
            call(renamed)
        assert caught.value.reason == "COLUMN_NAMES_MISMATCH"
        assert '"a" is missing, and "x" is not among the version\'s' in str(caught.value)
        assert '"a", "b", "c", "d", "e"' in str(caught.value)
    with pytest.raises(phimap.InvalidArgument, match=r'got 6 columns; "id" is not among the version\'s'):
        client.transform("other", frame.assign(id=1.0))
    with pytest.raises(phimap.InvalidArgument, match='got 4 columns; "a" is missing'):
        client.transform("other", frame.drop(columns="a"))


def test_a_version_without_names_takes_any(client, rows, swapped):
    client.build("no-names", rows, **SPEC)
    np.testing.assert_array_equal(client.transform("no-names", swapped), client.transform("no-names", swapped.to_numpy()))


def test_names_that_leave_in_doubt_which_column_is_which_are_refused(client, rows):
    for names, said in ((["a", "b", "a", "d", "e"], "'a' is the name of more than one"), (["a", "b", 3, "d", "e"], "got 3 among them")):
        for call in (lambda frame: client.build("doubtful", frame, **SPEC), lambda frame: client.transform("doubtful", frame)):
            with pytest.raises(phimap.InvalidArgument, match=said):
                call(pandas.DataFrame(rows, columns=names))


def test_blocks_of_one_iterator_agree(client, frame, renamed):
    with pytest.raises(phimap.InvalidArgument, match="block 1: expected the columns of the first block"):
        client.build("blocks", iter([frame, renamed]), **SPEC)


def test_evaluate_puts_columns_in_order(client, frame, swapped):
    client.build("evaluated", frame, **SPEC)
    labels = (frame["a"] > 0).tolist()
    assert client.evaluate("evaluated", swapped, labels).errors == client.evaluate("evaluated", frame, labels).errors


def test_coroutines_do_the_same(phimapd, client, frame, swapped, renamed, rows):
    client.build("coroutines", frame, **SPEC)
    expected = client.transform("coroutines", rows)

    async def run():
        async with phimap.aio.AsyncClient(phimapd.address) as connected:
            np.testing.assert_array_equal(await connected.transform("coroutines", swapped), expected)
            with pytest.raises(phimap.InvalidArgument, match='"x" is not among the version\'s'):
                await connected.transform("coroutines", renamed)
            await connected.evaluate("coroutines", swapped, ["p", "q"] * 150)
            version = await connected.build("coroutines-2", frame, **SPEC)
            assert list(version.column_names) == NAMES

    asyncio.run(run())


def test_estimators_keep_and_check_names(phimapd, frame, swapped, renamed):
    with F2(landmarks=20, server=phimapd.address) as f2:
        expected = f2.fit_transform(frame)
        with pytest.raises(ValueError, match="same order"):
            f2.transform(swapped)
        with pytest.raises(ValueError, match="a\n"):
            f2.transform(renamed)
        found = F2.from_version(f2.reference_, server=phimapd.address)
        assert list(found.feature_names_in_) == NAMES
        np.testing.assert_array_equal(found.transform(frame), expected)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).transform(frame), expected)
        with pytest.raises(ValueError, match="same order"):
            found.transform(swapped)
        with pytest.raises(ValueError, match="x"):
            found.transform(renamed)
        with pytest.raises(phimap.InvalidArgument, match='"a" is missing, and "x"'):
            F2(version=f2.reference_, server=phimapd.address).fit(renamed)
        with pytest.raises(phimap.InvalidArgument, match="another order"):
            F2(version=f2.reference_, server=phimapd.address).fit(swapped)


def test_a_step_before_that_loses_the_names_builds_without(phimapd, frame):
    pipeline = make_pipeline(MinMaxScaler(), F2(landmarks=20, server=phimapd.address)).fit(frame)
    assert not hasattr(pipeline[-1], "feature_names_in_")
    pipeline[-1].delete()
