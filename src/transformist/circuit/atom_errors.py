"""Error bounds of the atoms of a circuit in a number format, and sums of such bounds.

An error is bounded as it is; times D, the number of rows a mean is over, for numbers whose scale is
1/D; and, for numbers that are never negative and whose 0 is exactly 0, in relation to them.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from transformist.arithmetic import Floating
from transformist.circuit.circuit import Circuit
from transformist.circuit.forms import Form
from transformist.circuit.readings import Number, Sum
from transformist.laws import Bound, Grid
from transformist.rounding import Order


@dataclass(frozen=True)
class Errors:
    """Error bounds of an atom.

    Attributes:
        absolute: of the number itself.
        scaled: of D times the number.
        relative: relative to the number, if it is at least 0 and its 0 is exact; else infinite.
        silent: the kinds of rows at which it is exactly 0.

    """

    absolute: float
    scaled: float
    relative: float = math.inf
    silent: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Relative:
    """Error bound of a sum, in relation to the magnitudes of its terms.

    Attributes:
        share: the part of Σ |weight · number| + |constants|, whatever the numbers are.
        rest: what is added to that.
        constants: the magnitudes of the constants, together.

    """

    share: float
    rest: float
    constants: float


@dataclass(eq=False, kw_only=True)
class AtomErrors:
    """The errors of the atoms of a circuit in a format, as far as they have been followed.

    Attributes:
        circuit: the atoms.
        a: the format.
        order: in which means and hidden units are added up.
        falling: the steps that are computed from 1 downwards.
        errors: of each atom.
        weights, rounded, exact: weights as the format holds them, by numerator and denominator;
            error bounds of sums, and which sums have no error, each computed once.
        magnitudes, relatives: magnitudes of the factors of a sum and of the sum, and its relative
            error, each computed once.
        magnitudes_of_numbers: largest magnitude of each number that sums read, computed once.
        sums_of_errors: `inherited`, by its kind and the form, each computed once; the errors of an
            atom do not change.
        sizes, heights, heights_of_atoms, unit_grids: `size_of`, `height`, `height_of` and
            `grid_of_units` of atoms, each computed once.
        factors, grids: magnitudes of the factors of a form, by the form without its constant, and
            `grid_everywhere`, each computed once.

    """

    circuit: Circuit
    a: Floating
    order: Order
    falling: Collection[int] = ()
    errors: list[Errors] = field(default_factory=list)
    weights: dict[tuple[int, int], Fraction | None] = field(default_factory=dict)
    rounded: dict[Sum, float] = field(default_factory=dict)
    exact: dict[Sum, bool] = field(default_factory=dict)
    magnitudes: dict[Sum, tuple[list[float], float]] = field(default_factory=dict)
    magnitudes_of_numbers: dict[Number, float] = field(default_factory=dict)
    sums_of_errors: dict[str, dict[Form, float]] = field(default_factory=dict)
    relatives: dict[Sum, Relative] = field(default_factory=dict)
    sizes: list[float] = field(default_factory=list)
    heights: dict[int, Bound] = field(default_factory=dict)
    heights_of_atoms: dict[int, float] = field(default_factory=dict)
    unit_grids: dict[int, Grid | None] = field(default_factory=dict)
    factors: dict[Form, list[float]] = field(default_factory=dict)
    grids: dict[Form, Grid | None] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """The largest D."""
        return self.circuit.most_seen or 1

    @property
    def u(self) -> float:
        """The unit roundoff of the format."""
        return float(self.a.unit_roundoff)

    @property
    def w(self) -> float:
        """The unit roundoff of the accumulator."""
        return float(self.a.accumulator_roundoff)

    @property
    def is_wide(self) -> bool:
        """True if the accumulator holds every product of two numbers of the format."""
        # A product of two significands of p bits has 2p. An accumulator of P bits holds it if 2p ≤
        # P, that is u² = 2^−2p ≥ 2^−P = w.
        return self.u**2 >= self.w

    def held(self, weight: Fraction) -> Fraction | None:
        """A weight as the format holds it; `None` where it is too large."""
        # Hashing a `Fraction` computes a power modulo a prime; a pair of integers is hashed faster.
        key = weight.as_integer_ratio()
        if key not in self.weights:
            fits = abs(weight) <= Fraction(self.a.largest)
            nearest = float(self.a.numbers(self.a.array([weight]))[0]) if fits else None
            self.weights[key] = None if nearest is None else Fraction(nearest)
        return self.weights[key]

    def grid_everywhere(self, form: Form) -> Grid | None:
        """Grid of a form at symbols, at BOS where it is known, and where BOS stands alone."""
        if form not in self.grids:
            self.grids[form] = self._grid_everywhere(form)
        return self.grids[form]

    def _grid_everywhere(self, form: Form) -> Grid | None:
        grid = self.circuit.grid(form)
        if grid is None or not self.circuit.bos:
            return grid
        # At BOS nothing else may be seen: what a head fetches there is its value over no positions.
        alone = Grid.of([self.circuit.over_nothing(form)])
        at_bos = self.circuit.grid_at_bos(form)
        return None if at_bos is None else grid | alone | at_bos

    def inherited(self, form: Form, which: str = "absolute") -> float:
        """Sum of the errors of the atoms, at the kind of row where it is largest."""
        known = self.sums_of_errors.setdefault(which, {})
        linear = form.linear
        found = known.get(linear)
        if found is None:
            found = known[linear] = self._inherited(linear, which)
        return found

    def _inherited(self, form: Form, which: str) -> float:
        errors = self.errors
        # An atom that is exactly 0 at a kind of row adds no error there. So errors add up for each
        # kind, and only the largest of these sums counts: of many flags, one is 1 at a row.
        parts = []
        for atom, share in zip(form.atoms, self.factors_of(form), strict=True):
            error = getattr(errors[atom], which)
            if error:
                parts.append((share * error, errors[atom].silent))
        everywhere: float = sum(error for error, silent in parts if not silent)
        if not any(silent for _, silent in parts):
            return everywhere
        kinds = range(len(self.circuit.alphabet) + self.circuit.bos)
        return everywhere + max(
            math.fsum(error for error, silent in parts if silent and kind not in silent)
            for kind in kinds
        )

    def size_of(self, number: int) -> float:
        """Largest magnitude of an atom, in float64."""
        return self.sizes_of_atoms[number]

    @property
    def sizes_of_atoms(self) -> list[float]:
        """Largest magnitude of each atom, in float64."""
        known = self.sizes
        known += [magnitude(law.size) for law in self.circuit.laws[len(known) :]]
        return known

    def factors_of(self, form: Form) -> list[float]:
        """Magnitude of each factor, in float64."""
        linear = form.linear
        found = self.factors.get(linear)
        if found is None:
            # Most forms have few factors, which are the same objects.
            each = {id(factor): factor for _, factor in linear.terms}
            sizes = {key: magnitude(factor) for key, factor in each.items()}
            found = self.factors[linear] = [sizes[id(factor)] for _, factor in linear.terms]
        return found

    def height(self, number: int) -> Bound:
        """Bound of each hidden unit of a step, beyond what the two come to."""
        if number not in self.heights:
            is_falling = number in self.falling
            self.heights[number] = self.circuit.atoms[number].height(self.circuit, is_falling)
        return self.heights[number]

    def height_of(self, number: int) -> float:
        """Magnitude of `height`, in float64."""
        if number not in self.heights_of_atoms:
            self.heights_of_atoms[number] = magnitude(self.height(number))
        return self.heights_of_atoms[number]

    def grid_of_units(self, number: int) -> Grid | None:
        """Grid of the hidden units of an atom, as `grid_everywhere`."""
        if number not in self.unit_grids:
            upper = self.circuit.atoms[number].hidden_units[-1][0]
            self.unit_grids[number] = self.grid_everywhere(upper)
        return self.unit_grids[number]


def magnitude(value: Any) -> float:
    """|x| in float64; infinite where that is too large for it."""
    try:
        if isinstance(value, Fraction):  # the same as float(value), and faster
            top, bottom = value.as_integer_ratio()
            return abs(top / bottom)
        return abs(float(value))
    except OverflowError:
        return math.inf


def significant_bits(value: Fraction) -> float:
    """Number of bits of a number's significand; infinite where it has no end.

    Example:
        >>> significant_bits(Fraction(5, 8)), significant_bits(Fraction(1, 3))
        (3, inf)

    """
    if value.denominator & (value.denominator - 1):
        return math.inf
    odd = abs(value.numerator)
    return (odd // (odd & -odd)).bit_length() if odd else 0


def product_bound(factor: Fraction, size: float) -> float:
    """|factor| · size in float64, 0 if either is 0, even beside an infinite one."""
    return magnitude(factor) * size if size and factor else 0.0
