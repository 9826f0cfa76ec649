"""Tests the alerts. promtool must accept them, each must have a test, and each must have an entry in the runbook."""

import pathlib
import re
import subprocess
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = SOURCE / "deploy/prometheus"
TESTS = [SOURCE / "tests/deploy" / name
         for name in ("alerts_test.yml", "objectives_test.yml", "slow_objectives_test.yml")]
# The address is absolute because the people on call see it in a message, not in a checkout.
RUNBOOK = "https://github.com/phimap/phimap/blob/main/docs/operations/mend.md#"
# Matches alerts about all servers together. They have no `instance` label that their text could contain.
OF_THE_FLEET = re.compile(r"by \(job\)|absent\(")


def alerts():
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


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
                      str(PROMETHEUS / "alerts.yml"))

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


if __name__ == "__main__":
    unittest.main()
