"""Measures how many faults in the product its tests find, so that the power of the suite can be kept.

    faults.py choose [--count=40] [--seed=1] [--each=4]   prints proposals for new faults, as JSON
    faults.py plant TREE                                  writes all faults of faults.json into the sources of TREE
    faults.py run TREE --results=FILE                     builds TREE, runs the tests with each fault, writes FILE
    faults.py compare BEFORE AFTER                        compares two of those files; exits 1 if a fault got lost

TREE is a copy of the repository, for example of `cp -a`, so that a finished build in its folder build/ is not made
again. All faults are compiled in at once, each behind a switch, and the environment variable PHIMAP_FAULT=7 switches
on the seventh; without it the tree behaves as before. The table is this:

  number       what PHIMAP_FAULT is set to
  folder       where the fault was in the product when it was chosen; it says which tests run
  what         one sentence: what the product does wrong
  original     text that stands exactly once in the product
  replacement  what stands there instead; FAULT is true if the fault is switched on
  chosen       "seeded" if it comes from `choose`, "by hand" if it was put where much depends on the code

**Finding the place.** A fault is found by its original text alone, in whichever file of the product it stands, so that
code may move. White space and comments do not count. If the text is in no place or in several, `plant` fails and names
the fault; then the text in the table, and the names in its replacement, have to follow the code, and the fault must
stay the same.

**Folders and tests.** "tests" of faults.json gives for each folder the tests that run: regular expressions for
FOLDER/NAME, where NAME is the test in ctest and FOLDER its folder in tests/, such as server/rpc/tls_rpc_test. Those of
the first expression run first, then those of the next; "$contract" and "$rpc" stand for the expressions in "common". An
expression must match a test from its start. One that matches none is an error, so the table has to follow when
tests are renamed or their folders move.

**Found** is a fault if a test fails or crashes in two runs of two, or if the tests hang, which they do if they take
more than --limit seconds. Before the first fault all these tests must pass without any. A fault that is missed is not
a failure of this program: what counts is whether a later suite still finds those that this one found.
"""

import argparse
import bisect
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PRODUCT = ("core", "server", "client", "proto")
HEADER = "planted_fault.h"
HEADER_TEXT = """#pragma once
#include <cstdlib>

namespace phimap_planted {
inline bool Fault(int number) {
  static const int kOn = [] {
    const char* const text = std::getenv("PHIMAP_FAULT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number == kOn;
}
}  // namespace phimap_planted
"""
# The parts of C++ that matter here: raw strings, strings, characters but not the ' in 1'000, and comments.
PARTS = re.compile(r'R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\''
                   r"|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<space>\s+)", re.DOTALL)


