"""Holds all that lists methods to the table of facts, proto/methods/method_facts.h: the protos, the retries of the clients
for Python and Node.js, the proxies of deploy/ and the pages. Each failure is a sentence that says what to change, and where."""

import json
import re
import unittest
from typing import NamedTuple

import document

TABLE = "proto/methods/method_facts.h"
CONFIG = "client/python/phimap/service_config.json"
CONFIG_OF_NODE = "client/node/lib/service_config.json"
# Services that have no roles: health is open to all, and KernelService is served by users.
WITHOUT_FACTS = {"grpc.health.v1.Health", "phimap.v1.KernelService"}


def text_of(path):
    return (document.SOURCE / path).read_text(encoding="utf-8")


def line_of(path, words):
    """Returns "path:line" of the first line that contains `words`, or the path if no line does."""
    lines = [number for number, line in enumerate(text_of(path).splitlines(), 1) if words in line]
    return f"{path}:{lines[0]}" if lines else path


def line_in_config(method):
    return line_of(CONFIG, f'"{method}"')


class Facts(NamedTuple):
    role: str
    effect: str
    repeat: str

    @property
    def changes(self):
        return self.effect in ("Changes", "ChangesNames")


FACTS = {method: Facts(*facts) for method, *facts in re.findall(
    r'\{"([\w.]+/\w+)",\s+Role::k(\w+),\s+Effect::k(\w+),\s+Repeat::k(\w+)\}', text_of(TABLE))}
PROTOS = {str(path.relative_to(document.SOURCE)): path.read_text(encoding="utf-8")
          for path in (document.SOURCE / "proto").rglob("*.proto")}


class Rpc(NamedTuple):
    path: str
    request: str
    unary: bool


def rpcs():
    """Returns {method: its Rpc} for all methods of the protos that need facts."""
    found = {}
    for path, text in PROTOS.items():
        [package] = re.findall(r"^package ([\w.]+);", text, re.M)
        for service, body in re.findall(r"^service (\w+) \{\n(.*?)^\}", text, re.M | re.S):
            for name, kind, request, answer in re.findall(r"\brpc (\w+)\s*\((stream )?([\w.]+)\)\s*returns\s*\((stream )?", body):
                if f"{package}.{service}" not in WITHOUT_FACTS:
                    found[f"{package}.{service}/{name}"] = Rpc(path, request, not kind and not answer)
    return found


RPCS = rpcs()


