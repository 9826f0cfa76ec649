"""Tests that both programs, the Python package and the changelog have the same version number as CMakeLists.txt, and
that the clients have the same calls."""
import importlib.metadata
import inspect
import os
import pathlib
import re
import subprocess

import phimap
from phimap.aio import AsyncClient

SOURCE = pathlib.Path(os.environ["PHIMAP_SOURCE"])


def stated() -> str:
    project = re.search(r"^project\(phimap VERSION (\S+) ", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert project is not None
    return project.group(1)


def said_by(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout


def test_programs_and_package_say_the_version_of_the_project() -> None:
    assert phimap.__version__ == stated()
    assert importlib.metadata.version("phimap") == stated()
    assert said_by(os.environ["PHIMAPD"]) == f"phimapd {stated()}\n"
    assert said_by(os.environ["PHIMAP"]) == f"phimap {stated()}\n"


def test_the_newest_release_of_the_changelog_is_the_version_and_the_corpus_has_it() -> None:
    newest = re.search(r"^## (\d\S*)", (SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None and newest.group(1) == stated()
    assert (SOURCE / "tests/corpus" / stated()).is_dir()


def test_no_other_file_states_the_version() -> None:
    tracked = [path for folder in ("core", "server", "client", "proto", "lab", "bench", "tools", "deploy")
               for path in (SOURCE / folder).rglob("*") if path.is_file() and path.suffix in (".cc", ".h", ".py", ".toml", ".txt", ".yaml", "")]
    assert len(tracked) > 500
    # Kustomize can't read CMakeLists.txt. tests/deploy/kubernetes_test.py compares this tag with the version.
    stating = {"deploy/kubernetes/base/kustomization.yaml"}
    assert {str(path.relative_to(SOURCE)) for path in tracked if f'"{stated()}"' in path.read_text(encoding="utf-8", errors="replace")} == stating


def test_the_clients_have_the_same_calls_by_the_same_names() -> None:
    header = (SOURCE / "client/cpp/client.h").read_text()
    calls = re.findall(r"^  absl::Status(?:Or<.*>)? (\w+)\(", header[header.index("class Client final"):], re.MULTILINE)
    in_cpp = {re.sub(r"(?<!^)(?=[A-Z])", "_", call).lower() for call in calls}
    in_python = {name.rstrip("_") for name, _ in inspect.getmembers(phimap.Client, inspect.isfunction) if name[0] != "_"}
    # Variants of transform that return more; and what Python's clients do with names and connections.
    assert len(in_cpp) > 20 and in_python - in_cpp == {"transform_with_version", "transform_with_residuals", "unpin", "close"}
    assert in_cpp <= in_python
    for name, function in inspect.getmembers(phimap.Client, inspect.isfunction):
        if name[0] != "_":
            assert inspect.signature(function).parameters == inspect.signature(getattr(AsyncClient, name)).parameters, name
