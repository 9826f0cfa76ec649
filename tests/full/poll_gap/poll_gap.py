"""Measures the longest time between two polls of the server's event loop, in several scenarios. The limit is 5 ms.

    poll_gap.py --phimapd=… --phimap=… [--seconds=12] [--only=WORD] [--first]

Each scenario has its own server, whose store was filled before. Therefore phimap_loop_longest_gap_seconds, which
covers the last 15 to 30 s and is read twice a second, contains only gaps of this scenario. A gap also includes delays
that the machine causes, so the table shows how often the loop's thread was preempted, and how long in total it waited
for a core. The exit code is 1 if a gap is over the limit. Run this program on an idle machine, because clients and
server share its cores. With --first, the loop has priority over all other threads, so its gaps consist only of its
own work, waits for locks, and page faults.
"""

import argparse
import contextlib
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "e2e"),
                str(pathlib.Path(__file__).resolve().parents[1] / "soak")]

import grpc
import numpy as np

from http2_frames import SETTINGS, Connection
from phimapd import Phimapd
from phimap.v1 import mapping_service_pb2 as service_pb
from phimap.v1 import transform_service_pb2 as transform_pb
from server import Files
from work import BUILD, TRANSFORM, dense

LIMIT_MS = 5
UPLOAD_ROWS, UPLOAD_COLUMNS = 65536, 128  # 32 MiB of float32
EPOLL_WAIT = ("232", "281", "441")  # epoll_wait, epoll_pwait, epoll_pwait2 of x86-64
UNBOUNDED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1),
             ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]


class Server(Phimapd):
    def __init__(self, arguments, folder, *flags, tls=None):
        if tls is not None:
            flags = (*flags, f"--tls_certificate={tls.certificate}", f"--tls_key={tls.key}")
        super().__init__(arguments, *flags, data_dir=f"{folder}/data", http="127.0.0.1:0")
        self.loop = self.loop_thread()
        if arguments.first:
            os.setpriority(os.PRIO_PROCESS, int(self.loop.name), -20)

    def gap_ms(self):
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=30) as answer:
            return 1000 * float(re.search(r"^phimap_loop_longest_gap_seconds (\S+)", answer.read().decode(), re.M)[1])

    def loop_thread(self):
        """Returns the thread of the event loop: the only one that waits in epoll_wait while there are no calls."""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            waiting = [task for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
                       if (task / "syscall").read_text().split()[0] in EPOLL_WAIT]
            if len(waiting) == 1:
                return waiting[0]
            time.sleep(0.01)
        raise RuntimeError(f"expected one thread of phimapd that waits in epoll_wait, found: {waiting}")

    def preempted(self):
        """Returns how often the loop's thread was preempted, and how many milliseconds it has waited for a core in
        total."""
        times = re.search(r"nonvoluntary_ctxt_switches:\s+(\d+)", (self.loop / "status").read_text())[1]
        return int(times), int((self.loop / "schedstat").read_text().split()[1]) / 1e6

    def run(self, *words):
        return subprocess.run(self.command(*map(str, words)), capture_output=True, text=True, timeout=600)


class Load:
    """Repeats each of `steps` on its own thread until the `with` block ends, and counts the rounds. An error in a
    step ends its thread."""

    def __init__(self, *steps):
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(step,)) for step in steps]
        self.rounds, self.errors = 0, []

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _repeat(self, step):
        try:
            while not self._stopped.is_set():
                step()
                self.rounds += 1
        except Exception as error:
            self.errors.append(error)


def reconnects(server, context=None):
    def step():
        with Connection(server.address, tls=context) as connection:
            connection.read_until(lambda: SETTINGS in connection.counts)
    return Load(*[step] * 4)


def transforms(server, rows):
    def step():
        with grpc.insecure_channel(server.address, UNBOUNDED) as channel:
            channel.unary_unary(TRANSFORM)(rows, timeout=120)
    return Load(step, step)


def builds(server, rows):
    """Returns a Load whose threads make builds, each from three messages of 32 MiB."""
    def step():
        spec = service_pb.BuildSpec(name="uploaded", build_id=str(uuid.uuid4()), kernel="rbf(gamma=1)",
                                    spec="f1(landmarks=16, pool_rows=2000)")
        requests = [service_pb.BuildRequest(spec=spec).SerializeToString(), rows, rows, rows,
                    service_pb.BuildRequest(finish=service_pb.BuildFinish(row_count=3 * UPLOAD_ROWS)).SerializeToString()]
        with grpc.insecure_channel(server.address, UNBOUNDED) as channel:
            for _ in channel.stream_stream(BUILD)(iter(requests), timeout=120):
                pass
    return Load(step, step)


def benches(server, *flag_lists, name="small"):
    """Returns a Load that runs `phimap bench` on one thread for each list of flags."""
    def stepper(flags):
        def step():
            done = server.run("bench", name, "--seconds=2", "--warmup=0", *flags)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
        return step
    return Load(*map(stepper, flag_lists))


