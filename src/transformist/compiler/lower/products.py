"""Products of two numbers of which one has no listed values: the other factor selects multiples.

Let k be a whole number from a to b, and let k − a = Σ w · bit be its binary code. Then

    k y = a y + Σ w · (bit y),

and bit y is a gate of two hidden units: with |y| ≤ M,

    bit y = ReLU(y + M (bit − 1)) − ReLU(−y + M (bit − 1)).

For bit = 1 this is ReLU(y) − ReLU(−y) = y. For bit = 0 both arguments are at most 0, so it is 0.
If k has listed values v, then k y = Σ v ([k = v] y), where [k = v] is 1 or 0, and k need not be
whole.

An error e of y adds at most 2 |e| to a gate, and an error d of the bit at most 2 M |d|. So the
product is off by up to 2 (b − a) (|e| + M max |d|), and by |a e|, beside its own rounding. The
circuit adds these up from its atoms, and the format must keep the margins that follow. A bit is a
step of a step, so d is a few u, with u the unit roundoff; then 2 (b − a) M d is of the order of the
rounding of the largest product itself.

y may come in any scale s, because the same gates turn s y into s k y. If k and y are whole, every
hidden unit is whole, and so is the product.
"""

from __future__ import annotations

import math

from transformist.circuit import Form, total
from transformist.compiler.lower.binary_code import code
from transformist.compiler.lower.builder import Builder, Scale
from transformist.compiler.lower.rule import Asking
from transformist.language.node import Node
from transformist.language.pointwise import Multiplication
from transformist.language.types import Number
from transformist.laws import INFINITY


def product(ask: Asking, build: Builder, node: Multiplication, scale: Scale) -> Form:
    """The product of two numbers, not both with listed values, times the scale."""
    k, y = factors(ask, build, node)
    name, form = build.name(node), ask.number(y, scale)
    values = k.type.values
    if values is not None:
        return total(
            build.gated(ask.literal(k, value), form, f"{name}: {build.case(k, value)}") * value
            for value in values
            if value != 0
        )
    number = ask.number(k)
    span = build.circuit.span(number)
    if span.diameter == INFINITY:
        raise build.needs_length(k, "the number of values of a factor")
    least, most = math.ceil(span.lo), math.floor(span.hi)
    bits = code(build, number - least, most - least + 1, build.name(k))
    gates = [build.gated(bit, form, f"{name}: bit") * weight for weight, bit in bits]
    return total([form * least, *gates])


def factors(ask: Asking, build: Builder, node: Multiplication) -> tuple[Node, Node]:
    """Return k and y: k has listed values, or else is the whole factor with the fewest values.

    Raises:
        Uncompilable: if neither factor has listed values or is whole.

    """
    x, y = node.children
    pairs = [(x, y), (y, x)]
    for pair in pairs:
        if pair[0].type.values is not None:
            return pair
    whole = [pair for pair in pairs if _has_known_ends(pair[0])]
    if not whole:
        whole = [pair for pair in pairs if build.circuit.is_whole(ask.number(pair[0]))]
    if not whole:
        raise build.refuse(
            node,
            "a factor of a product must be a whole number, such as a count or i, or have listed "
            "values",
            received="two numbers that need not be whole, such as means",
            remedy="multiply a mean by a count, or by a Boolean; compare a mean with constants "
            "first",
        )
    return min(whole, key=lambda pair: _count_of_values(build, pair[0]))


def _has_known_ends(node: Node) -> bool:
    return isinstance(node.type, Number) and node.type.whole is not None


def _count_of_values(build: Builder, node: Node) -> int:
    """The number of values up to N by the ends of the type; 0 if they are not known."""
    whole = node.type.whole if isinstance(node.type, Number) else None
    return len(whole.up_to(build.circuit.max_length or 1)) if whole is not None else 0
