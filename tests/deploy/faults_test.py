"""Injects the faults that alerts are about into a real phimapd, PostgreSQL or HAProxy, and asks a real Prometheus whether the
alert's expression holds; and does what must not alarm. How long an alert waits is tested in alerts_test.yml."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

import grpc
import proxies
import server
import shared_store
from prometheus import PATIENCE_SECONDS, POLL_SECONDS, Prometheus

ROWS = "a,b\n" + "".join(f"{i % 17},{i % 5}\n" for i in range(200))
TOKEN, WRONG = "a" * 32, "w" * 32
# Calls in 10 minutes beyond which PhimapUnauthenticated counts them as many: 0.1 a second.
MANY_CALLS = 100


def addresses():
    """Returns two free addresses, for --listen and --http of a server that is started again at the same place."""
    return proxies.free_address(), proxies.free_address()


class Phimapd:
    """A phimapd that can be stopped, killed and started again with the same addresses and data."""

    def __init__(self, folder, *flags, at=None):
        self.folder = pathlib.Path(folder)
        self.data_dir = self.folder / "data"
        self.address, self.http = at or addresses()
        self.log = self.folder / "log"
        self._flags = [f"--data_dir={self.data_dir}", f"--listen={self.address}", f"--http={self.http}", "--lame_duck_seconds=0", *flags]
        self._process = None
        self.start()

    def start(self):
        with self.log.open("a") as log:
            self._process = subprocess.Popen([server.PHIMAPD, *self._flags], stdout=subprocess.PIPE, stderr=log, text=True)
        ready = self._process.stdout.readline()
        if "phimapd ready" not in ready:
            raise RuntimeError(self.log.read_text())

    def end(self, number=signal.SIGTERM):
        self._process.send_signal(number)
        self._process.wait()
        self._process.stdout.close()

    def close(self):
        if self._process.poll() is None:
            self.end(signal.SIGKILL)

    @contextlib.contextmanager
    def asleep(self):
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)

    def phimap(self, *words):
        return subprocess.run([server.PHIMAP, f"--server={self.address}", *words], capture_output=True, text=True, check=False)

    def must(self, *words):
        done = self.phimap(*words)
        assert done.returncode == 0, done.stderr + self.log.read_text()

    def build(self, name, landmarks=5):
        rows = self.folder / "rows.csv"
        rows.write_text(ROWS)
        self.must("build", name, f"--input={rows}", f"--spec=f1(landmarks={landmarks})", "--kernel=rbf(gamma=0.1)")

    def metric(self, name):
        """Returns the sum of a metric's series."""
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", answer.read().decode(), re.M)))


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(POLL_SECONDS)


class FaultCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *flags, name="server", at=None):
        (self.folder / name).mkdir(exist_ok=True)
        phimapd = Phimapd(self.folder / name, *flags, at=at)
        self.addCleanup(phimapd.close)
        return phimapd

    def watch(self, *servers, proxies=()):
        """Starts a Prometheus, and waits until it has scraped each of the servers that run."""
        prometheus = Prometheus(*(one.http for one in servers), proxies=proxies)
        self.addCleanup(prometheus.close)
        prometheus.wait_for(f"count(phimap_info) == {len(servers)}")
        return prometheus


class CrashTest(FaultCase):
    def test_restarts_that_were_asked_for_are_no_crashes_and_kills_are(self):
        phimapd = self.start()
        prometheus = self.watch(phimapd)
        for restarts in (1, 2, 3):
            phimapd.end()
            phimapd.start()
            prometheus.wait_for(f"changes(process_start_time_seconds[15m]) == {restarts}")
        self.assertEqual(prometheus.fires("PhimapRestarts"), [])
        for _ in range(2):
            phimapd.end(signal.SIGKILL)
            phimapd.start()
        prometheus.wait_until_fires("PhimapRestarts")
        self.assertEqual(phimapd.metric("phimap_crashes_total"), 2)
        self.assertIn("crashed_before", phimapd.log.read_text())
        phimapd.end()
        phimapd.start()
        self.assertEqual(phimapd.metric("phimap_crashes_total"), 2)


