"""Verdicts: the outcome of comparing weights with what they are said to compute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

WIDEST = Fraction(1, 2**40)
"""A ball wider than this, absolutely and relatively, says too little to hold a claim."""


def agrees(value: Any, radius: Any, expected: Any, limit: Fraction | float) -> bool:
    """Whether what was computed, up to the radius of its ball, is within the limit of expected."""
    if isinstance(limit, float) and limit == math.inf:
        return True
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if radius:
        known = radius <= WIDEST * (1 + abs(expected))
        return bool(known and abs(Fraction(value) - expected) <= limit + Fraction(radius))
    (p, q), (r, s) = value.as_integer_ratio(), expected.as_integer_ratio()
    if (p, q) == (r, s):
        return True
    t, u = limit.as_integer_ratio()
    return bool(abs(p * s - r * q) * u <= t * q * s)  # |p/q − r/s| ≤ t/u, in whole numbers


@dataclass(frozen=True)
class Counterexample:
    """An input on which the weights and the reference differ by more than the claim admits."""

    input: Any
    expected: Any
    got: Any
    arithmetic: str
    settings: str = ""

    def __str__(self) -> str:
        where = f" with {self.settings}" if self.settings else ""
        return (
            f"input {_shown(self.input)} gives {_shown(self.got)} in {self.arithmetic}{where}, "
            f"expected {_shown(self.expected)}"
        )


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        name: of what was checked.
        cases: how many inputs were evaluated, over all arithmetics.
        arithmetics: the number systems they were evaluated in.
        covered: what was tried, in words.
        counterexample: the first input that failed, or `None`.

    """

    name: str
    cases: int
    arithmetics: tuple[str, ...]
    covered: str
    counterexample: Counterexample | None = None

    @property
    def held(self) -> bool:
        """Whether no counterexample was found."""
        return self.counterexample is None

    def __bool__(self) -> bool:
        """As `held`, so that a verdict can be asserted."""
        return self.held


def described(settings: Mapping[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(each) for each in value)}]"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
