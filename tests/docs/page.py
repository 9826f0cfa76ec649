"""A page of Markdown, taken apart: its blocks of code, and the comments that tell tests about them, which readers do not
see.

    <!-- not run: WHY -->       the next block is not run; its programs, flags and files are held against what is there
    <!-- file: NAME -->         the next block is a file: it is written to NAME in the folder of the page
    <!-- run                    runs what follows, in its place among the blocks; "run python" for Python
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
    # Position of the text in the page, and its line, from 1.
    begin: int
    line: int
    # Content of the comment before it: why it is not run, or which file it is.
    not_run: str = ""
    file: str = ""


class Command(NamedTuple):
    """A command after "$ ", with the lines that a backslash continues, and the output that stands below it."""
    text: str
    said: str
    # Position of its output in the page.
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
    """Blocks, hidden ones too, in their order."""
    found, mark = [], {}
    for match in PARTS.finditer(page.text):
        if match["mark"]:
            assert not mark, f"{page.name}: two comments before one block"
            mark = {match["mark"].replace(" ", "_"): match["about"]}
            continue
        hidden = match["hidden"] is not None
        part = "hidden" if hidden else "block"
        language = match["hidden_language"] or "" if hidden else match["language"]
        begin = match.start(part)
        found.append(Block(language, match[part], begin, page.text.count("\n", 0, begin) + 1, **mark))
        mark = {}
    assert not mark, f"{page.name}: a comment before no block"
    return found


def commands(block):
    pattern = r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)"
    return [Command(match[1], match[2], block.begin + match.start(2), block.begin + match.end(2))
            for match in re.finditer(pattern, block.text, re.M)]


def oddities(page):
    """What looks like code and is no block: [sentence]."""
    fences = re.findall(r"^ *(?:```|~~~).*$", page.text, re.M)
    shown = re.findall(FENCED, page.text, re.M | re.S)
    found = [] if len(fences) == 2 * len(shown) else ["fences are ``` at the beginning of a line, two a block"]
    comments = re.findall(r"^<!-- (?:run|not run|file)\b.*", page.text, re.M)
    read = [match for match in PARTS.finditer(page.text) if not match["language"] and match["block"] is None]
    found += [] if len(comments) == len(read) else ["a comment for tests that has another form than tests/docs/page.py says"]
    prose = PARTS.sub("", page.text).splitlines()
    in_list = False
    for before, line in zip(["", *prose], prose):
        if re.match(r"\S", line):
            in_list = bool(re.match(r"([-*]|\d+\.) ", line)) or (in_list and before.strip() != "")
        if re.match(r" {4}", line) and not before.strip() and not in_list:
            found.append(f"a block of code needs fences: {line}")
    return found
