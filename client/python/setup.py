"""Builds the package: generates the code of the protos, with protoc and grpc_python_plugin, and compiles
phimap's library with CMake, both into the installed package.

The environment variable PHIMAP_ENGINE says what happens where the library cannot be built, for lack of a
compiler or of a package: the client is installed without it, which is the default, and calls of this
process then say what was missing; or "required": the installation fails. "none" does not try. A path is
that of a libphimap.so that CMake has built, and the installation fails if it cannot be used; one of an
installed package has been put together already and cannot be used again.

No generated file is kept in the source tree, and nothing is written there: pip builds in place, so the folders that
setuptools would leave behind are put elsewhere.
"""
from __future__ import annotations

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

try:
    from wheel.bdist_wheel import bdist_wheel
except ImportError:
    from setuptools.command.bdist_wheel import bdist_wheel

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROTOS = SOURCE / "proto"
# The packages of the API. The other packages in the folder are for other clients of the server.
PACKAGES = ("phimap/rpc", "phimap/v1")
SCRATCH = tempfile.TemporaryDirectory(prefix="phimap-build-")
ENGINE = os.environ.get("PHIMAP_ENGINE", "")
# The programs that build the library, and the packages of Debian that have them.
TOOLS = {"cmake": "cmake", "ninja": "ninja-build", "c++": "g++", "patchelf": "patchelf"}
# Libraries that every Linux system with a compiler has. All others are put beside libphimap.so.
OF_THE_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|ld-linux.*|linux-vdso)\.so\.\d+")


class Unbuildable(Exception):
    """The library cannot be built here."""


