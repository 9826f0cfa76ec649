"""Starts a real PostgreSQL for a test."""

import contextlib
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
            self.port = free.getsockname()[1]
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", self._data)
        self.start()
        return self

    def __exit__(self, *_):
        if (self._data / "postmaster.pid").exists():
            self.stop()
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

    def start(self):
        self._start(self._data, self.port)

    def stop(self):
        """Stops the server at once, cutting all connections."""
        self._run("pg_ctl", "stop", "-m", "immediate", "-D", self._data)

    @contextlib.contextmanager
    def standby(self):
        """Runs a standby of this server inside a `with` block. Commits do not wait for it."""
        data = self._folder / "standby"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._run("pg_basebackup", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-D", data, "-R", "-c", "fast", "--no-sync")
        self._start(data, port)
        try:
            yield
        finally:
            self._run("pg_ctl", "stop", "-m", "immediate", "-D", data)

    def _start(self, data, port):
        self._run("pg_ctl", "start", "-w", "-D", data, "-l", self._folder / "log", "-o",
                  f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off")

    def create_database(self, name):
        """Creates a database. Returns its address in the form that --store takes."""
        self._run("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", name)
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def require_tls_and_password(self, certificate, key, name, password):
        """Creates a user and a database of the same name, and from now on takes this user's connections only over TLS and
        with its password. The files are PEM."""
        self._run("psql", "-q", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-c",
                  f"CREATE ROLE {name} LOGIN PASSWORD '{password}'", "-c", f"CREATE DATABASE {name} OWNER {name}")
        for source, target in ((certificate, "server.crt"), (key, "server.key")):
            shutil.copy(source, self._data / target)
            (self._data / target).chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(self._data / target, "postgres", "postgres")
        (self._data / "pg_hba.conf").write_text(
            f"hostssl {name} {name} 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n")
        with open(self._data / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write("ssl = on\n")
        self._run("pg_ctl", "restart", "-w", "-m", "fast", "-D", self._data, "-l", self._folder / "log")
