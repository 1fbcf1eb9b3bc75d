"""From a program to a circuit: a rule for each kind of subexpression.

A Boolean becomes a form that is 0 or 1; a category a form for each value, 1 where it has it; a
number a form that is a multiple of it, in a unit. With BOS, a mean over D rows of which D − 1 are
symbols is there times (D − 1)/D, a count as count/D: comparisons do not ask for the factor, and a
constant beside it gets it too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from transformist.bounds import power_of_two_at_most
from transformist.compiler.circuit import Atom, Circuit, Embedded, Feature, Fetched, Relu, Step
from transformist.compiler.forms import Form, total
from transformist.compiler.heads import BEHIND, At, Head, Match, Uniform
from transformist.compiler.options import Options
from transformist.compiler.refusals import Source, Uncompilable
from transformist.errors import UndefinedValue
from transformist.language import Program
from transformist.language.across import Count, Exists, Lookup, Mean, Shift
from transformist.language.leaves import Constant, Position, Token
from transformist.language.node import Node
from transformist.language.pointwise import (
    Comparison,
    Linear,
    PiecewiseLinear,
    Product,
    Table,
    Where,
    slopes,
)
from transformist.language.selection import Select
from transformist.language.types import Boolean, Category
from transformist.positions import position

Unit: TypeAlias = "tuple[str, str]"
"""("mean", mask) for (D − 1)/D, ("count", mask) for 1/D, D being the rows that the mask leaves."""

ONE: Unit = ("one", "")


@dataclass(eq=False)
class Lowering:
    """The circuit of a program, as far as it has been asked for.

    Attributes:
        program: what is lowered.
        options: of the compilation.
        circuit: the atoms so far.

    """

    program: Program
    options: Options
    circuit: Circuit
    _made: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _stack: list[Node] = field(default_factory=list)
    _first: dict[Node, Node] = field(default_factory=dict)
    _firsts: dict[int, tuple[Node, Node]] = field(default_factory=dict)

    @cached_property
    def source(self) -> Source:
        """What the subexpressions are called, and where they are written."""
        return Source(self.program)

    # What a subexpression becomes

    def boolean(self, node: Node) -> Form:
        """A form that is 1 where the Boolean holds, 0 elsewhere."""
        return self._once("boolean", node, self._boolean)  # type: ignore[no-any-return]

    def _boolean(self, node: Node) -> Form:
        columns = self.by_symbol(node)
        if columns is not None:
            return self.embedded(columns, self.name(node))
        return self.circuit.call(RULES[type(node)].boolean(self, node), self.name(node))

    def loosely(self, node: Node) -> Form:
        """A whole number that is 1 where the Boolean holds, at most 0 elsewhere."""
        return self._once("loosely", node, self._loosely)  # type: ignore[no-any-return]

    def _loosely(self, node: Node) -> Form:
        rule = RULES[type(node)]
        if rule.loosely is None or self.by_symbol(node) is not None:
            return self.boolean(node)
        found = rule.loosely(self, node)
        is_near = found is not None and self.circuit.span(found).lo >= -LOOSEST
        return found if is_near else self.boolean(node)

    def parted(self, node: Node) -> tuple[Form, Fraction]:
        """A number that is above 0 where the Boolean holds, else below, and how far at least."""
        if isinstance(node, Comparison) and node.relation in _SIDES:
            form, _ = self.in_some_unit(node.children[0])
            if not form.is_constant:
                sign, side = _SIDES[node.relation]
                half = _zone(self, node.children[0], form) / 2
                return form * sign + half * side, half
        return self.loosely(node) - Fraction(1, 2), Fraction(1, 2)

    def literal(self, node: Node, value: Any) -> Form:
        """A form that is 1 where the Boolean or category has this value, 0 elsewhere."""
        if isinstance(node.type, Boolean):
            return self.boolean(node) if value else 1 - self.boolean(node)
        if value not in node.type.values:  # type: ignore[operator]
            return Form()
        return self._once("literal", node, self._literal, value)  # type: ignore[no-any-return]

    def _literal(self, node: Node, value: Any) -> Form:
        name = f"{self.name(node)} = {value}"
        columns = self.by_symbol(node)
        if columns is not None:
            return self.embedded([each == value for each in columns], name)
        if node.type.values == (value,):
            return Form.of(1)
        return self.circuit.call(RULES[type(node)].literal(self, node, value), name)

    def number(self, node: Node, unit: Unit = ONE) -> Form:
        """A form that is the number times the unit."""
        return self._once("number", node, self._number, unit)  # type: ignore[no-any-return]

    def _number(self, node: Node, unit: Unit) -> Form:
        columns = self.by_symbol(node)
        if columns is not None:
            return self._in_unit(columns, unit, self.name(node))
        return self.circuit.call(RULES[type(node)].number(self, node, unit), self.name(node))

    def _in_unit(self, columns: Sequence[Any], unit: Unit, name: str) -> Form:
        if len(set(columns)) == 1:
            return self.unit(unit) * Fraction(columns[0])
        if unit == ONE:
            return self.embedded(columns, name)
        values = dict.fromkeys(value for value in columns if value)
        return total(
            self.gated(
                self.embedded([each == value for each in columns], f"{name} = {value}"),
                self.unit(unit),
                f"{name} = {value}",
            )
            * value
            for value in values
        )

    def units(self, node: Node) -> tuple[Unit, ...] | None:
        """The units in which a number can be there, as it is among them; `None` for all."""
        return self._once("units", node, self._units)  # type: ignore[no-any-return]

    def _units(self, node: Node) -> tuple[Unit, ...] | None:
        if self.by_symbol(node) is not None:
            return None
        found: tuple[Unit, ...] | None = RULES[type(node)].units(self, node)
        return found

    def common_units(self, nodes: Sequence[Node]) -> tuple[Unit, ...] | None:
        """The units in which all of these can be there."""
        known = [units for each in nodes if (units := self.units(each)) is not None]
        if not known:
            return None
        return tuple(unit for unit in known[0] if all(unit in units for units in known[1:]))

    def in_some_unit(self, node: Node) -> tuple[Form, Unit]:
        """The number in the first of its units."""
        unit = (self.units(node) or (ONE,))[0]
        return self.number(node, unit), unit

    # Parts

    def unit(self, unit: Unit) -> Form:
        """The unit itself."""
        kind, mask = unit
        if unit == ONE:
            return Form.of(1)
        counted = self.circuit.at_bos if kind == "count" else self.circuit.at_symbols
        form = self.add(Fetched(Uniform(mask), counted), f"1 in {kind} {mask}")
        if (kind, mask) != ("mean", "strict-future"):
            return form
        share = self.unit(("count", mask))  # 1/D; over no symbols a mean is 0, in any unit but 0
        return form + self.relu(share * 2 - 1, f"nothing in {mask}")

    def add(self, atom: Atom, name: str) -> Form:
        """An atom, for the subexpression that is lowered."""
        return self.circuit.add(atom, name, self._stack[-1] if self._stack else None)

    def mean_unit(self, mask: str) -> Unit:
        """That of a mean under a mask."""
        return ("mean", mask) if self.circuit.bos and mask in BEHIND else ONE

    def by_symbol(self, node: Node) -> list[Any] | None:
        """The value at each symbol of the alphabet, where it depends on nothing else."""
        return self._once("by symbol", node, self._by_symbol)  # type: ignore[no-any-return]

    def _by_symbol(self, node: Node) -> list[Any] | None:
        if not isinstance(node, _POINTWISE):
            return None
        columns = [self.by_symbol(child) for child in node.children]
        if any(column is None for column in columns):
            return None
        return node.meaning(self.circuit.alphabet, *columns)  # type: ignore[arg-type]

    def always(self, node: Node, value: Any) -> bool:
        """Whether it has this value at every symbol."""
        columns = self.by_symbol(node)
        return columns is not None and set(columns) == {value}

    def embedded(self, values: Sequence[Any], name: str) -> Form:
        """A number for each symbol, 0 at BOS; a constant where they are all the same."""
        numbers = [Fraction(value) for value in values]
        if len(set(numbers)) == 1:
            return Form.of(numbers[0])
        at_bos = (Fraction(0),) * self.circuit.bos
        return self.add(Embedded((*numbers, *at_bos)), name)

    def feature(self, name: str, node: Node) -> Form:
        """A function of the position, by name."""
        allowed = self.options.positions
        if allowed is not None and name not in allowed:
            raise self.refuse(
                node,
                f"it is computed with the position function {name}",
                received=f"positions = {', '.join(allowed) or 'none'}",
                remedy=f"allow {name}, or leave positions out",
            )
        try:
            position(name, 0, 0)
        except UndefinedValue:
            if self.circuit.bos:
                raise self.refuse(
                    node,
                    "a position function has a value at BOS, which is at i = 0",
                    received=f"{name} in a model with BOS",
                    remedy="compare with i, or take a mean for a count over i or n",
                ) from None
        return self.add(Feature(name), name)

    def place(self, node: Node) -> Form:
        """A number whose values at different positions are at least 1 apart, in their order.

        It is i, or N i/n where i is not allowed: at most N, and 0 at BOS.
        """
        allowed = self.options.positions
        if allowed is not None and "i" not in allowed and "i/n" in allowed:
            if self.circuit.max_length is None:
                raise self.needs_length(node, "how far apart multiples of i/n are")
            return self.feature("i/n", node) * self.circuit.max_length
        return self.feature("i", node)

    def quiet(self, form: Form, name: str) -> Form:
        """A form with the same values at the symbols, and 0 at BOS."""
        if not self.circuit.bos:
            return form
        at_bos = self.circuit.span_at_bos(form)
        if at_bos.is_point:
            return form - self.circuit.at_bos * at_bos.lo if at_bos.lo else form
        bit = 1 - self.circuit.at_bos
        return self._gate(
            bit, form, name, self.circuit.rows(form)[-1].hull(self.circuit.span(form))
        )

    def relu(self, form: Form, name: str) -> Form:
        """max(form, 0); the form or 0 where its sign is known."""
        rows = self.circuit.rows(form)
        if all(row.lo >= 0 for row in rows):
            return form
        if all(row.hi <= 0 for row in rows):
            return Form()
        return self.add(Relu(form), name)

    def step(self, form: Form, zone: Fraction, name: str) -> Form:
        """[form > 0], where it is at most 0, or at least the zone, at the symbols."""
        within = self.circuit.span(form)
        if within.hi <= 0:
            return Form()
        if within.lo >= zone:
            return Form.of(1)
        return self.add(Step(form, zone), name)

    def conjunction(self, loose: Form, name: str) -> Form:
        """[form = 1] of a whole number that is at most 1."""
        within = self.circuit.span(loose)
        if within.hi <= 0:
            return Form()
        if within.lo >= 1:
            return Form.of(1)
        if not self.circuit.is_clean(loose):
            return self.step(loose, Fraction(1), name)
        return self.relu(loose, name)

    def gated(self, bit: Form, form: Form, name: str) -> Form:
        """The form where the bit is 1, 0 where it is 0."""
        return self._gate(bit, form, name, self.circuit.span(form))

    def _gate(self, bit: Form, form: Form, name: str, within: Any) -> Form:
        parts = []
        for sign, most in ((1, within.hi), (-1, -within.lo)):
            if most == float("inf"):
                raise _Unbounded
            if most > 0:
                shift = Fraction(1) if most <= 1 else 1 / power_of_two_at_most(1 / Fraction(most))
                parts.append(self.relu(form * sign + (bit - 1) * shift, name) * sign)
        return total(parts)

    def mean(self, node: Node, mask: str, value: Form) -> Form:
        """The mean of a form, by a head with equal scores."""
        self.require_means(node)
        return self.add(Fetched(Uniform(mask), value), self.name(node))

    def require_means(self, node: Node) -> None:
        """Refuse a mean where each position attends to one."""
        if self.options.weighting == "rightmost-hard":
            raise self.refuse(
                node,
                "rightmost-hard attention attends to one position and has no mean",
                received="a mean or count",
                remedy="compile it with average-hard or softmax attention",
            )

    # Refusals and names

    def refuse(self, node: Node, invariant: str, *, received: str, remedy: str) -> Uncompilable:
        """The refusal of a subexpression."""
        return self.source.refused(node, invariant, received=received, remedy=remedy)

    def needs_length(self, node: Node, why: str) -> Uncompilable:
        """The refusal to compile for any length."""
        return self.refuse(
            node, f"{why} depends on N", received="max_length = None", remedy="give max_length"
        )

    def name(self, node: Node) -> str:
        """What a subexpression is called."""
        return self.source.names[node]

    def _once(self, what: str, node: Node, make: Callable[..., Any], *more: Any) -> Any:
        key = (what, self._same(node), *more)
        if key not in self._made:
            if len(self._stack) == DEEPEST:
                raise _Deep(lambda: self._once(what, node, make, *more))
            self._stack.append(node)
            try:
                self._made[key] = make(node, *more)
            except _Unbounded:
                raise self.needs_length(node, "how large it can be") from None
            finally:
                self._stack.pop()
        return self._made[key]

    def _same(self, node: Node) -> Node:
        """The first of equal nodes; two that are written apart are compared only once."""
        if id(node) not in self._firsts:
            self._firsts[id(node)] = node, self._first.setdefault(node, node)
        return self._firsts[id(node)][1]

    def settled(self, make: Callable[[], Any]) -> Any:
        """What this makes, however deep the program is nested: first what is needed, then again."""
        waiting = [make]
        while True:
            try:
                made = waiting[-1]()
            except _Deep as below:
                waiting.append(below.make)
                continue
            waiting.pop()
            if not waiting:
                return made


LOOSEST = 2**6
"""A loose form is at least minus this: 8 significand bits hold it and the sums on the way."""

DEEPEST = 40
"""So many subexpressions within each other are lowered at once."""


class _Deep(Exception):
    """What is to be made first."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self.make = make


