"""Tests that what is built, trained, mapped and predicted in the test's own process has bit for bit the artifacts,
features and answers of a server."""
import io
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas
import pytest
import scipy.sparse

import phimap
from phimap.feature_map import given_values

pytestmark = pytest.mark.usefixtures("engine_library")

# Every kind of mapping, of stage and of kernel operation.
RBF = "rbf(gamma=0.5)"
KINDS = {
    "f1": ("f1(landmarks=20)", RBF),
    "f1-wide": ("f1(landmarks=20, serving_type=float64)", RBF),
    "f2": ("f2(landmarks=20)", RBF),
    "f2-wide": ("f2(landmarks=20, serving_type=float64)", RBF),
    "f2-rpcholesky": ("f2(landmarks=20, policy=rpcholesky)", RBF),
    "f2-kmeans": ("f2(landmarks=20, policy=kmeans)", RBF),
    "f2-given": ("f2(landmarks=20, policy=given)", RBF),
    "f2-projected": ("f2(landmarks=20, input_dimensions=3)", RBF),
    "f2-poly": ("f2(landmarks=20)", "poly(degree=3, gamma=0.5, coef0=1)"),
    "f2-laplacian": ("f2(landmarks=20)", "laplacian(gamma=0.2)"),
    "f2-sum": ("f2(landmarks=20)", "rbf(gamma=0.5)*laplacian(gamma=0.1) + 0.5*cosine()"),
    "f2-exp": ("f2(landmarks=20)", "normalize(exp(0.1*linear()))"),
    "f1-sigmoid": ("f1(landmarks=20)", "sigmoid(gamma=0.3, coef0=0.5)"),
    "f1-bilinear": ("f1(landmarks=20)", "bilinear(diagonal=[1, 2, 3, 4, 5])"),
    "f1-delta": ("f1(landmarks=20)", "delta()"),
    "f3": ("f3(landmarks=40, dimensions=8)", RBF),
    "kpca": ("kpca(landmarks=40, dimensions=8)", RBF),
    "kpca-rounded": ("kpca(landmarks=40, dimensions=8, sparsify=2, quantise=true, rounding=4)", RBF),
    "fourier": ("fourier(dimensions=32)", RBF),
    "fourier-phase": ("fourier(dimensions=32, form=phase)", "laplacian(gamma=0.2)"),
    "fourier-orthogonal": ("fourier(dimensions=32, orthogonal=true)", RBF),
    "projection": ("random_projection(dimensions=8)", "linear()"),
    "multiclass": ("multiclass(classes=3, dimensions=8)", "linear()"),
    "positive": ("positive(dimensions=32)", "exp(0.1*linear())"),
    "polynomial": ("polynomial(dimensions=56)", "poly(degree=2, gamma=1, coef0=1)"),
}
# The families of KINDS that every server offers; test_every_family_is_among_the_kinds holds the list to it.
CLASSES = {one: f"{one}()" for one in ("ridge", "logistic", "linear_svm", "perceptron", "winnow")}
NUMBERS = {"ridge": "ridge()", "svr": "svr(C=1, epsilon=0.1)"}


def exported(client, reference):
    file = io.BytesIO()
    client.export(reference, file)
    return file.getvalue()


def same_bits(ours, servers):
    assert (ours.dtype, ours.shape) == (servers.dtype, servers.shape)
    assert np.ascontiguousarray(ours).tobytes() == np.ascontiguousarray(servers).tobytes()


def test_every_family_is_among_the_kinds():
    offered = {family.name for family in phimap.list_capabilities().families}
    assert offered == {spec.partition("(")[0] for spec, _ in KINDS.values()}


