"""Runs real proxies, with the configurations of deploy/, in front of a test's servers. The proxies listen on Unix
sockets, or on a socket that the test has opened, so there is no port that another program could take."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile

import grpc

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
SERVER_NAME = "phimap.test"
# The timeout of every wait for a proxy. The tests assert nothing else about time.
PATIENCE_SECONDS = 60


def make_certificate(folder):
    """Makes a self-signed certificate in `folder`: certificate.pem, key.pem, and both.pem. The last contains
    certificate and key, as HAProxy requires."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", f"/CN={SERVER_NAME}", "-addext", f"subjectAltName=DNS:{SERVER_NAME}", "-days", "2",
                    "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "certificate.pem").read_text() + (folder / "key.pem").read_text())


def free_address():
    """Returns an address for a program that cannot say which port the system chose: a port that is free now, in the
    loopback network, but not of 127.0.0.1, of which other programs take ports."""
    pid = os.getpid()
    with socket.create_server((f"127.96.{pid >> 8 & 255}.{pid & 255}", 0)) as free:
        return "{}:{}".format(*free.getsockname())


def _replaced(text, old, new):
    if old not in text:
        raise AssertionError(f"the configuration does not contain {old!r} any more")
    return text.replace(old, new)


def _swapped(text, active, other):
    """Returns `text` with the lines that match `active` commented out, and the comments that match `other`
    uncommented."""
    out = []
    for line in text.splitlines(keepends=True):
        comment = re.match(r"(\s*)# (.*\n)", line)
        if comment and re.match(other, comment[2]):
            line = comment[1] + comment[2]
        elif re.match(active, line.lstrip()) and not comment:
            line = "# " + line
        out.append(line)
    if "".join(out) == text:
        raise AssertionError(f"the configuration has no comment that matches {other!r} any more")
    return "".join(out)


class Proxy:
    """A proxy that runs inside a `with` block. With `front_tls`, clients use TLS to the proxy. With `server_tls`, the
    proxy uses TLS to the servers. `metrics` is the address at which HAProxy has figures for Prometheus, in place of a
    Unix socket, from which Prometheus cannot read.

    Both use the certificate in `folder`. REQUIRES: make_certificate(folder) was called.
    """

    program = ""
    # Sockets of the test on which the proxy listens.
    descriptors = ()

    def __init__(self, folder, servers, front_tls=False, server_tls=False, metrics=None):
        self.metrics = metrics
        self.folder = pathlib.Path(folder)
        self.front_tls = front_tls
        # The path of a Unix socket has at most 108 bytes.
        self._sockets = tempfile.TemporaryDirectory()
        self.socket = f"{self._sockets.name}/{self.program}"
        self.address = f"unix:{self.socket}"
        self.config = self.folder / f"{self.program}.cfg"
        self.config.write_text(self.configuration(servers, front_tls, server_tls))
        self.log = self.folder / f"{self.program}.log"
        self._process = None

    @classmethod
    def path(cls):
        """Returns the path of the program, or None if it is not installed. Also looks in /usr/sbin, where Debian
        installs HAProxy and nginx, because only root has this folder in PATH."""
        return shutil.which(cls.program) or shutil.which(cls.program, path="/usr/sbin")

    def configuration(self, servers, front_tls, server_tls):
        raise NotImplementedError

    def command(self, *flags):
        raise NotImplementedError

    def check(self):
        """Makes the program check its configuration. Returns the exit code and the output."""
        done = subprocess.run(self.command(*self.check_flags), capture_output=True, text=True, check=False,
                              pass_fds=self.descriptors)
        return done.returncode, done.stdout + done.stderr

    def __enter__(self):
        with self.log.open("w") as log:
            self._process = subprocess.Popen(self.command(*self.run_flags), stdout=log, stderr=log,
                                             pass_fds=self.descriptors)
        with self.channel() as channel:
            ready = grpc.channel_ready_future(channel)
            for _ in range(PATIENCE_SECONDS):
                try:
                    ready.result(timeout=1)
                    return self
                except grpc.FutureTimeoutError:
                    if self._process.poll() is not None:
                        break
            ready.cancel()
        self.__exit__()
        raise RuntimeError(f"{self.program} did not start:\n{self.log.read_text()}")

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._sockets.cleanup()

    def channel(self):
        options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100),
                   ("grpc.use_local_subchannel_pool", 1)]
        if not self.front_tls:
            return grpc.insecure_channel(self.address, options)
        authority = (self.folder / "certificate.pem").read_bytes()
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(authority),
                                   [*options, ("grpc.ssl_target_name_override", SERVER_NAME)])


