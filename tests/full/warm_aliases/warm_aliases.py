"""Runs a server with many versions on disk, but with memory for only a few. Measures the server's memory, and how
much cold loads delay readers of warm versions.

    warm_aliases.py --phimapd=… --phimap=… [--versions=200] [--budget=20] [--aliases=8] [--landmarks=1000]
                    [--load_seconds=20] [--rounds=5] [--seconds=10] [--rate=200] [--check_ratio]

1. Builds the versions, and gives some of them an alias, including the oldest and the newest.
2. Starts a server whose --max_live_bytes allows --budget versions. /readyz must return 503 until all versions with an
   alias are in memory, but calls must be answered meanwhile.
3. Makes a random load: callers ask for random versions, so nearly every call needs a cold load. The peak memory of
   the process (VmHWM) must be at most --max_live_bytes plus 64 MiB, and no version with an alias may leave memory.
4. Runs `phimap bench`, which calls a version with an alias at a fixed rate: alternately alone, and while another
   caller asks once a second for a version that is not in memory. Prints the ratio of the 99th percentiles of the
   latency, which should be at most 1.5. The ratio is meaningful only on an idle machine, so a larger ratio is a
   failure only with --check_ratio.

The exit code is 1 if a call failed, the memory was over its limit, a version with an alias was evicted, or no cold
version was loaded.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))

import grpc
import numpy as np

import phimap
from phimapd import MIB, Phimapd
from phimap.v1 import examples_pb2 as examples_pb
from phimap.v1 import transform_service_pb2 as transform_pb

SLACK_BYTES = 64 * MIB
RATIO = 1.5
COLUMNS = 64
BUILD_ROWS = 1500
TRANSFORM = "/phimap.v1.TransformService/Transform"


class Server(Phimapd):
    def __init__(self, arguments, folder, *flags):
        super().__init__(arguments, *flags, data_dir=f"{folder}/data", http="127.0.0.1:0")

    def __exit__(self, *exception):
        self.terminate()
        self.process.wait(timeout=60)
        super().__exit__(*exception)

    def metric(self, series):
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=30) as answer:
            return float(re.search(rf"^{re.escape(series)} (\S+)", answer.read().decode(), re.M)[1])

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://{self.http}/readyz", timeout=30):
                return True
        except urllib.error.HTTPError as error:
            assert error.code == 503, error
            return False


class Caller:
    """Transforms four rows with a given version. Not thread-safe."""

    def __init__(self, server):
        self._channel = grpc.insecure_channel(server.address, [("grpc.use_local_subchannel_pool", 1),
                                                               ("grpc.enable_http_proxy", 0)])
        self._method = self._channel.unary_unary(TRANSFORM)
        rows = np.random.default_rng(2).uniform(-1, 1, (4, COLUMNS)).astype(np.float32)
        self._examples = examples_pb.Examples(dense=examples_pb.DenseRows(
            rows=4, columns=COLUMNS, float32_le=rows.tobytes()))

    def call(self, reference):
        request = transform_pb.TransformRequest(reference=reference, examples=self._examples)
        self._method(request.SerializeToString(), timeout=60)

    def close(self):
        self._channel.close()


class Repeating:
    """Calls `step` every `period` seconds on a thread, until the `with` block ends. If a step fails, the end of the
    `with` block raises the first error."""

    def __init__(self, step, period=0.0):
        self._step, self._period = step, period
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.steps, self._error = 0, None

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self):
        due = time.monotonic()
        try:
            while not self._stopped.wait(max(0.0, due - time.monotonic())):
                self._step()
                self.steps += 1
                due += self._period
        except Exception as error:
            self._error = error


def set_up(arguments, folder):
    """Builds the versions. Returns the memory of one version, and the numbers of the versions with an alias."""
    random = np.random.default_rng(1)
    aliased = [1 + round(i * (arguments.versions - 1) / (arguments.aliases - 1)) for i in range(arguments.aliases)]
    began = time.monotonic()
    with Server(arguments, folder) as server, phimap.Client(server.address) as client:
        for version in range(1, arguments.versions + 1):
            rows = random.uniform(-1, 1, (BUILD_ROWS, COLUMNS)).astype(np.float32)
            client.build("letters", rows, spec=f"f2(landmarks={arguments.landmarks}, pool_rows={max(1000, arguments.landmarks)})",
                         kernel="rbf(gamma=0.05)")
            if version in aliased:
                client.set_alias(f"letters@{version}", f"warm{version}")
            if version == 1:
                # The version is live because it has an alias.
                one = server.metric("phimap_live_version_bytes") / server.metric("phimap_live_versions")
    print(f"built {arguments.versions} versions of {one / MIB:.2f} MiB in {time.monotonic() - began:.0f} s", flush=True)
    return one, aliased


def await_ready(server, arguments):
    began = time.monotonic()
    caller, calls = Caller(server), 0
    while not server.ready():
        caller.call("letters@1")
        calls += 1
        if time.monotonic() - began > 60:
            raise AssertionError("not ready after 60 s")
    caller.close()
    print(f"ready after {time.monotonic() - began:.2f} s, {calls} calls answered before", flush=True)
    expect_warm(server, arguments)


def expect_warm(server, arguments):
    warm = server.metric('phimap_alias_versions{state="warm"}')
    assert warm == arguments.aliases, f"{warm:.0f} of {arguments.aliases} versions with an alias are in memory"


def random_load(server, arguments, limit):
    """Makes two callers ask for random versions. Returns the failures."""
    def stepper(seed):
        random, caller = np.random.default_rng(seed), Caller(server)
        return lambda: caller.call(f"letters@{random.integers(1, arguments.versions + 1)}")
    loads, evictions = (server.metric(f"phimap_version_{what}_total") for what in ("loads", "evictions"))
    most = 0
    with Repeating(stepper(3)) as one, Repeating(stepper(4)) as other:
        until = time.monotonic() + arguments.load_seconds
        while time.monotonic() < until:
            time.sleep(0.1)
            most = max(most, server.metric("phimap_live_versions"))
            expect_warm(server, arguments)
    peak = server.status_bytes("VmHWM")
    print(f"random load: {one.steps + other.steps} calls, {server.metric('phimap_version_loads_total') - loads:.0f} loads, "
          f"{server.metric('phimap_version_evictions_total') - evictions:.0f} evictions, at most {most:.0f} versions\n"
          f"memory: peak {peak / MIB:.1f} MiB, now {server.status_bytes('VmRSS') / MIB:.1f} MiB; "
          f"--max_live_bytes {limit / MIB:.1f} MiB and 64 MiB are {(limit + SLACK_BYTES) / MIB:.1f} MiB", flush=True)
    failures = []
    if peak > limit + SLACK_BYTES:
        failures.append(f"the process took {peak} bytes; the limit is {limit + SLACK_BYTES}")
    if server.metric("phimap_version_evictions_total") - evictions < arguments.versions:
        failures.append("the random load evicted too little to say anything")
    return failures


def bench_p99(server, arguments, version):
    done = subprocess.run(server.command("bench", f"letters@warm{version}", f"--rate={arguments.rate}",
                                         f"--seconds={arguments.seconds}", "--rows=4", "--json"),
                          capture_output=True, text=True, timeout=arguments.seconds + 120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["latency_us"]["p99"]


def cold_loads(server, arguments, aliased):
    """Measures the 99th percentile of the latency, alternately without and with cold loads at the same time. Returns
    the ratio of the two medians, and the failures."""
    caller, failures = Caller(server), []
    without_alias = [number for number in range(1, arguments.versions + 1) if number not in aliased]
    order = np.random.default_rng(5).permutation(without_alias)
    asked = 0

    def ask():
        nonlocal asked
        caller.call(f"letters@{order[asked % len(order)]}")
        asked += 1

    alone, beside = [], []
    for turn in range(arguments.rounds):
        version = aliased[turn % len(aliased)]
        alone.append(bench_p99(server, arguments, version))
        loads = server.metric("phimap_version_loads_total")
        with Repeating(ask, period=1.0):
            beside.append(bench_p99(server, arguments, version))
        loaded = server.metric("phimap_version_loads_total") - loads
        print(f"p99: alone {alone[-1]:.0f} us, beside {loaded:.0f} cold loads {beside[-1]:.0f} us", flush=True)
        # By chance, some of these versions are already in memory, so only half of the loads are required.
        if loaded < arguments.seconds / 2:
            failures.append(f"only {loaded:.0f} versions were loaded in {arguments.seconds} s")
    expect_warm(server, arguments)
    caller.close()
    return statistics.median(beside) / statistics.median(alone), failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--versions", type=int, default=200)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--aliases", type=int, default=8)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--load_seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--check_ratio", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one, aliased = set_up(arguments, folder)
        # A load needs memory for the artifact, which is larger than the loaded version because it contains the
        # certificate. Half a version's size is added for this.
        limit = round((arguments.budget + 0.5) * one)
        with Server(arguments, folder, f"--max_live_bytes={limit}", f"--memory_bytes={16 * MIB}",
                    f"--max_message_bytes={4 * MIB}") as server:
            await_ready(server, arguments)
            failures = random_load(server, arguments, limit)
            ratio, more = cold_loads(server, arguments, aliased)
    failures += more
    print(f"p99 beside cold loads: {ratio:.2f} times that without (bar {RATIO})")
    if arguments.check_ratio and ratio > RATIO:
        failures.append(f"the ratio is {ratio:.2f}, over {RATIO}")
    for failure in failures:
        print(f"warm_aliases: {failure}")
    print("warm_aliases: failed" if failures else "warm_aliases: memory within the limit, what aliases name stayed warm")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
