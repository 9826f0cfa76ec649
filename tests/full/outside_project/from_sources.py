"""Compiles the C++ client from its sources, for the project of tests/packages (outside_project.sh)."""

import pathlib
import tempfile
import time

import outside

# Seconds on two idle cores, with room for other work.
LIMIT_SECONDS = 600


def check(program, started, way):
    took = time.monotonic() - started
    said = outside.output(program)
    assert said == outside.expected(), said
    assert took <= LIMIT_SECONDS, f"{way}: took {took:.0f} s, of at most {LIMIT_SECONDS}"
    print(f"outside_project: {way}: compiled in {took:.0f} s, and works", flush=True)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)

        started = time.monotonic()
        outside.configure(folder / "fetched", "-DWAY=fetched", f"-DFETCHCONTENT_SOURCE_DIR_PHIMAP={outside.SOURCE}",
                          "-DCMAKE_BUILD_TYPE=Release")
        outside.run("cmake", "--build", folder / "fetched", "--target", "outside")
        check(folder / "fetched/outside", started, "a folder of the project")

        started = time.monotonic()
        outside.run("cmake", "-G", "Ninja", "-S", outside.SOURCE, "-B", folder / "alone", "-DPHIMAP_CLIENT_ONLY=ON")
        outside.run("cmake", "--build", folder / "alone")
        outside.run("cmake", "--install", folder / "alone", "--prefix", folder / "prefix")
        outside.configure(folder / "installed", f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}")
        outside.run("cmake", "--build", folder / "installed")
        check(folder / "installed/outside", started, "built alone and installed")


if __name__ == "__main__":
    main()
