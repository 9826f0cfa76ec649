"""Checks that each flag, port and path in Dockerfile, deploy/ and docs/operations/ agrees with the programs and
with the other files."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import manifests
import names
import programs
import schema
import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PHIMAPD = programs.Phimapd(os.environ["PHIMAPD"])
PHIMAP = programs.Phimap(os.environ["PHIMAP"])

# Flags of other projects' programs that these files may contain, by the first word of the command line.
OTHERS_FLAGS = {
    "docker": {"--build", "--build-arg", "--detach", "--read-only", "--stop-timeout", "--wait", "--entrypoint", "--rm",
               "--no-deps", "--tag", "--volume"},
    "kubectl": {"--cert", "--dry-run", "--filename", "--from-file", "--key", "--kustomize", "--namespace", "--output"},
    "prometheus": {"--config.file", "--storage.tsdb.path", "--storage.tsdb.retention.time"},
}
# Flags that the Dockerfile may contain. tests/full/container.sh builds the image with it.
DOCKERFILE_FLAGS = {"--build", "--mount", "--from", "--target", "--no-install-recommends", "--gid", "--uid",
                    "--no-create-home", "--home-dir", "--shell", "--interval", "--timeout", "--start-period",
                    "--retries", "--preset"}

COMPOSE_FILES = ("compose.single.yaml", "compose.yaml")

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_.-]*[a-z0-9]")
PORT = re.compile(r"(?:127\.0\.0\.1|0\.0\.0\.0|localhost|phimapd|prometheus|grafana|HOST):(\d+)(?::(\d+))?")
REPOSITORY_PATH = re.compile(
    r"(?<![\w./-])(?:deploy|docs|tools|tests|server|core|client|proto|lab|bench)/[\w./-]*\w")


def text_of(path):
    return (SOURCE / path).read_text(encoding="utf-8")


def dockerfile():
    """Returns the instructions of the Dockerfile's last stage: {name: [arguments]}."""
    lines = [line for line in text_of("Dockerfile").splitlines() if line.strip() and not line.lstrip().startswith("#")]
    instructions = re.findall(r"^([A-Z]+) (.*)$", re.sub(r"\\\n\s*", "", "\n".join(lines)), re.M)
    last = max(i for i, (name, _) in enumerate(instructions) if name == "FROM")
    found = {}
    for name, arguments in instructions[last:]:
        found.setdefault(name, []).append(arguments)
    return found


def compose():
    return yaml.safe_load(text_of("deploy/compose.single.yaml"))


def seconds(duration):
    return int(re.fullmatch(r"(\d+)s", duration).group(1))


def binds(service):
    """Returns {path in the container: path in the repository} for the bind mounts of a service."""
    found = {}
    for volume in service.get("volumes", []):
        source, target = volume.split(":")[:2]
        if source.startswith("."):
            found[target] = (SOURCE / "deploy" / source).resolve()
    return found


def in_repository(service, path):
    """Returns the file of this repository that a service sees at `path`."""
    for target, source in binds(service).items():
        if path == target or path.startswith(target + "/"):
            return source / path[len(target):].lstrip("/") if path != target else source
    raise AssertionError(f"{path} is not in any folder or file that compose.single.yaml mounts there")


def share_a_network(one, other):
    services = compose()["services"]
    return set(services[one]["networks"]) & set(services[other]["networks"])


def served_files():
    """Returns all text files that an operator uses, except the Dockerfile."""
    files = [path for path in (SOURCE / "deploy").rglob("*") if path.suffix in (".yaml", ".yml", ".cfg", ".md")]
    return sorted(files) + sorted((SOURCE / "docs/operations").glob("*.md"))


