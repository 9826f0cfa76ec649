"""Runs the examples of docs/api.md from the first to the last against one server, as a reader would, and compares what
they print with what the page says they do.

Commands follow "$ ", their output stands below them and "..." is for what differs each time. What Python prints stands
in the comment of the print."""

import contextlib
import doctest
import io
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import document
import inference_stubs
import server

SAME = doctest.OutputChecker()
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(block):
    """(command, what it prints) of each."""
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)


def printed_by(block):
    """What the comments of a block of Python say it prints."""
    return "".join(f"{said}\n" for said in re.findall(r"^ *print\(.*\)  +# (.*)$", block, re.M))


class ApiExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.addClassCleanup(cls.server.close)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "lab").symlink_to(document.SOURCE / "lab")
        inference_stubs.generate(cls.folder)
        home = os.getcwd()
        os.chdir(cls.folder)
        cls.addClassCleanup(lambda: os.chdir(home))
        os.environ["PHIMAP_SERVER"] = cls.server.address
        os.environ["PATH"] = f"{pathlib.Path(server.PHIMAP).parent}:{os.environ['PATH']}"

    def expect(self, said, printed, example):
        if not SAME.check_output(said, printed, LOOSELY):
            self.fail(f"{example}\ndocs/api.md says:\n{said}\nit prints:\n{printed}")

    def run_commands(self, block):
        for command, said in commands(block):
            done = subprocess.run(["/bin/bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            code = f"[exit code {done.returncode}]\n" if done.returncode else ""
            self.expect(said, done.stdout + code, command)

    def run_python(self, block, names):
        said = printed_by(block)
        self.assertEqual(said.count("\n"), len(re.findall(r"\bprint\(", block)), block)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.replace("127.0.0.1:7450", self.server.address), "docs/api.md", "exec"), names)
        self.expect(said, printed.getvalue(), block)

    def test_every_example_prints_what_the_page_says(self):
        ran = {"": 0, "python": 0}
        names = {}
        for language, block in document.blocks():
            ran[language] += 1
            if language == "python":
                self.run_python(block, names)
            else:
                self.assertEqual(block[:2], "$ ", "a block without a language holds commands")
                self.run_commands(block)
        names["channel"].close()
        names["client"].close()
        self.assertGreaterEqual(min(ran.values()), 10)

    def test_every_call_that_is_offered_has_an_example(self):
        for heading, text in document.sections().items():
            if re.search(r"^Role ", text, re.M) and "RPC_NOT_OFFERED" not in text:
                self.assertIn("```", text, f"{heading} has no example")

    def test_a_wrong_example_is_found(self):
        with self.assertRaises(self.failureException):
            self.run_commands("$ phimap --help\nanother program\n")
        with self.assertRaises(self.failureException):
            self.run_commands("$ phimap show nothing\n...\n[exit code 5]\n")
        with self.assertRaises(self.failureException):
            self.run_python("print(1 + 1)  # 3\n", {})
        with self.assertRaises(self.failureException):
            self.run_python("print(1 + 1)\n", {})


if __name__ == "__main__":
    unittest.main()
