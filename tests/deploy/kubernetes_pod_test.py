"""Runs two pods of deploy/kubernetes as processes on a real PostgreSQL. The Secrets are those that the commands of
docs/operations/kubernetes.md make, and are replaced by its commands too. Each process has the command, the flags, the
environment and the mounted files of the manifest, and is asked by its probes; clients come over TLS and with tokens."""

import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import manifests
import pod

sys.path.append(str(manifests.SOURCE / "tests/e2e"))
import postgres  # pylint: disable=wrong-import-position
import yaml

PHIMAP = os.environ["PHIMAP"]
SERVICE = "phimap.phimap.svc"
DATABASE_PASSWORD = "of-the-database"
SECONDS = 20

# Takes the place of kubectl with a cluster: it keeps the objects that the page's commands make in the file $CLUSTER.
KUBECTL = """#!/bin/bash
set -eo pipefail
keep() { cat >>"$CLUSTER"; echo --- >>"$CLUSTER"; }
case "$*" in
  "create secret "*--dry-run=client*) exec @KUBECTL@ "$@" ;;
  "create secret "*) @KUBECTL@ "$@" --dry-run=client --output=yaml | keep ;;
  "apply --filename=-") keep ;;
  "apply --kustomize="*) @KUBECTL@ kustomize "${2#*=}" >/dev/null ;;
  "create namespace "* | "label namespace "*) ;;
  *) echo "kubectl $*: this test does not know it" >&2; exit 1 ;;
esac
"""


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_authority(folder, name):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")


def make_certificate(folder, authority, name, hosts):
    """Writes NAME.crt and NAME.key, which are valid for some hosts."""
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", f"/CN={hosts[0]}", "-CA", f"{authority}.crt", "-CAkey", f"{authority}.key",
            "-addext", "subjectAltName=" + ",".join(f"DNS:{host}" for host in hosts),
            "-keyout", f"{name}.key", "-out", f"{name}.crt")


class Cluster:
    """The files of an operator, and the Secrets that the page's commands make of them."""

    def __init__(self, folder):
        self.folder = folder
        self._programs = folder / "bin"
        self._programs.mkdir()
        (self._programs / "kubectl").write_text(KUBECTL.replace("@KUBECTL@", shutil.which("kubectl")))
        (self._programs / "kubectl").chmod(0o755)
        (folder / "deploy").symlink_to(manifests.SOURCE / "deploy")
        make_authority(folder, "clients-ca")
        make_authority(folder, "ca")  # of the database
        make_certificate(folder, "ca", "postgresql", ["postgresql"])
        make_certificate(folder, "clients-ca", "tls", manifests.CERTIFICATE["spec"]["dnsNames"])

    def run_block(self, heading, after=""):
        """Runs the block of the page below a heading, and returns what `after` prints."""
        block = re.sub(r"^\$ ", "", manifests.block_of_the_page(heading), flags=re.M)
        path = f"{self._programs}:{os.environ['PATH']}"
        done = subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", f"{block}\n{after}"], cwd=self.folder, text=True,
                              capture_output=True, check=False,
                              env=os.environ | {"PATH": path, "CLUSTER": str(self.folder / "objects.yaml"),
                                                "PASSWORD": DATABASE_PASSWORD})
        if done.returncode != 0:
            raise AssertionError(f"{block}\n{done.stderr}")
        return done.stdout

    def make_token(self):
        """Makes the files of the page's first block. Returns the token whose digest is in the file `tokens`."""
        return self.run_block("Files", 'printf %s "$TOKEN"')

    def secrets(self):
        """Returns {name: {key: bytes}}; of several Secrets of a name, the last one."""
        found = {}
        for thing in yaml.safe_load_all((self.folder / "objects.yaml").read_text()):
            if thing:
                assert (thing["kind"], thing["metadata"]["namespace"]) == ("Secret", "phimap"), thing
                found[thing["metadata"]["name"]] = pod.data_of(thing)
        return found