class _Unbounded(Exception):
    """A number without a bound, where one is needed."""


_SIDES = {">": (1, -1), ">=": (1, 1), "<": (-1, -1), "<=": (-1, 1)}
"""For a comparison with 0, the sign of the number, and that of half its separation."""

_POINTWISE = (Token, Constant, Table, Linear, PiecewiseLinear, Product, Comparison, Where)


# Pointwise


def _constant_literal(_lowering: Lowering, node: Constant, value: Any) -> Form:
    return Form.of(int(node.value == value))


def _rows_with(node: Table, value: Any, *, equal: bool) -> list[tuple[Any, ...]]:
    values = [child.type.values or () for child in node.children]
    arguments = itertools.product(*values)
    return [
        row for row, given in zip(arguments, node.rows, strict=True) if (given == value) == equal
    ]


def _table_bit(lowering: Lowering, node: Table, value: Any) -> Form:
    """[the table has this value], as a sum over the rows that do, or 1 less that of the others."""
    rows, others = (_rows_with(node, value, equal=equal) for equal in (True, False))
    name = lowering.name(node) if value is True else f"{lowering.name(node)} = {value}"
    if len(rows) <= len(others):
        return total(_row(lowering, node, row, name) for row in rows)
    return 1 - total(_row(lowering, node, row, f"not {name}") for row in others)


