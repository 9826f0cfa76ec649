"""Runs Debian's Prometheus with the configuration in deploy/prometheus, for tests."""

import json
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
# The timeout of every wait for Prometheus. The tests assert nothing else about time.
PATIENCE_SECONDS = 60
# Prometheus does not announce its scrapes, so the test polls at this interval.
POLL_SECONDS = 0.1


class Prometheus:
    """A Prometheus with deploy/prometheus that scrapes these addresses of phimapd and of HAProxy every second."""

    def __init__(self, *servers, proxies=()):
        self._folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._folder.name)
        config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
        config["global"].update(scrape_interval="1s", scrape_timeout="1s", evaluation_interval="1s")
        targets = {"phimapd": servers, "haproxy": proxies}
        for job in config["scrape_configs"]:
            del job["dns_sd_configs"]
            job["static_configs"] = [{"targets": list(targets[job["job_name"]])}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        for name in config["rule_files"]:
            (folder / name).write_text((DEPLOY / "prometheus" / name).read_text())
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

    def fires(self, alert):
        """Returns the labels of each series for which the alert's expression holds now, whether or not for long enough."""
        return [sample["metric"] for sample in self.get("query", query=rules()[alert]["expr"])["result"]]

    def wait_until_fires(self, alert):
        self.wait_for(rules()[alert]["expr"])


def rules():
    """Returns {name: rule} for all alerts."""
    groups = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}
