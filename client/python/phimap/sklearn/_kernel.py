"""Kernels by scikit-learn's names, as the server's text."""
from __future__ import annotations

import difflib
from typing import Any

from phimap.sklearn._parameters import word

# scikit-learn's names of kernels, and their parameters. Others are ignored, as Nystroem ignores them: a grid may hold
# several kernels.
_NAMED = {"rbf": ("gamma",), "laplacian": ("gamma",), "poly": ("degree", "gamma", "coef0"),
          "polynomial": ("degree", "gamma", "coef0"), "sigmoid": ("gamma", "coef0"), "linear": (), "cosine": (), "chi2": ("gamma",)}
_DEFAULTS = {"degree": 3, "coef0": 1}
# Nystroem's word, and the server's.
_PRECOMPUTED = ("precomputed", "precomputed()")


def is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in _PRECOMPUTED


def kernel_text(kernel: Any, parameters: dict[str, Any], columns: int) -> Any:
    """`kernel` as the server has it, for rows of as many columns.

    A name of scikit-learn's means what it means there: gamma=None is 1/columns (1 for chi2), degree 3, coef0 1. Any other text is the
    server's, and holds its parameters itself: ValueError if `parameters` say something too.
    """
    said = {name: value for name, value in parameters.items() if value is not None}
    if callable(kernel) or is_precomputed(kernel):
        _refuse(said, kernel, "its values come from you, and nothing here can change them")
        return "precomputed()"
    if not isinstance(kernel, str):
        return kernel  # refused where it would be sent
    if kernel == "additive_chi2":
        raise ValueError("kernel='additive_chi2' of scikit-learn is negative, so it has no features; kernel='additive_chi2()' is the "
                         "server's kernel of that name, the one that AdditiveChi2Sampler approximates")
    if kernel.isidentifier() and kernel not in _NAMED:
        meant = difflib.get_close_matches(kernel, _NAMED, 1)
        raise ValueError(f"kernel: expected one of {', '.join(_NAMED)}, a text of the server as 'rbf(gamma=scale)', or a "
                         f"function, got {kernel!r}" + (f"; did you mean {meant[0]!r}?" if meant else ""))
    if kernel not in _NAMED:
        _refuse(said, kernel, "a text that is not one of scikit-learn's names holds its parameters itself, as "
                              "'rbf(gamma=0.1)'")
        return kernel
    defaults = _DEFAULTS | {"gamma": 1 if kernel == "chi2" else 1 / max(columns, 1)}
    values = {name: said.get(name, defaults[name]) for name in _NAMED[kernel]}
    name = "poly" if kernel == "polynomial" else kernel
    return f"{name}({', '.join(f'{parameter}={word(value)}' for parameter, value in values.items())})"


def _refuse(said: dict[str, Any], kernel: Any, why: str) -> None:
    if said:
        both = ", ".join(f"{name}={value!r}" for name, value in said.items())
        raise ValueError(f"{both} and kernel={kernel!r} are both set: {why}")
