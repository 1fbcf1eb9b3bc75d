"""Kinds of heads, read off the dot products of their queries and keys."""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.circuit import At, Circuit, Form, Head, Match, PositionFeature, Uniform, content
from transformist.model import Attention
from transformist.verify.certificate.affine import together
from transformist.verify.certificate.conditions import Pairs
from transformist.verify.certificate.refusals import uncertifiable


def attends(circuit: Circuit, head: Attention, pairs: Pairs, where: str) -> tuple[Head, Fraction]:
    """Return the kind of a head, and its sharpness 1/τ, from its queries and keys."""
    pairs = [(query, key) for query, key in pairs if query != Form() != key]
    if not pairs:
        if head.weighting.takes_one:
            choose = head.weighting.ties
            return Match((), (), choose, head.mask), Fraction(1)
        return Uniform(head.mask), Fraction(1)
    root = _root(head.W_Q.shape[0])
    square = circuit.find(PositionFeature("i^2"))
    if square is not None and any(square in key.factors for _, key in pairs):
        return _lookup(circuit, head, pairs, square, root, where)
    return _match(circuit, head, pairs, root, where)


def _root(size: int) -> Fraction:
    """Return √d_key, or a number less than 2⁻⁴⁰ above it where it is no power of two."""
    root = math.isqrt(size)
    if root**2 == size and not root & (root - 1):
        return Fraction(root)
    # r = ⌊√(size · 2⁸⁰)⌋ has r ≤ 2⁴⁰ √size < r + 1, so the quotient is above √size by at most 2⁻⁴⁰.
    # A root that is too large makes 1/τ too small, which is the safe side.
    return Fraction(math.isqrt(size << 80) + 1, 1 << 40)


def _lookup(
    circuit: Circuit, head: Attention, pairs: Pairs, square: int, root: Fraction, where: str
) -> tuple[Head, Fraction]:
    """Read scores a (2 q j − w j²), with forms q and w of the query, at the position j."""
    place = circuit.find(PositionFeature("i"))
    of_place = of_square = Form()
    for query, key in pairs:
        if place is None or not set(key.atoms) <= {place, square}:
            raise uncertifiable(
                "keys of a lookup must be a position and its square", f"{key}", where
            )
        of_place += query * key.factors.get(place, 0)
        of_square -= query * key.factors.get(square, 0)
    unit, scale = Form.of(1), of_square.constant
    if of_square.terms:
        unit, scale = of_square.normalized()
    if scale <= 0 or of_square != unit * scale or place is None:
        raise uncertifiable("the square of a position must lower a score", f"{of_square}", where)
    index = of_place * (Fraction(1, 2) / scale)
    return At(index, Form.atom(place), Form.atom(square), head.mask, unit), scale / root


def _match(
    circuit: Circuit, head: Attention, pairs: Pairs, root: Fraction, where: str
) -> tuple[Head, Fraction]:
    """Read scores c (D Σ k q ± j), k and q whole numbers, with D above N where positions count."""
    asked = [(query, key) for query, key in pairs if not query.is_constant]
    by_key = together(key * query.constant for query, key in pairs if query.is_constant)
    place, position = None, Fraction(0)
    for name in ("i", "i/n"):
        number = circuit.find(PositionFeature(name))
        if number is not None and number in by_key.factors:
            place, position = Form.atom(number), by_key.factors[number]
            by_key -= place * position
            break
    contents = [content([*query.factors.values(), query.constant]) for query, _ in asked]
    rest = content([*by_key.factors.values(), by_key.constant])
    choose = "mean"
    if place is not None:
        choose = "rightmost" if position > 0 else "leftmost"
    elif head.weighting.takes_one:
        choose = head.weighting.ties
    gap = content([*contents, rest]) * (2 if choose == "mean" else 1)  # matches differ by 1/2
    c = abs(position) or gap
    if place is not None and circuit.atoms[place.atoms[0]] == PositionFeature("i/n"):
        place, c = place * circuit.longest, c / Fraction(circuit.longest)
    scale = gap / c if gap else Fraction(1)
    keys = [(key, query * (1 / gap)) for query, key in asked]
    if rest:
        keys.append((by_key * (1 / rest), Form.of(rest / gap)))
    if choose == "mean" and root.denominator > 1:
        raise uncertifiable("√d_key must be a power of two", f"d_key = {head.W_Q.shape[0]}", where)
    chosen = (choose, head.mask, place, scale)
    return Match(tuple(k for k, _ in keys), tuple(q for _, q in keys), *chosen), c / root
