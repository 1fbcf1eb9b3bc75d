"""Sums as the weights compute them: weights, factors and bias, before they are simplified.

A form says which number a row of weights computes. Its rounding depends on how it is computed: a
constant in a slot is rounded by itself before a weight multiplies it, each head rounds its output,
and each slot that a row reads is another summand. So every row of weights is stored as a `Sum`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transformist.circuit.circuit import Head
from transformist.circuit.forms import Form, total


@dataclass(frozen=True, eq=False)
class Sum:
    """Σ weight · number + shift: weights and shift are rounded, and the result is stored.

    Attributes:
        parts: nonzero weights, each with its factor: a form that is computed as one number, or a
            sum.
        shift: the bias.
        is_stored_each: True if each addition is stored, as in residual connections.
        is_of_units: True if the factors are hidden units, of which a step is a difference of two.

    """

    parts: tuple[tuple[Fraction, Form | Sum], ...]
    shift: Fraction = Fraction(0)
    is_stored_each: bool = False
    is_of_units: bool = False

    @cached_property
    def form(self) -> Form:
        """Form of the number that the sum computes."""
        return total([*(form_of(x) * weight for weight, x in self.parts), Form.of(self.shift)])

    @cached_property
    def constants(self) -> Fraction:
        """Sum of the magnitudes of all constant terms."""
        return abs(self.shift) + sum(
            (abs(w) * (x.constants if isinstance(x, Sum) else abs(x.constant)))
            for w, x in self.parts
        )

    @property
    def summands(self) -> int:
        """Number of terms."""
        return len(self.parts) + bool(self.shift)


Number: TypeAlias = Form | Sum


def form_of(number: Number) -> Form:
    """Form of a number."""
    return number.form if isinstance(number, Sum) else number


@dataclass(frozen=True, eq=False)
class SumMatrix:
    """Sums of the same numbers, a row for each: W · numbers + shift.

    Attributes:
        numbers: the m numbers that every row multiplies.
        W: the weights, (rows, m).
        shift: the biases, (rows,).

    """

    numbers: tuple[Number, ...] = ()
    W: NDArray[Any] = field(default_factory=lambda: np.zeros((0, 0)))
    shift: NDArray[Any] = field(default_factory=lambda: np.zeros(0))

    def row(self, number: int) -> Sum:
        """The row of this number, as a `Sum`."""
        read = zip(self.W[number].tolist(), self.numbers, strict=True)
        parts = tuple((Fraction(weight), x) for weight, x in read if weight)
        return Sum(parts, Fraction(self.shift[number]))


@dataclass(frozen=True, eq=False)
class ScoreReading:
    """Queries and keys of a head as they are read, coordinate by coordinate.

    Attributes:
        pairs: query and key of each coordinate; coordinates where either is 0 are left out.
        size: d_key.

    """

    pairs: tuple[tuple[Sum, Sum], ...]
    size: int


@dataclass(eq=False)
class Readings:
    """The sums by which a model computes each form.

    Attributes:
        sums: by form: inputs of ReLUs and read-outs, values, and contents of slots.
        steps: by the number of a step: the inputs of its two units, the larger one first.
        scores: by head: its queries and keys.
        rows: sums that are computed, except those in `unlisted`.
        unlisted: rows of the read-out that are computed, whose forms are not keys of `sums`.

    """

    sums: dict[Form, list[Sum]] = field(default_factory=dict)
    steps: dict[int, list[tuple[Sum, Sum]]] = field(default_factory=dict)
    scores: dict[Head, list[ScoreReading]] = field(default_factory=dict)
    rows: list[Sum] = field(default_factory=list)
    unlisted: SumMatrix = field(default_factory=SumMatrix)

    def add(self, sums: Iterable[Sum]) -> None:
        """Record sums."""
        for each in sums:
            self.sums.setdefault(each.form, []).append(each)

    def add_scores(self, head: Head, queries: list[Sum], keys: list[Sum]) -> None:
        """Record the queries and keys of a head, coordinate by coordinate."""
        pairs = [
            (query, key)
            for query, key in zip(queries, keys, strict=True)
            if query.form != Form() != key.form
        ]
        self.scores.setdefault(head, []).append(ScoreReading(tuple(pairs), len(queries)))