def _row(lowering: Lowering, node: Table, row: tuple[Any, ...], name: str) -> Form:
    asked = [each for each in zip(node.children, row, strict=True) if not lowering.always(*each)]
    if len(asked) == 1:
        return lowering.literal(*asked[0])
    return lowering.conjunction(_row_loosely(lowering, node, row), name)


def _row_loosely(lowering: Lowering, node: Table, row: tuple[Any, ...]) -> Form:
    literals = [
        lowering.loosely(child) if value is True else lowering.literal(child, value)
        for child, value in zip(node.children, row, strict=True)
    ]
    return total(literals) - (len(row) - 1)


def _table_loosely(lowering: Lowering, node: Table) -> Form | None:
    rows = _rows_with(node, True, equal=True)
    return _row_loosely(lowering, node, rows[0]) if len(rows) == 1 else None


def _table_number(lowering: Lowering, node: Table, unit: Unit) -> Form:
    values = [value for value in dict.fromkeys(node.rows) if value]
    bits = [_table_bit(lowering, node, value) for value in values]
    if unit == ONE:
        return total(bit * value for bit, value in zip(bits, values, strict=True))
    name = lowering.name(node)
    return total(
        lowering.gated(bit, lowering.unit(unit), name) * value
        for bit, value in zip(bits, values, strict=True)
    )


