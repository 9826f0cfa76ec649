"""Tests the man pages and completions that are installed: they are made from the programs, have every command and flag, and
man and the shell accept them."""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import unittest

MADE = pathlib.Path(os.environ["BUILD"]) / "manuals"
PAGES = {"phimap.1.gz": os.environ["PHIMAP"], "phimapd.8.gz": os.environ["PHIMAPD"]}


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def commands_of(text):
    listed = re.search(r"^Subcommands:\n((?:  .*\n)*)", text, re.M)
    return re.findall(r"^  ([a-z]\S*)", listed[1], re.M) if listed else []


def all_commands(program, command=()):
    """Yields each command of the program as a tuple of words, the empty one for the program itself."""
    yield command
    for word in commands_of(help_of(program, *command)):
        yield from all_commands(program, (*command, word))


def shown(page):
    """Returns the page as man shows it on a wide terminal, with what man has to say against it."""
    done = subprocess.run(["man", "--warnings", "--local-file", MADE / page], capture_output=True, text=True, check=True,
                          env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8"})
    return done.stdout, done.stderr


class ManPageTest(unittest.TestCase):
    def test_each_command_is_a_section_and_each_flag_is_there(self):
        for page, program in PAGES.items():
            text = gzip.decompress((MADE / page).read_bytes()).decode().replace("\\-", "-")
            commands = list(all_commands(program))
            if page == "phimapd.8.gz":
                commands += all_commands(program, ("admin",))
            self.assertGreater(len(commands), 4)
            for command in commands:
                # The part of the page from the heading of the command to that of the next one.
                title = " ".join((pathlib.Path(program).name, *command))
                start = f'.SH "{title.upper()}"\n' if command else ".SH NAME\n"
                self.assertIn(start, text)
                part = re.split(r'^\.SH "', text.partition(start)[2], maxsplit=1, flags=re.M)[0]
                for flag in re.findall(r"^  (-\S+)", help_of(program, *command), re.M):
                    self.assertIn(f"\n.B {flag}", part, title)

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_shows_the_pages_without_complaint(self):
        for page in PAGES:
            text, complaints = shown(page)
            self.assertEqual(complaints, "")
            self.assertIn("EXIT CODES", text)

    def test_bash_completes_a_command_and_a_flag(self):
        script = f"""source {MADE}/phimap.bash
complete_words() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _phimap; echo "${{COMPREPLY[@]}}"; }}
complete_words phimap bui
complete_words phimap build --standa
"""
        said = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, "build\n--standardize\n")


if __name__ == "__main__":
    unittest.main()
