"""Kinds of heads, read off the dot products of their queries and keys."""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.circuit import (
    At,
    Circuit,
    Form,
    Head,
    Match,
    PositionCode,
    PositionFeature,
    Uniform,
    content,
)
from transformist.model import Attention, Mask
from transformist.position_features import SIGN
from transformist.verify.certificate.affine import together
from transformist.verify.certificate.conditions import Pairs, code_of, longest_wave, waves_of
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
    if any({*key.atoms} & waves_of(circuit).keys() for _, key in pairs):
        return _coded(circuit, head, pairs, root, where)
    return _match(circuit, head, pairs, root, where)


def _coded(
    circuit: Circuit, head: Attention, pairs: Pairs, root: Fraction, where: str
) -> tuple[Head, Fraction]:
    """Read scores c S(q − j), S the inner product of a code of positions with itself.

    The index q is i + k, k, or k − i. The factor c follows from the query of the wavelength 2.
    """
    code = PositionCode(longest_wave(circuit, (key for _, key in pairs)) - 1)
    of_key = {atom: query for query, key in pairs for atom in key.atoms}
    is_constant = all(query.is_constant for query in of_key.values())
    slopes = (0,) if is_constant else (1, -1)

    def factor(key: str, wave: str) -> Fraction:
        """The factor of a wave, or a constant, in the query of a key."""
        of_query, of_key_wave = (circuit.find(PositionFeature(name)) for name in (wave, key))
        query = Form() if of_key_wave is None else of_key.get(of_key_wave, Form())
        if is_constant:
            return query.constant
        return Fraction(0) if of_query is None else query.factors.get(of_query, Fraction(0))

    shortest = factor(SIGN, SIGN)
    scale, residue = abs(shortest) / code.weights[0], int(shortest < 0)
    # Two numbers below L have the same residue modulo L/2: their codes are opposite.
    for place, (wavelength, (cosine, sine)) in enumerate(
        zip(code.wavelengths, code.waves, strict=True)
    ):
        if sine is not None:
            c, s = code.at(residue)[place]
            product = factor(cosine, cosine) * c + factor(sine, cosine) * s
            residue += wavelength // 2 if product < 0 else 0
    read = {(query, key) for query, key in pairs}
    for slope in slopes:
        index = slope, _offset(slope, residue, code.wavelengths[-1], head.mask)
        found = code_of(circuit, [key for _, key in pairs], index, head.mask)
        if found is not None and scale > 0 and read == {(q * scale, k) for q, k in found.scores}:
            return found, scale / root
    raise uncertifiable(
        "keys and queries must be codes of all wavelengths up to the longest", f"{pairs[0]}", where
    )


def _offset(slope: int, residue: int, longest: int, mask: Mask) -> int:
    """The offset of an index, from its residue modulo the longest wavelength.

    An index i + k under mask future has k ≤ 0. Without a mask |k| is below half of the wavelength,
    as |k| < N and N + |k| ≤ L. An index k − i has k from 2 to L + 1.
    """
    if slope < 0:
        return residue if residue > 1 else residue + longest
    from_half = 0 if mask.is_causal else longest // 2
    return residue - longest if slope and residue > from_half else residue


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
    # The score is p j − s j² with p = 2 a q and s = a w: q is p/(2 a).
    index = of_place * (Fraction(1, 2) / scale)
    return At(index, Form.atom(place), Form.atom(square), head.mask, unit), scale / root


def _match(
    circuit: Circuit, head: Attention, pairs: Pairs, root: Fraction, where: str
) -> tuple[Head, Fraction]:
    """Read scores c (D Σ k q ± j), k and q whole numbers, with D above N where positions count."""
    # A constant key adds the same to all scores of a query.
    lowered = together(query * -key.constant for query, key in pairs if key.is_constant)
    pairs = [(query, key) for query, key in pairs if not key.is_constant]
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
    # c is what one place counts. The other terms are sums of products of whole numbers with factors
    # whose greatest common divisor is `gap`: two of them that differ do so by D = gap/c places or
    # more.
    c = abs(position) or gap
    if not c:
        raise uncertifiable("scores of a query must not all be the same constant", "0", where)
    if place is not None and circuit.atoms[place.atoms[0]] == PositionFeature("i/n"):
        place, c = place * circuit.longest, c / Fraction(circuit.longest)
    scale = gap / c if gap else Fraction(1)
    keys = [(key, query * (1 / gap)) for query, key in asked]
    if rest:
        keys.append((by_key * (1 / rest), Form.of(rest / gap)))
    if choose == "mean" and root.denominator > 1:
        raise uncertifiable("√d_key must be a power of two", f"d_key = {head.W_Q.shape[0]}", where)
    chosen = (choose, head.mask, place, scale, lowered * (1 / c))
    return Match(tuple(k for k, _ in keys), tuple(q for _, q in keys), *chosen), c / root
