"""Parameters of estimators: aliases, seeds, and their values in the texts of spec and kernel."""
from __future__ import annotations

import numbers
import re
from typing import Any

from sklearn.utils import check_random_state

# Matches text such as "f2(landmarks=500, policy=uniform)".
_SPEC = re.compile(r"(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\w+)=([^,()]+(?:\([^()]*\))?)")


def given(name: str, value: Any, alias: str, other: Any) -> Any:
    """Returns the value of a parameter that has two names; None if neither is set. ValueError if
    both are."""
    if value is not None and other is not None:
        raise ValueError(f"{name}={value!r} and {alias}={other!r} are the same parameter: set one of them")
    return other if value is None else value


def seed_of(seed: Any, random_state: Any) -> Any:
    """Returns the seed of a build: 0 if neither argument is set. Draws a seed from a RandomState."""
    value = given("seed", seed, "random_state", random_state)
    if value is None:
        return 0
    if isinstance(value, numbers.Integral) or random_state is None:
        return value
    return int(check_random_state(value).randint(2**31 - 1))


def parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """Returns the family and the parameters of the canonical text of a spec."""
    found = _SPEC.fullmatch(spec)
    if not found:
        return spec, {}
    return found[1], {name: _value(text) for name, text in _PARAMETER.findall(found[2])}


def is_well_formed(spec: str) -> bool:
    """Whether `parsed` understands all of the text: a name, or a name with its parameters in parentheses."""
    found = _SPEC.fullmatch(spec)
    return not _PARAMETER.sub("", found[2]).strip(" ,") if found else spec.isidentifier()


def _value(text: str) -> Any:
    """Returns the value of a parameter in a text."""
    if text in ("false", "true"):
        return text == "true"
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