def test_every_learner_of_heads_is_compared():
    offered = {learner.name for learner in phimap.list_capabilities().learners}
    heads = set()
    for name in offered:
        try:
            rows = np.random.default_rng(1).standard_normal((120, 2))
            phimap.train(rows, ["a" if row[0] > 0 else "b" for row in rows] if name != "svr" else rows[:, 0],
                         spec="f2(landmarks=5)", kernel=RBF, learner=name)
            heads.add(name)
        except phimap.InvalidArgument as error:
            assert error.reason == phimap.Reason.LEARNER_NOT_APPLICABLE, error
    assert heads == set(CLASSES) | set(NUMBERS)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_build_here_has_the_bytes_of_a_servers_and_its_features(client, rows, kind, standardize):
    spec, kernel = KINDS[kind]
    version = client.build(f"here-{kind}-{standardize}".lower(), rows, spec=spec, kernel=kernel, standardize=standardize)
    ours = phimap.build(rows, spec=spec, kernel=kernel, standardize=standardize)
    assert ours.digest == version.ref.digest
    assert ours.certificate == version.certificate
    assert (ours.spec, ours.kernel) == (version.spec_text, version.kernel_text)
    new = np.random.default_rng(2).standard_normal((97, 5))
    new[np.random.default_rng(3).random(new.shape) < 0.6] = 0
    sparse = scipy.sparse.csr_matrix(new)
    for given in (new, new.astype(np.float32), new[:1], new[:, ::-1], np.asfortranarray(new), pandas.DataFrame(new), sparse,
                  sparse.astype(np.float32), new.astype(np.float16), iter([new[:50], new[50:]])):
        again = new if hasattr(given, "__next__") else given
        same_bits(ours.transform(given), client.transform(phimap.reference_to(version), again))


@pytest.mark.parametrize("spec, kernel", [("f2(landmarks=20)", "spectrum(n=3)"), ("f2(landmarks=20)", "jaccard(n=1, unit=word)")])
def test_texts_have_the_bytes_and_the_bits_of_a_server(client, spec, kernel):
    texts = [f"text number {i * i} of {i}" for i in range(120)]
    version = client.build("here-texts", texts, spec=spec, kernel=kernel)
    ours = phimap.build(texts, spec=spec, kernel=kernel)
    assert ours.digest == version.ref.digest
    same_bits(ours.transform(texts[:7] + ["", "ü"]), client.transform(phimap.reference_to(version), texts[:7] + ["", "ü"]))


def test_sparse_streams_and_named_columns_have_the_bytes_of_a_server(client, rows):
    sparse = scipy.sparse.random(300, 2000, density=0.01, random_state=1, format="csr")
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    for name, given in (("here-sparse", sparse), ("here-named", frame)):
        version = client.build(name, given, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)", standardize=True)
        ours = phimap.build(given, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)", standardize=True)
        assert ours.digest == version.ref.digest
        assert phimap.build(iter([given[:100], given[100:]]), spec="f2(landmarks=20)", kernel="rbf(gamma=scale)",
                            standardize=True).digest == version.ref.digest
    same_bits(ours.transform(frame[list("edcba")]), client.transform("here-named", rows))
    with pytest.raises(phimap.InvalidArgument, match='"a" is missing, and "x" is not among'):
        ours.transform(frame.rename(columns={"a": "x"}))


@pytest.fixture
def labels(rows):
    return np.where(np.linalg.norm(rows, axis=1) > 2, "far", "near")


@pytest.mark.parametrize("task, learner", [("classes", one) for one in CLASSES.values()] + [("numbers", one) for one in NUMBERS.values()])
def test_a_training_here_has_the_bytes_of_a_servers_and_its_answers(client, rows, labels, task, learner):
    target = labels if task == "classes" else rows[:, 0] * rows[:, 1]
    name = f"here-{task}-{learner.partition('(')[0]}".replace("_", "-")
    built = client.build(name, rows, spec="f2(landmarks=20)", kernel=RBF)
    version = client.train(phimap.reference_to(built), rows, target, learner=learner, seed=3)
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF).train(rows, target, learner=learner, seed=3)
    assert ours.digest == version.ref.digest
    assert ours.head == version.head
    wanted = {"scores": True, "confidence": 0.9} | ({"probabilities": True} if task == "classes" else {})
    if ours.head.has_deviations:
        wanted["deviations"] = True
    mine, theirs = ours.predict(rows, **wanted), client.predict(phimap.reference_to(version), rows, **wanted)
    for field in ("classes", "indices", "values", "scores", "probabilities", "sets", "intervals", "deviations"):
        np.testing.assert_array_equal(getattr(mine, field), getattr(theirs, field), err_msg=field)
    same_bits(ours.transform(rows), client.transform(phimap.reference_to(built), rows))


