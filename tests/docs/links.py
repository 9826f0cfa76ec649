"""Checks the links of a page to files and headings in the repository."""

import re

import page as pages

LINK = re.compile(r"\]\(([^)\s]+)\)")


def faults(page):
    """Returns a sentence for each broken link. Links to other hosts are not checked."""
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
    """Returns the text without code blocks and without text in backquotes, because brackets in them are not links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(pages.FENCED, "", text, flags=re.M | re.S))


def _anchors(text):
    """Returns the anchors that GitHub derives from the headings, and the explicit anchors."""
    headings = re.findall(r"^#+ (.+)$", re.sub(pages.FENCED, "", text, flags=re.M | re.S), re.M)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))
