"""The objects of deploy/kubernetes, as `kubectl kustomize` renders them, for tests."""

import pathlib
import re
import subprocess

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = SOURCE / "deploy/kubernetes"
PAGE = SOURCE / "docs/operations/kubernetes.md"
MIB = 1 << 20
UNITS = {"": 1, "Mi": MIB, "Gi": 1 << 30}


def kustomize(folder):
    """Returns the objects of a kustomization, and what kubectl says besides."""
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=True)
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing], done.stderr


OBJECTS, COMPLAINTS = kustomize(KUBERNETES / "base")
CERTIFICATE = yaml.safe_load((KUBERNETES / "certificate.yaml").read_text(encoding="utf-8"))


def of_kind(kind):
    return [thing for thing in OBJECTS if thing["kind"] == kind]


def deployment():
    [found] = of_kind("Deployment")
    return found["spec"]


def pod():
    return deployment()["template"]["spec"]


def containers():
    """Returns all containers of a pod in the order in which they start."""
    return pod()["initContainers"] + pod()["containers"]


def server():
    [found] = pod()["containers"]
    return found


def flags():
    """Returns {flag: value} for phimapd's arguments."""
    return {name: value for name, _, value in (one.partition("=") for one in server()["args"])}


def store():
    """Returns the address of the database, which the Deployment reads from a ConfigMap."""
    [config] = [one for one in of_kind("ConfigMap") if "STORE" in one["data"]]
    return config["data"]["STORE"]


def amount(text):
    number, unit = re.fullmatch(r"(\d+)([A-Z]i|)", str(text)).groups()
    return int(number) * UNITS[unit]


def block_of_the_page(heading):
    """Returns the first block of code below a heading of docs/operations/kubernetes.md."""
    return re.search(rf"^## {heading}\n.*?^```\w*\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S).group(1)
