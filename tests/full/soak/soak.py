"""Everything at once for twenty minutes on one phimapd: nothing fails, nothing grows, and it ends when it is told to.

    soak.py --phimapd=… --phimap=… [--minutes=20] [--json=FILE]

work.py has the callers that behave, strangers.py those that do not; the reader's token is rotated meanwhile, and the TLS
certificate. Prints a line every 30 s, at the end an object of figures and the verdict; exit code 0 if all holds:

- No call of those that behave fails, but for what work.allowed() says; answers have the bits of the first ones.
- Memory is flat: after a warm-up of a fifth of the time, the median of the resident memory in the second half of the rest
  is at most 4 MiB over that in the first half, and its maximum 16 MiB. A leak of 100 bytes a call at 100 calls a second
  would be 4.6 MiB from half to half of twenty minutes.
- Descriptors are those of what is open: beyond connections at most 32 more than at rest before. At the end, when every client
  has gone, they are as many as before, threads too, no connection is open and no memory of requests is held.
- The log has no error but those of files that are replaced one after the other. Refusals are more than it writes, and are
  dropped; errors are counted on their own, and these are few.
- SIGTERM ends it within the lame duck's time and 3 s, an idle connection and a silent stream notwithstanding.
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
# Files of the store, of imports, exports and loads, and a connection that is counted before or after it is open.
OTHER_DESCRIPTORS = 32
END_SECONDS = 3
REPORT_SECONDS = 30
# Longest gap of the loop, beside everything else on the machine; tests/full/poll_gap measures the loop's own limit.
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
        # Clients of threads that have ended go with them; these two were there at rest, too.
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
        """When nobody calls: what is under way ends within some seconds."""
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
        """SIGTERM while one connection is idle and one has a silent stream."""
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
        """What does not hold, in words."""
        median, maximum = figures["rss_median_mib"], figures["rss_maximum_mib"]
        rest, end = self.at_rest, self.at_end
        checks = [
            (figures["failure_count"] == 0, f"{figures['failure_count']} steps failed"),
            (min(self.rotations.values()) > 0, "something was never rotated"),
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
