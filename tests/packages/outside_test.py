"""Installs the C++ client to a temporary prefix, as `cmake --install` does, and has a project outside of phimap use it
against a real phimapd: by find_package, by pkg-config, by add_subdirectory and by FetchContent."""

import os
import pathlib
import re
import tempfile
import unittest

import outside

BUILD = pathlib.Path(os.environ["BUILD"])
# Libraries that the shared client may load, besides those of C and C++: those of gRPC, protobuf and Abseil, and libcrypto,
# which gRPC loads itself.
ALLOWED = re.compile(r"lib(grpc|grpc\+\+|gpr|protobuf|absl_\w+|crypto|stdc\+\+|gcc_s|m|c)\.so\b|ld-linux")
# Symbols that programs may use: the client, the messages and stubs of the API, and the details of errors.
PUBLIC = re.compile(r"phimap::(client|v1|rpc)::|phimap::DetailOf|descriptor_table_phimap_")


class OutsideTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.prefix = cls.folder / "prefix"
        outside.run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "client")
        cls.shared = cls.prefix / "lib/libphimap_client.so.0"

    def test_find_package_with_the_shared_and_with_the_static_client(self):
        for library in ("client", "client_static"):
            with self.subTest(library):
                folder = self.folder / library
                outside.configure(folder, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DLIBRARY=phimap::{library}")
                outside.run("cmake", "--build", folder)
                self.assertEqual(outside.output(folder / "outside"), outside.expected())

    def test_pkg_config(self):
        packages = self.prefix / "lib/pkgconfig"
        flags = outside.run("pkg-config", "--cflags", "--libs", "phimap", env={**os.environ, "PKG_CONFIG_PATH": str(packages)})
        program = self.folder / "by_pkg_config"
        outside.run("c++", "-std=c++20", "-o", program, outside.OUTSIDE / "main.cc", *flags.split())
        said = outside.output(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.prefix / "lib")})
        self.assertEqual(said, outside.expected())

    def test_a_project_that_adds_the_folder_gets_the_client_alone(self):
        source = outside.SOURCE
        ways = {"subdirectory": f"-DPHIMAP_SOURCE={source}", "fetched": f"-DFETCHCONTENT_SOURCE_DIR_PHIMAP={source}"}
        for way, argument in ways.items():
            with self.subTest(way):
                folder = self.folder / way
                outside.configure(folder, f"-DWAY={way}", argument)
                targets = outside.run("cmake", "--build", folder, "--target", "help")
                self.assertRegex(targets, r"(?m)^phimap_client_shared: ")
                for target in ("phimapd", "phimap_plan", "phimap_binding", "edit_distance_kernel"):
                    self.assertNotRegex(targets, rf"(?m)^{target}: ")
                # Compiling it takes minutes (tests/full/outside_project.sh). Here it is enough that all commands are known:
                # the last one links the program.
                commands = outside.run("ninja", "-C", folder, "-t", "commands", "outside").splitlines()
                self.assertIn("-o outside ", commands[-1])

    def test_the_shared_client_needs_grpc_protobuf_and_abseil_only(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", outside.run("readelf", "--dynamic", self.shared))
        self.assertTrue(any(name.startswith("libgrpc++.so") for name in needed), needed)
        self.assertEqual([name for name in needed if not ALLOWED.match(name)], [])

    def test_the_shared_client_shows_only_what_programs_may_use(self):
        shown = outside.run("nm", "--dynamic", "--defined-only", "--demangle", self.shared).splitlines()
        self.assertTrue(any("phimap::client::Client::Transform(" in line for line in shown))
        self.assertEqual([line for line in shown if not PUBLIC.search(line)], [])

    def test_one_archive_and_one_folder_of_headers_are_installed(self):
        self.assertEqual([file.name for file in self.prefix.rglob("*.a")], ["libphimap_client.a"])
        include = self.prefix / "include"
        self.assertEqual([folder.name for folder in include.iterdir()], ["phimap"])
        for header in include.rglob("*.h"):
            for included in re.findall(r'#include "([^"]*)"', header.read_text(encoding="utf-8")):
                if included.startswith("phimap/"):
                    self.assertTrue((include / included).exists(), f"{header.name} includes {included}")


if __name__ == "__main__":
    unittest.main()
