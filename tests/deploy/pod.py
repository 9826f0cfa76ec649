"""Runs a pod of deploy/kubernetes as processes of this machine, as the node's kubelet would.

Its volumes are folders, with the owners, modes and symbolic links of Kubernetes; its containers are processes with the
commands, arguments and environment of the manifest. Two things differ. A path inside of a container becomes the path
of its volume's folder here, wherever the manifest names it. And ports become free ones, because other tests run at the
same time: that of the database is `postgres_port` of 127.0.0.1, under the name that the manifest gives it.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import manifests

PHIMAPD = os.environ["PHIMAPD"]
# The names of ports in the manifest, and in the line that phimapd prints when it is ready.
READY_NAMES = {"grpc": "grpc", "api-http": "api_http", "http": "http"}


def _identity():
    """Returns the arguments of subprocess for the pod's user and groups; none unless this process may change them."""
    context = manifests.pod()["securityContext"]
    if os.geteuid() != 0:
        return {}
    return {"user": context["runAsUser"], "group": context["runAsGroup"], "extra_groups": [context["fsGroup"]]}


def _give_to_group(path):
    if os.geteuid() == 0:
        os.chown(path, 0, manifests.pod()["securityContext"]["fsGroup"])


def data_of(secret):
    """Returns {key: bytes} of an object Secret."""
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


class SecretVolume:
    """A folder with the keys of a Secret. update() replaces all files at once by renaming a symbolic link."""

    def __init__(self, folder, volume, data):
        folder.mkdir(mode=0o755)
        self._folder = folder
        self._volume = volume
        self._generation = 0
        self._files = {one["key"]: one["path"] for one in volume.get("items", [])}
        self.update(data)
        for name in self._names(data).values():
            (folder / name).symlink_to(f"..data/{name}")

    def _names(self, data):
        return self._files or {key: key for key in data}

    def update(self, data):
        self._generation += 1
        new = self._folder / f"..{self._generation}"
        new.mkdir(mode=0o755)
        for key, name in self._names(data).items():
            (new / name).write_bytes(data[key])
            _give_to_group(new / name)
            (new / name).chmod(self._volume["defaultMode"])
        link = self._folder / "..data_tmp"
        link.symlink_to(new.name)
        link.rename(self._folder / "..data")
        if self._generation > 1:
            shutil.rmtree(self._folder / f"..{self._generation - 1}")