class Haproxy(Proxy):
    program = "haproxy"
    check_flags = ("-c",)
    run_flags = ("-db",)

    def configuration(self, servers, front_tls, server_tls):
        text = (DEPLOY / "haproxy/haproxy.cfg").read_text()
        if not front_tls:
            text = _swapped(text, r"bind .* ssl ", r"bind ")
        if server_tls:
            text = _swapped(text, r"server .* proto h2", r"server .* ssl ")
        text = _replaced(text, "bind :7450", f"bind unix@{self.socket}")
        text = _replaced(text, "bind :8405", f"bind {self.metrics or f'unix@{self.socket}.metrics'}")
        text = _replaced(text, "/etc/haproxy/phimap.pem", f"{self.folder}/both.pem")
        text = _replaced(text, "/etc/haproxy/phimap-ca.pem", f"{self.folder}/certificate.pem")
        text = _replaced(text, "phimap.internal", SERVER_NAME)
        for i, server in enumerate(servers, 1):
            text = _replaced(text, f"10.0.0.{i}:7450", server)
        return text

    def command(self, *flags):
        return [self.path(), *flags, "-f", str(self.config)]


class SharedStoreHaproxy(Haproxy):
    """HAProxy with deploy/haproxy/shared_store.cfg."""

    def configuration(self, servers, front_tls, server_tls):
        text = (DEPLOY / "haproxy/shared_store.cfg").read_text()
        replacements = [("bind :7450", f"bind unix@{self.socket}"),
                        ("bind :8405", f"bind {self.metrics or f'unix@{self.socket}.metrics'}")]
        replacements += [(f"phimapd-{i}:7450", server) for i, server in enumerate(servers, 1)]
        for old, new in replacements:
            text = _replaced(text, old, new)
        return text


class SharedStoreTlsHaproxy(Haproxy):
    """HAProxy with deploy/haproxy/shared_store_tls.cfg. Its clients are known by their addresses, so it listens on a port
    of 127.0.0.1 (`port`)."""

    def __init__(self, folder, servers, front_tls=True, server_tls=True):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.descriptors = (self._listener.fileno(),)
        self.port = self._listener.getsockname()[1]
        super().__init__(folder, servers, front_tls, server_tls)
        self.address = f"127.0.0.1:{self.port}"

    def __exit__(self, *_):
        super().__exit__()
        self._listener.close()

    def configuration(self, servers, front_tls, server_tls):
        text = (DEPLOY / "haproxy/shared_store_tls.cfg").read_text()
        replacements = [("bind :7450", f"bind fd@{self._listener.fileno()}"),
                        ("crt /etc/haproxy/phimap.pem", f"crt {self.folder}/both.pem"),
                        ("ca-file /etc/haproxy/phimap-ca.pem", f"ca-file {self.folder}/certificate.pem"),
                        ("sni str(phimap.internal) verifyhost phimap.internal",
                         f"sni str({SERVER_NAME}) verifyhost {SERVER_NAME}"),
                        ("check-sni phimap.internal", f"check-sni {SERVER_NAME}")]
        replacements += [(f"phimapd-{i}:7450", server) for i, server in enumerate(servers, 1)]
        for old, new in replacements:
            text = _replaced(text, old, new)
        return text


class Nginx(Proxy):
    program = "nginx"
    check_flags = ("-t",)
    run_flags = ()

    def configuration(self, servers, front_tls, server_tls):
        text = (DEPLOY / "nginx/nginx.conf").read_text()
        if not front_tls:
            text = _swapped(text, r"(listen .* ssl |ssl_)", r"listen .* http2")
        if server_tls:
            text = _swapped(text, r"grpc_pass grpc:", r"grpc_(pass grpcs:|ssl_)")
        return self.installed(text, servers)

    def installed(self, text, servers):
        """Returns a configuration with the addresses and files of this test, for a user who is not root."""
        text = _replaced(text, "listen 7450", f"listen unix:{self.socket}")
        text = _replaced(text, "/etc/nginx/phimap.pem", f"{self.folder}/certificate.pem")
        text = _replaced(text, "/etc/nginx/phimap.key", f"{self.folder}/key.pem")
        text = _replaced(text, "/etc/nginx/phimap-ca.pem", f"{self.folder}/certificate.pem")
        text = _replaced(text, "phimap.internal", SERVER_NAME)
        for i, server in enumerate(servers, 1):
            text = _replaced(text, f"10.0.0.{i}:7450", server)
        # By default, Debian's nginx uses folders to which only root may write.
        temporary = "".join(f"    {name}_temp_path {self.folder}/{name};\n"
                            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        text = _replaced(text, "http {\n", "http {\n" + temporary)
        return f"daemon off;\npid {self.folder}/nginx.pid;\n" + text

    def command(self, *flags):
        return [self.path(), *flags, "-p", str(self.folder), "-e", "stderr", "-c", str(self.config)]


class SharedStoreTlsNginx(Nginx):
    """nginx with deploy/nginx/shared_store_tls.conf."""

    def configuration(self, servers, front_tls, server_tls):
        return self.installed((DEPLOY / "nginx/shared_store_tls.conf").read_text(), servers)
