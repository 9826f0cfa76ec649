"""One bash that lives through all commands of a page."""

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
        os.killpg(self._bash.pid, signal.SIGKILL)  # with the servers that it started
        self._bash.stdin.close()
        self._bash.stdout.close()
        self._bash.wait()

    def run(self, text):
        """What a command prints, and its exit code. It cannot read what is written to the shell."""
        self._write(f'{{ {text}\n}} < /dev/null\necho "<exit $?>"\n')
        printed = ""
        for line in self._bash.stdout:
            code = re.search(r"<exit (\d+)>$", line)
            if code:
                return printed + line[:code.start()], int(code[1])
            printed += line
        raise AssertionError(f"the shell ended: {printed}")

    def run_script(self, text):
        """Several lines, of which each must succeed. What they set and where they go ends with them."""
        return self.run(f"( set -euo pipefail\n{text})")

    def start(self, text):
        """Puts a command into the background: the first line that it prints, or an empty one if it fails before."""
        self._write(f"{{ {text} || echo; }} < /dev/null &\n")
        return self._bash.stdout.readline()

    def _write(self, text):
        self._bash.stdin.write(text)
        self._bash.stdin.flush()
