"""Rules for what is computed at each position: tables, sums, functions, comparisons, choices.

Where such a subexpression follows from the symbol alone, it is embedded, and no rule is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from transformist.circuit import Form, total
from transformist.compiler.lower.builder import AS_IT_IS, Builder, Scale
from transformist.compiler.lower.fetching import own_default
from transformist.compiler.lower.products import factors, product
from transformist.compiler.lower.rule import Asking, Rule, Scales, by_steps
from transformist.language.leaves import Constant, Token
from transformist.language.node import Node
from transformist.language.pointwise import (
    Choice,
    Comparison,
    Linear,
    Multiplication,
    PiecewiseLinear,
    Table,
    slopes,
)

# Tables of Booleans and categories


def _rows_with(node: Table, value: Any, *, equal: bool) -> list[tuple[Any, ...]]:
    values = [child.type.values or () for child in node.children]
    arguments = itertools.product(*values)
    return [
        row for row, given in zip(arguments, node.rows, strict=True) if (given == value) == equal
    ]


def _table_boolean(ask: Asking, build: Builder, node: Table) -> Form:
    return _table(ask, build, node, True, build.name(node))


def _table_literal(ask: Asking, build: Builder, node: Table, value: Any) -> Form:
    return _table(ask, build, node, value, build.case(node, value))


def _table(ask: Asking, build: Builder, node: Table, value: Any, name: str) -> Form:
    """[the table has this value], as a sum over the rows that do, or 1 less that of the others."""
    rows = _rows_with(node, value, equal=True)
    # One hidden unit a row: take the smaller half of the table.
    if 2 * len(rows) <= len(node.rows):
        return total(_row(ask, build, node, row, name) for row in rows)
    others = _rows_with(node, value, equal=False)
    return 1 - total(_row(ask, build, node, row, f"not {name}") for row in others)


def _row(ask: Asking, build: Builder, node: Node, row: tuple[Any, ...], name: str) -> Form:
    asked = [each for each in zip(node.children, row, strict=True) if not ask.always(*each)]
    if len(asked) == 1:
        return ask.literal(*asked[0])
    return build.conjunction(_row_loosely(ask, node, row), name)


def _row_loosely(ask: Asking, node: Node, row: tuple[Any, ...]) -> Form:
    literals = [
        ask.loosely(child) if value is True else ask.literal(child, value)
        for child, value in zip(node.children, row, strict=True)
    ]
    # All m literals hold: m − (m − 1) = 1. Otherwise the sum of the literals is at most m − 1, and
    # the form is at most 0.
    return total(literals) - (len(row) - 1)


def _table_loosely(ask: Asking, _build: Builder, node: Table) -> Form | None:
    rows = _rows_with(node, True, equal=True)
    return _row_loosely(ask, node, rows[0]) if len(rows) == 1 else None


def _table_number(ask: Asking, build: Builder, node: Table, scale: Scale) -> Form:
    values = [value for value in dict.fromkeys(node.rows) if value]
    bits = [_table_literal(ask, build, node, value) for value in values]
    if scale != AS_IT_IS:
        # In a scale s the number v [row] is v (s where the row holds): a gate of s, which is at
        # most 1.
        bits = [build.gated(bit, build.one_in(scale), build.name(node)) for bit in bits]
    return total(bit * value for bit, value in zip(bits, values, strict=True))


def _all_scales(_ask: Asking, _build: Builder, _node: Table) -> Scales:
    return None


# Functions of numbers


def _scales_of_children(ask: Asking, _build: Builder, node: Node) -> Scales:
    return ask.common_scales(node.children)


def _linear(ask: Asking, build: Builder, node: Linear, scale: Scale) -> Form:
    parts = [
        ask.number(child, scale) * factor
        for child, factor in zip(node.children, node.factors, strict=True)
        if factor
    ]
    return total([*parts, build.one_in(scale) * node.constant] if node.constant else parts)


def _piecewise(ask: Asking, build: Builder, node: PiecewiseLinear, scale: Scale) -> Form:
    x = ask.number(node.children[0], scale)
    return _interpolated(build, x, node.knots, node.values, node.ends, scale, build.name(node))


def _interpolated(
    build: Builder,
    x: Form,
    knots: Sequence[Any],
    values: Sequence[Any],
    ends: tuple[Any, Any],
    scale: Scale,
    name: str,
) -> Form:
    """A line, and a ReLU for each change of its slope."""
    one = build.one_in(scale)
    pieces = (ends[0], *slopes(tuple(knots), tuple(values)), ends[1])
    # f(x) = v₀ + s₀ (x − k₀) + Σ (sⱼ₊₁ − sⱼ) ReLU(x − kⱼ), s₀ the slope below the first knot k₀.
    parts = [one * values[0], (x - one * knots[0]) * ends[0]]
    for knot, (before, after) in zip(knots, itertools.pairwise(pieces), strict=True):
        if after != before:
            parts.append(build.relu(x - one * knot, name) * (after - before))
    return total(parts)


def _product(ask: Asking, build: Builder, node: Multiplication, scale: Scale) -> Form:
    """x y = ((x + y)² − x² − y²)/2 for listed values, the squares interpolated at these."""
    x, y = node.children
    if x.type.values is None or y.type.values is None:
        return product(ask, build, node, scale)
    forms = [ask.number(each) for each in (x, y)]
    values: list[Any] = [each.type.values or () for each in (x, y)]
    sums = sorted({a + b for a, b in itertools.product(*values)})
    squares = [
        _square(build, form, listed, build.name(node))
        for form, listed in ((total(forms), sums), *zip(forms, values, strict=True))
    ]
    return (squares[0] - squares[1] - squares[2]) * Fraction(1, 2)


def _product_scales(ask: Asking, build: Builder, node: Multiplication) -> Scales:
    if all(child.type.values is not None for child in node.children):
        return (AS_IT_IS,)
    scales = ask.scales(factors(ask, build, node)[1])
    # The scale 1/D, in which a count is rounded, comes last here: the count itself is whole, and
    # its gates do not round.
    return scales and tuple(sorted(scales, key=lambda scale: scale.kind == "count"))


def _square(build: Builder, x: Form, values: Sequence[Any], name: str) -> Form:
    if len(values) == 1:
        return Form.of(values[0] ** 2)
    squared = [value**2 for value in values]
    rises = slopes(tuple(values), tuple(squared))
    return _interpolated(build, x, values, squared, (rises[0], rises[-1]), AS_IT_IS, name)


def _function_literal(
    ask: Asking, build: Builder, node: Linear | PiecewiseLinear | Multiplication, value: Any
) -> Form:
    """1 where a function of listed numbers has this value, else 0.

    There are two ways. A sum over the rows of arguments that give the value takes a hidden unit for
    each row, and does not depend on how close the values are. Steps on each side of the value take
    four hidden units, two of them shared with each neighbouring value; they are taken for several
    arguments that have more than twice as many rows as there are values.
    """
    values = [child.type.values or () for child in node.children]
    arguments = list(itertools.product(*values))
    if len(node.children) > 1 and len(arguments) > 2 * len(node.type.values or ()):
        return by_steps(ask, build, node, value)
    found = node.meaning((), *zip(*arguments, strict=True))
    rows = [row for row, given in zip(arguments, found, strict=True) if given == value]
    return total(_row(ask, build, node, row, build.case(node, value)) for row in rows)


# Comparisons with 0


def _comparison(ask: Asking, build: Builder, node: Comparison) -> Form:
    """A comparison by steps above and below 0."""
    child, name = node.children[0], build.name(node)
    form, _ = ask.in_some_scale(child)
    within = build.circuit.span(form)
    above = below = Form()
    if within.hi > 0 and node.relation not in ("<", ">="):
        above = build.step(form, build.zone(child, form), f"{name}: above")
    if within.lo < 0 and node.relation not in (">", "<="):
        below = build.step(-form, build.zone(child, form), f"{name}: below")
    return {
        ">": above,
        "<": below,
        ">=": 1 - below,
        "<=": 1 - above,
        "!=": above + below,
        "==": 1 - above - below,
    }[node.relation]


_SIDES = {">": (1, -1), ">=": (1, 1), "<": (-1, -1), "<=": (-1, 1)}
"""For a comparison with 0, the sign of the number, and that of half its separation."""


def _comparison_parted(
    ask: Asking, build: Builder, node: Comparison
) -> tuple[Form, Fraction] | None:
    """The number itself, moved by half its separation."""
    if node.relation not in _SIDES:
        return None
    child = node.children[0]
    form, _ = ask.in_some_scale(child)
    if form.is_constant:
        return None
    sign, side = _SIDES[node.relation]
    # The number is a multiple of its separation, or at least as far from 0. Moved by half of it, it
    # is nowhere 0 and keeps its sign, which is all that a read-out compares.
    half = build.zone(child, form) / 2
    return form * sign + half * side, half


# Choices


def _where_number(ask: Asking, build: Builder, node: Choice, scale: Scale) -> Form:
    own = own_default(ask, build, node)
    if own is not None and scale == AS_IT_IS:
        return own(ask.number(node.children[2]))
    condition, x, y = node.children
    name = build.name(node)
    bit = ask.boolean(condition)
    one, other = ask.number(x, scale), ask.number(y, scale)
    return other + build.gated(bit, one - other, name)


def _where_literal(ask: Asking, build: Builder, node: Choice, value: Any) -> Form:
    own = own_default(ask, build, node)
    if own is not None:
        return own(ask.literal(node.children[2], value))
    condition, x, y = node.children
    name = build.case(node, value)
    # Exactly one of `bit` and 1 − `bit` is 1, so exactly one of the two terms can be.
    bit = ask.boolean(condition)
    return total(
        chosen
        if ask.always(each, value)
        else build.conjunction(ask.literal(each, value) + chosen - 1, name)
        for chosen, each in ((bit, x), (1 - bit, y))
    )


def _where_scales(ask: Asking, _build: Builder, node: Choice) -> Scales:
    return ask.common_scales(node.children[1:])


POINTWISE: Mapping[type[Node], Rule[Any]] = {
    Token: Rule(),
    Constant: Rule(),
    Table: Rule(
        boolean=_table_boolean,
        loosely=_table_loosely,
        literal=_table_literal,
        number=_table_number,
        scales=_all_scales,
    ),
    Linear: Rule(literal=_function_literal, number=_linear, scales=_scales_of_children),
    PiecewiseLinear: Rule(literal=_function_literal, number=_piecewise, scales=_scales_of_children),
    Multiplication: Rule(literal=_function_literal, number=_product, scales=_product_scales),
    Comparison: Rule(boolean=_comparison, parted=_comparison_parted),
    Choice: Rule(literal=_where_literal, number=_where_number, scales=_where_scales),
}
"""The rules of what is computed at each position. Tokens and constants are always embedded."""
