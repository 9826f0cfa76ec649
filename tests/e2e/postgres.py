"""Starts a real PostgreSQL for a test."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile

PROGRAMS = pathlib.Path("/usr/lib/postgresql/15/bin")


def _other_user():
    """PostgreSQL refuses to run as root. If this process runs as root, returns the arguments that make subprocess use
    the user `postgres` of Debian's package; otherwise returns none."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}


class Postgres:
    """A PostgreSQL server that runs inside a `with` block, on a free port of 127.0.0.1. It trusts all local users."""

    def __enter__(self):
        self._folder = pathlib.Path(tempfile.mkdtemp())
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", self._data)
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._folder / "log", "-o",
                  f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off")
        return self

    def __exit__(self, *_):
        self._run("pg_ctl", "stop", "-m", "immediate", "-D", self._data)
        shutil.rmtree(self._folder)

    @property
    def _data(self):
        return self._folder / "data"

    def _run(self, program, *arguments):
        done = subprocess.run([PROGRAMS / program, *map(str, arguments)], cwd="/", stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL, check=False,
                              **_other_user())
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed ({done.returncode}): {done.stdout or ''}")

    def create_database(self, name):
        """Creates a database. Returns its address in the form that --store takes."""
        self._run("createdb", "-h", "127.0.0.1", "-p", self._port, "-U", "postgres", name)
        return f"postgresql://postgres@127.0.0.1:{self._port}/{name}"
