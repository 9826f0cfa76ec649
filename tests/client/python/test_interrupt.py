"""Tests Ctrl-C in a program that builds."""
import signal
import subprocess
import sys

import phimap

# A program that prints the phases of its build. Ctrl-C should end it as it ends any other program.
PROGRAM = """
import sys
import numpy, phimap
rows = numpy.random.default_rng(1).standard_normal((9000, 10))
def show(progress):
    print(progress.phase, flush=True)
phimap.Client(sys.argv[1]).build("interrupted", rows, spec="f2(landmarks=8192)", kernel="rbf(gamma=scale)", progress=show)
"""


def test_ctrl_c_cancels_the_build_on_the_server(phimapd, client):
    with subprocess.Popen([sys.executable, "-c", PROGRAM, phimapd.address], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as program:
        # Waits for the phase "gram", which takes minutes, so the build is interrupted in the middle of that phase.
        assert any(line == "gram\n" for line in program.stdout)
        program.send_signal(signal.SIGINT)
        errors = program.stderr.read()
    assert "KeyboardInterrupt" in errors
    assert program.returncode == -signal.SIGINT
    jobs = client.list_builds("interrupted")
    assert [job.state for job in jobs] == ["cancelled"]
