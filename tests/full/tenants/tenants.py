"""Four teams on one server, of which three attack the fourth with all that their tokens allow.

    tenants.py --phimapd=… --phimap=… --minutes=10

Team `a` serves and builds; `b` is a builder with limits, `c` an admin, `d` a reader, each of its own names only, and `d`
also of a-public-*, without export. The server runs on one core; the attackers, with nice 10, and team a share the others.
What must hold:

* what `a` has, and d may not see, is in no answer to an attacker, and every error is that of a name that does not exist;
* every call of `a` is answered: Transforms, with a p99 of at most 20 ms in the median of runs of ten seconds, and builds,
  moves of an alias and deletions, one after the other;
* the versions of `b` take no more of the store than they may, and `b` gets no more rows mapped than its rate;
* at the end `a` has what it made, with its digests, and every change of it in the audit is its own.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import uuid

import numpy as np
from phimapd import Phimapd, bench_result

import phimap

VERSIONS, ROWS_A_SECOND = 20, 20_000
TOKENS = {team: f"the-token-of-team-{team}-0123456789abcdef" for team in ("a", "b", "c", "d", "ops")}
P99_MS = 20
RUN_SECONDS = 10
ROWS = np.random.default_rng(1).standard_normal((400, 16)).astype(np.float32)

WRONG = []
MADE = {}  # what each attack did, and how often


def wrong(what):
    if len(WRONG) < 50:
        print("WRONG:", what, flush=True)
    WRONG.append(what)


def count(what, times=1):
    MADE[what] = MADE.get(what, 0) + times


class Attack(threading.Thread):
    """Calls `step` again and again, with a client of `team`, until `stop` is set."""

    def __init__(self, server, stop, team, step):
        super().__init__(daemon=True)
        self.server, self.stopped, self.team, self.step = server, stop, team, step

    def run(self):
        os.nice(10)  # of this thread alone
        with phimap.Client(self.server.address, token=TOKENS[self.team], tls=None) as client:
            for number in itertools.count():
                if self.stopped.is_set():
                    return
                try:
                    self.step(client, number)
                except phimap.Error as error:
                    count(f"{self.team} {self.step.__name__}: {error.reason or type(error).__name__}")
                    self.stopped.wait(0.001)
                else:
                    count(f"{self.team} {self.step.__name__}: OK")


def refusal(call):
    """Returns the error of a call, as text; None if it succeeded."""
    try:
        call()
    except phimap.Error as error:
        return f"{type(error).__name__} {error.reason} {error}"
    return None


def same_as_absent(client, what, call):
    there, absent = refusal(lambda: call("a-cards")), refusal(lambda: call("a-cords"))
    if there is None:
        wrong(f"{what} of another team's mapping was answered")
    elif there.replace("a-cards", "a-cords") != absent:
        wrong(f"{what}: {there} differs from {absent}")


def look(client, number):
    """Asks for everything about a mapping of team a, by all kinds of references."""
    build_id = str(uuid.UUID(int=1))
    calls = {
        "get_mapping": lambda name: client.get_mapping(name),
        "get_version": lambda name: client.get_version(name + "@1"),
        "get_version by alias": lambda name: client.get_version(name + "@prod"),
        "list_versions": lambda name: client.list_versions(name),
        "transform": lambda name: client.transform(name + "@prod", ROWS[:1]),
        "get_drift": lambda name: client.get_drift(name),
        "get_build": lambda name: client.get_build(name, build_id),
    }
    what, call = list(calls.items())[number % len(calls)]
    same_as_absent(client, what, call)


def lists(client, number):
    seen = [str(client.list_mappings()), str(client.list_builds())]
    for text in seen:
        if "a-cards" in text or "a-work" in text:
            wrong(f"a list shows another team's mapping: {text[:200]}")


def audit(client, number):
    if any(entry.mapping.startswith("a-") for entry in client.list_audit_entries()):
        wrong("the audit of another team is shown")


def change(client, number):
    """Tries to move, delete and stop what team a has."""
    calls = {
        "set_alias": lambda name: client.set_alias(name + "@1", "prod"),
        "delete_alias": lambda name: client.delete_alias(name, "prod"),
        "delete_version": lambda name: client.delete_version(name + "@1"),
        "delete_mapping": lambda name: client.delete_mapping(name),
        "keep_version": lambda name: client.keep_version(name + "@1"),
    }
    what, call = list(calls.items())[number % len(calls)]
    same_as_absent(client, what, call)


def take_name(client, number):
    same_as_absent(client, "build", lambda name: client.build(name, ROWS, spec="f2(landmarks=5)", kernel="rbf(gamma=0.1)"))


def cancel(client, number):
    for build in STARTED[-3:]:
        if refusal(lambda: client.cancel_build("a-work", build)) is None:
            wrong("another team's build was cancelled")


def export(client, number):
    if refusal(lambda: client.export("a-public-cards@1", os.devnull)) is None:
        wrong("an artifact was exported without the right to")


def read_public(client, number):
    client.transform("a-public-cards@1", ROWS)


def fill(client, number):
    """Builds as fast as it may, to take the whole store."""
    client.build(f"b-{number % 7}", ROWS[: 100 + number % 200], spec="f2(landmarks=20)", kernel="rbf(gamma=0.1)", seed=number)


def flood(client, number):
    """Maps as many rows as it can, in large requests."""
    client.transform("b-0", np.repeat(ROWS, 10, axis=0))
    count("rows of b", 10 * len(ROWS))


def hold(client, number):
    """Begins builds and sends no rows, to take the places of others."""
    def silent():
        yield ROWS[:10]
        time.sleep(3)
        yield ROWS[:10]
    client.build("b-held", silent(), spec="f2(landmarks=5)", kernel="rbf(gamma=0.1)")


STARTED = []  # ids of the builds that team a began


def work(server, stop, made):
    """Team a's own work: a build, an alias that moves, a deletion. Nothing of it may fail."""
    with phimap.Client(server.address, token=TOKENS["a"], tls=None) as client:
        for number in itertools.count():
            if stop.is_set():
                return
            try:
                build_id = str(uuid.uuid4())
                STARTED.append(build_id)
                version = client.build("a-work", ROWS, spec="f2(landmarks=20)", kernel="rbf(gamma=0.1)", seed=number, build_id=build_id)
                made[version.ref.number] = version.ref.digest
                client.set_alias(f"a-work@{version.ref.number}", "prod")
                old = version.ref.number - 5
                if old in made:
                    client.delete_version(f"a-work@{old}")
                    del made[old]
            except phimap.Error as error:
                wrong(f"team a was refused: {error.reason} {error}")
            stop.wait(0.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phimapd", required=True)
    parser.add_argument("--phimap", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        tokens = pathlib.Path(folder) / "tokens"
        tokens.write_text(
            f"a admin {TOKENS['a']} names=a-*\n"
            f"b builder {TOKENS['b']} names=b-* versions={VERSIONS} bytes=20000000 builds=100000 rows={ROWS_A_SECOND}\n"
            f"c admin {TOKENS['c']} names=c-*\n"
            f"d reader {TOKENS['d']} names=d-*,a-public-* export=no\n"
            f"ops admin {TOKENS['ops']}\n")
        tokens.chmod(0o600)
        os.sched_setaffinity(0, cores[:1])
        server = stack.enter_context(Phimapd(arguments, f"--token_file={tokens}", f"--audit_log={folder}/audit.log"))
        os.sched_setaffinity(0, cores[1:] or cores)
        with phimap.Client(server.address, token=TOKENS["a"], tls=None) as client:
            for name in ("a-cards", "a-public-cards"):
                client.build(name, ROWS, spec="f2(landmarks=50)", kernel="rbf(gamma=0.1)", build_id=uuid.UUID(int=1))
            client.set_alias("a-cards@1", "prod")
            digest = client.get_version("a-cards@1").ref.digest
        with phimap.Client(server.address, token=TOKENS["b"], tls=None) as client:
            client.build("b-0", ROWS, spec="f2(landmarks=50)", kernel="rbf(gamma=0.1)")
        os.environ["PHIMAP_TOKEN"] = TOKENS["a"]  # of `phimap bench`
        stop, made = threading.Event(), {}
        steps = [("b", step) for step in (look, lists, take_name, fill, flood, hold, hold, hold)]
        steps += [("c", step) for step in (look, lists, audit, change, cancel)]
        steps += [("d", step) for step in (look, lists, export, read_public)]
        threads = [Attack(server, stop, team, step) for team, step in steps]
        threads.append(threading.Thread(target=work, args=(server, stop, made), daemon=True))
        began = time.monotonic()
        for thread in threads:
            thread.start()
        latencies = []
        while time.monotonic() < began + arguments.minutes * 60:
            result = bench_result(server.start_bench("a-cards@prod", RUN_SECONDS))
            if result["errors"] or not result["answered"]:
                wrong(f"calls of team a failed: {result['errors']}")
            latencies.append(result["latency_us"]["p99"] / 1000)
        stop.set()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        p99 = statistics.median(latencies)
        if p99 > P99_MS:
            wrong(f"p99 of team a: {p99:.1f} ms, over {P99_MS}")
        rows = MADE.get("rows of b", 0)
        if rows > ROWS_A_SECOND * (seconds + 2):
            wrong(f"team b had {rows} rows mapped in {seconds:.0f} s")
        # Clients wait as a refusal tells them, so they see none. A rate that is all used is what held the flood back.
        if rows < 0.9 * ROWS_A_SECOND * seconds:
            wrong(f"team b had only {rows} rows mapped in {seconds:.0f} s")
        for what in ("b fill: STORE_SHARE_REACHED", "d read_public: OK"):
            if not MADE.get(what):
                wrong(f"nothing came of an attack: {what}")
        with phimap.Client(server.address, token=TOKENS["ops"], tls=None) as client:
            of_b = [version for mapping in client.list_mappings() if mapping.name.startswith("b-")
                    for version in client.list_versions(mapping.name)]
            if len(of_b) > VERSIONS:
                wrong(f"team b has {len(of_b)} versions")
            if client.get_version("a-cards@prod").ref.digest != digest:
                wrong("team a's version is another one")
            kept = {version.ref.number: version.ref.digest for version in client.list_versions("a-work")}
            if kept != made:
                wrong(f"team a made {made} and has {kept}")
            changes = client.list_audit_entries()
            if any(entry.mapping.startswith("a-") and entry.outcome == "OK" and entry.principal != "a" for entry in changes):
                wrong("somebody else changed what team a has")
            lines = pathlib.Path(folder, "audit.log").read_text().splitlines()
            if len(lines) != max(entry.number for entry in changes):
                wrong(f"{len(lines)} lines for {len(changes)} entries")
            refused = sum(entry.outcome != "OK" for entry in changes)
        for what, times in sorted(MADE.items()):
            print(f"{times:9,}  {what}")
        print(f"team a: p99 {p99:.2f} ms; {len(STARTED)} builds; {len(of_b)} versions of team b; {len(changes)} entries of the "
              f"audit, {refused} of them refusals; {seconds:.0f} s")
    if WRONG:
        sys.exit(f"{len(WRONG)} things did not hold")


if __name__ == "__main__":
    main()
