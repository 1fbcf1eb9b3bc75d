"""Subexpressions computed at each position from the values there."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from transformist.language.node import Column, Node
from transformist.language.places import refusal
from transformist.language.types import (
    MOST_VALUES,
    Boolean,
    Category,
    Ends,
    Exact,
    Number,
    Polynomial,
    Type,
    exact,
    image,
    union,
)

LARGEST_TABLE = 2**16
"""The largest number of rows of a table."""

RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The comparisons of a number with 0."""


def require_kinds(name: str, children: tuple[Node, ...], *kinds: Any) -> None:
    """Refuse children of other types than these."""
    for child, kind in zip(children, kinds, strict=True):
        if not isinstance(child.type, kind):
            raise refusal(
                f"{name} needs {kind.noun} here",
                received=child.type.noun,
                remedy="compare a number, or map a category, to make a Boolean; "
                "b.where(1, 0) makes a number of one",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Table(Node):
    """f(a, b, …) by the list of its values; a, b, … are Booleans, categories or listed numbers.

    `rows` has them in the order of the product of the values of a, b, …, the last the fastest;
    with Booleans that is f(0, …, 0, 0), f(0, …, 0, 1), …
    """

    rows: tuple[Any, ...]
    result: Type

    @cached_property
    def type(self) -> Type:
        require_known_values(self.children)
        count = rows_of(*(child.type for child in self.children))
        if len(self.rows) != count:
            raise refusal(
                f"this table must have {count} values, one for each combination",
                received=f"{len(self.rows)}",
                remedy=f"give {count}",
            )
        return self.result

    @cached_property
    def function(self) -> Mapping[Any, Any]:
        """The value for each argument, for tuples of them where there are more."""
        values = [child.type.values or () for child in self.children]
        keys = values[0] if len(values) == 1 else itertools.product(*values)
        return dict(zip(keys, self.rows, strict=True))

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        arguments = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
        return [self.function[each] for each in arguments]


def require_known_values(arguments: tuple[Node, ...]) -> None:
    """Refuse arguments of a table that are numbers without listed values."""
    for each in arguments:
        if each.type.values is None:
            raise refusal(
                "the arguments of a table must be Booleans, categories, or numbers of at most "
                f"{MOST_VALUES} known values",
                received="a mean, count or position, or a number of more values",
                remedy="write k.map(f) first, for a whole number k; compare the number, or use "
                "cpwl(knots, values)",
            )


def rows_of(*types: Type) -> int:
    """The number of rows of a table whose arguments have these types.

    Raises:
        InvalidValue: for more than `LARGEST_TABLE`.

    """
    count = 1
    for each in types:
        count *= len(each.values or ())
    if count > LARGEST_TABLE:
        raise refusal(
            f"a table must have at most {LARGEST_TABLE:,} rows",
            received=f"{count:,}",
            remedy="take the arguments in two steps, with a smaller table for each",
        )
    return count


@dataclass(frozen=True, eq=False, repr=False)
class Linear(Node):
    """a x + b y + … + c."""

    factors: tuple[Exact, ...]
    constant: Exact

    @cached_property
    def type(self) -> Type:
        require_kinds("a sum", self.children, *[Number] * len(self.factors))
        found = image(self._at, *(child.type for child in self.children))
        return found if found.values is not None else Number(None, self._ends)

    @cached_property
    def _ends(self) -> Ends | None:
        """The ends of a sum of whole multiples of whole numbers."""
        total = Ends.of([self.constant])
        wholes: list[Ends] = []
        for factor, child in zip(self.factors, self.children, strict=True):
            whole = child.type.whole if isinstance(child.type, Number) else None
            if total is None or whole is None or type(factor) is not int:
                return None
            wholes.append(whole)
            total += whole.times(factor)
        return self._extreme(wholes[0]) or total if wholes else total

    def _extreme(self, own: Ends) -> Ends | None:
        """The ends of x.min(y) = x − ReLU(x − y) or x.max(y) = x + ReLU(y − x), from those of x."""
        # Both summands depend on x, so the sum of their ends is too wide. min(x, y) is at most the
        # upper end of x and that of y, and at least the smaller lower end; max(x, y) likewise.
        if len(self.children) != 2 or self.constant or self.factors not in ((1, -1), (1, 1)):
            return None
        (x, part), (_, sign) = self.children, self.factors
        if not (isinstance(part, PiecewiseLinear) and part.is_relu):
            return None
        other = _other_of_difference(x, part.children[0], -sign)
        if other is None:
            return None
        either = own.hull(other)
        if sign < 0:
            return Ends(either.lo, min(own.hi, other.hi, key=_growth))
        return Ends(max(own.lo, other.lo, key=_growth), either.hi)

    def _at(self, *values: Exact) -> Exact:
        total = self.constant
        for factor, value in zip(self.factors, values, strict=True):
            total += factor * value
        return total if type(total) is int else exact(total)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return list(map(self._at, *columns))


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseLinear(Node):
    """The continuous function of x with these values at the knots, straight between them.

    Beyond the knots it goes on with the slopes of `ends`, left and right.
    """

    knots: tuple[Exact, ...]
    values: tuple[Exact, ...]
    ends: tuple[Exact, Exact]

    @cached_property
    def type(self) -> Type:
        require_kinds("a function of a number", self.children, Number)
        if list(self.knots) != sorted(set(self.knots)) or len(self.knots) != len(self.values):
            raise refusal(
                "knots must increase strictly, and each must have a value",
                received=f"knots {_listed(self.knots)} and values {_listed(self.values)}",
                remedy="sort the knots, keep each once, and give as many values",
            )
        found = image(self._at, self.children[0].type)
        return found if found.values is not None else Number(None, self._ends)

    @property
    def is_relu(self) -> bool:
        """True for max(x, 0)."""
        return (self.knots, self.values, self.ends) == ((0,), (0,), (0, 1))

    @cached_property
    def _ends(self) -> Ends | None:
        """The ends of a function with whole knots, values and slopes, of a whole number."""
        whole = self.children[0].type.whole  # type: ignore[union-attr]
        given = (*self.knots, *self.values, *self.ends, *self._slopes)
        if whole is None or not all(type(each) is int for each in given):
            return None
        # Between knots, the function lies between its values at the knots. Beyond the first or last
        # knot it is linear, so it lies between the value at the knot and that at the end of x.
        found = Ends.of(self.values)
        for side, end in ((0, whole.lo), (-1, whole.hi)):
            slope, knot, value = self.ends[side], self.knots[side], self.values[side]
            ray = (Ends(end, end) + Ends.at(-knot)).times(slope) + Ends.at(value)
            found = found.hull(ray)  # type: ignore[union-attr]
        return found

    def _at(self, x: Exact) -> Exact:
        k = bisect_left(self.knots, x)
        if k == 0:
            y = self.values[0] + self.ends[0] * (x - self.knots[0])
        elif k == len(self.knots):
            y = self.values[-1] + self.ends[1] * (x - self.knots[-1])
        else:
            y = self.values[k - 1] + self._slopes[k - 1] * (x - self.knots[k - 1])
        return exact(y)

    @cached_property
    def _slopes(self) -> tuple[Exact, ...]:
        return slopes(self.knots, self.values)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return [self._at(value) for value in columns[0]]


def _growth(line: Polynomial) -> tuple[Exact, ...]:
    """Key to order bounds: growth with powers of n, with i = n, with n alone, the constant."""
    powers = line.powers
    # The highest power decides, if its factor is above 0 or below 0.
    highest = len(powers) * (1 if powers[-1] > 0 else -1) if powers else 0
    return highest, *powers[::-1], line.i + line.n, line.n, line.constant


def _other_of_difference(x: Node, difference: Node, sign: int) -> Ends | None:
    """The ends of y, if a node is sign · (x − y) in the form of `_linear`; else `None`."""
    if not isinstance(difference, Linear) or not difference.children:
        return None
    first, *others = difference.children
    if first != x or difference.factors != (sign, -sign)[: len(difference.children)]:
        return None
    if others:
        return None if difference.constant else others[0].type.whole  # type: ignore[union-attr]
    return Ends.of([-sign * difference.constant])


def slopes(knots: tuple[Exact, ...], values: tuple[Exact, ...]) -> tuple[Exact, ...]:
    """The slope of each piece between neighbouring knots."""
    rises = [after - before for before, after in itertools.pairwise(values)]
    runs = [after - before for before, after in itertools.pairwise(knots)]
    return tuple(exact(Fraction(rise) / run) for rise, run in zip(rises, runs, strict=True))


def _listed(values: tuple[Exact, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


@dataclass(frozen=True, eq=False, repr=False)
class Multiplication(Node):
    """x y for two numbers."""

    @cached_property
    def type(self) -> Type:
        require_kinds("a product", self.children, Number, Number)
        if all(child.type.values is not None for child in self.children):
            return image(operator.mul, *(child.type for child in self.children))
        return Number(None, self._ends)

    @cached_property
    def _ends(self) -> Ends | None:
        """The ends of a product of whole numbers."""
        x, y = (child.type.whole for child in self.children)  # type: ignore[union-attr]
        if x is None or y is None:
            return None
        found = x.product(y)
        is_square = self.children[0] == self.children[1]  # and so not negative
        return Ends(Polynomial(0, 0, 0), found.hi) if is_square else found

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return list(map(exact, map(operator.mul, *columns)))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Node):
    """True where x stands in a relation to 0."""

    relation: str

    @cached_property
    def type(self) -> Type:
        require_kinds("a comparison", self.children, Number)
        return Boolean()

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        compare = RELATIONS[self.relation]
        return [compare(value, 0) for value in columns[0]]


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Node):
    """x where b holds, y elsewhere; x and y both numbers or both categories."""

    @cached_property
    def type(self) -> Type:
        _, x, y = self.children
        kind = Category if isinstance(x.type, Category) else Number
        require_kinds("where", self.children, Boolean, kind, kind)
        return union(x.type, y.type)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return [a if b else c for b, a, c in zip(*columns, strict=True)]
