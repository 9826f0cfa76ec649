"""Runs Debian's Prometheus with the configuration in deploy/prometheus on a phimapd under load. Every query of the
dashboard must have an answer."""

import json
import math
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import yaml

import server

# The timeout of every wait for Prometheus. The tests assert nothing else about time.
PATIENCE_SECONDS = 60
# Prometheus does not announce its scrapes, so the test polls at this interval.
POLL_SECONDS = 0.1


class Prometheus:
    """A Prometheus with deploy/prometheus that scrapes `target` every second."""

    def __init__(self, target):
        self._folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._folder.name)
        config = yaml.safe_load((server.DEPLOY / "prometheus/prometheus.yml").read_text())
        config["global"].update(scrape_interval="1s", scrape_timeout="1s", evaluation_interval="1s")
        del config["scrape_configs"][0]["dns_sd_configs"]
        config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        for name in config["rule_files"]:
            (folder / name).write_text((server.DEPLOY / "prometheus" / name).read_text())
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True)
        self.log = ""
        self._address = self._listening()

    def _listening(self):
        """Waits until Prometheus answers requests, and returns its address, which the system has chosen for port 0.
        The two are reported in the log, in either order."""
        address = None
        is_ready = False
        for line in self._process.stderr:
            self.log += line
            found = re.search(r'msg="Listening on" address=(\S+)', line)
            if found:
                address = found.group(1)
            is_ready = is_ready or "Server is ready to receive web requests" in line
            if address and is_ready:
                return address
        raise RuntimeError("prometheus did not start:\n" + self.log)

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()
        self._folder.cleanup()

    def get(self, path, **parameters):
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(parameters, True)}"
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        """Returns the values of an instant query."""
        return [float(sample["value"][1]) for sample in
                self.get("query", query=expression)["result"]]

    def wait_for(self, expression):
        """Waits until the query has a result."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.query(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no answer to {expression}\n{self.log}")
            time.sleep(POLL_SECONDS)


def with_variables(expression):
    """Returns the query as Grafana would send it when all servers are selected."""
    return (expression.replace("$job", ".*").replace("$instance", ".*")
            .replace("$__rate_interval", "1m"))


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server()
        cls.addClassCleanup(cls.server.close)
        cls.prometheus = Prometheus(cls.server.http_address)
        cls.addClassCleanup(cls.prometheus.close)
        # Prometheus must scrape once while everything is zero, because a rate needs the value before the first event.
        cls.prometheus.wait_for("grpc_server_started_total")
        cls.server.build()
        cls.server.set_alias("letters", "prod", 1)
        load = cls.server.start_load(seconds=600)
        cls.addClassCleanup(lambda: (load.kill(), load.wait()))
        cls.server.train()
        predictions = cls.server.start_load(seconds=600, protocol="predict", mapping="answers")
        cls.addClassCleanup(lambda: (predictions.kill(), predictions.wait()))
        cls.prometheus.wait_for("rate(phimap_transform_rows_total[1m]) > 0")
        cls.prometheus.wait_for("rate(phimap_version_confidence_rows_total{mapping='answers'}[1m]) > 0")
        cls.prometheus.wait_for("rate(phimap_version_drift_rows_total{mapping='letters'}[1m]) > 0")
        cls.prometheus.wait_for("phimap_certificate_rank")
        cls.prometheus.wait_for("phimap_drift_shift_ratio")  # from 100 tested rows on
        cls.prometheus.wait_for("increase(phimap_build_phase_seconds_count{phase='publish'}[1h]) > 0")

    def test_every_query_of_the_dashboard_has_numbers(self):
        for panel in server.panels():
            for target in panel["targets"]:
                with self.subTest(panel["title"], legend=target["legendFormat"]):
                    values = self.prometheus.query(with_variables(target["expr"]))
                    self.assertTrue(values)
                    self.assertTrue(all(math.isfinite(value) for value in values), values)

    def test_what_legends_name_is_a_label_of_the_answer(self):
        for panel in server.panels():
            for target in panel["targets"]:
                for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                    with self.subTest(panel["title"], label=label):
                        answer = self.prometheus.get("query", query=with_variables(target["expr"]))
                        for sample in answer["result"]:
                            self.assertIn(label, sample["metric"])

    def test_the_load_is_seen(self):
        for expression in (
                'sum(rate(grpc_server_handled_total{grpc_method="Transform",grpc_code="OK"}[1m]))',
                "rate(phimap_transform_compute_seconds_count[1m])",
                "phimap_live_versions", "process_resident_memory_bytes"):
            self.assertGreater(self.prometheus.query(expression)[0], 0, expression)

    def test_the_variables_of_the_dashboard_have_values(self):
        for name in ("job", "instance"):
            self.assertTrue(self.prometheus.get(f"label/{name}/values", **{"match[]": "phimap_info"}))

    def test_the_annotations_query_is_valid(self):
        for annotation in server.dashboard()["annotations"]["list"]:
            self.prometheus.query(with_variables(annotation["expr"]))

    def test_all_alerts_are_evaluated_and_none_fires_on_a_healthy_server(self):
        rules = [rule for group in self.prometheus.get("rules")["groups"]
                 for rule in group["rules"]]
        expected = yaml.safe_load((server.DEPLOY / "prometheus/alerts.yml").read_text())
        self.assertEqual({rule["name"] for rule in rules},
                         {rule["alert"] for group in expected["groups"]
                          for rule in group["rules"]})
        for rule in rules:
            # The load is of made-up rows, which the test for drift finds to differ from the letters.
            if rule["name"] != "PhimapDrift":
                self.assertNotEqual(rule["state"], "firing", rule["name"])
            self.assertEqual(rule.get("lastError", ""), "", rule["name"])


class DownTest(unittest.TestCase):
    def test_a_server_that_dies_is_noticed(self):
        victim = server.Server()
        self.addCleanup(victim.close)
        prometheus = Prometheus(victim.http_address)
        self.addCleanup(prometheus.close)
        prometheus.wait_for("up == 1")
        victim.kill()
        prometheus.wait_for('ALERTS{alertname="PhimapDown",alertstate="pending"}')


if __name__ == "__main__":
    unittest.main()
