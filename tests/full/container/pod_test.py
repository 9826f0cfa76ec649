"""Runs tests/deploy/kubernetes_pod_test.py with containers of the image in place of processes. Their paths are those of the
manifest, and the kernel enforces what it says: the read-only root, no capabilities, user and groups, and the limits of
memory and CPU. Only the network is this machine's."""

import os
import subprocess
import sys
import unittest
import uuid

import session

os.environ |= {"PHIMAPD": str(session.BUILD / "server/phimapd"), "PHIMAP": str(session.BUILD / "client/cli/phimap")}
sys.path.append(str(session.SOURCE / "tests/deploy"))
import kubernetes_pod_test  # pylint: disable=wrong-import-position
import manifests
import pod
import runtime_test


def cores(text):
    return int(text.removesuffix("m")) / 1000 if text.endswith("m") else int(text)


class ContainerPod(pod.Pod):
    """A pod whose containers podman runs one after the other, with runc."""

    def place_of(self, mount):
        return mount["mountPath"]

    def find_program(self, name):
        return name

    def _podman_run(self, container, name):
        context, own = manifests.pod()["securityContext"], container["securityContext"]
        limits = container["resources"]["limits"]
        assert own == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, own
        options = [f"--user={context['runAsUser']}:{context['runAsGroup']}", f"--group-add={context['fsGroup']}",
                   "--security-opt=no-new-privileges", "--read-only", "--read-only-tmpfs=false", "--cap-drop=ALL",
                   f"--memory={manifests.amount(limits['memory'])}", f"--cpus={cores(limits['cpu'])}"]
        options += [f"--env={key}={value}" for key, value in self.environment(container).items()]
        options += [f"--volume={self.folder_of(mount)}:{mount['mountPath']}{':ro' if mount.get('readOnly') else ''}"
                    for mount in container["volumeMounts"]]
        program, *arguments = self.words(container)
        # Kubernetes ignores the image's own health check.
        return [*runtime_test.PODMAN, "run", "--rm", f"--name={name}", "--network=host", "--no-healthcheck",
                *runtime_test.limits(), *options, f"--entrypoint={program}",
                "localhost/" + container["image"].rpartition("/")[2], *arguments]

    def _run(self, container):
        session.run(self._podman_run(container, f"phimap-{uuid.uuid4().hex}"))

    def _start(self, container, log):
        self._name = f"phimap-{uuid.uuid4().hex}"
        return subprocess.Popen(self._podman_run(container, self._name), stdout=subprocess.PIPE, stderr=log, text=True,
                                env=session.ENVIRONMENT)

    def stop(self):
        runtime_test.podman("exec", self._name, *manifests.server()["lifecycle"]["preStop"]["exec"]["command"])
        return super().stop()

    def close(self):
        # podman hands SIGTERM on to the container, but dies of SIGKILL alone.
        runtime_test.podman("rm", "--force", "--ignore", self._name)
        super().close()


class ContainerPodTest(kubernetes_pod_test.PodTest):
    make_pod = ContainerPod

    def test_phimapd_finds_the_limits_and_can_write_its_cache_alone(self):
        running = self.start("limited")
        [starting] = [line for line in running.log() if line["event"] == "starting"]
        limits = manifests.server()["resources"]["limits"]
        self.assertEqual(starting["cgroup_memory_bytes"], str(manifests.amount(limits["memory"])))
        for folder, writable in (("/var/cache/phimap", True), ("/run/phimap", False), ("/etc/phimap/tls", False),
                                 ("/tmp", False), ("/var/tmp", False), ("/usr/local/bin", False)):
            done = subprocess.run([*runtime_test.PODMAN, "exec", running._name, "touch", f"{folder}/probe"],
                                  capture_output=True, text=True, check=False, env=session.ENVIRONMENT)
            self.assertEqual(done.returncode == 0, writable, f"{folder}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
