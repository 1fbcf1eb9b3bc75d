"""Margins of known answers against the rounding of number formats, measured.

Each prompt is evaluated in float64 by the formulas of its class, once without rounding and once
with every number that is kept rounded to a format. The right token leads every other one by a
difference of logits, which rounding changes. The margin is the least quotient of a lead and its
change. An answer with a margin above 1 is right for these roundings. An engine with other kernels
has other roundings of the same size: a margin of 1.1 says little, and one of 100 much. Margins are
measured; they are no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from transformist.conformance.family import Array, DenseModel
from transformist.conformance.forward import Formulas, logits_by

FORMATS = ("float32", "bfloat16", "float16")
"""Formats in which all numbers are kept."""

CACHES = ("float8_e4m3", "float8_e5m2")
"""Formats of a cache: keys and values are rounded to them, and all else to float32."""

LARGEST = 1e6
"""The largest margin that is stated: in float32 larger ones are not known well enough."""

MOST_TOKENS = 256
"""The most tokens of a prompt whose margins are measured: longer ones take too much time."""

_TYPES: Mapping[str, Any] = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def rounding_to(name: str) -> Callable[[Array], Array]:
    """Return the function that rounds numbers to a format by way of float32."""
    kept = _TYPES[name]

    def rounded(x: Array) -> Array:
        return np.asarray(x.astype(np.float32).astype(kept), np.float64)

    return rounded


def _formulas(name: str) -> Formulas:
    """The formulas of the class, rounded: a cache of a format, or all numbers."""
    everywhere = rounding_to("float32" if name in CACHES else name)
    in_the_cache = rounding_to(name) if name in CACHES else everywhere
    # Rotations are computed in float32 whatever the format is, and applied to rounded vectors.
    as_they_are = ("angles", "scores", "weights") if name in FORMATS else ()

    def rounded(place: str, x: Array) -> Array:
        if place in as_they_are:
            return rounding_to("float32")(x)
        return in_the_cache(x) if place == "cache" else everywhere(x)

    return Formulas(rounded=rounded)


def margins(
    network: DenseModel, ids: Sequence[int], reads: Sequence[int], expected: Sequence[int]
) -> dict[str, list[float]]:
    """Return the margin of each known answer of a prompt, by format.

    Args:
        network: the checkpoint.
        ids: the tokens.
        reads: the positions at which the next token is known.
        expected: the next token at each of these.

    Returns:
        For each of `FORMATS`, and for a `cache` in each of `CACHES`, a list of margins of two
        digits, at most `LARGEST`; 0 where a number overflows. Empty for a prompt of more than
        `MOST_TOKENS` tokens.

    """
    if len(ids) > MOST_TOKENS:
        return {}
    rows, right = list(reads), np.asarray(expected)[:, None]

    def differences(by: Formulas) -> Array:
        logits = logits_by(network, ids, by)[rows]
        return np.asarray(np.take_along_axis(logits, right, 1) - logits)

    found = {}
    # A gate far below 0 overflows an exponential, and a narrow format any number.
    with np.errstate(all="ignore"):
        exact = differences(Formulas())
        others = np.arange(exact.shape[1]) != right
        for name in (*FORMATS, *CACHES):
            change = abs(differences(_formulas(name)) - exact)
            # A lead d becomes d − c at worst, with the change c of this run: it stays positive
            # while d / c > 1. Where c = 0 the quotient is infinite and `LARGEST` is stated.
            known = np.where(np.isfinite(change), np.minimum(exact / change, LARGEST), 0.0)
            least = np.where(others, known, LARGEST).min(1)
            key = f"{name} cache" if name in CACHES else name
            found[key] = [float(f"{each:.2g}") for each in least]
    return found
