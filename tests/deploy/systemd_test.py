"""Tests deploy/systemd. systemd must accept every line of the unit, and phimapd every setting of the file."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import programs

UNIT = pathlib.Path(__file__).resolve().parents[2] / "deploy/systemd/phimapd.service"
SETTINGS = UNIT.with_name("phimapd.toml")
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

    def test_it_reads_its_settings_and_the_time_to_stop_is_longer_than_the_drain(self):
        text = UNIT.read_text()
        self.assertIn("\nExecStart=/usr/local/bin/phimapd --config=/etc/phimap/phimapd.toml\n", text)
        self.assertIn("\nExecReload=/bin/kill -HUP $MAINPID\n", text)
        self.assertIn("--config", PHIMAPD.flags)
        stop = int(re.search(r"^TimeoutStopSec=(\d+)s$", text, re.M).group(1))
        self.assertGreaterEqual(stop, int(PHIMAPD.default("--drain_seconds")) + 5)


class SettingsTest(unittest.TestCase):
    def settings(self, text):
        """Returns the settings that come from a file with this text."""
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([os.environ["PHIMAPD"], f"--config={file.name}", "--print_config", "--json"],
                                  capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {setting["name"]: setting["value"] for setting in json.loads(done.stdout)["settings"]
                if setting["source"] == "file"}

    def test_they_are_in_the_folders_that_the_unit_makes(self):
        unit = UNIT.read_text()
        settings = self.settings(SETTINGS.read_text())
        self.assertEqual(set(settings), {"data_dir", "unix_listen"})
        for setting, folder in (("data_dir", "/var/lib/" + re.search(r"^StateDirectory=(.*)$", unit, re.M)[1]),
                                ("unix_listen", "/run/" + re.search(r"^RuntimeDirectory=(.*)$", unit, re.M)[1])):
            self.assertTrue(settings[setting].startswith(f"{folder}/"), settings[setting])

    def test_every_setting_in_a_comment_is_right(self):
        commented = re.findall(r"^# (\w+) = ", SETTINGS.read_text(), re.M)
        self.assertGreater(len(commented), 8)
        settings = self.settings(re.sub(r"^# (\w+ = )", r"\1", SETTINGS.read_text(), flags=re.M))
        self.assertEqual(set(settings), {"data_dir", "unix_listen", *commented})


if __name__ == "__main__":
    unittest.main()
