"""Restarts two servers with the same versions under load, one after the other. Expects that no call is lost.

The servers do not share a store: one has exported an artifact, and the other has imported it. Clients reach the
servers through HAProxy, through nginx, and with gRPC's own round_robin. Some clients are phimap's Python client. The
others use plain grpcio, which by itself repeats only calls that a server has refused without processing them. As
docs/proxies.md advises operators, a server is restarted only after all clients have reached the other server again.
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

RESTARTS = 3
# The minimum number of calls that each client makes between two restarts.
CALLS_BETWEEN = 20
# The timeout of every wait. The test asserts nothing else about time.
PATIENCE_SECONDS = 60

ROWS = np.random.default_rng(1).standard_normal((200, 8)).astype(np.float32)


class Server:
    """A phimapd that can be restarted at the same address. The address is in the loopback network, but is not
    127.0.0.1. Other programs take ports of 127.0.0.1, and could take this port during a restart."""

    def __init__(self, folder, number, *flags):
        pid = os.getpid()
        self.address = f"127.{64 + number}.{pid >> 8 & 255}.{pid & 255}:7450"
        self._flags = [f"--data_dir={folder}/server-{number}", f"--listen={self.address}", f"--http={self.address.replace('7450', '7451')}",
                       "--log_level=error", *(flags or ["--lame_duck_seconds=1"])]
        self.start()

    def start(self, program=PHIMAPD):
        """Starts the server. Returns when the server is ready."""
        self._process = subprocess.Popen([program, *self._flags], stdout=subprocess.PIPE, text=True)
        ready = self._process.stdout.readline()
        found = re.search(r"http=(\S+)", ready)
        assert found, f"phimapd on {self.address} did not start: {ready}"
        self._http = found[1]

    def stop(self):
        """Stops the server with SIGTERM, as an operator would. Returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()
        return status

    def metric(self, name):
        """Returns the sum of all series of a metric."""
        with urllib.request.urlopen(f"http://{self._http}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if re.match(rf"{re.escape(name)}[ {{]", line))


class Load:
    """Clients that make calls without a pause until the end of the `with` block, each on its own thread."""

    def __init__(self, target, options, expected, more=()):
        """Every call of every client must return `expected`. `more` contains additional clients, as pairs of a name
        and a function that opens the client, like _plain."""
        self.target = target
        # The number of connections to each server with round_robin. Channels with the same options share a
        # connection, which is the case for the plain grpcio clients.
        self.connections = 3
        self.failures = []
        self._expected = expected
        self._options = options
        self._made = {}
        self._over = False
        self._changed = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(name, open_client)) for name, open_client in (
            ("grpcio", self._plain), ("another grpcio", self._plain), ("phimap.Client.transform", self._transforms),
            ("phimap.Client.transform_stream", self._streams), *more)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over = True
        for thread in self._threads:
            thread.join()

    def wait_for_calls(self, until=lambda: True):
        """Waits until each client has made CALLS_BETWEEN more calls, successful or not, and until `until()` returns
        true. `until` is called again after each call."""
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
        """Opens a plain grpcio client. Its channel has no options except those for round_robin, and its calls do not
        use wait_for_ready."""
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
        return Closing(lambda: np.concatenate(list(client.transform_stream(
            "m@1", ROWS, rows_per_request=10, window=3, timeout=PATIENCE_SECONDS))), client)


class Closing:
    """Holds a function that makes a call, and a resource. The resource is closed at the end of a `with` block."""

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
            first.export("m@1", self.folder / "artifact")
            self.assertEqual(second.import_("m", self.folder / "artifact").ref, version.ref)
            self.expected = first.transform("m@1", ROWS).copy()

    def restart_in_turns(self, load, reached):
        """Restarts the servers one after the other. `reached(server)` returns whether clients have connected to a
        restarted server."""
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
