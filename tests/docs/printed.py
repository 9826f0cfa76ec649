"""Compares the output shown on a page with the real output.

On a page, "…" or "..." stands for any text within its line. A line that contains nothing else stands for any number
of lines.
"""

import re

# Matches output that differs from run to run or between machines. --update writes it as "…", and keeps the following
# columns in place.
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
    """Returns a regular expression for the shown output. Around "…" it allows any number of blanks, because the real
    column may be wider or narrower."""
    return "".join(r"(?:.*\n)*?" if line.strip() == "…" else
                   ".*?".join(re.escape(part) for part in re.split(" *… *", line)) + r" *\n"
                   for line in said.replace("...", "…").splitlines())


def elided(printed):
    """Returns the output in the form in which the page should show it."""
    for expression in ELIDED:
        for match in reversed(list(expression.finditer(printed))):
            text, shorter = match[0], 0
            for group in range(match.re.groups, 0, -1):
                begin, end = (place - match.start() for place in match.span(group))
                text = text[:begin] + "…" + text[end:]
                shorter += end - begin - 1
            # Blanks keep the rest of the line in its column.
            blanks = " " * shorter if printed[match.end():].startswith("  ") else ""
            printed = printed[:match.start()] + text + blanks + printed[match.end():]
    return printed


def of_python(text):
    """Returns the lines in the comments after the print calls of a Python block, and the number of print calls."""
    said = re.findall(r"^ *print\(.*\)  +# (.*)$", text, re.M)
    return "".join(f"{line}\n" for line in said), len(re.findall(r"^ *print\(", text, re.M))
