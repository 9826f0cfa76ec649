"""Runs every block of README.md that a user could copy, from the first to the last, as a user would: in one shell, in the
folder of the file, with the programs in build/. What it prints is compared with what the page shows.

    build/python/venv/bin/python tests/docs/readme_test.py --update

writes what came out into the page, with … for what differs from run to run.

"…" in the page stands for anything in its line, and a line of it alone for any lines. A command that shows nothing below
it must succeed, whatever it prints.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from typing import NamedTuple

import document

# By hand, without ctest's environment: the programs of the folder build.
os.environ.setdefault("PHIMAPD", str(document.SOURCE / "build/server/phimapd"))
os.environ.setdefault("PHIMAP", str(document.SOURCE / "build/client/cli/phimap"))
sys.path.append(str(document.SOURCE / "tests/deploy"))
import server

README = document.SOURCE / "README.md"

# Blocks that this test does not run, by their first line, and why.
NOT_RUN = {
    "tools/demo     # builds phimap and does the whole job on real data: six minutes the first time, then two":
        "it builds everything; CI runs both commands",
    "Accuracy of a linear SVM (liblinear, C = 1), trained on 70 % of the rows, on the other 30 %;":
        "what tools/demo shows: minutes of work",
    "docker build -t phimap .":
        "it needs a Docker daemon; the full test makes and runs the image with buildah",
    "$ /usr/bin/python3 -m venv --system-site-packages venv":
        "the fixture python_venv installs the client by these words; held below",
}

# What differs from run to run, and from machine to machine: written as … by --update, in the width that it had.
ELIDED = [re.compile(expression, re.M) for expression in (
    r"^  (?:created|digest) +(\S.*)$",
    r"^  (?:residual|trace residual) +(\S+)",
    r"^  serving error +(\S+) / (\S+)",
    r"(\d{4}-\d\d-\d\d \d\d:\d\d.*)$",
    r"\(etag ([0-9a-f]+)\)$",
    r"^\S+@\S+ +\d+ +[\d-]+  ([0-9a-f]{12} .*)$",
)]


class Command(NamedTuple):
    text: str
    # Where its output stands in the page.
    begin: int
    end: int
    said: str


class Block(NamedTuple):
    language: str
    text: str
    begin: int


def blocks(page):
    return [Block(match[1], match[2], match.start(2))
            for match in re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)]


def commands(block):
    """Those after "$ ", with the lines that a backslash continues."""
    found = []
    for match in re.finditer(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", block.text, re.M):
        found.append(Command(match[1], block.begin + match.start(2), block.begin + match.end(2), match[2]))
    return found


def pattern_of(said):
    """A regular expression. Blanks beside … are part of it: a column may have another width."""
    return "".join(r"(?:.*\n)*?" if line.strip() == "…" else
                   ".*?".join(re.escape(part) for part in re.split(" *… *", line)) + r" *\n"
                   for line in said.splitlines())


def agrees(said, printed):
    return re.fullmatch(pattern_of(said), printed) is not None


def elided(printed):
    """As the page should show it."""
    for expression in ELIDED:
        for match in reversed(list(expression.finditer(printed))):
            text, shorter = match[0], 0
            for group in range(match.re.groups, 0, -1):
                begin, end = (place - match.start() for place in match.span(group))
                text = text[:begin] + "…" + text[end:]
                shorter += end - begin - 1
            # What follows in the line stays in its column.
            blanks = " " * shorter if printed[match.end():].startswith("  ") else ""
            printed = printed[:match.start()] + text + blanks + printed[match.end():]
    return printed


class Shell:
    """One bash that lives through all commands."""

    def __init__(self, folder):
        self._bash = subprocess.Popen(["/bin/bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def close(self):
        os.killpg(self._bash.pid, signal.SIGKILL)  # with the server that it started
        self._bash.stdin.close()
        self._bash.stdout.close()
        self._bash.wait()

    def run(self, text):
        """What the command prints, and its exit code. One that is put into the background: its first line."""
        background = text.split("#")[0].rstrip().endswith("&")
        self._bash.stdin.write(f"{text}\n" + ("" if background else 'echo "<exit $?>"\n'))
        self._bash.stdin.flush()
        if background:
            return self._bash.stdout.readline(), 0
        printed = ""
        for line in self._bash.stdout:
            code = re.search(r"<exit (\d+)>$", line)
            if code:
                return printed + line[:code.start()], int(code[1])
            printed += line
        raise AssertionError(f"the shell ended: {printed}")


class ReadmeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.other = server.Server()
        cls.addClassCleanup(cls.other.close)

    def checkout(self):
        """A folder that looks as a checkout after a build: but its phimapd takes free ports, as other tests run beside
        this one, and what is written to /tmp goes to another folder."""
        checkout = self.folder / "checkout"
        checkout.mkdir()
        for entry in document.SOURCE.iterdir():
            if entry.name not in ("build", ".git"):
                (checkout / entry.name).symlink_to(entry)
        for part, program in (("server", server.PHIMAPD), ("client/cli", server.PHIMAP)):
            (checkout / "build" / part).mkdir(parents=True)
            (checkout / "build" / part / pathlib.Path(program).name).symlink_to(program)
        phimapd = checkout / "build/server/phimapd"
        phimapd.unlink()
        phimapd.write_text(f'#!/bin/sh\nexec {server.PHIMAPD} "$@" --listen=127.0.0.1:0 --http=127.0.0.1:0\n')
        phimapd.chmod(0o755)
        (self.folder / "tmp").mkdir()
        return checkout

    def run_commands(self, shell, block):
        """[(command, what it printed)] for each that shows something."""
        ran = []
        for command in commands(block):
            text = command.text.replace("/tmp/", f"{self.folder}/tmp/").replace("OTHER", self.other.address)
            printed, code = shell.run(text)
            ready = re.fullmatch(r"phimapd ready: grpc=(\S+) http=(\S+)\n", printed)
            if ready:
                self.address = ready[1]
                shell.run(f"export PHIMAP_SERVER={self.address}")
                printed = printed.replace(ready[1], "127.0.0.1:7450").replace(ready[2], "127.0.0.1:7451")
            printed = printed.replace(f"{self.folder}/tmp/", "/tmp/")
            refused = command.said.startswith("phimap: ")
            self.assertEqual(code != 0, refused, f"{command.text}{printed}[exit code {code}]")
            if command.said:
                ran.append((command, printed))
        return ran

    def run_python(self, block):
        """[(block, what it printed)]; the model must live on after it."""
        after = "\nassert model.predict(X[:5]).shape == (5,)\n"
        done = subprocess.run([sys.executable, "-c", block.text + after], cwd=self.folder / "checkout",
                              env=os.environ | {"PHIMAP_SERVER": self.address}, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, f"{block.text}\n{done.stderr}")
        said = "".join(f"{line}\n" for line in re.findall(r"^ *print\(.*\)  +# (.*)$", block.text, re.M))
        self.assertTrue(said, "an example shows what it prints")
        self.assertTrue(agrees(said, done.stdout), f"{block.text}\nit prints:\n{done.stdout}")

    def run_page(self, page):
        """[(command, what it printed)] of the whole page. Each block is run, or listed as one that is not."""
        shell = Shell(self.checkout())
        self.addCleanup(shell.close)
        ran, not_run = [], []
        for block in blocks(page):
            first = block.text.splitlines()[0]
            if first in NOT_RUN:
                not_run.append(first)
            elif block.language == "python":
                self.run_python(block)
            else:
                self.assertTrue(first.startswith("$ "), f"neither run nor listed as not run: {first}")
                ran += self.run_commands(shell, block)
        self.assertEqual(sorted(not_run), sorted(NOT_RUN), "a block is listed that the page does not have")
        return ran

    def test_every_block_runs_and_prints_what_the_page_shows(self):
        ran = self.run_page(README.read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(ran), 10)
        for command, printed in ran:
            with self.subTest(command.text):
                if not agrees(command.said, printed):
                    self.fail(f"README.md shows:\n{command.said}\nit prints:\n{printed}\n"
                              "readme_test.py --update writes it down")

    def update(self):
        """Not a test: what came out, into the page."""
        page = README.read_text(encoding="utf-8")
        for command, printed in reversed(self.run_page(page)):
            if not agrees(command.said, printed):
                page = page[:command.begin] + elided(printed) + page[command.end:]
        README.write_text(page, encoding="utf-8")

    def test_the_client_is_installed_as_the_page_says(self):
        [block] = [block for block in blocks(README.read_text(encoding="utf-8")) if "pip install" in block.text]
        [make, install] = [command.text.split() for command in commands(block)]
        fixture = (document.SOURCE / "tests/client/python/make_venv").read_text(encoding="utf-8")
        self.assertIn("-m venv", " ".join(make))
        for flag in [word for word in make + install if word.startswith("--")]:
            self.assertIn(flag, fixture)
        self.assertTrue((document.SOURCE / install[-1] / "setup.py").exists())

    def test_the_sections_of_balcan_blum_vempala_are_the_papers(self):
        """Two simple mappings, F1 and F2, are its section 3; an improved one, F3 by Theorem 2, its section 4."""
        page = README.read_text(encoding="utf-8")
        for idea, paper in (("F1, ", r"section 3"), ("F2, ", r"section 3"), ("F3, ", r"section 4"),
                            ("Johnson–Lindenstrauss alone", r"section 4")):
            self.assertTrue(re.search(rf"(?m)^\| {idea}[^|]*\|[^|]*\b{paper}\b", page), f"{idea}: {paper}")

    def test_the_comparison_sees_what_differs(self):
        for said, printed in (("a … c\n", "a b c\n"), ("a\n…\nd\n", "a\nb\nc\nd\n"), ("…\n", ""), ("a …\n", "a \n"),
                              ("x  … / … y\n", "x  1 / 2 y\n"), ("a.b\n", "a.b\n")):
            self.assertTrue(agrees(said, printed), (said, printed))
        for said, printed in (("a … c\n", "a b d\n"), ("a … c\n", "a b\nc\n"), ("a\n", "a\nb\n"), ("a\n", ""),
                              ("a\n…\nd\n", "a\nb\nc\n"), ("a.b\n", "acb\n"), ("12 rows\n", "13 rows\n")):
            self.assertFalse(agrees(said, printed), (said, printed))
        shown = ("letters@1\n  created           2026-11-22 03:56:04 UTC\n"
                 "  residual          1.73e-18              largest that was dropped\n"
                 "  serving error     2.9e-07 / 1e-06       mean / max of\n"
                 "letters@prod        1       2  0123456789ab  2026-11-22 03:56  89ab  \nx is version 1  (etag 89ab)\n")
        self.assertEqual(elided(shown), "letters@1\n  created           …\n"
                         "  residual          …                     largest that was dropped\n"
                         "  serving error     … / …                 mean / max of\n"
                         "letters@prod        1       2  …\nx is version 1  (etag …)\n")
        self.assertTrue(agrees(elided(shown), shown))


if __name__ == "__main__":
    if "--update" in sys.argv:
        sys.argv.remove("--update")
        suite = unittest.TestSuite([ReadmeTest("update")])
        sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
    unittest.main()
