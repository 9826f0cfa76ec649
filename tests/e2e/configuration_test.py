"""Tests where phimapd's settings come from, what it says of wrong ones, and what SIGHUP changes in a server that runs.

    configuration_test.py --phimapd=… --phimap=… --protoc=… --plugin=… --proto_dir=…
"""

import contextlib
import json
import os
import pathlib
import queue
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request
import uuid

import grpc
import numpy as np

from http2_frames import TRANSFORM, Connection, message, request
from phimapd import generate_stubs, take_flags

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LETTERS = SOURCE / "lab/data/letter.csv"
TOKEN = "the-token-of-a-caller-0123456789"
INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 8
# What Kubernetes puts into a container's environment for Services "phimapd" and "phimapd-http", and a client's variable.
FOREIGN = {"PHIMAPD_SERVICE_HOST": "10.0.0.1", "PHIMAPD_SERVICE_PORT": "7450", "PHIMAPD_SERVICE_PORT_GRPC": "7450",
           "PHIMAPD_PORT": "tcp://10.0.0.1:7450", "PHIMAPD_PORT_7450_TCP": "tcp://10.0.0.1:7450",
           "PHIMAPD_PORT_7450_TCP_PROTO": "tcp", "PHIMAPD_PORT_7450_TCP_PORT": "7450",
           "PHIMAPD_PORT_7450_TCP_ADDR": "10.0.0.1", "PHIMAPD_HTTP_SERVICE_HOST": "10.0.0.2",
           "PHIMAPD_HTTP_PORT": "tcp://10.0.0.2:80", "PHIMAP_SERVER": "10.0.0.1:7450", "PHIMAP_PORT": "tcp://10.0.0.1:7450"}

arguments = None


def until(condition, seconds=20):
    """Returns the first true value of condition(). Fails if there is none within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s: {condition}")


def environment(variables):
    """The environment of this test, without variables of phimapd, and with these."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PHIMAPD_")} | variables


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.folder / "phimapd.toml"

    def phimapd(self, *flags, file=None, **variables):
        """Runs phimapd to its end. `file` is the text of its configuration file; None if there is none."""
        if file is not None:
            self.file.write_text(file, encoding="utf-8")
            flags = (f"--config={self.file}", *flags)
        return subprocess.run([arguments.phimapd, *flags], env=environment(variables), capture_output=True, text=True,
                              check=False, timeout=60)


