"""Runs the real server as a process."""
from __future__ import annotations

import os
import pathlib
import signal
import subprocess


class Phimapd:
    """A phimapd on free ports, with its store in `folder`. $PHIMAPD is the path of its binary."""

    def __init__(self, folder: pathlib.Path, *flags: str) -> None:
        self._command = [os.environ["PHIMAPD"], f"--data_dir={folder}", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
                         "--log_level=error", *flags]
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        # The address of the API over HTTP, if a flag asks for it.
        self.api_http = ""

    def start(self) -> None:
        """Starts the server. Returns when the server is ready."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        ready = self._process.stdout.readline()
        assert ready.startswith("phimapd ready: grpc="), ready
        self.address = ready.split("grpc=")[1].split()[0]
        if "api_http=" in ready:
            self.api_http = ready.split("api_http=")[1].split()[0]

    def kill(self) -> None:
        """Kills the server with SIGKILL. Returns when it has ended."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        # If a sanitizer found an error, it has made the exit status nonzero and reported the error on stderr.
        assert self._end() == 0

    def _end(self) -> int:
        status = self._process.wait()
        self._process.stdout.close()
        self._process = None
        return status

    def __enter__(self) -> Phimapd:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.stop()
