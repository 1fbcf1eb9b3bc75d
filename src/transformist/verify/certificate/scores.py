"""What a head attends to, from the dot products of its queries and keys."""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.compiler.circuit import Circuit, Feature
from transformist.compiler.forms import Form
from transformist.compiler.heads import At, Head, Match, Uniform
from transformist.laws import Grid
from transformist.model import Attention
from transformist.verify.certificate.reading import (
    common,
    feature,
    is_beneath,
    one_over,
    read,
    together,
    unlawful,
)


def attends(
    circuit: Circuit, state: list[Form], head: Attention, where: str
) -> tuple[Head, Fraction]:
    """What a head is, and its 1/τ, from the dot products of its queries and keys."""
    queries = read(head.W_Q, head.b_Q, state)
    keys = read(head.W_K, head.b_K, state)
    pairs = [(q, k) for q, k in zip(queries, keys, strict=True) if not k.is_constant]
    by_key = together(key * query.constant for query, key in pairs if query.is_constant)
    asked = [(query, key) for query, key in pairs if not query.is_constant and query != Form()]
    if by_key.is_constant and not asked:
        if head.weighting in ("rightmost-hard", "leftmost-hard"):
            choose = head.weighting.removesuffix("-hard")
            return Match((), (), choose, head.mask), Fraction(1)
        return Uniform(head.mask), Fraction(1)
    root = _root(head.W_Q.shape[0])
    square = feature(circuit, "i^2")
    if square is not None and any(square in key.factors for _, key in (*asked, (None, by_key))):
        return _lookup(circuit, head, asked, by_key, square, root, where)
    return _match(circuit, head, asked, by_key, root, where)


def _root(size: int) -> Fraction:
    """√d_key, or a number less than 2⁻⁴⁰ above it where it is no power of two."""
    root = math.isqrt(size)
    if root**2 == size and not root & (root - 1):
        return Fraction(root)
    return Fraction(math.isqrt(size << 80) + 1, 1 << 40)


def _lookup(
    circuit: Circuit,
    head: Attention,
    asked: list[tuple[Form, Form]],
    by_key: Form,
    square: int,
    root: Fraction,
    where: str,
) -> tuple[Head, Fraction]:
    """Scores a (2 q j − w j²): of the place j a form of the query, and of its square another."""
    place = feature(circuit, "i")
    known = {place, square}
    of_place = of_square = Form()
    for query, key in [*asked, (Form.of(1), by_key)]:
        if place is None or not set(key.atoms) <= known:
            raise unlawful("keys of a lookup are a place and its square", f"{key}", where)
        of_place += query * key.factors.get(place, 0)
        of_square -= query * key.factors.get(square, 0)
    unit, scale = Form.of(1), of_square.constant
    if of_square.terms:
        unit, scale = of_square.normalized()
    if scale <= 0 or of_square != unit * scale or place is None:
        raise unlawful("the square of a place lowers a score", f"{of_square}", where)
    index = of_place * (Fraction(1, 2) / scale)
    at = At(index, Form.atom(place), Form.atom(square), head.mask, unit)
    whole = circuit.is_whole(index)
    if unit.terms:
        counts, grid = one_over(circuit, unit), circuit.grid(index)
        whole = counts is not None and grid == Grid(1, counts)
    if not whole:
        raise unlawful("what is looked up is a whole number", f"{index}", where)
    return at, scale / root


def _match(
    circuit: Circuit,
    head: Attention,
    asked: list[tuple[Form, Form]],
    by_key: Form,
    root: Fraction,
    where: str,
) -> tuple[Head, Fraction]:
    """Scores c (D Σ k q ± j), k and q whole numbers, with D above N where the place counts."""
    place, position = None, Fraction(0)
    for name in ("i", "i/n"):
        number = feature(circuit, name)
        if number is not None and number in by_key.factors:
            place, position = Form.atom(number), by_key.factors[number]
            by_key -= place * position
            break
    keys = [_content(circuit, key, where) for _, key in asked]
    queries = [_content(circuit, query, where) for query, _ in asked]
    rest = _content(circuit, by_key, where) if by_key.terms else (Form(), Fraction(0))
    products = [k * q for (_, k), (_, q) in zip(keys, queries, strict=True)]
    gap = common([*products, rest[1]])
    c = abs(position) or gap
    if place is not None and circuit.atoms[place.atoms[0]] == Feature("i/n"):
        place, c = place * circuit.longest, c / Fraction(circuit.longest)
    scale = gap / c if gap else Fraction(1)
    pairs = [
        (key, query * (product / gap))
        for (key, _), (query, _), product in zip(keys, queries, products, strict=True)
    ]
    if rest[1]:
        pairs.append((rest[0], Form.of(rest[1] / gap)))
    choose = "mean"
    if place is not None:
        choose = "rightmost" if position > 0 else "leftmost"
    elif head.weighting in ("rightmost-hard", "leftmost-hard"):
        choose = head.weighting.removesuffix("-hard")
    if choose == "mean" and root.denominator > 1:
        raise unlawful("√d_key is a power of two", f"d_key = {head.W_Q.shape[0]}", where)
    matched = Match(
        tuple(key for key, _ in pairs), tuple(q for _, q in pairs), choose, head.mask, place, scale
    )
    if place is not None and gap and scale < circuit.longest + _places_between(circuit, matched):
        raise unlawful(
            "matches outweigh the place, so that no two scores are equal",
            f"{scale} beside N = {circuit.longest}",
            where,
        )
    return matched, c / root


def _places_between(circuit: Circuit, head: Match) -> int:
    """By how much more than N a match has to count: 0 where the largest place differs by N − 1.

    Symbols have places from 1 to N, and BOS, where it is seen, has 0; it counts where it may match,
    or is not chosen for its place.
    """
    if not circuit.bos or head.mask == "strict-past":
        return 0
    return int(head.choose != "rightmost" or not is_beneath(circuit, head))


def _content(circuit: Circuit, form: Form, where: str) -> tuple[Form, Fraction]:
    """A form of whole numbers and the number that it was divided by."""
    content = common([*form.factors.values(), form.constant])
    whole = form * (1 / content)
    if not circuit.is_whole(whole):
        raise unlawful("keys and queries are whole numbers, times a factor", f"{form}", where)
    return whole, content
