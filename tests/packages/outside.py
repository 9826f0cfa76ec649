"""The project outside of phimap (tests/packages/outside): builds it, and runs its program against a real phimapd."""

import contextlib
import pathlib
import re
import subprocess

import server

SOURCE = pathlib.Path(__file__).resolve().parents[2]
OUTSIDE = SOURCE / "tests/packages/outside"


def run(*words, **options):
    """Runs a command, which must succeed. Returns what it prints."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def configure(folder, *arguments):
    run("cmake", "-G", "Ninja", "-S", OUTSIDE, "-B", folder, *arguments)


def output(program, **options):
    """Returns what the program prints, with N in place of the number of features, which depends on the machine."""
    with contextlib.closing(server.Server()) as running:
        said = run(program, running.address, **options)
    return re.sub(r"(features \d+ x) [1-9]\d*", r"\1 N", said)


def expected():
    return (OUTSIDE / "expected.txt").read_text(encoding="utf-8")
