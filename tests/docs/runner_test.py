"""Tests that the runner, which runs the code blocks of pages, finds mistakes in them."""

import os
import pathlib
import tempfile
import unittest

import links
import page as pages
import printed
import runner
import server
import words

FENCE = "```"


def block(text, language="", mark=""):
    return f"Prose.\n\n{mark}{FENCE}{language}\n{text}{FENCE}\n\nMore.\n"


class PageTest(unittest.TestCase):
    def page(self, text):
        return pages.Page(pathlib.Path("/page.md"), text)

    def test_blocks_come_in_their_order_with_what_readers_do_not_see(self):
        text = (block("$ one\n") + "<!-- run\n$ two\n-->\n" + "<!-- run python\nthree = 3\n-->\n" +
                block("four\n", mark="<!-- not run: an hour -->\n") + block("five\n", "text", "<!-- file: name.txt -->\n\n"))
        found = pages.blocks(self.page(text))
        self.assertEqual([(one.language, one.text, one.not_run, one.file) for one in found], [
            ("", "$ one\n", "", ""), ("", "$ two\n", "", ""), ("python", "three = 3\n", "", ""),
            ("", "four\n", "an hour", ""), ("text", "five\n", "", "name.txt")])
        for one in found:
            self.assertEqual(text[one.begin:one.begin + len(one.text)], one.text)
            self.assertEqual(text.splitlines()[one.line - 1], one.text.splitlines()[0])

    def test_a_comment_for_tests_stands_before_its_block_alone(self):
        mark = "<!-- not run: an hour -->\n"
        for text in (block("one\n", mark=mark + mark), mark):
            with self.assertRaises(AssertionError):
                pages.blocks(self.page(text))

    def test_code_that_would_not_be_seen_is_found(self):
        self.assertEqual(pages.oddities(self.page(block("$ one\n") + "1. list\n\n    more of it\n- list\n    more\n")), [])
        for text in ("Prose.\n\n    phimap list\n", "- list\n  - list\n\nProse.\n\n    phimap list\n",
                     "- list\n\n  ```\n  phimap list\n  ```\n", "~~~\nphimap list\n~~~\n",
                     block("one\n", mark="<!-- not run -->\n"), "<!-- run python: one -->\n"):
            self.assertEqual(len(pages.oddities(self.page(text))), 1, text)

    def test_commands_within_sentences_are_held_too(self):
        text = block("$ phimap list --no-flag\n") + "`phimap list --json` and `lab/run` are, `lab/report.py` and `--no-flag` are none.\n"
        self.assertEqual(words.faults_in_sentences(text), [])
        self.assertEqual(len(words.faults_in_sentences("`phimap list --no-flag` and `tools/none` are wrong.\n")), 2)


class LinksTest(unittest.TestCase):
    def faults(self, text):
        return links.faults(pages.Page(pages.SOURCE / "docs/page.md", text))

    def test_links_that_lead_somewhere_are_right(self):
        text = "# One, `two`\n<a id=\"three\"></a> [a](#one-two) [a](#three) [b](api.md#client) [c](../README.md) [d](https://example.org/#none) `[e](f)`\n"
        self.assertEqual(self.faults(text.replace("#client", "")), [])
        self.assertEqual(self.faults(text), ["api.md#client: there is no such heading"])

    def test_links_that_lead_nowhere_are_found(self):
        for text in ("[a](none.md)\n", "[a](../none.md)\n", "[a](#none)\n", block("# none\n") + "[a](#none)\n", "[a](none.md#none)\n"):
            self.assertEqual(len(self.faults(text)), 1, text)


class PrintedTest(unittest.TestCase):
    def test_the_comparison_sees_what_differs(self):
        for said, out in (("a … c\n", "a b c\n"), ("a\n…\nd\n", "a\nb\nc\nd\n"), ("…\n", ""), ("a …\n", "a \n"), ("a\n...\n", "a\nb\nc\n"),
                          ("x  … / … y\n", "x  1 / 2 y\n"), ("a.b\n", "a.b\n")):
            self.assertTrue(printed.agrees(said, out), (said, out))
        for said, out in (("a … c\n", "a b d\n"), ("a … c\n", "a b\nc\n"), ("a\n", "a\nb\n"), ("a\n", ""),
                          ("a\n…\nd\n", "a\nb\nc\n"), ("a.b\n", "acb\n"), ("12 rows\n", "13 rows\n")):
            self.assertFalse(printed.agrees(said, out), (said, out))

    def test_what_differs_from_run_to_run_is_elided_in_its_width(self):
        shown = ("letters@1\n  created           2026-11-22 03:56:04 UTC\n"
                 "  residual          1.73e-18              largest that was dropped\n"
                 "  serving error     2.9e-07 / 1e-06       mean / max of\n"
                 "letters@prod        1       2  0123456789ab  2026-11-22 03:56  89ab  \nx is version 1  (etag 89ab)\n")
        self.assertEqual(printed.elided(shown), "letters@1\n  created           …\n"
                         "  residual          …                     largest that was dropped\n"
                         "  serving error     … / …                 mean / max of\n"
                         "letters@prod        1       2  …\nx is version 1  (etag …)\n")
        self.assertTrue(printed.agrees(printed.elided(shown), shown))


