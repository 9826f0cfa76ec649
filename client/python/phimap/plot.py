"""Pictures of certificates, evaluations, heads and sweeps, after scikit-learn's displays. Needs matplotlib.

    from phimap.plot import CertificateDisplay

    CertificateDisplay.from_version(client.get_version("letters@prod"))

A `from_…` constructor draws at once and returns the display. `plot` draws the display again on
other axes; `figure_` and `ax_` are the figure and axes of the last drawing. Text and axes have the
colours of matplotlib's style. Lines have colours that are visible on white and on black:
`plt.style.use("dark_background")` is enough for a dark page.
"""
from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from phimap._pins import reference_to
from phimap._sweep import SweepPoint, read_sweep
from phimap.feature_map import FeatureMap
from phimap.results import TrainingReport, Version

__all__ = ["CertificateDisplay", "HeadDisplay", "MarginDisplay", "SweepDisplay"]

# Visible on white and on black, and distinguishable without telling red from green.
_COLOURS = ("#3b8bd0", "#cf7a1e", "#2aa57a", "#b56bb0", "#c9563c", "#8f8f3a")
_PLAIN, _BOUND, _THIRD = _COLOURS[:3]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("phimap.plot needs matplotlib: python3-matplotlib on Debian, or pip install matplotlib") from error
    return matplotlib.pyplot


def _axes(ax: Any, count: int, width: float) -> Any:
    """Returns `count` axes side by side: the given axes, parts of a given single one, or those of a
    new figure."""
    if ax is None:
        _, axes = _pyplot().subplots(1, count, figsize=(width * count, 3.6), squeeze=False, layout="constrained")
        return axes[0]
    if isinstance(ax, (list, tuple, np.ndarray)):
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != count:
            raise ValueError(f"ax: expected 1 or {count} axes, got {len(axes)}")
        return axes
    if count == 1:
        return np.asarray([ax], dtype=object)
    grid = ax.get_subplotspec().subgridspec(1, count, wspace=0.35)
    ax.set_axis_off()
    return np.asarray([ax.figure.add_subplot(cell) for cell in grid], dtype=object)


def _finish(ax: Any, title: str, x: str, y: str) -> None:
    ax.set(title=title, xlabel=x, ylabel=y)
    ax.grid(True, alpha=0.25, linewidth=0.6)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


class CertificateDisplay:
    """Shows how much of its kernel the landmarks of a version capture: the spectrum with the
    captured share, the pivots, and the residuals of held-out rows. For F2 and F3.

    Args:
        eigenvalues: eigenvalues of K on held-out rows, as shares of their sum, in descending
            order.
        captured: the share of Σ K(x, x) over the held-out rows that lies in the landmarks' span.
        pivots: for each landmark, the share of its K(x, x) outside the span of earlier landmarks.
        tolerance: a landmark with at most this share outside that span is dropped.
        residuals: shares of K(x, x) of held-out rows outside the landmarks' span, by name.
        name: name of the version.

    Attributes:
        figure_, ax_: the figure, and an array of its three axes.
    """

    def __init__(self, *, eigenvalues: Sequence[float], captured: float, pivots: Sequence[float], tolerance: float,
                 residuals: dict[str, float], name: str = "") -> None:
        self.eigenvalues = eigenvalues
        self.captured = captured
        self.pivots = pivots
        self.tolerance = tolerance
        self.residuals = residuals
        self.name = name

    @classmethod
    def from_version(cls, version: Any, *, ax: Any = None) -> CertificateDisplay:
        """Draws a map, or a Version with its certificate, as `Client.build` and `Client.get_version` return it."""
        version = version.version if isinstance(version, FeatureMap) else version
        certificate = version.certificate
        if not (certificate.HasField("spectrum") and len(certificate.pivots)):
            raise ValueError(f"{reference_to(version)} is {version.spec_text}: its certificate has no spectrum and pivots, "
                             "which are measured only for F2 and F3, and if at least 20 rows are held out; Client.get_version "
                             "has the certificate, Client.list_versions leaves it out")
        spectrum = certificate.spectrum
        residuals = {"all rows": certificate.held_out_trace_residual}
        if certificate.HasField("residual_share"):
            share = certificate.residual_share
            residuals |= {"median row": share.median, "95 % quantile": share.quantile_95}
        display = cls(
            eigenvalues=[value / spectrum.trace for value in spectrum.eigenvalues],
            captured=1 - (spectrum.residual / spectrum.trace if residuals["all rows"] is None else residuals["all rows"]),
            pivots=list(certificate.pivots),
            tolerance=certificate.tolerance,
            residuals={name: value for name, value in residuals.items() if value is not None}, name=reference_to(version))
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> CertificateDisplay:
        """Draws on three axes: on the three that are given, on three in place of a given single
        one, or on a new figure."""
        axes = _axes(ax, 3, 4.0)
        self._plot_spectrum(axes[0])
        self._plot_pivots(axes[1])
        self._plot_residuals(axes[2])
        self.ax_, self.figure_ = axes, axes[0].figure
        return self

    def _plot_spectrum(self, ax: Any) -> None:
        places = np.arange(1, len(self.eigenvalues) + 1)
        ax.semilogy(places, np.maximum(self.eigenvalues, 1e-12), color=_PLAIN, label="eigenvalue")
        left = 1 - self.captured
        if left > 0:
            ax.axhline(left, color=_BOUND, linestyle="--", label=f"residual: {100 * left:.2g} %")
        ax.legend(frameon=False)
        title = f"Spectrum: {100 * self.captured:.3g} % captured"
        _finish(ax, title, f"eigenvalue{f' of {self.name}' if self.name else ''}", "share of their sum")

    def _plot_pivots(self, ax: Any) -> None:
        ax.semilogy(np.arange(1, len(self.pivots) + 1), self.pivots, color=_PLAIN, label="pivot")
        if self.tolerance > 0:
            ax.axhline(self.tolerance, color=_BOUND, linestyle="--", label="dropped below")
        ax.legend(frameon=False)
        _finish(ax, f"Pivots of {len(self.pivots):,} landmarks", "landmark kept", "share of its K(x, x) left")

    def _plot_residuals(self, ax: Any) -> None:
        names = list(self.residuals)[::-1]
        values = [100 * self.residuals[name] for name in names]
        ax.barh(names, values, color=_THIRD, height=0.5)
        for place, value in enumerate(values):
            ax.annotate(f"{value:.3g} %", (value, place), xytext=(4, 0), textcoords="offset points", va="center")
        ax.set_xlim(0, 1.3 * max([*values, 1e-9]))
        _finish(ax, "Residuals of held-out rows", "% of K(x, x)", "")