class MethodFactsTest(unittest.TestCase):
    longMessage = False  # a failure is the sentence alone

    def test_every_method_of_the_protos_has_facts_and_no_other(self):
        self.assertGreater(len(RPCS), 30)
        for method, rpc in RPCS.items():
            with self.subTest(method):
                self.assertIn(method, FACTS, f"{line_of(TABLE, 'kMethodFacts[] = {')}: add {{\"{method}\", Role::kReader, Effect::kReads, "
                                             f"Repeat::kYes}}, with the facts that are true of this method of {rpc.path}")
        for method in FACTS:
            with self.subTest(method):
                self.assertIn(method, RPCS, f"{line_of(TABLE, method)}: remove {method}, which no proto has")

    def test_a_change_that_may_be_repeated_has_an_id(self):
        for method, rpc in RPCS.items():
            if not rpc.unary or method not in FACTS:
                continue
            with self.subTest(method):
                [(path, fields)] = [(path, fields) for path, text in PROTOS.items() for fields in
                                    re.findall(rf"^message {rpc.request.split('.')[-1]} \{{(.*?)\}}\n", text, re.M | re.S)]
                of_table = FACTS[method].repeat == "WithItsId"
                self.assertEqual(" operation_id =" in fields, of_table,
                                 f"{line_of(path, f'message {rpc.request} ')}: add the field string operation_id, by which the store makes "
                                 f"the change once, or say Repeat::kNo in {line_of(TABLE, method)}" if of_table else
                                 f"{line_of(TABLE, method)}: say Repeat::kWithItsId, because {rpc.request} has an operation_id")

    def test_a_call_that_changes_nothing_needs_no_id_and_one_that_changes_names_needs_one_to_be_repeated(self):
        for method, facts in FACTS.items():
            with self.subTest(method):
                self.assertFalse(facts.repeat == "WithItsId" and not facts.changes,
                                 f"{line_of(TABLE, method)}: {method} changes nothing, so say Repeat::kYes")
                self.assertFalse(facts.repeat == "Yes" and facts.effect == "ChangesNames",
                                 f"{line_of(TABLE, method)}: say Repeat::kWithItsId or Repeat::kNo, because {method} sent twice could "
                                 "undo the change that another client made in between")

    def test_the_python_client_repeats_what_may_be_repeated(self):
        entries = json.loads(text_of(CONFIG))["methodConfig"]
        by_name = {(name.get("service"), name.get("method")): entry for entry in entries for name in entry["name"]}
        for service, name in by_name:
            with self.subTest(service, method=name):
                self.assertTrue(name is None or f"{service}/{name}" in FACTS,
                                f"{line_in_config(name)}: remove {service}/{name}, which {TABLE} does not have")
        for method, facts in FACTS.items():
            service, name = method.split("/")
            if not service.startswith("phimap."):
                continue
            with self.subTest(method):
                entry = by_name.get((service, name)) or by_name.get((service, None)) or by_name[(None, None)]
                named = f'{{"service": "{service}", "method": "{name}"}}'
                self.assertEqual("retryPolicy" in entry, facts.repeat != "No",
                                 f"{line_in_config(name)}: move {named} to an entry with a retryPolicy, because {TABLE} says that it may be repeated"
                                 if facts.repeat != "No" else
                                 f"{line_in_config('Import')}: add {named} to the entry without a retryPolicy, because {TABLE} says that it "
                                 "must not be repeated")

    def test_the_node_client_repeats_what_the_python_client_does(self):
        self.assertEqual(text_of(CONFIG_OF_NODE), text_of(CONFIG), f"{CONFIG_OF_NODE}: copy {CONFIG}, because both clients repeat the same calls")

    def test_the_node_client_sends_an_id_with_each_change_that_may_be_repeated(self):
        # Builds and trainings have a build_id, which tests/client/node/build.test.mjs sees.
        client = "client/node/lib/client.js"
        named = set(re.findall(r"this\.#change\('(\w+)'", text_of(client)))
        expected = {method.split("/")[1] for method, facts in FACTS.items() if facts.repeat == "WithItsId"} - {"Build", "Train"}
        for name in sorted(named ^ expected):
            with self.subTest(name):
                self.fail(f"{client}: call {name} by #change, which draws an operation id, because {TABLE} says Repeat::kWithItsId"
                          if name in expected else f"{client}: call {name} by #call, because {TABLE} does not say Repeat::kWithItsId")

    def test_the_cpp_client_says_which_calls_it_repeats(self):
        header = "client/cpp/client.h"
        text = text_of(header).replace("\n//", "")
        for opening, repeat, others in (("Each change is sent with an id of its own", "WithItsId", {"Build", "Train"}), ("Not retried", "No", set())):
            [names] = re.findall(rf"{opening}[^:]*:((?: \w+,)* \w+)\.", text)
            listed = set(re.findall(r"\w+", names)) - {"CheckHealth"}
            expected = {method.split("/")[1] for method, facts in FACTS.items() if facts.repeat == repeat and method.startswith("phimap.")} - others
            for name in sorted(listed ^ expected):
                with self.subTest(name):
                    self.fail(f"{line_of(header, opening)}: add {name}, because {TABLE} says Repeat::k{repeat}" if name in expected else
                              f"{line_of(header, opening)}: remove {name}, because {TABLE} does not say Repeat::k{repeat}")

    def test_proxies_send_to_one_server_and_do_not_repeat_what_they_must(self):
        of_one_server = {method for method, facts in FACTS.items() if facts.effect != "Reads"}
        changing = {method for method, facts in FACTS.items() if facts.changes}
        for path, expected, why in (
                ("deploy/haproxy/haproxy.cfg", of_one_server, "only the server that builds and changes names may get it"),
                ("deploy/nginx/nginx.conf", of_one_server, "only the server that builds and changes names may get it"),
                ("deploy/haproxy/shared_store.cfg", changing, "it changes something, so the proxy must not repeat it"),
                ("deploy/haproxy/shared_store_tls.cfg", changing, "it changes something, so the proxy must not repeat it")):
            lists = re.findall(r"\^/([\w\\.]+)/\(([\w|]+)\)\$", text_of(path))
            listed = {f"{service.replace(chr(92), '')}/{name}" for service, names in lists for name in names.split("|")}
            self.assertTrue(lists, f"{path}: found no list of calls, as ^/phimap\\.v1\\.MappingService/(Build|Import)$")
            for method in sorted((expected ^ listed) - (RPCS.keys() - FACTS.keys())):
                service, name = method.split("/")
                of_service = service.replace(".", r"\.") + "/("
                with self.subTest(path, method=method):
                    place = line_of(path, of_service if of_service in text_of(path) else r"^/phimap\.")
                    self.fail(f"{place}: add |{name} to the list of calls of {service}: {why} ({TABLE})" if method in expected else
                              f"{place}: remove {name} from the list, because {TABLE} says that any server may answer {method}, and a proxy "
                              "may repeat it")

    def test_the_pages_name_the_calls_of_each_role_and_of_one_server(self):
        page = "docs/operations/run.md"
        rows = dict(row for row in document.table_rows(text_of(page)) if row[0] in ("builder", "admin"))
        for method, facts in FACTS.items():
            role, name = facts.role.lower(), method.split("/")[1]
            for named_by, row in rows.items():
                with self.subTest(method, row=named_by):
                    self.assertEqual(name in re.findall(r"\w+", row), role == named_by,
                                     f"{line_of(page, f'| {named_by} |')}: " + (f"add {name}, which needs" if role == named_by else f"remove {name}, which does not need") +
                                     f" the role {named_by} ({TABLE})")
            page_of_proxies = "docs/proxies.md"
            [listed] = re.findall(r"^Builds and changes are calls to one server.*?\n\n", text_of(page_of_proxies), re.M | re.S)
            with self.subTest(method, page=page_of_proxies):
                self.assertTrue(facts.effect == "Reads" or name in re.findall(r"\w+", listed),
                                f"{line_of(page_of_proxies, 'Builds and changes are calls to one server')}: add {name}, which proxies send to one server")


if __name__ == "__main__":
    unittest.main()
