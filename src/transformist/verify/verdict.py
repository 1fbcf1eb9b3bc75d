"""Verdicts: the outcome of comparing weights with what they are claimed to compute."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from typing import Any, TypeAlias

from transformist.arithmetic import is_whole
from transformist.deferred import Library
from transformist.errors import InvalidValue, Undecided

_NOTEBOOK = Library("transformist.report.notebook_html")
"""What notebooks show, imported when a notebook asks for it."""

_FIGURES = Library("transformist.figures")
"""The figures, imported when one is drawn: they need matplotlib."""

LARGEST_RADIUS = Fraction(1, 2**40)
"""Largest radius, relative to 1 + |expected|, of a ball that agrees if any part of it does.

So a claim with a smaller limit is confirmed up to twice this radius only. `interval` computes with
128 bits: a ball has this radius once 88 bits are lost.
"""

Limit: TypeAlias = "Fraction | float"
"""Largest error that a claim admits; infinite where it claims nothing, as when a result overflows.
"""


def agrees(value: Any, radius: Any, expected: Any, limit: Limit) -> bool:
    """True if the number in the ball value ± radius is within the limit of the expected number.

    A ball whose radius is at most 2⁻⁴⁰ (1 + |expected|) agrees if any part of it is within the
    limit; a larger ball agrees if all of it is.

    Raises:
        Undecided: for a larger ball of which a part is within the limit.

    Example:
        >>> agrees(0.5, 0, Fraction(1, 3), Fraction(1, 6)), agrees(0.5, 0, 0, Fraction(1, 3))
        (True, False)

    """
    if isinstance(limit, float) and limit == math.inf:
        return True
    if isinstance(value, float) and not math.isfinite(value):
        return False
    if radius:
        distance, radius = abs(Fraction(value) - expected), Fraction(radius)
        limit = Fraction(limit)  # a float and a fraction have a rounded sum
        if distance > limit + radius or distance + radius <= limit:
            return bool(distance <= limit)
        if radius > LARGEST_RADIUS * (1 + abs(expected)):
            size = Decimal(radius.numerator) / radius.denominator
            raise Undecided(
                "a ball of interval must be wholly within the claimed error, or wholly beyond it",
                received=f"one of radius {size:.1e}, partly within, which neither confirms nor "
                "refutes the claim",
                where="check",
                remedy="choose parameters and inputs closer to each other in size, so that fewer "
                "digits cancel",
            )
        return True
    (p, q), (r, s) = value.as_integer_ratio(), expected.as_integer_ratio()
    if (p, q) == (r, s):
        return True
    # |p/q − r/s| ≤ t/u in whole numbers: q, s and u are positive, so multiplying by q s u keeps
    # the order. Unlike `Fraction`, whole numbers need no greatest common divisor.
    t, u = limit.as_integer_ratio()
    return bool(abs(p * s - r * q) * u <= t * q * s)


def all_agree(rows: Any, radii: Any, expected: Any, limit: Limit) -> bool:
    """True if rows of numbers have the expected shape, and every number agrees within the limit.

    An expected row that is `None` is not claimed, and agrees with any row.
    """
    return len(rows) == len(expected) and all(
        wanted is None
        or (len(row) == len(wanted) and all(map(agrees, row, radius, wanted, repeat(limit))))
        for row, radius, wanted in zip(rows, radii, expected, strict=True)
    )


@dataclass(frozen=True)
class Mismatch:
    """An input, or a place in one, with the right answer and the one given."""

    input: Any
    expected: Any
    got: Any


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
class Drawn:
    """Strings drawn at random, the same wherever and in whatever order they are drawn.

    Attributes:
        count: their number.
        shortest: the least length.
        longest: the largest length.
        seed: each string is drawn from the seed, the lengths and its number alone.

    Raises:
        InvalidValue: for a number below 0, or a shortest length above the longest.

    Example:
        >>> str(Drawn(1000, 0, 64, seed=7))
        '1,000 strings of length 0 to 64 drawn with seed 7'

    """

    count: int
    shortest: int
    longest: int
    seed: int = 0

    def __post_init__(self) -> None:
        given = self.count, self.shortest, self.longest, self.seed
        if not all(is_whole(each, 0) for each in given) or self.shortest > self.longest:
            raise InvalidValue(
                "drawn strings must have a count, lengths and a seed of at least 0, and a shortest "
                "length of at most the longest",
                received=f"count {self.count!r:.20}, lengths {self.shortest!r:.20} to "
                f"{self.longest!r:.20}, seed {self.seed!r:.20}",
                where="check",
                remedy="give others, such as Drawn(1000, 1, 64)",
            )

    def __str__(self) -> str:
        return (
            f"{self.count:,} strings of length {self.shortest} to {self.longest} drawn with seed "
            f"{self.seed}"
        )


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Inputs that a check evaluated in one arithmetic under one choice of settings.

    Attributes:
        arithmetic: the number system.
        cases: number of inputs evaluated; after a failure, those up to the first that failed.
        inputs: the inputs, in words.
        settings: those that differ from the defaults.
        every: the shortest and the longest length; every string of these lengths was evaluated.
            `None` where that is not so.
        drawn: the strings drawn at random, or `None`.
        pieces: number of pieces that the check was cut into.
        from_journal: number of these pieces that an earlier run recorded in the journal.

    """

    arithmetic: str
    cases: int
    inputs: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    every: tuple[int, int] | None = None
    drawn: Drawn | None = None
    pieces: int = 1
    from_journal: int = 0


