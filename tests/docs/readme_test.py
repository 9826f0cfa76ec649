"""Tests statements of README.md and docs/papers.md outside their code blocks. The tests of the pages run the blocks."""

import re
import unittest

import document
import page as pages

README = pages.read("README.md")
PAPERS = pages.read("docs/papers.md")


class ReadmeTest(unittest.TestCase):
    def test_the_client_is_installed_as_the_pages_say(self):
        fixture = (document.SOURCE / "tests/client/python/make_venv").read_text(encoding="utf-8")
        for page in (README, pages.read("client/python/README.md")):
            [block] = [block for block in pages.blocks(page) if "pip install" in block.text]
            [make, install] = [line.removeprefix("$ ").split() for line in block.text.splitlines()]
            self.assertIn("-m venv", " ".join(make))
            for flag in [word for word in make + install if word.startswith("--")]:
                self.assertIn(flag, fixture)
            self.assertTrue((document.SOURCE / install[-1] / "setup.py").exists())

    def test_the_sections_of_balcan_blum_vempala_are_the_papers(self):
        """In the paper, the two simple mappings F1 and F2 are in section 3. F3, which is the improved mapping of
        Theorem 2, is in section 4."""
        for idea, paper in (("F1, ", r"section 3"), ("F2, ", r"section 3"), ("F3, ", r"section 4"),
                            ("Johnson–Lindenstrauss alone", r"section 4")):
            self.assertTrue(re.search(rf"(?m)^\| {idea}[^|]*\|[^|]*\b{paper}\b", PAPERS.text), f"{idea}: {paper}")


if __name__ == "__main__":
    unittest.main()
