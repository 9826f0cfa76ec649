"""What a page says is printed, and what is.

"…", or "...", stands for anything in its line, and a line of it alone for any lines."""

import re

# Output that differs from run to run, and from machine to machine: written as … by --update, in its former width.
ELIDED = [re.compile(expression, re.M) for expression in (
    r"^  (?:created|digest) +(\S.*)$",
    r"^  (?:residual|trace residual) +(\S+)",
    r"^  serving error +(\S+) / (\S+)",
    r"(\d{4}-\d\d-\d\d \d\d:\d\d.*)$",
    r"\(etag ([0-9a-f]+)\)$",
    r"^\S+@\S+ +\d+ +[\d-]+  ([0-9a-f]{12} .*)$",
)]


def agrees(said, printed):
    return re.fullmatch(_pattern(said), printed) is not None


def _pattern(said):
    """A regular expression. Blanks beside … are part of it: a column may have another width."""
    return "".join(r"(?:.*\n)*?" if line.strip() == "…" else
                   ".*?".join(re.escape(part) for part in re.split(" *… *", line)) + r" *\n"
                   for line in said.replace("...", "…").splitlines())


def elided(printed):
    """As the page should show it."""
    for expression in ELIDED:
        for match in reversed(list(expression.finditer(printed))):
            text, shorter = match[0], 0
            for group in range(match.re.groups, 0, -1):
                begin, end = (place - match.start() for place in match.span(group))
                text = text[:begin] + "…" + text[end:]
                shorter += end - begin - 1
            # The rest of the line stays in its column.
            blanks = " " * shorter if printed[match.end():].startswith("  ") else ""
            printed = printed[:match.start()] + text + blanks + printed[match.end():]
    return printed


def of_python(text):
    """(lines that the comments of its prints say, number of prints)"""
    said = re.findall(r"^ *print\(.*\)  +# (.*)$", text, re.M)
    return "".join(f"{line}\n" for line in said), len(re.findall(r"^ *print\(", text, re.M))
