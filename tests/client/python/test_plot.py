"""Tests phimap.plot, whose classes follow scikit-learn's displays."""
import subprocess
import sys
import uuid

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

import phimap  # noqa: E402
from phimap._sweep import SweepPoint  # noqa: E402
from phimap.plot import CertificateDisplay, HeadDisplay, MarginDisplay, SweepDisplay  # noqa: E402
from phimap.v1 import mapping_pb2 as mapping_pb  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def version(client, rows):
    return client.build(f"m-{uuid.uuid4().hex}", rows, spec="f2(landmarks=30)", kernel="rbf(gamma=0.1)")


@pytest.fixture
def evaluation(client, version, rows):
    return client.evaluate(phimap.reference_to(version), rows, ["in" if row[0] < 0.5 else "out" for row in rows])


def point(**changes):
    fields = {"spec": "s", "kernel": "rbf(gamma=1)", "seed": 0, "learner": "linear_svm(C=1)", "family": "f2", "landmarks": 10,
              "policy": "uniform", "output_columns": 10, "error": 0.2, "error_standard_error": 0.03, "accuracy": 0.8,
              "kernel_error_mean": 0.1, "microseconds_per_row": 3.0, "rows": 100, "tested_rows": 30, "digest": "d", "data": "x"}
    return SweepPoint(**{**fields, **changes})


def test_a_certificate_is_its_spectrum_its_pivots_and_its_residuals(version):
    display = CertificateDisplay.from_version(version)
    certificate = version.certificate
    assert len(display.ax_) == 3 and display.figure_ is display.ax_[0].figure
    spectrum, left = display.ax_[0].lines
    assert np.allclose(spectrum.get_ydata(), np.array(certificate.spectrum.eigenvalues) / certificate.spectrum.trace)
    # The share that is not captured is that of the bar beside it, and the spectrum is of the same kind of rows.
    assert left.get_ydata()[0] == pytest.approx(certificate.held_out_trace_residual)
    assert certificate.spectrum.held_out and certificate.spectrum.rows == certificate.held_out_rows
    assert certificate.spectrum.residual / certificate.spectrum.trace == pytest.approx(certificate.held_out_trace_residual, abs=1e-4)
    assert display.captured == pytest.approx(1 - left.get_ydata()[0]) and "captured" in display.ax_[0].get_title()
    assert display.ax_[1].lines[0].get_ydata().tolist() == list(certificate.pivots)
    widths = [bar.get_width() / 100 for bar in display.ax_[2].patches]
    assert widths == pytest.approx([certificate.residual_share.quantile_95, certificate.residual_share.median,
                                    certificate.held_out_trace_residual])


def test_a_version_without_a_spectrum_says_who_has_one(client, version, rows):
    f1 = client.build(f"m-{uuid.uuid4().hex}", rows, spec="f1(landmarks=5)", kernel="rbf(gamma=scale)")
    for other in (f1, client.list_versions(version.ref.name)[0]):
        with pytest.raises(ValueError, match=r"certificate has no spectrum and pivots, which are measured only for F2 and F3"):
            CertificateDisplay.from_version(other)


def test_margins_are_a_distribution_with_the_certified_bound(client, evaluation, rows):
    display = MarginDisplay.from_evaluation(evaluation)
    assert display.space == "kernel" and "kernel" in display.ax_.get_xlabel()
    assert display.ax_.lines[0].get_xdata().tolist() == list(evaluation.kernel_margin_quantiles)
    shown = {line.get_label(): line for line in display.ax_.lines}
    certified = [(item.alpha, item.rows_margin) for item in evaluation.certified_margins if item.rows_margin > 0]
    assert certified and list(shown["certified of these rows"].get_ydata()) == [alpha for alpha, _ in certified]
    assert any("of rows to come (95 %)" in label for label in shown)
    f1 = client.build(f"m-{uuid.uuid4().hex}", rows, spec="f1(landmarks=5)", kernel="rbf(gamma=scale)")
    labels = [str(row[0] > 0) for row in rows]
    other = MarginDisplay.from_evaluation(client.evaluate(phimap.reference_to(f1), rows, labels))
    assert other.space == "features" and not other.certified


def head(report, names=()):
    version = mapping_pb.Version()
    version.ref.name, version.ref.number = "m", 2
    version.head.class_names.extend(names)
    version.head.report.CopyFrom(report)
    return phimap.Version(version)


def test_a_head_for_classes_is_its_confusion_its_reliability_and_its_roc():
    kinds = mapping_pb.TrainingReport.Classes
    estimate = mapping_pb.TrainingReport.Estimate(value=0.25, low=0.1, high=0.5)
    report = mapping_pb.TrainingReport(classes=kinds(
        rows=8, errors=2, error=estimate, classes=[kinds.Class(rows=4), kinds.Class(rows=4)], auc=0.875,
        confusion=[kinds.Confusion(actual=a, predicted=p, count=n) for a, p, n in ((0, 0, 3), (0, 1, 1), (1, 0, 1), (1, 1, 3))],
        roc=[kinds.RocPoint(false_positives=x, true_positives=y) for x, y in ((0, 0), (0.25, 0.75), (1, 1))],
        reliability=[kinds.ReliabilityBin(bin=5, rows=2, correct=1, mean_confidence=0.55),
                     kinds.ReliabilityBin(bin=9, rows=6, correct=5, mean_confidence=0.9)]))
    display = HeadDisplay.from_version(head(report, ["ham", "spam"]))
    confusion, reliability, roc = display.ax_
    assert confusion.images[0].get_array().tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert [text.get_text() for text in confusion.texts] == ["3", "1", "1", "3"] and confusion.get_title() == "error 25 % (10 to 50)"
    assert [label.get_text() for label in confusion.get_yticklabels()] == ["ham", "spam"]
    np.testing.assert_allclose(reliability.collections[0].get_offsets(), [[0.55, 0.5], [0.9, 5 / 6]])
    assert roc.lines[0].get_xydata().tolist() == [[0, 0], [0.25, 0.75], [1, 1]] and "0.875" in roc.lines[0].get_label()
    assert roc.get_xlabel() == "share of ham called spam"
    for name in ("roc", "reliability"):
        report.classes.ClearField(name)
    assert len(HeadDisplay.from_version(head(report, ["ham", "spam"])).ax_) == 1


