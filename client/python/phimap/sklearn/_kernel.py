"""Converts kernels with scikit-learn's names to phimap's text."""
from __future__ import annotations

from typing import Any

from phimap._spec_text import spec_text

# scikit-learn's names of kernels, each with its parameters. Parameters that the kernel does not
# have are ignored, as in Nystroem, because a grid search may try several kernels.
_NAMED = {"rbf": ("gamma",), "laplacian": ("gamma",), "poly": ("degree", "gamma", "coef0"),
          "polynomial": ("degree", "gamma", "coef0"), "sigmoid": ("gamma", "coef0"), "linear": (), "cosine": (), "chi2": ("gamma",)}
_DEFAULTS = {"degree": 3, "coef0": 1}
# The name in scikit-learn, and the same kernel in phimap's text.
_PRECOMPUTED = ("precomputed", "precomputed()")


def is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel in _PRECOMPUTED


def kernel_text(kernel: Any, parameters: dict[str, Any], columns: int) -> Any:
    """Returns phimap's text for `kernel`, for rows of this many columns.

    A name of scikit-learn has the same meaning and defaults as there: gamma is 1/columns (1 for
    chi2), degree is 3, coef0 is 1. Any other text is passed on, and must contain its
    parameters: ValueError if `parameters` are set as well.
    """
    said = {name: value for name, value in parameters.items() if value is not None}
    if callable(kernel) or is_precomputed(kernel):
        _refuse(said, kernel, "the caller computes its values, so parameters have no effect")
        return "precomputed()"
    if not isinstance(kernel, str):
        return kernel  # Spec.of refuses it later
    if kernel == "additive_chi2":
        raise ValueError("kernel='additive_chi2' of scikit-learn is negative, so it has no features; kernel='additive_chi2()' is "
                         "phimap's kernel of that name, the one that AdditiveChi2Sampler approximates")
    if kernel not in _NAMED:
        _refuse(said, kernel, "a kernel expression has its parameters in the text, such as "
                              "'rbf(gamma=0.1)'")
        return kernel
    defaults = _DEFAULTS | {"gamma": 1 if kernel == "chi2" else 1 / max(columns, 1)}
    values = {name: said.get(name, defaults[name]) for name in _NAMED[kernel]}
    return spec_text("poly" if kernel == "polynomial" else kernel, **values)


def _refuse(said: dict[str, Any], kernel: Any, why: str) -> None:
    if said:
        both = ", ".join(f"{name}={value!r}" for name, value in said.items())
        raise ValueError(f"{both} and kernel={kernel!r} are both set: {why}")
