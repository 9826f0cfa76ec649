"""Compares the dashboard and the table of metrics with the metrics of two real phimapd: one has its store in files, and
one on PostgreSQL."""

import re
import subprocess
import tempfile
import unittest

import yaml

import server
import shared_store

METRIC = re.compile(r"\b(?:phimap|grpc_server|process)_\w+")
# What deploy/prometheus/recording.yml records about HAProxy, which has a job of its own; prometheus_test.py queries it.
RECORDED = re.compile(r"\bjob:phimap_proxy_\w+:\w+")


def names_in(expression):
    """Returns the names of all metrics of phimapd in a query."""
    without_strings = re.sub(r'"[^"]*"', '""', RECORDED.sub("", expression))
    return set(METRIC.findall(without_strings))


def queries():
    return [(panel["title"], target["expr"]) for panel in server.panels()
            for target in panel["targets"]]


# Series that a server shows only once it has tested rows for drift, for which prometheus_test.py waits, or found it.
LATER = {"phimap_drift_crossed_timestamp_seconds", "phimap_drift_shift_ratio", "phimap_drift_beyond_range_ratio",
         "phimap_caller_calls_total", "phimap_caller_refused_total", "phimap_caller_rows_total", "phimap_tls_crl_not_after_seconds"}


class DashboardTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.server = server.Server("--kernel_service=here=127.0.0.1:1", f"--audit_log={folder}/audit")
        cls.addClassCleanup(cls.server.close)
        cls.server.build(landmarks=50)
        cls.server.set_alias("letters", "prod", 1)
        load = cls.server.start_load(seconds=0.2)
        assert load.wait() == 0
        postgres = cls.enterClassContext(shared_store.Postgres())
        sharing = server.Server("--store=" + postgres.create_database("phimap"))
        cls.addClassCleanup(sharing.close)
        cls.texts = [cls.server.scrape(), sharing.scrape()]
        cls.text = "".join(cls.texts)
        cls.samples = set(re.findall(r"^(\w+)[{ ]", cls.text, re.M))
        cls.types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", cls.text, re.M))

    def labels_of(self, family):
        """Returns the names of a metric family's labels, without labels that only the type adds, such as a
        histogram's `le`."""
        found = set()
        for labels in re.findall(rf"^{family}(?:_bucket|_sum|_count)?\{{(.*)\}} ", self.text, re.M):
            found |= set(re.findall(r'(\w+)="', labels))
        return found - {"le"}

    def test_promtool_finds_nothing_wrong_with_the_exposition(self):
        for text in self.texts:
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_each_kind_of_store_shows_its_own_disk_and_no_other(self):
        disks = [set(re.findall(r"^phimap_(\w+)_disk_free_bytes ", text, re.M)) for text in self.texts]
        self.assertEqual(disks, [{"store"}, {"cache"}])

    def test_every_panel_has_description_unit_legend_and_data_source(self):
        self.assertGreater(len(server.panels()), 25)
        for panel in server.panels():
            with self.subTest(panel["title"]):
                self.assertGreater(len(panel["description"]), 20)
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                for target in panel["targets"]:
                    self.assertTrue(target["legendFormat"])
                    self.assertEqual(target["datasource"]["uid"], "${datasource}")

    def test_every_panel_with_a_limit_shows_it(self):
        for panel in server.panels():
            limited = re.search(r"_limit|_max_fds|_disk_bytes",
                                " ".join(t["expr"] for t in panel["targets"]))
            share = panel["fieldConfig"]["defaults"]["unit"] == "percentunit"
            if limited or share or "Threshold" in panel["description"]:
                with self.subTest(panel["title"]):
                    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
                    self.assertGreaterEqual(len(steps), 2)
                    self.assertTrue(all(step["value"] is not None for step in steps[1:]))
                    if panel["type"] == "timeseries":
                        style = panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]
                        self.assertNotEqual(style["mode"], "off")

    def test_alerts_that_panels_speak_of_exist(self):
        rules = yaml.safe_load((server.DEPLOY / "prometheus/alerts.yml").read_text())
        known = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
        for panel in server.panels():
            for alert in re.findall(r"\bPhimap\w+", panel["description"]):
                self.assertIn(alert, known, panel["title"])

    def test_panels_do_not_overlap_and_have_ids_of_their_own(self):
        taken = {}
        ids = set()
        for panel in server.dashboard()["panels"]:
            self.assertNotIn(panel["id"], ids)
            ids.add(panel["id"])
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} overlaps {taken.get((x, y))}")
                    taken[x, y] = panel["title"]

    def test_every_query_looks_at_the_chosen_servers_only(self):
        for title, expression in queries():
            for selector in re.findall(r"\b(?:phimap|grpc_server|process)_\w+(\{[^}]*\})?",
                                       re.sub(r'\(\w+(, \w+)*\)', "", RECORDED.sub("", expression))):
                with self.subTest(title, expression=expression):
                    self.assertIn('job=~"$job",instance=~"$instance"', expression)

    def test_every_metric_that_a_panel_or_an_alert_names_exists(self):
        rules = yaml.safe_load((server.DEPLOY / "prometheus/alerts.yml").read_text())
        expressions = queries() + [(rule["alert"], rule["expr"]) for group in rules["groups"]
                                   for rule in group["rules"]]
        for title, expression in expressions:
            for name in names_in(expression):
                self.assertIn(name, set(self.samples) | LATER, title)

    def test_the_datasource_is_chosen_in_the_dashboard(self):
        variables = {v["name"]: v for v in server.dashboard()["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        self.assertEqual(server.dashboard()["uid"], "phimap")

    def test_the_documentation_lists_every_metric_with_its_type_and_labels_and_no_other(self):
        page = "docs/operations/watch.md"
        text = (server.SOURCE / page).read_text()
        section = re.search(r"^## Metrics\n(.*?)^## ", text, re.M | re.S).group(1)
        listed = {}
        for name, kind, labels in re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", section, re.M):
            self.assertNotIn(name, listed)
            listed[name] = (kind, set(re.findall(r"`(\w+)`", labels)))
        lines = {name: number for number, line in enumerate(text.splitlines(), 1) for name in re.findall(r"^\| `(\w+)` \|", line)}
        for name, kind in self.types.items():
            labels = self.labels_of(name)
            shown = f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in sorted(labels))} |"
            with self.subTest(name):
                if name not in listed:
                    self.fail(f"{page}:{max(lines.values())}: add after this line, or where it belongs in the section Metrics, the row "
                              f"{shown} what it counts |")
                if listed[name] != (kind, labels) and name not in LATER:
                    self.fail(f"{page}:{lines[name]}: the server shows {shown}, so correct the row")
        self.assertLessEqual(LATER, set(listed))
        for name in listed.keys() - self.types.keys() - LATER:
            with self.subTest(name):
                self.fail(f"{page}:{lines[name]}: remove the row of {name}, which the server does not show")

    def test_no_family_is_shown_without_help(self):
        self.assertEqual(set(re.findall(r"^# HELP (\w+) \S", self.text, re.M)), set(self.types))


if __name__ == "__main__":
    unittest.main()
