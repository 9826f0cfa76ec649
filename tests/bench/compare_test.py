"""Runs each scenario of bench/compare for a fraction of a second, and tests which rounds it counts."""

import argparse
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
COMPARE = SOURCE / "bench" / "compare"
PHIMAPD, BUILD = os.environ["PHIMAPD"], os.environ["BUILD"]


def load(path):
    sys.path.insert(0, str(path.parent))
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


class ScenariosTest(unittest.TestCase):
    def compare(self, *flags):
        """Returns the printed text, and the figures of the new server's only round."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [COMPARE, PHIMAPD, PHIMAPD, f"--build={BUILD}", "--rounds=1", "--seconds=0.2", f"--out={folder}/round", *flags],
                capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout, json.loads(pathlib.Path(f"{folder}/round.1.json").read_text())

    def test_calls_over_tls_stand_beside_the_echoes_of_grpc(self):
        printed, figures = self.compare("--landmarks=32", "--tls", "--echo", "--callers=4", "--connections=4")
        self.assertIn("1 of 1 rounds count", printed)
        for echo in ("callback", "generic"):
            self.assertRegex(printed, rf"over the {echo} echo's: p50 us \d")
        self.assertGreater(figures["p50 us"], 0)
        self.assertGreaterEqual(figures["rows a batch"], 1)
        self.assertGreater(figures["phase compute us"], 0)
        self.assertTrue(0 <= figures["machine idle %"] <= 100)

    def test_calls_of_several_rows_over_a_unix_socket(self):
        _, figures = self.compare("--landmarks=32", "--unix", "--echo", "--rows=8")
        self.assertGreaterEqual(figures["rows a batch"], 8)
        # There is no p99.9 because one caller makes fewer than 10,000 calls.
        self.assertIsNone(figures["p999 us"])

    def test_a_client_that_is_silent_between_its_calls(self):
        _, figures = self.compare("--landmarks=32", "--scenario=idle", "--calls=1")
        self.assertEqual(figures["calls"], 1)

    def test_calls_with_and_without_a_build_beside_them(self):
        _, figures = self.compare("--landmarks=32", "--scenario=build", "--build_landmarks=256")
        self.assertAlmostEqual(figures["p99 with/without"], figures["p99 us with"] / figures["p99 us without"])

    def test_bulk_beside_the_engine_alone(self):
        _, figures = self.compare("--landmarks=64", "--scenario=bulk", "--mapping=fourier", "--bulk_rows=5000")
        self.assertGreater(figures["rows/s"], 0)
        self.assertGreater(figures["engine us/row"], 0)
        self.assertGreater(figures["rows a batch"], 1)

    def test_what_cannot_be_compared_is_said(self):
        for flags, word in ((["--tls", "--unix"], "--unix"), (["--callers=3", "--connections=2"], "multiple"),
                            (["--scenario=bulk", "--echo"], "--echo"), (["/nonexistent"], "/nonexistent")):
            done = subprocess.run([COMPARE, PHIMAPD, f"--build={BUILD}", *flags], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(word, done.stderr.splitlines()[-1])


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.module = load(COMPARE)

    def test_rounds_count_in_which_the_callback_echo_was_within_a_quarter_of_its_best(self):
        rounds = {"callback echo": [{"p50 us": p50} for p50 in (125, 100, 126)]}
        arguments = argparse.Namespace(echo=True, rounds=3)
        self.assertEqual(self.module.kept_rounds(arguments, rounds), [0, 1])
        arguments.echo = False
        self.assertEqual(self.module.kept_rounds(arguments, {}), [0, 1, 2])

    def test_ratios_are_of_the_same_round_and_leave_out_what_one_of_both_lacks(self):
        rounds = {"new": [{"p": 10}, {"p": 30}, {"p": None}, {}], "old": [{"p": 20}, {"p": 10}, {"p": 1}, {"p": 1}]}
        self.assertEqual(self.module.ratios(rounds, "new", "old", "p"), [0.5, 3])

    def test_a_histograms_mean_is_of_what_came_between_two_scrapes(self):
        meters = self.module.Meters(None)
        meters.begin, meters.end = ({"h_sum": 10.0, "h_count": 4.0},), ({"h_sum": 16.0, "h_count": 6.0},)
        self.assertEqual(meters._mean("h"), 3)
        self.assertIsNone(meters._mean("absent"))
        meters.end = meters.begin
        self.assertIsNone(meters._mean("h"))


if __name__ == "__main__":
    unittest.main()