class MarginDisplay:
    """Shows the distribution of the margins of tested rows, and the certified margins.

    Args:
        margins: 101 quantiles, at 0, 0.01 … 1.
        certified: (share α, margin): at most a share α of these rows has a smaller margin under one
            separator.
        certified_to_come: the same for future rows, with the evaluation's confidence.
        confidence: confidence of `certified_to_come`.
        space: "kernel" or "features", the space in which the margins are measured.
        name: name of the learner and the version.

    Attributes:
        figure_, ax_: the figure and its axes.
    """

    def __init__(self, *, margins: Sequence[float], certified: Sequence[tuple[float, float]] = (),
                 certified_to_come: Sequence[tuple[float, float]] = (), confidence: float = 0.95,
                 space: str = "features", name: str = "") -> None:
        self.margins = margins
        self.certified = certified
        self.certified_to_come = certified_to_come
        self.confidence = confidence
        self.space = space
        self.name = name

    @classmethod
    def from_evaluation(cls, evaluation: Any, *, ax: Any = None) -> MarginDisplay:
        """Draws an Evaluation: in the kernel's own space if it has margins there (F2), or else in the space of the features."""
        in_kernel = bool(len(evaluation.kernel_margin_quantiles))
        margins = evaluation.kernel_margin_quantiles if in_kernel else evaluation.margin_quantiles
        if not len(margins):
            raise ValueError(f"{evaluation.learner} has no weight vector, so there are no margins to show; linear_svm(C=1) "
                             "has one")
        items = evaluation.certified_margins
        display = cls(
            margins=list(margins), certified=[(item.alpha, item.rows_margin) for item in items if item.rows_margin > 0],
            certified_to_come=[(item.alpha, item.margin) for item in items
                               if item.HasField("margin") and item.margin > 0],
            confidence=evaluation.confidence, space="kernel" if in_kernel else "features",
            name=f"{evaluation.learner} on {reference_to(evaluation.version)}")
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> MarginDisplay:
        [ax] = _axes(ax, 1, 6.0)
        shares = np.linspace(0, 1, len(self.margins))
        ax.plot(self.margins, shares, color=_PLAIN, label="tested rows")
        wrong = float(np.mean(np.asarray(self.margins) < 0))
        ax.axvline(0, color=_PLAIN, linewidth=0.8, alpha=0.6)
        ax.fill_between(self.margins, 0, shares, where=np.asarray(self.margins) <= 0, color=_COLOURS[4], alpha=0.35,
                        label=f"margin under 0: {100 * wrong:.2g} %" if wrong else None)
        for bounds, colour, mark, label in (
                (self.certified, _BOUND, "o", "certified of these rows"),
                (self.certified_to_come, _THIRD, "s", f"certified of rows to come ({100 * self.confidence:g} %)")):
            if bounds:
                ax.plot([margin for _, margin in bounds], [alpha for alpha, _ in bounds], mark, color=colour, markersize=5,
                        label=label)
        ax.legend(frameon=False, loc="upper left")
        _finish(ax, self.name, f"margin in the space of the {self.space}", "share of rows with less")
        self.ax_, self.figure_ = ax, ax.figure
        return self


