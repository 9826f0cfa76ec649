"""Runs one bash for all commands of a page."""

import os
import re
import signal
import subprocess


class Shell:
    def __init__(self, folder, environment):
        self._bash = subprocess.Popen(["/bin/bash"], cwd=folder, env=environment, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      start_new_session=True)

    def close(self):
        os.killpg(self._bash.pid, signal.SIGKILL)  # also ends the servers that the shell started
        self._bash.stdin.close()
        self._bash.stdout.close()
        self._bash.wait()

    def run(self, text):
        """Runs a command with empty standard input. Returns its output and its exit code."""
        self._write(f'{{ {text}\n}} < /dev/null\necho "<exit $?>"\n')
        printed = ""
        for line in self._bash.stdout:
            code = re.search(r"<exit (\d+)>$", line)
            if code:
                return printed + line[:code.start()], int(code[1])
            printed += line
        raise AssertionError(f"the shell ended: {printed}")

    def run_script(self, text):
        """Runs several lines, each of which must succeed. Variables and the current folder that they set are
        forgotten at the end."""
        return self.run(f"( set -euo pipefail\n{text})")

    def start(self, text):
        """Starts a command in the background. Returns the first line that it prints, or "" if it fails before it
        prints one."""
        self._write(f"{{ {text} || echo; }} < /dev/null &\n")
        return self._bash.stdout.readline()

    def _write(self, text):
        self._bash.stdin.write(text)
        self._bash.stdin.flush()
