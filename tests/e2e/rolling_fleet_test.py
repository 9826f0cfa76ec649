"""Restarts and upgrades two servers under load, one after the other. The servers share a PostgreSQL database and are
behind HAProxy, as in deploy/compose.yaml. No call may fail, and no build may be lost if its client follows it.

PHIMAP_TEST_ROLLS is the number of rounds (default 1).
"""

import os
import pathlib
import tempfile
import unittest

import numpy as np
import postgres
import proxies
from restarts_test import PHIMAPD, ROWS, Closing, Load, Server

import phimap

# The path of a phimapd whose schema has one more migration.
NEXT = os.environ["NEXT_PHIMAPD"]
ROLLS = int(os.environ.get("PHIMAP_TEST_ROLLS", "1"))
SPEC = {"spec": "f2(landmarks=32)", "kernel": "rbf(gamma=0.1)"}


class RollingFleetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.postgres = cls.enterClassContext(postgres.Postgres())

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start_servers(self, name):
        store = self.postgres.create_database(name)
        (self.folder / name).mkdir()
        # The lame duck lasts 3 s, because HAProxy needs two checks, a second apart, to notice that a server is
        # stopping.
        servers = [Server(self.folder / name, number, f"--store={store}", "--lame_duck_seconds=3") for number in (1, 2)]
        for server in servers:
            self.addCleanup(server.stop)
        return servers

    def roll(self, name, servers, program):
        """Restarts both servers, one after the other, with the given program."""
        with proxies.SharedStoreHaproxy(self.folder, [server.address for server in servers]) as running:
            with phimap.Client(running.address) as client:
                client.build("m", ROWS, **SPEC)
                client.set_alias("m@1", "prod")
                self.expected = client.transform("m@1", ROWS).copy()
            self.built = 0
            more = (("builds", lambda: self.builds(running.address)), ("aliases", lambda: self.aliases(running.address)))
            with Load(running.address, (), self.expected, more) as load:
                load.wait_for_calls()
                for server in servers:
                    self.assertEqual(server.stop(), 0)
                    server.start(program)
                    load.wait_for_calls(lambda: server.metric("phimap_transform_rows_total") > 0)
            self.assertEqual(load.failures[:5], [], f"{name}: {len(load.failures)} calls failed; these are the first")
            with phimap.Client(running.address) as client:
                numbers = {version.ref.number for version in client.list_versions("built")}
            # Each build must have made exactly one version. Then no build was lost or made twice.
            self.assertEqual(numbers, set(range(1, self.built + 1)))
        return load

    def builds(self, address):
        """Makes one build after the other. The client streams a build again when its server stops."""
        client = phimap.Client(address)

        def call():
            client.build("built", ROWS, seed=self.built + 1, **SPEC)
            self.built += 1
            return self.expected
        return Closing(call, client)

    def aliases(self, address):
        """Sets an alias to the version that it already has, and transforms with the alias."""
        client = phimap.Client(address)

        def call():
            client.set_alias("m@1", "prod")
            return client.transform("m@prod", ROWS)
        return Closing(call, client)

    def test_rolling_restart_loses_nothing(self):
        for i in range(ROLLS):
            name = f"restart_{i}"
            servers = self.start_servers(name)
            self.roll(name, servers, PHIMAPD)
            for server in servers:
                server.stop()

    def test_rolling_upgrade_between_two_schemas_loses_nothing(self):
        for i in range(ROLLS):
            name = f"upgrade_{i}"
            servers = self.start_servers(name)
            self.roll(name, servers, NEXT)
            for server in servers:
                server.stop()


if __name__ == "__main__":
    unittest.main()
