"""Checks commands that a page shows but that no test runs, in blocks and in sentences. Their programs, flags, files,
build targets and tests must exist."""

import os
import re
import shlex
import subprocess

import page
import server

# Programs of other projects. Their own arguments are not checked, but a phimap command among the arguments is.
FOREIGN = {"apt", "cmake", "docker", "kubectl", "ninja", "npm", "node", "psql", "/usr/bin/python3", "venv/bin/pip",
           "build/python/venv/bin/python"}
IMAGE = "phimap"


def faults(text):
    """Returns a sentence for each mistake in a block of commands."""
    found = []
    for words in commands(text):
        found += _faults_of(words)
    return found


def faults_in_sentences(text):
    """Returns a sentence for each mistake in the commands that a text shows in backquotes. Only commands that begin
    with a program of this repository are checked."""
    found = []
    for span in re.findall(r"`([^`\n]+)`", re.sub(page.FENCED, "", text, flags=re.M | re.S)):
        if re.match(r"(phimapd?|(tools|bench|lab|build/bench|build/tests/\S+)/\w+)( |$)", span):
            found += faults(span)
    return found


def looks_like_commands(text):
    """Returns true if some line of the text looks like a command."""
    return any(line.startswith("$ ") or _is_program(line.split()[0]) for line in text.splitlines() if line.strip())


def commands(text):
    """Returns the words of each command, without comments and without the "$ " at its beginning."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    found = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [words for words in found if words]


def _is_program(word):
    path = page.SOURCE / word
    return word in {"phimap", "phimapd"} | FOREIGN or ("/" in word and path.is_file() and os.access(path, os.X_OK))


def _faults_of(words):
    program, arguments = words[0], words[1:]
    if program in ("phimap", "phimapd"):
        return _unknown_flags(program, arguments, _help(program, arguments))
    if program in FOREIGN:
        return _faults_of_foreign(arguments)
    if program.startswith("build"):
        return _faults_of_built(program, arguments)
    path = page.SOURCE / program
    if not (path.is_file() and os.access(path, os.X_OK)):
        return [f"{program}: there is no such program"]
    return _unknown_flags(program, arguments, _said_by(path)) + _faults_of_names(program, arguments)


def _faults_of_foreign(arguments):
    folders = [entry.name for entry in page.SOURCE.iterdir() if entry.is_dir()]
    found = [f"{word}: there is no such file" for word in arguments
             if word.partition("/")[0] in folders and not (page.SOURCE / word).exists()]
    if IMAGE in arguments and arguments[0] == "run":
        flags = arguments[arguments.index(IMAGE) + 1:]
        found += _unknown_flags("phimapd", flags, _help("phimapd", []))
    return found


def _faults_of_built(program, arguments):
    """Checks a command that runs build/tests/FOLDER/PROGRAM or build/bench/PROGRAM."""
    folder, name = os.path.split(program.partition("/")[2])
    sources = page.SOURCE / folder
    cmake = sources / "CMakeLists.txt"
    if name == folder.removeprefix("tests/").replace("/", "_") + "_tests" and cmake.is_file():
        known = "--file --gtest_filter"
    elif cmake.is_file() and re.search(rf"\b{re.escape(name.removesuffix('_fuzz'))}\b", cmake.read_text(encoding="utf-8")):
        known = "".join(path.read_text(encoding="utf-8") for path in sources.glob("*.cc"))
        known = re.sub(r'"(\w+)"', r"--\1", known) + "-max_total_time -max_len"
    else:
        return [f"{program}: no such program is built"]
    found = _unknown_flags(program, arguments, known)
    for flag in arguments:
        if flag.startswith("--file=") and not (sources / flag.partition("=")[2]).is_file():
            found.append(f"{program}: there is no {flag.partition('=')[2]}")
    return found


def _faults_of_names(program, arguments):
    """Checks the arguments of three tools: targets of tools/build, tests of tools/run_tests, and experiments of
    lab/run."""
    names = {path.stem for path in (page.SOURCE / "tests").glob("**/*_test.*")}
    found = [f"{program}: no test has {pattern} in its name" for flag, pattern in zip(arguments, arguments[1:])
             if flag == "-R" and not any(pattern in name for name in names)]
    if program == "tools/build":
        found += [f"{program}: there is no target {target}" for target in arguments[1:]
                  if not target.startswith("-") and target not in _targets()]
    if program == "lab/run":
        found += [f"{program}: there is no experiment {name}" for name in arguments
                  if not name.startswith("-") and not (page.SOURCE / f"lab/results/{name}").is_dir()]
    return found


def _targets():
    """Returns all build targets: the programs and libraries that CMake files list, and those that are named after
    their folder."""
    found = set()
    # Without the folders of builds, in which tests that run at the same time mount /proc.
    folders = [entry for entry in page.SOURCE.iterdir() if entry.is_dir() and not entry.name.startswith(("build", "."))]
    for path in [page.SOURCE / "CMakeLists.txt", *(path for folder in folders for path in folder.glob("**/CMakeLists.txt"))]:
        folder = path.parent.relative_to(page.SOURCE)
        found |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        found.add(str(folder).removeprefix("tests/").replace("/", "_") + "_tests")
        found.add(f"phimap_{folder.name}")
    return found


def _help(program, arguments):
    words = [word for word in arguments if not word.startswith("-")]
    path = server.PHIMAP if program == "phimap" else server.PHIMAPD
    asked = [subprocess.run([path, *command, "--help"], capture_output=True, text=True, check=False)
             for command in ([], words)]
    return "".join(answer.stdout for answer in asked if answer.returncode == 0)


def _said_by(path):
    """Returns the text of a script, and the texts of the files in its folder that it calls."""
    text = path.read_text(encoding="utf-8")
    called = [other for other in path.parent.iterdir() if other.is_file() and other.name in text and other.suffix in ("", ".py", ".sh")]
    return text + "".join(other.read_text(encoding="utf-8") for other in called)


def _unknown_flags(program, arguments, known):
    flags = [word.partition("=")[0] for word in arguments if word.startswith("--") and word != "--"]
    return [f"{program} has no flag {flag}" for flag in flags if not re.search(rf"{flag}\b", known)]
