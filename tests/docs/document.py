"""docs/api.md, taken apart: sections and tables."""

import pathlib
import re
from typing import NamedTuple

SOURCE = pathlib.Path(__file__).resolve().parents[2]
API = SOURCE / "docs/api.md"


class Row(NamedTuple):
    """A row of a table of errors, and the section it stands in."""
    section: str
    reason: str
    code: str
    when: str


def sections(text=None):
    """{heading: text up to the next heading}, in their order. Headings are unique."""
    parts = re.split(r"^#{2,3} (.+)\n", text if text is not None else API.read_text(encoding="utf-8"), flags=re.M)
    found = dict(zip(parts[1::2], parts[2::2]))
    assert len(found) == len(parts) // 2, "two sections have the same heading"
    return found


def table_rows(text):
    """The cells of each row of the tables in a text, without the heads."""
    rows = []
    for head, body in re.findall(r"^\|(.*)\|\n\|[-| ]+\|\n((?:\|.*\|\n?)*)", text, re.M):
        width = len(head.split("|"))
        for line in body.splitlines():
            cells = [cell.strip().replace("\0", "|") for cell in line.strip()[1:-1].replace(r"\|", "\0").split("|")]
            assert len(cells) == width, f"{len(cells)} cells under {width} heads: {line}"
            rows.append(cells)
    return rows


def errors():
    """Every row of every table of errors."""
    return [Row(heading, *cells[:3]) for heading, text in sections().items() for cells in table_rows(text)
            if re.fullmatch(r"[A-Z][A-Z0-9_]+", cells[0])]
