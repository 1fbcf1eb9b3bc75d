"""Rules for functions of whole numbers: a step for each value at which a function changes.

Let f be a function of a whole number x that lies between v₀ and v₁. Then

    f(x) = f(v₀) + Σ (f(v) − f(v − 1)) [x ≥ v],

a sum over the v from v₀ + 1 to v₁ at which f changes. Each step takes two hidden units.

A number from −n to n that heads compute is looked up instead. Every position i computes f(i) and
f(−i) by steps of i, in which nothing rounds. One head finds the position i = x, another i = −x. For
x ≤ 0 the first head finds BOS, at 0, and for x ≥ 0 the second head does. Let g(i) = f(i) − f(0)
and h(i) = f(−i) − f(0) at positions, and g = h = 0 at BOS. Then f(x) is f(0) plus the values of g
and h that the two heads fetch. The error of a step of x grows with |x|, and the error of a sum with
its number of steps, but a lookup has the error of a single value.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.circuit import At, Fetched, Form, total
from transformist.compiler.lower.builder import AS_IT_IS, Builder, Scale
from transformist.compiler.lower.positionwise import POINTWISE
from transformist.compiler.lower.rule import Asking, Ranked, Rule
from transformist.compiler.uncompilable import Uncompilable
from transformist.errors import UndefinedValue
from transformist.language.leaves import Position
from transformist.language.node import Node, different
from transformist.language.pointwise import Linear, PiecewiseLinear
from transformist.language.types import Ends, Number, Polynomial
from transformist.language.whole_maps import Division, WholeMap
from transformist.model import Mask

MOST_STEPS = 4096
"""Most changes in the value of a function that is computed by steps of a number.

