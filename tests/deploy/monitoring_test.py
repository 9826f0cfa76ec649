"""Tests what `kubectl kustomize` renders from deploy/kubernetes/monitoring: the alerts and the dashboard that the other
tests of this folder test, and nothing else."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = SOURCE / "deploy/prometheus"
# kubectl apply keeps a copy of each object in an annotation, and an object's annotations have at most this size.
ANNOTATIONS_BYTES = 256 << 10


def render():
    done = subprocess.run(["kubectl", "kustomize", SOURCE / "deploy/kubernetes/monitoring"], capture_output=True, text=True,
                          check=True)
    return {thing["kind"]: thing for thing in yaml.safe_load_all(done.stdout) if thing}


def groups_of(name):
    return yaml.safe_load((PROMETHEUS / name).read_text())["groups"]


class MonitoringTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = render()

    def test_it_is_a_rule_and_a_dashboard_in_the_namespace_of_the_servers(self):
        self.assertEqual(set(self.rendered), {"PrometheusRule", "ConfigMap"})
        for thing in self.rendered.values():
            self.assertEqual(thing["metadata"]["namespace"], "phimap")
        self.assertEqual(self.rendered["PrometheusRule"]["apiVersion"], "monitoring.coreos.com/v1")
        self.assertEqual(set(self.rendered["PrometheusRule"]), {"apiVersion", "kind", "metadata", "spec"})

    def test_the_rules_are_those_of_prometheus(self):
        self.assertEqual(self.rendered["PrometheusRule"]["spec"],
                         {"groups": groups_of("recording.yml") + groups_of("alerts.yml")})

    def test_prometheus_reads_each_file_of_rules_that_is_rendered(self):
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
        self.assertEqual(config["rule_files"], ["recording.yml", "alerts.yml"])

    def test_the_dashboard_is_that_of_grafana_and_its_sidecar_finds_it(self):
        config = self.rendered["ConfigMap"]
        self.assertEqual(config["metadata"]["name"], "phimap-dashboard")
        self.assertEqual(config["metadata"]["labels"], {"grafana_dashboard": "1"})
        [text] = config["data"].values()
        self.assertEqual(json.loads(text), json.loads((SOURCE / "deploy/grafana/phimap.json").read_text()))

    def test_kubectl_apply_can_keep_a_copy_of_each_object(self):
        for thing in self.rendered.values():
            self.assertLess(len(json.dumps(thing)), ANNOTATIONS_BYTES)

    def test_a_rule_that_was_changed_in_one_place_alone_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for part in ("deploy/prometheus", "deploy/kubernetes/monitoring"):
                shutil.copytree(SOURCE / part, copy / part)
            (copy / "tools").mkdir()
            shutil.copy(SOURCE / "tools/prometheus_rule", copy / "tools")
            check = [copy / "tools/prometheus_rule", "--check"]
            self.assertEqual(subprocess.run(check, check=False).returncode, 0)
            alerts = copy / "deploy/prometheus/alerts.yml"
            alerts.write_text(alerts.read_text().replace("for: 1m", "for: 2m", 1))
            done = subprocess.run(check, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("run tools/prometheus_rule", done.stderr)


if __name__ == "__main__":
    unittest.main()