class FlagsTest(unittest.TestCase):
    def test_the_images_entry_point_and_compose_give_phimapd_flags_that_it_has(self):
        entry = json.loads(dockerfile()["ENTRYPOINT"][-1])
        self.assertEqual(entry[0], "phimapd")
        given = entry[1:] + compose()["services"]["phimapd"]["command"]
        self.assertTrue(given)
        for flag in given:
            self.assertIn(flag.partition("=")[0], PHIMAPD.flags)

    def test_the_health_check_is_a_command_of_phimap(self):
        arguments = dockerfile()["HEALTHCHECK"][-1]
        command = json.loads(arguments[arguments.index("CMD ") + 4:])
        self.assertEqual(command[0], "phimap")
        self.assertIn(command[1], PHIMAP.commands)

    def test_every_flag_in_deploy_and_the_operators_guide_exists(self):
        known = PHIMAPD.flags | PHIMAP.flags | names.NOT_YET
        checked = 0
        for path in served_files():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                others = set().union(*(flags for program, flags in OTHERS_FLAGS.items()
                                       if re.search(rf"\b{program}\b", line) or program in path.parts))
                if path.name in COMPOSE_FILES:
                    others |= OTHERS_FLAGS["prometheus"] | {"--host", "--username"}
                for flag in FLAG.findall(line):
                    checked += 1
                    self.assertIn(flag, known | others, f"{path.relative_to(SOURCE)}:{number}: no program has this flag")
        self.assertGreater(checked, 5)

    def test_every_flag_in_the_dockerfile_exists(self):
        for flag in FLAG.findall(text_of("Dockerfile")):
            self.assertIn(flag, PHIMAPD.flags | PHIMAP.flags | OTHERS_FLAGS["docker"] | DOCKERFILE_FLAGS)

    def test_a_container_is_given_longer_to_stop_than_phimapd_drains(self):
        drain = int(PHIMAPD.default("--drain_seconds"))
        given = [seconds(compose()["services"]["phimapd"]["stop_grace_period"]),
                 *map(int, re.findall(r"--stop-timeout[= ](\d+)", text_of("Dockerfile")))]
        self.assertGreaterEqual(len(given), 2)
        for grace in given:
            self.assertGreaterEqual(grace, drain + 5)
        for named in re.findall(r"--drain_seconds, whose default is (\d+)", text_of("deploy/compose.single.yaml")):
            self.assertEqual(int(named), drain)


class BaseTest(unittest.TestCase):
    def test_the_image_records_the_base_that_both_stages_use(self):
        text = text_of("Dockerfile")
        self.assertEqual(re.findall(r"^FROM (\S+)", text, re.M), ["${BASE}"] * 2)
        self.assertEqual(len(re.findall(r"^ARG BASE=", text, re.M)), 1)
        self.assertIn("BASE", dockerfile()["ARG"])
        self.assertEqual(dockerfile()["LABEL"], ["org.opencontainers.image.base.name=${BASE}"])

    def test_tools_image_refuses_a_base_without_its_digest(self):
        for base in ("debian:bookworm-slim", "debian@sha256:12ab", "@sha256:" + "0" * 64, "debian@sha256:" + "0" * 65):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([SOURCE / "tools/image", folder, base], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, os.listdir(folder)), (2, []), done.stderr)
                self.assertIn(base + ": expected a base with its digest", done.stderr)


class ComposeTest(unittest.TestCase):
    def test_every_key_exists_and_a_planted_one_is_found(self):
        for name in COMPOSE_FILES:
            document = yaml.safe_load(text_of(f"deploy/{name}"))
            self.assertEqual(schema.compose_faults(document), [], name)
            document["services"]["prometheus"]["read_onyl"] = True
            self.assertEqual(schema.compose_faults(document), ["services.prometheus.read_onyl: there is no such field"])

    def test_two_servers_share_a_database_and_nothing_else(self):
        document = yaml.safe_load(text_of("deploy/compose.yaml"))
        servers = [document["services"][name] for name in ("phimapd-1", "phimapd-2")]
        self.assertFalse(set(servers[0]["volumes"]) & set(servers[1]["volumes"]))
        for service in servers:
            for flag in service["command"]:
                self.assertIn(flag.partition("=")[0], PHIMAPD.flags)
            self.assertNotIn("ports", service)
            self.assertIn("phimapd", service["networks"]["front"]["aliases"])
            self.assertGreaterEqual(seconds(service["stop_grace_period"]), int(PHIMAPD.default("--drain_seconds")) + 5)
        for service in document["services"].values():
            self.assertLessEqual(set(service.get("secrets", [])), set(document["secrets"]))
            for port in service.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:\d+:\d+$")