@pytest.mark.parametrize("learn_scales", [False, True])
def test_features_that_a_training_builds_have_the_bytes_of_a_servers(client, rows, labels, learn_scales):
    asked = {"spec": "f2(landmarks=20)", "kernel": "rbf(gamma=scale)", "standardize": True, "learn_scales": learn_scales}
    version = client.train(f"here-both-{learn_scales}".lower(), rows, labels, **asked)
    assert phimap.train(rows, labels, **asked).digest == version.ref.digest


def test_weights_groups_and_parts_have_the_bytes_of_a_servers(client, rows, labels):
    built = client.build("here-known", rows, spec="f2(landmarks=20)", kernel=RBF)
    known = {"weights": np.linspace(1, 2, 300), "groups": [str(i // 3) for i in range(300)], "learner": "ridge(alpha=1)"}
    version = client.train(phimap.reference_to(built), rows, labels, **known)
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF).train(rows, labels, **known)
    assert ours.digest == version.ref.digest


def test_tune_chooses_here(rows, labels):
    model = phimap.tune(np.concatenate([rows, rows + 0.1]), np.concatenate([labels, labels]), budget=2.0, max_landmarks=32)
    assert model.head.report.trials and model.predict(rows).labels.shape == (300,)


def test_an_evaluation_here_is_a_servers(client, rows, labels):
    client.build("here-evaluated", rows, spec="f2(landmarks=20)", kernel=RBF)
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF)
    for asked in ({}, {"folds": 3, "learner": "perceptron(epochs=3)"}, {"learner": "kernel_svm(C=1)", "seed": 5}):
        mine, theirs = ours.evaluate(rows, labels, **asked), client.evaluate("here-evaluated", rows, labels, **asked)
        theirs.message.ClearField("version")
        mine.message.ClearField("version")
        assert mine == theirs


def test_residuals_are_a_servers(client, rows):
    client.build("here-residuals", rows, spec="f2(landmarks=20, serving_type=float64)", kernel=RBF)
    ours = phimap.build(rows, spec="f2(landmarks=20, serving_type=float64)", kernel=RBF)
    for mine, theirs in zip(ours.transform_with_residuals(rows, allowances=True),
                            client.transform_with_residuals("here-residuals", rows, allowances=True)):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(phimap.FailedPrecondition) as raised:
        phimap.build(rows, spec="f1(landmarks=20)", kernel=RBF).transform_with_residuals(rows)
    assert raised.value.reason == phimap.Reason.RESIDUAL_NOT_AVAILABLE


def test_a_file_goes_to_a_server_and_back(client, phimapd, rows, labels, tmp_path):
    model = phimap.train(rows, labels, spec="f2(landmarks=20)", kernel=RBF)
    path = tmp_path / "model.phimap"
    model.save(path)
    assert phimap.load(path) == model
    with open(path, "rb") as file:
        assert phimap.load(file) == model
    version = model.publish("published", server=phimapd.address, alias="prod")
    assert version.ref.digest == model.digest
    same_bits(client.transform("published@prod", rows), model.transform(rows))
    assert exported(client, "published@prod") == model.artifact == path.read_bytes()
    assert client.predict("published@prod", rows) != model.predict(rows)  # they name another version
    np.testing.assert_array_equal(client.predict("published@prod", rows).labels, model.predict(rows).labels)


def test_a_map_says_what_it_is(rows, labels):
    model = phimap.train(rows, labels, spec="f2(landmarks=20)", kernel=RBF)
    assert repr(model) == (f"<phimap.FeatureMap {model.spec}, rbf(gamma=0.5), {model.head.learner}, "
                           f"sha256:{model.digest[:12]}>")
    assert "<table>" in model._repr_html_() and model.verify()
    assert (model.columns, model.input_columns, model.dtype) == (20, 5, np.float32)
    assert model.certificate.stream_rows > 0 and model.head.task == "classes"


def test_threads_share_a_map_and_build_at_the_same_time(rows):
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF)
    expected, wrong = ours.transform(rows), []

    def work(number):
        for _ in range(5):
            if not np.array_equal(ours.transform(rows), expected):
                wrong.append(number)
        if number % 10 == 0 and phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF) != ours:
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