def _linear(lowering: Lowering, node: Linear, unit: Unit) -> Form:
    parts = [
        lowering.number(child, unit) * factor
        for child, factor in zip(node.children, node.factors, strict=True)
        if factor
    ]
    return total([*parts, lowering.unit(unit) * node.constant] if node.constant else parts)


def _piecewise(lowering: Lowering, node: PiecewiseLinear, unit: Unit) -> Form:
    x = lowering.number(node.children[0], unit)
    return _interpolated(lowering, x, node.knots, node.values, node.ends, unit, lowering.name(node))


def _interpolated(
    lowering: Lowering,
    x: Form,
    knots: Sequence[Any],
    values: Sequence[Any],
    ends: tuple[Any, Any],
    unit: Unit,
    name: str,
) -> Form:
    """A line, and a ReLU for each change of its slope."""
    one = lowering.unit(unit)
    pieces = (ends[0], *slopes(tuple(knots), tuple(values)), ends[1])
    parts = [one * values[0], (x - one * knots[0]) * ends[0]]
    for knot, (before, after) in zip(knots, itertools.pairwise(pieces), strict=True):
        if after != before:
            parts.append(lowering.relu(x - one * knot, name) * (after - before))
    return total(parts)


def _product(lowering: Lowering, node: Product, _unit: Unit) -> Form:
    """x y = ((x + y)² − x² − y²)/2, the squares interpolated at the values there are."""
    x, y = node.children
    forms = [lowering.number(each) for each in (x, y)]
    values: list[Any] = [each.type.values or () for each in (x, y)]
    sums = sorted({a + b for a, b in itertools.product(*values)})
    squares = [
        _square(lowering, form, listed, lowering.name(node))
        for form, listed in ((total(forms), sums), *zip(forms, values, strict=True))
    ]
    return (squares[0] - squares[1] - squares[2]) * Fraction(1, 2)