@dataclass(frozen=True)
class Verdict:
    """Outcome of a check.

    Attributes:
        name: the name of the recipe or program that was checked.
        cases: number of inputs evaluated, over all arithmetics.
        arithmetics: the number systems they were evaluated in.
        covered: the inputs tried, in words.
        counterexample: the first input that failed, or `None`.
        coverage: the inputs evaluated, for each arithmetic and choice of settings.

    """

    name: str
    cases: int
    arithmetics: tuple[str, ...]
    covered: str
    counterexample: Counterexample | None = None
    coverage: tuple[Coverage, ...] = ()

    @property
    def held(self) -> bool:
        """True if no counterexample was found."""
        return self.counterexample is None

    def _repr_html_(self) -> str:
        """The inputs compared and the outcome, for notebooks."""
        html: str = _NOTEBOOK.verdict_html(self)
        return html

    def plot(self) -> Any:
        """Draw the number of inputs compared in each arithmetic, and the counterexample.

        Returns:
            A matplotlib `Figure`; its label is a description in words.

        Raises:
            InvalidValue: without matplotlib (extra `figures`).

        """
        return _FIGURES.verdict(self)

    def __bool__(self) -> bool:
        return self.held


@dataclass(frozen=True)
class Trial:
    """Inputs of a claim that were evaluated, and the first that failed, or `None`."""

    coverage: Coverage
    mismatch: Mismatch | None


def verdict_of(name: str, trials: Iterable[Trial], covered: str) -> Verdict:
    """Verdict over trials, which ends with the first that fails.

    Args:
        name: the name of the recipe or program that is checked.
        trials: evaluated one after the other, as they are asked for.
        covered: the inputs tried, in words, if every trial passes.

    """
    coverage = list[Coverage]()
    for trial in trials:
        coverage.append(trial.coverage)
        wrong = trial.mismatch
        if wrong is not None:
            given = trial.coverage.settings
            settings = ", ".join(f"{name}={value}" for name, value in given.items())
            found = Counterexample(
                wrong.input, wrong.expected, wrong.got, trial.coverage.arithmetic, settings
            )
            return _verdict(name, coverage, trial.coverage.inputs, found)
    return _verdict(name, coverage, covered, None)


def _verdict(
    name: str, coverage: Sequence[Coverage], covered: str, found: Counterexample | None
) -> Verdict:
    arithmetics = dict.fromkeys(each.arithmetic for each in coverage if each.cases)
    cases = sum(each.cases for each in coverage)
    return Verdict(name, cases, tuple(arithmetics), covered, found, tuple(coverage))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_shown(each) for each in value)}]"
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = f"a value of {type(value).__name__} that is too long to write"
    return text if len(text) <= 60 else f"{text[:57]}…"