class RestoredStoreTest(FaultCase):
    def test_a_store_that_was_restored_while_no_server_ran_is_seen_and_a_restart_is_not(self):
        phimapd = self.start()
        phimapd.build("letters")
        phimapd.end()
        backup = self.folder / "backup"
        shutil.copytree(phimapd.data_dir, backup)
        phimapd.start()
        prometheus = self.watch(phimapd)
        phimapd.must("alias", "set", "letters@prod", "1")
        phimapd.must("alias", "set", "letters@next", "1")
        revision = phimapd.metric("phimap_catalog_revision")
        prometheus.wait_for(f"phimap_catalog_revision == {revision}")
        phimapd.end()
        phimapd.start()
        prometheus.wait_for("changes(process_start_time_seconds[15m]) == 1")
        self.assertEqual(prometheus.fires("PhimapStoreWentBack"), [])
        phimapd.end()
        shutil.rmtree(phimapd.data_dir)
        shutil.copytree(backup, phimapd.data_dir)
        phimapd.start()
        self.assertEqual(phimapd.metric("phimap_catalog_revision"), revision - 2)
        prometheus.wait_until_fires("PhimapStoreWentBack")
        [series] = prometheus.fires("PhimapStoreWentBack")
        self.assertEqual(series["store"], (phimapd.data_dir / "blobs/STORE").read_text().strip())


class DatabaseTest(FaultCase):
    """One server with its store on PostgreSQL, and a standby."""

    def setUp(self):
        super().setUp()
        self.postgres = self.enterContext(shared_store.Postgres())
        self.phimapd = self.start("--store=" + self.postgres.create_database("phimap"))
        self.prometheus = self.watch(self.phimapd)

    def quiet(self, *alerts):
        for alert in alerts:
            self.assertEqual(self.prometheus.fires(alert), [], alert)

    def test_a_restart_of_the_database_is_no_fault_to_users_and_a_database_that_stays_away_is(self):
        self.phimapd.build("letters")
        before = self.phimapd.metric("phimap_store_faults_total")
        self.postgres.stop()
        wait_until(lambda: self.phimapd.metric("phimap_store_faults_total") > before)
        self.postgres.start()
        wait_until(lambda: self.phimapd.metric("phimap_catalog_age_seconds") < 1)
        # The server's own questions have failed, and nobody's call.
        self.prometheus.wait_for("increase(phimap_store_faults_total{code='Unavailable'}[15m]) > 0")
        self.quiet("PhimapStoreFaults", "PhimapVersionLoadFailed", "PhimapServerErrors", "PhimapHistoryChanged",
                   "PhimapStoreWentBack")
        self.phimapd.must("alias", "set", "letters@prod", "1")
        self.postgres.stop()
        done = self.phimapd.phimap("alias", "set", "letters@prod", "1")
        self.assertNotEqual(done.returncode, 0)
        self.prometheus.wait_until_fires("PhimapStoreFaults")
        self.assertEqual({series["reason"] for series in self.prometheus.fires("PhimapStoreFaults")}, {"database_unavailable"})
        self.quiet("PhimapServerErrors")

    def test_a_cache_that_cannot_be_written_is_a_line_and_a_ticket_and_fails_no_build(self):
        self.quiet("PhimapCacheNotWritten")
        copies = self.phimapd.data_dir / "cache/artifacts"
        copies.rename(copies.with_name("gone"))
        self.phimapd.build("letters")
        self.prometheus.wait_until_fires("PhimapCacheNotWritten")
        self.quiet("PhimapStoreFaults", "PhimapBuildsFail", "PhimapDiskFull")
        self.assertIn("cache_not_written", self.phimapd.log.read_text())

    def test_a_standby_that_goes_is_seen(self):
        with self.postgres.standby():
            self.prometheus.wait_for("phimap_database_standbys == 1")
            self.quiet("PhimapStandbyGone")
        self.prometheus.wait_for("phimap_database_standbys == 0")
        self.prometheus.wait_until_fires("PhimapStandbyGone")
        self.quiet("PhimapStandbyMissing")  # no commit waits for a standby


