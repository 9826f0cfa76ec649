"""Tests the list of the papers' statements in docs/maths.md. No statement may be missing, and every file and test
that the list mentions must exist."""

import re
import unittest

import document

MATHS = document.SOURCE / "docs/maths.md"
CORE = document.SOURCE / "core"
TESTS = document.SOURCE / "tests/core"
LAB = document.SOURCE / "lab/results"
SECTION = "Every statement of the papers"

# The numbered items of each paper, including its tables and figures.
NUMBERED = {
    "BBV": ["Lemma 1", "Remark 1", "Corollary 1", "Corollary 2", *(f"Theorem {n}" for n in range(1, 5)), "Table 1", "Table 2",
            "figure 1"],
    "BS": ["Definition 1", "Definition 2", "Algorithm 1", "Lemma 1", "Remark 1", "Corollary 1", "Corollary 2",
           *(f"Theorem {n}" for n in range(1, 7)), "figure 1", "figure 2"],
    "AMS": [*(f"Theorem {n}" for n in range(1, 7)), *(f"equation {n}" for n in range(1, 5)), "algorithm Orthogonal Iteration"],
    "SH": ["Definition 1", "Definition 2", "Definition 3", "Definition 7", "Lemma 4", "Lemma 10", "Theorem 5", "Theorem 6",
           "Theorem 8", "Theorem 9", *(f"equation {n}" for n in range(1, 13)),
           *(f"figure {n}" for n in range(1, 5))],
    "CO": [],  # a lecture without numbered items
    "Links, sets and parts": [],  # from several sources
}


def tables():
    """Returns {paper: rows of its table}."""
    text = MATHS.read_text(encoding="utf-8").split(f"\n## {SECTION}\n")[1].split("\n## ")[0]
    return {paper: document.table_rows(part) for paper, part in document.sections(text).items()}


def numbers(statement):
    """Returns the items that the first cell of a row lists. For example, "equations 7 to 9" lists three items, and so
    does "Theorem 6, equations 2 and 3"."""
    named = set(re.findall(r"(?:Definition|Lemma|Remark|Corollary|Theorem|Algorithm|Table|equation|figure) \d+", statement))
    for what, first, last in re.findall(r"(equation|figure)s (\d+) (?:to|and) (\d+)", statement):
        named |= {f"{what} {n}" for n in range(int(first), int(last) + 1)}
    if statement.startswith("algorithm "):
        named.add(statement)
    return named


class MathsStatementsTest(unittest.TestCase):
    def test_every_number_of_every_paper_has_its_row_and_no_other(self):
        self.assertEqual(list(tables()), list(NUMBERED))
        for paper, rows in tables().items():
            with self.subTest(paper):
                self.assertEqual(set().union(*(numbers(row[0]) for row in rows)), set(NUMBERED[paper]))
                self.assertEqual(len({row[0] for row in rows}), len(rows), "two rows are about the same statement")

    def test_every_file_is_there(self):
        named = {name for rows in tables().values() for row in rows for name in re.findall(r"`([\w/]+\.\w+)`", row[2])}
        self.assertGreater(len(named), 20)
        for name in sorted(named):
            with self.subTest(name):
                self.assertTrue((CORE / name).is_file())

    def test_every_test_is_there(self):
        named = {name for rows in tables().values() for row in rows for name in re.findall(r"`([\w/]+_test\.\w+)`", row[3])}
        self.assertGreater(len(named), 60)
        for name in sorted(named):
            with self.subTest(name):
                file, test = name.split(".")
                text = (TESTS / f"{file}.cc").read_text(encoding="utf-8")
                self.assertRegex(text, rf"TEST(?:_F|_P)?\(\w+,\s*{test}\)")

    def test_a_row_without_a_file_or_a_test_says_why(self):
        for rows in tables().values():
            for statement, says, file, test in rows:
                with self.subTest(statement):
                    self.assertTrue(says and file and test)
                    if "`" not in test:
                        self.assertTrue(re.match(r"— \w", file) or len(test) > 20, "a reason")

    def test_every_table_figure_and_experiment_has_its_place_in_the_lab(self):
        experiments = set((LAB / "order.txt").read_text(encoding="utf-8").split())
        named = set()
        for paper, rows in tables().items():
            for statement, *_, test in rows:
                in_lab = set(re.findall(r"\[`(\w+)`\]\(lab\.md#(\w+)\)", test))
                with self.subTest(paper=paper, statement=statement):
                    self.assertTrue(all(name == link for name, link in in_lab))
                    self.assertLessEqual({name for name, _ in in_lab}, experiments)
                    if any(number.startswith(("Table", "figure")) for number in numbers(statement)):
                        self.assertTrue(in_lab, "an experiment")
                named |= {name for name, _ in in_lab}
        beyond = {name for name in experiments if "\npaper,phimap\n" in (LAB / name / "about.csv").read_text(encoding="utf-8")}
        self.assertEqual(experiments - named, beyond)


if __name__ == "__main__":
    unittest.main()
