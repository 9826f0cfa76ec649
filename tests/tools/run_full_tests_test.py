"""Tests tools/run_full_tests. The tool is copied into a separate tree with scripts whose results are known."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


class RunFullTestsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name in ("tools", "tests/full", "build"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(SOURCE / "tools/run_full_tests", self.root / "tools")

    def script(self, name, body, mode=0o755):
        path = self.root / "tests/full" / name
        path.write_text("#!/bin/sh\n" + body + "\n")
        path.chmod(mode)

    def run_all(self, *names):
        return subprocess.run(
            [self.root / "tools/run_full_tests", "build", *names],
            cwd=self.root, capture_output=True, text=True, check=False)

    def test_passes_when_all_scripts_pass_and_hands_them_the_build_folder(self):
        self.script("one.sh", 'echo "given $1"')
        self.script("two.sh", "exit 0")
        done = self.run_all()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"given {self.root}/build\n", done.stdout)
        self.assertTrue(done.stdout.endswith("2 passed, 0 failed\n"), done.stdout)

    def test_one_failure_fails_the_run_but_not_the_scripts_after_it(self):
        self.script("a.sh", "exit 3")
        self.script("b.sh", 'echo "b ran"')
        done = self.run_all()
        self.assertEqual(done.returncode, 1)
        self.assertIn("b ran", done.stdout)
        self.assertRegex(done.stdout, r"  a +Failed \(exit status 3\)")
        self.assertRegex(done.stdout, r"  b +Passed")
        self.assertTrue(done.stdout.endswith("1 passed, 1 failed\n"), done.stdout)

    def test_what_is_not_executable_is_no_test(self):
        self.script("library.sh", "exit 1", mode=0o644)
        self.script("one.sh", "exit 0")
        done = self.run_all()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(done.stdout.endswith("1 passed, 0 failed\n"), done.stdout)

    def test_nothing_to_run_is_a_failure(self):
        self.assertEqual(self.run_all().returncode, 1)

    def test_a_name_selects_and_an_unknown_name_fails(self):
        self.script("one.sh", "exit 0")
        self.script("two.sh", "exit 1")
        self.assertEqual(self.run_all("one").returncode, 0)
        self.assertEqual(self.run_all("three").returncode, 1)


if __name__ == "__main__":
    unittest.main()
