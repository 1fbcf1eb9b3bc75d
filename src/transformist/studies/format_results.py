"""Results of 1/i, EqZero and recognizers of Dyck-1 in a format, for the study precision."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

import transformist as tf
from transformist.arithmetic import FORMATS
from transformist.studies import dyck_strings, uniform_heads

DENSE = 1000
"""The reference computes n² scores, and evaluates lengths up to this one."""

STRUCTURED = "float64", "float32"
BY_NAME = {each.name: each for each in FORMATS}
DISTANCES = range(-10, 11)
DRAWN, PLACES = 12, 50  # drawn valid strings of each length up to DENSE (beyond: 1); positions


def strings_of(n: int) -> Mapping[str, bool]:
    """Strings of length n or a little less, each with True if it is in Dyck-1."""
    half, rnd = n // 2, random.Random(f"0 {n}")
    valid = ["()" * half, "(" * half + ")" * half, "((()))" * (n // 6)]
    for _ in range(DRAWN if n <= DENSE else 1):
        valid.append(dyck_strings.rotated("".join(rnd.sample("()" * half, 2 * half))))
    others = [each for x in valid for each in (f"{x[:-1]}(", x[:-1])]
    others += [f"{'()' * k})({'()' * (half - k - 1)}" for k in (0, half // 2, half - 1)]
    return {x: dyck_strings.is_member(x) for x in (*valid, *others, ")" * half + "(" * half)}


def reciprocals(n: int, arithmetic: str) -> float:
    """The share of positions i that are 1/y, rounded to a whole number, y being the mean 1/i."""
    a, head = BY_NAME[arithmetic], tf.recipe("reciprocal-from-bos").build()
    z = a.array([[[int(i == 0)] for i in range(n)]])
    rows = np.arange(n) if n <= DENSE else np.linspace(0, n - 1, PLACES).astype(int)
    found = a.numbers(uniform_heads.means(head, z, a, rows))[0, :, 0]
    told = [y > 0 and round(1 / y) == i for i, y in zip(rows + 1, found.tolist(), strict=True)]
    return float(np.mean(told))


def comparisons(n: int, arithmetic: str) -> float:
    """The share of multiples of ε = 1/(n + 1)² whose EqZero is on the right side of ½."""
    epsilon = Fraction(1, (n + 1) ** 2)
    network = tf.recipe("equal-zero").build(epsilon=epsilon)
    try:
        found = network([[k * epsilon] for k in DISTANCES], arithmetic)
    except tf.TransformistError:  # a weight of 1/ε overflows
        return 0.0
    bits = np.asarray(found, np.float64)[:, 0] > 0.5
    return float(np.mean(bits == [k == 0 for k in DISTANCES]))


def answer(model: tf.Transformer, x: str, arithmetic: str) -> Any:
    """The answer; `None` where a number overflows."""
    with suppress(tf.TransformistError):
        if len(x) > DENSE and arithmetic not in STRUCTURED:
            return uniform_heads.answer(model, x, BY_NAME[arithmetic])
        return tf.run(model, x, arithmetic, "structured" if len(x) > DENSE else "reference")
    return None


def fault(model: tf.Transformer, x: str, arithmetic: str) -> str | None:
    """What `diagnose` says of the first prefix that is wrong, of 2, 4, 8, … symbols."""
    for k in range(1, len(x).bit_length() + 1):
        prefix = x[: 2**k]
        if len(prefix) <= DENSE and answer(model, prefix, arithmetic) is not dyck_strings.is_member(
            prefix
        ):
            signature = tf.diagnose(model, prefix, arithmetic).signature
            return f"{type(signature).__name__}: {getattr(signature, 'of', '')}"
    return None


def is_certified(model: tf.Transformer, arithmetic: str) -> bool:
    """True if a certificate of the model holds in a format."""
    with suppress(tf.TransformistError):  # EqZero is of no form that a certificate knows
        return bool(tf.certify(model, arithmetic).holds)
    return False
