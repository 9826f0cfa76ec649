"""Holds the reasons of errors to each other in all places that have them: proto/phimap/v1/error_reason.proto, which
explains them to clients; core/status/reason.h, whose constants the sources use; and the tables of docs/api.md."""

import re
import unittest

import document

PROTO = "proto/phimap/v1/error_reason.proto"
HEADER = "core/status/reason.h"
# How a line of the enum begins whose reason is never the error of a call, so that docs/api.md does not have it.
OF_NO_CALL = re.compile(r"(At the start[^:]*|phimapd admin|libphimap|A client|Never sent): ")
STATE_FIRST = re.compile(r"(BAD|DAMAGED|DUPLICATE|EMPTY|IMPOSSIBLE|INVALID|MALFORMED|MISSING|MIXED|NO|NOT|ODD|OLD|SLOW|TOO_MANY|"
                         r"TOO_FEW|TOO_LONG|UNEXPECTED|UNKNOWN|UNSUPPORTED|WRONG)(_|$)")


def text_of(path):
    return (document.SOURCE / path).read_text(encoding="utf-8")


def constant(reason):
    return "k" + "".join(word.capitalize() for word in reason.split("_"))


def line_of(path, pattern):
    return next(number for number, line in enumerate(text_of(path).splitlines(), 1) if re.search(pattern, line))


# {reason: its sentence}, without ERROR_REASON_UNSPECIFIED and without deprecated values, which no server sends any more.
ENUM = {reason: sentence for sentence, reason in re.findall(r"^  // (.+)\n  ERROR_REASON_(\w+) = [1-9]\d*;$", text_of(PROTO), re.M)}
CONSTANTS = dict(re.findall(r'^inline constexpr char (k\w+)\[\] =\s+"(\w+)";$', text_of(HEADER), re.M))
SOURCES = {str(path.relative_to(document.SOURCE)): re.sub(r"^\s*(//|#).*", "", path.read_text(encoding="utf-8"), flags=re.M)
           for folder in ("core", "server", "client", "proto", "lab") for path in (document.SOURCE / folder).rglob("*")
           if path.suffix in (".h", ".cc", ".py") and path != document.SOURCE / HEADER}


class ErrorReasonsTest(unittest.TestCase):
    longMessage = False  # a failure is the sentence that says what to do

    def test_every_value_of_the_enum_has_one_line_that_says_when_it_comes(self):
        values = re.findall(r"^  ERROR_REASON_(\w+) = \d+;$", text_of(PROTO), re.M)
        for reason in values[1:]:
            with self.subTest(reason):
                line = line_of(PROTO, rf"ERROR_REASON_{reason} = ")
                self.assertIn(reason, ENUM, f"{PROTO}:{line}: put a line before it that says when {reason} comes")
        self.assertGreater(len(values), 200)

    def test_every_reason_is_a_constant_and_every_constant_a_reason(self):
        for reason in ENUM:
            with self.subTest(reason):
                self.assertEqual(CONSTANTS.get(constant(reason)), reason,
                                 f'add to {HEADER}: inline constexpr char {constant(reason)}[] = "{reason}";')
        for name, reason in CONSTANTS.items():
            with self.subTest(name):
                self.assertIn(reason, ENUM, f"{HEADER}:{line_of(HEADER, name)} has it, so add to {PROTO} ERROR_REASON_{reason} = "
                                            f"{len(CONSTANTS)}; with a line before it that says when it comes")

    def test_every_constant_is_used(self):
        used = set(re.findall(r"\breason::(k\w+)", "".join(SOURCES.values())))
        for name, reason in CONSTANTS.items():
            with self.subTest(name):
                self.assertIn(name, used, f"no source uses reason::{name}: remove {HEADER}:{line_of(HEADER, name)}, and mark ERROR_REASON_{reason} in "
                                          f"{PROTO} with [deprecated = true]; it stays there, because older servers send it")

    def test_no_source_spells_a_reason(self):
        for path, text in SOURCES.items():
            for reason in re.findall(r'''["']([A-Z]+(?:_[A-Z0-9]+)+)["']''', text):
                line = line_of(path, f"['\"]{reason}['\"]") if reason in ENUM else 0
                with self.subTest(path, line=line):
                    instead = f"Reason.{reason}" if path.endswith(".py") else f"reason::{constant(reason)}"
                    self.assertNotIn(reason, ENUM, f'{path}:{line}: write {instead} in place of "{reason}"')

    def test_the_page_has_every_reason_of_a_call_and_no_other(self):
        on_page = {row.reason for row in document.errors()}
        for reason, sentence in ENUM.items():
            with self.subTest(reason):
                of_call = OF_NO_CALL.match(sentence) is None
                self.assertEqual(reason in on_page, of_call,
                                 f"add | {reason} | CODE | when | to the table of errors of each call in docs/api.md that ends with it, or begin its line "
                                 f"in {PROTO}:{line_of(PROTO, f'ERROR_REASON_{reason} = ')} with 'Never sent: '" if of_call else
                                 f"docs/api.md lists {reason}, so its line in {PROTO} must not begin with {sentence.split(':')[0]!r}")
        self.assertLessEqual(on_page, set(ENUM), f"add these reasons of docs/api.md to {PROTO}")

    def test_reasons_name_the_thing_before_its_state(self):
        self.assertEqual([reason for reason in ENUM if STATE_FIRST.match(reason)], [], "say ALIAS_NOT_FOUND, not NO_SUCH_ALIAS")


if __name__ == "__main__":
    unittest.main()
