"""Tests on a project with one empty target that tools/build configures each build folder by its own preset."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(__file__).resolve().parents[2] / "tools/build"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(empty NONE)
add_custom_target(nothing ALL COMMAND ${CMAKE_COMMAND} -E touch made)
"""
PRESETS = """{"version": 3, "configurePresets": [
  {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build", "cacheVariables": {"KIND": "of release"}},
  {"name": "asan", "inherits": "release", "cacheVariables": {"KIND": "of asan"}}]}
"""


class BuildTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "tools").mkdir()
        shutil.copy(BUILD, self.root / "tools/build")
        (self.root / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
        (self.root / "CMakePresets.json").write_text(PRESETS, encoding="utf-8")

    def kind_of(self, folder, *arguments):
        subprocess.run([self.root / "tools/build", folder, *arguments], check=True, capture_output=True)
        self.assertTrue((self.root / folder / "made").exists())
        cache = (self.root / folder / "CMakeCache.txt").read_text(encoding="utf-8")
        return next(line.split("=")[1] for line in cache.splitlines() if line.startswith("KIND:"))

    def test_a_folder_is_configured_by_the_preset_that_it_is_named_after(self):
        self.assertEqual(self.kind_of("build"), "of release")
        self.assertEqual(self.kind_of("build-asan"), "of asan")
        self.assertEqual(self.kind_of(str(self.root / "elsewhere/build-asan")), "of asan")
        self.assertEqual(self.kind_of(str(self.root / "elsewhere/other")), "of release")

    def test_an_option_goes_before_the_preset(self):
        self.assertEqual(self.kind_of("build-asan", "-DKIND=given", "nothing"), "given")

    def test_a_preset_that_is_not_there_is_an_error(self):
        done = subprocess.run([self.root / "tools/build", "build-nonsense"], check=False, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nonsense", done.stderr)


if __name__ == "__main__":
    unittest.main()