# Classes up to which each cell of a confusion matrix has its number.
_COUNTED_CLASSES = 12


class HeadDisplay:
    """Shows the report of a head, which is about its test rows. For classes: which are taken for which,
    whether probabilities are as often right as they say, and for two classes the ROC curve. For
    numbers: the distribution of the residuals.

    Args:
        report: the TrainingReport of a version's head.
        class_names: names of the classes, in the order of the report.
        name: name of the learner and the version.

    Attributes:
        figure_, ax_: the figure, and an array of its axes: as many as there is something to show.
    """

    def __init__(self, *, report: TrainingReport, class_names: Sequence[str] = (), name: str = "") -> None:
        self.report = report
        self.class_names = class_names
        self.name = name

    @classmethod
    def from_version(cls, version: Version | FeatureMap, *, ax: Any = None) -> HeadDisplay:
        """Draws a map with its head, or a Version, as `Client.train` and `Client.get_version` return it."""
        version = version.version if isinstance(version, FeatureMap) else version
        head = version.head
        if not (head.report.classes or head.report.numbers):
            raise ValueError(f"{reference_to(version)} has no head with a report: Client.train makes a version that has one, "
                             "Client.get_version returns it, and Client.list_versions leaves it out")
        return cls(report=head.report, class_names=head.class_names, name=f"{head.learner} on {reference_to(version)}").plot(ax=ax)

    def plot(self, ax: Any = None) -> HeadDisplay:
        classes = self.report.classes
        parts = [self._plot_confusion, *([self._plot_reliability] if classes.reliability else []),
                 *([self._plot_roc] if classes.roc else [])] if classes else [self._plot_residuals]
        axes = _axes(ax, len(parts), 4.4)
        for one, part in zip(axes, parts):
            part(one)
        self.ax_, self.figure_ = axes, axes[0].figure
        return self

    def _plot_confusion(self, ax: Any) -> None:
        classes = self.report.classes
        counts = np.zeros((len(classes.classes), len(classes.classes)), int)
        for pair in classes.confusion:
            counts[pair.actual, pair.predicted] = pair.count
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        places = np.arange(len(counts))
        if len(counts) <= _COUNTED_CLASSES:
            for actual, predicted in np.argwhere(counts):
                ax.annotate(f"{counts[actual, predicted]:,}", (predicted, actual), ha="center", va="center",
                            color="white" if shares[actual, predicted] > 0.5 else "black")
        if len(counts) <= 3 * _COUNTED_CLASSES:
            ax.set_xticks(places, self.class_names, rotation=90 if max(map(len, self.class_names), default=0) > 3 else 0)
            ax.set_yticks(places, self.class_names)
        error = classes.error
        _finish(ax, f"error {100 * error.value:.3g} % ({100 * error.low:.3g} to {100 * error.high:.3g})", f"answer{f' of {self.name}' if self.name else ''}",
                "class")
        ax.grid(False)

    def _plot_reliability(self, ax: Any) -> None:
        bins = [one for one in self.report.classes.reliability if one.rows]
        most = max(one.rows for one in bins)
        ax.plot([0, 1], [0, 1], color=_PLAIN, linewidth=0.8, alpha=0.6)
        ax.scatter([one.mean_confidence for one in bins], [one.correct / one.rows for one in bins],
                   s=[20 + 130 * one.rows / most for one in bins], color=_BOUND, alpha=0.8, label="test rows of a bin")
        ax.set(xlim=(0, 1.02), ylim=(0, 1.02))
        ax.legend(frameon=False, loc="upper left")
        _finish(ax, "Reliability", "probability of the answer", "share that is right")

    def _plot_roc(self, ax: Any) -> None:
        points = self.report.classes.roc
        ax.plot([one.false_positives for one in points], [one.true_positives for one in points], color=_PLAIN,
                label=f"area {self.report.classes.auc:.3g}")
        ax.plot([0, 1], [0, 1], color=_PLAIN, linewidth=0.8, alpha=0.6)
        ax.legend(frameon=False, loc="lower right")
        _finish(ax, "ROC", f"share of {self.class_names[0]} called {self.class_names[1]}", f"share of {self.class_names[1]} found")

    def _plot_residuals(self, ax: Any) -> None:
        numbers = self.report.numbers
        ax.plot(numbers.residual_quantiles, np.linspace(0, 1, len(numbers.residual_quantiles)), color=_PLAIN,
                label=f"RMSE {numbers.rmse.value:.3g} ({numbers.rmse.low:.3g} to {numbers.rmse.high:.3g})")
        ax.axvline(0, color=_PLAIN, linewidth=0.8, alpha=0.6)
        ax.legend(frameon=False, loc="upper left")
        _finish(ax, self.name, "target − answer", "share of test rows with less")


