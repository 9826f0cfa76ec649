"""Tests docs/glossary.md. It must be in alphabetical order, its entries must be short and linked, and it must contain
every term that the certificate shows or that a page defines."""

import re
import unittest

import document

GLOSSARY = document.SOURCE / "docs/glossary.md"
README = document.SOURCE / "README.md"
TOUR = document.SOURCE / "docs/guides/tour.md"
PAGES = [README, *sorted((document.SOURCE / "docs").rglob("*.md"))]

# Labels in a displayed certificate that need no entry because they are plain English, and labels that are another
# form of a term.
PLAIN = {"rows"}
SINGULAR = {"landmarks": "landmark", "held out": "held-out row"}


def entries():
    """Returns [(term, text)] in the glossary's order."""
    text = GLOSSARY.read_text(encoding="utf-8")
    return [(term, " ".join(body.split())) for term, body in re.findall(r"^- \*\*(.+?)\*\*: ((?:.+\n)(?:  .+\n)*)", text, re.M)]


TERMS = {term.lower() for term, _ in entries()}


class GlossaryTest(unittest.TestCase):
    def test_every_bullet_is_an_entry(self):
        bullets = re.findall(r"^- ", GLOSSARY.read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(bullets), 40)
        self.assertEqual(len(bullets), len(entries()))

    def test_terms_stand_once_and_in_alphabetical_order(self):
        terms = [re.sub(r"[^a-z]", "", term.lower()) for term, _ in entries()]
        self.assertEqual(terms, sorted(set(terms)))

    def test_an_entry_is_one_to_three_sentences(self):
        for term, text in entries():
            with self.subTest(term):
                self.assertTrue(text.endswith("."))
                self.assertLessEqual(len(re.findall(r"[.:](?= [A-Z]|$)", text)), 3)

    def test_the_readme_links_to_it(self):
        self.assertIn("(docs/glossary.md)", README.read_text(encoding="utf-8"))

    def test_every_label_of_the_printed_certificate_is_a_term(self):
        printed = re.search(r"^certificate\n((?:  .*\n)+)", TOUR.read_text(encoding="utf-8"), re.M)[1].split("  spectrum:")[0]
        labels = set(re.findall(r"^  ([a-z][a-z -]+?)  ", printed, re.M)) - PLAIN
        self.assertGreater(len(labels), 8)
        self.assertEqual({label for label in labels if SINGULAR.get(label, label) not in TERMS}, set())

    def test_every_word_that_a_page_introduces_in_italics_is_a_term(self):
        introduced = {word for page in PAGES
                      for word in re.findall(r"\b(?:an?|A|its|next) \*([a-z][a-z ]+)\*", page.read_text(encoding="utf-8"))}
        self.assertGreater(len(introduced), 3)
        self.assertEqual({word for word in introduced if word not in TERMS}, set())


if __name__ == "__main__":
    unittest.main()
