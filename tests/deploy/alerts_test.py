"""Tests the alerts. promtool must accept them, each must have a test, and each must have an entry in the runbook."""

import pathlib
import re
import subprocess
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = SOURCE / "deploy/prometheus"
TESTS = [SOURCE / "tests/deploy" / name
         for name in ("alerts_test.yml", "objectives_test.yml", "slow_objectives_test.yml", "proxy_objectives_test.yml",
                      "slow_proxy_objectives_test.yml")]
# The address is absolute because the people on call see it in a message, not in a checkout.
RUNBOOK = "https://github.com/phimap/phimap/blob/main/docs/operations/mend.md#"
# Matches alerts about all servers together. They have no `instance` label that their text could contain.
OF_THE_FLEET = re.compile(r"by \(job(?:, store)?\)|absent\(|job:")
# Matches alerts whose cause or remedy depends on where the store is, so that the runbook must say both.
OF_THE_STORE = re.compile(r"phimap_(?:store|cache|catalog|history|database|synchronous|damaged|version_load|crashes)_|"
                          r"phimap_builds_ended|database_")
METRIC = re.compile(r"\b[a-z]\w*(?=\{)")


def alerts():
    return rules_of("alerts.yml")


def rules_of(name):
    groups = yaml.safe_load((PROMETHEUS / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recorded():
    """Returns {name: expression} for the recording rules."""
    return {rule["record"]: rule["expr"] for rule in rules_of("recording.yml")}


def metrics_in(expression):
    """Returns the metrics that a query reads, those of recorded series among them."""
    for name, read in recorded().items():
        expression = expression.replace(name, read)
    return set(METRIC.findall(expression))


def runbook_entries():
    """Returns {heading: text} for the section "Alerts" of docs/operations/mend.md."""
    text = (SOURCE / "docs/operations/mend.md").read_text()
    section = re.search(r"^## Alerts\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
    parts = re.split(r"^### (.*)\n", section, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class AlertsTest(unittest.TestCase):
    def promtool(self, *arguments):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_accepts_configuration_and_rules_without_a_lint(self):
        self.promtool("check", "config", "--lint=all", "--lint-fatal",
                      str(PROMETHEUS / "prometheus.yml"))
        self.promtool("check", "rules", "--lint=all", "--lint-fatal",
                      str(PROMETHEUS / "recording.yml"), str(PROMETHEUS / "alerts.yml"))

    def test_the_unit_tests_of_the_alerts_pass(self):
        self.promtool("test", "rules", *map(str, TESTS))

    def test_each_alert_is_tested_to_fire_and_to_be_quiet(self):
        fires, quiet = set(), set()
        for group in (group for path in TESTS for group in yaml.safe_load(path.read_text())["tests"]):
            for case in group["alert_rule_test"]:
                (fires if case.get("exp_alerts") else quiet).add(
                    (case["alertname"], group["name"]))
        for alert in (rule["alert"] for rule in alerts()):
            self.assertIn((alert, alert + " fires"), fires)
            self.assertIn((alert, alert + " is quiet"), quiet)

    def test_an_alert_is_quiet_for_other_reasons_than_that_nothing_is_known(self):
        """A case in which an alert must be quiet gives it something to judge: all metrics that it reads, or those of one
        side of an `or`."""
        cases = {group["name"]: {re.match(r"\w+", series["series"])[0] for series in group["input_series"]}
                 for path in TESTS for group in yaml.safe_load(path.read_text())["tests"]}
        for rule in alerts():
            with self.subTest(rule["alert"]):
                known = cases[rule["alert"] + " is quiet"]
                self.assertTrue(any(metrics_in(side) <= known for side in re.split(r"\bor\b", rule["expr"])),
                                metrics_in(rule["expr"]) - known)

    def test_recorded_ratios_differ_in_their_window_alone(self):
        windows = set()
        for name, expression in recorded().items():
            [window] = set(re.findall(r"\[(\w+)\]", expression))
            self.assertTrue(name.endswith(":ratio_rate" + window), name)
            windows.add(window)
            self.assertEqual(expression.replace(f"[{window}]", "[5m]"), recorded()["job:phimap_proxy_errors:ratio_rate5m"])
        read = {name for rule in alerts() for name in re.findall(r"job:phimap_proxy_errors:\w+", rule["expr"])}
        self.assertEqual(read, set(recorded()))

    def test_each_alert_says_how_bad_it_is_and_where_to_read_on(self):
        names = [rule["alert"] for rule in alerts()]
        self.assertEqual(len(set(names)), len(names))
        for rule in alerts():
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
                self.assertEqual(rule["annotations"]["runbook_url"],
                                 RUNBOOK + rule["alert"].lower())
                of_the_fleet = OF_THE_FLEET.search(rule["expr"])
                self.assertIn("{{ $labels.job }}" if of_the_fleet and "by (job, instance)" not in rule["expr"]
                              else "{{ $labels.instance }}", rule["annotations"]["summary"])
                self.assertTrue(rule["annotations"]["description"])

    def test_the_runbook_has_an_entry_for_each_alert_and_for_no_other(self):
        entries = runbook_entries()
        self.assertEqual(list(entries), [rule["alert"] for rule in alerts()])
        for alert, text in entries.items():
            for part in ("**Means**", "**Look**", "**Do**"):
                self.assertIn(part, text, alert)

    def test_the_runbook_has_both_stores_where_they_differ(self):
        entries = runbook_entries()
        of_the_store = [rule["alert"] for rule in alerts() if OF_THE_STORE.search(rule["expr"])]
        self.assertGreater(len(of_the_store), 15)
        for alert in of_the_store:
            for store in ("**SQLite**", "**PostgreSQL**"):
                self.assertIn(store, entries[alert], alert)


if __name__ == "__main__":
    unittest.main()
