"""Tests the manifests that `kubectl kustomize` renders from deploy/kubernetes, without running them. Their fields must
exist, phimapd must have the flags and ports that they use, their numbers must follow from the formulas of
docs/operations/size.md, and their parts must agree. kubernetes_pod_test.py runs them."""

import copy
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import manifests
import names
import pod
import programs
import schema
import yaml
from manifests import MIB, amount, containers, deployment, flags, of_kind, server

PHIMAPD = programs.Phimapd(os.environ["PHIMAPD"])
# The namespace's labels of those who may connect.
CLIENT = {"kubernetes.io/metadata.name": "shop", "phimap-clients": "true"}
MONITORING = {"kubernetes.io/metadata.name": "monitoring"}
OWN = {"kubernetes.io/metadata.name": "phimap"}
SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


def flag_faults(arguments):
    return [one for one in arguments if one.partition("=")[0] not in PHIMAPD.flags | names.NOT_YET]


def selects(selector, labels):
    """Returns whether a selector selects something with these labels. {} selects everything."""
    assert set(selector) <= {"matchLabels"}, selector
    return selector.get("matchLabels", {}).items() <= labels.items()


def allows(direction, namespace, labels, protocol, port):
    """Returns whether the network policy allows a connection from ("ingress") or to ("egress") a pod with these labels,
    in a namespace with these labels; a peer outside of the cluster has none."""
    [policy] = of_kind("NetworkPolicy")
    for rule in policy["spec"][direction]:
        ports = rule.get("ports", [{"protocol": protocol, "port": port}])
        for peer in rule["from" if direction == "ingress" else "to"]:
            assert set(peer) <= {"namespaceSelector", "podSelector"}, peer
            in_namespace = selects(peer["namespaceSelector"], namespace) if "namespaceSelector" in peer else namespace == OWN
            if in_namespace and selects(peer.get("podSelector", {}), labels) and {"protocol": protocol, "port": port} in ports:
                return True
    return False


class FieldsTest(unittest.TestCase):
    def test_every_field_of_every_object_exists(self):
        self.assertEqual({thing["kind"] for thing in [*manifests.OBJECTS, manifests.CERTIFICATE]},
                         {kind for _, kind in schema.KINDS})
        for thing in [*manifests.OBJECTS, manifests.CERTIFICATE]:
            self.assertEqual(schema.object_faults(thing), [], thing["kind"])

    def test_planted_misspellings_are_found(self):
        thing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "phimap"},
                 "spec": copy.deepcopy(deployment())}
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
            [thing] = of_kind(kind)
            self.assertEqual(schema.object_faults(thing), [])
            self.assertEqual(len(schema.object_faults({**thing, "apiVersion": version})), 1)

    def test_kustomize_knows_no_field_that_it_will_drop(self):
        """Newer versions of kubectl warn of deprecated fields, as of `bases`; older ones do not know their successors."""
        self.assertEqual(manifests.COMPLAINTS, "")
        given = yaml.safe_load((manifests.KUBERNETES / "base/kustomization.yaml").read_text(encoding="utf-8"))
        self.assertLessEqual(set(given), {"apiVersion", "kind", "namespace", "resources", "images", "configMapGenerator"})

    def test_nothing_secret_is_in_it(self):
        self.assertEqual(of_kind("Secret"), [])
        for config in of_kind("ConfigMap"):
            for text in config["data"].values():
                self.assertNotRegex(text, r"://[^/@\s]*:[^/@\s]*@")
                self.assertNotIn("password=", text)


