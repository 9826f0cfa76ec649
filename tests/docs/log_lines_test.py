"""Holds the tables of docs/operations/log.md to the sources: each line that the server logs, with its fields."""

import re
import unittest

import document
import log_table

SERVER = document.SOURCE / "server"
# Where lines are formatted, and not written.
FORMATS = ("server/observe/log.cc", "server/observe/log_line.cc")


def arguments(text, opening):
    """Returns the arguments between the bracket at `opening` and the one that closes it."""
    parts, depth, begin, position = [], 0, opening + 1, opening
    while True:
        # A literal, which may have brackets and commas in it.
        if literal := re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'').match(text, position):
            position = literal.end()
            continue
        character = text[position]
        depth += (character in "({[") - (character in ")}]")
        if depth == 0 or depth == 1 and character == ",":
            parts.append(text[begin:position].strip())
            begin = position + 1
        if depth == 0:
            return [part for part in parts if part]
        position += 1


def written():
    """Returns {event: (levels, forms)} of all lines in the sources. A form is a list of keys; some events have two. Levels are words such
    as INFO; none is known where the level is computed."""
    events = {}
    for path in sorted(SERVER.rglob("*.cc")):
        name = str(path.relative_to(document.SOURCE))
        text = re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8"))
        for call in re.finditer(r"(?:\.|->)Log\(|\bFormatLogLine\(", text):
            given = arguments(text, call.end() - 1)
            given = given[1:] if "Format" in call[0] else given
            if len(given) < 3 or given[2] == "fields" or " fields" in given[2]:
                assert name in FORMATS, f"{name}: a line whose fields are not written out: {given}"
                continue
            levels = [word.upper() for word in re.findall(r"LogLevel::k(\w+)", given[0])]
            names = re.findall(r'"(\w+)"', given[1])
            if not names:  # a function that is given the event
                function = re.findall(r"(?m)^\w.*?::(\w+)\(const char\* " + given[1], text[:call.start()])[-1]
                names = re.findall(rf'{function}\("(\w+)"', text)
            keys = [arguments(field, 0)[0].strip('"') for field in arguments(given[2], 0)]
            # One condition chooses both the level and the event.
            paired = len(names) > 1 and len(names) == len(levels)
            for number, event in enumerate(names):
                known, forms = events.setdefault(event, (set(), []))
                known.update(levels[number:number + 1] if paired else levels)
                if keys not in forms:
                    forms.append(keys)
    return events


class LogLinesTest(unittest.TestCase):
    longMessage = False  # a failure is the sentence that says what to do

    def setUp(self):
        self.written = written()

    def test_the_scan_finds_what_is_there(self):
        """The lines that a reader of the sources finds in four places with different forms."""
        self.assertIn("peer", self.written["rpc"][1][0])
        self.assertIn(self.written["build_done"][1][0], self.written["build_ended"][1])
        self.assertEqual((self.written["build_done"][0], self.written["build_ended"][0]), ({"INFO"}, {"WARNING"}))
        self.assertEqual(self.written["cannot_accept"][1], self.written["connections_refused"][1])
        self.assertEqual(self.written["stopped"], ({"INFO"}, [[]]))
        self.assertEqual(len(self.written["store_open"][1]), 2)
        self.assertGreater(len(self.written), 40)

    def test_each_line_of_the_sources_is_in_the_table(self):
        for event, (levels, forms) in self.written.items():
            keys = list(dict.fromkeys(key for form in forms for key in form))
            with self.subTest(event):
                row = f"| `{event}` | {' or '.join(sorted(levels))} | {' '.join(f'`{key}`' for key in keys)} | when |"
                self.assertIn(event, log_table.EVENTS, f"add to docs/operations/log.md: {row}")
                told = log_table.EVENTS[event]
                self.assertEqual(set(told.keys), set(keys), f"docs/operations/log.md: the sources write {row}")
                for form in forms:
                    self.assertEqual([key for key in told.keys if key in form], form, f"docs/operations/log.md: the order in {row}")
                self.assertTrue(levels <= told.levels, f"docs/operations/log.md: {event} has a level of {levels}")

    def test_each_line_of_the_table_is_in_the_sources(self):
        for event in log_table.EVENTS:
            with self.subTest(event):
                self.assertIn(event, self.written, f"docs/operations/log.md has {event}, and no source writes it")

    def test_each_field_has_one_type(self):
        used = {key for _, forms in self.written.values() for form in forms for key in form}
        for key in used:
            with self.subTest(key):
                self.assertIn(key, log_table.TYPES, f"add to the fields of docs/operations/log.md: | `{key}` | text, integer, number or boolean | … |")
        for key in log_table.TYPES:
            with self.subTest(key):
                self.assertIn(key, used, f"docs/operations/log.md has the field {key}, and no source writes it")


if __name__ == "__main__":
    unittest.main()
