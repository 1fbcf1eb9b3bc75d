"""Affine forms of atoms; an atom is given by its number."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from operator import itemgetter
from typing import Any

from transformist.rounding import power_of_two_at_most


class HashedOnce:
    """A frozen dataclass that computes its hash once: large ones are keys of many dictionaries.

    A subclass defines `__hash__` as this hash, since `dataclass` would write another one.
    """

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, each.name) for each in fields(self)))  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        # Only what is given: a copy with another field must not keep what was computed before, and
        # the hash of a string differs from process to process.
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


NO_CONSTANT = Fraction(0)
"""The constant of forms that have none: one object for nearly all, which `is` recognises."""


@dataclass(frozen=True)
class Form(HashedOnce):
    """Σ factor · atom + constant.

    Attributes:
        terms: pairs of an atom's number and its factor, not 0; the numbers increase.
        constant: a rational number.

    Example:
        >>> x, y = Form.atom(0), Form.atom(1)
        >>> x + y * 2 - x - 1
        Form(terms=((1, Fraction(2, 1)),), constant=Fraction(-1, 1))

    """

    terms: tuple[tuple[int, Fraction], ...] = ()
    constant: Fraction = NO_CONSTANT

    @cached_property
    def _key(self) -> tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], int]:
        """Atoms and factors as integers, which compare faster than fractions, and their hash."""
        key = self.atoms, tuple([factor.as_integer_ratio() for _, factor in self.terms])
        return key, hash(key)

    @property
    def _ratios(self) -> tuple[tuple[int, int], ...]:
        """The factors as pairs of integers."""
        return self._key[0][1]

    @cached_property
    def _hash(self) -> int:
        return hash((self.linear._key[1], self.constant.as_integer_ratio()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        """True for equal terms and constants."""
        if not isinstance(other, Form):
            return NotImplemented
        if self is other:
            return True
        if self.constant.as_integer_ratio() != other.constant.as_integer_ratio():
            return False
        return self.terms is other.terms or self.linear._key == other.linear._key

    @classmethod
    def atom(cls, number: int) -> Form:
        """The atom itself."""
        return cls(((number, UNIT),))

    @classmethod
    def of(cls, value: Any) -> Form:
        """A constant."""
        return cls((), Fraction(value) or NO_CONSTANT)

    @classmethod
    def made(cls, factors: Iterable[tuple[int, Fraction]], constant: Fraction) -> Form:
        """The form with these factors, added up where an atom comes twice."""
        # A factor that comes to 0 is left out: a term with the factor 0 would make equal forms
        # unequal, and its atom would count as read.
        total: dict[int, Fraction] = {}
        for atom, factor in factors:
            total[atom] = total[atom] + factor if atom in total else factor
        kept = [term for term in total.items() if term[1]]
        return cls(tuple(sorted(kept, key=_ATOM)), constant or NO_CONSTANT)

    def __str__(self) -> str:
        """The form as text, an atom by its number in brackets."""
        parts = [f"{factor} [{atom}]" for atom, factor in self.terms]
        return " + ".join([*parts, str(self.constant)] if self.constant or not parts else parts)

    @cached_property
    def factors(self) -> dict[int, Fraction]:
        """The factor of each atom."""
        return dict(self.terms)

    @cached_property
    def atoms(self) -> tuple[int, ...]:
        """The numbers of its atoms."""
        linear = self.linear
        return tuple([atom for atom, _ in self.terms]) if linear is self else linear.atoms

    @property
    def linear(self) -> Form:
        """The form without its constant; bounds of it serve every form that adds a constant."""
        constant = self.constant
        if constant is NO_CONSTANT:
            return self
        return self.__dict__.get("_linear") or (self._linear if constant else self)

    @cached_property
    def _linear(self) -> Form:
        return Form(self.terms)

    @property
    def distinct_factors(self) -> tuple[Fraction, ...]:
        """Each factor once; most forms have few."""
        return self.linear._distinct_factors

    @cached_property
    def _distinct_factors(self) -> tuple[Fraction, ...]:
        objects = {id(factor): factor for _, factor in self.terms}.values()
        return tuple({factor.as_integer_ratio(): factor for factor in objects}.values())

    @property
    def whole_factors(self) -> tuple[int, ...] | None:
        """The factors of the terms, if all are whole numbers."""
        return self.linear._whole_factors

    @cached_property
    def _whole_factors(self) -> tuple[int, ...] | None:
        whole = tuple([top for top, bottom in self._ratios if bottom == 1])
        return whole if len(whole) == len(self._ratios) else None

    @property
    def is_constant(self) -> bool:
        """True if it has no atom."""
        return not self.terms

    def __add__(self, other: Any) -> Form:
        if not isinstance(other, Form):
            return self._plus(other if isinstance(other, Fraction) else Fraction(other))
        if not other.terms:
            return self._plus(other.constant)
        return Form.made((*self.terms, *other.terms), self.constant + other.constant)

    __radd__ = __add__

    def _plus(self, number: Fraction) -> Form:
        if not number:
            return self
        # The form without its constant is one object for all: its bounds are computed once.
        linear = self.linear
        constant = number if linear is self else self.constant + number
        if not constant:
            return linear
        found = Form(self.terms, constant)
        found.__dict__["_linear"] = linear
        return found

    def __mul__(self, factor: Any) -> Form:
        scale = factor if isinstance(factor, Fraction) else Fraction(factor)
        if not scale:
            return Form()
        if scale == 1:
            return self
        # Most forms have few factors, which are the same objects: each is multiplied once.
        products = {id(factor): factor for _, factor in self.terms}
        for key, factor in products.items():
            products[key] = factor * scale
        found = Form(tuple([(a, products[id(f)]) for a, f in self.terms]))
        # A multiple has the atoms of this form, and its direction: `_origin` is the form that was
        # multiplied first, so that all multiples return one direction.
        found.__dict__.update(atoms=self.atoms, _origin=self.__dict__.get("_origin", self))
        return found if self.constant is NO_CONSTANT else found._plus(self.constant * scale)

    def __neg__(self) -> Form:
        return self * -1

    def __sub__(self, other: Any) -> Form:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Form:
        return (-self).__add__(other)

    @cached_property
    def direction(self) -> Form:
        """The form without its constant, over its first factor: the same for all multiples."""
        first = self.terms[0][1]
        if first == 1:
            return self.linear
        origin: Form | None = self.linear.__dict__.get("_origin")
        return self.linear * (1 / first) if origin is None else origin.direction

    def normalized(self) -> tuple[Form, Fraction]:
        """The form without its constant, scaled; and the scale.

        A single atom is itself. The factors of a sum are whole numbers without a common divisor,
        but for a power of two, by which the first is in [1, 2): so no multiple of it has factors
        that a format holds where it holds not these.
        """
        first = self.terms[0][1]
        if len(self.terms) == 1:
            return Form.atom(self.terms[0][0]), first
        common = content(self.distinct_factors)
        scale = common * power_of_two_at_most(abs(first) / common) * (1 if first > 0 else -1)
        return self.linear * (1 / scale), scale


_ATOM = itemgetter(0)

UNIT = Fraction(1)
"""The factor of an atom alone, one object for all."""

ONE = Form.of(1)
"""The constant 1."""


def total(forms: Iterable[Form]) -> Form:
    """The sum of forms."""
    listed = list(forms)
    terms = (term for form in listed for term in form.terms)
    constants = [form.constant for form in listed if form.constant is not NO_CONSTANT]
    return Form.made(terms, sum(constants, NO_CONSTANT))


def content(values: Iterable[Fraction]) -> Fraction:
    """The greatest number that all of these are whole multiples of; 0 of none but 0.

    Example:
        >>> content([Fraction(1, 2), Fraction(3, 4), Fraction(0)])
        Fraction(1, 4)

    """
    # Over the common denominator L all numbers are whole, tₖ/L. The numbers that divide all of them
    # are the multiples of 1/L that divide gcd(tₖ)/L, which is the greatest one.
    given = [value.as_integer_ratio() for value in values]
    bottom = math.lcm(*(each for _, each in given))
    return Fraction(math.gcd(*(top * (bottom // each) for top, each in given)), bottom)