A step takes two hidden units. The error grows with the number of steps, so float32 and float64 stop
at far fewer: float32 keeps a function of k + n with up to 260 changes, and this limit saves the
time to build models that no format keeps.
"""

MOST_POINTS = 2**20
"""Most values of a number at which a function is evaluated; a product of counts has N² + 1."""

WholeFunction: TypeAlias = "WholeMap | Division"

Values: TypeAlias = "Mapping[int, Fraction]"
"""The values of a function at consecutive whole numbers."""


def function_of(
    ask: Asking, build: Builder, x: Node, f: Callable[[int], Fraction | int], name: str
) -> Form:
    """f(x), for a node x that is a whole number.

    Args:
        ask: what other nodes become.
        build: the builder.
        x: the node; its type has ends.
        f: the function, defined at each value that x can have.
        name: the name of the result.

    """
    named = x
    x, f = _of_innermost(build, x, f)
    values = {point: Fraction(value) for point, value in _values(build, x, f, named).items()}
    mask = _mask(build, _ends(x))
    needs_lookup = not _is_place(x) and mask is not None and _finds_places(build)
    if mask is not None and needs_lookup:
        return _looked_up(ask, build, x, values, mask, name)
    if _is_place(x) or _finds_places(build):
        form, scale = ask.number(x), AS_IT_IS
    else:
        form, scale = ask.in_some_scale(x)
    if not _is_place(x):
        changes = sum(before != after for before, after in itertools.pairwise(values.values()))
        if changes > MOST_STEPS:
            limit = f"the value of a function of a number must change at most {MOST_STEPS:,} times"
            raise _too_many(build, named, limit, f"{changes:,} changes")
    one = build.one_in(scale)
    zone = Fraction(1) if scale == AS_IT_IS else build.zone(x, form - one)
    return _by_steps(build, form, one, zone, values, build.name(x))


def _of_innermost(
    build: Builder, x: Node, f: Callable[[int], Fraction | int]
) -> tuple[Node, Callable[[int], Fraction | int]]:
    """The same function of the innermost number: of k with v ↦ f(2 v + 1), for f of x = 2 k + 1."""
    while len(x.children) == 1 and type(x) in _OF_ONE and _has_values(build, x.children[0]):
        x, f = x.children[0], functools.partial(_composed, f, x)
    return x, f


def _composed(f: Callable[[int], Fraction | int], g: Node, value: int) -> Fraction | int:
    (inner,) = g.meaning((None,), [value])
    return f(inner)


def _has_values(build: Builder, x: Node) -> bool:
    """True for a whole number that can have finitely many values."""
    ends = x.type.whole if isinstance(x.type, Number) else None
    return ends is not None and (build.circuit.max_length is not None or ends.is_constant)


def _ends(x: Node) -> Ends:
    # WholeMap and Division require a whole number.
    assert isinstance(x.type, Number) and x.type.whole is not None
    return x.type.whole


def _values(build: Builder, x: Node, f: Callable[[int], Any], named: Node) -> dict[int, Any]:
    """The values of a function at each whole number that x can be.

    Raises:
        NoValueAtLength: if the function has no value at one of them. The refusal names the node
            `named`, to which the user applied the function.

    """
    ends, longest = _ends(x), build.circuit.max_length
    if longest is None and not ends.is_constant:
        raise build.needs_length(x, "the number of values of a whole number")
    points = ends.up_to(longest or 1)
    if points.stop - points.start > MOST_POINTS:  # len() takes no range of more than 2⁶³ numbers
        received = f"{points.stop - points.start:,} values"
        limit = f"a number that a function takes must have at most {MOST_POINTS:,} values"
        raise _too_many(build, named, limit, received)
    try:
        return {point: f(point) for point in points}
    except UndefinedValue as undefined:
        raise build.refuse_length(
            named,
            undefined.invariant,
            received=f"{undefined.received}, for max_length = {longest}",
            remedy=undefined.remedy,
        ) from None


def _too_many(build: Builder, named: Node, limit: str, received: str) -> Uncompilable:
    """The refusal of a function of a number that has too many values up to N."""
    return build.refuse_length(
        named,
        limit,
        received=f"{received} for max_length = {build.circuit.max_length}",
        remedy="give a smaller max_length; or take a remainder of at most 64 values, or a function "
        "of each count, first",
    )


def _mask(build: Builder, ends: Ends) -> str | None:
    """A mask of the target that leaves the position |x|; `None` if there is no such mask."""
    for last, mask in (
        (Polynomial(1, 0, 0), build.lookup_mask()),
        (Polynomial(0, 1, 0), Mask.NONE),
    ):
        if ends.hi.is_at_most(last) and ends.lo.times(-1).is_at_most(last):
            return mask if build.target.admits(mask) else None
    return None


def _is_place(x: Node) -> bool:
    """True for a number that is computed from i without a head, so that nothing rounds."""
    return all(
        (isinstance(node, Position) and node.name != "n") or type(node) in (*POINTWISE, *WHOLE)
        for node in different(x)[0].values()
    )


def _finds_places(build: Builder) -> bool:
    """True if the functions of the position that a lookup needs are allowed."""
    return build.positions is None or {"i", "i^2"} <= {*build.positions}


def _count_scale(ask: Asking, build: Builder, x: Node) -> Scale:
    """The scale 1/D of a count, if x is available in it and every row sees BOS; else 1."""
    if build.circuit.weighting == "rightmost-hard":
        return AS_IT_IS  # 1/D is a mean
    # The scale of strict-future is left out: BOS sees nothing, so 1/D is 0 there, and a proof could
    # not show that the index is a whole number at every row.
    wanted = (Scale("count", mask) for mask in (Mask.FUTURE, Mask.NONE))
    known = ask.scales(x) or ()
    return next((scale for scale in wanted if scale in known), AS_IT_IS)


def _by_steps(
    build: Builder, form: Form, one: Form, zone: Fraction, values: Values, name: str
) -> Form:
    """f(x) as the sum of its changes times [x ≥ v]; `form` and `one` are x and 1 in one scale."""
    # x − (v − 1) is at most 0 where x ≤ v − 1, and at least 1, the zone, where x ≥ v.
    first = min(values)
    parts = [Form.of(values[first])]
    for at in sorted(values)[1:]:
        change = values[at] - values[at - 1]
        if change:
            parts.append(build.step(form - one * (at - 1), zone, f"{name} >= {at}") * change)
    return total(parts)


def _looked_up(ask: Asking, build: Builder, x: Node, values: Values, mask: str, name: str) -> Form:
    """f(0) plus the values that the heads at x and at −x fetch."""
    build.require_sharpness(x)
    scale = _count_scale(ask, build, x)
    index, one = ask.number(x, scale), build.one_in(scale)
    place, square = build.feature("i", x), build.feature("i^2", x)
    # Where x is never 0, no head finds BOS, and any value does for f(0).
    base = values.get(0, values[min(values, key=abs)])
    found = Form.of(base)
    for sign in (1, -1):
        side = {sign * at: value - base for at, value in values.items() if sign * at > 0}
        if any(side.values()):
            head = At(index * sign, place, square, mask, one)
            value = _by_steps(build, place, Form.of(1), Fraction(1), side, build.name(x))
            called = name if sign > 0 else f"{name}, below 0"
            found += build.add(Fetched(head, build.quiet(value, called)), called)
    return found


# The rules


def _bit(build: Builder, form: Form, name: str) -> Form:
    """The form, or a step of it where its range is wider than 0 to 1, as of steps up and down."""
    within = build.circuit.span(form)
    is_bit = within.lo >= 0 and within.hi <= 1
    return form if is_bit else build.step(form, Fraction(1), name)


def _boolean(ask: Asking, build: Builder, node: WholeFunction) -> Form:
    name = build.name(node)
    return _bit(build, function_of(ask, build, node.children[0], node.at, name), name)


MOST_RANKED = 12
"""Most values that are told apart by rank.

