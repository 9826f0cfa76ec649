"""PostgreSQL for the tests of this folder: that of tests/e2e."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from postgres import Postgres  # noqa: E402, F401
