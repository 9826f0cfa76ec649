"""Builds the package: generates the code of the protos, with protoc and grpc_python_plugin, into
the installed package.

No generated file is kept in the source tree, and nothing is written there: pip builds in place, so the folders that
setuptools would leave behind are put elsewhere.
"""
import pathlib
import re
import shutil
import subprocess
import tempfile

from setuptools import setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.egg_info import egg_info

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROTOS = SOURCE / "proto"
# The packages of the API. The other packages in the folder are for other clients of the server.
PACKAGES = ("phimap/rpc", "phimap/v1")
SCRATCH = tempfile.TemporaryDirectory(prefix="phimap-build-")


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


class Build(build):
    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = SCRATCH.name


class BuildWithProtos(build_py):
    def run(self) -> None:
        super().run()
        generate(pathlib.Path(self.build_lib))


class EggInfo(egg_info):
    def initialize_options(self) -> None:
        super().initialize_options()
        self.egg_base = SCRATCH.name


setup(version=version(), cmdclass={"build": Build, "build_py": BuildWithProtos, "egg_info": EggInfo})
