"""Starts a real phimapd for tests, and runs the phimap command against it."""

import argparse
import importlib
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import sys
import tempfile

import numpy as np

MIB = 1 << 20


class Phimapd:
    """A server on a free port of the loopback interface. It is ready when the constructor returns. `arguments` are
    the test's parsed flags, which include --phimapd and --phimap. With `tls`, it has a certificate that signs itself."""

    def __init__(self, arguments, *flags, data_dir=None, tls=False, http="none"):
        self.arguments = arguments
        self.folder = tempfile.TemporaryDirectory()
        self.data_dir = data_dir or f"{self.folder.name}/data"
        self.certificate = f"{self.folder.name}/server.pem" if tls else None
        if tls:
            key = f"{self.folder.name}/server.key"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-days=2", "-subj=/CN=127.0.0.1", "-addext=subjectAltName=IP:127.0.0.1",
                            f"-keyout={key}", f"-out={self.certificate}"], check=True, capture_output=True)
            flags = (*flags, f"--tls_certificate={self.certificate}", f"--tls_key={key}")
        self.process = subprocess.Popen(
            [arguments.phimapd, f"--data_dir={self.data_dir}", "--listen=127.0.0.1:0", f"--http={http}", "--log_level=off",
             *flags], stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.address = line.split("grpc=")[1].split()[0]
        self.http = line.split(" http=")[1].split()[0]
        self.api_http = line.split("api_http=")[1].split()[0] if "api_http=" in line else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def tls(self):
        """The context of a client that trusts this server and speaks HTTP/2; None without TLS."""
        if self.certificate is None:
            return None
        context = ssl.create_default_context(cafile=self.certificate)
        context.set_alpn_protocols(["h2"])
        return context

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def status_bytes(self, name):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(name + r":\s+(\d+) kB", text).group(1)) << 10

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def sockets(self):
        def target(link):
            try:
                return os.readlink(link)
            except FileNotFoundError:  # closed meanwhile
                return ""
        folder = pathlib.Path(f"/proc/{self.process.pid}/fd")
        return sum(1 for link in folder.iterdir() if target(link).startswith("socket:"))

    def start_measuring(self):
        """Starts a new measurement of the peak memory."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        self.before = self.status_bytes("VmRSS")

    def growth(self):
        """Returns the peak of the resident memory since start_measuring, minus the resident memory at that time."""
        return self.status_bytes("VmHWM") - self.before

    def command(self, *words):
        tls = [] if self.certificate is None else [f"--tls_ca={self.certificate}"]
        return [self.arguments.phimap, f"--server={self.address}", *tls, *words]

    def phimap(self, *words):
        return subprocess.run(self.command(*words), check=True, capture_output=True, text=True, timeout=60).stdout

    def build(self, name, mapping, columns, rows=500):
        path = f"{self.folder.name}/rows.npy"
        np.save(path, np.random.default_rng(1).uniform(-1, 1, (rows, columns)).astype(np.float32))
        self.phimap("build", name, f"--input={path}", "--kernel=rbf(gamma=0.5)", f"--spec={mapping}")

    def start_bench(self, name, seconds, *flags):
        """Starts `phimap bench` with one caller, which makes one call after the other while the test runs. Pass the
        returned process to bench_result."""
        return subprocess.Popen(
            self.command("bench", name, f"--seconds={seconds}", "--warmup=0.1", "--json", *flags),
            stdout=subprocess.PIPE, text=True)


def take_flags(*names, switches=()):
    """Takes these flags out of the command line, and leaves the rest to unittest."""
    parser = argparse.ArgumentParser()
    for name in names:
        parser.add_argument(f"--{name}", required=True)
    for name in switches:
        parser.add_argument(f"--{name}", action="store_true")
    arguments, sys.argv[1:] = parser.parse_known_args()
    return arguments


def bench_result(bench):
    out, _ = bench.communicate(timeout=60)
    assert bench.returncode == 0, "phimap bench failed: no other call was answered"
    return json.loads(out)


def generate_stubs(test, arguments):
    """Compiles phimap's protos for tests that have --protoc, --plugin and --proto_dir. The stubs are removed with the
    class `test`."""
    folder = tempfile.TemporaryDirectory()
    test.addClassCleanup(folder.cleanup)
    names = [f"phimap/v1/{name}.proto" for name in
             ("examples", "mapping", "mapping_service", "transform_service", "learning_service")]
    subprocess.run(
        [arguments.protoc, f"-I{arguments.proto_dir}", f"--python_out={folder.name}", f"--grpc_out={folder.name}",
         f"--plugin=protoc-gen-grpc={arguments.plugin}", *names], check=True)
    sys.path.insert(0, folder.name)
    for name in ("", ".v1"):
        importlib.import_module("phimap" + name)
    return importlib.import_module
