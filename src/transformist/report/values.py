"""Single values, for JSON and in words."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.errors import NotFinite


@functools.singledispatch
def plain(value: Any) -> Any:
    """A value for JSON: integers as they are, other rationals "p/q", no NaN or infinity.

    Raises:
        NotFinite: for NaN or infinity.

    Example:
        >>> plain([Fraction(4, 2), Fraction(1, 3), 0.5])
        [2, '1/3', 0.5]
    """
    return value


@plain.register
def _plain_scalar(value: np.generic) -> Any:  # a number that a user's function returned
    return plain(value.item())


@plain.register
def _plain_mapping(value: Mapping) -> dict[str, Any]:  # type: ignore[type-arg]
    return {str(key): plain(each) for key, each in value.items()}


@plain.register(list)
@plain.register(tuple)
def _plain_list(value: Sequence[Any]) -> list[Any]:
    return [plain(each) for each in value]


@plain.register
def _plain_rational(value: Fraction) -> int | str:
    return int(value) if value.denominator == 1 else str(value)


@plain.register
def _plain_float(value: float) -> float:
    if not math.isfinite(value):
        raise NotFinite(
            "every number of the answer must be finite",
            received=str(value),
            remedy="scale the input down, or use a format with a wider range",
        )
    return value


def finite_or_words(value: Any) -> Any:
    """A value in which NaN and infinities are words.

    Example:
        >>> finite_or_words([0.5, float("inf"), {"a": float("nan")}])
        [0.5, 'inf', {'a': 'nan'}]

    """
    if isinstance(value, Mapping):
        return {str(key): finite_or_words(each) for key, each in value.items()}
    if isinstance(value, list):
        return [finite_or_words(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def at_most(bound: float) -> str:
    """A bound in two digits, rounded up.

    Example:
        >>> at_most(0.0625), at_most(3e-16)
        ('0.063', '3e-16')

    """
    digits = Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(bound)
    return f"{float(digits):.2g}"


def length_in_words(bound: int | None) -> str:
    """A safe length, "any" for every length."""
    if bound is None:
        return "any"
    if bound < 10**15:
        return f"{bound:,}"
    return f"{float(Context(prec=2, rounding=ROUND_FLOOR).create_decimal(bound)):.2g}"


def dependence_in_words(names: Sequence[str]) -> str:
    """The parts of a model that depend on the length, in words.

    Example:
        >>> dependence_in_words(["n"]), dependence_in_words([])
        ('the positions depend on n', 'the same for every length')

    """
    told = {"N": "the weights depend on N", "n": "the positions depend on n"}
    return "; ".join(told[name] for name in sorted(names)) or "the same for every length"


def answer_in_words(answer: Any) -> str:
    """A verdict as a word, a tag as a string, its beginning where it is long; several by name.

    Example:
        >>> answer_in_words(True), answer_in_words([1, Fraction(1, 2)]), answer_in_words("ab")
        ('accepted', '1 1/2', 'ab')
        >>> answer_in_words({"ok": False, "depth": [1, 2]})
        'ok: rejected; depth: 1 2'

    """
    if answer is True or answer is False:
        return "accepted" if answer else "rejected"
    if isinstance(answer, Mapping) and not _is_distribution(answer):
        return "; ".join(f"{name}: {answer_in_words(each)}" for name, each in answer.items())
    text = " ".join(map(str, answer)) if isinstance(answer, list) else str(answer)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _is_distribution(answer: Mapping[Any, Any]) -> bool:
    """True for the answer of a language model: a probability for each symbol."""
    return any(isinstance(each, float) for each in answer.values())
