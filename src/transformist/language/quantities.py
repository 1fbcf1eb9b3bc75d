"""Sequences of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformist.language.across import Mean
from transformist.language.booleans import Booleans
from transformist.language.calls import with_checked_calls
from transformist.language.per_position import PerPosition
from transformist.language.places import refusal
from transformist.language.pointwise import Comparison, Linear, PiecewiseLinear, Product, slopes
from transformist.language.tracing import constant, listed
from transformist.language.types import Exact, Number, quotient

if TYPE_CHECKING:
    from collections.abc import Sequence


@with_checked_calls
class Numbers(PerPosition):
    """A rational number at each position."""

    def _linear(self, other: Any, factor: int, own: int = 1) -> Numbers:
        """± self ± other."""
        if not isinstance(other, PerPosition):
            added = factor * constant(other, Number).value
            if added == 0 and own == 1:
                return self
            return self._make(Linear, (self.node,), (own,), added)  # type: ignore[no-any-return]
        children = (self.node, self._operand(other, Number))
        return self._make(Linear, children, (own, factor), 0)  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> Numbers:
        return self._linear(other, 1)

    def __sub__(self, other: Any) -> Numbers:
        return self._linear(other, -1)

    def __rsub__(self, other: Any) -> Numbers:
        return self._linear(other, 1, -1)

    def __neg__(self) -> Numbers:
        return self._times(-1)

    def __pos__(self) -> Numbers:
        return self

    def _times(self, factor: Exact) -> Numbers:
        return self._make(Linear, (self.node,), (factor,), 0)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> Numbers:
        if isinstance(other, Booleans):
            return other.where(self, 0)  # type: ignore[no-any-return]
        if isinstance(other, PerPosition):
            return self._make(Product, (self.node, self._operand(other, Number)))  # type: ignore[no-any-return]
        return self._times(constant(other, Number).value)

    def __truediv__(self, other: Any) -> Numbers:
        if isinstance(other, PerPosition) or constant(other, Number).value == 0:
            raise refusal(
                "a number must be divided by a constant other than 0",
                received="a sequence" if isinstance(other, PerPosition) else "0",
                remedy="take mean or prefix_mean for a count over n or i; compare x with c * y "
                "for x / y with c",
            )
        return self._times(quotient(1, constant(other, Number).value))

    __radd__, __rmul__ = __add__, __mul__

    def _compared(self, other: Any, relation: str) -> Booleans:
        return self._make(Comparison, ((self - other).node,), relation)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> Booleans:  # type: ignore[override]
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Booleans:  # type: ignore[override]
        return self._compared(other, "!=")

    def __lt__(self, other: Any) -> Booleans:
        return self._compared(other, "<")

    def __le__(self, other: Any) -> Booleans:
        return self._compared(other, "<=")

    def __gt__(self, other: Any) -> Booleans:
        return self._compared(other, ">")

    def __ge__(self, other: Any) -> Booleans:
        return self._compared(other, ">=")

    def _piecewise(
        self, knots: Sequence[Exact], values: Sequence[Exact], ends: tuple[Exact, Exact]
    ) -> Numbers:
        return self._make(PiecewiseLinear, (self.node,), tuple(knots), tuple(values), ends)  # type: ignore[no-any-return]

    def relu(self) -> Numbers:
        """max(x, 0)."""
        return self._piecewise([0], [0], (0, 1))

    def __abs__(self) -> Numbers:
        return self._piecewise([0], [0], (-1, 1))

    def abs(self) -> Numbers:
        """|x|."""
        return abs(self)

    def max(self, other: Any) -> Numbers:
        """The larger of two numbers, x + ReLU(y − x)."""
        return self + self._linear(other, 1, -1).relu()

    def min(self, other: Any) -> Numbers:
        """The smaller of two numbers, x − ReLU(x − y)."""
        return self - self._linear(other, -1).relu()

    def clip(self, lo: Any, hi: Any) -> Numbers:
        """The nearest number from lo to hi.

        Raises:
            InvalidValue: unless lo < hi.

        """
        ends = [constant(each, Number).value for each in (lo, hi)]
        return self._piecewise(ends, ends, (0, 0))

    def cpwl(self, knots: Any, values: Any) -> Numbers:
        """The continuous piecewise linear function through these points, its ends extended.

        Raises:
            InvalidValue: unless the knots increase, are at least two, and have a value each.

        """
        x = tuple(constant(each, Number).value for each in listed(knots))
        y = tuple(constant(each, Number).value for each in listed(values))
        if len(x) < 2 or len(x) != len(y) or list(x) != sorted(set(x)):
            raise refusal(
                "knots must be at least two, increase strictly, and have a value each",
                received=f"{len(x)} knots and {len(y)} values"
                + ("" if list(x) == sorted(set(x)) else ", and the knots do not increase"),
                remedy="sort the knots, keep each once, and give as many values",
            )
        m = slopes(x, y)
        return self._piecewise(x, y, (m[0], m[-1]))

    def mean(self, mask: str = "none") -> Numbers:
        """The mean over the positions that the mask leaves, all n when left out; 0 over none."""
        return self._make(Mean, (self.node,), mask)  # type: ignore[no-any-return]

    def prefix_mean(self) -> Numbers:
        """The mean over positions 1 to i."""
        return self.mean("future")

    def suffix_mean(self) -> Numbers:
        """The mean over positions i to n."""
        return self.mean("past")