def tool(name: str, package: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SystemExit(f"phimap: {name} is not in PATH; on Debian it is in the package {package}")
    return path


def version() -> str:
    """Returns the version of the whole project, which CMakeLists.txt states."""
    path = SOURCE / "CMakeLists.txt"
    stated = re.search(r"^project\(phimap VERSION ([0-9.]+) ", path.read_text(), re.MULTILINE) if path.is_file() else None
    if stated is None:
        raise SystemExit(f"phimap: no version in {path}; install from a checkout of the repository: pip install client/python")
    return stated.group(1)


def generate(out: pathlib.Path) -> None:
    """Writes modules and their type stubs below `out`."""
    if not PROTOS.is_dir():
        raise SystemExit(f"phimap: no protos at {PROTOS}; install from a checkout of the repository: "
                         "pip install client/python")
    plugin = tool("grpc_python_plugin", "protobuf-compiler-grpc")
    files = [path.relative_to(PROTOS) for package in PACKAGES for path in sorted(PROTOS.glob(f"{package}/*.proto"))]
    subprocess.run(
        [tool("protoc", "protobuf-compiler"), f"--proto_path={PROTOS}", f"--python_out={out}", f"--pyi_out={out}",
         f"--grpc_out={out}", f"--plugin=protoc-gen-grpc={plugin}", *map(str, files)],
        check=True)
    for package in PACKAGES:
        (out / package / "__init__.py").write_text(f'"""Generated from proto/{package}."""\n')
    for path in files:
        if not path.stem.endswith("_service"):  # has no service, so the module would contain only imports
            (out / path.with_name(path.stem + "_pb2_grpc.py")).unlink()


def run(*command: str | pathlib.Path) -> str:
    """Returns what a command prints. Unbuildable, with its last lines, if it fails."""
    try:
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        raise Unbuildable(f"{command[0]} cannot be run: {error}") from None
    if done.returncode != 0:
        said = " | ".join(line.strip() for line in done.stdout.splitlines()[-12:] if line.strip())
        raise Unbuildable(f"{pathlib.Path(command[0]).name} failed: {said}")
    return done.stdout


def configured() -> pathlib.Path:
    """Returns a folder in which ninja can build the library."""
    missing = {name: package for name, package in TOOLS.items() if shutil.which(name) is None}
    if missing:
        raise Unbuildable(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in PATH; on Debian: "
                          f"apt install {' '.join(missing.values())}")
    folder = pathlib.Path(SCRATCH.name) / "engine"
    try:
        run("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-DPHIMAP_ENGINE_ONLY=ON", "-DPHIMAP_TESTS=OFF")
    except Unbuildable as error:
        raise Unbuildable(f"{error}; tools/setup --engine installs what is needed") from None
    return folder


class Engine:
    """What becomes of the library."""

    def __init__(self) -> None:
        # The library, or the folder in which it will be built; None if it cannot be, for this reason.
        self.place: pathlib.Path | None = None
        self.reason = ""
        if ENGINE == "none":
            self.reason = "the installation was told so by PHIMAP_ENGINE=none"
            return
        try:
            self.place = pathlib.Path(ENGINE) if os.sep in ENGINE else configured()
        except Unbuildable as error:
            self.give_up(error)

    def give_up(self, why: Unbuildable) -> None:
        if ENGINE == "required" or os.sep in ENGINE:
            raise SystemExit(f"phimap: the library cannot be built: {why}")
        print(f"phimap: installing the client alone, because the library cannot be built: {why}", file=sys.stderr)
        self.place, self.reason = None, str(why)

    def install(self, folder: pathlib.Path) -> None:
        """Puts the library into `folder`, or the reason why it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.place is not None:
            try:
                self._install_library(self.place, folder)
            except Unbuildable as error:
                for part in folder.glob("*.so*"):  # a library that is half made must not be loaded
                    part.unlink()
                self.give_up(error)
        if self.place is None:
            (folder / "missing.txt").write_text(self.reason + "\n")

    def _install_library(self, place: pathlib.Path, folder: pathlib.Path) -> None:
        if place.is_dir():
            run("ninja", "-C", place, "phimap_binding")
            place = place / "client" / "binding" / "libphimap.so"
        library = folder / "libphimap.so"
        shutil.copyfile(place, library)
        run("strip", "--strip-unneeded", library)
        carry(library)


def carry(library: pathlib.Path) -> None:
    """Puts the libraries that `library` needs beside it, under names of their own, so that it works without
    their packages and beside other copies of them in a process."""
    found = dict(re.findall(r"(\S+) => (/\S+)", run("ldd", library)))
    # liblinear finds the four functions of BLAS that it calls in libphimap.so, which has its own BLAS.
    linked = {library.name: library}
    renamed: dict[str, str] = {}
    waiting = [library]
    while waiting:
        for name in needed_by(waiting.pop()):
            if OF_THE_SYSTEM.fullmatch(name) or name in renamed or name.startswith("libblas."):
                continue
            if name not in found:
                raise Unbuildable(f"{name}, which {library.name} needs, is not on this machine")
            content = pathlib.Path(found[name]).read_bytes()
            stem, _, rest = name.partition(".so")
            renamed[name] = f"{stem}-{hashlib.sha256(content).hexdigest()[:8]}.so{rest}"
            copy = library.with_name(renamed[name])
            copy.write_bytes(content)
            run("patchelf", "--set-soname", renamed[name], copy)
            linked[renamed[name]] = copy
            waiting.append(copy)
    for path in linked.values():
        for name in needed_by(path):
            if name in renamed:
                run("patchelf", "--replace-needed", name, renamed[name], path)
            elif name.startswith("libblas."):
                run("patchelf", "--remove-needed", name, path)
        run("patchelf", "--set-rpath", "$ORIGIN", path)


def needed_by(library: pathlib.Path) -> list[str]:
    return run("patchelf", "--print-needed", library).split()


BUILT = Engine()


class Build(build):
    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = SCRATCH.name


class BuildWithProtos(build_py):
    def run(self) -> None:
        super().run()
        generate(pathlib.Path(self.build_lib))
        BUILT.install(pathlib.Path(self.build_lib) / "phimap" / "native")


class EggInfo(egg_info):
    def initialize_options(self) -> None:
        super().initialize_options()
        self.egg_base = SCRATCH.name


class WithLibrary(Distribution):
    def has_ext_modules(self) -> bool:
        return BUILT.place is not None


class Wheel(bdist_wheel):
    """The library is for a platform, but for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return "py3", "none", platform


setup(version=version(), distclass=WithLibrary,
      cmdclass={"build": Build, "build_py": BuildWithProtos, "egg_info": EggInfo, "bdist_wheel": Wheel})
