"""Tests the manifests that `kubectl kustomize` renders from deploy/kubernetes. Their fields must exist, phimapd must
have the flags and ports that they use, and their numbers must be consistent."""

import copy
import os
import pathlib
import re
import subprocess
import unittest

import names
import programs
import schema
import yaml

KUBERNETES = pathlib.Path(__file__).resolve().parents[2] / "deploy/kubernetes"
PHIMAPD = programs.Phimapd(os.environ["PHIMAPD"])
VARIANTS = ("base", "overlays/tls")
MIB = 1 << 20
UNITS = {"": 1, "Mi": MIB, "Gi": 1 << 30}


def render(variant):
    done = subprocess.run(["kubectl", "kustomize", KUBERNETES / variant], capture_output=True, text=True, check=True)
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing]


RENDERED = {variant: render(variant) for variant in VARIANTS}


def of_kind(variant, kind):
    return [thing for thing in RENDERED[variant] if thing["kind"] == kind]


def deployment(variant):
    [found] = of_kind(variant, "Deployment")
    return found["spec"]


def pod(variant):
    return deployment(variant)["template"]["spec"]


def server(variant):
    [found] = [one for one in pod(variant)["containers"] if one["name"] == "phimapd"]
    return found


def flags(variant):
    """Returns {flag: value} for phimapd's arguments in a variant."""
    return {name: value for name, _, value in (one.partition("=") for one in server(variant)["args"])}


def amount(text):
    number, unit = re.fullmatch(r"(\d+)([A-Z]i|)", str(text)).groups()
    return int(number) * UNITS[unit]


def flag_faults(arguments):
    return [one for one in arguments if one.partition("=")[0] not in PHIMAPD.flags | names.NOT_YET]


