"""Tests tools/run_tests on folders of tests that pass, fail, fail once, crash and do not end."""

import pathlib
import subprocess
import tempfile
import unittest

RUN_TESTS = pathlib.Path(__file__).parents[2] / "tools/run_tests"
ONCE = "test -e {name}.ran || {{ touch {name}.ran; {fault}; }}"


class RunTestsTest(unittest.TestCase):
    def run_tests(self, extra="", **commands):
        """Returns the exit code and the last line for tests of these names, which run these commands of a shell."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "CTestTestfile.cmake").write_text("".join(
                f'add_test({test} sh -c "{command}")\nset_tests_properties({test} PROPERTIES TIMEOUT 1 SKIP_RETURN_CODE 77)\n'
                for test, command in commands.items()) + extra)
            done = subprocess.run([RUN_TESTS, folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout.splitlines()[-1]

    @staticmethod
    def once(**faults):
        return {name: ONCE.format(name=name, fault=fault) for name, fault in faults.items()}

    def test_what_passes_and_what_fails_is_counted(self):
        self.assertEqual(self.run_tests(one="true", two="true"), (0, "2 passed, 0 failed"))
        self.assertEqual(self.run_tests(one="true", two="false"), (8, "1 passed, 1 failed (failed at first: two)"))

    def test_a_few_that_fail_at_first_run_again_and_are_named(self):
        self.assertEqual(self.run_tests(one="true", **self.once(two="exit 1")), (0, "2 passed, 0 failed (failed at first: two)"))
        self.assertEqual(self.run_tests(one="false", **self.once(two="exit 1")), (8, "1 passed, 1 failed (failed at first: one two)"))

    def test_what_a_test_needs_runs_again_with_it_and_counts_once(self):
        needs = "set_tests_properties(one PROPERTIES FIXTURES_SETUP f)\nset_tests_properties(two PROPERTIES FIXTURES_REQUIRED f)\n"
        self.assertEqual(self.run_tests(needs, one="true", **self.once(two="exit 1")), (0, "2 passed, 0 failed (failed at first: two)"))
        self.assertEqual(self.run_tests(needs, one="true", two="false"), (8, "1 passed, 1 failed (failed at first: two)"))

    def test_what_is_skipped_has_neither_passed_nor_failed(self):
        self.assertEqual(self.run_tests(one="true", two="exit 77"), (0, "1 passed, 0 failed"))

    def test_many_failures_crashes_hangs_and_reports_of_sanitizers_are_not_tried_again(self):
        four = self.once(one="exit 1", two="exit 1", three="exit 1", four="exit 1")
        self.assertEqual(self.run_tests(**four), (8, "0 passed, 4 failed"))
        for fault in ("kill -SEGV $$", "sleep 9", "echo ERROR: AddressSanitizer: heap-use-after-free; exit 1",
                      "echo WARNING: ThreadSanitizer: data race; exit 66", "echo a.cc:1:2: runtime error: overflow; exit 1"):
            self.assertEqual(self.run_tests(one="true", **self.once(two=fault)), (8, "1 passed, 1 failed"), fault)


if __name__ == "__main__":
    unittest.main()