class Caller:
    """A client of a pod that calls it by its Service's name and knows the authority of its certificate."""

    def __init__(self, ports, authority, token=""):
        self._ports = ports
        self._authority = authority
        self._token = token

    def phimap(self, *arguments):
        """Runs the command `phimap`. Returns whether it succeeds, and its output."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PHIMAP")}
        done = subprocess.run(
            [PHIMAP, f"--server=127.0.0.1:{self._ports['grpc']}", f"--tls_ca={self._authority}",
             f"--tls_server_name={SERVICE}", *arguments], capture_output=True, text=True, check=False,
            env=environment | {"PHIMAP_TOKEN": self._token} if self._token else environment)
        return done.returncode == 0, done.stdout + done.stderr

    def must(self, *arguments):
        done, said = self.phimap(*arguments)
        if not done:
            raise AssertionError(f"phimap {arguments}: {said}")
        return said

    def get(self, path, host=SERVICE):
        """Asks the API over HTTP. Returns the status and the body."""
        connection = http.client.HTTPSConnection(host, self._ports["api-http"], timeout=SECONDS)
        plain = socket.create_connection(("127.0.0.1", self._ports["api-http"]), SECONDS)
        context = ssl.create_default_context(cafile=self._authority)
        connection.sock = context.wrap_socket(plain, server_hostname=SERVICE)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"} if self._token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def certificate(self):
        """Returns the TLS certificate that new connections get, as PEM."""
        return ssl.get_server_certificate(("127.0.0.1", self._ports["grpc"]))


class PodTest(unittest.TestCase):
    # tests/full/container runs these tests in containers.
    make_pod = pod.Pod

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        # The pods' user enters it.
        cls.folder.chmod(0o755)
        (cls.folder / "operator").mkdir()
        cls.cluster = Cluster(cls.folder / "operator")
        cls.token = cls.cluster.make_token()
        cls.cluster.run_block("Apply")
        cls.database = cls.enterClassContext(postgres.Postgres())
        cls.database.require_tls_and_password(cls.cluster.folder / "postgresql.crt", cls.cluster.folder / "postgresql.key",
                                              "phimap", DATABASE_PASSWORD)

    def start(self, name):
        folder = self.folder / name
        folder.mkdir()
        started = self.make_pod(folder, self.cluster.secrets(), self.database.port)
        self.addCleanup(started.close)
        started.wait_until_started()
        return started

    def caller(self, of, token=""):
        return Caller(of.ports, self.cluster.folder / "clients-ca.crt", token)

    def build(self, caller):
        rows = self.folder / "rows.csv"
        rows.write_text("a,b\n" + "".join(f"{i % 17},{i % 5}\n" for i in range(200)))
        caller.must("build", "letters", f"--input={rows}", "--spec=f1(landmarks=20)", "--kernel=rbf(gamma=0.1)")
        return rows

    def until(self, condition, what):
        deadline = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def test_pods_build_and_transform_for_who_has_a_token_and_end_when_they_are_told(self):
        first = self.start("first")
        for probe in ("readinessProbe", "livenessProbe"):
            self.assertTrue(first.probe(probe), probe)
        builder = self.caller(first, self.token)
        rows = self.build(builder)

        second = self.start("second")
        features = []
        for one in (first, second):
            output = self.folder / "features.csv"
            self.caller(one, self.token).must("transform", "letters", f"--input={rows}", f"--output={output}")
            features.append(output.read_bytes())
        self.assertEqual(features[0].count(b"\n"), 201)
        self.assertEqual(*features)

        for token, words, refusal in (("", ["list"], "requires a token"), ("x" * 64, ["list"], "does not know the token"),
                                      (self.token, ["alias", "set", "letters@prod", "1", "--etag=none"], "needs the role admin")):
            done, said = self.caller(first, token).phimap(*words)
            self.assertFalse(done)
            self.assertIn(refusal, said)

        for host in (SERVICE, f"{SERVICE}.cluster.local"):
            status, body = builder.get("/v1/mappings", host)
            self.assertEqual(status, 200, body)
            self.assertEqual([one["name"] for one in json.loads(body)["mappings"]], ["letters"])
        self.assertEqual(self.caller(first).get("/v1/mappings")[0], 401)
        self.assertEqual(builder.get("/v1/mappings", "features.example.com")[0], 421)

        for one in (first, second):
            self.assertEqual(one.stop(), 0)
            log = one.log()
            self.assertEqual(log[-1]["event"], "stopped")
            # PostgreSQL is a single one here.
            warnings = {line["event"] for line in log if line["level"] in ("WARNING", "ERROR")}
            self.assertEqual(warnings - {"call_refused"}, {"no_synchronous_standby"})

    def test_changed_secrets_are_in_force_without_a_restart(self):
        running = self.start("only")
        before = running.pid()
        old = self.caller(running, self.token)
        old.must("list")
        certificate = old.certificate()
        self.assertEqual(certificate.strip(), (self.cluster.folder / "tls.crt").read_text().strip())

        new_token = self.cluster.make_token()
        self.assertNotEqual(new_token, self.token)
        type(self).token = new_token  # other tests find these files too
        make_certificate(self.cluster.folder, "clients-ca", "tls", manifests.CERTIFICATE["spec"]["dnsNames"])
        self.cluster.run_block("Rotate")
        for name in ("phimap-tls", "phimap-tokens"):
            running.update_secret(name, self.cluster.secrets()[name])
        self.until(lambda: old.certificate() != certificate, "the certificate is still the old one")
        self.assertEqual(old.certificate().strip(), (self.cluster.folder / "tls.crt").read_text().strip())
        new = self.caller(running, new_token)
        self.until(lambda: new.phimap("list")[0], "the new token is refused")
        done, said = old.phimap("list")
        self.assertFalse(done, "the old token is not refused")
        self.assertIn("does not know the token", said)
        self.assertEqual(running.pid(), before)


if __name__ == "__main__":
    unittest.main()
