"""Tests the configurations of deploy/haproxy and deploy/nginx for servers that share one store, with TLS on both sides,
with the real programs and two servers on one PostgreSQL. HAProxy also sends the PROXY protocol."""

import http.client
import os
import re
import socket
import ssl
import subprocess
import time
import unittest

import postgres
import proxies
import proxies_test
import server

PER_HOST = 4  # connections of a client's address, where that is known
WATCH = "/grpc.health.v1.Health/Watch"
DATABASE = postgres.Postgres()  # runs from setUpModule on


def setUpModule():
    unittest.enterModuleContext(DATABASE)


class StoreServer:
    """A phimapd on a shared store, which can be killed and started again at the same address. As the address is in the
    loopback network, but is not 127.0.0.1, no other program takes its ports."""

    def __init__(self, folder, number, *flags):
        pid = os.getpid()
        self.host = f"127.{66 + number}.{pid >> 8 & 255}.{pid & 255}"
        self.address = f"{self.host}:7450"
        self.log = folder / f"phimapd-{number}.log"
        self._flags = [f"--data_dir={folder}/server-{number}", f"--listen={self.address}", f"--http={self.host}:7451",
                       "--log_level=debug", *flags]
        self.start()

    def start(self):
        with self.log.open("a") as log:
            self._process = subprocess.Popen([server.PHIMAPD, *self._flags], stdout=subprocess.PIPE, stderr=log, text=True)
        assert "ready" in self._process.stdout.readline(), self.log.read_text()

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def await_log(self, pattern):
        """Waits for a line of the log that matches."""
        deadline = time.monotonic() + proxies.PATIENCE_SECONDS
        while not re.search(pattern, self.log.read_text()):
            if time.monotonic() > deadline:
                lines = [line for line in self.log.read_text().splitlines() if "Health/Check code=OK" not in line]
                raise AssertionError(f"no line matches {pattern!r}:\n" + "\n".join(lines))

    def metric(self, name, labels=""):
        """Returns the sum of the series of a metric whose labels contain `labels`."""
        # The proxy's address is 127.0.0.1, and what comes from there begins with a header.
        connection = http.client.HTTPConnection(self.host, 7451, source_address=("127.0.0.2", 0))
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return sum(float(line.rpartition(" ")[2]) for line in lines
                   if re.match(rf"{re.escape(name)}[ {{]", line) and labels in line)


