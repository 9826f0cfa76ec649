"""Tests the bill of materials that tools/sbom writes: by the rules of SPDX 2.3, and against the programs themselves.

What a program has in it is found here in another way than there: the packages of the libraries that ldd names, and the
namespaces and functions whose code it contains."""

import copy
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["BUILD"])
PRODUCTS = os.environ["PRODUCTS"].split()
# The packages whose headers have the code of a namespace of C++, and None for namespaces of phimap's own.
NAMESPACES = {"phimap": None, "inference": None, "onnx": None, "opentelemetry": None, "absl": "libabsl-dev", "CLI": "libcli11-dev",
              "google": "libprotobuf-dev", "grpc": "libgrpc++-dev", "hwy": "libhwy-dev", "prometheus": "prometheus-cpp-dev",
              "simdjson": "libsimdjson-dev", "toml": "libtomlplusplus-dev", "std": "libstdc++-12-dev", "__gnu_cxx": "libstdc++-12-dev"}
# A function that is in a program only if an archive or an object of the package was linked into it.
FUNCTIONS = {"_start": "libc6-dev", "cblas_dgemm": "libopenblas-pthread-dev", "LAPACKE_dsyevd": "liblapacke-dev",
             "EVP_DigestInit_ex": "libssl-dev"}
USES = {"STATIC_LINK", "DYNAMIC_LINK", "DEPENDS_ON", "BUILD_DEPENDENCY_OF", "RUNTIME_DEPENDENCY_OF"}


@functools.lru_cache(None)
def output_of(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def write(folder):
    subprocess.run([sys.executable, SOURCE / "tools/sbom", BUILD, "--output", folder, *PRODUCTS], check=True)
    return json.loads((pathlib.Path(folder) / "phimap.spdx.json").read_text())


def faults_by_spdx(document):
    """Returns where the document breaks a rule of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3), chapters 6, 7 and 11."""
    faults = []

    def expect(holds, fault):
        if not holds:
            faults.append(fault)
    expect(document.get("spdxVersion") == "SPDX-2.3", "6.1 version")
    expect(document.get("dataLicense") == "CC0-1.0", "6.2 data license")
    expect(document.get("SPDXID") == "SPDXRef-DOCUMENT", "6.3 identifier")
    expect(document.get("name"), "6.4 name")
    expect(re.fullmatch(r"https://[^\s#]+", document.get("documentNamespace", "")), "6.5 namespace")
    creation = document.get("creationInfo", {})
    expect(creation.get("creators") and all(re.match(r"(Tool|Organization|Person): \S", who) for who in creation["creators"]), "6.8 creator")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", creation.get("created", "")), "6.9 created")
    ids = ["SPDXRef-DOCUMENT"]
    for package in document.get("packages", []):
        name = package.get("name")
        expect(name, "7.1 package name")
        expect(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package.get("SPDXID", "")), f"7.2 identifier of {name}")
        expect(package.get("versionInfo"), f"7.3 version of {name}")
        expect(re.match(r"NOASSERTION$|(Organization|Person): \S", package.get("supplier", "")), f"7.5 supplier of {name}")
        expect(re.match(r"NOASSERTION$|NONE$|https://", package.get("downloadLocation", "")), f"7.7 download location of {name}")
        # Without files there is no verification code, and the next three are then optional, but all of them are given.
        expect(package.get("filesAnalyzed") is False, f"7.8 files of {name}")
        for field in ("licenseConcluded", "licenseDeclared", "copyrightText"):
            expect(package.get(field), f"7.13 to 7.17 {field} of {name}")
        for reference in package.get("externalRefs", ()):
            expect(reference["referenceCategory"] == "PACKAGE-MANAGER" and reference["referenceType"] == "purl"
                   and re.fullmatch(r"pkg:deb/debian/[a-z0-9.%B-]+@[^\s@+:]+\?arch=\w+", reference["referenceLocator"]),
                   f"7.21 reference of {name}")
        expect(package.get("primaryPackagePurpose") in ("APPLICATION", "LIBRARY"), f"7.24 purpose of {name}")
        ids.append(package.get("SPDXID"))
    expect(len(ids) == len(set(ids)), "identifiers are not unique")
    relationships = document.get("relationships", [])
    for relationship in relationships:
        ends = (relationship["spdxElementId"], relationship["relatedSpdxElement"])
        expect(set(ends) <= set(ids), f"11.1 {ends} are not both in the document")
        expect(relationship["relationshipType"] in USES | {"DESCRIBES"}, f"11.1 {relationship['relationshipType']}")
    expect(any(one["relationshipType"] == "DESCRIBES" for one in relationships), "11.1 the document describes nothing")
    return faults


