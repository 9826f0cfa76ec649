"""Converts scikit-learn's names of kernels to the server's text."""
from __future__ import annotations

import difflib
from typing import Any

from phimap.sklearn._parameters import word

# scikit-learn's names of kernels, with the parameters of each. Other parameters are ignored, as in
# Nystroem, because a grid may have several kernels.
_NAMED = {"rbf": ("gamma",), "laplacian": ("gamma",), "poly": ("degree", "gamma", "coef0"),
          "polynomial": ("degree", "gamma", "coef0"), "sigmoid": ("gamma", "coef0"), "linear": (), "cosine": ()}
_DEFAULTS = {"degree": 3, "coef0": 1}
_NOT_HERE = {"chi2": "chi2_kernel", "additive_chi2": "additive_chi2_kernel"}
# The name in Nystroem, and the server's text.
_PRECOMPUTED = ("precomputed", "precomputed()")


def is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in _PRECOMPUTED


def kernel_text(kernel: Any, parameters: dict[str, Any], columns: int) -> Any:
    """Returns `kernel` as the server's text, for rows of `columns` columns.

    A scikit-learn name has scikit-learn's defaults: gamma=1/columns, degree=3, coef0=1. Any other
    text is the server's and contains its parameters: ValueError if any of `parameters` is set too.
    """
    said = {name: value for name, value in parameters.items() if value is not None}
    if callable(kernel) or is_precomputed(kernel):
        _refuse(said, kernel, "its values come from you, and nothing here can change them")
        return "precomputed()"
    if not isinstance(kernel, str):
        return kernel  # the client refuses it before it is sent
    if kernel in _NOT_HERE:
        raise ValueError(f"kernel={kernel!r} is none of phimap's; kernel=sklearn.metrics.pairwise.{_NOT_HERE[kernel]} has its "
                         "values computed here and sent")
    if kernel.isidentifier() and kernel not in _NAMED:
        meant = difflib.get_close_matches(kernel, _NAMED, 1)
        raise ValueError(f"kernel: expected one of {', '.join(_NAMED)}, a text of the server as 'rbf(gamma=scale)', or a "
                         f"function, got {kernel!r}" + (f"; did you mean {meant[0]!r}?" if meant else ""))
    if kernel not in _NAMED:
        _refuse(said, kernel, "a text that is not one of scikit-learn's names holds its parameters itself, as "
                              "'rbf(gamma=0.1)'")
        return kernel
    defaults = _DEFAULTS | {"gamma": 1 / max(columns, 1)}
    values = {name: said.get(name, defaults[name]) for name in _NAMED[kernel]}
    name = "poly" if kernel == "polynomial" else kernel
    return f"{name}({', '.join(f'{parameter}={word(value)}' for parameter, value in values.items())})"


def _refuse(said: dict[str, Any], kernel: Any, why: str) -> None:
    if said:
        both = ", ".join(f"{name}={value!r}" for name, value in said.items())
        raise ValueError(f"{both} and kernel={kernel!r} are both set: {why}")
