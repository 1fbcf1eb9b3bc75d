"""Positions from the share of BOS in a mean, for hosts without position functions.

Under mask future the row at position i sees i + 1 rows, one of which is BOS (i = 0). So the share
of BOS in their mean is s = 1/(i + 1). Then

    i = Σ_{j=1}^{N} ReLU(2 − 2 j s),

since the units with j ≤ i are 2 − 2j/(i + 1), the others 0, and Σ_{j ≤ i} (2 − 2j/(i + 1)) =
2i − i. No unit is above 2 and none is subtracted, so the error of the sum is about N² u. It is
rounded away (`Rounded`), and other functions of i are sums of ReLU(i − j) (`FunctionOfPlace`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from transformist.circuit.atom_errors import Errors, magnitude
from transformist.circuit.circuit import Circuit, Law, Tolerance
from transformist.circuit.forms import Form
from transformist.circuit.margins import Margins, RoundedAtom
from transformist.laws import Grid, Range


@dataclass(frozen=True)
class RowNumber(RoundedAtom):
    """The position i, 0 at BOS, with the error of the share it is computed from.

    Attributes:
        share: 1/(i + 1).
        longest: N.

    """

    share: Form
    longest: int

    is_kept_alone = True

    @property
    def reads(self) -> tuple[Form, ...]:
        return (self.share,)

    @cached_property
    def hidden_units(self) -> tuple[tuple[Form, Fraction], ...]:
        return tuple((2 - self.share * (2 * j), Fraction(1)) for j in range(1, self.longest + 1))

    def law(self, circuit: Circuit) -> Law:
        # The law is of the exact share, 1/(i + 1) at the symbol at i and 1 at BOS: the error is in
        # `errors`.
        places = Range(Fraction(1), Fraction(self.longest))
        return Law((*[places] * len(circuit.alphabet), Range.of(0)), Grid(1))

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return Fraction(0)

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        return Grid(1)

    def errors(self, margins: Margins, number: int) -> Errors:
        """Error bound: 2 (2v + γ) for each of N units, and the rounding of their sum.

        The share is off by at most e/(i + 1), with e the error of D times the share. A unit that is
        not 0 has 2 j s ≤ 2: the share moves it by 2e, the product and the sum round it by 2v and
        2v, v = u + w. (Elsewhere 2 − 2 j s is below 0 by as much as its error grows.) The N units
        add up to i ≤ N: w for each of N sums and products, and u where the sum is stored.
        """
        n, u, w = self.longest, margins.u, margins.w
        # With v = u + w, a unit rounds by 2 j s v as a product and by (2 − 2 j s) v as a sum: 2v of
        # the 4v to first order. The other 2v leave room for products of errors, as e is far below
        # 1.
        of_units = n * (2 * margins.scaled_error(self.share) + 4 * (u + w))
        error = (of_units + n * (2 * n * w + u) + n * margins.a.smallest) * (1 + 2.0**-10)
        return Errors(error, error * margins.most)

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"position by {text_of(self.share)}"


@dataclass(frozen=True)
class Rounded(RoundedAtom):
    """A whole number, rounded by adding and subtracting a constant.

    From 2^(p−1) to 2^p a format of p bits holds whole numbers alone. Let x ≥ 0 be whole, computed
    as x + e, and let M be a whole number in this range. If |e| is below 3/8 − N/2ᵖ, the number
    x + e + M is stored as x + M: with M = 5/8 · 2ᵖ the bound u (M + N) of the rounding is
    5/8 + N/2ᵖ, so the result differs from x + M by less than 1, and both are whole.

    Attributes:
        form: x.
        constant: M.

    """

    form: Form
    constant: int

    absorbs_errors = True
    is_kept_alone = True

    @staticmethod
    def constant_for(precision: int) -> int:
        """M for p bits: 5/8 · 2ᵖ, clear of 2^(p−1) by more than any rounding of a bound."""
        return 5 << (precision - 3)

    @property
    def reads(self) -> tuple[Form, ...]:
        return (self.form,)

    @cached_property
    def hidden_units(self) -> tuple[tuple[Form, Fraction], ...]:
        return ((self.form + self.constant, Fraction(1)), (Form.of(self.constant), Fraction(-1)))

    def law(self, circuit: Circuit) -> Law:
        return Law(circuit.rows(self.form), circuit.grid(self.form))

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return circuit.over_nothing(self.form)

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        return circuit.grid_at_bos(self.form)

    def errors(self, margins: Margins, number: int) -> Errors:
        """No error, if the error of the form and the rounding of form + M add up to less than 1."""
        # The stored sum is the whole number nearest to x + e + M, which is x + M if |e| and the
        # bound of the rounding together are below 1: then the stored number, which is whole,
        # differs from x + M by less than 1. Subtracting M is exact, as both are whole numbers below
        # 2ᵖ.
        size = margins.u * (self.constant + magnitude(margins.circuit.size(self.form)) + 1)
        error = margins.inherited(self.form)
        margins.require(number, "the error of a position from the share of BOS", error, 1 - size)
        return Errors(0.0, 0.0)

    def tolerances(self, allowed: Fraction | None) -> list[Tolerance]:
        return [Tolerance(self.form, Fraction(1, 4))]

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"{text_of(self.form)}, rounded"


@dataclass(frozen=True)
class FunctionOfPlace(RoundedAtom):
    """A function f of the position with whole values, by its values at 0 to N.

    f(i) = f(0) + (f(1) − f(0)) i + Σ_{j=1}^{N−1} (f(j+1) − 2 f(j) + f(j−1)) ReLU(i − j): both sides
    agree at 0 and 1 and have the same second differences.

    Attributes:
        place: i, exact, and 0 at BOS.
        values: f(0), …, f(N).

    """

    place: Form
    values: tuple[int, ...]

    is_kept_alone = True

    @property
    def reads(self) -> tuple[Form, ...]:
        return (self.place,)

    @cached_property
    def hidden_units(self) -> tuple[tuple[Form, Fraction], ...]:
        f = self.values
        found = [(Form.of(1), f[0]), (self.place, f[1] - f[0])]
        found += [(self.place - j, f[j + 1] - 2 * f[j] + f[j - 1]) for j in range(1, len(f) - 1)]
        return tuple((form, Fraction(factor)) for form, factor in found if factor)

    def law(self, circuit: Circuit) -> Law:
        values = Range(Fraction(min(self.values[1:])), Fraction(max(self.values[1:])))
        return Law((*[values] * len(circuit.alphabet), Range.of(self.values[0])), Grid(1))

    def over_nothing(self, circuit: Circuit) -> Fraction:
        return Fraction(self.values[0])

    def grid_at_bos(self, circuit: Circuit, number: int) -> Grid | None:
        return Grid(1)

    def errors(self, margins: Margins, number: int) -> Errors:
        """No error, if the format holds every whole number up to the sum of all magnitudes.

        All units are whole, so all partial sums are whole numbers that the format holds.
        """
        n = len(self.values) - 1
        # Each unit is at most N more than its constant.
        terms = sum(abs(factor) * (form.constant + n) for form, factor in self.hidden_units)
        most = 2.0**margins.a.precision
        margins.require(number, "the size of a sum of positions", magnitude(terms), most)
        error = 0.0 if not margins.inherited(self.place) and terms < most else math.inf
        return Errors(error, error)

    def words(self, text_of: Callable[[Form], str]) -> str:
        return f"function of {text_of(self.place)}"
