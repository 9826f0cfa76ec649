"""Well-behaved callers. Each does one kind of work at its own pace, on its own thread. None of their calls may
fail."""

import subprocess
import threading
import uuid

import grpc
import numpy as np

import phimap
from phimap.v1 import examples_pb2 as examples_pb
from phimap.v1 import mapping_service_pb2 as service_pb
from phimap.v1 import transform_service_pb2 as transform_pb

COLUMNS = 16
TRANSFORM = "/phimap.v1.TransformService/Transform"
BUILD = "/phimap.v1.MappingService/Build"
LIST = "/phimap.v1.MappingService/ListMappings"
TIMEOUT = 60


class Wrong(Exception):
    """An answer that is not what it should be."""


class Tally:
    """Counts the steps of all workers by their result. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self.done, self.allowed, self.failures = {}, {}, []

    def add(self, name):
        with self._lock:
            self.done[name] = self.done.get(name, 0) + 1

    def allow(self, name, why):
        with self._lock:
            key = f"{name}: {why}"
            self.allowed[key] = self.allowed.get(key, 0) + 1

    def fail(self, name, error):
        with self._lock:
            self.failures.append(f"{name}: {error!r:.500}")


class Worker(threading.Thread):
    """Makes a step every `period` seconds until the soak ends."""

    def __init__(self, soak, period, step, name=None):
        super().__init__(name=name or step.__name__.strip("_"), daemon=True)
        self._soak, self._period, self._step = soak, period, step

    def run(self):
        while not self._soak.stopped.wait(self._period):
            token = self._soak.tokens.reader
            try:
                self._step()
            except Exception as error:  # any exception counts as a failure
                why = allowed(error, token in self._soak.tokens.retired)
                if why:
                    self._soak.tally.allow(self.name, why)
                else:
                    self._soak.tally.fail(self.name, error)
            else:
                self._soak.tally.add(self.name)


def allowed(error, retired):
    """Returns the reason why a well-behaved call may fail with this error, or None if it may not. `retired` means
    that the call's token was withdrawn in the meantime."""
    code = error.code() if isinstance(error, grpc.RpcError) else getattr(error, "code", None)
    if code is grpc.StatusCode.UNAUTHENTICATED and retired:
        return "UNAUTHENTICATED, its token had just been withdrawn"
    if isinstance(error, phimap.ResourceExhausted) and error.retry_after is not None:
        return f"RESOURCE_EXHAUSTED ({error.reason}) with a delay"
    return None


def dense(rows):
    return examples_pb.Examples(dense=examples_pb.DenseRows(
        rows=len(rows), columns=rows.shape[1], float32_le=rows.tobytes()))


def expect_bits(what, features, expected):
    if features.shape != expected.shape or not (features.view(np.uint32) == expected.view(np.uint32)).all():
        raise Wrong(f"{what}: the features differ from those of the first call")