class CallersTest(FaultCase):
    def call(self, channel, token):
        try:
            channel.unary_unary("/phimap.v1.MappingService/ListMappings")(b"", timeout=10, metadata=[("authorization", "Bearer " + token)])
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.UNAUTHENTICATED)

    def test_many_calls_without_a_valid_token_are_seen_and_a_few_are_not(self):
        tokens = self.folder / "tokens"
        tokens.touch(mode=0o600)
        tokens.write_text(f"reader {TOKEN}\n")
        phimapd = self.start(f"--token_file={tokens}", "--insecure")
        prometheus = self.watch(phimapd)
        refused = "grpc_server_handled_total{grpc_code='Unauthenticated',grpc_method='ListMappings'}"
        prometheus.wait_for(f"{refused} == 0")

        def calls(token, count):
            for _ in range(count):
                # A connection that makes only refused calls is ended, so each has its own.
                with grpc.insecure_channel(phimapd.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
                    self.call(channel, token)
        calls(TOKEN, MANY_CALLS)
        calls(WRONG, 5)
        prometheus.wait_for(f"{refused} == 5")
        self.assertEqual(prometheus.fires("PhimapUnauthenticated"), [])
        calls(WRONG, MANY_CALLS)
        prometheus.wait_until_fires("PhimapUnauthenticated")

    def test_an_audit_log_that_cannot_be_written_is_seen(self):
        audit, disk = self.folder / "audit", self.folder / "disk"
        audit.symlink_to(disk)
        phimapd = self.start(f"--audit_log={audit}")
        phimapd.build("letters")
        prometheus = self.watch(phimapd)
        prometheus.wait_for("phimap_audit_log_writable == 1")
        self.assertEqual(prometheus.fires("PhimapAuditLogNotWritable"), [])
        audit.unlink()
        audit.symlink_to("/dev/full")
        phimapd.must("alias", "set", "letters@prod", "1")
        prometheus.wait_until_fires("PhimapAuditLogNotWritable")
        done = phimapd.phimap("alias", "set", "letters@next", "1")
        self.assertIn("No space left", done.stderr)
        audit.unlink()
        audit.symlink_to(disk)
        wait_until(lambda: phimapd.metric("phimap_audit_log_writable") == 1)
        phimapd.must("alias", "set", "letters@next", "1")
        self.assertEqual(len(disk.read_text().splitlines()), 3)

    def test_a_loop_that_does_not_run_while_it_has_work_is_seen(self):
        phimapd = self.start()
        phimapd.build("letters")
        prometheus = self.watch(phimapd)
        load = subprocess.Popen([server.PHIMAP, f"--server={phimapd.address}", "bench", "letters", "--seconds=600", "--json"],
                                stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (load.kill(), load.wait()))
        prometheus.wait_for("rate(phimap_transform_rows_total[1m]) > 0")
        self.assertEqual(prometheus.fires("PhimapLoopStalls"), [])

        def stalled():
            # Whether the loop is stopped in the middle of its work or while it waits is chance.
            with phimapd.asleep():
                time.sleep(1.1)
            return phimapd.metric("phimap_loop_longest_gap_seconds") > 1
        wait_until(stalled)
        prometheus.wait_until_fires("PhimapLoopStalls")


class ProxyTest(FaultCase):
    def test_calls_that_a_server_answers_are_good_at_the_proxy_and_calls_that_find_none_are_not(self):
        phimapd = self.start()
        phimapd.build("letters")
        proxies.make_certificate(self.folder)
        metrics = proxies.free_address()
        proxy = self.enterContext(proxies.Haproxy(self.folder, [phimapd.address, "127.31.7.4:7450"], metrics=metrics))
        prometheus = self.watch(phimapd, proxies=[metrics])
        prometheus.wait_for("haproxy_frontend_http_requests_total{proxy='phimap'}")

        def call(method="ListMappings"):
            with grpc.insecure_channel(proxy.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
                try:
                    channel.unary_unary("/phimap.v1.MappingService/" + method)(b"", timeout=10)
                except grpc.RpcError as error:
                    return error.code()
            return grpc.StatusCode.OK
        for _ in range(20):
            self.assertEqual(call(), grpc.StatusCode.OK)
        # The server answers these with an error, of HTTP status 200.
        for _ in range(5):
            self.assertEqual(call("DeleteVersion"), grpc.StatusCode.INVALID_ARGUMENT)
        prometheus.wait_for("job:phimap_proxy_errors:ratio_rate5m == 0")
        self.assertEqual(prometheus.fires("PhimapProxyErrorBudgetBurnsFast"), [])
        self.assertEqual(prometheus.fires("PhimapProxyDown"), [])
        phimapd.end(signal.SIGKILL)
        for _ in range(5):
            self.assertEqual(call(), grpc.StatusCode.UNAVAILABLE)
        prometheus.wait_for('ALERTS{alertname="PhimapProxyErrorBudgetBurnsFast",alertstate="firing"}')
        proxy.__exit__()
        prometheus.wait_until_fires("PhimapProxyDown")


if __name__ == "__main__":
    unittest.main()