def _square(lowering: Lowering, x: Form, values: Sequence[Any], name: str) -> Form:
    if len(values) == 1:
        return Form.of(values[0] ** 2)
    squared = [value**2 for value in values]
    rises = slopes(tuple(values), tuple(squared))
    return _interpolated(lowering, x, values, squared, (rises[0], rises[-1]), ONE, name)


def _comparison(lowering: Lowering, node: Comparison) -> Form:
    """By steps above and below 0."""
    child, name = node.children[0], lowering.name(node)
    form, _ = lowering.in_some_unit(child)
    within = lowering.circuit.span(form)
    above = below = Form()
    if within.hi > 0 and node.relation not in ("<", ">="):
        above = lowering.step(form, _zone(lowering, child, form), f"{name}: above")
    if within.lo < 0 and node.relation not in (">", "<="):
        below = lowering.step(-form, _zone(lowering, child, form), f"{name}: below")
    return {
        ">": lambda: above,
        "<": lambda: below,
        ">=": lambda: 1 - below,
        "<=": lambda: 1 - above,
        "!=": lambda: above + below,
        "==": lambda: 1 - above - below,
    }[node.relation]()


def _zone(lowering: Lowering, node: Node, form: Form) -> Fraction:
    """A power of two within the least magnitude of a form but 0."""
    circuit = lowering.circuit
    found = circuit.separation(form)
    if found is not None:
        return power_of_two_at_most(found)
    if circuit.max_length is None:
        raise lowering.needs_length(node, "how small it can be without being 0")
    raise lowering.refuse(
        node,
        "a number that is compared is 0 or at least some number in magnitude",
        received="no such number is known: it is a mean of numbers of both signs that are means, "
        "or whose denominators depend on the position",
        remedy="compare those first, or take their ReLU, and then the mean; or count",
    )


def _where_number(lowering: Lowering, node: Where, unit: Unit) -> Form:
    own = _own_default(lowering, node)
    if own is not None and unit == ONE:
        return own(lowering.number(node.children[2]))
    condition, x, y = node.children
    name = lowering.name(node)
    bit = lowering.boolean(condition)
    one, other = lowering.number(x, unit), lowering.number(y, unit)
    return other + lowering.gated(bit, one - other, name)


def _where_literal(lowering: Lowering, node: Where, value: Any) -> Form:
    own = _own_default(lowering, node)
    if own is not None:
        return own(lowering.literal(node.children[2], value))
    condition, x, y = node.children
    name = f"{lowering.name(node)} = {value}"
    bit = lowering.boolean(condition)
    return total(
        chosen
        if lowering.always(each, value)
        else lowering.conjunction(lowering.literal(each, value) + chosen - 1, name)
        for chosen, each in ((bit, x), (1 - bit, y))
    )


def _own_default(lowering: Lowering, node: Where) -> Callable[[Form], Form] | None:
    """For a selection whose default is the value here: the last position up to here is here."""
    found, chosen, own = node.children
    if not (isinstance(found, Select) and isinstance(chosen, Select)):
        return None
    keys, queries, values = chosen.children
    true = Constant((), Boolean, True)
    same = found.children == (keys, queries, true) and found.mask == chosen.mask
    last = (chosen.choose, chosen.mask) in (("rightmost", "future"), ("leftmost", "past"))
    if not (same and last and values == own and found.default is False):
        return None
    head = _matching(lowering, chosen, has_sink=False)
    name = lowering.name(node)
    return lambda value: lowering.add(Fetched(head, lowering.quiet(value, name)), name)


# Across positions


def _position_units(lowering: Lowering, node: Position) -> tuple[Unit, ...]:
    if not lowering.circuit.bos:
        return (ONE,)
    return (ONE, *{"i": (("count", "future"),), "n": (("count", "none"),)}.get(node.name, ()))


