"""Runs every block of a page that a user could copy, in order, as a user would. All commands run in one shell, and
all Python blocks in one interpreter. The working folder looks like a checkout after a build. The output is compared
with the output that the page shows.

| block | what is done |
| --- | --- |
| "$ " commands | run; the lines below a command are its expected output, and "[exit code N]" is its expected exit code. Without such lines, the command must succeed, with any output. If the output begins with "phimap: ", the command must fail |
| sh | run, each line must succeed |
| python | run; the comment after a print call is its expected output |
| js | only in client/node/README.md, whose blocks tests/client/node/readme.test.mjs runs, where npm can be reached |
| json, yaml, promql | parsed; every metric in promql must be a metric of phimapd |
| text | not for copying, such as a table or a picture; must not look like commands |

tests/docs/page.py describes how a page marks a block that cannot be run, a block that is a file, and a hidden block.
For the page, a server runs at 127.0.0.1:7450, and OTHER is the address of a second server. If a page uses a port from
8000 to 8999 of 127.0.0.1, it is replaced by a free port.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from typing import NamedTuple

import page as pages
import printed
import server
import words
import yaml
from shell import Shell

# A script that the page's commands run instead of phimapd. It starts phimapd on free ports, because other tests run
# at the same time.
PHIMAPD_ON_FREE_PORTS = """#!/bin/bash
[ "${{1-}}" = admin ] && exec {phimapd} "$@"
listen=--listen=127.0.0.1:0 http=--http=127.0.0.1:0 others=()
for argument; do
  case "$argument" in
    --listen=*|--http=*) ;;
    *) others+=("$argument") ;;
  esac
