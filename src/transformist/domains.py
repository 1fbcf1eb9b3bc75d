"""Domains: the inputs a claim speaks about, and how they are covered.

A domain yields cases as tuples of exact rationals that the arithmetic can represent, so that a
reference function sees the very input that the weights see.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, TypeVar

from transformist.arithmetic import Arithmetic

T = TypeVar("T")
Case: TypeAlias = tuple[Fraction, ...]


class Domain(Protocol):
    """Inputs of a position-wise function."""

    def __str__(self) -> str:
        """The domain in a formula or a few words."""

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """All cases where there are at most `count`, else about `count`, corners first."""


@dataclass(frozen=True)
class Bits:
    """{0, 1}ᵐ."""

    width: int

    def __str__(self) -> str:
        return f"{{0, 1}}^{self.width}"

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every vector of bits, or `count` drawn ones."""
        return _covered([(Fraction(0), Fraction(1))] * self.width, count, seed)


@dataclass(frozen=True)
class Reals:
    """[low, high]^dimension: the given points, their neighbours, and drawn numbers.

    Attributes:
        dimension: how many numbers a case has.
        low, high: the interval each lies in.
        points: the values at which the function bends or jumps.

    """

    dimension: int
    low: Fraction = Fraction(-8)
    high: Fraction = Fraction(8)
    points: tuple[Fraction, ...] = ()

    def __str__(self) -> str:
        power = "" if self.dimension == 1 else f"^{self.dimension}"
        return f"[{self.low}, {self.high}]{power}"

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Corners and points in every combination that `count` leaves room for, then drawn ones."""
        random_source = random.Random(f"{seed} {self} {arithmetic.name}")
        marks = {Fraction(0), Fraction(1), Fraction(-1), self.low, self.high, *self.points}
        nudge = (self.high - self.low) / 4096
        marks |= {point + step for point in self.points for step in (nudge, -nudge)}
        axis = self._representable(sorted(marks), arithmetic)
        chosen = _covered([axis] * self.dimension, count // 2, seed)
        drawn = [self._draw(random_source) for _ in range((count - len(chosen)) * self.dimension)]
        numbers = self._representable(drawn, arithmetic)
        size = self.dimension
        return chosen + [
            tuple(numbers[start : start + size])
            for start in range(0, len(numbers) - size + 1, size)
        ]

    def _draw(self, random_source: random.Random) -> Fraction:
        """A number drawn evenly from the interval, or by magnitude around zero or a point."""
        kind = random_source.randrange(4)
        if kind < 2:
            share = Fraction(random_source.getrandbits(60), 2**60)
            return self.low + (self.high - self.low) * share
        centre = random_source.choice([Fraction(0), *self.points]) if kind == 3 else Fraction(0)
        size = Fraction(2.0 ** random_source.uniform(-20, 3))
        return centre + random_source.choice([1, -1]) * size

    def _representable(self, values: Sequence[Fraction], a: Arithmetic) -> list[Fraction]:
        """The values rounded to the format, those that then lie in the interval."""
        if not values:
            return []
        rounded = a.numbers(a.array(list(values))).tolist()
        inside = [value for value in map(Fraction, rounded) if self.low <= value <= self.high]
        return list(dict.fromkeys(inside)) if len(values) < 100 else inside


@dataclass(frozen=True)
class Grid:
    """Multiples of a power of two up to a bound: numbers of a common exponent.

    Attributes:
        dimension: how many numbers a case has.
        bits: the numbers are k · 2^exponent with |k| ≤ 2^bits.
        exponent: of the common factor.

    """

    dimension: int
    bits: int
    exponent: int = 0

    def __str__(self) -> str:
        return f"multiples of 2^{self.exponent}, at most 2^{self.bits + self.exponent} in magnitude"

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every combination, or `count` drawn ones."""
        step = Fraction(2) ** self.exponent
        axis = range(-(2**self.bits), 2**self.bits + 1)
        return [
            tuple(k * step for k in case) for case in _covered([axis] * self.dimension, count, seed)
        ]


@dataclass(frozen=True)
class Product:
    """Each part's cases beside each other's."""

    parts: tuple[Domain, ...]

    def __str__(self) -> str:
        return " × ".join(str(part) for part in self.parts)

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """Every combination where `count` leaves room, else the parts' cases side by side."""
        lists = [part.cases(arithmetic, count, seed + k) for k, part in enumerate(self.parts)]
        return [tuple(itertools.chain(*row)) for row in _covered(lists, count, seed)]


@dataclass(frozen=True)
class Where:
    """The cases of a domain that satisfy a condition."""

    domain: Domain
    condition: Callable[[Case], bool]
    statement: str

    def __str__(self) -> str:
        return f"{self.domain} where {self.statement}"

    def cases(self, arithmetic: Arithmetic, count: int, seed: int) -> list[Case]:
        """The cases of the domain, those that satisfy the condition."""
        return [case for case in self.domain.cases(arithmetic, count, seed) if self.condition(case)]


@dataclass(frozen=True)
class Strings:
    """Strings over an alphabet: every one to a length, then chosen and drawn ones.

    Attributes:
        alphabet: the symbols.
        hard: strings of about a given length on which a construction is most likely to fail.

    """

    alphabet: tuple[str, ...]
    hard: Callable[[int], Sequence[str]]

    def __str__(self) -> str:
        return f"strings over {{{', '.join(self.alphabet)}}}"

    def every(self, length: int) -> Iterator[str]:
        """Every string of at most this length, the empty one first."""
        for n in range(length + 1):
            yield from map("".join, itertools.product(self.alphabet, repeat=n))

    def drawn(self, length: int, count: int, seed: int) -> list[str]:
        """`count` strings drawn evenly over lengths up to `length` and over the alphabet."""
        source = random.Random(f"{seed} {length}")
        lengths = [source.randint(0, length) for _ in range(count)]
        return ["".join(source.choices(self.alphabet, k=n)) for n in lengths]


def _covered(axes: Sequence[Sequence[T]], count: int, seed: int) -> list[tuple[T, ...]]:
    """The product of the axes where it has at most `count` members, else `count` drawn ones."""
    total = math.prod(len(axis) for axis in axes)
    if total <= count:
        return list(itertools.product(*axes))
    source = random.Random(f"{seed} {total}")
    return [tuple(source.choice(axis) for axis in axes) for _ in range(count)]