def imports(server, artifact):
    def step():
        for words in (("import", artifact, "--name=other"), ("transform", "other", f"--input={artifact.parent}/few.npy",
                      f"--output={artifact.parent}/out.npy"), ("delete", "--all-versions", "other")):
            done = server.run(*words)
            if done.returncode != 0:
                raise RuntimeError(f"{words}: {done.stderr}")
    return Load(step)


def capacity(server):
    done = server.run("bench", "small", "--seconds=2", "--callers=64", "--channels=4", "--json")
    return float(re.search(r'"calls_per_second":\s*([0-9.e+]+)', done.stdout)[1])


def set_up(arguments, folder):
    """Fills a store with small versions and one large version. Returns the two requests that the scenarios send."""
    random = np.random.default_rng(1)
    np.save(folder / "small.npy", random.uniform(-1, 1, (500, 16)).astype(np.float32))
    np.save(folder / "upload.npy", random.uniform(-1, 1, (500, UPLOAD_COLUMNS)).astype(np.float32))
    np.save(folder / "large.npy", random.uniform(-1, 1, (3000, 256)).astype(np.float32))
    np.save(folder / "few.npy", random.uniform(-1, 1, (4, 256)).astype(np.float32))
    with Server(arguments, folder) as server:
        for name, mapping in (("small", "f1(landmarks=64)"), ("upload", "f1(landmarks=16)"), ("large", "f2(landmarks=2000)")):
            done = server.run("build", name, f"--input={folder}/{name}.npy", "--kernel=rbf(gamma=0.5)", f"--spec={mapping}")
            assert done.returncode == 0, done.stderr
        done = server.run("export", "large", "-o", folder / "large.phimap")
        assert done.returncode == 0, done.stderr
    examples = dense(random.uniform(-1, 1, (UPLOAD_ROWS, UPLOAD_COLUMNS)).astype(np.float32))
    return (transform_pb.TransformRequest(reference="upload", examples=examples).SerializeToString(),
            service_pb.BuildRequest(examples=examples).SerializeToString())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--only", default="")
    parser.add_argument("--first", action="store_true",
                        help="give the loop's thread priority over all others (nice -20, needs root), for a machine that is not idle")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        transform_rows, build_rows = set_up(arguments, folder)
        tls = Files(folder)
        one_caller = ["--callers=1"]
        scenarios = {
            "idle": lambda server: contextlib.nullcontext(),
            "reconnecting": reconnects,
            "reconnecting, TLS": lambda server: reconnects(server, tls_context(tls)),
            "Transforms of 32 MiB": lambda server: transforms(server, transform_rows),
            "Builds in 32 MiB": lambda server: builds(server, build_rows),
            "both, and one caller": lambda server: both(transforms(server, transform_rows), builds(server, build_rows),
                                                        benches(server, one_caller)),
            "open loop, 3 × capacity": lambda server: benches(server, [f"--rate={3 * capacity(server):.0f}", "--channels=4"]),
            "closed loops, 3 × 256": lambda server: benches(server, *[["--callers=256", "--channels=8"]] * 3),
            "imports of 32 MB, one caller": lambda server: both(
                imports(server, folder / "large.phimap"), benches(server, one_caller)),
        }
        over = []
        print(f"{'scenario':30} {'longest gap':>12}  {'limit':>6}  {'rounds':>7}  {'preempted':>9}  {'waited for a core':>17}")
        for what, load in scenarios.items():
            if arguments.only not in what:
                continue
            with Server(arguments, folder, tls=tls if "TLS" in what else None) as server:
                gap, rounds, times, waited = measure(server, load, arguments.seconds)
            if gap > LIMIT_MS:
                over.append(what)
            print(f"{what:30} {gap:9.2f} ms  {LIMIT_MS:3} ms  {rounds:7}  {times:9}  {waited:14.0f} ms"
                  f"{'  OVER' if gap > LIMIT_MS else ''}", flush=True)
    print(f"poll_gap: over {LIMIT_MS} ms in {over}" if over else "poll_gap: all within the limit")
    return 1 if over else 0


@contextlib.contextmanager
def both(*loads):
    with contextlib.ExitStack() as stack:
        for load in loads:
            stack.enter_context(load)
        yield loads[0]


def tls_context(files):
    context = ssl.create_default_context(cafile=str(files.ca))
    context.set_alpn_protocols(["h2"])
    return context


def measure(server, load, seconds):
    """Runs `load` for some seconds. Returns the longest gap in milliseconds, the number of rounds, how often the
    loop's thread was preempted, and how many milliseconds it waited for a core."""
    gap = 0.0
    times, waited = server.preempted()
    with load(server) as running:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.5)
            gap = max(gap, server.gap_ms())
        after = server.preempted()
    return gap, getattr(running, "rounds", 0), after[0] - times, after[1] - waited


if __name__ == "__main__":
    sys.exit(main())
