"""The values that a program's function computes with: wrappers around nodes, a class for each type.

`PerPosition` has the operations of every type; `Booleans`, `Numbers` and `Categories` have those of
their type; `Matches` stands between `select` and the choice among the matches. Operators and
methods make new nodes, and compute nothing. An operation that a type does not have is refused with
the line of the user's file and with what to write instead. The classes make values of each other,
which is why they share a module.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, TypeVar

from transformist.errors import UnknownName
from transformist.language.across import Count, Exists, Lookup, Mean, Shift
from transformist.language.calls import with_checked_calls
from transformist.language.leaves import Constant, Position
from transformist.language.node import NO_VALUE, Node
from transformist.language.operators import (
    CONVERSIONS,
    EQUALITY,
    OPERATORS,
    WithoutText,
    refusing_operators,
)
from transformist.language.output_kinds import Accept, NextToken, Tag
from transformist.language.places import here, refusal, refused_truth
from transformist.language.pointwise import (
    Choice,
    Comparison,
    Linear,
    Multiplication,
    PiecewiseLinear,
    Table,
    rows_of,
    slopes,
)
from transformist.language.remainders import remainder
from transformist.language.selection import Select, SelectByRelation
from transformist.language.tables import tabulated
from transformist.language.tracing import Tracing, constant, described, kind_of, listed
from transformist.language.types import Boolean, Category, Exact, Number, Type, quotient
from transformist.language.whole_maps import DIVISIONS, LONGEST, Division, WholeMap, mapped
from transformist.model import EOS


class _LeftOut(Enum):
    """A default that is not given; the default `None` is the value None of a category."""

    LEFT_OUT = "…"

    def __repr__(self) -> str:
        return "…"


LEFT_OUT = _LeftOut.LEFT_OUT

Own = TypeVar("Own", bound="PerPosition")


_INSTEAD = {
    "len": 'write x.position("n") for the length',
    "a loop over its positions": "write an operation across positions, such as prefix_mean, any, "
    "all_so_far or predecessor",
    "an index": "write x.lookup(i, default=…) for the value at position i, from 1",
    "in": 'write (x == "a").any()',
    "float": "it is exact as it is: leave float out; write v.map(f) for a function f of its values",
    "int": "it is exact as it is: leave int out",
    "use as an index or in a range": "write v.map(f) with a function f of each value that it can "
    "have",
    "rounding": "compare it with constants",
}
"""The operation to write for each of `CONVERSIONS`."""

_DEFINED = {
    Number: "a number has + - * // % and comparisons; comparisons beside & and | go in parentheses",
    Boolean: "a Boolean has & | ^ ~ == != and * with a number; b.where(1, 0) makes a number of it",
    Category: "a category has == and !=; x.map({…}) makes a number of it",
}
"""The operators of each type."""

_MAKE = {
    Number: "x.map({…}) or b.where(1, 0) makes a number",
    Boolean: "a comparison makes a Boolean",
    Category: 'b.where("yes", "no") makes a category',
}
"""The way to a value of each type."""


def _refuse_operator(self: PerPosition, sign: str, *others: object) -> NoReturn:
    if sign in CONVERSIONS:
        raise refusal(
            f"a sequence stands for every input, and {sign} is not defined on it",
            received=described(self),
            remedy=_INSTEAD[sign],
        )
    beside = f" with {described(others[0])}" if others else ""
    raise refusal(
        f"{sign} is not defined on {self.node.type.noun}",
        received=f"{described(self)}{beside}",
        remedy=_DEFINED[type(self.node.type)],
    )


@refusing_operators(_refuse_operator, OPERATORS, CONVERSIONS)
@with_checked_calls
class PerPosition(WithoutText):
    """Value at each position of the input.

    Attributes:
        node: the subexpression.
        tracing: the record of the program that it is part of.

    """

    # Without __array_ufunc__ = None, an array of numpy on the left would apply its operator to each
    # of its entries.
    __array_ufunc__ = None

    def __init__(self, node: Node, tracing: Tracing) -> None:
        self.node = node
        self.tracing = tracing

    def __repr__(self) -> str:
        return f"<{self.node.type.noun} at each position>"

    def __getattr__(self, name: str) -> Any:
        """Refuse an operation that sequences of this type do not have."""
        if name.startswith("_") or name in ("node", "tracing"):
            raise AttributeError(name)
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        noun, place = self.node.type.noun, str(here())
        for kind, wrapper in self.tracing.wrappers.items():
            if hasattr(wrapper, name):
                raise UnknownName(
                    f"no operation on {noun} has this name",
                    received=repr(name),
                    where=place,
                    remedy=f"it is one on {kind.noun}: {_MAKE[kind]}",
                )
        raise UnknownName.among(f"operation on {noun}", name, known, place)

    def _make(self, kind: type[Node], children: tuple[Node, ...], *attributes: Any) -> Any:
        kept = tuple(map(self.tracing.node, children))
        return self.tracing.sequence(kind(kept, *attributes))

    def _operand(self, other: Any, kind: type[Type]) -> Node:
        """The node of a sequence of this program, or of a constant.

        Raises:
            InvalidValue: for a sequence of another program, or a value of another type.

        """
        if not isinstance(other, PerPosition):
            return constant(other, kind)
        # Its nodes would be known to the other program alone, and so would its alphabet.
        if other.tracing is not self.tracing:
            raise refusal(
                "an operation must be between sequences of one program",
                received=f"{described(other)}, of another",
                remedy="compute both from the arguments of one function",
            )
        if not isinstance(other.node.type, kind):
            return constant(other, kind)
        return other.node

    def _default(self, default: Any, node: Node | None = None) -> Any:
        """The value of a default. Left out or None, it is 0 or False; a category must have one."""
        kind = type((node or self.node).type)
        if default is LEFT_OUT or (default is None and kind is not Category):
            if kind is Category:
                raise refusal(
                    "a category must have a default where there is no such position, as in an "
                    "empty input",
                    received="none",
                    remedy="give default=…, a symbol or any other value such as 'none'",
                )
            return False if kind is Boolean else 0
        return constant(default, kind).value

    def _matched(
        self,
        keys: Node,
        queries: Node,
        values: Node,
        default: Any,
        choose: str,
        mask: str,
        relation: str = "==",
    ) -> Any:
        """A selection; where its default is a sequence, a choice between the two."""

        def selected(*given: Any) -> Any:
            values, *how = given
            if relation == "==":
                return self._make(Select, (keys, queries, values), *how)
            return self._make(SelectByRelation, (keys, queries, values), *how, relation)

        if not isinstance(default, PerPosition):
            return selected(values, choose, mask, self._default(default, values))
        otherwise = self._operand(default, type(values.type))
        # A selection takes constants alone for a default. So one selection of `true` tells where
        # there is a match, another the value there, with any default, and `where` joins them.
        found = selected(Constant((), Boolean, True), "rightmost", mask, False)
        chosen = selected(values, choose, mask, _some(values.type))
        return found.where(chosen, self.tracing.sequence(otherwise))

    @property
    def alphabet(self) -> tuple[Any, ...]:
        """The symbols of the input."""
        return self.tracing.alphabet

    def position(self, name: str = "i") -> Numbers:
        """A function of the position, by name: i (from 1), n, i/n, (-1)^i, and others.

        Those without a value at 0, as 1/i, are interpreted, but not compiled: BOS stands there.

        Raises:
            InvalidValue: for another name.

        """
        return self._make(Position, (), name)  # type: ignore[no-any-return]

    def predecessor(self: Own, k: int = 1, *, default: Any = LEFT_OUT) -> Own:
        """The value k positions before; the default where there is none."""
        return self._shifted(k, default, 1)

    def successor(self: Own, k: int = 1, *, default: Any = LEFT_OUT) -> Own:
        """The value k positions after; the default where there is none."""
        return self._shifted(k, default, -1)

    def _shifted(self: Own, k: int, default: Any, sign: int) -> Own:
        if type(k) is not int or k < 1:
            raise refusal(
                "k must be a whole number of at least 1",
                received=f"{k!r:.40}",
                remedy="give the distance in positions",
            )
        return self._make(Shift, (self.node,), sign * k, self._default(default))  # type: ignore[no-any-return]

    def lookup(self: Own, index: Any, *, default: Any = LEFT_OUT) -> Own:
        """The value at the position with this number, from 1; the default beyond 1 to n."""
        at = self._operand(index, Number)
        return self._make(Lookup, (self.node, at), self._default(default))  # type: ignore[no-any-return]

    def first(self: Own, *, default: Any = LEFT_OUT) -> Own:
        """The value at position 1; the default is the value for the empty input."""
        return self._nearest(True, "leftmost", "future", default)

    def last(self: Own, *, default: Any = LEFT_OUT) -> Own:
        """The value at position n; the default is the value for the empty input."""
        return self._nearest(True, "rightmost", "none", default)

    def nearest_left(self: Own, predicate: Any, *, default: Any = LEFT_OUT) -> Own:
        """The value at the last position before this one where the Boolean holds."""
        return self._nearest(predicate, "rightmost", "strict-future", default)

    def nearest_right(self: Own, predicate: Any, *, default: Any = LEFT_OUT) -> Own:
        """The value at the first position after this one where the Boolean holds."""
        return self._nearest(predicate, "leftmost", "strict-past", default)

    def _nearest(self: Own, predicate: Any, choose: str, mask: str, default: Any) -> Own:
        keys, queries = self._operand(predicate, Boolean), Constant((), Boolean, True)
        return self._matched(keys, queries, self.node, default, choose, mask)  # type: ignore[no-any-return]

    def select(self, keys: Any, *, mask: str = "none", relation: str = "==") -> Matches:
        """The positions whose key equals the value here, among those that the mask leaves.

        Args:
            keys: a sequence of the type of this one.
            relation: the relation of the key to the value here: `==`, `!=`, `<` (the key is less),
                `<=`, `>` or `>=`. Symbols are ordered as in Python.
            mask: none for all positions, future for those up to here, strict-future for those
                before, past for those from here on, strict-past for those after.

        """
        return Matches(self, self._operand(keys, type(self.node.type)), mask, relation)

    @property
    def values(self) -> tuple[Any, ...]:
        """The values that it can have: `(False, True)`, categories, or numbers in increasing order.

        Raises:
            InvalidValue: for a number that has more than 64 values or whose values are not known,
                such as a mean.

        """
        known = self.node.type.values
        if known is None:
            raise refusal(
                "the values of a number must be known and few, to be listed",
                received=described(self),
                remedy="list the values of the category or Boolean that it is made of",
            )
        return known

    def map(self, values: Any, *, categories: bool = False) -> Any:
        """A number, a Boolean or a category for each value.

        Args:
            values: a function of one value, or a mapping from each value that this can have: to
                all Booleans, all numbers (whole, floats as they are, `Fraction`), or all
                categories, such as strings. Keys that cannot occur are left aside.
            categories: whether numbers stand for categories, as in an alphabet of numbers.

        Raises:
            InvalidValue: where a value is missing, where they are not of one type, where the
                function raises, and for a number without listed values.

        """
        table = tabulated((self.node,), values, categories)
        return self._make(Table, table.children, table.rows, table.result)

    def table(self, *others: Any, values: Any) -> Any:
        """A function of this and other Booleans, categories and numbers with listed values.

        Args:
            others: its other arguments.
            values: a function of as many values as there are arguments, called on those that can
                occur; a mapping from each tuple of values (from each value, of one argument); or
                a list in the order of their product, the last the fastest: for Booleans the values
                at 0…00, 0…01, …; "0110" is a list of Booleans.

        Raises:
            InvalidValue: where one is missing, where they are not of one type, or where the
                function raises.

        """
        nodes = (self.node, *(self._operand(each, kind_of(each)) for each in others))
        table = tabulated(nodes, values)
        return self._make(Table, table.children, table.rows, table.result)

    def tag(self) -> Tag:
        """The output that is the value at every position.

        Symbols are joined to a string where each is one character; there is a list elsewhere.
        Numbers are ints where they are whole, and `Fraction`.
        """
        output = Tag(self.node)
        self.tracing.output(output)
        return output

    def __bool__(self) -> NoReturn:
        raise refused_truth()


def _some(type_: Type) -> Any:
    """A value of the type, where it does not matter which."""
    return 0 if isinstance(type_, Number) else type_.values[0]


@with_checked_calls
class Booleans(PerPosition):
    """Boolean at each position."""

    __hash__ = PerPosition.__hash__  # == is defined here, and Python takes the hash away with it

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
        # The first sequence says the type; of two constants the first does.
        kind = kind_of((*sequences, x)[0])
        nodes = (self.node, self._operand(x, kind), self._operand(y, kind))
        if kind is Boolean:
            # (b, x, y) from 000 to 111: y where b is false, x where it is true.
            rows = (False, True, False, True, False, False, True, True)
            return self._make(Table, nodes, rows, Boolean())
        return self._make(Choice, nodes)

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
        """The number of positions at which it holds, among those that the mask leaves."""
        return self._make(Count, (self.node,), mask)  # type: ignore[no-any-return]

    def any(self, mask: str = "none") -> Booleans:
        """True if it holds at one of the positions that the mask leaves; false over none."""
        return self._make(Exists, (self.node,), mask)  # type: ignore[no-any-return]

    def all(self, mask: str = "none") -> Booleans:
        """True if it holds at all the positions that the mask leaves; true over none."""
        return ~(~self).any(mask)  # true over no positions, where `any` is false

    def any_so_far(self) -> Booleans:
        """True if it holds at one of positions 1 to i."""
        return self.any("future")

    def all_so_far(self) -> Booleans:
        """True if it holds at all of positions 1 to i."""
        return self.all("future")

    def accept(self, *, empty: bool | None = None) -> Accept:
        """The output that is the value at the last position.

        Args:
            empty: the answer on the empty input; when left out, the value over no positions,
                where a mean and a count are 0, any is false, all is true, a lookup or a selection
                gives its default, and n is 0.

        Raises:
            InvalidValue: where it is left out and the value over no positions is undefined, as for
                a token.

        """
        if empty is not None and not isinstance(empty, bool):
            raise refusal(
                "empty must be True or False",
                received=described(empty),
                remedy="say whether the empty input is accepted",
            )
        answer = self.tracing.over_nothing(self.node) if empty is None else empty
        if answer is NO_VALUE:
            raise refusal(
                "a program that accepts must have an answer on the empty input",
                received=f"{described(self)} with no value over no positions, as of a token",
                remedy="write accept(empty=True) or accept(empty=False)",
            )
        output = Accept(self.node, answer)
        self.tracing.output(output)
        return output


@with_checked_calls
class Numbers(PerPosition):
    """Rational number at each position."""

    __hash__ = PerPosition.__hash__  # == is defined here, and Python takes the hash away with it

    def _linear(self, other: Any, factor: int, own: int = 1) -> Numbers:
        """± self ± other."""
        if not isinstance(other, PerPosition):
            added = factor * constant(other, Number).value
            # x + 0 is x: `sum` of Python begins with 0, and would make a node for it.
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
            return self._make(Multiplication, (self.node, self._operand(other, Number)))  # type: ignore[no-any-return]
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

    def map(self, values: Any, *, categories: bool = False, max_length: int = LONGEST) -> Any:
        """A number, a Boolean or a category for each value of a number with listed or whole values.

        Args:
            values: a function of one value, or a mapping from each value that this can have: to
                all Booleans, all numbers (whole, floats as they are, `Fraction`), or all
                categories, such as strings. Keys that cannot occur are left aside.
            categories: whether numbers stand for categories, as in an alphabet of numbers.
            max_length: the largest length of inputs, for a whole number without listed values,
                such as a count. The function is called on each value that the number can have up to
                this length; for any other value the program has no answer.

        Raises:
            InvalidValue: where a value is missing, where they are not of one type, where the
                function raises, and for a number that is neither listed nor whole.

        """
        if self.node.type.values is not None:
            return super().map(values, categories=categories)
        made = mapped(self.node, values, categories, max_length)
        return self._make(WholeMap, made.children, made.points, made.values, made.result)

    def _divided(self, sign: str, divisor: Any) -> Numbers:
        by = None if isinstance(divisor, PerPosition) else constant(divisor, Number).value
        if type(by) is not int or by == 0:
            raise refusal(
                f"the divisor of {sign} must be a constant whole number other than 0",
                received=described(divisor),
                remedy="give one such as 2",
            )
        if self.node.type.values is not None:
            return super().map(lambda value: DIVISIONS[sign](value, by))  # type: ignore[no-any-return]
        if sign == "%":
            rest = remainder(self.node, by, self.tracing.node)
            return self.tracing.sequence(rest)  # type: ignore[no-any-return]
        return self._make(Division, (self.node,), sign, by)  # type: ignore[no-any-return]

    def __floordiv__(self, other: Any) -> Numbers:
        return self._divided("//", other)

    def __mod__(self, other: Any) -> Numbers:
        return self._divided("%", other)

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
        # x + ReLU(y − x) is y where y > x, else x; and ReLU is what a hidden unit computes.
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
        # The end pieces go on as they are: their slopes are those of the first and the last piece.
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


@with_checked_calls
class Categories(PerPosition):
    """Category at each position: one of finitely many values, such as a symbol."""

    __hash__ = PerPosition.__hash__  # == is defined here, and Python takes the hash away with it

    @property
    def _values(self) -> tuple[Any, ...]:
        return self.node.type.values  # type: ignore[return-value]

    def __eq__(self, other: object) -> Booleans:  # type: ignore[override]
        if not isinstance(other, PerPosition):
            return self.isin([other])
        node = self._operand(other, Category)
        rows_of(self.node.type, node.type)
        pairs = itertools.product(self._values, node.type.values or ())
        rows = tuple(a == b for a, b in pairs)
        return self._make(Table, (self.node, node), rows, Boolean())  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> Booleans:  # type: ignore[override]
        return ~(self == other)

    def isin(self, symbols: Iterable[Any]) -> Booleans:
        """True where it is one of these.

        A value that it never has may be listed, and never matches.

        Raises:
            InvalidValue: for a value that no category can be, such as a list.

        """
        wanted = listed(symbols)
        for symbol in wanted:
            is_sequence = isinstance(symbol, PerPosition)
            if is_sequence or not isinstance(symbol, Hashable):  # such as an array
                raise refusal(
                    f"{described(self)}, must be compared with values that it can have: "
                    f"{' '.join(map(repr, self._values))}",
                    received=f"{symbol!r:.40}",
                    remedy="compare it with one of these; write (x == y) | (x == z) for sequences",
                )
        rows = tuple(value in wanted for value in self._values)
        return self._make(Table, (self.node,), rows, Boolean())  # type: ignore[no-any-return]

    def next_token(self) -> NextToken:
        """The output that is, at every position, the prediction of the symbol after it.

        Raises:
            InvalidValue: where it can be a value that is neither a symbol of the alphabet nor EOS.

        """
        known = (*self.alphabet, EOS)
        unknown = [value for value in self._values if value not in known]
        if unknown:
            raise refusal(
                "predictions must be symbols of the alphabet, or 'EOS'",
                received=f"{described(self)} that can be {' '.join(map(repr, unknown))}",
                remedy="give another default, or map it to a symbol",
            )
        output = NextToken(self.node)
        self.tracing.output(output)
        return output


def _refuse_on_matches(self: Matches, sign: str, *_: object) -> NoReturn:
    raise UnknownName(
        "the matches of a selection must first be made values",
        received=f"{sign} on {self!r}",
        where=str(here()),
        remedy="write .rightmost(y), .leftmost(y), .mean(y) or .any() after select",
    )


@refusing_operators(_refuse_on_matches, OPERATORS, EQUALITY, CONVERSIONS, {"its truth": "bool"})
@with_checked_calls
class Matches(WithoutText):
    """Matches of each position i: the positions j of the mask with keyⱼ = queryᵢ.

    `relation` in `select` replaces = by another relation.
    """

    def __init__(self, queries: PerPosition, keys: Node, mask: str, relation: str = "==") -> None:
        self._queries, self._keys, self._how = queries, keys, (mask, relation)

    def __repr__(self) -> str:
        return "<the positions that a selection matches>"

    def __getattr__(self, name: str) -> Any:
        """Refuse an operation that matches do not have."""
        if name.startswith("_") or name in ("node", "tracing"):
            raise AttributeError(name)
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        raise UnknownName.among("operation on what a selection matches", name, known, str(here()))

    def rightmost(self, values: Any, *, default: Any = LEFT_OUT) -> Any:
        """The value at the last match; the default, a constant or a sequence, where none is."""
        return self._choose("rightmost", self._node(values), default)

    def leftmost(self, values: Any, *, default: Any = LEFT_OUT) -> Any:
        """The value at the first match; the default, a constant or a sequence, where none is."""
        return self._choose("leftmost", self._node(values), default)

    def mean(self, values: Any, *, default: Any = 0) -> Numbers:
        """The mean of the values at the matches (a Boolean is 1 or 0); the default for none."""
        if kind_of(values) is Boolean:
            node = self._queries._operand(values, Boolean)
            values = self._queries.tracing.sequence(node).where(1, 0)
        return self._choose("mean", self._queries._operand(values, Number), default)  # type: ignore[no-any-return]

    def any(self) -> Booleans:
        """True where there is a match."""
        return self._choose("rightmost", constant(True, Boolean), False)  # type: ignore[no-any-return]

    def _node(self, values: Any) -> Node:
        return self._queries._operand(values, kind_of(values))

    def _choose(self, choose: str, values: Node, default: Any) -> Any:
        queries = self._queries
        return queries._matched(self._keys, queries.node, values, default, choose, *self._how)


WRAPPERS: Mapping[type[Type], type[PerPosition]] = {
    Boolean: Booleans,
    Category: Categories,
    Number: Numbers,
}
"""The class of the values of each type."""