def seconds_until_killed(variant):
    """Returns how many seconds the pod has between the stop signal and SIGKILL: terminationGracePeriodSeconds minus
    the preStop sleep."""
    command = server(variant)["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep", command
    return pod(variant)["terminationGracePeriodSeconds"] - int(command[1])


class FieldsTest(unittest.TestCase):
    def test_every_field_of_every_object_exists(self):
        for variant in VARIANTS:
            self.assertEqual({thing["kind"] for thing in RENDERED[variant]}, {kind for _, kind in schema.KINDS})
            for thing in RENDERED[variant]:
                self.assertEqual(schema.object_faults(thing), [], (variant, thing["kind"]))

    def test_planted_misspellings_are_found(self):
        thing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "phimap"},
                 "spec": copy.deepcopy(deployment("base"))}
        self.assertEqual(schema.object_faults(thing), [])
        container = thing["spec"]["template"]["spec"]["containers"][0]
        container["readinesProbe"] = container.pop("readinessProbe")
        container["livenessProbe"]["httpGet"]["prot"] = "http"
        container["startupProbe"]["periodSeconds"] = "2"
        thing["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "ScheduleAnyways"
        at = "spec.template.spec."
        self.assertEqual(sorted(fault.partition(":")[0] for fault in schema.object_faults(thing)), sorted([
            at + "containers[0].readinesProbe", at + "containers[0].livenessProbe.httpGet.prot",
            at + "containers[0].startupProbe.periodSeconds", at + "topologySpreadConstraints[0].whenUnsatisfiable"]))

    def test_kinds_of_other_versions_are_found(self):
        for kind, version in (("HorizontalPodAutoscaler", "autoscaling/v2beta2"), ("PodDisruptionBudget", "policy/v1beta1")):
            [thing] = of_kind("base", kind)
            self.assertEqual(schema.object_faults(thing), [])
            self.assertEqual(len(schema.object_faults({**thing, "apiVersion": version})), 1)

    def test_nothing_secret_is_in_it(self):
        for variant in VARIANTS:
            self.assertEqual(of_kind(variant, "Secret"), [])
            for config in of_kind(variant, "ConfigMap"):
                for text in config["data"].values():
                    self.assertNotRegex(text, r"://[^/@\s]*:[^/@\s]*@")
                    self.assertNotIn("password=", text)


class ProgramTest(unittest.TestCase):
    def test_every_flag_is_one_of_phimapd(self):
        for variant in VARIANTS:
            self.assertEqual(server(variant)["command"], ["phimapd"])
            self.assertEqual(flag_faults(server(variant)["args"]), [])

    def test_a_planted_flag_is_found(self):
        self.assertEqual(flag_faults(["--drain_second=20", "--drain_seconds=20"]), ["--drain_second=20"])

    def test_phimapd_takes_the_flags(self):
        """Runs phimapd with the flags of the manifest. It must accept all flags, and fail only because the database
        does not exist."""
        for variant in VARIANTS:
            arguments = [one for one in server(variant)["args"]
                         if one.partition("=")[0] not in names.NOT_YET and not one.startswith("--store")]
            arguments.append("--store=postgresql://phimap@[/")
            done = subprocess.run([os.environ["PHIMAPD"], *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--store", done.stderr)
            self.assertNotIn("--store", subprocess.run(
                [os.environ["PHIMAPD"], *arguments, "--drain_seconds=x"], capture_output=True, text=True,
                check=False).stderr)

    def test_ports_are_those_that_phimapd_listens_on(self):
        for variant in VARIANTS:
            given = flags(variant)
            ports = {one["name"]: one["containerPort"] for one in server(variant)["ports"]}
            self.assertEqual(ports, {"grpc": int(given["--listen"].rpartition(":")[2]),
                                     "http": int(given["--http"].rpartition(":")[2])})
            for service in of_kind(variant, "Service"):
                for port in service["spec"]["ports"]:
                    self.assertEqual(ports[port["targetPort"]], port["port"])
            [policy] = of_kind(variant, "NetworkPolicy")
            open_ports = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
            self.assertEqual(open_ports, [ports["grpc"], ports["http"]])

    def test_probes_ask_the_port_that_knows_no_tls(self):
        for variant in VARIANTS:
            container = server(variant)
            self.assertIn("--insecure", flags(variant))
            paths = {}
            for name in ("startupProbe", "readinessProbe", "livenessProbe"):
                asked = container[name]["httpGet"]
                self.assertEqual((asked["port"], asked["scheme"]), ("http", "HTTP"))
                paths[name] = asked["path"]
            self.assertEqual(paths, {"startupProbe": "/readyz", "readinessProbe": "/readyz",
                                     "livenessProbe": "/livez"})


class NumbersTest(unittest.TestCase):
    def test_memory_is_what_the_flags_add_up_to(self):
        for variant in VARIANTS:
            given = flags(variant)
            connections = int(given["--max_connections"])
            needed = (64 * MIB + int(given["--max_live_bytes"]) * 5 // 4 + int(given["--memory_bytes"]) +
                      int(given["--build_memory_bytes"]) + connections * MIB // 2 + 64 * MIB)
            resources = server(variant)["resources"]
            limit = amount(resources["limits"]["memory"])
            self.assertLessEqual(needed * 11 // 10, limit, "too little headroom")
            self.assertLessEqual(limit, needed * 12 // 10, "the memory limit is higher than anything needs")
            self.assertEqual(resources["requests"], resources["limits"])

    def test_the_folder_of_the_cache_holds_the_cache(self):
        for variant in VARIANTS:
            given = flags(variant)
            [mount] = [one for one in server(variant)["volumeMounts"] if one["name"] == "cache"]
            self.assertTrue(given["--cache_dir"].startswith(mount["mountPath"] + "/"))
            self.assertFalse(mount.get("readOnly", False))
            [volume] = [one for one in pod(variant)["volumes"] if one["name"] == "cache"]
            room = amount(volume["emptyDir"]["sizeLimit"])
            self.assertGreaterEqual(room, int(given["--cache_bytes"]) * 9 // 8)
            self.assertGreaterEqual(amount(server(variant)["resources"]["limits"]["ephemeral-storage"]), room)

    def test_a_pod_is_given_longer_to_stop_than_phimapd_drains(self):
        for variant in VARIANTS:
            given = flags(variant)
            self.assertGreaterEqual(seconds_until_killed(variant), int(given["--drain_seconds"]) + 5)
            self.assertLess(int(given["--lame_duck_seconds"]), int(given["--drain_seconds"]))

    def test_start_up_waits_longer_than_versions_are_warmed(self):
        for variant in VARIANTS:
            probe = server(variant)["startupProbe"]
            self.assertGreater(probe["periodSeconds"] * probe["failureThreshold"],
                               int(flags(variant)["--warm_seconds"]) + 30)

    def test_a_server_is_always_there(self):
        for variant in VARIANTS:
            [autoscaler] = of_kind(variant, "HorizontalPodAutoscaler")
            [budget] = of_kind(variant, "PodDisruptionBudget")
            self.assertGreater(autoscaler["spec"]["minReplicas"], budget["spec"]["maxUnavailable"])
            self.assertEqual(deployment(variant)["strategy"]["rollingUpdate"]["maxUnavailable"], 0)
            self.assertNotIn("replicas", deployment(variant))


class ReferencesTest(unittest.TestCase):
    def test_selectors_select_the_servers(self):
        for variant in VARIANTS:
            labels = deployment(variant)["template"]["metadata"]["labels"].items()
            selectors = [deployment(variant)["selector"]["matchLabels"]]
            selectors += [one["spec"]["selector"] for one in of_kind(variant, "Service")]
            selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(variant, "PodDisruptionBudget")]
            selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(variant, "NetworkPolicy")]
            selectors += [one["labelSelector"]["matchLabels"] for one in pod(variant)["topologySpreadConstraints"]]
            self.assertEqual(len(selectors), 7)
            for selector in selectors:
                self.assertTrue(selector and selector.items() <= labels, selector)

    def test_one_service_is_scraped_on_a_port_that_it_has_under_the_alerts_job(self):
        for variant in VARIANTS:
            [monitor] = of_kind(variant, "ServiceMonitor")
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            [service] = [one for one in of_kind(variant, "Service") if wanted <= one["metadata"]["labels"].items()]
            self.assertEqual(service["spec"]["clusterIP"], "None")
            self.assertEqual(service["metadata"]["labels"][monitor["spec"]["jobLabel"]], "phimapd")
            for endpoint in monitor["spec"]["endpoints"]:
                self.assertIn(endpoint["port"], [port["name"] for port in service["spec"]["ports"]])

    def test_the_autoscaler_scales_the_deployment_by_metrics_that_the_adapter_makes(self):
        for variant in VARIANTS:
            [autoscaler] = of_kind(variant, "HorizontalPodAutoscaler")
            target = autoscaler["spec"]["scaleTargetRef"]
            [found] = of_kind(variant, "Deployment")
            self.assertEqual(target, {"apiVersion": found["apiVersion"], "kind": "Deployment",
                                      "name": found["metadata"]["name"]})
            [config] = [one for one in of_kind(variant, "ConfigMap")
                        if one["metadata"]["name"].endswith("adapter-rules")]
            rules = yaml.safe_load(config["data"]["config.yaml"])["rules"]
            self.assertEqual({one["pods"]["metric"]["name"] for one in autoscaler["spec"]["metrics"]},
                             {rule["name"]["as"] for rule in rules})
            for rule in rules:
                self.assertEqual(set(rule), {"seriesQuery", "resources", "name", "metricsQuery"})

    def test_volumes_are_there_and_secrets_read_only_for_the_server_alone(self):
        for variant in VARIANTS:
            volumes = {one["name"]: one for one in pod(variant)["volumes"]}
            for container in pod(variant)["containers"] + pod(variant)["initContainers"]:
                for mount in container["volumeMounts"]:
                    self.assertIn(mount["name"], volumes)
                    if "secret" in volumes[mount["name"]]:
                        self.assertTrue(mount["readOnly"])
            for volume in volumes.values():
                if "secret" in volume:
                    self.assertEqual(volume["secret"]["defaultMode"], 0o440)

    def test_files_that_flags_name_are_mounted(self):
        for variant in VARIANTS:
            mounts = [one["mountPath"] for one in server(variant)["volumeMounts"]]
            paths = [value for value in flags(variant).values() if value.startswith("/")]
            paths += [one["value"] for one in server(variant)["env"] if "value" in one]
            [config] = [one for one in of_kind(variant, "ConfigMap") if "STORE" in one["data"]]
            paths += re.findall(r"sslrootcert=([^&]+)", config["data"]["STORE"])
            self.assertGreaterEqual(len(paths), 3)
            for path in paths:
                self.assertTrue(any(path.startswith(mount + "/") for mount in mounts), path)

    def test_the_tls_overlay_adds_tls_and_tokens(self):
        added = set(flags("overlays/tls")) - set(flags("base"))
        self.assertEqual(added, {"--tls_certificate", "--tls_key", "--token_file"})


class ConfinementTest(unittest.TestCase):
    def test_containers_have_no_rights(self):
        for variant in VARIANTS:
            self.assertTrue(pod(variant)["securityContext"]["runAsNonRoot"])
            self.assertEqual(pod(variant)["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
            self.assertFalse(pod(variant)["automountServiceAccountToken"])
            for container in pod(variant)["containers"] + pod(variant)["initContainers"]:
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})


if __name__ == "__main__":
    unittest.main()
