"""Tests that docs/operations/upgrade.md has a note for each release of CHANGELOG.md, and that it says what an operator must
know."""

import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("**Before.**", "**After.**", "**Back.**")


def chapters_of(text):
    """Returns the text of each chapter by its heading, in order."""
    headings = list(re.finditer(r"^## (.+)$", text, re.M))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {heading[1]: text[heading.end():end] for heading, end in zip(headings, ends)}


def faults_of(changelog, notes):
    """Returns what the notes lack."""
    releases = list(chapters_of(changelog))
    chapters = chapters_of(notes)
    faults = []
    if list(chapters) != releases:
        faults.append(f"the chapters must be the releases of CHANGELOG.md, {releases}, and are {list(chapters)}")
    for release in releases[:-1]:  # nothing can be upgraded to the first
        places = [chapters.get(release, "").find(f"\n{part}") for part in PARTS]
        if -1 in places or places != sorted(places):
            faults.append(f"the chapter {release} must have the paragraphs {', '.join(PARTS)}")
    return faults


class UpgradeNotesTest(unittest.TestCase):
    def setUp(self):
        self.changelog = (SOURCE / "CHANGELOG.md").read_text()
        self.notes = (SOURCE / "docs/operations/upgrade.md").read_text()

    def test_each_release_has_a_note(self):
        self.assertEqual(faults_of(self.changelog, self.notes), [])

    def test_what_is_missing_is_found(self):
        self.assertGreaterEqual(len(chapters_of(self.changelog)), 2)
        released = self.changelog.replace("\n## ", "\n## 9.9.9\n\nNew.\n\n## ", 1)
        self.assertEqual(len(faults_of(released, self.notes)), 2)
        for part in PARTS:
            with self.subTest(part):
                self.assertEqual(len(faults_of(self.changelog, self.notes.replace(part, ""))), 1)

    def test_the_numbers_of_the_schema_are_those_of_the_sources(self):
        files = (SOURCE / "docs/store.md").read_text()
        newest = next(iter(chapters_of(self.notes).values()))
        stated = re.search(r"version (\d+) of the store in files, version (\d+) of the store in PostgreSQL", newest)
        self.assertEqual(stated[1], re.search(r"`PRAGMA user_version` is (\d+)", files)[1])
        migrations = (SOURCE / "server/store/postgres/postgres_migrations.cc").read_text()
        listed = re.search(r"kMigrations\[\] = \{(.*?)\};", migrations, re.S)[1]
        self.assertEqual(int(stated[2]), listed.count("{"))


if __name__ == "__main__":
    unittest.main()