class WordsTest(unittest.TestCase):
    def test_commands_of_programs_that_are_there_are_right(self):
        for text in ("tools/test --full   # all\n", "phimap build NAME --standardize \\\n    --seed=1\n", "phimapd admin backup --store=DIR\n",
                     "docker run -p 127.0.0.1:7450:7450 phimap --insecure\n", "tools/build build core_mapping_tests\n",
                     "build/tests/core/mapping/core_mapping_tests --file=margin_theorems_test.cc\n",
                     "build/bench/engine_bench --rounds=3\n", "tools/run_tests build -R margin_theorems\n"):
            self.assertEqual(words.faults(text), [], text)

    def test_wrong_programs_flags_files_targets_and_tests_are_found(self):
        for text in ("tools/tset\n", "tools/test --fully\n", "phimap build NAME --standardise\n", "phimapd admin backup --shop=DIR\n",
                     "docker run phimap --unsafe\n", "docker compose -f deploy/composed.yaml up\n",
                     "tools/build build core_mapping_test\n", "tools/run_tests build -R margin_theories\n",
                     "build/tests/core/mapping/core_mapping_tests --file=margins_test.cc\n",
                     "build/bench/engines_bench\n", "build/bench/engine_bench --round=3\n", "another --flag\n"):
            self.assertEqual(len(words.faults(text)), 1, text)


class RunnerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.addClassCleanup(cls.server.close)

    def run_page(self, text):
        """Returns the commands whose output on the page differs from the real output."""
        page = pages.Page(pathlib.Path("/page.md"), text)
        running = runner.Runner(page, self.server)
        try:
            running.run()
            return [command.said for command, _ in running.differences]
        finally:
            running.close()

    def test_a_page_that_is_right_passes(self):
        text = (block("$ phimap --help\n") + block("$ phimap list\n…\n$ false || echo one\none\n") +
                block("$ phimap show nothing\nphimap: …\n[exit code 3]\n") + block("print(6 * 7)  # 42\n", "python") +
                block("one,two\n1,2\n", "text", "<!-- file: rows.csv -->\n") +
                block("mkdir folder\ncd folder\ntest -e ../rows.csv\n", "sh") + block("$ cat rows.csv\none,two\n1,2\n") +
                block('{"one": 1}\n', "json") + block("one: 1\n", "yaml") +
                block("rate(phimap_transform_rows_total[1h])\n", "promql") + block("phimapd writes this\n", "text"))
        # Text that begins with a program's name looks like a command.
        with self.assertRaises(runner.Wrong):
            self.run_page(text)
        self.assertEqual(self.run_page(text.replace("phimapd writes this", "the server writes this")), [])

    def test_a_page_leaves_nothing_behind(self):
        before = os.getcwd(), dict(os.environ)
        self.run_page(block("import os\nos.environ['LEFT'] = 'here'\n", "python"))
        self.assertEqual((os.getcwd(), dict(os.environ)), before)

    def test_a_server_that_a_page_starts_takes_its_commands(self):
        text = block("$ phimapd --data_dir=/tmp/store --log_level=error &\nphimapd ready: grpc=127.0.0.1:7450 http=127.0.0.1:7451\n"
                     "$ phimap build it --input=lab/data/spam.csv --label=label --spec='f1(landmarks=3)' --kernel='linear()'\n"
                     "$ phimap --server=OTHER show it\nphimap: …\n")
        self.assertEqual(self.run_page(text), [])

    def test_a_command_that_reads_its_input_reads_nothing_and_one_that_moves_takes_the_next_along(self):
        text = block("$ cat\n$ cd docs && export SET=here\n") + block("$ echo $(basename $PWD) $SET\ndocs here\n")
        self.assertEqual(self.run_page(text), [])

    def test_another_output_is_found(self):
        for said in ("$ echo one\ntwo\n", "$ phimap --help\nanother program\n", "$ phimap show nothing\n…\n[exit code 5]\n"):
            self.assertEqual(self.run_page(block(said)), [said.partition("\n")[2]])

    def test_blocks_that_are_wrong_are_found(self):
        for text in (block("$ false\n"), block("$ true\nphimap: it fails\n"), block("$ phimapd --no-flag &\n"), block("phimap list\n"), block("one\n", "another"),
                     block("false\ntrue\n", "sh"), block("print(1 + 1)  # 3\n", "python"), block("print(1 + 1)\n", "python"),
                     block("raise ValueError\n", "python"), block("{one: 1}\n", "json"), block("one: [1\n", "yaml"),
                     block("rate(phimap_no_such_total[1h])\n", "promql"), block("rate(up)\n", "promql"),
                     block("$ phimap list\n", "text"), block("phimap list --no-flag\n", mark="<!-- not run: an hour -->\n")):
            with self.subTest(text), self.assertRaises(runner.Wrong):
                self.run_page(text)


if __name__ == "__main__":
    unittest.main()