class Callers:
    """The steps that the workers repeat. `soak` is the Soak object of soak.py."""

    def __init__(self, soak):
        self.soak = soak
        self.folder = soak.folder
        self.tls = phimap.Tls(str(soak.server.files.ca))
        self.rows = np.random.default_rng(1).uniform(-1, 1, (1000, COLUMNS)).astype(np.float32)
        self.labels = (self.rows[:, 0] > 0).astype(int)
        np.save(self.folder / "rows.npy", self.rows)
        self.admin = self.client(soak.server.files.admin)
        self.builder = self.client(soak.server.files.builder)
        self._readers = threading.local()
        self._set_up()
        self.random = np.random.default_rng(2)

    def client(self, token, unix=False):
        address = f"unix:{self.soak.server.unix}" if unix else self.soak.server.address
        return phimap.Client(address, tls=None if unix else self.tls, token=token)

    def channel(self):
        with open(self.soak.server.files.ca, "rb") as ca:
            credentials = grpc.ssl_channel_credentials(ca.read())
        return grpc.secure_channel(self.soak.server.address, credentials, [
            ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)])

    def _set_up(self):
        self.admin.build("served", self.rows, spec="f1(landmarks=64)", kernel="rbf(gamma=0.5)")
        self.admin.build("served", self.rows, spec="f2(landmarks=48)", kernel="rbf(gamma=0.5)", seed=2)
        self.admin.set_alias("served@1", "prod")
        self.expected = {version: self.admin.transform(f"served@{version}", self.rows).copy() for version in (1, 2)}
        self.evaluation = self._evaluate(self.admin)

    def workers(self):
        soak = self.soak
        return [Worker(soak, 0.05, self.unary), Worker(soak, 0.05, self.unary, "unary again"),
                Worker(soak, 0.1, self.unary_unix), Worker(soak, 0.05, self.grpcio), Worker(soak, 0.5, self.grpcio_connects),
                Worker(soak, 0.05, self.aliased), Worker(soak, 0.3, self.move_alias), Worker(soak, 0.5, self.stream),
                Worker(soak, 3, self.command_line), Worker(soak, 2, self.build_and_delete),
                Worker(soak, 2, self.cancelled_build), Worker(soak, 2, self.aborted_build), Worker(soak, 4, self.evaluate),
                Worker(soak, 3, self.export_and_import)]

    def reader(self, unix=False):
        """Returns the client of the current thread. Makes a new one after the reader's token was replaced."""
        token = self.soak.tokens.reader
        if getattr(self._readers, "token", None) != token:
            if hasattr(self._readers, "client"):
                self._readers.client.close()
            self._readers.client, self._readers.token = self.client(token, unix), token
        return self._readers.client

    def slice(self, most):
        begin = int(self.random.integers(0, len(self.rows) - most))
        return slice(begin, begin + int(self.random.integers(1, most + 1)))

    def unary(self):
        part = self.slice(64)
        expect_bits("Transform", self.reader().transform("served@1", self.rows[part], timeout=TIMEOUT), self.expected[1][part])

    def unary_unix(self):
        part = self.slice(8)
        expect_bits("Transform over the Unix socket", self.reader(unix=True).transform("served@2", self.rows[part],
                    timeout=TIMEOUT), self.expected[2][part])

    def _grpcio(self, channel):
        part = self.slice(16)
        method = channel.unary_unary(TRANSFORM, request_serializer=transform_pb.TransformRequest.SerializeToString,
                                     response_deserializer=transform_pb.TransformResponse.FromString)
        request = transform_pb.TransformRequest(reference="served@1", examples=dense(self.rows[part]))
        answer = method(request, timeout=TIMEOUT, metadata=(("authorization", f"Bearer {self.soak.tokens.reader}"),))
        features = np.frombuffer(answer.features.float32_le, "<f4").reshape(answer.features.rows, answer.features.columns)
        expect_bits("Transform by grpcio", features, self.expected[1][part])

    def grpcio(self):
        if not hasattr(self._readers, "channel"):
            self._readers.channel = self.channel()
        self._grpcio(self._readers.channel)

    def grpcio_connects(self):
        with self.channel() as channel:
            self._grpcio(channel)

    def aliased(self):
        part = self.slice(8)
        features, version = self.reader().transform_with_version("served@prod", self.rows[part], timeout=TIMEOUT)
        expect_bits("Transform by an alias", features, self.expected[version.number][part])

    def move_alias(self):
        self._version = 3 - getattr(self, "_version", 1)
        self.admin.set_alias(f"served@{self._version}", "prod")

    def stream(self):
        features = np.concatenate(list(self.reader().transform_stream(
            "served@2", self.rows, rows_per_request=100, timeout=TIMEOUT)))
        expect_bits("TransformStream", features, self.expected[2])

    def command_line(self):
        out = self.folder / "features.npy"
        ran = subprocess.run(
            [self.soak.phimap, f"--server={self.soak.server.address}", f"--tls_ca={self.soak.server.files.ca}", "transform",
             "served@1", f"--input={self.folder}/rows.npy", f"--output={out}"],
            env={"PHIMAP_TOKEN": self.soak.server.files.builder}, capture_output=True, text=True, timeout=TIMEOUT)
        if ran.returncode != 0:
            raise Wrong(f"phimap transform: {ran.returncode} {ran.stderr}")
        expect_bits("phimap transform", np.load(out), self.expected[1])

    def build_and_delete(self):
        """Builds the same version as before, and deletes it. Expects that the same rows and seed give the same bytes,
        and that the deleted version does not answer any more."""
        version = self.builder.build("rebuilt", self.rows, spec="f2(landmarks=48)", kernel="rbf(gamma=0.5)", seed=2,
                                     timeout=TIMEOUT)
        reference = f"rebuilt@{version.ref.number}"
        expect_bits("Transform of a version built again", self.admin.transform(reference, self.rows[:50]),
                    self.expected[2][:50])
        self.admin.delete_version(f"rebuilt@{version.ref.number}")
        try:
            self.admin.transform(reference, self.rows[:1])
        except phimap.NotFound:
            return
        raise Wrong(f"{reference} answers after it was deleted")

    def _unfinished_build(self, channel, build_id, rest):
        """Starts a Build, and sends some of its rows. The request stream stays open until the event `rest` is set."""
        spec = service_pb.BuildSpec(name="unfinished", build_id=build_id, kernel="rbf(gamma=1)",
                                    spec="f1(landmarks=32)")

        def requests():
            yield service_pb.BuildRequest(spec=spec)
            for _ in range(20):
                yield service_pb.BuildRequest(examples=dense(self.rows))
            rest.wait(TIMEOUT)

        method = channel.stream_stream(BUILD, request_serializer=service_pb.BuildRequest.SerializeToString,
                                       response_deserializer=service_pb.BuildResponse.FromString)
        call = method(requests(), metadata=(("authorization", f"Bearer {self.soak.server.files.builder}"),), timeout=TIMEOUT)
        if not next(call).HasField("accepted"):
            raise Wrong("the first event of a build was not `accepted`")
        return call

    def cancelled_build(self):
        """Cancels a build, with another call, while its rows arrive."""
        build_id, rest = str(uuid.uuid4()), threading.Event()
        with self.channel() as channel:
            call = self._unfinished_build(channel, build_id, rest)
            job = self.builder.cancel_build("unfinished", build_id)
            if job.state != "cancelled":
                raise Wrong(f"a cancelled build is {job.state}")
            try:
                for _ in call:
                    pass
            except grpc.RpcError:
                pass
            rest.set()
            if call.code() is not grpc.StatusCode.CANCELLED:
                raise Wrong(f"a cancelled build ended with {call.code()} {call.details()}")

    def aborted_build(self):
        """Closes the connection of a client in the middle of a build."""
        rest = threading.Event()
        with self.channel() as channel:
            self._unfinished_build(channel, str(uuid.uuid4()), rest)
        rest.set()

    def _evaluate(self, client):
        return client.evaluate("served@1", self.rows, self.labels, seed=3, timeout=TIMEOUT)

    def evaluate(self):
        if self._evaluate(self.reader()) != self.evaluation:
            raise Wrong("the same evaluation has another result than the first time")

    def export_and_import(self):
        path = self.folder / "exported.phimap"
        self.admin.export("served@2", str(path), timeout=TIMEOUT)
        version = self.builder.import_("imported", str(path), timeout=TIMEOUT)
        expect_bits("Transform of an imported version",
                    self.admin.transform(f"imported@{version.ref.number}", self.rows[:50]), self.expected[2][:50])
        self.admin.delete_mapping("imported")
        self.admin.unpin("imported")