A proof takes the steps for independent bits, and enumerates at most 2¹² combinations of them.
"""


def _literal(ask: Asking, build: Builder, node: WholeFunction, value: Any) -> Form:
    """1 where the value has rank k, else 0: its rank is at least 1, …, k, and not at least k + 1.

    For any bits t₁, t₂, …, even bits that belong to no rank, exactly one of ¬t₁, t₁ ∧ ¬t₂,
    t₁ ∧ t₂ ∧ ¬t₃, … is 1. So the weights alone prove that the node has exactly one of its values.
    """
    name, ranked = build.case(node, value), ask.rank(node)
    assert ranked is not None  # its rule has one
    rank, values = ranked
    if value not in values:
        return Form()
    if len(values) > MOST_RANKED:
        found = function_of(ask, build, node.children[0], lambda x: node.at(x) == value, name)
        return _bit(build, found, name)
    k = values.index(value)
    reached = [
        _bit(build, rank - (least - 1), f"{build.name(node)}: from {values[least]} on")
        for least in range(1, min(k + 2, len(values)))
    ]
    if k == 0:
        return 1 - total(reached)
    return _bit(build, total([*reached[:k], *(-each for each in reached[k:])]) - (k - 1), name)


def _number(ask: Asking, build: Builder, node: WholeFunction, _scale: Scale) -> Form:
    return function_of(ask, build, node.children[0], node.at, build.name(node))


def _rank(ask: Asking, build: Builder, node: WholeFunction) -> Ranked:
    """The rank of the value among the values that the node can have up to N."""
    x, name = node.children[0], build.name(node)
    reached = set(_values(build, x, node.at, x).values())
    values = tuple(v for v in node.type.values or sorted(reached) if v in reached)
    ranks = {value: k for k, value in enumerate(values)}
    # `function_of` may call this beyond the ends of x, on the wider ends of the numbers that x is
    # made of. x never has such a value, so any rank does.
    return function_of(ask, build, x, lambda point: ranks.get(node.at(point), 0), name), values


WHOLE: Mapping[type[Node], Rule[Any]] = {
    WholeMap: Rule(boolean=_boolean, literal=_literal, number=_number, rank=_rank),
    Division: Rule(literal=_literal, number=_number, rank=_rank),
}
"""The rules of functions of whole numbers."""

_OF_ONE = (Linear, PiecewiseLinear, WholeMap, Division)
"""Functions that may have one argument; a chain of these is taken as one function."""
