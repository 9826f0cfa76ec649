"""Two servers with the same versions, restarted in turns under load: no call is lost.

They share nothing but an artifact that one exported and the other imported. Clients reach them through HAProxy, through nginx,
and by gRPC's own round_robin; they are phimap's, and plain grpcio, which repeats by itself only what a server refused
unprocessed. A server is restarted when everyone has reached the other again, as operators are told in docs/proxies.md.
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import grpc
import numpy as np
import proxies

import phimap
from phimap.v1 import transform_service_pb2 as transform_pb

PHIMAPD = os.environ["PHIMAPD"]
SOURCE = pathlib.Path(__file__).resolve().parents[2]

RESTARTS = 5
# Calls that each client makes between two restarts, at least.
CALLS_BETWEEN = 20
# Every wait gives up after this; nothing is asserted about time.
PATIENCE_SECONDS = 60

ROWS = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)


class Server:
    """A phimapd that comes back where it was. Its address is of the loopback network but not the one that others take ports
    of, so that nobody takes the port meanwhile."""

    def __init__(self, folder, number, *flags):
        pid = os.getpid()
        self.address = f"127.{64 + number}.{pid >> 8 & 255}.{pid & 255}:7450"
        self._flags = [f"--data_dir={folder}/server-{number}", f"--listen={self.address}", f"--http={self.address.replace('7450', '7451')}",
                       "--log_level=error", *(flags or ["--lame_duck_seconds=1"])]
        self.start()

    def start(self, program=PHIMAPD):
        """Returns when it serves."""
        self._process = subprocess.Popen([program, *self._flags], stdout=subprocess.PIPE, text=True)
        ready = self._process.stdout.readline()
        found = re.search(r"http=(\S+)", ready)
        assert found, f"phimapd on {self.address} did not start: {ready}"
        self._http = found[1]

    def stop(self):
        """As an operator does it. Returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()
        return status

    def metric(self, name):
        """The sum of a metric's series, of this process."""
        with urllib.request.urlopen(f"http://{self._http}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{re.escape(name)}[ {{]", line))


class Load:
    """Clients that call without a pause until the end, each on a thread of its own."""

    def __init__(self, target, options, expected, more=()):
        """`more`: pairs of a name and what opens a client whose every call gives `expected`, as _plain does."""
        self.target = target
        # To each server, under round_robin: channels of equal options, those of plain grpcio, share one.
        self.connections = 3
        self.failures = []
        self._expected = expected
        self._options = options
        self._made = {}
        self._over = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(name, open_client)) for name, open_client in (
            ("grpcio", self._plain), ("another grpcio", self._plain), ("phimap.Client.transform", self._transforms),
            ("phimap.Client.transform_blocks", self._streams), *more)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over = True
        for thread in self._threads:
            thread.join()

    def wait_for_calls(self, until=lambda: True):
        """Until each client has made some more calls, well or not, and then until `until`, which is asked after calls."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._changed:
            before = dict(self._made)
            while True:
                enough = len(self._made) == len(self._threads) and all(
                    made >= before.get(name, 0) + CALLS_BETWEEN for name, made in self._made.items())
                if enough and until():
                    return
                if time.monotonic() > deadline or not self._changed.wait(PATIENCE_SECONDS):
                    raise TimeoutError(f"calls made before {before} and after {self._made}; failures {self.failures[:5]}")

    def _run(self, name, open_client):
        with open_client() as call:
            while not self._over:
                failure = None
                try:
                    if not (call() == self._expected).all():
                        failure = "other bits"
                except (grpc.RpcError, phimap.Error) as error:
                    failure = repr(error)
                with self._changed:
                    self._made[name] = self._made.get(name, 0) + 1
                    if failure:
                        self.failures.append(f"{name}, call {self._made[name]}: {failure}")
                    self._changed.notify_all()

    def _plain(self):
        """grpcio as it is: a channel of no options but what round_robin needs, and no wait_for_ready."""
        channel = grpc.insecure_channel(self.target, self._options)
        method = channel.unary_unary("/phimap.v1.TransformService/Transform",
                                     request_serializer=transform_pb.TransformRequest.SerializeToString,
                                     response_deserializer=transform_pb.TransformResponse.FromString)
        request = transform_pb.TransformRequest(reference="m@1")
        dense = request.examples.dense
        dense.rows, dense.columns, dense.float32_le = *ROWS.shape, ROWS.tobytes()

        def call():
            features = method(request, timeout=PATIENCE_SECONDS).features
            return np.frombuffer(features.float32_le, "<f4").reshape(features.rows, features.columns)

        return Closing(call, channel)

    def _transforms(self):
        client = phimap.Client(self.target)
        return Closing(lambda: client.transform("m@1", ROWS, timeout=PATIENCE_SECONDS), client)

    def _streams(self):
        client = phimap.Client(self.target)
        return Closing(lambda: np.concatenate(list(client.transform_blocks(
            "m@1", ROWS, rows_per_request=10, window=3, timeout=PATIENCE_SECONDS))), client)


class Closing:
    """A call, and what is closed after the last."""

    def __init__(self, call, resource):
        self._call = call
        self._resource = resource

    def __enter__(self):
        return self._call

    def __exit__(self, *_):
        self._resource.close()


class RestartsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.servers = [Server(folder.name, number) for number in (1, 2)]
        for server in self.servers:
            self.addCleanup(server.stop)
        with phimap.Client(self.servers[0].address) as first, phimap.Client(self.servers[1].address) as second:
            version = first.build("m", ROWS, spec="f2(landmarks=32)", kernel="rbf(gamma=0.1)")
            first.export_("m@1", self.folder / "artifact")
            self.assertEqual(second.import_("m", self.folder / "artifact").ref, version.ref)
            self.expected = first.transform("m@1", ROWS).copy()

    def restart_in_turns(self, load, reached):
        """`reached` says that clients have come to a server that is back."""
        load.wait_for_calls()
        for _ in range(RESTARTS):
            for server in self.servers:
                self.assertEqual(server.stop(), 0)
                server.start()
                load.wait_for_calls(lambda: reached(server))
        self.assertEqual(load.failures[:5], [], f"{len(load.failures)} calls failed; these are the first")

    def through(self, proxy):
        if not proxy.path():
            self.skipTest(f"{proxy.program} is not installed: tools/setup installs it")
        with proxy(self.folder, [server.address for server in self.servers]) as running:
            with Load(running.address, (), self.expected) as load:
                self.restart_in_turns(load, lambda server: server.metric("phimap_transform_rows_total") > 0)

    def test_nothing_is_lost_behind_haproxy(self):
        self.through(proxies.Haproxy)

    def test_nothing_is_lost_behind_nginx(self):
        self.through(proxies.Nginx)

    def test_nothing_is_lost_under_round_robin(self):
        target = "ipv4:" + ",".join(server.address for server in self.servers)
        with Load(target, (("grpc.lb_policy_name", "round_robin"),), self.expected) as load:
            self.restart_in_turns(
                load, lambda server: server.metric("phimap_connections_accepted_total") >= load.connections)


if __name__ == "__main__":
    unittest.main()