class ImageTest(unittest.TestCase):
    def test_images_have_the_version_of_the_program(self):
        project = (manifests.SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
        version = re.search(r"^project\(phimap VERSION (\S+)", project, re.M).group(1)
        said = subprocess.run([os.environ["PHIMAPD"], "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(version, said.split())
        images = {one["image"] for one in containers()}
        for name in ("compose.yaml", "compose.single.yaml"):
            document = yaml.safe_load((manifests.SOURCE / "deploy" / name).read_text(encoding="utf-8"))
            images |= {service["image"] for service in document["services"].values() if "build" in service}
        images |= set(re.findall(r"\bdocker (?:build (?:.* )?(?:-t|--tag=)|push )\s*(\S+)",
                                 manifests.PAGE.read_text(encoding="utf-8")))
        self.assertGreaterEqual(len(images), 2)
        for image in images:
            self.assertEqual(image.rpartition("/")[2], f"phimap:{version}")


class ProgramTest(unittest.TestCase):
    def test_every_flag_is_one_of_phimapd(self):
        self.assertEqual(server()["command"], ["phimapd"])
        self.assertEqual(flag_faults(server()["args"]), [])

    def test_a_planted_flag_is_found(self):
        self.assertEqual(flag_faults(["--drain_second=20", "--drain_seconds=20"]), ["--drain_second=20"])

    def test_tls_and_tokens_are_on(self):
        for flag in ("--tls_certificate", "--tls_key", "--token_file"):
            self.assertIn(flag, flags())

    def test_ports_are_those_that_phimapd_listens_on(self):
        given = flags()
        ports = {one["name"]: one["containerPort"] for one in server()["ports"]}
        self.assertEqual(ports, {name: int(given[flag].rpartition(":")[2]) for name, flag in
                                 (("grpc", "--listen"), ("api-http", "--api_http"), ("http", "--http"))})
        for service in of_kind("Service"):
            for port in service["spec"]["ports"]:
                self.assertEqual(ports[port["targetPort"]], port["port"])

    def test_the_services_names_are_known_to_phimapd_and_in_the_certificate(self):
        services = [f"{one['metadata']['name']}.{one['metadata']['namespace']}.svc" for one in of_kind("Service")]
        self.assertEqual(len(services), 2)
        self.assertEqual(sorted(flags()["--http_hosts"].split(",")), sorted(services))
        wanted = services + [f"{name}.cluster.local" for name in services]
        self.assertEqual(sorted(manifests.CERTIFICATE["spec"]["dnsNames"]), sorted(wanted))

    def test_probes_ask_the_port_that_knows_no_tls(self):
        container = server()
        self.assertIn("--insecure", flags())
        paths = {}
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = container[name]["httpGet"]
            self.assertEqual((asked["port"], asked["scheme"]), ("http", "HTTP"))
            paths[name] = asked["path"]
        self.assertEqual(paths, {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez"})


class NumbersTest(unittest.TestCase):
    """The formulas are in docs/operations/size.md; tests/e2e/sizing_test.cc measures that of memory."""

    def needed_memory(self):
        given = flags()
        return (64 * MIB + int(given["--max_live_bytes"]) * 5 // 4 + int(given["--memory_bytes"]) +
                int(given["--build_memory_bytes"]) + int(given["--max_connections"]) * MIB // 2 + 64 * MIB)

    def needed_disk(self):
        given = flags()
        return int(given["--cache_bytes"]) * 9 // 8 + int(given["--training_disk_bytes"])

    def test_memory_is_what_the_flags_add_up_to_and_a_tenth(self):
        limit = amount(server()["resources"]["limits"]["memory"])
        self.assertLessEqual(self.needed_memory() * 11 // 10, limit, "too little headroom")
        self.assertLessEqual(limit, self.needed_memory() * 12 // 10, "the memory limit is higher than anything needs")

    def test_the_largest_message_fits_into_the_memory_of_requests(self):
        self.assertGreaterEqual(int(flags()["--memory_bytes"]), 3 * int(PHIMAPD.default("--max_message_bytes")))

    def test_the_disk_holds_the_cache_and_the_trainings(self):
        [mount] = [one for one in server()["volumeMounts"] if one["name"] == "cache"]
        self.assertTrue(flags()["--cache_dir"].startswith(mount["mountPath"] + "/"))
        self.assertFalse(mount.get("readOnly", False))
        [volume] = [one for one in manifests.pod()["volumes"] if one["name"] == "cache"]
        room = amount(volume["emptyDir"]["sizeLimit"])
        self.assertGreaterEqual(room, self.needed_disk())
        self.assertLessEqual(room, self.needed_disk() * 11 // 10)
        # The log's share is what the kubelet keeps by default: five files of 10 MiB, and as much again.
        self.assertGreaterEqual(amount(server()["resources"]["limits"]["ephemeral-storage"]), room + 100 * MIB)

    def test_the_numbers_in_words_are_these(self):
        text = (manifests.KUBERNETES / "base/deployment.yaml").read_text(encoding="utf-8")
        guide = (manifests.SOURCE / "docs/operations/size.md").read_text(encoding="utf-8")
        page = manifests.PAGE.read_text(encoding="utf-8")
        self.assertIn(f"= {self.needed_memory() // MIB} MiB", re.sub(r"\s*#?\s+", " ", text))
        self.assertIn(f"= {self.needed_disk() / 1024 / MIB:.1f} GiB", re.sub(r"\s*#?\s+", " ", text))
        self.assertIn(f"= {self.needed_memory() // MIB} MiB", page)
        self.assertIn(f"= {self.needed_disk() / 1024 / MIB:.1f} GiB", page)
        self.assertIn(f"more than {int(flags()['--max_live_bytes']) // 10 // MIB} MiB, a tenth of `--max_live_bytes`", page)
        self.assertIn("disk ≤ 9/8·cache_bytes + training_disk_bytes", guide)
        self.assertIn("64 MiB more with PostgreSQL", guide)

    def test_a_pod_is_given_longer_to_stop_than_phimapd_drains(self):
        given = flags()
        self.assertGreaterEqual(pod.seconds_until_killed(), int(given["--drain_seconds"]) + 5)
        self.assertLess(int(given["--lame_duck_seconds"]), int(given["--drain_seconds"]))
        # The pod has left the endpoints before phimapd refuses connections: the sleep covers two readiness probes.
        readiness = server()["readinessProbe"]
        slept = manifests.pod()["terminationGracePeriodSeconds"] - pod.seconds_until_killed()
        self.assertGreaterEqual(slept, readiness["periodSeconds"] * readiness["failureThreshold"])

    def test_start_up_waits_longer_than_versions_are_warmed(self):
        probe = server()["startupProbe"]
        self.assertGreater(probe["periodSeconds"] * probe["failureThreshold"], int(flags()["--warm_seconds"]) + 30)

    def test_a_server_is_always_there(self):
        [autoscaler] = of_kind("HorizontalPodAutoscaler")
        [budget] = of_kind("PodDisruptionBudget")
        self.assertGreater(autoscaler["spec"]["minReplicas"], budget["spec"]["maxUnavailable"])
        self.assertEqual(deployment()["strategy"]["rollingUpdate"]["maxUnavailable"], 0)
        self.assertNotIn("replicas", deployment())


class NetworkTest(unittest.TestCase):
    def ports_for(self, namespace, labels=None):
        return [port for port in (7450, 7451, 7452, 22) if allows("ingress", namespace, labels or {}, "TCP", port)]

    def test_clients_reach_the_api_and_prometheus_the_metrics_and_strangers_nothing(self):
        self.assertEqual(self.ports_for(CLIENT), [7450, 7452])
        self.assertEqual(self.ports_for(MONITORING), [7451])
        self.assertEqual(self.ports_for(OWN), [])
        self.assertEqual(self.ports_for({"kubernetes.io/metadata.name": "shop"}, {"phimap-clients": "true"}), [],
                         "a pod lets itself in by a label")
        self.assertEqual(self.ports_for({}), [])

    def test_phimapd_reaches_its_database_kernel_services_and_names_and_nothing_else(self):
        postgresql = {"app.kubernetes.io/name": "postgresql"}
        kernel = {"phimap-kernel-service": "true"}
        dns = {"k8s-app": "kube-dns"}
        database_port = int(re.search(r":(\d+)/", manifests.store()).group(1))
        for expected, namespace, labels, protocol, port in (
                (True, OWN, postgresql, "TCP", database_port), (False, OWN, postgresql, "TCP", 22),
                (False, CLIENT, postgresql, "TCP", database_port), (True, OWN, kernel, "TCP", 9000),
                (False, CLIENT, kernel, "TCP", 9000), (True, SYSTEM, dns, "UDP", 53), (True, SYSTEM, dns, "TCP", 53),
                (False, SYSTEM, dns, "TCP", 443), (False, SYSTEM, {}, "TCP", 443), (False, {}, {}, "TCP", 443),
                (False, OWN, {}, "TCP", 7450)):
            self.assertEqual(allows("egress", namespace, labels, protocol, port), expected, (namespace, labels, port))

    def test_the_page_has_clients_namespaces_labelled_as_the_policy_wants(self):
        [label] = re.findall(r"kubectl label namespace shop (\S+)", manifests.block_of_the_page("Apply"))
        self.assertEqual(label.split("="), ["phimap-clients", CLIENT["phimap-clients"]])


class ReferencesTest(unittest.TestCase):
    def test_selectors_select_the_servers(self):
        labels = deployment()["template"]["metadata"]["labels"].items()
        selectors = [deployment()["selector"]["matchLabels"]]
        selectors += [one["spec"]["selector"] for one in of_kind("Service")]
        selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind("PodDisruptionBudget")]
        selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind("NetworkPolicy")]
        selectors += [one["labelSelector"]["matchLabels"] for one in manifests.pod()["topologySpreadConstraints"]]
        self.assertEqual(len(selectors), 7)
        for selector in selectors:
            self.assertTrue(selector and selector.items() <= labels, selector)

    def test_one_service_is_scraped_on_a_port_that_it_has_under_the_alerts_job(self):
        [monitor] = of_kind("ServiceMonitor")
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        [service] = [one for one in of_kind("Service") if wanted <= one["metadata"]["labels"].items()]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["metadata"]["labels"][monitor["spec"]["jobLabel"]], "phimapd")
        for endpoint in monitor["spec"]["endpoints"]:
            self.assertIn(endpoint["port"], [port["name"] for port in service["spec"]["ports"]])

    def test_the_autoscaler_scales_the_deployment_by_metrics_that_the_adapter_makes(self):
        [autoscaler] = of_kind("HorizontalPodAutoscaler")
        target = autoscaler["spec"]["scaleTargetRef"]
        [found] = of_kind("Deployment")
        self.assertEqual(target, {"apiVersion": found["apiVersion"], "kind": "Deployment", "name": found["metadata"]["name"]})
        [config] = [one for one in of_kind("ConfigMap") if one["metadata"]["name"].endswith("adapter-rules")]
        rules = yaml.safe_load(config["data"]["config.yaml"])["rules"]
        self.assertEqual({one["pods"]["metric"]["name"] for one in autoscaler["spec"]["metrics"]},
                         {rule["name"]["as"] for rule in rules})
        for rule in rules:
            self.assertEqual(set(rule), {"seriesQuery", "resources", "name", "metricsQuery"})

    def test_volumes_are_there_and_secrets_read_only_for_the_server_alone(self):
        volumes = {one["name"]: one for one in manifests.pod()["volumes"]}
        mounted = set()
        for container in containers():
            for mount in container["volumeMounts"]:
                mounted.add(mount["name"])
                if "secret" in volumes[mount["name"]]:
                    self.assertTrue(mount["readOnly"])
        self.assertEqual(mounted, set(volumes))
        for volume in volumes.values():
            if "secret" in volume:
                self.assertEqual(volume["secret"]["defaultMode"], 0o440)

    def test_secrets_are_those_that_the_page_and_the_certificate_make(self):
        mounted = {one["secret"]["secretName"] for one in manifests.pod()["volumes"] if "secret" in one}
        made = re.findall(r"create secret \w+ (\S+)", manifests.block_of_the_page("Apply"))
        self.assertEqual(set(made), mounted)
        self.assertEqual(len(made), 3)
        [tls] = [one["secret"]["secretName"] for one in manifests.pod()["volumes"] if one["name"] == "tls"]
        spec = manifests.CERTIFICATE["spec"]
        self.assertEqual(spec["secretName"], tls)
        self.assertEqual(manifests.CERTIFICATE["metadata"]["namespace"], of_kind("Deployment")[0]["metadata"]["namespace"])
        self.assertGreater(int(spec["duration"].rstrip("h")), 2 * int(spec["renewBefore"].rstrip("h")))

    def test_files_that_flags_name_are_mounted(self):
        mounts = [one["mountPath"] for one in server()["volumeMounts"]]
        paths = [value for value in flags().values() if value.startswith("/")]
        paths += [one["value"] for one in server()["env"] if "value" in one]
        paths += re.findall(r"sslrootcert=([^&]+)", manifests.store())
        self.assertGreaterEqual(len(paths), 6)
        for path in paths:
            self.assertTrue(any(path.startswith(mount + "/") for mount in mounts), path)


class ConfinementTest(unittest.TestCase):
    """Pod Security's level "restricted", and more."""

    def test_containers_have_no_rights(self):
        context = manifests.pod()["securityContext"]
        self.assertTrue(context["runAsNonRoot"])
        self.assertEqual(context["runAsUser"], 7450)
        self.assertEqual(context["seccompProfile"]["type"], "RuntimeDefault")
        self.assertFalse(manifests.pod()["automountServiceAccountToken"])
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            self.assertNotIn(field, manifests.pod())
        for volume in manifests.pod()["volumes"]:
            self.assertEqual(len(set(volume) & {"emptyDir", "secret", "configMap"}), 1, volume)
        for container in containers():
            self.assertEqual(container["securityContext"], {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})

    def test_requests_are_limits_so_the_pod_is_among_the_last_that_a_node_ends(self):
        for container in containers():
            resources = container["resources"]
            self.assertEqual(resources["requests"], resources["limits"])
            self.assertLessEqual({"cpu", "memory"}, set(resources["limits"]))


class OverlayTest(unittest.TestCase):
    @unittest.skipIf(b"v1.20" in subprocess.run(["kubectl", "version", "--client"], capture_output=True, check=True).stdout,
                     "kubectl 1.20 knows no folders among resources")
    def test_the_pages_overlay_changes_what_it_says(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "kubernetes").symlink_to(manifests.KUBERNETES)
            text = manifests.block_of_the_page("Your own settings")
            (folder / "own").mkdir()
            (folder / "own/kustomization.yaml").write_text(
                text.replace("../phimap/deploy/kubernetes/base", os.path.relpath(manifests.KUBERNETES / "base", folder.resolve() / "own")))
            objects, complaints = manifests.kustomize(folder / "own")
        self.assertEqual(complaints, "")
        for thing in objects:
            self.assertEqual(schema.object_faults(thing), [], thing["kind"])
        [changed] = [one for one in objects if one["kind"] == "Deployment"]
        before = of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"][0]
        after = changed["spec"]["template"]["spec"]["containers"][0]
        self.assertNotEqual(before["image"], after["image"])
        self.assertEqual(set(after["args"]) - set(before["args"]), {"--log_level=warning"})
        stores = [one["data"]["STORE"] for one in objects if one["kind"] == "ConfigMap" and "STORE" in one["data"]]
        self.assertEqual(len(stores), 1)
        self.assertNotEqual(stores, [manifests.store()])


if __name__ == "__main__":
    unittest.main()
