"""Runs Debian's Prometheus with the configuration in deploy/prometheus on a phimapd under load, one with a shared store,
and a proxy. Every query of the dashboard must have an answer."""

import math
import pathlib
import re
import tempfile
import unittest

import yaml

import proxies
import server
import shared_store
from prometheus import Prometheus


def with_variables(expression):
    """Returns the query as Grafana would send it when all servers are selected."""
    return (expression.replace("$job", ".*").replace("$instance", ".*")
            .replace("$__rate_interval", "1m"))


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server.Server(caller="the-mill")
        cls.addClassCleanup(cls.server.close)
        postgres = cls.enterClassContext(shared_store.Postgres())
        sharing = server.Server("--store=" + postgres.create_database("phimap"))
        cls.addClassCleanup(sharing.close)
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        proxies.make_certificate(pathlib.Path(folder))
        metrics = proxies.free_address()
        # The second server of the proxy does not run.
        proxy = cls.enterClassContext(proxies.Haproxy(folder, [cls.server.address, "127.31.7.4:7450"], metrics=metrics))
        cls.prometheus = Prometheus(cls.server.http_address, sharing.http_address, proxies=[metrics])
        cls.addClassCleanup(cls.prometheus.close)
        # Prometheus must scrape once while everything is zero, because a rate needs the value before the first event.
        cls.prometheus.wait_for("count(grpc_server_started_total{grpc_method='Transform'}) == 2")
        cls.prometheus.wait_for("haproxy_frontend_http_requests_total{proxy='phimap'}")
        cls.server.build()
        cls.server.set_alias("letters", "prod", 1)
        load = cls.server.start_load(seconds=600)
        cls.addClassCleanup(lambda: (load.kill(), load.wait()))
        passing = cls.server.start_load(seconds=600, through=proxy.address)
        cls.addClassCleanup(lambda: (passing.kill(), passing.wait()))
        cls.server.train()
        predictions = cls.server.start_load(seconds=600, protocol="predict", mapping="answers")
        cls.addClassCleanup(lambda: (predictions.kill(), predictions.wait()))
        cls.prometheus.wait_for("rate(phimap_transform_rows_total[1m]) > 0")
        cls.prometheus.wait_for("rate(phimap_caller_refused_total{caller='the-mill'}[1m]) >= 0")
        cls.prometheus.wait_for("job:phimap_proxy_errors:ratio_rate5m >= 0")
        cls.prometheus.wait_for("job:phimap_proxy_errors:ratio_rate1h >= 0")
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
            self.assertGreater(max(self.prometheus.query(expression)), 0, expression)

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
        recorded = yaml.safe_load((server.DEPLOY / "prometheus/recording.yml").read_text())
        self.assertEqual({rule["name"] for rule in rules},
                         {rule.get("alert") or rule["record"] for group in expected["groups"] + recorded["groups"]
                          for rule in group["rules"]})
        for rule in rules:
            # The load is of made-up rows, which the test for drift finds to differ from the letters.
            if rule["type"] == "alerting" and rule["name"] != "PhimapDrift":
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
