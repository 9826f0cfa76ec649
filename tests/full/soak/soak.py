"""Runs clients of all kinds against one phimapd for twenty minutes. No call may fail, memory must not grow, and the
server must stop when it is told to.

    soak.py --phimapd=… --phimap=… [--minutes=20] [--json=FILE]

work.py contains the well-behaved callers, and strangers.py the badly behaved ones. The reader's token and the TLS
certificate are rotated meanwhile. The program prints a line every 30 s, and at the end a JSON object with figures,
and the verdict. The exit code is 0 if all of these conditions hold:

- No call of a well-behaved caller fails, except for the errors that work.allowed() accepts. The same request always
  gets an answer with the same bits.
- Memory does not grow. The first fifth of the time is ignored as a warm-up, and the rest is divided into two halves.
  From the first half to the second, the median of the resident memory may grow by at most 4 MiB, and its maximum by
  at most 16 MiB. For comparison: a leak of 100 bytes per call, at 100 calls per second, would amount to 4.6 MiB
  between the halves of a run of twenty minutes.
- Not counting connections, there are at most 32 descriptors more than before the run. At the end, when every client
  is gone, there are no more descriptors and threads than before the run, no connection is open, and no request holds
  memory.
- The log contains no errors, except about TLS files, because these are replaced one after the other. Log lines about
  refused calls exceed the log's rate limit and are dropped, but errors have their own limit, which is not reached.
- After SIGTERM, the server ends within the time of the lame duck plus 3 s, although one connection is idle and one
  stream is silent.
"""

import argparse
import json
import pathlib
import re
import socket
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))

import phimap
from http2_frames import TRANSFORM_STREAM, request
from server import LAME_DUCK_SECONDS, MIB, Files, Server, Tokens, await_that
from strangers import Strangers
from work import Callers, Tally, Worker

MEDIAN_GROWTH = 4 * MIB
MAXIMUM_GROWTH = 16 * MIB
# How many more descriptors there may be besides connections: files of the store, of imports, exports and loads. Some
# connections are also counted here, because descriptors and connections are not counted at the same moment.
OTHER_DESCRIPTORS = 32
END_SECONDS = 3
REPORT_SECONDS = 30
# The longest allowed time between two polls of the server's event loop, with all the load of this test on the same
# machine. tests/full/poll_gap checks the stricter limit of the loop alone.
LONGEST_GAP_SECONDS = 1


