"""Runs all blocks of a page, as tests/docs/runner.py describes.

    build/python/venv/bin/python tests/docs/page_test.py docs/api.md
    build/python/venv/bin/python tests/docs/page_test.py --update docs/api.md

The second command writes the real output into the page. Parts that differ from run to run are written as "…".
"""

import os
import sys

import page as pages

# Without ctest's environment variables, the test uses the programs in build/.
os.environ.setdefault("PHIMAPD", str(pages.SOURCE / "build/server/phimapd"))
os.environ.setdefault("PHIMAP", str(pages.SOURCE / "build/client/cli/phimap"))
sys.path.append(str(pages.SOURCE / "tests/deploy"))
import links
import printed
import runner
import words


def update(page, differences):
    text = page.text
    for command, said in reversed(differences):
        text = text[:command.begin] + printed.elided(said) + text[command.end:]
    page.path.write_text(text, encoding="utf-8")


def main(name, updating=False):
    page = pages.read(name)
    faults = pages.oddities(page) + links.faults(page) + words.faults_in_sentences(page.text)
    running = runner.Runner(page)
    try:
        running.run()
    except runner.Wrong as wrong:
        faults.append(str(wrong))
    finally:
        running.close()
    differences = running.differences
    if updating:
        update(page, differences)
        differences = []
    for command, said in differences:
        faults.append(f"{name} shows below {command.text}{command.said}\nit prints:\n{said}\n"
                      "page_test.py --update writes it down")
    print("\n\n".join(faults) if faults else f"{len(pages.blocks(page))} blocks, all correct")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1], updating="--update" in sys.argv))