def _mean(lowering: Lowering, node: Mean, unit: Unit) -> Form:
    """A mean that BOS takes part in, as 0; or one that leaves it out."""
    name = lowering.name(node)
    value = lowering.quiet(lowering.number(node.children[0]), name)
    if unit == lowering.mean_unit(node.mask):
        return lowering.mean(node, node.mask, value)
    lowering.require_means(node)
    if lowering.circuit.max_length is None and lowering.options.weighting == "softmax":
        raise lowering.needs_length(node, "how sharp the scores are")
    head = Match((lowering.circuit.at_bos,), (Form.of(-1),), "mean", node.mask)
    return lowering.add(Fetched(head, value), name)


def _mean_units(lowering: Lowering, node: Mean) -> tuple[Unit, ...]:
    return tuple(dict.fromkeys((lowering.mean_unit(node.mask), ONE)))


def _count(lowering: Lowering, node: Count, unit: Unit) -> Form:
    """A mean, count/D, from which the count as it is is the place that it gives."""
    if unit == ONE:
        place, mask = lowering.feature("i", node), "none" if node.mask == "none" else "future"
        return lowering.add(Fetched(_at_count(lowering, node, mask), place), lowering.name(node))
    value = lowering.quiet(lowering.boolean(node.children[0]), lowering.name(node))
    return lowering.mean(node, node.mask, value)


def _at_count(lowering: Lowering, node: Count, mask: str) -> At:
    """The head that finds the position whose number is the count."""
    if lowering.circuit.max_length is None and lowering.options.weighting == "softmax":
        raise lowering.needs_length(node, "how sharp the scores are")
    unit = ("count", node.mask)
    return At(
        lowering.number(node, unit),
        lowering.feature("i", node),
        lowering.feature("i^2", node),
        mask,
        lowering.unit(unit),
    )


def _count_units(lowering: Lowering, node: Count) -> tuple[Unit, ...]:
    if node.mask not in BEHIND:
        raise lowering.refuse(
            node,
            "a count is a mean, beside that of BOS, which stands in front",
            received=f"a count under mask {node.mask}, which does not see BOS",
            remedy="count under mask none, future or strict-future, or take the mean",
        )
    return (("count", node.mask), ONE)


def _exists(lowering: Lowering, node: Exists) -> Form:
    """Hard attention looks for one; softmax takes the mean, and a step."""
    name = lowering.name(node)
    value = lowering.quiet(lowering.boolean(node.children[0]), name)
    if value == Form():
        return value
    weighting = lowering.options.weighting
    if weighting != "softmax":
        head = Match((value,), (Form.of(1),), "any", node.mask)
        return lowering.add(Fetched(head, value), name)
    mean = lowering.mean(node, node.mask, value)
    return lowering.step(mean, _zone(lowering, node, mean), name)


def _shift(lowering: Lowering, node: Shift) -> Callable[[Form], Form]:
    """The next position to the left or right by its place, others by their number."""
    k = node.k
    if k in (1, -1):
        mask, choose = {1: ("strict-future", "rightmost"), -1: ("strict-past", "leftmost")}[k]
        place = None
        if (lowering.options.weighting, k) != ("rightmost-hard", 1):
            place = lowering.place(node)
        return _fetching(lowering, node, Match((), (), choose, mask, place))
    return _looking_up(lowering, node, lowering.feature("i", node) - k)


def _lookup(lowering: Lowering, node: Lookup) -> Callable[[Form], Form]:
    asked = node.children[1]
    if isinstance(asked, Count):  # at most n
        return _fetching(lowering, node, _at_count(lowering, asked, "none"))
    index = lowering.number(asked)
    if not lowering.circuit.is_whole(index):
        raise lowering.refuse(
            node.children[1],
            "the position that is looked up is a whole number",
            received="a number that need not be whole",
            remedy="compute it from i, n and whole numbers",
        )
    return _looking_up(lowering, node, index)


def _looking_up(lowering: Lowering, node: Node, index: Form) -> Callable[[Form], Form]:
    """BOS, at 0, is found for 0 and below; beyond n the default is asked for."""
    circuit = lowering.circuit
    place = lowering.feature("i", node)
    fetched = _fetching(lowering, node, At(index, place, lowering.feature("i^2", node)))
    if circuit.span(index - place).hi <= 0:
        return fetched
    beyond = index - _length(lowering, node)
    if circuit.span(beyond).hi <= 0:
        return fetched
    name = lowering.name(node)
    valid = lowering.step(1 - beyond, Fraction(1), f"{name}: up to n")
    return lambda value: lowering.gated(valid, fetched(value), name)