class Soak:
    def __init__(self, arguments, folder):
        self.folder = pathlib.Path(folder)
        self.phimap = arguments.phimap
        self.seconds = 60 * arguments.minutes
        self.stopped = threading.Event()
        self.tally = Tally()
        self.samples = []
        self.rotations = {"tokens": 0, "certificates": 0}
        self.server = Server(arguments.phimapd, Files(folder))
        self.tokens = Tokens(self.server.files)

    def run(self):
        callers = Callers(self)
        for step in (callers.build_and_delete, callers.export_and_import):
            step()
        self.at_rest = self.quiet_sample()
        strangers = Strangers(self, callers)
        every = max(8.0, self.seconds / 20)
        workers = callers.workers() + strangers.workers() + [
            Worker(self, every, self.rotate_tokens), Worker(self, every, self.rotate_certificate)]
        for worker in workers:
            worker.start()
        self.watch()
        self.stopped.set()
        for worker in workers:
            worker.join(timeout=120)
            if worker.is_alive():
                self.tally.fail(worker.name, AssertionError("it hangs"))
        # The workers' clients have closed their connections when their threads ended. The connections of the admin's
        # and the builder's clients are also counted in at_rest.
        self.at_end = self.quiet_sample()
        self.ended = self.end()

    # Rotation.

    def accepts(self, token):
        with phimap.Client(self.server.address, tls=phimap.Tls(str(self.server.files.ca)), token=token) as client:
            try:
                client.list_mappings()
                return True
            except phimap.Unauthenticated:
                return False

    def rotate_tokens(self):
        self.tokens.rotate(self.accepts, self.stopped.wait)
        self.rotations["tokens"] += 1

    def served_serial(self):
        with socket.create_connection(self.server.address.rsplit(":", 1), timeout=10) as plain, \
                self.server.tls().wrap_socket(plain, server_hostname="127.0.0.1") as tls:
            return int(tls.getpeercert()["serialNumber"], 16)

    def rotate_certificate(self):
        serial = self.server.files.renew_certificate()
        await_that(lambda: self.served_serial() == serial, "the new certificate is shown")
        self.rotations["certificates"] += 1

    # Watching.

    def sample(self):
        metrics = self.server.metrics()
        descriptors = self.server.descriptors()
        return {"rss": self.server.status("VmRSS"), "threads": self.server.status("Threads"),
                "descriptors": sum(descriptors.values()), "connections": int(metrics["phimap_connections_open"]),
                "request_memory": metrics["phimap_request_memory_bytes"],
                "gap": metrics["phimap_loop_longest_gap_seconds"], "cpu": metrics["process_cpu_seconds_total"],
                "log_dropped": metrics["phimap_log_lines_dropped_total"], "kinds": descriptors}

    def quiet_sample(self):
        """Takes a sample when there are no calls. Waits up to 15 s for calls that are still under way."""
        until = time.monotonic() + 15
        while True:
            sample = self.sample()
            rest = getattr(self, "at_rest", None)
            still = sample["request_memory"] == 0 and (rest is None or (
                sample["connections"] <= rest["connections"] and sample["descriptors"] <= rest["descriptors"]))
            if still or time.monotonic() > until:
                return sample
            time.sleep(0.5)

    def watch(self):
        began = reported = time.monotonic()
        while (now := time.monotonic()) < began + self.seconds:
            self.samples.append({"time": now - began, **self.sample()})
            if self.server.process.poll() is not None:
                raise RuntimeError(f"phimapd ended with {self.server.process.returncode}")
            if now - reported >= REPORT_SECONDS:
                reported = now
                self.report(self.samples[-1])
            time.sleep(1)
        self.report(self.samples[-1])

    def report(self, last):
        print(f"{last['time']:5.0f} s  {sum(self.tally.done.values()):7d} steps, {len(self.tally.failures)} failed, "
              f"{sum(self.tally.allowed.values())} allowed; {last['rss'] / MIB:.1f} MiB, {last['descriptors']} descriptors, "
              f"{last['connections']} connections, {last['threads']} threads, {last['request_memory'] / MIB:.1f} MiB of "
              f"requests; gap {1000 * last['gap']:.1f} ms; {self.rotations['tokens']} + {self.rotations['certificates']} "
              f"rotations", flush=True)

    # The end.

    def end(self):
        """Stops the server while one connection is idle and another has a silent stream."""
        with Strangers.connect_to(self.server) as idle, Strangers.connect_to(self.server) as silent:
            silent.send(request(1, TRANSFORM_STREAM, authorization=f"Bearer {self.server.files.builder}"))
            for connection in (idle, silent):
                connection.read(0.2)
            code, seconds = self.server.stop()
        return {"exit_code": code, "seconds": round(seconds, 2)}

    def unexpected_log_lines(self):
        text = self.server.log_path.read_text(errors="replace")
        errors = [line for line in text.splitlines() if re.match(r"\S+ ERROR ", line)]
        return [line for line in errors if " tls_files_wrong " not in line][:20]

    def figures(self):
        warm = [sample for sample in self.samples if sample["time"] >= 0.2 * self.seconds]
        half = len(warm) // 2
        halves = warm[:half], warm[half:]
        times, rss = [sample["time"] for sample in warm], [sample["rss"] for sample in warm]
        others = [sample["descriptors"] - sample["connections"] for sample in warm]
        return {
            "steps": self.tally.done, "allowed": self.tally.allowed, "failures": self.tally.failures[:50],
            "failure_count": len(self.tally.failures), "rotations": self.rotations,
            "rss_median_mib": [round(statistics.median(s["rss"] for s in part) / MIB, 2) for part in halves],
            "rss_maximum_mib": [round(max(s["rss"] for s in part) / MIB, 2) for part in halves],
            "rss_slope_kib_per_minute": round(60 * statistics.linear_regression(times, rss).slope / 1024, 1),
            "descriptors_beyond_connections": [min(others), max(others)],
            "threads": [min(s["threads"] for s in warm), max(s["threads"] for s in warm)],
            "connections_maximum": max(s["connections"] for s in warm),
            "request_memory_maximum_mib": round(max(s["request_memory"] for s in warm) / MIB, 1),
            "longest_gap_ms": round(1000 * max(s["gap"] for s in self.samples), 2),
            "cpu_share_of_a_core": round((warm[-1]["cpu"] - warm[0]["cpu"]) / (times[-1] - times[0]), 3),
            "log_lines_dropped": self.at_end["log_dropped"],
            "at_rest": self.at_rest, "at_end": self.at_end, "end": self.ended,
            "unexpected_log_lines": self.unexpected_log_lines()}

    def broken(self, figures):
        """Returns a text for each condition that does not hold."""
        median, maximum = figures["rss_median_mib"], figures["rss_maximum_mib"]
        rest, end = self.at_rest, self.at_end
        checks = [
            (figures["failure_count"] == 0, f"{figures['failure_count']} steps failed"),
            (min(self.rotations.values()) > 0, "the tokens or the certificate were never rotated"),
            (median[1] <= median[0] + MEDIAN_GROWTH / MIB, f"the median of memory grew from {median[0]} to {median[1]} MiB"),
            (maximum[1] <= maximum[0] + MAXIMUM_GROWTH / MIB,
             f"the maximum of memory grew from {maximum[0]} to {maximum[1]} MiB"),
            (figures["descriptors_beyond_connections"][1] <= rest["descriptors"] + OTHER_DESCRIPTORS,
             f"{figures['descriptors_beyond_connections'][1]} descriptors beside connections"),
            (end["descriptors"] <= rest["descriptors"],
             f"descriptors at the end {end['kinds']}, at rest before {rest['kinds']}"),
            (end["connections"] <= rest["connections"], f"{end['connections']} connections at the end"),
            (end["request_memory"] == 0, f"{end['request_memory']} bytes of requests are held at the end"),
            (end["threads"] <= rest["threads"], f"{end['threads']} threads at the end, {rest['threads']} before"),
            (figures["longest_gap_ms"] <= 1000 * LONGEST_GAP_SECONDS, f"a gap of {figures['longest_gap_ms']} ms"),
            (self.ended["exit_code"] == 0, f"exit code {self.ended['exit_code']}"),
            (self.ended["seconds"] <= LAME_DUCK_SECONDS + END_SECONDS, f"it took {self.ended['seconds']} s to end"),
            (not figures["unexpected_log_lines"], f"errors in the log: {figures['unexpected_log_lines'][:3]}")]
        return [what for holds, what in checks if not holds]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--json", help="a file for the figures and all samples")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(arguments, folder)
        try:
            soak.run()
            figures = soak.figures()
        finally:
            soak.server.kill()
    broken = soak.broken(figures)
    print(json.dumps(figures, indent=1))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({**figures, "samples": soak.samples}))
    for what in broken:
        print(f"soak: {what}")
    print("soak: " + ("FAILED" if broken else "all holds"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