def test_a_head_for_numbers_is_the_distribution_of_its_residuals():
    quantiles = np.linspace(-1, 2, 101).tolist()
    numbers = mapping_pb.TrainingReport.Numbers(
        rows=50, rmse=mapping_pb.TrainingReport.Estimate(value=1, low=0.5, high=2), residual_quantiles=quantiles)
    display = HeadDisplay.from_version(head(mapping_pb.TrainingReport(numbers=numbers)))
    [ax] = display.ax_
    assert ax.lines[0].get_xdata().tolist() == quantiles and ax.lines[0].get_label() == "RMSE 1 (0.5 to 2)"


def test_a_version_without_a_head_has_no_report_to_show(version):
    with pytest.raises(ValueError, match="has no head with a report: Client.train makes a version that has one"):
        HeadDisplay.from_version(version)


def test_a_learner_without_weights_has_no_margins(client, version, rows):
    evaluation = client.evaluate(phimap.reference_to(version), rows, [str(row[0] > 0) for row in rows],
                                 learner="kernel_svm(C=1)")
    with pytest.raises(ValueError, match="has no weight vector"):
        MarginDisplay.from_evaluation(evaluation)


def test_a_sweep_has_a_line_for_each_mapping_and_policy_over_the_landmarks(tmp_path):
    points = [point(family=family, policy=policy, landmarks=landmarks, seed=seed, error=0.1 * seed + 1 / landmarks)
              for family in ("f1", "f2") for policy in ("uniform", "rpcholesky") for landmarks in (20, 10) for seed in (0, 1)]
    display = SweepDisplay.from_sweep(points)
    names = [text.get_text() for text in display.ax_[0].get_legend().get_texts()]
    assert names == ["f1, uniform", "f1, rpcholesky", "f2, uniform", "f2, rpcholesky"]
    line = display.ax_[0].lines[0]
    assert line.get_xdata().tolist() == [10, 20] and line.get_ydata() == pytest.approx([0.15, 0.1])  # the means over two seeds
    assert [ax.get_ylabel() for ax in display.ax_] == ["error", "microseconds a row"]
    path = tmp_path / "sweep.jsonl"
    path.write_text("".join(one.line() + "\n" for one in points))
    again = SweepDisplay.from_file(path, quantities=["accuracy"])
    assert again.points == points and [ax.get_ylabel() for ax in again.ax_] == ["accuracy"]


def test_mappings_without_landmarks_are_shown_over_their_features():
    display = SweepDisplay.from_sweep([point(), point(family="fourier", landmarks=None, policy=None, output_columns=64)])
    assert display.ax_[0].get_xlabel() == "features"
    assert [text.get_text() for text in display.ax_[0].get_legend().get_texts()] == ["f2, uniform", "fourier"]
    with pytest.raises(ValueError, match="quantities: expected one of error, accuracy"):
        display.plot(quantities=["speed"])
    with pytest.raises(ValueError, match="got none"):
        SweepDisplay(points=[])


def test_axes_may_be_given_one_or_several(version, evaluation):
    figure, axes = plt.subplots(1, 3)
    display = CertificateDisplay.from_version(version, ax=axes)
    assert display.ax_[2] is axes[2] and display.figure_ is figure
    figure, ax = plt.subplots()
    assert CertificateDisplay.from_version(version, ax=ax).figure_ is figure and len(figure.axes) == 4
    figure, ax = plt.subplots()
    assert MarginDisplay.from_evaluation(evaluation, ax=ax).ax_ is ax
    with pytest.raises(ValueError, match="expected 1 or 3 axes, got 2"):
        display.plot(ax=plt.subplots(1, 2)[1])


# WCAG requires a contrast of at least 3:1 for graphics. The contrast is a ratio of relative luminances, as WCAG
# defines them.
def test_lines_are_seen_on_white_and_on_black():
    from phimap import plot

    def luminance(colour):
        channels = np.asarray(matplotlib.colors.to_rgb(colour))
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    for colour in plot._COLOURS:
        for page in ("#ffffff", "#0d1117"):
            lighter, darker = sorted((luminance(colour), luminance(page)), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) > 3, (colour, page)


def test_without_matplotlib_the_module_loads_and_says_what_is_missing():
    program = """
import sys
sys.modules["matplotlib"] = None
import phimap, phimap.plot
assert "matplotlib.pyplot" not in sys.modules
try:
    phimap.plot.MarginDisplay(margins=[0, 1]).plot()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "python3-matplotlib on Debian" in done.stdout