done
exec {phimapd} "${{others[@]}}" "$listen" "$http"
"""


class Difference(NamedTuple):
    """A command whose real output differs from the output on the page."""
    command: pages.Command
    printed: str


class Wrong(AssertionError):
    """A block that does not do what the page says."""


class Runner:
    """Runs one page. `close` ends the processes that the page started, and removes the working folder. If `running`
    is given, the page uses that server, and the server keeps running."""

    def __init__(self, page, running=None):
        self._page = page
        self._closing = contextlib.ExitStack()
        self.folder = pathlib.Path(self._closing.enter_context(tempfile.TemporaryDirectory()))
        self.checkout = self._make_checkout()
        self._server = running or self._closing.enter_context(contextlib.closing(server.Server()))
        self._other = None
        # Addresses and folders on the page, and what replaces them in the test.
        self._places = {"/tmp/": f"{self.folder}/tmp/", "/var/lib/": f"{self.folder}/tmp/", "dns:///phimap:7450":
                        self._server.address, "127.0.0.1:7450": self._server.address,
                        "127.0.0.1:7451": self._server.http_address}
        self._names = {"__name__": "__main__"}
        self._enter_checkout()
        self._shell = Shell(self.checkout, os.environ)
        self._closing.callback(self._shell.close)
        self._ran = []

    def close(self):
        for value in list(self._names.values()):
            if type(value).__module__.startswith(("phimap", "grpc")) and hasattr(value, "close"):
                value.close()
        self._closing.close()

    def run(self):
        """Returns [(command, its real output)] for all commands whose output the page shows. Raises Wrong at the
        first block that fails."""
        for block in pages.blocks(self._page):
            with self._place_of(block):
                self._run_block(block)
        return self._ran

    @property
    def differences(self):
        return [Difference(command, said) for command, said in self._ran if not printed.agrees(command.said, said)]

    @contextlib.contextmanager
    def _place_of(self, block):
        try:
            yield
        except Wrong as wrong:
            raise Wrong(f"{self._page.name}:{block.line}: {wrong}") from None

    def _run_block(self, block):
        if block.not_run and block.language == "python":
            compile(block.text, self._page.name, "exec")
        elif block.not_run:
            _expect_none(words.faults(block.text))
        elif block.file:
            (self.checkout / block.file).write_text(self._here(block.text), encoding="utf-8")
            (self.checkout / block.file).chmod(0o600)
        elif block.language == "" and block.text.startswith("$ "):
            for command in pages.commands(block):
                self._run_command(command)
        elif block.language in self._LANGUAGES:
            self._LANGUAGES[block.language](self, block)
        else:
            raise Wrong(f"this block is not of a kind that is run, and is not marked as not run (see {__file__}):\n{block.text}")

    def _run_command(self, command):
        text = self._here(command.text)
        if _starts_server(text) or _in_background(text):
            said, code = self._start(text), 0
        else:
            said, code = self._shell.run(text)
        said = self._there(said if not said or said.endswith("\n") else f"{said}\n")
        told = re.search(r"^\[exit code (\d+)\]\n\Z", command.said, re.M)
        if told:
            said += f"[exit code {code}]\n"
        elif (code != 0) != command.said.startswith("phimap: "):
            raise Wrong(f"{command.text}{said}[exit code {code}]")
        if command.said:
            self._ran.append((command, said))

    def _start(self, text):
        """Starts a server, and waits until it answers. Its standard error goes to a file."""
        body = text.split("#")[0].rstrip().removesuffix("&")
        address = re.search(r"127\.0\.0\.1:(\d+)", body)
        started = f"{body} 2>> {self.folder}/servers.log"
        if not _starts_server(text):
            if not address:
                raise Wrong(f"a command in the background must contain its address 127.0.0.1:PORT: {text}")
            self._shell.run(f"{started} > /dev/null &")
            self._await(int(address[1]))
            return ""
        said = self._shell.start(started)
        ready = re.fullmatch(r"phimapd ready: grpc=(\S+) http=(\S+)\n", said)
        if not ready:
            raise Wrong(f"{text}{said}{self._log()}")
        if _in_background(text):
            self._set("PHIMAP_SERVER", ready[1])
        self._set("STARTED", ready[1])
        return "phimapd ready: grpc=127.0.0.1:7450 http=127.0.0.1:7451\n"

    def _await(self, port):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.02)
        raise Wrong(f"nothing listens on port {port}\n{self._log()}")

    def _log(self):
        log = self.folder / "servers.log"
        return log.read_text(encoding="utf-8") if log.exists() else ""

    def _run_script(self, block):
        said, code = self._shell.run_script(self._here(block.text))
        if code != 0:
            raise Wrong(f"\n{block.text}{said}[exit code {code}]\n{self._log()}")

    def _run_python(self, block):
        said, prints = printed.of_python(block.text)
        if said.count("\n") != prints:
            raise Wrong(f"every print call needs a comment with its output:\n{block.text}")
        out = io.StringIO()
        source = "\n" * (block.line - 1) + self._here(block.text)
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(source, self._page.name, "exec"), self._names)
        except Exception as error:  # any exception means that the page is wrong
            raise Wrong(f"\n{block.text}{type(error).__name__}: {error}") from error
        # Line breaks are ignored, because a print in a loop has only one comment.
        if not printed.agrees(_line(said), _line(self._there(out.getvalue()))):
            raise Wrong(f"\n{block.text}prints:\n{out.getvalue()}")

    def _read_json(self, block):
        try:
            json.loads(block.text)
        except ValueError as error:
            raise Wrong(f"{error}\n{block.text}") from error

    def _read_yaml(self, block):
        try:
            list(yaml.safe_load_all(block.text))
        except yaml.YAMLError as error:
            raise Wrong(f"{error}\n{block.text}") from error

    def _read_promql(self, block):
        rules = {"groups": [{"name": "page", "rules": [{"record": "page:block", "expr": block.text}]}]}
        file = self.folder / "rules.yml"
        file.write_text(yaml.safe_dump(rules), encoding="utf-8")
        checked = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
        if checked.returncode != 0:
            raise Wrong(f"\n{block.text}{checked.stdout}{checked.stderr}")
        with urllib.request.urlopen(f"http://{self._server.http_address}/metrics") as answer:
            known = set(re.findall(r"^# TYPE (\w+)", answer.read().decode(), re.M))
        names = set(re.findall(r"\b(?:phimap|process|grpc)_\w+", block.text))
        histograms = {f"{name}{end}" for name in known for end in ("_bucket", "_sum", "_count")}
        _expect_none([f"phimapd has no metric {name}" for name in sorted(names - known - histograms)])

    def _read_text(self, block):
        if words.looks_like_commands(block.text):
            raise Wrong(f"this block is marked as text but looks like commands:\n{block.text}")

    def _leave_js(self, block):
        if self._page.name != "client/node/README.md":
            raise Wrong(f"no test runs JavaScript of this page:\n{block.text}")

    _LANGUAGES = {"sh": _run_script, "python": _run_python, "js": _leave_js, "json": _read_json, "yaml": _read_yaml,
                  "promql": _read_promql, "text": _read_text}

    def _here(self, text):
        if "OTHER" in text and self._other is None:
            self._other = self._closing.enter_context(contextlib.closing(server.Server()))
            self._places["OTHER"] = self._other.address
        for address in re.findall(r"127\.0\.0\.1:8\d{3}\b", text):
            self._places.setdefault(address, f"127.0.0.1:{_free_port()}")
        for said, here in self._places.items():
            text = text.replace(said, here)
        return text

    def _there(self, text):
        for said, here in self._places.items():
            text = text.replace(here, said)
        return text

    def _set(self, name, value):
        os.environ[name] = value
        self._shell.run(f"export {name}={value}")

    def _make_checkout(self):
        checkout = self.folder / "checkout"
        checkout.mkdir()
        (self.folder / "tmp").mkdir()
        for entry in pages.SOURCE.iterdir():
            if entry.name not in ("build", ".git"):
                (checkout / entry.name).symlink_to(entry)
        for part in ("server", "client/cli"):
            (checkout / "build" / part).mkdir(parents=True)
        (checkout / "build/client/cli/phimap").symlink_to(server.PHIMAP)
        phimapd = checkout / "build/server/phimapd"
        phimapd.write_text(PHIMAPD_ON_FREE_PORTS.format(phimapd=server.PHIMAPD))
        phimapd.chmod(0o755)
        # Where `cmake --install build` finds what it installs.
        script = pathlib.Path(server.PHIMAPD).resolve().parents[1] / "cmake_install.cmake"
        (checkout / "build/cmake_install.cmake").symlink_to(script)
        return checkout

    def _enter_checkout(self):
        """Changes the working folder and the environment of this process, because Python blocks run in this process.
        A process must therefore run only one page."""
        before = os.getcwd(), os.environ.copy(), sys.path.copy()
        os.chdir(self.checkout)
        build = self.checkout / "build"
        python = pathlib.Path(sys.executable).parent
        os.environ["PATH"] = f"{build}/server:{build}/client/cli:{python}:{os.environ['PATH']}"
        os.environ["PHIMAP_SERVER"] = self._server.address
        sys.path.insert(0, str(self.checkout))

        def leave():
            os.chdir(before[0])
            os.environ.clear()
            os.environ.update(before[1])
            sys.path[:] = before[2]
        self._closing.callback(leave)


def _starts_server(text):
    return re.match(r"phimapd\b(?! admin\b)(?!.* --print_config\b)", text)


def _in_background(text):
    return text.split("#")[0].rstrip().endswith("&")


def _line(text):
    return f"{' '.join(text.split())}\n"


def _expect_none(faults):
    if faults:
        raise Wrong("\n".join(faults))


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