class SharedStoreCase(proxies_test.TlsCase):
    """Two servers on one PostgreSQL, with TLS on both sides."""

    @classmethod
    def start_servers(cls):
        cls.servers = []
        store = DATABASE.create_database(cls.__name__.lower())
        for number in (1, 2):
            (cls.folder / f"server-{number}").mkdir()
            started = StoreServer(cls.folder, number, f"--store={store}", *cls.server_flags())
            cls.addClassCleanup(started.kill)
            cls.servers.append(started)
        return [started.address for started in cls.servers]

    def calls(self):
        """Returns how many calls each server has answered."""
        return [started.metric("grpc_server_handled_total", 'grpc_method="ListMappings"') for started in self.servers]

    def await_noticed(self):
        """Waits until the proxy has noticed that the first server is gone, if it checks servers."""

    def test_both_servers_answer(self):
        before = self.calls()
        while not all(now > then for now, then in zip(self.calls(), before)):  # ctest ends a test that waits for ever
            self.must("list")

    def test_a_server_that_dies_is_not_missed_and_is_used_again(self):
        self.servers[0].kill()
        for _ in range(8):
            self.must("list")
        self.await_noticed()
        self.servers[0].start()
        while self.calls()[0] == 0:
            self.must("list")

    def test_servers_with_another_certificate_are_not_used(self):
        other = self.folder / "other"
        other.mkdir()
        proxies.make_certificate(other)
        before = self.calls()
        # Clients trust this proxy, but it does not trust the servers.
        with self.proxy(other, [started.address for started in self.servers], True, True) as distrustful:
            done = subprocess.run([server.PHIMAP, f"--server={distrustful.address}", f"--tls_ca={other}/certificate.pem",
                                   f"--tls_server_name={proxies.SERVER_NAME}", f"--token={proxies_test.ADMIN}", "list"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
            # In the words of nginx and of HAProxy.
            self.assertRegex(distrustful.log.read_text(), "certificate verify failed|upstream SSL certificate|SSL handshake failure")
        self.assertEqual(self.calls(), before)


@proxies_test.of_program(proxies.SharedStoreTlsHaproxy)
class SharedStoreTlsHaproxyTest(SharedStoreCase, unittest.TestCase):
    """The servers know their clients by the PROXY protocol."""

    proxy = proxies.SharedStoreTlsHaproxy

    @classmethod
    def server_flags(cls):
        return (*super().server_flags(), "--proxy_protocol=127.0.0.1", f"--max_connections_per_host={PER_HOST}")

    def await_noticed(self):
        while "servers/first is DOWN" not in self.running.log.read_text():
            time.sleep(0.05)  # ctest ends a test that waits for ever

    def curl(self, address, method, *flags):
        """The command of a gRPC call over the proxy, with an empty message, from an address of the loopback network."""
        return ["curl", "--silent", "--show-error", "--interface", address, "--http2", "--cacert",
                self.folder / "certificate.pem", "--resolve", f"{proxies.SERVER_NAME}:{self.running.port}:127.0.0.1", "--header",
                "content-type: application/grpc", "--header", "te: trailers", "--data-binary", f"@{self.empty}", "--output",
                "/dev/null", *flags, f"https://{proxies.SERVER_NAME}:{self.running.port}{method}"]

    def setUp(self):
        self.empty = self.folder / "empty_message"
        self.empty.write_bytes(bytes(5))

    def test_the_log_has_the_client_and_not_the_proxy(self):
        subprocess.run(self.curl("127.0.0.9", "/phimap.v1.MappingService/ListMappings", "--header",
                                 "authorization: Bearer nobody"), check=True)
        line = r"method=phimap.v1.MappingService/ListMappings code=UNAUTHENTICATED .* peer=ipv4:(\S+):\d+ "
        deadline = time.monotonic() + proxies.PATIENCE_SECONDS
        peers = []
        while not peers and time.monotonic() < deadline:
            peers = [peer for started in self.servers for peer in re.findall(line, started.log.read_text())]
        self.assertEqual(set(peers), {"127.0.0.9"})

    def test_limits_by_address_are_those_of_the_client(self):
        """A client that has as many connections as an address may have is refused another; other clients are not."""
        refused = "phimap_connections_refused_by_address_total"
        watches = [subprocess.Popen(self.curl("127.0.0.10", WATCH), stderr=subprocess.DEVNULL)
                   for _ in range(len(self.servers) * PER_HOST + 1)]
        self.addCleanup(lambda: [(watch.kill(), watch.wait()) for watch in watches])
        refusing = []
        while not refusing:  # ctest ends a test that waits for ever
            refusing = [started for started in self.servers if started.metric(refused) > 0]
        refusing[0].await_log("connections_refused_by_address address=127.0.0.10 ")
        subprocess.run(self.curl("127.0.0.11", "/grpc.health.v1.Health/Check", "--fail"), check=True)
        self.must("list")

    def test_the_header_is_required_of_the_proxy_and_refused_from_others(self):
        """A client that goes round the proxy, on the proxy's machine or on another, can pose as nobody."""
        started = self.servers[0]
        header = bytes.fromhex("0d0a0d0a000d0a515549540a2111000ccb007107c0a8000bdc0401bb")  # of 203.0.113.7
        context = ssl.create_default_context(cafile=self.folder / "certificate.pem")
        context.set_alpn_protocols(["h2"])

        def connects(source, header):
            with socket.create_connection((started.host, 7450), source_address=(source, 0)) as plain:
                plain.sendall(header)
                try:
                    with context.wrap_socket(plain, server_hostname=proxies.SERVER_NAME) as secure:
                        return secure.selected_alpn_protocol() == "h2"
                except OSError:
                    return False
        counters = (("phimap_connections_ended_total", 'reason="proxy_header"'), ("phimap_handshakes_failed_total", 'reason="not_tls"'))
        before = [started.metric(*counter) for counter in counters]
        self.assertTrue(connects("127.0.0.1", header))
        self.assertTrue(connects("127.0.0.2", b""))
        self.assertFalse(connects("127.0.0.1", b""))
        self.assertFalse(connects("127.0.0.2", header))
        self.assertEqual([started.metric(*counter) for counter in counters], [count + 1 for count in before])
        started.await_log("connection_ended peer=ipv4:127.0.0.1:.* reason=proxy_header .*send-proxy-v2")


@proxies_test.of_program(proxies.SharedStoreTlsNginx)
class SharedStoreTlsNginxTest(SharedStoreCase, unittest.TestCase):
    """nginx cannot send the PROXY protocol with gRPC, so the servers know it by its own address, and exempt it from the
    limits of one."""

    proxy = proxies.SharedStoreTlsNginx

    @classmethod
    def server_flags(cls):
        return (*super().server_flags(), "--proxy=127.0.0.1", "--max_connections_per_host=1")


if __name__ == "__main__":
    unittest.main()
