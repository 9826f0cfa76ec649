"""Tests texts and bytes as examples, from Python lists to features."""
import asyncio
import uuid

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import phimap
from phimap import _blocks, _rows, _wire
from phimap.aio import AsyncClient
from phimap.sklearn import F1, F2, KernelPCA, from_version
from phimap.v1 import mapping_service_pb2 as mapping_service_pb

WARM, COLD = ["sun", "sea", "sand", "surf"], ["snow", "ice", "frost", "ski"]
TEXTS = [" ".join((WARM, COLD)[i % 2][(i * k) % 4] for k in (1, 3, 5, 7, 2)) + "!" * (i % 4) for i in range(120)]
LABELS = [("warm", "cold")[i % 2] for i in range(120)]
SPEC = "f2(landmarks=20)"
KERNEL = "normalize(spectrum(n=2) + spectrum(n=3))"


@pytest.fixture
def name():
    return f"m-{uuid.uuid4().hex}"


def ngrams(text, n):
    return [text[i:i + n] for i in range(len(text) - n + 1)]


def test_values_of_f1_are_shared_ngrams(client, name):
    texts = ["banana", "", "ünlü", "an"]
    client.build(name, texts, spec="f1(landmarks=3, policy=given)", kernel="spectrum(n=2)")
    features = client.transform(name, ["bandana", "nlü", "x"])
    counts = [[sum(x == y for x in ngrams(a, 2) for y in ngrams(b, 2)) for b in texts[:3]] for a in ("bandana", "nlü", "x")]
    assert features.tolist() == counts


def test_every_kind_of_texts_gives_the_same_bits(client, name):
    version = client.build(name, TEXTS, spec=SPEC, kernel=KERNEL)
    assert version.input_columns == 0
    expected, residuals = client.transform_with_residuals(name, TEXTS)
    assert (residuals >= 0).all()
    for same in (tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), pd.Series(TEXTS), pd.Series(TEXTS, dtype="string"),
                 (TEXTS[i:i + 7] for i in range(0, 120, 7))):
        assert (client.transform(name, same) == expected).all()
    assert (np.concatenate(list(client.transform_stream(name, TEXTS, rows_per_request=9))) == expected).all()
    assert client.build(name, iter([TEXTS[:50], TEXTS[50:]]), spec=SPEC, kernel=KERNEL).ref.digest == version.ref.digest

    async def again():
        async with AsyncClient(client.server) as other:
            return await other.transform(name, TEXTS)

    assert (asyncio.run(again()) == expected).all()


def test_bytes_that_are_no_text_are_mapped(client, name):
    strings = [bytes([255, i, 0, i % 7, i % 3]) for i in range(60)]
    client.build(name, strings, spec=SPEC, kernel="jaccard(n=1, unit=byte)")
    expected = client.transform(name, strings)
    assert expected.shape[0] == 60
    with pytest.raises(phimap.InvalidArgument, match="rows of numbers|bytes or text"):
        client.transform(name, np.zeros((2, 3)))


def test_texts_are_evaluated(client, name):
    client.build(name, TEXTS, spec=SPEC, kernel=KERNEL)
    assert client.evaluate(name, TEXTS, LABELS).error == 0


def test_what_the_kernel_is_not_of_is_refused(client, name, rows):
    with pytest.raises(phimap.InvalidArgument, match="is a kernel of rows of numbers; the stream's examples are text"):
        client.build(name, TEXTS, spec=SPEC, kernel="rbf(gamma=1)")
    with pytest.raises(phimap.InvalidArgument, match="is a kernel of strings; the stream's examples are dense"):
        client.build(name, rows, spec=SPEC, kernel=KERNEL)
    with pytest.raises(phimap.InvalidArgument, match="expected text examples as in the first block, got bytes"):
        client.build(name, iter([TEXTS, [b"x"]]), spec=SPEC, kernel=KERNEL)


@pytest.mark.parametrize("values, message", [
    (["a", b"b"], "rows[1]: expected str like the first row, got bytes b'b'"),
    (["a", None], "rows[1]: expected str like the first row, got NoneType"),
    ([b"a", 1.5], "rows[1]: expected bytes like the first row, got float 1.5"),
    ("a text", "a list of texts or an iterator of blocks of these, got str 'a text'")])
def test_what_are_no_texts_is_refused_by_row(values, message):
    with pytest.raises(phimap.InvalidArgument) as raised:
        _blocks.block_of(values)
    assert message in str(raised.value)


def test_half_of_a_surrogate_pair_is_refused_by_row():
    source = _rows.source_of(["a", "\ud800"])
    with pytest.raises(phimap.InvalidArgument, match=r"rows\[1\]: expected text that UTF-8 can hold"):
        source.next(_rows.BlockLimits(rows=10, bytes=100))


def test_blocks_are_cut_to_the_bytes_of_a_message():
    source = _rows.source_of(["ä" * 10] * 7)
    sizes = []
    while (block := source.next(_rows.BlockLimits(rows=3, bytes=51))) is not None:
        message = mapping_service_pb.BuildRequest.FromString(_wire.build_request(block))
        assert list(message.examples.text.values) == ["ä" * 10] * block.rows
        sizes.append(block.rows)
    assert sizes == [2, 2, 2, 1]


def test_estimators_take_texts(phimapd):
    with F2(20, kernel=KERNEL, server=phimapd.address) as f2:
        model = make_pipeline(f2, LinearSVC()).fit(TEXTS[:80], LABELS[:80])
        assert model.score(TEXTS[80:], LABELS[80:]) == 1
        assert not hasattr(f2, "n_features_in_")
        assert len(f2.get_feature_names_out()) == f2.transform(TEXTS[:2]).shape[1]
        same = from_version(f2.reference_, server=phimapd.address)
        assert (same.transform(np.array(TEXTS)) == f2.transform(TEXTS)).all()
        assert (clone(same).fit(TEXTS).transform(TEXTS) == f2.transform(TEXTS)).all()
        with pytest.raises(ValueError, match="X has 3 features"):
            clone(same).fit(np.zeros((5, 3)))
    for kind in (F1, KernelPCA):
        with kind(10, kernel="jaccard(n=1, unit=word)", server=phimapd.address) as estimator:
            assert estimator.fit_transform(pd.Series(TEXTS)).shape[0] == 120
