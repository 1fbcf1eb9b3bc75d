"""Remainders of sums and products of whole numbers, from the remainders of their parts.

For whole numbers, with every % by the same c,

    (a x + b y + …) % c = (((a x) % c) + ((b y) % c) + …) % c,
    (a x y) % c = (a (x % c) (y % c)) % c.

The remainders of the terms are added two by two, which gives numbers from 0 to 2 (c − 1), and a
product is a table of at most c² rows, whatever N is. The sum and the product themselves have of the
order of N and N² values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from transformist.language.leaves import Constant
from transformist.language.node import Node
from transformist.language.pointwise import Linear, Multiplication
from transformist.language.tables import tabulated
from transformist.language.types import MOST_VALUES, Number, Polynomial
from transformist.language.whole_maps import Division, require_whole

Kept: TypeAlias = "Callable[[Node], Node]"
"""Records a new node of a program, and returns the first node that is equal to it."""


def remainder(number: Node, divisor: int, kept: Kept) -> Node:
    """Make x % c for a whole number x.

    Args:
        number: x.
        divisor: c, a whole number other than 0.
        kept: records each node that is made.

    Raises:
        InvalidValue: for a number that need not be whole or has no known bound.

    """
    require_whole(number)
    remainders: dict[int, Node] = {}
    # A loop, not a recursion: programs may be nested more deeply than Python's stack allows.
    waiting = [number]
    while waiting:
        node = waiting[-1]
        missing = [each for each in _factors(node, divisor) if id(each) not in remainders]
        waiting.extend(missing)
        if not missing:
            remainders[id(node)] = _remainder(waiting.pop(), divisor, kept, remainders)
    return remainders[id(number)]


def _factors(number: Node, divisor: int) -> list[Node]:
    """The factors of the products in a sum that is taken apart."""
    if _is_kept_together(number, divisor):
        return []
    terms, _ = _terms(number)
    return [each for term in terms if _is_product(term) for each in term.children]


def _is_kept_together(number: Node, divisor: int) -> bool:
    """True for a number that is not taken apart, because it has few values or can be looked up."""
    whole, n = require_whole(number), Polynomial(0, 1, 0)
    # A number from −n to n has its remainder looked up at a position: it is not taken apart.
    is_looked_up = whole.hi.is_at_most(n) and whole.lo.times(-1).is_at_most(n)
    return whole.is_constant or is_looked_up or abs(divisor) > MOST_VALUES


def _terms(number: Node) -> tuple[Mapping[Node, int], int]:
    """The terms of a sum with their factors, and the constant; sums within sums are taken apart."""
    terms: dict[int, tuple[Node, int]] = {}
    constant = 0
    waiting: list[tuple[Node, int]] = [(number, 1)]
    while waiting:
        node, factor = waiting.pop()
        if isinstance(node, Linear) and node.type.values is None and _is_whole(node):
            # An unlisted sum has ends only if its factors and its constant are whole.
            constant += factor * int(node.constant)
            inner = zip(node.children, node.factors, strict=True)
            waiting.extend((child, factor * int(own)) for child, own in inner)
        else:
            _, before = terms.get(id(node), (node, 0))
            terms[id(node)] = node, before + factor
    return dict(terms.values()), constant


def _is_product(node: Node) -> bool:
    """True for an unlisted product of whole numbers."""
    return type(node) is Multiplication and all(map(_is_whole, (node, *node.children)))


def _is_whole(node: Node) -> bool:
    return isinstance(node.type, Number) and node.type.whole is not None


def _remainder(number: Node, divisor: int, kept: Kept, remainders: Mapping[int, Node]) -> Node:
    """x % c, from the remainders of the factors of products in x."""
    if _is_kept_together(number, divisor):
        return _divided(number, divisor, kept)
    terms, constant = _terms(number)
    parts = [
        _part(term, factor % divisor, divisor, kept, remainders)
        for term, factor in terms.items()
        if factor % divisor
    ]
    if not parts:
        return kept(Constant((), Number, constant % divisor))
    while len(parts) > 2:
        # Pairs, not one after the other: the depth is the logarithm of the number of terms.
        parts = [_sum(parts[k : k + 2], 0, divisor, kept) for k in range(0, len(parts), 2)]
    return _sum(parts, constant % divisor, divisor, kept)


def _sum(parts: list[Node], constant: int, divisor: int, kept: Kept) -> Node:
    """The remainder of the sum of a constant and one or two remainders."""
    if len(parts) == 1 and not constant:
        return parts[0]
    total = Linear(tuple(parts), (1,) * len(parts), constant)
    return _divided(kept(total), divisor, kept)


def _part(
    term: Node, factor: int, divisor: int, kept: Kept, remainders: Mapping[int, Node]
) -> Node:
    """(a x) % c for one term a x of a sum."""
    if not _is_product(term):
        # The factor is below c already: (a x) % c = ((a % c) x) % c.
        multiple = term if factor == 1 else kept(Linear((term,), (factor,), 0))
        return _divided(multiple, divisor, kept)
    # The same factor twice is one argument of the table.
    x, y = (remainders[id(each)] for each in term.children)
    if x is y:
        return kept(tabulated((x,), lambda rest: factor * rest * rest % divisor))
    return kept(tabulated((x, y), lambda rest, other: factor * rest * other % divisor))


def _divided(number: Node, divisor: int, kept: Kept) -> Node:
    """x % c as one function of x."""
    if number.type.values is not None:
        return kept(tabulated((number,), lambda value: value % divisor))
    return kept(Division((number,), "%", divisor))