# Quantities that a sweep shows, and the names of their axes.
_QUANTITIES = {"error": "error", "accuracy": "accuracy", "microseconds_per_row": "microseconds a row",
               "kernel_error_mean": "mean kernel error"}


class SweepDisplay:
    """Shows a learner's error and the time per row over the number of landmarks, with a line for
    each family, policy, kernel and learner.

    Args:
        points: points of `phimap.sweep`. Points that differ only in their seed are averaged.

    Attributes:
        figure_, ax_: the figure, and an array of its axes.
    """

    def __init__(self, *, points: Iterable[SweepPoint]) -> None:
        self.points = list(points)
        if not self.points:
            raise ValueError("points: expected the points of a sweep, got none")

    @classmethod
    def from_sweep(cls, points: Iterable[SweepPoint], *, ax: Any = None,
                   quantities: Sequence[str] = ("error", "microseconds_per_row")) -> SweepDisplay:
        """Draws the points that `phimap.sweep` returned."""
        return cls(points=points).plot(ax=ax, quantities=quantities)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, ax: Any = None,
                  quantities: Sequence[str] = ("error", "microseconds_per_row")) -> SweepDisplay:
        """Draws a file that `phimap.sweep` or `phimap sweep` wrote."""
        return cls(points=read_sweep(path)).plot(ax=ax, quantities=quantities)

    def plot(self, ax: Any = None, quantities: Sequence[str] = ("error", "microseconds_per_row")) -> SweepDisplay:
        """Draws each quantity on its own axes: "error", "accuracy", "microseconds_per_row" or
        "kernel_error_mean"."""
        for quantity in quantities:
            if quantity not in _QUANTITIES:
                raise ValueError(f"quantities: expected one of {', '.join(_QUANTITIES)}, got {quantity!r}")
        axes = _axes(ax, len(quantities), 5.0)
        over = "landmarks" if all(point.landmarks for point in self.points) else "output_columns"
        for one, quantity in zip(axes, quantities):
            for place, (name, points) in enumerate(self._series().items()):
                self._plot_line(one, points, over, quantity, name, _COLOURS[place % len(_COLOURS)])
            _finish(one, "", "landmarks" if over == "landmarks" else "features", _QUANTITIES[quantity])
            one.locator_params(axis="x", integer=True)
            if quantity != "accuracy":
                one.set_ylim(bottom=0)
        axes[0].legend(frameon=False)
        self.ax_, self.figure_ = axes, axes[0].figure
        return self

    def _series(self) -> dict[str, list[SweepPoint]]:
        """Returns the points of each line, by a name that distinguishes the line from the
        others."""
        found: dict[tuple[Any, ...], list[SweepPoint]] = {}
        for point in self.points:
            found.setdefault((point.family, point.policy, point.kernel, point.learner), []).append(point)
        differs = [len(set(column)) > 1 for column in zip(*found)]
        differs[0] = True  # always name the family
        return {", ".join(str(part) for part, shown in zip(key, differs) if shown and part is not None): points
                for key, points in found.items()}

    @staticmethod
    def _plot_line(ax: Any, points: list[SweepPoint], over: str, quantity: str, name: str, colour: str) -> None:
        by_place: dict[int, list[SweepPoint]] = {}
        for point in points:
            if getattr(point, quantity) is not None:
                by_place.setdefault(getattr(point, over), []).append(point)
        places = sorted(by_place)
        means = [float(np.mean([getattr(point, quantity) for point in by_place[place]])) for place in places]
        bars = None
        if quantity in ("error", "accuracy"):  # standard error of the mean of n points: the root mean square of theirs / √n
            bars = [float(np.linalg.norm([point.error_standard_error for point in by_place[place]]) / len(by_place[place]))
                    for place in places]
        ax.errorbar(places, means, yerr=bars, color=colour, marker="o", markersize=4, capsize=2, label=name)
