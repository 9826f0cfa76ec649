"""Runs a real phimapd with versions and load, for tests."""

import json
import os
import pathlib
import subprocess
import tempfile
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = SOURCE / "deploy"
PHIMAPD = os.environ["PHIMAPD"]
PHIMAP = os.environ["PHIMAP"]


class Server:
    """A phimapd on free ports, with its store in a temporary folder. close() kills it. `caller` is the name of the caller whom its
    token file knows, as whom the commands call; without it, all may call."""

    def __init__(self, *flags, caller=None):
        self._folder = tempfile.TemporaryDirectory()
        self._environment = dict(os.environ)
        if caller:
            tokens = pathlib.Path(self._folder.name, "tokens")
            tokens.touch(mode=0o600)
            tokens.write_text(f"{caller} admin the-token-of-{caller}\n")
            self._environment["PHIMAP_TOKEN"] = f"the-token-of-{caller}"
            flags = (*flags, f"--token_file={tokens}")
        self._process = subprocess.Popen(
            [PHIMAPD, "--data_dir=" + self._folder.name, "--listen=127.0.0.1:0",
             "--http=127.0.0.1:0", "--log_level=error", *flags],
            stdout=subprocess.PIPE, text=True)
        ready = self._process.stdout.readline()
        words = dict(word.split("=") for word in ready.split() if "=" in word)
        self.address, self.http_address = words["grpc"], words["http"]
        self.data_dir = self._folder.name

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        self.kill()
        self._process.stdout.close()
        self._folder.cleanup()

    def run(self, *arguments):
        """Runs the command `phimap`, and waits until it has ended. It must succeed."""
        subprocess.run([PHIMAP, "--server=" + self.address, *arguments], check=True,
                       stdout=subprocess.DEVNULL, env=self._environment)

    def build(self, mapping="letters", landmarks=300):
        self.run("build", mapping, f"--input={SOURCE}/lab/data/letter.csv", "--label=label",
                 f"--spec=f2(landmarks={landmarks})", "--kernel=rbf(gamma=scale)",
                 "--standardize")

    def set_alias(self, mapping, alias, version):
        self.run("alias", "set", f"{mapping}@{alias}", str(version))

    def train(self, mapping="answers", landmarks=50):
        self.run("train", mapping, f"--input={SOURCE}/lab/data/letter.csv", "--label=label", f"--spec=f2(landmarks={landmarks})",
                 "--kernel=rbf(gamma=scale)", "--standardize")

    def start_load(self, seconds, protocol="native", mapping="letters", through=None):
        """Starts a process that makes 200 calls of Transform, or of another kind, per second. This rate leaves enough CPU
        time for other tests. `through` is the address of a proxy."""
        return subprocess.Popen(
            [PHIMAP, "--server=" + (through or self.address), "bench", mapping, "--rate=200",
             f"--seconds={seconds}", "--rows=4", f"--protocol={protocol}", "--json"], stdout=subprocess.DEVNULL,
            env=self._environment)

    def scrape(self):
        with urllib.request.urlopen(f"http://{self.http_address}/metrics") as answer:
            return answer.read().decode()


def dashboard():
    return json.loads((DEPLOY / "grafana/phimap.json").read_text())


def panels():
    """Returns all panels of the dashboard that show data."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
