"""Tests tools/build and tools/build_times. Both tools are copied into a separate tree with a project of three files."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
add_library(quick STATIC quick.cc)
add_library(slow STATIC slow.cc slower.cc)
"""
# This source takes some tenths of a second to compile.
SLOW = "template <int n> struct Sum { static constexpr int value = Sum<n - 1>::value + n; };\n" \
       "template <> struct Sum<0> { static constexpr int value = 0; };\n" + \
       "".join(f"int f{i}() {{ return Sum<{i}>::value; }}\n" for i in range(800))


class BuildTimesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        (self.root / "tools").mkdir()
        for name in ("build", "build_times"):
            shutil.copy(SOURCE / "tools" / name, self.root / "tools")
        shutil.copy(SOURCE / "CMakePresets.json", self.root)
        (self.root / "CMakeLists.txt").write_text(PROJECT)
        (self.root / "quick.cc").write_text("int quick() { return 1; }\n")
        (self.root / "slow.cc").write_text("int slow() { return 1; }\n")
        (self.root / "slower.cc").write_text(SLOW)

    def run_tool(self, name, *arguments):
        return subprocess.run([self.root / "tools" / name, *arguments], cwd=self.root, capture_output=True, text=True,
                              check=False)

    def build(self, *targets):
        done = self.run_tool("build", "build", *targets)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def times(self):
        """Returns the wall and CPU seconds, the number of steps, and the names of the slowest steps."""
        done = self.run_tool("build_times")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, *rest = done.stdout.splitlines()
        total = re.fullmatch(r"(\d+) s wall, (\d+) s CPU, (\d+) steps", first)
        self.assertIsNotNone(total, done.stdout)
        return [int(number) for number in total.groups()], [line.split()[2] for line in rest]

    def test_counts_the_steps_of_a_build_and_puts_the_slowest_first(self):
        self.build()
        (_, _, steps), slowest = self.times()
        self.assertEqual(steps, 5)  # three objects, two libraries
        self.assertEqual(slowest[0], "slow.dir/slower.cc.o")
        self.assertEqual(len(slowest), 5)

    def test_tells_of_the_last_build_alone(self):
        self.build()
        (self.root / "quick.cc").write_text("int quick() { return 2; }\n")
        self.build()
        (_, _, steps), slowest = self.times()
        self.assertEqual(steps, 2)
        self.assertEqual(sorted(slowest), ["libquick.a", "quick.dir/quick.cc.o"])

    def test_steps_that_begin_and_end_together_are_two_and_outputs_of_one_command_are_one(self):
        self.build()
        log = self.root / "build/build_times.log"
        log.write_text("1.0 1.5 0.5\n0\t900\t7\ta.o\taa\n0\t900\t7\tb.o\tbb\n900\t999\t8\tc.h\tcc\n900\t999\t8\tc.cc\tcc\n")
        (wall, cpu, steps), slowest = self.times()
        self.assertEqual((wall, cpu, steps), (1, 2, 3))
        self.assertEqual(sorted(slowest), ["a.o", "b.o", "c.h"])

    def test_a_build_with_nothing_to_do_leaves_the_times_of_the_one_before(self):
        self.build("quick")
        before = self.times()
        self.build("quick")
        self.assertEqual(self.times(), before)

    def test_a_failed_build_fails(self):
        (self.root / "quick.cc").write_text("int quick() { return nothing; }\n")
        self.assertNotEqual(self.run_tool("build", "build").returncode, 0)
        (self.root / "quick.cc").write_text("int quick() { return 1; }\n")
        self.build()

    def test_without_a_build_it_says_what_to_run(self):
        done = self.run_tool("build_times")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tools/build writes it", done.stderr)


if __name__ == "__main__":
    unittest.main()