IN_A_FORK = """
import os, sys, threading
import numpy as np, phimap
rows = np.random.default_rng(1).standard_normal((300, 5))
def build():
    return phimap.build(rows, spec="f2(landmarks=150)", kernel="rbf(gamma=0.5)").digest
before = build()
busy = [threading.Thread(target=build) for _ in range(4)]   # fork while others compute
for thread in busy: thread.start()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if build() == before else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
for thread in busy: thread.join()
sys.exit(any(codes) or build() != before)
"""


def test_a_child_builds_and_maps_after_a_fork():
    subprocess.run([sys.executable, "-c", IN_A_FORK], check=True, timeout=60)


IN_ANOTHER_PROCESS = """
import pickle, sys
model, rows = pickle.load(sys.stdin.buffer)
pickle.dump((model.transform(rows), model.predict(rows).labels), sys.stdout.buffer)
"""


def test_a_pickle_needs_nothing_else(rows, labels):
    model = phimap.train(rows, labels, spec="f2(landmarks=20)", kernel=RBF)
    done = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], input=pickle.dumps((model, rows)), stdout=subprocess.PIPE,
                          check=True)
    features, predicted = pickle.loads(done.stdout)
    same_bits(features, model.transform(rows))
    np.testing.assert_array_equal(predicted, model.predict(rows).labels)
    assert pickle.loads(pickle.dumps(model)) == model and len({model, pickle.loads(pickle.dumps(model))}) == 1


def test_arrays_that_fit_are_not_copied(rows):
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF)
    read_only = rows.copy()
    read_only.flags.writeable = False
    same_bits(ours.transform(read_only), ours.transform(rows))
    from phimap import _native
    from phimap._blocks import block_of
    for given in (rows, rows.astype(np.float32), read_only):
        assert _native.GivenRows(block_of(given)).rows.values == _native.address(given)


def errors_of(call):
    with pytest.raises(phimap.Error) as raised:
        call()
    error = raised.value
    return type(error), error.field, error.reason, error.row, error.column


WRONG_SPECS = [{"spec": "f2(landmarks=0)"}, {"spec": "f9()"}, {"spec": "f2(landmarks=20"}, {"spec": "f2(landmarks=500)"},
               {"spec": "f2(landmarks=20)", "kernel": "rbf(gamma=-1)"}, {"spec": "f2(landmarks=20)", "kernel": "none()"},
               {"spec": "f2(landmarks=20)", "kernel": "service(x, y)"}, {"spec": "fourier(dimensions=32)", "kernel": "linear()"}]


@pytest.mark.parametrize("wrong", WRONG_SPECS, ids=str)
def test_errors_of_builds_are_a_servers(client, rows, wrong):
    asked = {"kernel": RBF, **wrong}
    assert errors_of(lambda: phimap.build(rows, **asked)) == errors_of(lambda: client.build("here-wrong", rows, **asked))


