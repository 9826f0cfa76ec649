"""Tests the committed files of the laboratory: the results of a full run, their figures, and docs/lab.md.

    lab_report_test.py PHIMAP_LAB
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))
RESULTS = ROOT / "lab/results"
PROGRAM = sys.argv.pop()

from draw import captions_of, figures_of  # noqa: E402
from report import order, report  # noqa: E402


class LabReportTest(unittest.TestCase):
    def test_the_report_is_what_the_results_say(self):
        self.assertEqual((ROOT / "docs/lab.md").read_text(encoding="utf-8"), report(RESULTS, ROOT / "docs/lab.md"))

    def test_results_are_those_of_a_full_run_of_every_experiment_and_of_no_other(self):
        build = pathlib.Path(PROGRAM).parents[1]
        names = subprocess.run([ROOT / "lab/run", "--list", f"--build={build}"], check=True, capture_output=True,
                               text=True).stdout.split()
        self.assertEqual([e.about["name"] for e in order(RESULTS)], names)
        self.assertEqual({path.name for path in RESULTS.iterdir() if path.is_dir()}, set(names))
        self.assertEqual({e.about["run"] for e in order(RESULTS)}, {"full"})

    def test_every_verdict_is_as_expected(self):
        for experiment in order(RESULTS):
            for verdict in experiment.verdicts:
                with self.subTest(experiment=experiment.about["name"], claim=verdict["claim"]):
                    self.assertEqual(verdict["agrees"], "no" if verdict["why_not"] else "yes")

    def test_every_figure_is_drawn_described_and_shown(self):
        page = (ROOT / "docs/lab.md").read_text(encoding="utf-8")
        for experiment in order(RESULTS):
            name = experiment.about["name"]
            with self.subTest(name):
                drawn = {path.stem for path in (RESULTS / name).glob("*.svg")}
                self.assertEqual(drawn, set(figures_of(name)))
                self.assertEqual(drawn, set(captions_of(name)))
                for figure in drawn:
                    self.assertIn(f"lab/results/{name}/{figure}.svg)", page)

    def test_links_of_the_page_lead_somewhere(self):
        page = (ROOT / "docs/lab.md").read_text(encoding="utf-8")
        places = re.findall(r'<a id="(\w+)"></a>', page)
        links = re.findall(r"\]\(#([^)]*)\)", page)
        self.assertEqual(links, places)
        self.assertGreater(len(links), 10)


if __name__ == "__main__":
    unittest.main()