class SourcesTest(Folder):
    def settings(self, *flags, **more):
        """Returns the settings by their names, from --print_config --json."""
        done = self.phimapd("--print_config", "--json", *flags, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        settings = json.loads(done.stdout)["settings"]
        self.assertGreater(len(settings), 40)
        return {setting.pop("name"): setting for setting in settings}

    def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(self):
        file = 'data_dir = "x"\nmax_builds = 1\n\nio_threads = 1\ncompute_threads = 1\n'
        settings = self.settings("--compute_threads=3", file=file, PHIMAPD_IO_THREADS="2", PHIMAPD_COMPUTE_THREADS="2")
        def said(name):
            return tuple(settings[name][key] for key in ("value", "source", "place"))
        self.assertEqual(said("compute_threads"), (3, "flag", "--compute_threads"))
        self.assertEqual(said("io_threads"), (2, "environment", "PHIMAPD_IO_THREADS"))
        self.assertEqual(said("max_builds"), (1, "file", f"{self.file}:2"))
        self.assertEqual(said("drain_seconds"), (20, "default", ""))
        self.assertEqual(said("token_file"), (None, "default", ""))

    def test_each_kind_of_value_is_the_same_from_a_flag_the_environment_and_the_file(self):
        by_flags = self.settings("--data_dir=x", "--insecure", "--proxy=10.0.0.1", "--proxy=10.0.0.2", "--log_level=error",
                                 "--http_hosts=a.example,b.example", "--max_live_bytes=1048576", "--trace_ratio=.25")
        by_variables = self.settings(PHIMAPD_DATA_DIR="x", PHIMAPD_INSECURE="true", PHIMAPD_PROXY="10.0.0.1,10.0.0.2",
                                     PHIMAPD_LOG_LEVEL="error", PHIMAPD_HTTP_HOSTS="a.example,b.example",
                                     PHIMAPD_MAX_LIVE_BYTES="1048576", PHIMAPD_TRACE_RATIO="0.25")
        by_file = self.settings(file='data_dir = "x"\ninsecure = true\nproxy = ["10.0.0.1", "10.0.0.2"]\nlog_level = "error"\n'
                                     'http_hosts = ["a.example", "b.example"]\nmax_live_bytes = 1_048_576\ntrace_ratio = 25e-2\n')
        def values(settings):
            return {name: setting["value"] for name, setting in settings.items()}
        self.assertEqual(values(by_flags), values(by_variables))
        self.assertEqual(values(by_flags), values(by_file))
        self.assertEqual(values(by_flags)["proxy"], ["10.0.0.1", "10.0.0.2"])
        self.assertIs(values(by_flags)["insecure"], True)
        self.assertEqual(values(by_flags)["max_live_bytes"], 1 << 20)
        self.assertEqual(values(by_flags)["trace_ratio"], 0.25)
        self.assertEqual(self.settings(file='data_dir = "x"\ntrace_ratio = 1\n')["trace_ratio"]["value"], 1)

    def test_a_flag_can_switch_off_what_the_file_switches_on(self):
        self.assertIs(self.settings("--insecure=false", file='data_dir = "x"\ninsecure = true\n')["insecure"]["value"], False)

    def test_the_file_may_be_named_by_the_environment(self):
        self.file.write_text('data_dir = "from the file"\n', encoding="utf-8")
        self.assertEqual(self.settings(PHIMAPD_CONFIG=str(self.file))["data_dir"]["value"], "from the file")

    def test_what_is_printed_for_people_is_a_file_that_gives_the_same_settings(self):
        flags = ("--data_dir=a \"quoted\" \\ name, ü", "--insecure", "--proxy=10.0.0.1", "--max_builds=3", "--drain_seconds=1")
        printed = self.phimapd("--print_config", *flags)
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertRegex(printed.stdout, r"(?m)^max_builds = 3 +# --max_builds$")
        self.assertRegex(printed.stdout, r"(?m)^# token_file +# not set$")
        self.assertRegex(printed.stdout, r"(?m)^# lame_duck_seconds = 2 +# default$")
        by_flags, by_file = self.settings(*flags), self.settings(file=printed.stdout)
        for name, setting in by_flags.items():
            self.assertEqual(by_file[name]["value"], setting["value"], name)
        self.assertEqual(by_file["data_dir"]["source"], "file")

    def test_variables_of_kubernetes_and_of_clients_are_ignored(self):
        settings = self.settings("--data_dir=x", **FOREIGN)
        self.assertEqual({name for name, setting in settings.items() if setting["source"] == "environment"}, set())


class RefusalsTest(Folder):
    def refused(self, *flags, **more):
        """Returns what phimapd says when it refuses its settings, before it has created anything."""
        done = self.phimapd(*flags, **more)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual({path.name for path in self.folder.iterdir()} - {self.file.name}, set())
        return done.stderr.removeprefix("phimapd: ")

    def test_an_error_of_the_file_names_line_key_what_was_expected_and_what_came(self):
        at = f"{self.file}:2: "
        cases = {
            "max_bulids = 3": at + 'unknown key "max_bulids"; did you mean max_builds?\n  a key is a flag of \'phimapd --help\'',
            "zzz = 3": at + 'unknown key "zzz"\n  a key is',
            'config = "x"': at + 'unknown key "config"',
            "max_builds = 0": at + "max_builds: expected an integer from 1 to 1024, got '0'\n",
            'max_builds = "3"': at + "max_builds: expected an integer, got TOML's string\n",
            "max_builds = 3.5": at + "max_builds: expected an integer, got TOML's floating-point\n",
            'trace_ratio = "0.5"': at + "trace_ratio: expected a number, got TOML's string\n",
            "insecure = 1": at + "insecure: expected true or false, got TOML's integer\n",
            "data_dir = true": at + "data_dir: expected a string, got TOML's boolean\n",
            'data_dir = ""': at + "data_dir: expected a value, got nothing\n",
            'data_dir = ["x"]': at + "data_dir: expected a string, got TOML's array\n",
            'proxy = "10.0.0.1"': at + "proxy: expected an array of strings, got TOML's string\n",
            "proxy = [1]": at + "proxy: expected an array of strings, got TOML's array\n",
            "[server]": at + 'unknown key "server"',
            'log_level = "verbose"': at + "log_level: expected debug, info, warning, error or off, got 'verbose'\n",
            # Errors of several settings, which are found when all are known.
            'listen = "0.0.0.0:1"': at + "listen: ",
            'proxy = ["localhost"]': at + "proxy: expected an IP address",
            # The columns are those of the first letter that cannot be.
            "max_builds = = 3": f"{self.file}:2:14: not TOML: ",
            "max_builds = 3\nmax_builds = 4": f"{self.file}:3:",
        }
        for line, expected in cases.items():
            with self.subTest(line):
                known = "" if line.startswith("data_dir") else 'data_dir = "x"'
                self.assertIn(expected, self.refused(file=f"{known}\n{line}\n"))

    def test_an_error_of_the_environment_names_the_variable(self):
        for name, value, expected in (
                ("PHIMAPD_MAX_BULIDS", "3", "unknown variable; did you mean PHIMAPD_MAX_BUILDS?"),
                ("PHIMAPD_TOKN_FILE", "x", "unknown variable; did you mean PHIMAPD_TOKEN_FILE?"),
                ("PHIMAPD_FLAGS", "--insecure", "unknown variable\n"),
                ("PHIMAPD_PRINT_CONFIG", "true", "unknown variable\n"),
                ("PHIMAPD_MAX_BUILDS", "many", "expected an integer from 1 to 1024, got 'many'\n"),
                ("PHIMAPD_TOKEN_FILE", "", "expected a value, got nothing\n"),
                ("PHIMAPD_INSECURE", "yes", "expected true or false, got 'yes'\n"),
                ("PHIMAPD_TLS_KEY", "x", "expected --tls_certificate to be set as well\n")):
            with self.subTest(name):
                self.assertTrue(self.refused("--data_dir=x", **{name: value}).startswith(f"{name}: {expected}"))

    def test_a_variable_that_a_flag_beats_must_be_known_and_the_file_is_checked_to_its_end(self):
        self.assertIn("PHIMAPD_MAX_BULIDS", self.refused("--data_dir=x", "--max_builds=3", PHIMAPD_MAX_BULIDS="3"))
        self.assertIn("max_bulids", self.refused("--data_dir=x", "--max_builds=3", file="max_builds = 2\nmax_bulids = 3\n"))

    def test_a_file_that_cannot_be_read_is_named(self):
        for path in (self.folder / "none.toml", self.folder):
            self.assertIn(str(path), self.refused("--data_dir=x", f"--config={path}"))
        self.assertIn("--json: expected --print_config to be set as well", self.refused("--data_dir=x", "--json"))

    def test_a_password_is_refused_and_repeated_nowhere(self):
        store = "postgresql://phimap:s3cr3t@db.example/phimap"
        cache = f"--cache_dir={self.folder}/cache"
        for more in ({"file": f'store = "{store}"\n'}, {"PHIMAPD_STORE": store}, {"file": f"store = {store}\n"}):
            for flags in ((), ("--print_config",), ("--print_config", "--json")):
                said = self.refused(cache, *flags, **more)
                self.assertNotIn("s3cr3t", said)
        self.assertIn("store: the database's address holds a password", self.refused(cache, file=f'store = "{store}"\n'))


class Running(Folder):
    """A server whose settings are in a file."""

    def start(self, *flags, **settings):
        self.write(**settings)
        self.errors = self.folder / "errors"
        self.errors.touch()
        with self.errors.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [arguments.phimapd, f"--config={self.file}", f"--data_dir={self.folder}/data", "--listen=127.0.0.1:0",
                 "--http=127.0.0.1:0", *flags], env=environment({}), stdout=subprocess.PIPE, stderr=errors, text=True)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        words = dict(word.split("=") for word in self.process.stdout.readline().split() if "=" in word)
        self.address, self.http = words["grpc"], words["http"]

    def write(self, **settings):
        self.file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()),
                             encoding="utf-8")

    def log(self):
        return self.errors.read_text(encoding="utf-8")

    def hang_up(self, event="config_read"):
        """Sends SIGHUP, and returns the lines of the log from then to `event`."""
        before = len(self.log())
        self.process.send_signal(signal.SIGHUP)
        def lines():
            written = self.log()[before:]
            whole = written[:written.rfind("\n") + 1]
            return whole if f" {event} " in whole else ""
        return until(lines)

    def change(self, **settings):
        """Writes the file anew, and returns the lines with which the server has read it."""
        self.write(**settings)
        return self.hang_up()

    def metric(self, name, label="{"):
        """Returns the value of a metric, or the sum of those of its series that have the label."""
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            return sum(float(line.rsplit(" ", 1)[1]) for line in answer.read().decode().splitlines()
                       if line.startswith(f"{name} ") or line.startswith(f"{name}{{") and label in line)

    def phimap(self, *words):
        """Runs a command, and returns "" or what it says when it fails."""
        done = subprocess.run([arguments.phimap, f"--server={self.address}", *words], capture_output=True, text=True,
                              check=False, timeout=60)
        return "" if done.returncode == 0 else done.stderr

    def build(self, name):
        return self.phimap("build", name, f"--input={LETTERS}", "--label=label", "--spec=f2(landmarks=10)",
                           "--kernel=rbf(gamma=scale)")


