"""The example on letter.csv, on some of its rows. tests/full/python_letter.sh runs it whole, with its verdict."""
import os
import pathlib
import re
import subprocess
import sys

EXAMPLE = pathlib.Path(os.environ["PHIMAP_SOURCE"]) / "client/python/examples/letter.py"


def test_the_example_maps_learns_and_reports(phimapd):
    done = subprocess.run([sys.executable, EXAMPLE, f"--server={phimapd.address}", "--rows=3000", "--landmarks=100",
                           "--seeds=1"], capture_output=True, text=True, check=False)
    # Speed is not tested here: 3,000 rows beside other tests say nothing about it.
    assert done.returncode in (0, 3), done.stderr
    accuracy = {name: float(value) for name, value in re.findall(r"^(\w+) +([\d.]+) %", done.stdout, re.MULTILINE)}
    # 26 letters: chance is 4 %. Landmarks are drawn differently, and 900 test rows have a standard error of 1.4 points.
    assert accuracy.keys() == {"Nystroem", "F2"}
    assert accuracy["F2"] > 60 and abs(accuracy["F2"] - accuracy["Nystroem"]) < 8.4
