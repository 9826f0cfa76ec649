"""Tests deploy/systemd/phimapd.service. systemd must accept every line, the service must be confined, and phimapd
must have the flags."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import programs

UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy/systemd/phimapd.service"
PHIMAPD = programs.Phimapd(os.environ["PHIMAPD"])


def verify(text):
    """Returns systemd's complaints about the unit. For this, the program in it is replaced by one that exists on this
    machine."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "phimapd.service"
        path.write_text(text.replace("/usr/local/bin/phimapd", "/bin/true"))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
        return [line for line in (done.stdout + done.stderr).splitlines() if "phimapd.service" in line]


class UnitTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_systemd_takes_every_line_and_no_misspelled_one(self):
        text = UNIT.read_text()
        self.assertEqual(verify(text), [])
        self.assertTrue(verify(text.replace("ProtectSystem=", "ProtectSytem=")))

    def test_flags_are_phimapds_and_the_time_to_stop_is_longer_than_the_drain(self):
        text = UNIT.read_text()
        flags = re.findall(r"(?<![\w-])--[a-z_]+", text)
        self.assertGreaterEqual(len(flags), 3)
        for flag in flags:
            self.assertIn(flag, PHIMAPD.flags)
        stop = int(re.search(r"^TimeoutStopSec=(\d+)s$", text, re.M).group(1))
        self.assertGreaterEqual(stop, int(PHIMAPD.default("--drain_seconds")) + 5)


if __name__ == "__main__":
    unittest.main()