def _fetching(lowering: Lowering, node: Node, head: Head) -> Callable[[Form], Form]:
    """What the head fetches, 0 at BOS."""
    name = lowering.name(node)

    def fetch(value: Form) -> Form:
        quiet = lowering.quiet(value, name)
        is_soft = lowering.options.weighting == "softmax"
        if is_soft and lowering.circuit.span(quiet).diameter == float("inf"):
            raise lowering.needs_length(node, "how sharp the scores are")
        return quiet if quiet == Form() else lowering.add(Fetched(head, quiet), name)

    return fetch


def _select(lowering: Lowering, node: Select) -> Callable[[Form], Form]:
    """BOS takes what matches nothing; where it is not seen, the value or the match is a gate."""
    name = lowering.name(node)
    if node.mask in BEHIND:
        has_sink = not (node.children[0] == node.children[1] == _TRUE and node.choose != "mean")
        return _fetching(lowering, node, _matching(lowering, node, has_sink=has_sink))
    head = _matching(lowering, node, has_sink=False)
    fetch = _fetching(lowering, node, head)
    if all(query.is_constant for query in head.queries):
        match = total(k * q.constant for k, q in zip(head.keys, head.queries, strict=True))
        if node.choose == "mean":
            raise lowering.refuse(
                node,
                "the mean of what matches sees BOS, which takes what matches nothing",
                received=f"mask {node.mask}",
                remedy="select under mask none, future or strict-future",
            )
        return lambda value: fetch(lowering.gated(match, value, name))
    keys = [fetch(key) for key in head.keys]
    found = total(
        lowering.conjunction(key + query - 1, f"{name}: found")
        for key, query in zip(keys, head.queries, strict=True)
    )
    return lambda value: lowering.gated(found, fetch(value), name)


_TRUE = Constant((), Boolean, True)


def _matching(lowering: Lowering, node: Select, *, has_sink: bool) -> Match:
    """The head of a selection."""
    pairs = _pairs(lowering, node)
    circuit, weighting = lowering.circuit, lowering.options.weighting
    if node.choose == "mean" and weighting == "rightmost-hard":
        raise lowering.refuse(
            node,
            "rightmost-hard attention attends to one position and has no mean",
            received="the mean of what matches",
            remedy="compile it with average-hard or softmax attention",
        )
    place = None
    forms = [form for pair in pairs for form in pair]
    are_tied = weighting == "rightmost-hard" and all(map(circuit.is_clean, forms))
    if node.choose == "leftmost" or (node.choose == "rightmost" and not are_tied):
        place = lowering.place(node)
    is_seen = circuit.bos and node.mask in BEHIND
    is_kept_out = is_seen and not pairs and node.choose == "leftmost"
    if is_seen and (has_sink or is_kept_out):
        pairs = [*pairs, (circuit.at_bos, Form.of(Fraction(1, 2) if has_sink else -1))]
    if circuit.max_length is None and place is not None and pairs:
        raise lowering.needs_length(node, "how far a match outweighs the place")
    if circuit.max_length is None and node.choose == "mean" and weighting == "softmax":
        raise lowering.needs_length(node, "how sharp the scores are")
    return Match(
        keys=tuple(key for key, _ in pairs),
        queries=tuple(query for _, query in pairs),
        choose=node.choose,
        mask=node.mask,
        place=place,
        scale=Fraction(1 if place is None else 2 * circuit.reach),
    )


def _pairs(lowering: Lowering, node: Select) -> list[tuple[Form, Form]]:
    """Keys and queries, as many of each, whose products sum to 1 where they are equal, else 0."""
    keys, queries, _ = node.children
    name = lowering.name(node)
    if keys == queries == _TRUE:
        return []
    if queries == _TRUE:
        values: Sequence[Any] = (True,)
    elif keys.type.values is None or queries.type.values is None:
        unlisted = keys if keys.type.values is None else queries
        raise lowering.refuse(
            unlisted,
            "keys and queries have finitely many known values",
            received="a number that has others",
            remedy="look up a position by its number with lookup, or compare it with constants",
        )
    else:
        values = [value for value in queries.type.values if value in keys.type.values]
    return [
        (
            lowering.quiet(_equals(lowering, keys, value), name),
            Form.of(1) if queries == _TRUE else _equals(lowering, queries, value),
        )
        for value in values
    ]


