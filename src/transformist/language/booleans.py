"""Sequences of Booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformist.language.across import Count, Exists
from transformist.language.calls import with_checked_calls
from transformist.language.outputs import Accept
from transformist.language.per_position import PerPosition
from transformist.language.places import refusal
from transformist.language.pointwise import Table, Where
from transformist.language.tracing import described, kind_of
from transformist.language.types import Boolean, Number

if TYPE_CHECKING:
    from transformist.language.quantities import Numbers


@with_checked_calls
class Booleans(PerPosition):
    """False or true at each position."""

    def _combined(self, other: Any, bits: str) -> Booleans:
        rows = tuple(bit == "1" for bit in bits)
        nodes = (self.node, self._operand(other, Boolean))
        return self._make(Table, nodes, rows, Boolean())  # type: ignore[no-any-return]

    def __and__(self, other: Any) -> Booleans:
        return self._combined(other, "0001")

    def __or__(self, other: Any) -> Booleans:
        return self._combined(other, "0111")

    def __xor__(self, other: Any) -> Booleans:
        return self._combined(other, "0110")

    def __eq__(self, other: object) -> Booleans:  # type: ignore[override]
        return self._combined(other, "1001")

    def __ne__(self, other: object) -> Booleans:  # type: ignore[override]
        return self._combined(other, "0110")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Booleans:
        return self._make(Table, (self.node,), (True, False), Boolean())  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> Numbers:
        """The number where this holds, 0 elsewhere."""
        return self.where(self.tracing.sequence(self._operand(other, Number)), 0)  # type: ignore[no-any-return]

    __rmul__ = __mul__

    def where(self, x: Any, y: Any) -> Any:
        """x where this holds, y elsewhere; both numbers, both Booleans, or both categories.

        Raises:
            InvalidValue: where they are of different types.

        """
        sequences = [each for each in (x, y) if isinstance(each, PerPosition)]
        kind = kind_of((*sequences, x)[0])
        nodes = (self.node, self._operand(x, kind), self._operand(y, kind))
        if kind is Boolean:
            rows = (False, True, False, True, False, False, True, True)
            return self._make(Table, nodes, rows, Boolean())
        return self._make(Where, nodes)

    def mean(self, mask: str = "none") -> Numbers:
        """The fraction of the positions that the mask leaves at which it holds; 0 over none."""
        return self.where(1, 0).mean(mask)  # type: ignore[no-any-return]

    def prefix_mean(self) -> Numbers:
        """The fraction of positions 1 to i."""
        return self.mean("future")

    def suffix_mean(self) -> Numbers:
        """The fraction of positions i to n."""
        return self.mean("past")

    def count(self, mask: str = "none") -> Numbers:
        """At how many of the positions that the mask leaves it holds, all n when left out."""
        return self._make(Count, (self.node,), mask)  # type: ignore[no-any-return]

    def any(self, mask: str = "none") -> Booleans:
        """Whether it holds at one of the positions that the mask leaves; false over none."""
        return self._make(Exists, (self.node,), mask)  # type: ignore[no-any-return]

    def all(self, mask: str = "none") -> Booleans:
        """Whether it holds at all the positions that the mask leaves; true over none."""
        return ~(~self).any(mask)

    def any_so_far(self) -> Booleans:
        """Whether it holds at one of positions 1 to i."""
        return self.any("future")

    def all_so_far(self) -> Booleans:
        """Whether it holds at all of positions 1 to i."""
        return self.all("future")

    def accept(self, *, empty: bool | None = None) -> Accept:
        """The output that is the value at the last position.

        Args:
            empty: the answer on the empty input; when left out, the value over no positions,
                where a mean and a count are 0, any is false, all is true, what is looked up or
                selected is its default, and n is 0.

        Raises:
            InvalidValue: where it is left out and there is none, as of a token.

        """
        if empty is not None and not isinstance(empty, bool):
            raise refusal(
                "empty must be True or False",
                received=described(empty),
                remedy="say whether the empty input is accepted",
            )
        answer = self.tracing.over_nothing(self.node) if empty is None else empty
        if answer is None:
            raise refusal(
                "a program that accepts has an answer on the empty input",
                received=f"{described(self)} with no value over no positions, as of a token",
                remedy="write accept(empty=True) or accept(empty=False)",
            )
        output = Accept(self.node, answer)
        self.tracing.output(output)
        return output
