"""Tests the configurations of deploy/haproxy and deploy/nginx with the real programs. The configurations must be
valid, and calls through the proxies must work."""

import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import unittest

import proxies
import server

ATTEMPTS = 5  # of the command phimap, at a call that fails with UNAVAILABLE

ADMIN, READER = "a" * 20, "r" * 20


def of_program(proxy):
    """A class decorator that skips the tests if the proxy's program is not installed."""
    return unittest.skipUnless(proxy.path(), f"{proxy.program} is not installed: tools/setup installs it")


class ProxyCase:
    """The tests that both proxies must pass: once without TLS, and once with tokens and with TLS on both sides."""

    proxy: type
    tls = False

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        proxies.make_certificate(cls.folder)
        cls.running = cls.proxy(cls.folder, cls.start_servers(), cls.tls, cls.tls)
        cls.enterClassContext(cls.running)
        built = cls.phimap("build", "letters", f"--input={server.SOURCE}/lab/data/letter.csv", "--label=label",
                           "--spec=f2(landmarks=20)", "--kernel=rbf(gamma=scale)")
        assert built.returncode == 0, built.stderr

    @classmethod
    def start_servers(cls):
        """Starts the servers. Returns their addresses."""
        running = server.Server(*cls.server_flags())
        cls.addClassCleanup(running.close)
        # The second server does not run. If the proxy sends a call to it, the call must be repeated at the first
        # server.
        return [running.address, cls.nowhere()]

    @classmethod
    def server_flags(cls):
        if not cls.tls:
            return ()
        tokens = cls.folder / "tokens"
        tokens.touch(mode=0o600)
        tokens.write_text(f"admin {ADMIN}\nreader {READER}\n")
        return (f"--tls_certificate={cls.folder}/certificate.pem", f"--tls_key={cls.folder}/key.pem",
                f"--token_file={tokens}")

    @staticmethod
    def nowhere():
        """Returns an address on which nothing listens, because the tests use other addresses of the loopback
        network."""
        return "127.31.7.4:7450"

    @classmethod
    def phimap(cls, *arguments, token=ADMIN):
        access = []
        if cls.tls:
            access = [f"--tls_ca={cls.folder}/certificate.pem", f"--tls_server_name={proxies.SERVER_NAME}",
                      f"--token={token}"]
        return subprocess.run([server.PHIMAP, f"--server={cls.running.address}", *access, *arguments],
                              capture_output=True, text=True, check=False)

    def must(self, *arguments, **options):
        done = self.phimap(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr + self.running.log.read_text())
        return done

    def test_the_configuration_is_valid(self):
        status, output = self.running.check()
        self.assertEqual(status, 0, output)
        self.assertNotRegex(output, r"(?i)warn|alert|emerg")

    def test_health_passes(self):
        for _ in range(4):
            self.must("health")

    def test_every_call_finds_the_server_that_is_there(self):
        for _ in range(8):
            self.assertIn("letters", self.must("list").stdout)

    def test_rows_pass_over_a_stream(self):
        output = self.folder / "features.npy"
        said = self.must("transform", "letters", f"--input={server.SOURCE}/lab/data/letter.csv", "--label=label",
                         f"--output={output}")
        self.assertIn("20,000 rows mapped by letters@1", said.stderr)

    def test_large_messages_pass(self):
        # The request has over 2 MiB and the answer 5 MiB. Both exceed default limits of nginx or of clients.
        self.must("bench", "letters", "--rows=65536", "--seconds=1")

    def test_a_change_passes(self):
        self.must("alias", "set", "letters@prod", "1")
        self.assertIn("prod", self.must("alias", "list").stdout)


class TlsCase(ProxyCase):
    tls = True

    def test_tokens_pass(self):
        self.must("list", token=READER)
        self.assertEqual(self.phimap("delete", "letters@1", token=READER).returncode, 5)
        self.assertEqual(self.phimap("list", token="x" * 20).returncode, 5)


@of_program(proxies.Haproxy)
class HaproxyTest(ProxyCase, unittest.TestCase):
    proxy = proxies.Haproxy

    def test_the_health_check_asks_what_clients_ask(self):
        """haproxy.cfg contains the health check as hexadecimal bytes. Builds the same bytes from their meaning, and
        compares them."""
        def literal(name, value):
            return name + bytes([len(value)]) + value

        def frame(kind, flags, payload, stream=1):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

        headers = (b"\x83\x86" +  # :method POST, :scheme http
                   literal(b"\x04", b"/grpc.health.v1.Health/Check") + literal(b"\x01", b"phimapd") +
                   literal(b"\x0f\x10", b"application/grpc") + literal(b"\x00\x02te", b"trailers"))
        sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(4, 0, b"", stream=0), frame(1, 4, headers),
                frame(0, 1, bytes(5))]
        serving = frame(0, 0, b"\0\0\0\0\x02" + b"\x08\x01")
        text = (proxies.DEPLOY / "haproxy/haproxy.cfg").read_text()
        self.assertEqual(re.findall(r"tcp-check send-binary (\S+)", text), [part.hex() for part in sent])
        self.assertEqual(re.findall(r"tcp-check expect binary (\S+)", text), [serving.hex()])


@of_program(proxies.Haproxy)
class HaproxyTlsTest(TlsCase, unittest.TestCase):
    proxy = proxies.Haproxy


@of_program(proxies.Nginx)
class NginxTest(ProxyCase, unittest.TestCase):
    proxy = proxies.Nginx


@of_program(proxies.Nginx)
class NginxTlsTest(TlsCase, unittest.TestCase):
    proxy = proxies.Nginx


class Closing:
    """A server that closes each connection when a call begins, so that the proxy cannot know whether the call took
    effect."""

    HEADERS = 1

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        # The number of calls, not counting health checks. Health checks are recognized by their path, which HAProxy
        # does not compress.
        self.calls = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return  # the listener was closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as incoming:
            connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # an empty SETTINGS frame
            incoming.read(24)  # HTTP/2's preface
            while head := incoming.read(9):
                payload = incoming.read(int.from_bytes(head[:3], "big"))
                if head[3] == self.HEADERS:
                    self.calls += b"grpc.health" not in payload
                    connection.shutdown(socket.SHUT_RDWR)
                    return


class ClosingCase:
    """The first server closes its connections, and the second one works. The proxies send all changes to the first
    server."""

    proxy: type

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        proxies.make_certificate(pathlib.Path(folder.name))
        self.closing = Closing()
        self.addCleanup(self.closing.close)
        self.server = server.Server()
        self.addCleanup(self.server.close)
        self.running = self.enterContext(self.proxy(folder.name, [self.closing.address, self.server.address]))

    def phimap(self, *arguments):
        return subprocess.run([server.PHIMAP, f"--server={self.running.address}", *arguments], capture_output=True,
                              text=True, check=False)

    def test_a_change_that_may_have_been_made_is_sent_once_by_the_proxy(self):
        before = self.closing.calls
        # The client repeats a change, which has an id, but the proxy must not: other clients send changes without one.
        self.assertEqual(self.phimap("alias", "set", "letters@prod", "1").returncode, 4)
        self.assertEqual(self.closing.calls - before, ATTEMPTS)

    def test_a_read_is_made_again(self):
        for _ in range(8):
            self.assertEqual(self.phimap("list").returncode, 0)


@of_program(proxies.Haproxy)
class HaproxyClosingTest(ClosingCase, unittest.TestCase):
    proxy = proxies.Haproxy


@of_program(proxies.Nginx)
class NginxClosingTest(ClosingCase, unittest.TestCase):
    proxy = proxies.Nginx


if __name__ == "__main__":
    unittest.main()
