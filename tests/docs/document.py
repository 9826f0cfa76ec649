"""Parses docs/api.md into sections and tables."""

import pathlib
import re
from typing import NamedTuple

SOURCE = pathlib.Path(__file__).resolve().parents[2]
API = SOURCE / "docs/api.md"


class Row(NamedTuple):
    """A row of a table of errors, and the heading of its section."""
    section: str
    reason: str
    code: str
    when: str


def sections(text=None):
    """Returns {heading: text up to the next heading}, in the order of the page. Headings must be unique."""
    parts = re.split(r"^#{2,3} (.+)\n", text if text is not None else API.read_text(encoding="utf-8"), flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2]))
    assert len(found) == len(parts) // 2, "two sections have the same heading"
    return found


def table_rows(text):
    """Returns the cells of each row of all tables in a text, without the header rows."""
    rows = []
    for head, body in re.findall(r"^\|(.*)\|\n\|[-| ]+\|\n((?:\|.*\|\n?)*)", text, re.M):
        width = len(head.split("|"))
        for line in body.splitlines():
            cells = [cell.strip().replace("\0", "|") for cell in line.strip()[1:-1].replace(r"\|", "\0").split("|")]
            assert len(cells) == width, f"{len(cells)} cells under {width} column headers: {line}"
            rows.append(cells)
    return rows


def errors():
    """Returns every row of every table of errors."""
    return [Row(heading, *cells[:3]) for heading, text in sections().items() for cells in table_rows(text)
            if re.fullmatch(r"[A-Z][A-Z0-9_]+", cells[0])]
