"""Compares the objects of deploy/kubernetes with the types of Kubernetes, cert-manager and Prometheus Operator. Planted
mistakes must be found."""

import copy
import json
import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(SOURCE / "tests/deploy"))
import manifests  # pylint: disable=wrong-import-position

WORK = pathlib.Path(os.environ["WORK"])


def faults(objects):
    (WORK / "objects.json").write_text(json.dumps(objects), encoding="utf-8")
    done = subprocess.run(["node", "check.mjs", "objects.json"], cwd=WORK, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


class TypesTest(unittest.TestCase):
    def test_every_field_exists_and_none_is_deprecated(self):
        self.assertEqual(faults([*manifests.OBJECTS, manifests.CERTIFICATE]), [])

    def test_planted_mistakes_are_found(self):
        objects = copy.deepcopy([*manifests.OBJECTS, manifests.CERTIFICATE])
        of_kind = {thing["kind"]: thing for thing in objects}
        pod = of_kind["Deployment"]["spec"]["template"]["spec"]
        pod["serviceAccount"] = "phimap"
        pod["containers"][0]["readinesProbe"] = pod["containers"][0].pop("readinessProbe")
        of_kind["NetworkPolicy"]["spec"]["egress"][0]["ports"][0]["prot"] = 1
        of_kind["HorizontalPodAutoscaler"]["spec"]["maxReplicas"] = "8"
        of_kind["Certificate"]["spec"]["dnsName"] = []
        of_kind["ServiceMonitor"]["spec"]["endpoint"] = []
        found = faults(objects)
        for field in ("serviceAccount", "readinesProbe", "prot", "maxReplicas", "dnsName", "endpoint"):
            self.assertEqual(sum(fault.lstrip('"').startswith(field) for fault in found), 1, (field, found))
        self.assertEqual(len(found), 6)


if __name__ == "__main__":
    unittest.main()