def _equals(lowering: Lowering, node: Node, value: Any) -> Form:
    """[the Boolean, category or number of listed values is this value]."""
    if isinstance(node.type, Boolean | Category):
        return lowering.literal(node, value)
    name = f"{lowering.name(node)} = {value}"
    columns = lowering.by_symbol(node)
    if columns is not None:
        return lowering.embedded([each == value for each in columns], name)
    form = lowering.number(node) - value
    gaps = [abs(each - value) for each in node.type.values or () if each != value]
    zone = power_of_two_at_most(Fraction(min(gaps, default=1)))
    return 1 - lowering.step(form, zone, name) - lowering.step(-form, zone, name)


def _length(lowering: Lowering, node: Node) -> Form:
    """n: twice the mean of the positions, BOS being at 0; or the last position."""
    circuit = lowering.circuit
    place = lowering.feature("i", node)
    if lowering.options.weighting == "rightmost-hard":
        return lowering.add(Fetched(Match((), (), "rightmost", "none"), place), "n")
    mean = lowering.add(Fetched(Uniform("none"), place), "mean of i")
    return mean * 2 if circuit.bos else mean * 2 - 1


def _position(lowering: Lowering, node: Position, unit: Unit) -> Form:
    """A feature; i/D and n/D are means of ones."""
    if unit != ONE:
        return lowering.unit(("mean", unit[1]))
    return _length(lowering, node) if node.name == "n" else lowering.feature(node.name, node)


Channel: TypeAlias = "Callable[[Lowering, Any], Callable[[Form], Form]]"
"""For a kind of subexpression that fetches, what it makes of a value that is 0 by default."""

CHANNELS: Mapping[type[Node], Channel] = {Shift: _shift, Lookup: _lookup, Select: _select}


def _channel(lowering: Lowering, node: Any) -> Callable[[Form], Form]:
    made: Callable[[Form], Form] = lowering._once(
        "channel", node, lambda each: CHANNELS[type(each)](lowering, each)
    )
    return made


def _values(node: Any) -> Node:
    """What is fetched."""
    return node.children[2 if isinstance(node, Select) else 0]  # type: ignore[no-any-return]


def _fetched_bit(lowering: Lowering, node: Any) -> Form:
    default = int(node.default)
    return default + _channel(lowering, node)(lowering.boolean(_values(node)) - default)


def _fetched_literal(lowering: Lowering, node: Any, value: Any) -> Form:
    default = int(node.default == value)
    return default + _channel(lowering, node)(lowering.literal(_values(node), value) - default)


def _fetched_number(lowering: Lowering, node: Any, _unit: Unit) -> Form:
    default = Fraction(node.default)
    return default + _channel(lowering, node)(lowering.number(_values(node)) - default)


# The table


@dataclass(frozen=True)
class Rule:
    """What a kind of subexpression becomes, of each type that it can have.

    Attributes:
        boolean, loosely, literal, number: as the methods of `Lowering`.
        units: the units of the number.

    """

    boolean: Callable[[Lowering, Any], Form] | None = None
    loosely: Callable[[Lowering, Any], Form | None] | None = None
    literal: Callable[[Lowering, Any, Any], Form] | None = None
    number: Callable[[Lowering, Any, Unit], Form] | None = None
    units: Callable[[Lowering, Any], tuple[Unit, ...] | None] = lambda _lowering, _node: (ONE,)


def _units_of_children(lowering: Lowering, node: Node) -> tuple[Unit, ...] | None:
    return lowering.common_units(node.children)


_FETCHING = Rule(boolean=_fetched_bit, literal=_fetched_literal, number=_fetched_number)

RULES: Mapping[type[Node], Any] = {
    Token: Rule(literal=_constant_literal),
    Constant: Rule(literal=_constant_literal),
    Position: Rule(number=_position, units=_position_units),
    Table: Rule(
        boolean=lambda lowering, node: _table_bit(lowering, node, True),
        loosely=_table_loosely,
        literal=_table_bit,
        number=_table_number,
        units=lambda _lowering, _node: None,
    ),
    Linear: Rule(number=_linear, units=_units_of_children),
    PiecewiseLinear: Rule(number=_piecewise, units=_units_of_children),
    Product: Rule(number=_product),
    Comparison: Rule(boolean=_comparison),
    Where: Rule(
        literal=_where_literal,
        number=_where_number,
        units=lambda lowering, node: lowering.common_units(node.children[1:]),
    ),
    Mean: Rule(number=_mean, units=_mean_units),
    Count: Rule(number=_count, units=_count_units),
    Exists: Rule(boolean=_exists),
    Shift: _FETCHING,
    Lookup: _FETCHING,
    Select: _FETCHING,
}
"""By the kind of the subexpression. Tokens, and what follows from them alone, are embedded."""