class HangUpTest(Running):
    @classmethod
    def setUpClass(cls):
        module = generate_stubs(cls, arguments)
        cls.examples = module("phimap.v1.examples_pb2")
        cls.mappings = module("phimap.v1.mapping_service_pb2")
        cls.transforms = module("phimap.v1.transform_service_pb2")
        cls.mapping_stub = module("phimap.v1.mapping_service_pb2_grpc").MappingServiceStub
        cls.transform_stub = module("phimap.v1.transform_service_pb2_grpc").TransformServiceStub

    def setUp(self):
        super().setUp()
        self.calls = []

    def channel(self):
        return self.enterContext(grpc.insecure_channel(self.address, options=[
            ("grpc.enable_http_proxy", 0), ("grpc.enable_retries", 0)]))

    def open_build(self, name, *more):
        """Begins a build of ten rows, and leaves it open unless `more` messages end it."""
        requests = queue.Queue()
        rows = self.examples.DenseRows(rows=10, columns=2, float32_le=np.arange(20, dtype=np.float32).tobytes())
        spec = self.mappings.BuildSpec(name=name, build_id=str(uuid.uuid4()), kernel="rbf(gamma=1)", spec="f1(landmarks=2)")
        for one in (self.mappings.BuildRequest(spec=spec),
                    self.mappings.BuildRequest(examples=self.examples.Examples(dense=rows)), *more):
            requests.put(one)
        self.addCleanup(requests.put, None)
        # A call that nobody refers to is cancelled.
        self.calls.append(self.mapping_stub(self.channel()).Build(iter(requests.get, None)))
        return self.calls[-1]

    def code_of(self, call):
        """Waits for the end of a call, and returns its code."""
        with contextlib.suppress(grpc.RpcError):
            for _ in call:
                pass
        return call.code()

    def test_the_level_of_the_log(self):
        self.start(log_level="error")
        stub = self.mapping_stub(self.channel())
        def call():
            stub.ListMappings(self.mappings.ListMappingsRequest())
        call()
        lines = self.change(log_level="debug")
        self.assertIn("INFO setting_changed setting=log_level from=error to=debug ", lines)
        self.assertNotIn(" DEBUG ", self.log())
        call()
        until(lambda: " DEBUG " in self.log())
        self.change(log_level="error")
        quiet = len(self.log())
        call()
        # Lines are written in the order of the events, so that of the call would come before these.
        self.change(log_level="info")
        self.assertNotIn(" DEBUG ", self.log()[quiet:])

    def test_the_calls_of_a_caller(self):
        tokens = self.folder / "tokens"
        tokens.write_text(f"reader {TOKEN}\n", encoding="utf-8")
        tokens.chmod(0o600)
        self.start(f"--token_file={tokens}", max_calls_per_caller=1)
        channel, token = self.channel(), [("authorization", f"Bearer {TOKEN}")]
        requests = queue.Queue()
        self.addCleanup(requests.put, None)
        self.calls.append(self.transform_stub(channel).TransformStream(iter(requests.get, None), metadata=token))
        def code():
            try:
                self.mapping_stub(channel).GetMapping(self.mappings.GetMappingRequest(name="none"), metadata=token)
            except grpc.RpcError as error:
                return error.code()
            return None
        until(lambda: self.metric("grpc_server_started_total", 'grpc_method="TransformStream"') == 1)
        self.assertEqual(code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.change(max_calls_per_caller=2)
        self.assertEqual(code(), grpc.StatusCode.NOT_FOUND)
        self.change(max_calls_per_caller=1)
        self.assertEqual(code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_connections(self):
        for name in ("max_connections", "max_connections_per_host"):
            with self.subTest(name), contextlib.ExitStack() as stack:
                self.start(**{name: 1})
                def accepted():
                    connection = stack.enter_context(Connection(self.address))
                    connection.read_until(lambda: connection.counts)
                    return not connection.closed
                self.assertTrue(accepted())
                self.assertFalse(accepted())
                self.change(**{name: 2})
                self.assertTrue(accepted())
                self.assertFalse(accepted())
                # The two that are open stay.
                self.change(**{name: 1})
                self.assertFalse(accepted())
                self.assertEqual(self.metric("phimap_connections_open"), 2)
                self.process.kill()
                self.process.wait()

    def test_the_memory_of_requests(self):
        self.start(memory_bytes=1 << 19)
        with Connection(self.address) as connection:
            def begin(stream):
                connection.send(request(stream, TRANSFORM))
                connection.send_data(stream, message(b"", declared=400_000))
            begin(1)
            until(lambda: self.metric("phimap_request_memory_bytes") > 300_000)
            begin(3)
            self.assertTrue(connection.read_until(lambda: 3 in connection.statuses))
            self.assertEqual(connection.statuses[3], RESOURCE_EXHAUSTED)
            self.change(memory_bytes=1 << 26)
            self.assertEqual(self.metric("phimap_request_memory_limit_bytes"), 1 << 26)
            begin(5)
            # Zeros are no message of any type, so a call that has got its memory is INVALID_ARGUMENT.
            connection.send_data(5, bytes(400_000), end=True)
            self.assertTrue(connection.read_until(lambda: 5 in connection.statuses))
            self.assertEqual(connection.statuses[5], INVALID_ARGUMENT)

    def test_the_memory_of_versions(self):
        self.start(max_live_bytes=1 << 26)
        self.assertEqual(self.build("letters"), "")
        def transform():
            return self.phimap("transform", "letters", f"--input={LETTERS}", "--label=label",
                               f"--output={self.folder}/features.npy")
        self.assertEqual(transform(), "")
        self.assertEqual(self.metric("phimap_live_versions"), 1)
        self.change(max_live_bytes=1024)
        self.assertEqual(self.metric("phimap_live_versions"), 0)
        self.assertIn("1024", transform())
        self.change(max_live_bytes=1 << 26)
        self.assertEqual(transform(), "")

    def test_builds(self):
        self.start(max_builds=1)
        self.open_build("one")
        until(lambda: self.metric("phimap_builds", 'state="receiving"') == 1)
        finish = self.mappings.BuildRequest(finish=self.mappings.BuildFinish(row_count=10))
        self.assertEqual(self.code_of(self.open_build("two", finish)), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.change(max_builds=2)
        self.assertEqual(self.code_of(self.open_build("two", finish)), grpc.StatusCode.OK)
        self.change(max_builds=1)
        self.assertEqual(self.code_of(self.open_build("three", finish)), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_the_memory_of_builds(self):
        self.start(build_memory_bytes=1024)
        self.assertIn("--build_memory_bytes=1024", self.build("letters"))
        self.change(build_memory_bytes=1 << 28)
        self.assertEqual(self.build("letters"), "")

    def test_the_disk_of_trainings(self):
        self.start(training_disk_bytes=1024)
        def train():
            return self.phimap("train", "letters", f"--input={LETTERS}", "--label=label", "--spec=f2(landmarks=10)",
                               "--kernel=rbf(gamma=scale)")
        self.assertIn("the limit of 1024 bytes on disk", train())
        self.change(training_disk_bytes=1 << 28)
        self.assertEqual(train(), "")

    def test_what_needs_a_restart_is_told_until_then(self):
        self.start(drain_seconds=5, max_builds=3)
        lines = self.change(drain_seconds=6, max_builds=4, proxy=["10.0.0.1"])
        self.assertIn(f"INFO setting_changed setting=max_builds from=3 to=4 place={self.file}:2\n", lines)
        self.assertIn(f"WARNING setting_needs_restart setting=drain_seconds in_force=5 then=6 place={self.file}:1\n", lines)
        self.assertIn('WARNING setting_needs_restart setting=proxy in_force="not set" then=10.0.0.1 ', lines)
        self.assertRegex(lines, r" config_read file=\S+ changed=1 needs_restart=2\n")
        again = self.hang_up()
        self.assertNotIn("setting_changed", again)
        self.assertRegex(again, r" config_read file=\S+ changed=0 needs_restart=2\n")
        self.assertRegex(self.change(drain_seconds=5, max_builds=4), r" config_read file=\S+ changed=0 needs_restart=0\n")

    def test_a_flag_still_beats_the_file(self):
        self.start("--max_builds=7", max_builds=3)
        self.assertRegex(self.change(max_builds=4), r" changed=0 needs_restart=0\n")
        self.assertEqual(self.metric("phimap_builds_limit"), 7)

    def test_a_wrong_file_changes_nothing_and_is_counted(self):
        failures = ("phimap_reload_failures_total", 'file="config"')
        self.start(max_builds=3)
        self.assertEqual(self.metric(*failures), 0)
        wrong = (('max_builds = 4\nmax_bulids = 5\n', r"phimapd\.toml:2: unknown key .*max_builds\?"),
                 ('max_builds = 4\nlog_level = "loud"\n', r"phimapd\.toml:2: log_level: expected debug"),
                 ("max_builds = 4\n[", r"phimapd\.toml:2:2: not TOML"), (None, "No such file"))
        for count, (text, expected) in enumerate(wrong, 1):
            with self.subTest(text):
                if text is None:
                    self.file.unlink()
                else:
                    self.file.write_text(text, encoding="utf-8")
                lines = self.hang_up("config_wrong")
                self.assertRegex(lines, f"ERROR config_wrong error=.*{expected}")
                self.assertNotIn("setting_changed", lines)
                self.assertEqual(self.metric("phimap_builds_limit"), 3)
                self.assertEqual(self.metric(*failures), count)
        self.change(max_builds=4)
        self.assertEqual(self.metric("phimap_builds_limit"), 4)

    def test_a_server_that_was_told_to_read_its_file_still_drains(self):
        self.start(max_builds=3)
        self.change(max_builds=4)
        self.process.send_signal(signal.SIGTERM)
        self.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.process.wait(timeout=20), 0)


if __name__ == "__main__":
    arguments = take_flags("phimapd", "phimap", "protoc", "plugin", "proto_dir")
    unittest.main()
