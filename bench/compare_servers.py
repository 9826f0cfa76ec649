"""Starts servers, floors and the phimap client for bench/compare, and makes a TLS certificate for the run."""

import os
import pathlib
import shutil
import subprocess

# Columns of bench_load.cc's messages: rows of float32.
COLUMNS = 64


def make_certificate(folder):
    """Makes a self-signed TLS certificate for 127.0.0.1, which clients also use as the
    authority."""
    certificate, key = f"{folder}/server.pem", f"{folder}/server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    return certificate, key


def has_nghttpd():
    return all(shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") for name in ("nghttpd", "h2load"))


class Program:
    """A process that prints its address on its first line."""

    quiet_since = 0  # time.monotonic() at the end of the last build on this server

    def __init__(self, command, certificate, unix):
        self.certificate = certificate
        tls = [f"--tls_certificate={certificate[0]}", f"--tls_key={certificate[1]}"] if certificate else []
        self.process = subprocess.Popen([*command, *tls], stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        words = dict(word.split("=", 1) for word in self.process.stdout.readline().split() if "=" in word)
        if "grpc" not in words:
            raise SystemExit(f"{command[0]} did not start")
        self.http = words.get("http")
        self.address = f"unix:{unix}" if unix else words["grpc"]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def client_flags(self):
        return [f"--server={self.address}"] + ([f"--tls_ca={self.certificate[0]}"] if self.certificate else [])


class Server(Program):
    """phimapd with a store of its own."""

    def __init__(self, name, program, folder, certificate=None, unix=False):
        self.name = name
        self.program = pathlib.Path(program)
        socket = f"{folder}/{name}.socket" if unix else None
        super().__init__(
            [program, f"--data_dir={folder}/store-{name}", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--log_level=error",
             *([f"--unix_listen={socket}"] if unix else [])], certificate, socket)


class Echo(Program):
    """A floor: a grpc++ server that computes nothing. `api` is callback or generic."""

    def __init__(self, build, api, arguments, folder, certificate=None):
        self.name = f"{api} echo"
        listen = f"unix:{folder}/{api}.socket" if arguments.unix else "127.0.0.1:0"
        super().__init__(
            [f"{build}/bench/echo_server", f"--api={api}", f"--listen={listen}", f"--features={arguments.landmarks}",
             f"--rows={arguments.rows}"], certificate, None)


def phimap(build, server, *words, **options):
    """Runs the client against a server and returns what it prints."""
    options.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([f"{build}/client/cli/phimap", *server.client_flags(), *words], stderr=subprocess.PIPE, text=True,
                          **options)
    if done.returncode != 0:
        raise SystemExit(f"{server.name}: phimap {' '.join(words)}: {done.stderr}")
    return done.stdout
