"""The kinds of answers that a compiled model reads out: tolerances, margins and read-out of each.

Softmax may use up half of the distance to a wrong answer, or a quarter of it (`tolerances`). All
errors together, those of rounding included, must stay below the whole distance (`require`).
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from transformist.circuit import READ_OUT, Form, Margins, Tolerance, magnitude
from transformist.language.types import exact, quotient
from transformist.model import Binary, MultiClass, NearestFraction, Outputs, ReadOut, exact_product

RowsOf: TypeAlias = "Callable[[tuple[Form, ...]], dict[str, Any]]"
"""The arguments W_out and b_out of a read-out that reads these forms."""


class Answer(ABC):
    """A kind of answer."""

    @property
    @abstractmethod
    def read(self) -> tuple[Form, ...]:
        """The forms that are read."""

    @property
    @abstractmethod
    def tolerances(self) -> tuple[Tolerance, ...]:
        """Tolerances of forms, for the errors that softmax leaves."""

    @abstractmethod
    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        """Require the margins of the answer in a format; a refusal names their owner."""

    @abstractmethod
    def read_out(self, rows_of: RowsOf) -> ReadOut:
        """The read-out."""


@dataclass(frozen=True)
class Accepted(Answer):
    """True if a number is above 0 at the last position; it is at least `margin` away from 0."""

    form: Form
    margin: Fraction

    @property
    def read(self) -> tuple[Form, ...]:
        return (self.form,)

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        return (Tolerance(self.form, self.margin / 2),)

    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        margins.require(owner, "the error of the answer", margins.error(self.form), self.margin)

    def read_out(self, rows_of: RowsOf) -> ReadOut:
        return Binary(**rows_of(self.read))


@dataclass(frozen=True)
class Labelled(Answer):
    """At every position the label whose form is the largest, by a gap at least."""

    labels: tuple[Any, ...]
    forms: tuple[Form, ...]
    gap: Fraction

    @property
    def read(self) -> tuple[Form, ...]:
        return self.forms

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """An eighth of the gap each: two forms are compared, whose errors add to a quarter."""
        return tuple(Tolerance(form, self.gap / 8) for form in self.forms)

    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        error = max((margins.error(form) for form in self.forms), default=0.0)
        margins.require(owner, "the error of the answer", 2 * error, self.gap)

    def read_out(self, rows_of: RowsOf) -> ReadOut:
        return MultiClass(**rows_of(self.forms), labels=self.labels, at="every")


@dataclass(frozen=True)
class NearestValue(Answer):
    """At every position the value v with the largest 2 v y − v², which is the nearest to y.

    Attributes:
        y: the form of a number that is one of the values.
        values: the labels, at least one; they increase.

    """

    y: Form
    values: tuple[Any, ...]

    @cached_property
    def read(self) -> tuple[Form, ...]:
        return tuple(self.y * (2 * value) - value**2 for value in self.values)

    @cached_property
    def gap(self) -> Fraction:
        """The least distance of two values; 1 for a single value."""
        pairs = itertools.pairwise(self.values)
        return Fraction(min((after - before for before, after in pairs), default=1))

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """Softmax may move each form by an eighth of gap², which keeps certificates of grade 2."""
        largest = max(map(abs, (self.values[0], self.values[-1], 1)))
        return (Tolerance(self.y, self.gap**2 / (16 * largest)),)

    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        # 2 v y − v² = y² − (y − v)², so the form of the value y is the largest, and that of a value
        # at distance g is less by g². Let e be the error of y before it is read, and r the largest
        # rounding of a form as it is read. The difference of two forms is off by 2 g e + 2 r. If
        # this is below g² for the least g, it is so for every g.
        off = margins.inherited(self.y)
        rounding = max(margins.error(form) - margins.inherited(form) for form in self.read)
        gap = magnitude(self.gap)
        error = 2 * gap * off + 2 * rounding if off < math.inf else math.inf
        margins.require(owner, "the error of the answer", error, self.gap**2)

    def read_out(self, rows_of: RowsOf) -> ReadOut:
        labels = tuple(map(exact, self.values))
        return MultiClass(**rows_of(self.read), labels=labels, at="every")


@dataclass(frozen=True)
class Counted(Answer):
    """At every position the label k with 2 k y − k² w the largest.

    y is the count c times a scale w, which is at least 1/D. The form of k is (c² − (c − k)²) w, so
    that of c is the largest, and those of its neighbours, 1/scale away, are less by w/scale².

    Attributes:
        y, w: the forms of the count in its scale, and of the scale.
        scale: the labels are multiples of 1/scale.
        least, most: the first and the last, times the scale.
        seen: the largest D.

    """

    y: Form
    w: Form
    scale: int
    least: int
    most: int
    seen: int

    @property
    def read(self) -> tuple[Form, ...]:
        return self.y, self.w

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """An error e of y moves neighbouring labels by 2 e/scale: 1/(4 D scale²) at most."""
        return (Tolerance(self.y, Fraction(1, 8 * self.scale * self.seen)),)

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The numbers."""
        return tuple(quotient(k, self.scale) for k in range(self.least, self.most + 1))

    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        margins.require_count(owner, self.y, self.w, self.scale, self.least, self.most)

    def read_out(self, rows_of: RowsOf) -> ReadOut:
        factors = [(2 * k, -(k**2)) for k in self.labels]
        rows = {name: exact_product(factors, read) for name, read in rows_of(self.read).items()}
        return MultiClass(**rows, labels=self.labels, at="every")