class PortsTest(unittest.TestCase):
    def test_the_image_listens_on_phimapds_own_ports_and_exposes_them(self):
        entry = json.loads(dockerfile()["ENTRYPOINT"][-1])
        for flag in ("--listen", "--http"):
            [value] = [one.partition("=")[2] for one in entry if one.startswith(flag + "=")]
            self.assertEqual(int(value.rpartition(":")[2]), PHIMAPD.default_port(flag))
        self.assertEqual({int(port) for port in dockerfile()["EXPOSE"][-1].split()},
                         {PHIMAPD.default_port("--listen"), PHIMAPD.default_port("--http")})

    def test_the_health_check_asks_where_the_image_listens(self):
        self.assertEqual(PHIMAP.default_server, f"127.0.0.1:{PHIMAPD.default_port('--listen')}")

    def test_without_encryption_a_port_is_published_on_the_loopback_only(self):
        services = compose()["services"]
        self.assertIn("--insecure", services["phimapd"]["command"])
        for name, service in services.items():
            for port in service["ports"]:
                self.assertRegex(port, r"^127\.0\.0\.1:\d+:\d+$", name)

    def test_every_port_named_is_one_that_something_listens_on(self):
        listening = {PHIMAPD.default_port("--listen"), PHIMAPD.default_port("--http")}
        listening.add(4318)  # a collector's port for OTLP over HTTP, by OpenTelemetry's protocol
        listening |= {port["containerPort"] for port in manifests.server()["ports"]}
        for service in compose()["services"].values():
            listening |= {int(port.split(":")[2]) for port in service["ports"]}
        checked = 0
        for path in [*served_files(), SOURCE / "Dockerfile"]:
            text = re.sub(r"^ *image: .*$", "", path.read_text(encoding="utf-8"), flags=re.M)  # NAME:RELEASE
            for match in PORT.finditer(text):
                checked += 1
                for port in filter(None, match.groups()):
                    self.assertIn(int(port), listening, f"{path.relative_to(SOURCE)}: {match.group(0)}")
        self.assertGreater(checked, 5)


