"""Tests the image under a container runtime that starts it as deploy/compose.single.yaml does.

A container runtime makes the kernel enforce more than a chroot can. The root file system is read-only. The process
has no capabilities and cannot gain any, and the number of its cores is limited. It is process 1 of its own process
namespace, and it is alone on its network.
"""

import os
import pathlib
import queue
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import unittest
import uuid

import session
import yaml

PODMAN = ["podman", "--root", str(session.BUILD / "image/storage"), "--runroot", str(session.BUILD / "image/run"),
          "--runtime=runc", "--cgroup-manager=cgroupfs", "--events-backend=none"]

# Keys of a service in compose.single.yaml that do not matter for a single container without published ports.
NOT_OF_A_CONTAINER = {"build", "image", "ports", "networks", "restart"}


def podman(*arguments, **kwargs):
    return session.run([*PODMAN, *arguments], **kwargs)


def limits():
    """Returns flags that keep this machine's resource limits. By default, a runtime would raise them to its own
    values, which not every machine allows."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    pids = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
    if processes == resource.RLIM_INFINITY or processes > pids:
        processes = pids
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]


def as_compose_says(volume):
    """Returns the options of `podman run` for the service phimapd in deploy/compose.single.yaml, and the arguments
    after the image."""
    service = yaml.safe_load((session.SOURCE / "deploy/compose.single.yaml").read_text())["services"]["phimapd"]
    options = []
    command = []
    for key, value in service.items():
        if key == "command":
            command = value
        elif key == "volumes":
            options += [f"--volume={volume}:{one.split(':', 1)[1]}" for one in value]
        elif key == "read_only" and value:
            # By default, podman would also mount a tmpfs on /tmp, /run and /var/tmp. Docker does not.
            options += ["--read-only", "--read-only-tmpfs=false"]
        elif key == "cap_drop":
            options += [f"--cap-drop={one}" for one in value]
        elif key == "security_opt":
            options += ["--security-opt=no-new-privileges" if one == "no-new-privileges:true" else one for one in value]
        elif key == "stop_grace_period":
            options += [f"--stop-timeout={value.removesuffix('s')}"]
        elif key == "environment":
            options += [f"--env={name}={one}" for name, one in value.items()]
        elif key not in NOT_OF_A_CONTAINER:
            raise AssertionError(f"compose.single.yaml: phimapd: {key} is not tested; add it to as_compose_says")
    return options, command


def tls_variant():
    """Returns the flags and the environment of the TLS variant, which compose.single.yaml contains as a comment."""
    text = (session.SOURCE / "deploy/compose.single.yaml").read_text()
    comment = re.search(r"^ *# The TLS variant.*?(?=^ *[^ #])", text, re.M | re.S).group()
    said = re.sub(r"^ *#", "", comment, flags=re.M)
    flags = yaml.safe_load(re.search(r"command: (\[.*?\])", said, re.S).group(1))
    environment = yaml.safe_load(re.search(r"environment: (\{.*?\})", said, re.S).group(1))
    if "- ./tls:/tls:ro" not in said:
        raise AssertionError("compose.single.yaml: the TLS variant mounts another folder")
    return flags, environment


def make_tls_folder(folder):
    """Makes a certificate for 127.0.0.1, its key and a token file, so that only user 7450 can read them."""
    session.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days=1", "-subj=/CN=phimap",
                 "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "server.key", "-out",
                 folder / "server.pem"])
    (folder / "tokens").write_text("admin a-token-that-may-all\n")
    for path in (folder, *folder.iterdir()):
        os.chown(path, 7450, 7450)
        path.chmod(0o700 if path == folder else 0o600)


class Container:
    """A container that runs phimapd on its own volume. The container and the volume are removed at the end of the
    test."""

    def __init__(self, test, volume=None, options=(), command=()):
        self.volume = volume or f"phimap-{uuid.uuid4().hex}"
        compose_options, compose_command = as_compose_says(self.volume)
        self.name = podman("create", "--network=none", *limits(), *compose_options, *options, session.IMAGE,
                           *compose_command, *command).strip()
        if volume is None:
            test.addCleanup(podman, "volume", "rm", self.volume)
        test.addCleanup(podman, "rm", "--force", self.name)
        podman("start", self.name)
        with subprocess.Popen([*PODMAN, "logs", "--follow", self.name], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=session.ENVIRONMENT) as logs:
            said = []
            while not (said and said[-1].startswith("phimapd ready:")):
                said.append(logs.stdout.readline())
                if not said[-1]:
                    raise AssertionError("phimapd ended before it was ready:\n" + "".join(said))
            logs.kill()

    def exec(self, *arguments, **kwargs):
        return podman("exec", "--interactive", self.name, *arguments, **kwargs)

    def exit_code_of(self, *arguments):
        return subprocess.run([*PODMAN, "exec", self.name, *arguments], capture_output=True, check=False,
                              env=session.ENVIRONMENT).returncode

    def inspect(self, path):
        return podman("inspect", "--format", "{{json ." + path + "}}", self.name).strip()

    def health(self):
        """Runs the image's own HEALTHCHECK. Returns its exit code, which is 0 if the container is healthy."""
        return subprocess.run([*PODMAN, "healthcheck", "run", self.name], capture_output=True, check=False,
                              env=session.ENVIRONMENT).returncode

    def metrics(self):
        return session.run([*self.on_its_network(), "/usr/bin/python3", "-c",
                            "import urllib.request as r; "
                            "print(r.urlopen('http://127.0.0.1:7451/metrics').read().decode())"])

    def on_its_network(self):
        """Returns a command prefix that runs a program of this machine in the container's network."""
        return ["nsenter", f"--net=/proc/{self.inspect('State.Pid')}/ns/net"]


