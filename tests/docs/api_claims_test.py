"""Compares the statements of docs/api.md about calls, roles, limits and reasons with a running server, its flags and
its sources."""

import os
import re
import unittest

import document
import programs
import server
from phimap.v1 import kernel_service_pb2

# Kinds of calls: the word in grpc_server_started_total, and the words on the page.
KINDS = {"unary": "unary", "server_stream": "server stream", "client_stream": "client stream",
         "bidi_stream": "bidirectional stream"}

# Errors that a call reports with another code than the sources give them. If a chunk arrives damaged, Import reports
# DATA_LOSS (server/mapping/artifact_import.cc).
TOLD_OTHERWISE = {("Import", "INVALID_ARGUMENT"): "DATA_LOSS"}

# Constants whose name is defined in several files, and the file whose value is meant.
DEFINED_IN = {"kMaxDepth": "kernel_parser.cc", "kMaxNameBytes": "reference.cc",
              "kMaxTextBytes": "status_trailers.cc"}
UNITS = {"": 1, "bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1, "deep": 1, "days": 24 * 3600}


def sources():
    return {path: path.read_text(encoding="utf-8") for folder in ("server", "core", "proto")
            for path in (document.SOURCE / folder).rglob("*") if path.suffix in (".h", ".cc")}


SOURCES = sources()


def canonical(name):
    """Converts a name such as InvalidArgument to INVALID_ARGUMENT."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def reasons_with_codes():
    """Returns {reason: its codes} for reasons that stand next to their code in the sources."""
    found = {}
    for text in SOURCES.values():
        for code, reason in re.findall(r"\b(?:StatusCode|Code)::k(\w+),\s*reason::k(\w+)", text):
            found.setdefault(canonical(reason), set()).add(canonical(code))
    return found


def constant(name):
    """Returns the value of the constant `name` in the sources, in bytes or seconds."""
    values = set()
    for path, text in SOURCES.items():
        if DEFINED_IN.get(name, path.name) != path.name:
            continue
        for value in re.findall(rf"^ *(?:inline )?(?:constexpr )?[\w:]+ {name} = ([^;]+);", text, re.M):
            value = re.sub(r"\b(?:u?int\d+_t|size_t)\{(\d+)\}", r"\1", value.replace("'", ""))
            value = re.sub(r"\babsl::Hours\(([\d *]+)\)", r"(\1) * 3600", value)
            value = re.sub(r"\babsl::Minutes\(([\d *]+)\)", r"(\1) * 60", value)
            value = re.sub(r"\babsl::Seconds\(([\d *]+)\)", r"(\1)", value)
            value = re.sub(r"\bk[A-Z]\w+", lambda other: str(constant(other[0])), value)
            assert re.fullmatch(r"[\d <*/()]+|\d+e\d", value), f"{name} = {value}"
            values.add(eval(value))  # contains only digits, brackets, *, / and <<, or is like 1e6
    assert len(values) == 1, f"{name}: {values}"
    return values.pop()


def size(text):
    number, unit = re.fullmatch(r"([\d,]+) ?(\w*)", text).groups()
    return int(number.replace(",", "")) * UNITS[unit]


class ApiClaimsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with_server = server.Server()
        cls.addClassCleanup(with_server.close)
        # Every method of the server has a series from the start. So have gRPC's own services, and calls of unknown
        # methods share a series.
        cls.calls = {method: (service, KINDS[kind]) for method, service, kind in re.findall(
            r'^grpc_server_started_total\{grpc_method="(\w+)",grpc_service="([\w.]+)",grpc_type="(\w+)"\}',
            with_server.scrape(), re.M)
                     if not service.startswith("grpc.") and service != "unknown"}

    def test_every_call_that_is_offered_has_an_example(self):
        for heading, text in document.sections().items():
            if re.search(r"^Role ", text, re.M):
                self.assertIn("```", text, f"{heading} has no example")

    def test_every_call_has_a_section_under_its_service_that_says_its_role_and_kind(self):
        roles = {method: (service, role.lower()) for service, method, role in re.findall(
            r'\{"([\w.]+)/(\w+)",\s+Role::k(\w+),\s+Effect::k\w+,\s+Repeat::k\w+\}',
            (document.SOURCE / "proto/methods/method_facts.h").read_text(encoding="utf-8"))}
        roles = {method: role for method, role in roles.items() if not role[0].startswith("grpc.")}
        self.assertEqual({m: s for m, (s, _) in self.calls.items()}, {m: s for m, (s, _) in roles.items()})
        described = {}
        for heading, text in document.sections().items():
            for role, kind in re.findall(r"^Role (\w+); ([a-z ]+)\.", text, re.M):
                described[heading] = (role, kind)
        self.assertEqual(described, {m: (roles[m][1], kind) for m, (_, kind) in self.calls.items()})

    def test_services_come_with_all_their_calls_and_in_the_tables_order(self):
        text = document.API.read_text(encoding="utf-8")
        services = dict(re.findall(r"^\| \[([\w.]+)\]\(#([\w-]+)\) \|", text, re.M))
        kernel = kernel_service_pb2.DESCRIPTOR.services_by_name["KernelService"]
        self.assertEqual(set(services), {service for service, _ in self.calls.values()} | {kernel.full_name})
        anchor = ""
        under = {}
        for level, heading in re.findall(r"^(##+) (.+)$", text, re.M):
            if level == "##":
                anchor = heading.lower().replace(" ", "-")
            else:
                under[heading] = anchor
        for method, (service, _) in self.calls.items():
            self.assertEqual(under[method], services[service], method)
        for method in kernel.methods_by_name:
            self.assertEqual(under[method], services[kernel.full_name])

    def test_every_flag_that_is_named_exists(self):
        known = programs.Phimapd(os.environ["PHIMAPD"]).flags | programs.Phimap(os.environ["PHIMAP"]).flags
        of_protoc = r"^\$ protoc (?:.*\\\n)*.*\n"
        text = re.sub(of_protoc, "", document.API.read_text(encoding="utf-8"), flags=re.M)
        named = re.findall(r"(?<![\w-])--[a-z][\w-]*\w", text)
        self.assertGreater(len(named), 20)
        of_others = {"--data-binary", "--http2-prior-knowledge", "--encode", "--decode"}  # of curl and protoc
        self.assertLessEqual(set(named) - of_others, known)

    def test_every_limit_is_that_of_the_flag_or_the_constant(self):
        phimapd = programs.Phimapd(os.environ["PHIMAPD"])
        limits = document.table_rows(document.sections()["Limits"])
        self.assertGreater(len(limits), 25)
        for what, value, named, _ in limits:
            with self.subTest(what):
                name = named.strip("`")
                actual = int(phimapd.default(name)) if name.startswith("--") else constant(name)
                self.assertEqual(size(value), actual)

    def test_what_is_over_a_limit_is_an_error_that_the_page_has(self):
        listed = {row.reason for row in document.errors()}
        for what, _, _, over in document.table_rows(document.sections()["Limits"]):
            for reason in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", over):
                self.assertIn(reason, listed | {"RESOURCE_EXHAUSTED"}, what)

    def test_every_reason_has_the_code_that_the_sources_give_it(self):
        given = reasons_with_codes()
        for row in document.errors():
            with self.subTest(row):
                code = TOLD_OTHERWISE.get((row.section, row.code), row.code)
                if row.reason in given:
                    self.assertTrue({row.code, code} & given[row.reason], given[row.reason])

    def test_no_reason_stands_twice_with_the_same_code_in_a_table(self):
        rows = [row[:3] for row in document.errors() if row[:2] != ("ModelInfer", "FIELD_OUT_OF_RANGE")]
        self.assertEqual(len(rows), len(set(rows)))

    def test_every_link_leads_somewhere(self):
        text = re.sub(r"`[^`\n]*`", "", document.API.read_text(encoding="utf-8"))
        anchors = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
                   for heading in re.findall(r"^#+ (.+)$", text, re.M)}
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if not path:
                self.assertIn(anchor, anchors)
            else:
                self.assertTrue((document.API.parent / path).resolve().exists(), target)


if __name__ == "__main__":
    unittest.main()