def sources(tree):
    for folder in PRODUCT:
        for path in sorted((tree / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                yield path.relative_to(tree), path.read_text()


# --- plant


def bare(text):
    """Returns the text without white space and comments, and where each of its characters was."""
    characters, places = [], []
    at = 0
    for part in [*PARTS.finditer(text), None]:
        start = len(text) if part is None else part.start()
        characters += text[at:start]
        places += range(at, start)
        if part is not None:
            at = part.end()
            if part["comment"] is None and part["space"] is None:
                for i, character in enumerate(part[0], part.start()):
                    if not character.isspace():
                        characters.append(character)
                        places.append(i)
    return "".join(characters), places


def find(needle, haystack):
    at = haystack.find(needle)
    while at >= 0:
        yield at
        at = haystack.find(needle, at + 1)


def plant(tree):
    """Returns whether each fault has exactly one place. If so, the faults are now in the tree."""
    faults = table()["faults"]
    texts = {path: (text, *bare(text)) for path, text in sources(tree)}
    edits = {}
    wrong = []
    for fault in faults:
        needle = bare(fault["original"])[0]
        found = [(path, at) for path, (_, haystack, _) in texts.items() for at in find(needle, haystack)]
        if len(found) != 1:
            where = f"in several places: {', '.join(str(path) for path, _ in found)}" if found else "in no place"
            wrong.append(f"fault {fault['number']} ({fault['what']}): its text is {where}")
            continue
        path, at = found[0]
        places = texts[path][2]
        replacement = re.sub(r"\bFAULT\b", f"::phimap_planted::Fault({fault['number']})", fault["replacement"])
        edits.setdefault(path, []).append((places[at], places[at + len(needle) - 1] + 1, replacement, fault["number"]))
    for path, changes in edits.items():
        changes.sort()
        wrong += [f"faults {one[3]} and {two[3]} overlap in {path}" for one, two in zip(changes, changes[1:])
                  if two[0] < one[1]]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return False
    for path, changes in edits.items():
        text = texts[path][0]
        for start, end, replacement, _ in reversed(changes):
            text = text[:start] + replacement + text[end:]
        include = re.search(r"^#include", text, re.MULTILINE).start()
        (tree / path).write_text(f'{text[:include]}#include "{HEADER}"\n{text[include:]}')
    (tree / HEADER).write_text(HEADER_TEXT)
    print(f"{len(faults)} faults in {len(edits)} files")
    return True


# --- choose

BINARY = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || ",
          " || ": " && ", " + ": " - ", " - ": " + ", " * ": " + ", " += ": " -= ", " -= ": " += ",
          " + 1": "", " - 1": ""}


def masked(text):
    """Returns the text, of the same length, with blanks in place of comments, strings and lines of the preprocessor."""
    def blanks(part):
        return re.sub(r"[^\n]", " ", part[0]) if part["space"] is None else part[0]
    return re.sub(r"^#[^\n]*", lambda line: " " * len(line[0]), PARTS.sub(blanks, text), flags=re.MULTILINE)


def closing(text, at):
    """Returns the end of the parentheses that open at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text)


def switched(expression, code):
    """Yields mutations of an expression, as (kind, the expression with its switch)."""
    for operator, other in BINARY.items():
        for match in re.finditer(re.escape(operator) + (r"\b" if operator[-1] == "1" else ""), code):
            changed = expression[:match.start()] + other + expression[match.end():]
            yield f"{operator.strip()} became {other.strip() or 'nothing'}", f"FAULT ? ({changed}) : ({expression})"
    for match in re.finditer(r"\b[A-Za-z_]\w*\((\w+), (\w+)\)", code):
        if match[1] != match[2] and not re.match(r"(max|min)\(", match[0]):
            changed = f"{expression[:match.start(1)]}{match[2]}, {match[1]}{expression[match.end(2):]}"
            yield "swapped arguments", f"FAULT ? ({changed}) : ({expression})"


def mutations(text):
    """Yields (start, end, kind, replacement) for the places of a source where a fault can be put."""
    code = masked(text)
    for match in re.finditer(r"\b(?:if|while) \(", code):
        start = match.end()
        end = closing(code, start - 1)
        condition = text[start:end]
        if re.search(r"[;{]|[^=!<>]=[^=]", code[start:end]):
            continue
        yield start, end, "negated condition", f"FAULT != bool({condition})"
        for kind, expression in switched(condition, code[start:end]):
            yield start, end, kind, expression
        if match[0].startswith("if") and re.match(r"\) (return|continue|break)\b", code[end:]):
            yield start, end, "early exit dropped", f"!FAULT && ({condition})"
    for match in re.finditer(r"(?:\breturn |[\w\])] = |\w [+-]= )([^;{}=]+);", code):
        for kind, expression in switched(text[match.start(1):match.end(1)], code[match.start(1):match.end(1)]):
            yield match.start(1), match.end(1), kind, expression
    for match in re.finditer(r"(?<=[;{}]\n)( +)((?:\w+(?:::|\.|->))*[A-Za-z_]\w*\([^;{}]*\);)\n", code):
        if re.match(r"PHIMAP_(CHECK|ASSIGN)|.*\breserve\(", match[2]):
            continue  # it declares a variable, or what it does cannot be seen
        original = text[match.start(2):match.end(2)]
        yield match.start(2), match.end(2), "dropped call", f"if (!FAULT) {original}"


def places(tree):
    """Returns the files where a fault can be put, in the order of their folders, and lines of code up to each."""
    files, ends, lines = [], [], 0
    for path, text in sources(tree):
        # Code for vector units is compiled several times, and a switch inside would keep it from being vectorised.
        if path.suffix == ".cc" and "examples" not in path.parts and "HWY_" not in text:
            lines += sum(1 for line in masked(text).split("\n") if line.strip())
            files.append((path, text))
            ends.append(lines)
    return files, ends, lines


def choose(tree, count, seed, each):
    """Prints count proposals, each with some more that could replace it, spread over the lines of the product."""
    chosen = random.Random(seed)
    everything = [bare(text)[0] for _, text in sources(tree)]
    files, ends, lines = places(tree)
    proposals = []
    shift = chosen.random()
    for i in range(count):
        first = bisect.bisect_right(ends, (i + shift) / count * lines)
        folder = files[first][0].parent
        all_sites = [(path, text, site) for path, text in files if path.parent == folder for site in mutations(text)]
        chosen.shuffle(all_sites)
        sites = []
        for path, text, (start, end, kind, replacement) in all_sites:
            # The text grows to whole lines, until it is unique.
            before, after = text.rfind("\n", 0, start) + 1, text.find("\n", end)
            while sum(one.count(bare(text[before:after])[0]) for one in everything) != 1:
                before = text.rfind("\n", 0, before - 1) + 1
            if text[before:after].count("\n") < 8 and "//" not in text[before:after]:
                sites.append({"place": f"{path}:{text.count(chr(10), 0, start) + 1}", "kind": kind,
                              "original": text[before:after].strip(),
                              "replacement": (text[before:start] + replacement + text[end:after]).strip()})
            if len(sites) == each:
                break
        proposals.append({"folder": str(folder), "sites": sites})
    print(json.dumps(proposals, indent=1, ensure_ascii=False))


# --- run


def table():
    return json.loads((HERE / "faults.json").read_text())


def all_tests(tree):
    """Returns the names that ctest has for FOLDER/NAME."""
    shown = subprocess.run(["ctest", "--test-dir", tree / "build", "--show-only=json-v1"], check=True,
                           capture_output=True, text=True).stdout
    tests = {}
    for test in json.loads(shown)["tests"]:
        properties = {one["name"]: one["value"] for one in test["properties"]}
        folder = os.path.relpath(properties["WORKING_DIRECTORY"], tree / "build" / "tests")
        tests[f"{folder}/{test['name']}"] = test["name"]
    return tests


def steps(faults, tests):
    """Returns the names of the tests that run one step after another, by folder."""
    by_folder = {}
    for folder, expressions in faults["tests"].items():
        before = set()
        by_folder[folder] = []
        for expression in expressions:
            expression = faults["common"].get(expression[1:], expression) if expression[0] == "$" else expression
            names = [name for path, name in tests.items() if re.match(expression, path)]
            if not names:
                raise SystemExit(f"faults.json: {expression!r} of {folder} matches no test")
            by_folder[folder].append([name for name in names if name not in before])
            before.update(names)
    return by_folder


def kill_all_of(mark):
    """Ends what a run of ctest has left behind: the processes whose environment has its mark."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # it has ended, or is another user's


def run_tests(tree, names, fault, limit, jobs):
    """Returns the test that fails with a fault, or None."""
    expression = f"^({'|'.join(re.escape(name) for name in names)})$"
    mark = f"PHIMAP_FAULT_RUN={os.getpid()}-{fault}"
    environment = {**os.environ, "PHIMAP_FAULT": str(fault), **dict([mark.split("=")])}
    command = ["ctest", "--test-dir", tree / "build", "-j", str(jobs), "-R", expression, "--stop-on-failure",
               "--repeat", "until-pass:2"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, hung = process.communicate(timeout=limit)[0], False
    except subprocess.TimeoutExpired:
        kill_all_of(mark.encode())
        output, hung = process.communicate()[0], True
    kill_all_of(mark.encode())
    if hung:
        started = re.findall(r"Start +\d+: (\S+)", output)
        ended = set(re.findall(r"Test +#\d+: (\S+) .*(?:Passed|Failed|Exception|Timeout)", output))
        return f"{' or '.join(dict.fromkeys(name for name in started if name not in ended)) or names[0]} (hang)"
    if process.returncode == 0:
        return None
    failed = re.search(r"following tests FAILED:\s+\d+ - (\S+) \((.*)\)", output)
    if failed is None:
        raise SystemExit(output)
    return failed[1] if failed[2] == "Failed" else f"{failed[1]} ({failed[2]})"


def run(tree, results, numbers, limit, jobs):
    subprocess.run([tree / "tools" / "build", "build"], cwd=tree, check=True)
    faults = table()
    by_folder = steps(faults, all_tests(tree))
    chosen = [fault for fault in faults["faults"] if not numbers or fault["number"] in numbers]
    kept = json.loads(results.read_text()) if numbers and results.exists() else []
    started = time.monotonic()
    names = sorted({name for fault in chosen for step in by_folder[fault["folder"]] for name in step})
    broken = run_tests(tree, names, 0, 20 * limit, jobs)
    if broken is not None:
        raise SystemExit(f"{broken} fails without a fault")
    print(f"{len(names)} tests pass without a fault: {time.monotonic() - started:.0f} s", flush=True)
    rows = []
    for fault in chosen:
        start = time.monotonic()
        by = None
        for step in by_folder[fault["folder"]]:
            by = by or (run_tests(tree, step, fault["number"], limit, jobs) if step else None)
        rows.append({"number": fault["number"], "what": fault["what"], "found": by is not None, "by": by,
                     "seconds": round(time.monotonic() - start, 1)})
        print(f"{fault['number']:3} {rows[-1]['seconds']:6} s  {by or 'MISSED: ' + fault['what']}", flush=True)
        others = [row for row in kept if row["number"] not in {one["number"] for one in rows}]
        everything = sorted(others + rows, key=lambda row: row["number"])
        results.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
    print(f"found {sum(row['found'] for row in rows)} of {len(rows)} in {time.monotonic() - started:.0f} s")


# --- compare


def compare(before, after):
    """Returns whether all faults that were found are found."""
    was, now = ({row["number"]: row for row in json.loads(path.read_text())} for path in (before, after))
    lost = [row for number, row in was.items() if row["found"] and not now.get(number, {"found": False})["found"]]
    gained = [row for number, row in now.items() if row["found"] and number in was and not was[number]["found"]]
    for title, rows in (("LOST", lost), ("gained", gained)):
        for row in rows:
            print(f"{title}: {row['number']} ({row['what']}){', was found by ' + row['by'] if title == 'LOST' else ''}")
    print(f"found before {sum(row['found'] for row in was.values())} of {len(was)}, "
          f"now {sum(row['found'] for row in now.values())} of {len(now)}")
    return not lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    chooser = commands.add_parser("choose")
    chooser.add_argument("--count", type=int, default=40)
    chooser.add_argument("--seed", type=int, default=1)
    chooser.add_argument("--each", type=int, default=4, help="proposals for each place, of which a reader takes one")
    planter = commands.add_parser("plant")
    runner = commands.add_parser("run")
    for one in (planter, runner):
        one.add_argument("tree", type=pathlib.Path)
    runner.add_argument("--results", type=pathlib.Path, required=True)
    runner.add_argument("--faults", default="",
                        help="numbers, as 1,2,3, whose results replace those in the file; without it all")
    runner.add_argument("--limit", type=float, default=240, help="seconds for each step of a fault's tests")
    runner.add_argument("--jobs", type=int, default=2)
    comparer = commands.add_parser("compare")
    comparer.add_argument("before", type=pathlib.Path)
    comparer.add_argument("after", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "choose":
        choose(HERE.parents[1], arguments.count, arguments.seed, arguments.each)
    elif arguments.command == "plant":
        sys.exit(not plant(arguments.tree.resolve()))
    elif arguments.command == "run":
        numbers = {int(number) for number in arguments.faults.split(",") if number}
        run(arguments.tree.resolve(), arguments.results, numbers, arguments.limit, arguments.jobs)
    else:
        sys.exit(not compare(arguments.before, arguments.after))


if __name__ == "__main__":
    main()
