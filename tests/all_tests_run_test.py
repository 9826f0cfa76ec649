"""Tests that every test of every test program is run by exactly one of the program's ctest entries, and that every
test file is listed.

    all_tests_run_test.py TEST_FILES [FOLDER]

TEST_FILES has a line for each program: its path and the files for which ctest runs it (tests/CMakeLists.txt). It must
list every *_test.cc in FOLDER and below.
"""

import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys


def tests_of(program, *flags):
    """Returns the names of the tests that the program would run."""
    listed = subprocess.run([program, "--gtest_list_tests", *flags], capture_output=True, text=True)
    if listed.returncode != 0:
        print(f"{program} does not list its tests: {listed.stderr.strip()}", file=sys.stderr)
        return []  # an empty list is a fault if tests are expected
    names, suite = [], None
    for line in listed.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            names.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return names


def faults_of(program, files):
    """Returns the faults in the entries of one program, one sentence each."""
    name = os.path.basename(program)
    expected = tests_of(program)
    if len(files) == 1 and f"{name}.cc" == files[0]:  # a program of one file runs without a filter
        return [] if expected else [f"{name}: has no tests"]
    run = collections.Counter()
    faults = []
    for file in files:
        selected = tests_of(program, f"--file={file}")
        run.update(selected)
        faults += [] if selected else [f"{name}: no test of {file}"]
    faults += [f"{name}: {test} is run by no entry" for test in sorted(set(expected) - set(run))]
    faults += [f"{name}: {test} is run but not listed" for test in sorted(set(run) - set(expected))]
    faults += [f"{name}: {test} is run {count} times" for test, count in sorted(run.items()) if count > 1]
    return faults


def unlisted(folder, programs):
    known = {file for _, files in programs for file in files}
    return [f"{path}: in no phimap_test() of its folder's CMakeLists.txt"
            for path in sorted(pathlib.Path(folder).rglob("*_test.cc")) if path.name not in known]


def main(test_files, folder=None):
    lines = pathlib.Path(test_files).read_text(encoding="utf-8").splitlines()
    programs = [(line.split()[0], line.split()[1:]) for line in lines]
    faults = [] if programs else [f"{test_files}: names no program"]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for found in pool.map(lambda program: faults_of(*program), programs):
            faults += found
    faults += unlisted(folder, programs) if folder else []
    print("\n".join(faults) if faults else f"{sum(len(files) for _, files in programs)} files, none without its tests")
    return 1 if faults else 0


sys.exit(main(*sys.argv[1:]))
