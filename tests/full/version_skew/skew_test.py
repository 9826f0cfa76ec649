"""Clients and servers of 0.1 and of this version, each with each.

    skew_test.py OLD_BUILD BUILD
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

OLD, NEW = map(pathlib.Path, sys.argv[1:3])
SOURCE = pathlib.Path(__file__).resolve().parents[3]
INPUT = (f"--input={SOURCE}/lab/data/letter.csv", "--label=label")


class Server:
    def __init__(self, build, folder):
        self.process = subprocess.Popen([build / "server/phimapd", f"--data_dir={folder}", "--listen=127.0.0.1:0", "--http=none", "--log_level=error"],
                                        stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"grpc=(\S+)", self.process.stdout.readline())[1]

    def kill(self):
        self.process.kill()
        self.stop()

    def stop(self):
        self.process.terminate()
        self.process.stdout.close()
        return self.process.wait(60)


class SkewTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, build, store="store"):
        server = Server(build, self.folder / store)
        self.addCleanup(lambda: server.process.poll() is None and server.kill())
        return server

    def ask(self, build, server, *words):
        """Runs the command `phimap` of a build against a server."""
        return subprocess.run([build / "client/cli/phimap", *words], env={**os.environ, "PHIMAP_SERVER": server.address},
                              capture_output=True, text=True, timeout=300, check=False)

    def must(self, build, server, *words):
        done = self.ask(build, server, *words)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def refused(self, build, server, code, message, *words):
        done = self.ask(build, server, *words)
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        self.assertIn(message, done.stderr, words)

    def features(self, build, server, reference):
        path = self.folder / "features.npy"
        self.must(build, server, "transform", reference, *INPUT, f"--output={path}")
        content = path.read_bytes()
        path.unlink()
        return content

    def build_by_old(self, server):
        self.must(OLD, server, "build", "letters", *INPUT, "--mapping=f2(landmarks=50)", "--kernel=rbf(gamma=0.1)")

    def test_the_programs_are_of_different_versions(self):
        said = subprocess.run([OLD / "server/phimapd", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn("0.1.0", said)
        help_of = [subprocess.run([build / "client/cli/phimap", "help"], capture_output=True, text=True, check=True).stdout for build in (OLD, NEW)]
        self.assertNotIn(" predict ", help_of[0])
        self.assertIn(" predict ", help_of[1])

    def test_a_client_of_this_version_at_a_server_of_0_1(self):
        server = self.start(OLD)
        self.build_by_old(server)
        self.must(OLD, server, "alias", "set", "letters@prod", "1")
        self.assertEqual(self.must(NEW, server, "health"), "serving\n")
        self.assertIn("prod=1", self.must(NEW, server, "list"))
        self.assertIn("f2(landmarks=50", self.must(NEW, server, "show", "letters@prod"))
        self.assertIn("bit for bit", self.must(NEW, server, "verify", "letters"))
        self.assertEqual(self.features(NEW, server, "letters"), self.features(OLD, server, "letters"))
        self.must(NEW, server, "bench", "letters", "--seconds=0.2", "--rows=1")
        artifact = self.folder / "letters.phimap"
        self.must(NEW, server, "export", "letters", f"--output={artifact}")
        self.must(NEW, server, "import", str(artifact), "--name=copy")
        self.assertEqual(self.features(NEW, server, "copy"), self.features(NEW, server, "letters"))
        self.must(NEW, server, "alias", "delete", "letters@prod")
        self.must(NEW, server, "delete", "copy", "--all-versions")
        # What it asks in fields and services that 0.1 does not have is refused, and nothing is changed.
        self.refused(NEW, server, 2, "kind: expected one of the kinds", "build", "letters", *INPUT, "--spec=f2(landmarks=50)", "--kernel=rbf(gamma=0.1)")
        self.refused(NEW, server, 2, "mapping: expected", "alias", "set", "letters@prod", "1")
        self.refused(NEW, server, 2, "mapping: expected", "delete", "letters@1")
        for words in (("predict", "letters"), ("train", "letters", "--learner=ridge()"), ("evaluate", "letters")):
            self.refused(NEW, server, 5, "this server has no service", *words, *INPUT)
        self.refused(NEW, server, 5, "this server has no method", "audit")
        self.assertRegex(self.must(NEW, server, "list"), r"letters +1 +1 ")
        self.assertEqual(server.stop(), 0)

    def test_a_client_of_0_1_at_a_server_of_this_version(self):
        server = self.start(NEW)
        self.build_by_old(server)
        self.assertEqual(self.features(OLD, server, "letters"), self.features(NEW, server, "letters"))
        self.must(OLD, server, "list")
        self.must(OLD, server, "verify", "letters")
        artifact = self.folder / "letters.phimap"
        self.must(OLD, server, "export", "letters", f"--output={artifact}")
        self.must(OLD, server, "import", str(artifact), "--name=copy")
        self.refused(OLD, server, 2, "API 0.2 has no field", "alias", "set", "letters@prod", "1")
        self.refused(OLD, server, 2, "API 0.2 has no field", "delete", "letters@1")
        self.assertEqual(server.stop(), 0)

    def test_a_store_of_0_1_opens_here_with_the_same_bits(self):
        server = self.start(OLD)
        self.build_by_old(server)
        before = self.features(OLD, server, "letters")
        self.assertEqual(server.stop(), 0)
        server = self.start(NEW)
        self.assertEqual(self.features(NEW, server, "letters"), before)
        self.must(NEW, server, "alias", "set", "letters@prod", "1")
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