def test_errors_of_rows_are_a_servers(client, rows, labels):
    client.build("here-errors", rows, spec="f2(landmarks=20)", kernel=RBF)
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF)
    bad = rows.copy()
    bad[7, 3] = np.nan
    for wrong in (bad, rows[:, :4], bad.astype(np.float32), scipy.sparse.csr_matrix(bad), ["a text"], rows[:0]):
        assert (errors_of(lambda: ours.transform(wrong)) == errors_of(lambda: client.transform("here-errors", wrong))), wrong
        if len(getattr(wrong, "shape", ())) == 2 and wrong.shape[0]:
            assert (errors_of(lambda: phimap.build(wrong, spec="f2(landmarks=20)", kernel=RBF, standardize=True))
                    == errors_of(lambda: client.build("here-wrong", wrong, spec="f2(landmarks=20)", kernel=RBF,
                                                      standardize=True))) if np.isnan(bad).any() and wrong.shape[1] == 5 else True
    assert errors_of(lambda: ours.predict(rows))[2] == phimap.Reason.HEAD_MISSING
    for asked in ({"learner": "ridge(alpha=-1)"}, {"learner": "none()"}, {"labels": ["one"] * 300}, {"learner": "svr(C=1)"}):
        known = {"labels": labels, **asked}
        assert (errors_of(lambda: ours.train(rows, **known)) == errors_of(lambda: client.train("here-errors", rows, **known))), asked


def test_a_version_of_more_memory_than_allowed_is_refused(rows):
    artifact = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF).artifact
    with pytest.raises(phimap.ResourceExhausted) as raised:
        phimap.load(io.BytesIO(artifact), max_bytes=len(artifact))
    assert raised.value.field == "max_bytes" and raised.value.limit == len(artifact)


def test_damaged_files_are_refused(rows, tmp_path):
    artifact = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF).artifact
    for place in range(0, len(artifact), 97):
        damaged = bytearray(artifact)
        damaged[place] ^= 1
        with pytest.raises((phimap.DataLoss, phimap.Unimplemented)):
            phimap.load(io.BytesIO(bytes(damaged)))
    (tmp_path / "text.phimap").write_text("no artifact")
    with pytest.raises(phimap.DataLoss):
        phimap.load(tmp_path / "text.phimap")


def test_a_kernel_that_phimap_does_not_compute_needs_a_function(client, rows):
    gram = rows @ rows.T
    version = client.build("here-gram", gram, spec="f2(landmarks=20)", kernel="precomputed()")
    ours = phimap.build(gram, spec="f2(landmarks=20)", kernel="precomputed()")
    assert ours.digest == version.ref.digest
    landmarks = rows[list(ours.certificate.landmark_rows)]
    values = rows @ landmarks.T
    same_bits(ours.transform(values), client.transform("here-gram", values))
    with pytest.raises(phimap.FailedPrecondition) as raised:
        phimap.FeatureMap(ours.artifact)
    assert raised.value.reason == phimap.Reason.KERNEL_REMOTE
    same_bits(phimap.FeatureMap(ours.artifact, kernel=lambda some: some @ landmarks.T).transform(rows), ours.transform(values))
    same_bits(phimap.FeatureMap(ours.artifact, kernel=given_values).transform(values), ours.transform(values))
    # A head does not change that: the values are still the caller's to give.
    answering = ours.train(values, ["a" if row[0] > 0 else "b" for row in rows])
    with pytest.raises(phimap.FailedPrecondition) as raised:
        phimap.FeatureMap(answering.artifact)
    assert raised.value.reason == phimap.Reason.KERNEL_REMOTE
    again = phimap.FeatureMap(answering.artifact, kernel=given_values)
    assert (again.predict(values).labels == answering.predict(values).labels).all()


def test_an_iterator_may_yield_the_same_memory_again(rows):
    ours = phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF)

    def blocks():
        block = np.empty((50, rows.shape[1]), rows.dtype)
        for begin in range(0, len(rows), 50):
            block[...] = rows[begin:begin + 50]
            yield block

    same_bits(ours.transform(blocks()), ours.transform(rows))
    same_bits(ours.transform_with_residuals(blocks())[1], ours.transform_with_residuals(rows)[1])


