"""Links of a page to files and headings of the repository."""

import re

import page as pages

LINK = re.compile(r"\]\(([^)\s]+)\)")


def faults(page):
    """[sentence] of links that lead nowhere. Those to other hosts are not followed."""
    found = []
    for link in LINK.findall(_prose(page.text)):
        name, _, anchor = link.partition("#")
        target = (page.path.parent / name).resolve() if name else page.path
        if re.match(r"\w+:", link):
            continue
        if not target.exists() and target != page.path:
            found.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in _anchors(
                target.read_text(encoding="utf-8") if name else page.text):
            found.append(f"{link}: there is no such heading")
    return found


def _prose(text):
    """Without blocks and words in backquotes, in which brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", re.sub(pages.FENCED, "", text, flags=re.M | re.S))


def _anchors(text):
    """Of headings, as GitHub makes them, and those that are written down."""
    headings = re.findall(r"^#+ (.+)$", re.sub(pages.FENCED, "", text, flags=re.M | re.S), re.M)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))
