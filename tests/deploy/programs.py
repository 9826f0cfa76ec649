"""Reads the flags, commands and defaults of phimapd and phimap from the output of --help."""

import re
import subprocess


def _help(program, *command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True).stdout


def _flags(text):
    """Returns the flags that a help text defines at the beginning of a line, but not those that it only mentions
    elsewhere."""
    return set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z0-9_-]*)", text, re.M))


def _subcommands(text):
    return re.findall(r"^  ([a-z][a-z-]*) ", text[text.index("Subcommands:"):], re.M)


def _flags_below(program, command):
    """Returns the flags of a command and of its subcommands. For example, `set` is a subcommand of `alias`."""
    text = _help(program, command)
    below = _subcommands(text) if "Subcommands:" in text else ()
    return _flags(text).union(*(_flags(_help(program, command, one)) for one in below))


class Phimapd:
    def __init__(self, program):
        self.help = _help(program)
        self.flags = _flags(self.help) | _flags_below(program, "admin")

    def default(self, flag):
        """Returns the default that --help shows for a flag, for example in `--listen TEXT=127.0.0.1:7450`."""
        found = re.search(rf"^  {re.escape(flag)} [A-Z]+(?::[^=]*)?=(\S+)", self.help, re.M)
        if not found:
            raise AssertionError(f"phimapd --help shows no default for {flag}")
        return found.group(1)

    def default_port(self, flag):
        return int(self.default(flag).rpartition(":")[2])


class Phimap:
    def __init__(self, program):
        text = _help(program)
        self.default_server = re.search(r"^  --server TEXT=(\S+)", text, re.M).group(1)
        self.commands = _subcommands(text)
        self.flags = _flags(text).union(*(_flags_below(program, command) for command in self.commands))
