"""The peer of build_bench: prints the seconds that scikit-learn's Nystroem.fit takes on standard normal rows with
one BLAS thread.

    nystroem_fit.py --rows=20000 --columns=64 --landmarks=2048
"""
import argparse
import os
import time

# Must be set before numpy loads OpenBLAS.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

import numpy
from sklearn.kernel_approximation import Nystroem

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, required=True)
parser.add_argument("--columns", type=int, required=True)
parser.add_argument("--landmarks", type=int, required=True)
arguments = parser.parse_args()
rows = numpy.random.default_rng(1).standard_normal((arguments.rows, arguments.columns))
nystroem = Nystroem(gamma=1 / arguments.columns, n_components=arguments.landmarks, random_state=1)
begin = time.perf_counter()
nystroem.fit(rows)
print(time.perf_counter() - begin)