class RuntimeTest(unittest.TestCase):
    def test_what_it_builds_and_answers_is_what_the_build_folder_does(self):
        container = Container(self)
        self.assertEqual(
            session.build_and_transform(lambda arguments, **kwargs: container.exec("phimap", *arguments, **kwargs)),
            session.expected())

    def test_its_user_can_write_nothing_but_data_and_has_no_rights(self):
        container = Container(self)
        status = dict(line.split(":\t", 1) for line in container.exec("cat", "/proc/1/status").splitlines()
                      if ":\t" in line)
        self.assertEqual(status["Name"], "phimapd")
        self.assertEqual(status["Uid"].split(), ["7450"] * 4)
        self.assertEqual(status["Gid"].split(), ["7450"] * 4)
        for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(status[capabilities], 16), 0, capabilities)
        self.assertEqual(status["NoNewPrivs"], "1")
        mounts = [line.split() for line in container.exec("cat", "/proc/1/mounts").splitlines()]
        writable = {target for _, target, kind, options, *_ in mounts
                    if "rw" in options.split(",") and kind not in ("proc", "sysfs", "cgroup", "devpts", "mqueue")}
        # A runtime always mounts some entries that are not files of the image: devices, shared memory, and masks over
        # parts of /proc.
        added = {target for target in writable if re.match(r"/dev\b|/proc/|/sys/", target)}
        self.assertEqual(writable - added, {"/data"})
        self.assertEqual(container.exit_code_of("touch", "/data/probe"), 0)
        for folder in ("", "/tmp", "/run", "/var/tmp", "/usr/local/bin"):
            # Even root cannot write. This shows that the mount is read-only, and that it is not merely the
            # permissions that prevent writing.
            refused = subprocess.run(
                [*PODMAN, "exec", "--user=0", container.name, "touch", f"{folder}/probe"], capture_output=True,
                text=True, check=False, env=session.ENVIRONMENT)
            self.assertIn("Read-only file system", refused.stderr, folder)

    def test_the_images_health_check_is_green_and_red_when_nobody_answers(self):
        self.assertEqual(Container(self).health(), 0)
        # With this setting, the health check uses a port on which nothing listens, so it must fail.
        self.assertNotEqual(Container(self, options=["--env=PHIMAP_SERVER=127.0.0.1:1"]).health(), 0)

    def test_the_health_check_asks_a_unix_socket_when_told_to(self):
        container = Container(self, options=["--env=PHIMAP_SERVER=unix:/data/socket"],
                              command=["--unix_listen=/data/socket"])
        self.assertEqual(container.health(), 0)

    def test_the_tls_variant_of_compose_serves_only_those_with_its_authority_and_a_token(self):
        folder = pathlib.Path(tempfile.mkdtemp(dir=session.BUILD / "image/tmp"))
        self.addCleanup(shutil.rmtree, folder)
        make_tls_folder(folder)
        flags, environment = tls_variant()
        self.assertEqual(flags[0], "--insecure")  # as in the command that these flags replace
        container = Container(self, command=flags[1:], options=[
            f"--volume={folder}:/tls:ro", *(f"--env={name}={value}" for name, value in environment.items())])
        self.assertEqual(container.health(), 0)
        self.assertIn("\nphimap_compute_threads ", container.metrics())
        (folder / "token").write_text("a-token-that-may-all\n")
        ca, token = f"--tls_ca={folder}/server.pem", f"--token_file={folder}/token"

        def exit_code_of(*access):
            return subprocess.run([*container.on_its_network(), session.BUILD / "client/cli/phimap",
                                   "--server=127.0.0.1:7450", *access, "list"], capture_output=True, check=False,
                                  env=session.ENVIRONMENT).returncode

        self.assertEqual(exit_code_of(ca, token), 0)
        self.assertEqual(exit_code_of(ca), 5)  # exit code 5: refused
        self.assertEqual(exit_code_of(token), 4)  # exit code 4: no server answers without TLS

    def test_sigterm_lets_a_stream_finish_and_turns_the_health_check_red(self):
        container = Container(self)
        container.exec("phimap", *session.BUILD_COMMAND, input=session.rows())
        header, *rows = session.rows().splitlines(keepends=True)
        # The client runs outside the container. Inside, it would be killed when phimapd, which is process 1, ends.
        with subprocess.Popen([*container.on_its_network(), session.BUILD / "client/cli/phimap",
                               *session.TRANSFORM_COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, env=session.ENVIRONMENT) as stream:
            features = queue.SimpleQueue()
            reader = threading.Thread(target=lambda: [features.put(line) for line in stream.stdout])
            reader.start()
            stream.stdin.write(header + "".join(rows))
            stream.stdin.flush()
            features.get(timeout=60)  # once the header arrives, the stream is open and still waits for input
            podman("kill", "--signal=TERM", container.name)
            while container.health() == 0:
                pass
            self.assertEqual(container.inspect("State.Running"), "true")
            self.assertIn("\nphimap_compute_threads ", container.metrics())
            stream.stdin.write("".join(rows))
            stream.stdin.close()
            reader.join()
        self.assertEqual(stream.returncode, 0)
        self.assertEqual(features.qsize(), 2 * len(rows))
        self.assertEqual(podman("wait", container.name).strip(), "0")

    def test_stop_ends_with_zero_and_the_volume_keeps_what_was_built(self):
        first = Container(self)
        first.exec("phimap", *session.BUILD_COMMAND, input=session.rows())
        before = first.exec("phimap", "show", "letters@1", "--json")
        podman("stop", first.name)
        self.assertEqual(first.inspect("State.ExitCode"), "0")
        second = Container(self, volume=first.volume)
        self.assertEqual(second.exec("phimap", "show", "letters@1", "--json"), before)

    def test_as_many_threads_compute_as_the_cpu_quota_allows(self):
        self.assertIn("\nphimap_compute_threads 1\n", Container(self, options=["--cpus=1"]).metrics())
        cores = len(os.sched_getaffinity(0))
        self.assertIn(f"\nphimap_compute_threads {min(cores, 64)}\n", Container(self).metrics())

    def test_without_insecure_it_says_what_is_missing_and_touches_nothing(self):
        refused = subprocess.run([*PODMAN, "run", "--rm", "--network=none", *limits(), session.IMAGE],
                                 capture_output=True, text=True, check=False, env=session.ENVIRONMENT)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("--insecure", refused.stderr)


if __name__ == "__main__":
    unittest.main()