INTERRUPTED = """
import numpy, phimap
rows = numpy.random.default_rng(1).standard_normal((9000, 10))
phimap.build(rows, spec="f2(landmarks=8000)", kernel="rbf(gamma=scale)", progress=lambda step: print(step.phase, flush=True))
"""


def test_ctrl_c_ends_a_build_of_this_process():
    # Several times: the signal may come before the first line of the observer, where Python code cannot catch it.
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as program:
            assert any(line == "gram\n" for line in program.stdout)
            program.send_signal(signal.SIGINT)
            errors = program.stderr.read()
        assert "KeyboardInterrupt" in errors and "Cancelled" not in errors
        assert program.returncode == -signal.SIGINT


def test_the_time_of_a_training_counts_while_it_takes_rows():
    def blocks():
        while True:
            yield np.ones((100, 5))

    with pytest.raises(phimap.DeadlineExceeded):
        phimap.build(blocks(), spec="f2(landmarks=20)", kernel=RBF, timeout=0.3)


def test_progress_is_told_and_may_end_the_work(rows):
    seen = []
    phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF, progress=seen.append)
    assert [one.phase for one in seen][0] == "reading" and seen[-1].fraction <= 1 and len({one.phase for one in seen}) > 2

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        phimap.build(rows, spec="f2(landmarks=20)", kernel=RBF, progress=stop)
    with pytest.raises(phimap.DeadlineExceeded):
        phimap.build(np.random.default_rng(1).standard_normal((5000, 20)), spec="f2(landmarks=2000)", kernel=RBF, timeout=0.05)


@pytest.mark.parametrize("path, says", [("/nowhere.so", "/nowhere.so"), (__file__, "cannot be loaded")])
def test_without_the_library_the_error_says_what_to_do(path, says):
    done = subprocess.run([sys.executable, "-c", "import phimap; phimap.build([[1.0], [2.0]], spec='f2(landmarks=1)')"],
                          capture_output=True, text=True, env={**os.environ, "PHIMAP_ENGINE_LIBRARY": path})
    assert done.returncode == 1 and says in done.stderr and "PHIMAP_ENGINE=required pip install" in done.stderr


def test_numpys_threads_and_symbols_are_its_own():
    """The library hides its OpenBLAS: loading it changes neither numpy's result nor its library."""
    program = """
import ctypes, numpy as np
a = np.random.default_rng(1).standard_normal((300, 300))
before = a @ a
from phimap import _native
loaded = _native.engine()
assert (a @ a == before).all()
exported = [name for name in ("openblas_set_num_threads", "dgemm_", "LAPACKE_dsyevd") if hasattr(loaded, name)]
assert not exported, exported
"""
    subprocess.run([sys.executable, "-c", program], check=True)


IN_ANOTHER = """
import pickle, sys
mapper, rows = pickle.load(sys.stdin.buffer)
pickle.dump(mapper(rows), sys.stdout.buffer)
"""


def test_a_mapper_with_the_artifact_needs_no_server(own_phimapd, rows):
    with phimap.Client(own_phimapd.address) as client:
        client.build("alone", rows, spec="f2(landmarks=20)", kernel=RBF)
        expected = client.transform("alone", rows)
        client.build("alone-gram", rows @ rows.T, spec="f2(landmarks=20)", kernel="precomputed()")
    mapper = phimap.rows_mapper("alone", server=own_phimapd.address, on_workers=True)
    with pytest.raises(phimap.FailedPrecondition, match="on_workers"):
        phimap.rows_mapper("alone-gram", server=own_phimapd.address, on_workers=True)
    own_phimapd.kill()
    run = subprocess.run([sys.executable, "-c", IN_ANOTHER], input=pickle.dumps((mapper, rows)), stdout=subprocess.PIPE, check=True)
    same_bits(pickle.loads(run.stdout), expected)
