"""Splits a Markdown page into its code blocks, and the HTML comments that tell the tests what to do with them.
Readers of the page do not see these comments.

    <!-- not run: WHY -->       the next block is not run; the programs, flags and files in it must exist
    <!-- file: NAME -->         the next block is a file: it is written to NAME in the page's working folder
    <!-- run                    a hidden block: runs the lines that follow; "run python" for Python
    …
    -->
"""

import pathlib
import re
from typing import NamedTuple

SOURCE = pathlib.Path(__file__).resolve().parents[2]

FENCED = r"^```(?P<language>\w*)\n(?P<block>.*?)^```$"
MARK = r"^<!-- (?P<mark>not run|file): (?P<about>[^\n]+) -->$"
HIDDEN = r"^<!-- run(?: (?P<hidden_language>\w+))?\n(?P<hidden>.*?)^-->$"
PARTS = re.compile(f"{FENCED}|{MARK}|{HIDDEN}", re.M | re.S)


class Block(NamedTuple):
    language: str
    text: str
    # The position of the block's text in the page, and the number of its first line. Lines are counted from 1.
    begin: int
    line: int
    # From the comment before the block: the reason why the block is not run, or the name of its file.
    not_run: str = ""
    file: str = ""


class Command(NamedTuple):
    """A command after "$ ", including lines that a backslash continues, and the output that the page shows below
    it."""
    text: str
    said: str
    # The position of the output in the page.
    begin: int
    end: int


class Page(NamedTuple):
    path: pathlib.Path
    text: str

    @property
    def name(self):
        return str(self.path.relative_to(SOURCE)) if self.path.is_relative_to(SOURCE) else self.path.name


def read(path):
    path = SOURCE / path
    return Page(path, path.read_text(encoding="utf-8"))


def blocks(page):
    """Returns the blocks in order, including the hidden ones."""
    found, mark = [], {}
    for match in PARTS.finditer(page.text):
        if match["mark"]:
            assert not mark, f"{page.name}: two comments for tests before one block"
            mark = {match["mark"].replace(" ", "_"): match["about"]}
            continue
        hidden = match["hidden"] is not None
        part = "hidden" if hidden else "block"
        language = match["hidden_language"] or "" if hidden else match["language"]
        begin = match.start(part)
        found.append(Block(language, match[part], begin, page.text.count("\n", 0, begin) + 1, **mark))
        mark = {}
    assert not mark, f"{page.name}: a comment for tests without a block after it"
    return found


def commands(block):
    pattern = r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)"
    return [Command(match[1], match[2], block.begin + match.start(2), block.begin + match.end(2))
            for match in re.finditer(pattern, block.text, re.M)]


def oddities(page):
    """Returns a sentence for each part of the page that looks like code but is not a valid block."""
    fences = re.findall(r"^ *(?:```|~~~).*$", page.text, re.M)
    shown = re.findall(FENCED, page.text, re.M | re.S)
    found = [] if len(fences) == 2 * len(shown) else ["a block needs two fences, each ``` at the beginning of a line"]
    comments = re.findall(r"^<!-- (?:run|not run|file)\b.*", page.text, re.M)
    read = [match for match in PARTS.finditer(page.text) if not match["language"] and match["block"] is None]
    found += [] if len(comments) == len(read) else ["a comment for tests does not have the form that tests/docs/page.py describes"]
    prose = PARTS.sub("", page.text).splitlines()
    in_list = False
    for before, line in zip(["", *prose], prose):
        if re.match(r"\S", line):
            in_list = bool(re.match(r"([-*]|\d+\.) ", line)) or (in_list and before.strip() != "")
        if re.match(r" {4}", line) and not before.strip() and not in_list:
            found.append(f"an indented block of code; use fences: {line}")
    return found
