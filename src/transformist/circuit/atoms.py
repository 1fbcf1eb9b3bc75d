"""Atoms: what needs a place in the weights of a transformer; and what is known of a number."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from transformist.circuit.forms import Form
from transformist.circuit.heads import Head
from transformist.laws import Bound, Grid, Range

Rows: TypeAlias = tuple[Range, ...]
"""A range for each symbol of the alphabet, and for BOS where there is one."""


@dataclass(frozen=True)
class _OfNoForm:
    """What is computed from the symbol or the position alone."""

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return ()


@dataclass(frozen=True)
class Embedded(_OfNoForm):
    """A number for each symbol of the alphabet, and for BOS where there is one."""

    values: tuple[Fraction, ...]


@dataclass(frozen=True)
class PositionFeature(_OfNoForm):
    """A function of the position, by its name in `POSITIONS`."""

    name: str


@dataclass(frozen=True)
class _OfForm:
    """What is computed from one form."""

    form: Form

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return (self.form,)


@dataclass(frozen=True)
class Relu(_OfForm):
    """max(form, 0)."""


@dataclass(frozen=True)
class StepFunction(_OfForm):
    """0 where the form is at most zone/4, 1 where it is at least 3 zone/4, straight between."""

    zone: Fraction


@dataclass(frozen=True)
class Fetched:
    """What a head fetches of a form."""

    head: Head
    value: Form

    @property
    def reads(self) -> tuple[Form, ...]:
        """The forms that it is computed from."""
        return (*self.head.forms, self.value)


@dataclass(frozen=True)
class Kept(_OfForm):
    """What a slot holds after more is added to it; no program is compiled to it."""


Atom: TypeAlias = Embedded | PositionFeature | Relu | StepFunction | Fetched | Kept


@dataclass(frozen=True)
class Law:
    """What is known of a number.

    Attributes:
        rows: its range at each kind of row.
        grid: that it lies on, where there is one; at BOS it may not.
        least: its least magnitude but 0, where that is known without a grid.

    """

    rows: Rows
    grid: Grid | None
    least: Fraction | None = None

    @cached_property
    def size(self) -> Bound:
        """The largest magnitude."""
        return max(row.size for row in self.rows)


def upper_unit(atom: StepFunction) -> Form:
    """What the second of the two units of a step reads."""
    return atom.form * (2 / atom.zone) - Fraction(3, 2)