def product_name(product):
    return re.sub(r"(\.so)[.0-9]*$", r"\1", os.path.basename(product))


def listed(document, product):
    """Returns the packages that the document names for a product, by relationship."""
    names = {package["SPDXID"]: package["name"] for package in document["packages"]}
    own = {name: id_ for id_, name in names.items()}.get(product_name(product))
    found = {use: set() for use in USES}
    for one in document["relationships"]:
        ends = (one["spdxElementId"], one["relatedSpdxElement"])
        if own in ends and one["relationshipType"] in USES:
            other = ends[0] if ends[1] == own else ends[1]
            found[one["relationshipType"]].add(names.get(other))
    return found


def packages_of(files):
    """Returns the packages that have installed these files. Their lists have a file's path or that which a link leads to,
    in /lib or in /usr/lib."""
    real = {file: os.path.realpath(file) for file in files}
    forms = {file: {file, path, path.removeprefix("/usr"), "/usr" + file} for file, path in real.items()}
    done = subprocess.run(["dpkg-query", "-S", *set().union(*forms.values())], capture_output=True, text=True, check=False)
    owners = {path: re.split("[:,]", names)[0] for names, path in re.findall(r"^(\S.*): (/.*)$", done.stdout, re.M)}
    found = {file: {owners[form] for form in forms[file] if form in owners} for file in files}
    for file, packages in found.items():
        assert len(packages) == 1, (file, packages)
    return set().union(*found.values())


class Contents:
    """What a product has in it, as far as its file shows."""

    def __init__(self, product):
        path = BUILD / product
        self.product = product
        self.shared, namespaces, functions = set(), set(), set()
        if not product.endswith(".a"):
            self.shared = packages_of(set(re.findall(r"(/\S+) \(0x", output_of("ldd", path))))
        for name in re.findall(r"^[0-9a-f]+ [TtWwVu] (\S+)$", output_of("nm", "--defined-only", path), re.M):
            functions.add(name)
            # The first namespace of a mangled name: _ZN, _ZNK, vtables and the like, then its length and itself.
            mangled = re.match(r"_Z(?:T[VIS]|GV)?N[KVRO]*(\d+)(\w+)", name)
            if mangled:
                namespaces.add(mangled[2][:int(mangled[1])])
        self.unknown = namespaces - NAMESPACES.keys()
        self.headers = {NAMESPACES[name] for name in namespaces & NAMESPACES.keys()} - {None}
        self.static = {package for function, package in FUNCTIONS.items() if function in functions}

    def faults(self, document):
        """Returns what the document leaves out, or names without a reason."""
        found = listed(document, self.product)
        faults = [f"{self.product}: {package} is loaded" for package in self.shared - found["DYNAMIC_LINK"] - found["DEPENDS_ON"]]
        faults += [f"{self.product}: {package} is compiled in" for package in self.headers - found["BUILD_DEPENDENCY_OF"]]
        faults += [f"{self.product}: {package} is linked in" for package in self.static - found["STATIC_LINK"]]
        faults += [f"{self.product}: {package} is not loaded" for package in (found["DYNAMIC_LINK"] | found["DEPENDS_ON"]) - self.shared]
        return faults


