"""The session of a user, who builds a version from real rows and maps these rows.

Equal specs, seeds and streams of rows always give the same bytes. So a container must answer with the same digest and
features as the phimapd of the build folder does on this machine.
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

# The bytes also depend on which of its kernels OpenBLAS chooses. OPENBLAS_CORETYPE would influence this choice, and
# the image does not set it.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
ENVIRONMENT["TMPDIR"] = str(BUILD / "image/tmp")

BUILD_COMMAND = ["build", "letters", "--input=-", "--format=csv", "--label=label", "--standardize",
                 "--spec=f2(landmarks=200)", "--kernel=rbf(gamma=scale)", "--json"]
TRANSFORM_COMMAND = ["transform", "letters", "--input=-", "--format=csv", "--label=label", "--output=-"]


def rows():
    """Returns the first 2,000 rows of letter.csv, as CSV."""
    with open(SOURCE / "lab/data/letter.csv", encoding="ascii") as file:
        return "".join(file.readline() for _ in range(2001))


def run(arguments, **kwargs):
    """Runs a program, and returns its output as text. If the program fails, the test fails and shows the program's
    messages."""
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=False,
                          env=ENVIRONMENT, **kwargs)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build_and_transform(phimap):
    """Runs the session. `phimap(arguments, input=…)` must run the phimap command. Returns the digest, and the
    features as CSV."""
    version = json.loads(phimap(BUILD_COMMAND, input=rows()))
    return version["ref"]["digest"], phimap(TRANSFORM_COMMAND, input=rows())


def expected():
    """Returns the result of the same session with the build folder's own programs."""
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
    """Reads the line that phimapd prints when it is ready. Returns the HOST:PORT of its gRPC listener."""
    line = stdout.readline()
    if not line.startswith("phimapd ready: grpc="):
        raise AssertionError(f"phimapd did not start: {line!r}")
    return line.split("grpc=")[1].split()[0]
