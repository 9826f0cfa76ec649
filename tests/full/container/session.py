"""What a user does with a server: builds a version from real rows and maps them.

The same spec, seed and stream give the same bytes, so what a container answers must be, digest and features, what the
phimapd of the build folder answers on this machine.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build").resolve()
IMAGE = "localhost/phimap"

# OpenBLAS's choice of kernels is part of what the bytes depend on, and the image has no such setting.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
ENVIRONMENT["TMPDIR"] = str(BUILD / "image/tmp")

BUILD_COMMAND = ["build", "letters", "--input=-", "--format=csv", "--label=label", "--standardize",
                 "--mapping=f2(landmarks=200)", "--kernel=rbf(gamma=scale)", "--json"]
TRANSFORM_COMMAND = ["transform", "letters", "--input=-", "--format=csv", "--label=label", "--output=-"]


def rows():
    """The first 2,000 rows of letter.csv, as CSV."""
    with open(SOURCE / "lab/data/letter.csv", encoding="ascii") as file:
        return "".join(file.readline() for _ in range(2001))


def run(arguments, **kwargs):
    """Runs a program to its end; its output as text. Fails the test with what it said if it fails."""
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=False,
                          env=ENVIRONMENT, **kwargs)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build_and_transform(phimap):
    """(digest, features as CSV) by `phimap(arguments, input=…)`, which runs the command."""
    version = json.loads(phimap(BUILD_COMMAND, input=rows()))
    return version["ref"]["digest"], phimap(TRANSFORM_COMMAND, input=rows())


def expected():
    """What the build folder's own programs make of the same session."""
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen(
            [BUILD / "server/phimapd", f"--data_dir={data}", "--listen=127.0.0.1:0", "--http=none",
             "--log_level=error"], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        try:
            address = ready_address(server.stdout)
            return build_and_transform(
                lambda arguments, **kwargs: run([BUILD / "client/cli/phimap", f"--server={address}", *arguments],
                                                **kwargs))
        finally:
            server.terminate()
            server.communicate()


def ready_address(stdout):
    """HOST:PORT of gRPC from the line that phimapd prints when it serves."""
    line = stdout.readline()
    if not line.startswith("phimapd ready: grpc="):
        raise AssertionError(f"phimapd did not start: {line!r}")
    return line.split("grpc=")[1].split()[0]
