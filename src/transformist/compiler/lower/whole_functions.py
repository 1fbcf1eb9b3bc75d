"""Rules for functions of whole numbers: a step for each value at which a function changes.

Let f be a function of a whole number x that is one of v₀ < v₁ < … . Then

    f(x) = f(v₀) + Σ_j (f(v_j) − f(v_{j−1})) [x ≥ v_j],

where the terms with f(v_j) = f(v_{j−1}) are left out. A step takes two hidden units.

A count is the number of an admissible position, or 0, the number of BOS. So f is computed at every
position from its number i, where nothing rounds, and the head that finds the position looks it up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.circuit import Fetched, Form, total
from transformist.compiler.lower.builder import AS_IT_IS, Builder, Scale
from transformist.compiler.lower.means import at_count
from transformist.compiler.lower.rule import Asking, Rule
from transformist.errors import UndefinedValue
from transformist.language.across import Count
from transformist.language.leaves import Position
from transformist.language.node import Node
from transformist.language.types import Number
from transformist.language.whole_maps import Division, WholeMap
from transformist.rounding import power_of_two_at_most

WholeFunction: TypeAlias = "WholeMap | Division"

import os
HOW = os.environ.get("HOW", "lookup")

def of_whole(
    ask: Asking, build: Builder, x: Node, f: Callable[[int], Fraction | int | bool], name: str
) -> Form:
    """f(x) of a whole number x, by steps, or by a lookup of f(i)."""
    points = _points(build, x)
    if isinstance(x, Count) and HOW == "lookup":
        head = at_count(ask, build, x)
        value = _by_steps(build, build.feature("i", x), Form.of(1), points[1:], f, "i", Fraction(1))
        first = Fraction(f(points[0]))
        return first + build.add(Fetched(head, build.quiet(value - first, name)), name)
    form, scale = ask.in_some_scale(x)
    if os.environ.get("ASIS"): form, scale = ask.number(x), AS_IT_IS
    one = build.one_in(scale)
    zone = Fraction(1) if scale == AS_IT_IS else build.zone(x, form - one)
    return _by_steps(build, form, one, points, f, build.name(x), zone)


def _by_steps(build, form, one, points, f, name, zone) -> Form:
    parts = [Form.of(f(points[0]))]
    for before, at in itertools.pairwise(points):
        rise = Fraction(f(at)) - Fraction(f(before))
        if rise:
            parts.append(build.step(form - one * before, zone, f"{name} ≥ {at}") * rise)
    return total(parts)


def _points(build: Builder, x: Node) -> range:
    longest = build.circuit.max_length
    if longest is None:
        raise build.needs_length(x, "the number of values of a whole number")
    return x.type.whole.up_to(longest)


def _bit(build: Builder, form: Form, name: str) -> Form:
    within = build.circuit.span(form)
    if within.lo >= 0 and within.hi <= 1:
        return form
    return build.step(form, Fraction(1), name)


def _boolean(ask: Asking, build: Builder, node: WholeFunction) -> Form:
    name = build.name(node)
    return _bit(build, of_whole(ask, build, node.children[0], node.at, name), name)


def _literal(ask: Asking, build: Builder, node: WholeMap, value: Any) -> Form:
    name = build.case(node, value)
    found = of_whole(ask, build, node.children[0], lambda x: node.at(x) == value, name)
    return _bit(build, found, name)


def _number(ask: Asking, build: Builder, node: WholeFunction, _scale: Scale) -> Form:
    return of_whole(ask, build, node.children[0], node.at, build.name(node))


WHOLE: Mapping[type[Node], Rule[Any]] = {
    WholeMap: Rule(boolean=_boolean, literal=_literal, number=_number),
    Division: Rule(number=_number),
}
