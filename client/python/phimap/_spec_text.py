"""Texts of specs and kernels, composed from names and values so that the server reads back exactly these."""
from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

# What a text may be as a value: a word, a number, a range, a list or a call with simple values, such as
# auto(residual=0.1).
_VALUE = re.compile(r"[\w.+:-]+|\[[\w.+,;\s-]*\]|[A-Za-z_]\w*\([^()]*\)")


def spec_text(family: str, /, **parameters: Any) -> str:
    """Returns the text of a spec, or of a kernel or a learner: "f2(landmarks=500, policy=uniform)".

    Values are numbers, which the server reads back exactly, words, booleans, and lists of numbers;
    a parameter that is None is left out. ValueError, or TypeError, with the name of the parameter
    for a value that a text cannot have.
    """
    values = ", ".join(f"{name}={_word(name, value)}" for name, value in parameters.items() if value is not None)
    return f"{family}({values})"


def _word(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)):
        return f"[{', '.join(_word(name, item) for item in value)}]"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected a finite number, got {value!r}")
        return repr(value)
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a number or a name, got {value!r}")
    if not _VALUE.fullmatch(value.strip()):
        raise ValueError(f"{name}: expected one value, such as a word or a number, got {value!r}")
    return value.strip()
