"""Functions of a whole number without listed values: a count, a position, or a sum or product.

No constant bounds such a number for every length n; `Ends` bounds it by functions of i and n. While
a program is traced, a user's function is called on each value that the number can have on inputs of
up to `max_length` symbols, and the node keeps the results.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from transformist.arithmetic import is_whole
from transformist.errors import UndefinedValue
from transformist.language.node import NO_VALUE, Column, Node
from transformist.language.places import refusal
from transformist.language.pointwise import LARGEST_TABLE
from transformist.language.tables import values_at
from transformist.language.types import MOST_VALUES, Ends, Number, Polynomial, Type, number_of

LONGEST = 1024
"""Default of `max_length` in `map`: the usual N of a model."""


@dataclass(frozen=True, eq=False, repr=False)
class WholeMap(Node):
    """f(x) for a whole number x, from the list of its values.

    Attributes:
        points: the whole numbers at which f is defined, in increasing order.
        values: the value of f at each point.
        result: the type of the values.

    """

    points: tuple[int, ...]
    values: tuple[Any, ...]
    result: Type

    @cached_property
    def type(self) -> Type:
        require_whole(self.children[0])
        return self.result

    @cached_property
    def known(self) -> Mapping[int, Any]:
        """The value at each point."""
        return dict(zip(self.points, self.values, strict=True))

    def at(self, x: int) -> Any:
        """The value at a whole number.

        Raises:
            UndefinedValue: where f is not defined.

        """
        if x not in self.known:
            raise UndefinedValue(
                "a function of a number must have a value at each value of the number",
                received=f"none at {x}, but values at {self.points[0]} to {self.points[-1]}",
                remedy="give map(f, max_length=…) the length of the longest input, or the mapping "
                "this key; or map what is not beyond the keys, such as k.min(2)",
            )
        return self.known[x]

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return list(map(self.at, columns[0]))

    def over_nothing(self, *values: Any) -> Any:
        return self.known.get(values[0], NO_VALUE)

    def __repr__(self) -> str:
        first, last = self.points[0], self.points[-1]
        return f"WholeMap({len(self.points)} values, {first} to {last}, {self.result.noun})"


@dataclass(frozen=True, eq=False, repr=False)
class Division(Node):
    """x // c or x % c for a whole number x and a constant c, as in Python.

    Attributes:
        sign: `//` or `%`.
        divisor: c, a whole number other than 0.

    """

    sign: str
    divisor: int

    @cached_property
    def type(self) -> Type:
        whole, c = require_whole(self.children[0]), self.divisor
        if self.sign == "//":
            # For c > 0, x/c − (c − 1)/c ≤ x // c ≤ x/c. For c < 0, x // c is −x // −c, so the same
            # holds with |c| in (c − 1)/c.
            exact = whole.times(Fraction(1, c))
            lost = Ends(Polynomial(0, 0, Fraction(1 - abs(c), abs(c))), Polynomial(0, 0, 0))
            return Number(None, exact + lost)
        # Remainders are from 0 to c − 1, or from c + 1 to 0 for c < 0.
        rests = range(min(0, c + 1), max(1, c))
        if abs(c) <= MOST_VALUES:
            return number_of(rests)
        return Number(None, Ends.of((rests[0], rests[-1])))

    def at(self, x: int) -> int:
        """The value at a whole number."""
        return DIVISIONS[self.sign](x, self.divisor)

    def meaning(self, x: Column, *columns: Column) -> list[Any]:
        return list(map(self.at, columns[0]))


DIVISIONS: Mapping[str, Callable[[int, int], int]] = {"//": operator.floordiv, "%": operator.mod}
"""The divisions of Python."""


def require_whole(node: Node) -> Ends:
    """The ends of a whole number; a number that need not be whole, or has no ends, is refused."""
    whole = node.type.whole if isinstance(node.type, Number) else None
    if whole is None:
        raise refusal(
            "a function of a number needs listed values, or a whole number with a known bound",
            received="a mean, a power of i, or another number that need not be whole or has no "
            "known bound",
            remedy="take a count, i, n, or sums and products of these; of other numbers use "
            "comparisons, or cpwl(knots, values)",
        )
    return whole


def mapped(node: Node, values: Any, categories: bool, max_length: Any) -> WholeMap:
    """Make the function of a whole number from a user's function or mapping.

    Args:
        node: the number.
        values: a function, which is called on each value that the number can have on inputs of up
            to `max_length` symbols; or a mapping, defined at its keys alone.
        categories: True if numbers stand for categories.
        max_length: a length, at least 1.

    Raises:
        InvalidValue: for a number that is not whole, a function that raises, values of different
            types, or a mapping of which no key is a value of the number.

    """
    whole = require_whole(node)
    if not is_whole(max_length, 1):
        raise refusal(
            "max_length must be a whole number of at least 1",
            received=f"{max_length!r:.40}",
            remedy="give the length of the longest input",
        )
    if not (callable(values) or isinstance(values, Mapping)):
        raise refusal(
            "a whole number must be mapped by a function or a mapping",
            received=f"{values!r:.40}",
            remedy="write k.map(lambda v: v % 3)",
        )
    domain = whole.up_to(int(max_length))
    count = domain.stop - domain.start  # len() takes no range of more than 2⁶³ numbers
    if count > LARGEST_TABLE:
        raise refusal(
            f"a function of a number must be called on at most {LARGEST_TABLE:,} values",
            received=f"{count:,} values for max_length = {max_length}",
            remedy="write map(f, max_length=…) with a smaller length",
        )
    points = [point for point in domain if not isinstance(values, Mapping) or point in values]
    if not points:
        raise refusal(
            f"a mapping must have a key that the number can be, such as {domain[0]}",
            received=f"the keys {', '.join(map(repr, list(values)[:8])) or 'none'}",
            remedy="give whole numbers as keys",
        )
    rows, result = values_at([(point,) for point in points], values, categories)
    return WholeMap((node,), tuple(points), rows, result)
