"""Tests the image under `buildah run` with chroot isolation, which needs neither a daemon nor a container runtime.

A chroot shares the machine's network, processes and cgroups and leaves the root writable, so this test checks only a
part of what the image promises: its files suffice to run both programs, its user is not root, and SIGTERM makes the
server drain. runtime_test.py checks the rest.
"""

import os
import pathlib
import signal
import subprocess
import unittest

import session

BUILDAH = ["buildah", "--root", str(session.BUILD / "image/storage"), "--runroot", str(session.BUILD / "image/run")]


class Container:
    """A working container of the image, which is removed at the end of the test."""

    def __init__(self, test):
        self.name = session.run([*BUILDAH, "from", session.IMAGE]).strip()
        test.addCleanup(session.run, [*BUILDAH, "rm", self.name])

    def command(self, arguments):
        return [*BUILDAH, "run", "--isolation", "chroot", self.name, "--", *arguments]


def descendants(pid):
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):  # any thread may have started the child
        for child in children.read_text().split():
            yield int(child)
            yield from descendants(child)


def is_phimapd(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text() == "phimapd\n"


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def end(process):
    """Ends `buildah run` and its descendants, because they would not end with it."""
    if process.poll() is None:
        for pid in [*descendants(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)
    process.communicate()


class ChrootTest(unittest.TestCase):
    def test_serves_a_build_and_a_transform_as_its_user_and_drains(self):
        # Each run has its own container. Two runs in the same container would share its mounts, and the run that
        # ended first would remove them.
        server = Container(self)
        client = Container(self)
        process = subprocess.Popen(
            server.command(["phimapd", "--data_dir=/data", "--listen=127.0.0.1:0", "--http=none"]),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=session.ENVIRONMENT)
        self.addCleanup(end, process)
        address = session.ready_address(process.stdout)
        [pid] = filter(is_phimapd, descendants(process.pid))
        self.assertEqual(status_of(pid)["Uid"].split(), ["7450"] * 4)
        self.assertEqual(status_of(pid)["Gid"].split(), ["7450"] * 4)
        self.assertEqual(int(status_of(pid)["CapEff"], 16), 0)

        def phimap(arguments, **kwargs):
            return session.run(client.command(["phimap", f"--server={address}", *arguments]), **kwargs)

        self.assertEqual(phimap(["health"]), "serving\n")
        self.assertEqual(session.build_and_transform(phimap), session.expected())

        os.kill(pid, signal.SIGTERM)  # buildah does not forward signals
        _, log = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, log)
        self.assertIn("draining signal=15", log)
        self.assertIn("stopped", log)


if __name__ == "__main__":
    unittest.main()
