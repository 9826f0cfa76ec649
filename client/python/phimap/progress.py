"""Progress of calls."""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO, Union

import numpy as np

from phimap.v1 import mapping_pb2 as mapping_pb


@dataclass(frozen=True)
class Progress:
    """One step of a build, a training, a transform or a prediction.

    Attributes:
        phase: "sending", "transforming" or "predicting", and then what a build or a training is doing on the server:
            "queued", "gram", "factor", "learn" …
        rows: number of rows sent to a build, or answered, so far. Counts from 0 again if rows
            are sent again.
        total_rows: number of rows of the input; None if it is an iterator.
        fraction: finished share of this phase, 0..1; None if it is not known.
        job: the server's latest report on a build or a training; None before the first report, and for
            other calls.
    """

    phase: str
    rows: int
    total_rows: int | None = None
    fraction: float | None = None
    job: mapping_pb.BuildJob | None = None


# Called on the thread that made the call. An exception that the observer raises ends the call.
Observer = Callable[[Progress], None]
# Progress argument of a call: an observer, True for a ProgressBar, None or False for nothing.
ProgressArgument = Union[Observer, bool, None]


class ProgressBar:
    """Writes progress to a terminal as one line that is overwritten, and to any other stream as one
    line per phase."""

    WIDTH = 30

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._overwrites = self._stream.isatty()
        self._phase = ""
        self._shown = ""

    def __call__(self, progress: Progress) -> None:
        if self._overwrites:
            line = self._line(progress)
            if line != self._shown:
                self._stream.write("\r" + line.ljust(len(self._shown)))
                self._stream.flush()
                self._shown = line
        elif progress.phase != self._phase:
            self._stream.write(f"phimap: {progress.phase}\n")
        self._phase = progress.phase

    def close(self) -> None:
        if self._shown:
            self._stream.write("\n")
            self._shown = ""

    def _line(self, progress: Progress) -> str:
        if progress.fraction is None:
            return f"{progress.phase}  {progress.rows:,} rows"
        done = round(progress.fraction * self.WIDTH)
        bar = "#" * done + "." * (self.WIDTH - done)
        line = f"{progress.phase:<13}[{bar}] {progress.fraction:4.0%}  {progress.rows:,} rows"
        if progress.job is not None and progress.job.seconds_left > 0:
            line += f"  about {progress.job.seconds_left:.0f} s left"
        return line


@contextlib.contextmanager
def observing(progress: ProgressArgument) -> Iterator[Observer]:
    """Yields the function that a call reports to while it runs."""
    if not (progress is None or isinstance(progress, (bool, np.bool_)) or callable(progress)):
        raise TypeError(f"progress: expected a function, True or None, got {progress!r}")
    if not callable(progress) and progress:
        bar = ProgressBar()
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield progress if callable(progress) else ignored


def ignored(progress: Progress) -> None:
    """The observer of a call that nobody observes."""
