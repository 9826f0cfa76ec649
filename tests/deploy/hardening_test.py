"""Tests that what is installed is hardened as Debian hardens its own packages, and that a program which is not is
found."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD"])
COMPONENTS = ("phimapd", "phimap", "client")
# With these a program has all that faults_of looks for.
HARDENED = ("-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now", "-Wl,-z,noexecstack")
# A program with an array on its stack, whose copy gcc can only check while it runs.
SOURCE = r"""
#include <string.h>
#ifdef WRITABLE_CODE
__asm__(".section .both, \"awx\"; .quad 0; .text");
#endif
#ifdef CHANGED_CODE
__asm__(".text; .quad main");
#endif
int main(int count, char** words) {
  char text[64];
  strcpy(text, words[count - 1]);
  return text[0];
}
"""


def faults_of(path):
    """Returns what `path`, a program or a shared library, lacks."""
    def readelf(*flags):
        return subprocess.run(["readelf", "--wide", *flags, path], capture_output=True, text=True, check=True).stdout
    header = readelf("--file-header", "--program-headers")
    dynamic = readelf("--dynamic")
    symbols = readelf("--dyn-syms")
    is_program = "INTERP" in header
    stack = re.search(r"GNU_STACK\s.*\s(R?W?E?)\s+0x\w+$", header, re.M)
    checks = {
        "PIE": re.search(r"Type:\s+DYN", header) and (not is_program or re.search(r"\(FLAGS_1\).*\bPIE\b", dynamic)),
        "RELRO": "GNU_RELRO" in header,
        "BIND_NOW": re.search(r"\(FLAGS(?:_1)?\).*\b(?:BIND_)?NOW\b", dynamic),
        "a stack that cannot be executed": stack and "E" not in stack[1],
        "pages that are either written or executed": not re.search(r"LOAD\s.*\sRWE\s", header),
        "no relocations in code": "(TEXTREL)" not in dynamic,
        "no folder of libraries of its own": "(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic,
        "stack protector": "__stack_chk_fail" in symbols,
        "FORTIFY": re.search(r"\b__\w+_chk\b(?<!__stack_chk)", symbols),
    }
    return {name for name, found in checks.items() if not found}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def installed(folder):
    """Installs all components into `folder` and returns their programs and shared libraries."""
    for component in COMPONENTS:
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", folder], check=True,
                       capture_output=True)
    return [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and not path.is_symlink() and is_elf(path)]


class HardeningTest(unittest.TestCase):
    def test_everything_that_is_installed_is_hardened(self):
        with tempfile.TemporaryDirectory() as folder:
            found = installed(folder)
            names = {path.name.partition(".so")[0] for path in found}
            self.assertEqual(names, {"phimapd", "phimap", "libphimap_client"})
            # What pip installs for Python.
            for path in [*found, BUILD / "client/binding/libphimap.so"]:
                with self.subTest(path.name):
                    self.assertEqual(faults_of(path), set())

    def test_a_program_that_lacks_something_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "main.c").write_text(SOURCE)

            def faults(*flags):
                subprocess.run(["gcc", "-w", "-Wl,-w", *flags, "main.c", "-o", "main"], cwd=folder, check=True)
                return faults_of(folder / "main")
            self.assertEqual(faults(*HARDENED), set())
            for flag, fault in (("-no-pie", "PIE"), ("-Wl,-z,norelro", "RELRO"), ("-Wl,-z,lazy", "BIND_NOW"),
                                ("-Wl,-z,execstack", "a stack that cannot be executed"),
                                ("-DWRITABLE_CODE", "pages that are either written or executed"),
                                ("-DCHANGED_CODE", "no relocations in code"),
                                ("-Wl,-rpath,/tmp", "no folder of libraries of its own"),
                                ("-fno-stack-protector", "stack protector"), ("-U_FORTIFY_SOURCE", "FORTIFY")):
                with self.subTest(flag):
                    self.assertIn(fault, faults(*HARDENED, flag))


if __name__ == "__main__":
    unittest.main()
