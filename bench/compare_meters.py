"""Measures for bench/compare, during the load, a server's metrics, its CPU time, and the idle time of
the machine."""

import os
import pathlib
import time
import urllib.request

PHASES = ("parse", "queue", "compute", "answer")
# The server's gauge of the longest gap covers at most this many seconds.
GAP_SECONDS = 30


def scrape(server):
    """Returns {name: value} of the metrics that have no labels; empty for a server without /metrics."""
    if server.http is None:
        return {}
    with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")
            if "{" not in name}


def cpu_us(pid):
    """Returns user plus system time of all threads in microseconds, at the resolution of a kernel
    tick (10 ms)."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def machine_ticks():
    """Returns the idle ticks of all processors, and all ticks. Time that the host took (steal) does
    not count as idle."""
    words = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return words[3] + words[4], sum(words)


class Meters:
    """Reads the meters before and after one run of the load: `with Meters(server) as meters: …`, then
    `meters.figures()`."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.begin = (scrape(self.server), cpu_us(self.server.pid), machine_ticks(), time.monotonic())
        return self

    def __exit__(self, *_):
        self.end = (scrape(self.server), cpu_us(self.server.pid), machine_ticks(), time.monotonic())

    def server_cpu_us(self):
        return self.end[1] - self.begin[1]

    def seconds(self):
        return self.end[3] - self.begin[3]

    def _mean(self, histogram):
        """Returns the mean of the values that a histogram received during the run; None if it
        received none."""
        before, after = self.begin[0], self.end[0]
        count = after.get(histogram + "_count", 0) - before.get(histogram + "_count", 0)
        return (after[histogram + "_sum"] - before.get(histogram + "_sum", 0)) / count if count else None

    def figures(self):
        (idle_before, all_before), (idle_after, all_after) = self.begin[2], self.end[2]
        figures = {"machine idle %": 100 * (idle_after - idle_before) / max(1, all_after - all_before),
                   "rows a batch": self._mean("phimap_transform_batch_rows")}
        for phase in PHASES:
            seconds = self._mean(f"phimap_transform_{phase}_seconds")
            figures[f"phase {phase} us"] = None if seconds is None else 1e6 * seconds
        gap = self.end[0].get("phimap_loop_longest_gap_seconds")
        # In the first GAP_SECONDS, the gauge may still show a gap from a build or from starting the
        # server.
        recent = self.seconds() >= GAP_SECONDS or time.monotonic() - self.server.quiet_since >= GAP_SECONDS
        figures["longest gap ms" if recent else "longest gap ms, build too"] = None if gap is None else 1e3 * gap
        return {name: figure for name, figure in figures.items() if figure is not None}