def without(document, name):
    """Returns the document without a package."""
    less = copy.deepcopy(document)
    gone = {package["SPDXID"] for package in less["packages"] if package["name"] == name}
    less["packages"] = [package for package in less["packages"] if package["name"] != name]
    less["relationships"] = [one for one in less["relationships"]
                             if not gone & {one["spdxElementId"], one["relatedSpdxElement"]}]
    return less


class SbomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
            cls.document = write(folder)
            cls.notices = (pathlib.Path(folder) / "THIRD_PARTY_NOTICES").read_text()
        cls.contents = [Contents(product) for product in PRODUCTS]

    def faults(self, document):
        return [fault for contents in self.contents for fault in contents.faults(document)]

    def test_the_document_follows_the_rules_of_spdx(self):
        self.assertEqual(faults_by_spdx(self.document), [])
        self.assertEqual(self.document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        names = {package["name"] for package in self.document["packages"]}
        self.assertLessEqual({product_name(product) for product in PRODUCTS}, names)

    def test_a_document_that_breaks_a_rule_is_found(self):
        for field in ("spdxVersion", "dataLicense", "name", "documentNamespace", "creationInfo"):
            with self.subTest(field):
                self.assertEqual(len(faults_by_spdx(self.document)), 0)
                self.assertTrue(faults_by_spdx({key: value for key, value in self.document.items() if key != field}))
        for field in ("name", "SPDXID", "versionInfo", "downloadLocation", "filesAnalyzed", "licenseDeclared", "copyrightText"):
            with self.subTest(package=field):
                broken = copy.deepcopy(self.document)
                del broken["packages"][-1][field]
                self.assertTrue(faults_by_spdx(broken))
        broken = copy.deepcopy(self.document)
        broken["packages"].pop()
        self.assertTrue(faults_by_spdx(broken), "a relationship points to nothing")

    def test_all_that_the_programs_contain_and_load_is_there(self):
        for contents in self.contents:
            with self.subTest(contents.product):
                self.assertEqual(contents.unknown, set(), "add these namespaces to NAMESPACES")
        self.assertEqual(self.faults(self.document), [])

    def test_each_package_that_is_left_out_is_missed(self):
        needed = set().union(*(one.shared | one.headers | one.static for one in self.contents))
        self.assertGreater(len(needed), 20)
        for name in sorted(needed):
            with self.subTest(name):
                self.assertTrue(self.faults(without(self.document, name)))

    def test_libraries_that_are_loaded_on_demand_are_there(self):
        found = listed(self.document, "server/phimapd")
        self.assertEqual(found["RUNTIME_DEPENDENCY_OF"], {"libpq5", "libcurl4"})

    def test_nothing_is_there_that_is_not_used(self):
        lines = set(output_of("ninja", "-C", BUILD, "--quiet", "-n", "-t", "deps").split("\n"))
        headers = {os.path.realpath(line.strip()) for line in lines if line.startswith("    /usr/")}
        for product in PRODUCTS:
            found = listed(self.document, product)
            self.assertFalse({"libgtest-dev", "googletest", "libgmock-dev"} & set().union(*found.values()))
            for name in found["BUILD_DEPENDENCY_OF"]:
                with self.subTest(name):
                    files = output_of("dpkg-query", "-L", name).split("\n")
                    self.assertTrue(headers & set(files))

    def test_the_notices_have_the_copyright_file_of_each_package(self):
        for package in self.document["packages"]:
            path = pathlib.Path(f"/usr/share/doc/{package['name']}/copyright")
            if package["SPDXID"].startswith("SPDXRef-deb-"):
                with self.subTest(package["name"]):
                    self.assertIn(path.read_text(errors="replace").rstrip(), self.notices)
                    self.assertRegex(self.notices, rf"(?m)^    {re.escape(package['name'])} {re.escape(package['versionInfo'])}$")


if __name__ == "__main__":
    unittest.main()