class PathsTest(unittest.TestCase):
    def test_every_bind_mount_is_in_the_repository(self):
        checked = 0
        for name, service in compose()["services"].items():
            for source in binds(service).values():
                checked += 1
                self.assertTrue(source.exists(), f"{name}: {source} is not there")
        self.assertGreaterEqual(checked, 3)

    def test_every_named_volume_and_network_is_declared(self):
        document = compose()
        for name, service in document["services"].items():
            for volume in service.get("volumes", []):
                if not volume.startswith("."):
                    self.assertIn(volume.split(":")[0], document["volumes"], name)
            for network in service["networks"]:
                self.assertIn(network, document["networks"], name)

    def test_the_data_folder_is_made_in_the_image_for_its_user_and_is_the_volume(self):
        image = dockerfile()
        entry = json.loads(image["ENTRYPOINT"][-1])
        [data_dir] = [one.partition("=")[2] for one in entry if one.startswith("--data_dir=")]
        self.assertEqual(image["VOLUME"], [data_dir])
        self.assertRegex(" ".join(image["RUN"]), rf"install -d -o phimap [^&]*{data_dir}\b")
        uid = re.search(r"useradd --uid (\d+) --gid (\d+)", " ".join(image["RUN"]))
        self.assertEqual(image["USER"], [f"{uid.group(1)}:{uid.group(2)}"])
        targets = [volume.split(":")[1] for volume in compose()["services"]["phimapd"]["volumes"]]
        self.assertIn(data_dir, targets)

    def test_what_the_image_copies_is_let_into_the_build(self):
        allowed = {line[1:] for line in text_of(".dockerignore").splitlines() if line.startswith("!")}
        for folder in re.findall(r"^add_subdirectory\((\w+)\)", text_of("CMakeLists.txt"), re.M):
            self.assertIn(folder, allowed, "the image is built from this folder; allow it in .dockerignore")
        self.assertIn("CMakeLists.txt", allowed)
        for name in allowed:
            self.assertTrue((SOURCE / name).exists(), name)

    def test_prometheus_finds_its_files_and_phimapd(self):
        services = compose()["services"]
        prometheus = services["prometheus"]
        [config] = [one.partition("=")[2] for one in prometheus["command"] if one.startswith("--config.file=")]
        path = in_repository(prometheus, config)
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for pattern in document.get("rule_files", []):
            self.assertTrue(list(path.parent.glob(pattern.removeprefix("/etc/prometheus/"))), pattern)
        targets = [f"{name}:{found['port']}" for job in document["scrape_configs"] for found in job["dns_sd_configs"]
                   for name in found["names"]]
        self.assertIn(f"phimapd:{PHIMAPD.default_port('--http')}", targets)
        # The other compose file has HAProxy, and a Prometheus with the same files.
        with_proxy = yaml.safe_load((SOURCE / "deploy/compose.yaml").read_text(encoding="utf-8"))["services"]
        for target in targets:
            self.assertIn(target.split(":")[0], services.keys() | with_proxy.keys())
        self.assertTrue(share_a_network("prometheus", "phimapd"))
        for config in ("haproxy/haproxy.cfg", "haproxy/shared_store.cfg"):
            [port] = re.findall(r"^frontend metrics\n    bind :(\d+)$", (SOURCE / "deploy" / config).read_text(encoding="utf-8"), re.M)
            self.assertIn(f"haproxy:{port}", targets)
        self.assertTrue(set(with_proxy["prometheus"]["networks"]) & set(with_proxy["haproxy"]["networks"]))
        self.assertEqual(with_proxy["prometheus"]["volumes"], prometheus["volumes"])

    def test_grafana_finds_prometheus_and_the_dashboard(self):
        services = compose()["services"]
        grafana = services["grafana"]
        provisioning = in_repository(grafana, "/etc/grafana/provisioning")
        [source] = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())["datasources"]
        [port] = [one.split(":")[2] for one in services["prometheus"]["ports"]]
        self.assertEqual(source["url"], f"http://prometheus:{port}")
        self.assertTrue(share_a_network("prometheus", "grafana"))
        [provider] = yaml.safe_load((provisioning / "dashboards/phimap.yaml").read_text())["providers"]
        folder = provider["options"]["path"]
        dashboards = [source for target, source in binds(grafana).items() if target.startswith(folder + "/")]
        self.assertTrue(dashboards, f"nothing is mounted in {folder}")
        for path in dashboards:
            uids = set(re.findall(r'"uid": *"([^"$]+)"', json.dumps(json.loads(path.read_text())["panels"])))
            self.assertLessEqual(uids, {"prometheus"}, f"{path}: a panel uses a data source that is not provisioned")

    def test_every_path_of_the_repository_that_is_named_exists(self):
        checked = 0
        for path in [*served_files(), SOURCE / "Dockerfile", SOURCE / "README.md"]:
            for named in REPOSITORY_PATH.findall(path.read_text(encoding="utf-8")):
                checked += 1
                self.assertTrue((SOURCE / named).exists(), f"{path.relative_to(SOURCE)}: {named} is not there")
        self.assertGreater(checked, 5)


if __name__ == "__main__":
    unittest.main()