class Pod:
    """A running pod. `secrets` are {name: {key: bytes}}. close() kills it, unless stop() has ended it."""

    def __init__(self, folder, secrets, postgres_port):
        self._folder = folder
        self._postgres_port = postgres_port
        self._volumes = {volume["name"]: self._lay_out(volume, secrets) for volume in manifests.pod()["volumes"]}
        self.log_file = folder / "log"
        for container in manifests.pod()["initContainers"]:
            self._run(container)
        with open(self.log_file, "wb") as log:
            self._process = self._start(manifests.server(), log)
        ready = self._process.stdout.readline()
        if '"event":"ready"' not in ready:  # the manifest chooses a log of JSON
            self.close()
            raise AssertionError(f"phimapd did not start: {self.log_file.read_text(encoding='utf-8')}")
        heard = json.loads(ready)
        self.ports = {port["name"]: int(heard[READY_NAMES[port["name"]]].rpartition(":")[2])
                      for port in manifests.server()["ports"]}

    def _run(self, container):
        subprocess.run(self.words(container), env=self._own_environment(container), cwd="/", check=True, **_identity())

    def _start(self, container, log):
        return subprocess.Popen(self.words(container), env=self._own_environment(container), cwd="/",
                                stdout=subprocess.PIPE, stderr=log, text=True, **_identity())

    def _lay_out(self, volume, secrets):
        folder = self._folder / volume["name"]
        if "secret" in volume:
            return SecretVolume(folder, volume["secret"], secrets[volume["secret"]["secretName"]])
        assert "emptyDir" in volume, volume
        folder.mkdir()
        _give_to_group(folder)
        folder.chmod(0o2777)
        return None

    def update_secret(self, name, data):
        """Writes a changed Secret into the volumes that have it."""
        for volume in manifests.pod()["volumes"]:
            if volume.get("secret", {}).get("secretName") == name:
                self._volumes[volume["name"]].update(data)

    def folder_of(self, mount):
        return self._folder / mount["name"]

    def place_of(self, mount):
        """Returns the path by which the container's process finds a volume."""
        return str(self.folder_of(mount))

    def _translated(self, container, text):
        for mount in container["volumeMounts"]:
            text = re.sub(rf"{re.escape(mount['mountPath'])}(?=/|$)", self.place_of(mount), text)
        return re.sub(r"^(--\w+=0\.0\.0\.0:)\d+$", r"\g<1>0", text)

    def _store(self, container):
        address = self._translated(container, manifests.store())
        return f"{re.sub(r':5432/', f':{self._postgres_port}/', address)}&hostaddr=127.0.0.1"

    def environment(self, container):
        found = {}
        for one in container.get("env", []):
            if "value" in one:
                found[one["name"]] = self._translated(container, one["value"])
            else:
                assert one["valueFrom"]["configMapKeyRef"]["key"] == "STORE", one
                found[one["name"]] = self._store(container)
        return found

    def _own_environment(self, container):
        # The options are for the sanitizers' builds.
        options = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        return self.environment(container) | options | {"PATH": f"{self._programs()}:/usr/bin:/bin"}

    def _programs(self):
        """Returns a folder with phimapd: a copy, because the pod's user might not be allowed to enter that of the build."""
        folder = self._folder / "bin"
        if not folder.exists():
            folder.mkdir()
            shutil.copy(PHIMAPD, folder / "phimapd")
        return folder

    def find_program(self, name):
        return shutil.which(name, path=f"{self._programs()}:/usr/bin:/bin")

    def words(self, container):
        """Returns command and arguments of a container. `$(NAME)` in them is a variable of its environment."""
        environment = self.environment(container)
        words = [self._translated(container, word) for word in container["command"] + container.get("args", [])]
        words = [re.sub(r"\$\((\w+)\)", lambda name: environment[name[1]], word) for word in words]
        return [self.find_program(words[0]), *words[1:]]

    def probe(self, name):
        """Returns whether a probe of phimapd succeeds, asked as the manifest says."""
        probe = manifests.server()[name]
        asked = probe["httpGet"]
        assert asked["scheme"] == "HTTP", asked
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[asked["port"]], timeout=probe["timeoutSeconds"])
        try:
            connection.request("GET", asked["path"])
            return 200 <= connection.getresponse().status < 400
        except OSError:
            return False
        finally:
            connection.close()

    def wait_until_started(self):
        """Waits until the startup probe succeeds, for as long as Kubernetes would."""
        probe = manifests.server()["startupProbe"]
        deadline = time.monotonic() + probe["periodSeconds"] * probe["failureThreshold"]
        while not self.probe("startupProbe"):
            assert time.monotonic() < deadline and self._process.poll() is None, self.log_file.read_text(encoding="utf-8")
            time.sleep(0.02)

    def stop(self):
        """Sends SIGTERM. Returns the exit code, or fails if Kubernetes would kill the pod before."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds_until_killed())

    def pid(self):
        assert self._process.poll() is None, self.log_file.read_text(encoding="utf-8")
        return self._process.pid

    def log(self):
        return [json.loads(line) for line in self.log_file.read_text(encoding="utf-8").splitlines()]

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def seconds_until_killed():
    """Returns how many seconds a pod has between the stop signal and SIGKILL: terminationGracePeriodSeconds minus the
    preStop sleep."""
    command = manifests.server()["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep", command
    return manifests.pod()["terminationGracePeriodSeconds"] - int(command[1])