@dataclass(frozen=True)
class NearestMean(Answer):
    """At every position a number on the grid of a mean: the multiple of 1/(scale · D) nearest.

    Attributes:
        form: what is read.
        scale: the known part of the denominator.
        mask: that leaves D positions.
        with_bos: True if the form is the number times (D − 1)/D, D with BOS.
        seen: the largest D; `None` where it has no bound.

    """

    form: Form
    scale: int
    mask: str
    with_bos: bool
    seen: int | None

    @property
    def read(self) -> tuple[Form, ...]:
        return (self.form,)

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        """A quarter of 1/(2 scale D), the distance to the middle between two multiples."""
        if self.seen is None:
            return ()
        return (Tolerance(self.form, Fraction(1, 8 * self.scale * self.seen)),)

    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        # In steps of 1/(scale · D) the error is scale times that of D times the number: below half
        # a step the right multiple is the nearest.
        error = self.scale * margins.scaled_error(self.form)
        margins.require(owner, "the error of the answer, a mean", error, 1 / 2)

    def read_out(self, rows_of: RowsOf) -> ReadOut:
        mask, with_bos = self.mask, self.with_bos
        rows = rows_of(self.read)
        return NearestFraction(**rows, scale=self.scale, mask=mask, with_bos=with_bos, at="every")


@dataclass(frozen=True)
class Several(Answer):
    """Several answers by name, read from the same final vectors; each has its own margins.

    Attributes:
        parts: pairs of a name and an answer.

    """

    parts: tuple[tuple[str, Answer], ...]

    @property
    def read(self) -> tuple[Form, ...]:
        return tuple(form for _, each in self.parts for form in each.read)

    @property
    def tolerances(self) -> tuple[Tolerance, ...]:
        return tuple(tolerance for _, each in self.parts for tolerance in each.tolerances)

    def require(self, margins: Margins, owner: str = READ_OUT) -> None:
        for name, each in self.parts:
            each.require(margins, part_of(owner, name))

    def read_out(self, rows_of: RowsOf) -> ReadOut:
        names, answers = zip(*self.parts, strict=True)
        return Outputs(names=names, parts=tuple(each.read_out(rows_of) for each in answers))


def part_of(owner: str, name: str) -> str:
    """The owner of the margins of one of several answers."""
    return f"{owner} {name}"
