"""Representations of Booleans, categories and integers, and what takes one to another: 3.1 to 3.3.

`tf.boolean_representations()` is Table 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction as F

import numpy as np

from transformist.arithmetic import Arithmetic, Exact
from transformist.catalogue.attention import HARD
from transformist.catalogue.positions import almost_orthogonal, layernorm_hash
from transformist.catalogue.safe_lengths import longest, quadratic_length
from transformist.claims import FunctionClaim, SequenceClaim, everywhere, recipe, rounded_once
from transformist.domains import (
    BooleanRepresentation,
    Case,
    Column,
    Domain,
    Feature,
    Listed,
    Query,
    Sequences,
    boolean_representations,
)
from transformist.errors import InvalidValue, UnknownName
from transformist.model import Attention, FeedForward, LayerNorm, rationals
from transformist.position_features import PositionFunction
from transformist.rounding import float_format_of, power_of_two_at_most
from transformist.rounding.float_format import storing_roundoff
from transformist.rounding.powers import SLACK

# 3.1: Booleans

_TABLE = boolean_representations()
_BOOLEANS = {each.name: each for each in _TABLE}


def _boolean(name: str) -> BooleanRepresentation:
    """Return the Boolean representation of this name.

    Raises:
        UnknownName: when there is none.

    """
    if name not in _BOOLEANS:
        raise UnknownName.among("Boolean representation", name, _BOOLEANS, "convert-boolean")
    return _BOOLEANS[name]


def obstacle(source: BooleanRepresentation, target: BooleanRepresentation) -> str:
    """Return the reason why no continuous map takes false to false and true to true, or "".

    Where the closures of the source's sets do not meet, one is: some continuous h is 1 on false and
    0 on true, and false′ h + true′ (1 − h) is such a map for members false′ and true′ of the
    target. Else they meet in one point p (`BooleanRepresentation.meeting`), to which a sequence of
    each set converges. The image of p is then the limit of both sequences' images: it lies in the
    closures of both sets of the target, in one point r again. If p is false, so must r be, and if p
    is true, likewise. These conditions suffice in Table 4: there p and r are 0, the sets of source
    and target are opposite half-lines from 0, and a linear map takes them to each other.

    Example:
        >>> table = {each.name: each for each in boolean_representations()}
        >>> obstacle(table["scaled-pair"], table["pair"])
        'the sets of scaled-pair come as near to each other as one likes, those of pair do not'

    """
    p, r = source.meeting, target.meeting
    if p is None:
        return ""
    if r is None:
        return (
            f"the sets of {source.name} come as near to each other as one likes, those of "
            f"{target.name} do not"
        )
    for name, here, there in (
        ("false", source.false, target.false),
        ("true", source.true, target.true),
    ):
        if p in here and r not in there:
            return (
                f"0 is {name} in {source.name} and a limit of the other set, and no {name} of "
                f"{target.name} is one"
            )
    return ""


def _require_continuous(source: BooleanRepresentation, target: BooleanRepresentation) -> None:
    why = obstacle(source, target)
    if why:
        targets = [each.name for each in _TABLE if not obstacle(source, each)]
        sources = [each.name for each in _TABLE if not obstacle(each, target)]
        raise InvalidValue(
            "source and target must have a continuous map between them, such as a network: none "
            f"takes the Booleans of {source.name} to those of {target.name}: {why}",
            received=f"source = {source.name}, target = {target.name}",
            where="convert-boolean",
            remedy=f"for this source choose the target from {', '.join(targets)}; "
            f"for this target the source from {', '.join(sources)}",
        )


def _converted(*x: F, source: str, target: str) -> list[F]:
    """Return false for false, true for true; of size 1 or, without a gap, of the size of x."""
    here, there = _boolean(source), _boolean(target)
    side = there.false if x in here.false else there.true
    return list(side.of_size(F(1) if here.minimum_gap else max(map(abs, x))))


@recipe(
    "convert-boolean",
    section="3.1",
    claim=FunctionClaim(
        statement="false to false, true to true: to the member of the target whose largest "
        "coordinate has magnitude 1 (or is 0, if all are 0) where the source has a minimum gap, "
        "elsewhere to that whose largest coordinate has the magnitude of the source's",
        reference=_converted,
        domain=lambda *, source: _boolean(source),
        exact_on=everywhere,
        exact_on_statement="all inputs",
        variants=tuple(
            {"source": source.name, "target": target.name}
            for source in _TABLE
            for target in _TABLE
            if not obstacle(source, target)
        ),
    ),
    sources=(
        f"the representations are {', '.join(f'{e.name} ({e.false} / {e.true})' for e in _TABLE)}",
        "Table 4 is tf.boolean_representations(), its properties computed: pair has all four, "
        "and the text says that no representation has all the properties one wants",
        "the false of pair and scaled-pair is that of the text; the table exchanges the signs",
    ),
    errata=("boolean-pair-signs", "boolean-all-properties"),
)
def convert_boolean(source: str = "zero-one", target: str = "pair") -> FeedForward:
    """Map false′ h + true′ (1 − h), h = ReLU(1 − z), if the source has a gap; else a linear map.

    In every source with a gap, false is a single point p. Let q be the point of true nearest to p,
    and u = q − p. As true is convex, z = u · (x − p)/|u|² is 0 at p and at least 1 on true, so h is
    1 on false and 0 on true.

    Raises:
        UnknownName: for a representation that does not exist.
        InvalidValue: where no continuous map takes the one to the other, as `obstacle` says.

    """
    here, there = _boolean(source), _boolean(target)
    _require_continuous(here, there)
    # Sources without a gap are half-lines from 0, which a linear map takes to the target's.
    if not here.minimum_gap:
        return _along(here.true.of_size(F(1)), there.true.of_size(F(1)))
    # Where there is a gap, false is a single point in every row of Table 4, whatever size is asked
    # for.
    p = here.false.of_size(F(1))
    u = np.array(here.true.nearest(p)) - np.array(p)
    false, true = (np.array(side.of_size(F(1))) for side in (there.false, there.true))
    return FeedForward(
        W_1=[list(-u / (u @ u))],
        b_1=[1 + u @ np.array(p) / (u @ u)],
        W_2=[[entry] for entry in false - true],
        b_2=list(true),
    )


def _along(one: Case, other: Case) -> FeedForward:
    """Return the map t v ↦ t w for all t, where v is `one` and w the `other`."""
    read = [1 / one[0], *[F(0)] * (len(one) - 1)]
    return FeedForward(
        W_1=[read, [-entry for entry in read]], W_2=[[entry, -entry] for entry in other]
    )


# 3.2: categories

_CATEGORICAL = ("one-hot", "almost-orthogonal")


def _codes(
    name: str, categories: int, epsilon: F, width: int | None, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return the vectors that stand for the categories.

    Raises:
        UnknownName: when there is no such representation.
        InvalidValue: as `almost_orthogonal`.

    """
    if name not in _CATEGORICAL:
        raise UnknownName.among(
            "categorical representation", name, _CATEGORICAL, "convert-category"
        )
    if name == "almost-orthogonal":
        return almost_orthogonal(categories, epsilon, width, seed)
    return tuple(tuple(int(k == j) for j in range(categories)) for k in range(categories))


def _recoded(
    *x: F, source: str, target: str, categories: int, epsilon: F, width: int | None, seed: int
) -> list[int]:
    """Return the vector of the target for the category of x, the definition."""
    here, there = (_codes(name, categories, epsilon, width, seed) for name in (source, target))
    return list(there[here.index(tuple(map(int, x)))])


def _coded(*, source: str, categories: int, epsilon: F, width: int | None, seed: int) -> Listed:
    vectors = _codes(source, categories, epsilon, width, seed)
    return Listed(vectors, f"the {categories} {source} vectors")


def _signal(m: int, epsilon: F) -> int:
    """Return the largest power of two P with ε m ≤ m − P."""
    return int(power_of_two_at_most(m - epsilon * m))


def _held(*, p: int, domain: Domain, source: str, epsilon: F) -> tuple[Domain, ...]:
    """Return all inputs, where the format holds m − P, and m and 1/P are in its range."""
    m = domain.dimension
    held = source == "one-hot" or (m - _signal(m, epsilon) <= 2**p and m <= 2 ** (p + 4))
    return (domain,) if held else ()


@recipe(
    "convert-category",
    section="3.2",
    claim=FunctionClaim(
        statement="the vector of a category in the source to that of the same in the target",
        reference=_recoded,
        domain=_coded,
        exact_on=_held,
        exact_on_statement="all inputs; from almost-orthogonal vectors of m signs where m ≤ 2^(p+4)"
        " and m − P ≤ 2^p, p the bits of the significand, P the largest power of two with"
        " P ≤ (1 − ε) m",
        variants=(
            {"source": "almost-orthogonal", "target": "one-hot"},
            {"source": "almost-orthogonal", "target": "almost-orthogonal", "categories": 5},
            {"target": "one-hot", "categories": 17},
            {"categories": 2, "epsilon": "1/3", "seed": 3},
            {
                "source": "almost-orthogonal",
                "target": "one-hot",
                "categories": 12,
                "epsilon": "2/5",
                "width": 40,
            },
        ),
        size="k hidden units for k categories; vectors of k numbers, or of m signs, "
        "m = ⌈(2/ε²) ln(2 k(k − 1))⌉, or as set",
    ),
    sources=(
        "almost-orthogonal vectors are those of position-almost-orthogonal",
        "the unit of a category is ReLU(x · vₖ − (m − P))/P, exactly 1 at vₖ and 0 at all others",
    ),
)
def convert_category(
    source: str = "one-hot",
    target: str = "almost-orthogonal",
    categories: int = 8,
    epsilon: F = F(1, 4),
    width: int | None = None,
    seed: int = 0,
) -> FeedForward:
    """One hidden unit a category, 1 (or P) for that one and 0 for the others; W₂ has the vectors.

    On one-hot vectors the unit is ReLU(xₖ). On almost-orthogonal ones x · vₖ is m at vₖ and at most
    ε m ≤ m − P elsewhere, so ReLU(x · vₖ − (m − P)) is P there and 0 elsewhere.

    Raises:
        UnknownName: for a representation that does not exist.
        InvalidValue: as `almost_orthogonal`.

    """
    here, there = (_codes(name, categories, epsilon, width, seed) for name in (source, target))
    m = len(here[0])
    # A power of two, so that the entries ±1/P of W₂ do not round.
    P = 1 if source == "one-hot" else _signal(m, epsilon)
    dot = 1 if source == "one-hot" else m
    return FeedForward(
        W_1=np.array(here), b_1=[P - dot] * categories, W_2=rationals(there).T * F(1, P)
    )


# 3.3: integers

_ONE, _PER_I = Feature.of("1"), Feature.of("1/i")
_PER_N = Feature("1/n", lambda _i, n: (F(1, n),))


def _number(scale: PositionFunction | None = None) -> Query:
    """Return the column x C, x a function of i and n."""
    return Query(lambda C, _n: (C,), label="C", scale=scale)


_SOURCES: Mapping[str, tuple[Column, ...]] = {
    "count": (_number(), _ONE),
    "fraction-of-n": (_number(lambda _i, n: F(1, n)), _PER_N),
    "fraction-of-i": (_number(lambda i, _n: F(1, i)), _PER_I),
    "layernorm-hash": (Query(lambda C, _n: layernorm_hash(C), width=4, label="C"),),
}
"""Columns that hold an integer C, by name: x C and x for an x > 0, then their repetition."""

_TARGETS: Mapping[str, Callable[[int, int], Sequence[F | int]]] = {
    "count": lambda C, _n: (C,),
    "fraction-of-n": lambda C, n: (F(C, n),),
    "layernorm-hash": lambda C, _n: layernorm_hash(C),
}
"""Numbers that stand for C in a list of n, by name."""


def _require_integers(source: str, target: str) -> None:
    """Refuse a source and target for which there is no construction.

    Raises:
        UnknownName: for a representation that does not exist.
        InvalidValue: for C/i as the target, or the source itself.

    """
    for name in (source, target):
        if name not in _SOURCES:
            raise UnknownName.among(
                "representation of an integer", name, _SOURCES, "convert-integer"
            )
    others = ", ".join(name for name in _TARGETS if name != source)
    if source == target:
        raise InvalidValue(
            "the target must be another representation than the source",
            received=f"source = target = {source}",
            where="convert-integer",
            remedy=f"choose the target from {others}",
        )
    if target == "fraction-of-i":
        raise InvalidValue(
            "the target must not be fraction-of-i: a value that a head fetches depends on the "
            "position j where it is stored, not on i, and no ReLU network multiplies C by 1/i",
            received="target = fraction-of-i",
            where="convert-integer",
            remedy=f"choose the target from {others}; or compute C/i where C is counted, as a mean "
            "with future mask (prefix-mean); or multiply C/n by n/i to within a tolerance with "
            "multiply-by-gelu",
        )


def _integers(*, source: str, target: str) -> Sequences:
    """Return the columns that hold C; for a lookup also j and j², and j/n where it is fetched."""
    _require_integers(source, target)
    if target == "layernorm-hash":
        return Sequences(_SOURCES[source])
    names = ("i", "i^2") if target == "count" else ("i", "i^2", "i/n")
    return Sequences((*_SOURCES[source], *(Feature.of(name) for name in names)))


def scaled_quadratic_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which C ≤ n is looked up from [x C, x], x ≥ 1/n; at least 1.

    The key of position j is [2j, −j²].

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> scaled_quadratic_length(FLOAT16), scaled_quadratic_length(FLOAT32)
        (22, 1294)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # In units of x the dot product of j = C + m is C² − m². With u' = u where sums accumulate in a
    # wider format, else 0, and w as elsewhere: the two numbers of the query are stored (u), which
    # moves the difference of C and j by at most u (m² + 4C|m|); the products and their sum round in
    # the accumulator, the sum is stored, and its quotient by √2 too: the score of j is A(j) times a
    # number within g = (1 + w)(1 + u')(1 + u) − 1 of 1, where A(j), with w (1 + u)(2Cj + j²) for
    # the products, is within e (3C² + 4Cm + m²) of C² − m², e = u + w (1 + u). That of C is
    # positive; it is more than those with A(j) ≤ 0, among them all j > 2C, as 2C (1 + u) ≤ (2C +
    # 1)(1 − u) and rounding keeps the order of the products. For |m| ≤ C and A(j) > 0,
    #
    #     A(C) − A(j) ≥ m²(1 − u) − 4C|m| u − w (1 + u)(6C² + 4C|m| + m²),
    #     A(C) + A(j) ≤ 2C² − m² + e (6C² + 4C|m| + m²),
    #
    # and C scores more than j if the former exceeds g times the latter, for which m = 1 and C = n
    # is the worst case: divided by |m|, one side grows with it and the other shrinks. Nothing
    # underflows that matters, and 1/n, n² and all scores are in range, as 4n²u < 1.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    g = (1 + w) * (1 + u) * (1 + storing_roundoff(a)) - 1
    k = w * (1 + u) + g * (u + w * (1 + u))
    fits = longest(
        lambda n: u + 4 * n * u + k * (6 * n * n + 4 * n + 1) + 2 * g * n * n < 1  # m = 1, C = n
    )
    return max(fits, 1)


def hash_range_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which LN([x C, x, −x C, −x]) stays in range, for 1/n ≤ x and x C ≤ n.

    Example:
        >>> from transformist.arithmetic import FLOAT16
        >>> hash_range_length(FLOAT16)
        128

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # The squares sum to at most 2(n² + 1), with ten roundings, which must not overflow. The larger
    # two are at least 1/n², which must be at least the least normal number, smallest/(2u).
    u = a.unit_roundoff
    normal = F(a.smallest) / (2 * u)
    squares = F(a.largest) / (2 * (1 + u) ** 10) - 1
    return math.isqrt(int(min(1 / normal, squares)))


def layernorm_hash_error(n: int, arithmetic: Arithmetic | str) -> float:
    """Return an error bound of the numbers of LN([x C, x, −x C, −x]), 1 ≤ C ≤ n, 1/n ≤ x, x C ≤ n.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> round(layernorm_hash_error(1000, FLOAT32) * 2**24, 2)
        10.32

    """
    a = float_format_of(arithmetic)
    if a is None:
        return 0.0
    # Let p ≥ q be x C and x as stored, r² = (p² + q²)/2, and u' = u where sums accumulate in a
    # wider format, else 0. The result depends on ln(q/p), which storing moves by λ ≤ −2 ln(1 − u):
    # a number by at most √2 · 0.385 λ. The sum p + q − p − q comes out as at most (1 + w)² w (p +
    # 2q), where p + q ≤ 2r and q ≤ r, so that the mean is at most m r. Of the deviations from it
    # (u), squared (u), the sum (3w, u') is 4(r² + μ²), and its root has half of that error, and one
    # of its own (u). The deviation and the quotient round too (2u): a number changes by its R-th
    # part, 1 + R ≤ (1 − u)^−4.5 (1 − w)^−1.5 (1 − u')^−0.5 √(1 + m²), and m (1 + R). To first
    # order, all is 7.5u + 2.9w + 0.7u'. Numbers that underflow change the variance by a θ-th part,
    # θ = 2 n² smallest/(1 − u)², as r ≥ (1 − u)/n.
    u, w = float(a.unit_roundoff), float(a.accumulator_roundoff)
    store = float(storing_roundoff(a))
    least = a.smallest * n / (1 - u)
    m = 0.75 * w * (1 + w) ** 2 * (1 + store) + least
    theta = 2 * least * n / (1 - u)
    if theta >= 1:
        return math.inf
    logs = (4.5, u), (1.5, w), (0.5, store), (0.5, theta)
    growth = math.expm1(math.log1p(m * m) / 2 - sum(k * math.log1p(-x) for k, x in logs))
    turned = math.sqrt(2) * 0.385 * -2 * math.log1p(-u)
    return (math.sqrt(2) * growth + m * (1 + growth) + turned + a.smallest) * SLACK


def _integer_error(*, n: int, target: str, arithmetic: Arithmetic) -> F | float:
    if target == "layernorm-hash":
        return layernorm_hash_error(n, arithmetic) + 2.0**-90
    return rounded_once(arithmetic, F(1)) if target == "fraction-of-n" else 0


def _integer_length(*, source: str, target: str, arithmetic: Arithmetic) -> int | None:
    _require_integers(source, target)
    if "layernorm-hash" in (source, target) and isinstance(arithmetic, Exact):
        return 0
    if target == "layernorm-hash":
        return hash_range_length(arithmetic)
    # [C, 1] is exact, and so are the dot products of a quadratic lookup; x C and x are rounded.
    length = quadratic_length if source == "count" else scaled_quadratic_length
    return length(arithmetic)


def _integer_gap(*, n: int, source: str, target: str) -> tuple[F, int] | None:
    _require_integers(source, target)
    if target == "layernorm-hash":
        return None
    return (F(1) if source == "count" else F(1, n)), 2


@recipe(
    "convert-integer",
    section="3.3",
    claim=SequenceClaim(
        statement="an integer C from 1 to n, given as x C and x > 0, in another representation: C "
        "(count, x = 1), C/n (fraction-of-n, x = 1/n), C/i (fraction-of-i, x = 1/i; a source only),"
        " lh(C) = √(2/(C² + 1)) [C, 1, −C, −1] (layernorm-hash, x = √(2/(C² + 1)))",
        reference=lambda *, C, n, target: [list(_TARGETS[target](each, n)) for each in C],
        domain=_integers,
        error=_integer_error,
        error_statement="C is exact, C/n rounded once, lh(C) within bounds.layernorm_hash_error",
        safe_length=_integer_length,
        why_safe="bounds.quadratic_length from C, bounds.scaled_quadratic_length from the others; "
        "bounds.hash_range_length to lh(C). Not in exact where lh(C) takes part: its numbers "
        "are irrational",
        weightings=HARD,
        mask="none",
        gap=_integer_gap,
        gap_statement="1/√2 from C, 1/(n √2) from C/n and C/i (at i = n), at least that from "
        "lh(C); to lh(C) there is no head",
        variants=(
            *({"weighting": weighting} for weighting in HARD[1:]),
            *(
                {"source": source, "target": target}
                for source in _SOURCES
                for target in _TARGETS
                if source != target
            ),
        ),
        depends_on=lambda *, source, target: ("n",) if "fraction-of-n" in (source, target) else (),
    ),
    sources=(
        "The Transformer Cookbook (arXiv 2510.00368), 5.3.3 and 5.3.4",
        "LN(k[C, 1, −C, −1]) = lh(C) for k > 0; lh(k C) = lh(C), as printed, does not hold",
        "the whole query [x C, x] may be scaled, its first number alone may not",
    ),
)
def convert_integer(
    source: str = "fraction-of-n", target: str = "count", weighting: str = "average-hard"
) -> Attention | LayerNorm:
    """To lh(C), a layer norm of [x C, x, −x C, −x]; elsewhere a head that finds C among the j.

    The norm has ε = 0 and so does not see x. The score x (2 C j − j²)/√2 is largest at j = C; the
    head fetches j or j/n. The weighting is that of the head.

    Raises:
        UnknownName: for a representation that does not exist.
        InvalidValue: for C/i as the target, or the source itself.

    """
    width = _integers(source=source, target=target).width
    unit = np.eye(width)
    if target == "layernorm-hash":
        return LayerNorm(gain=np.ones(4), W_N=np.concatenate([unit[:2], -unit[:2]]))
    # The columns of C come first, then j, j², and j/n where it is fetched.
    held = sum(column.width for column in _SOURCES[source])
    return Attention(
        W_Q=unit[:2],
        W_K=np.stack([2 * unit[held], -unit[held + 1]]),
        W_V=unit[[-1 if target == "fraction-of-n" else held]],
        weighting=weighting,
    )


RECIPES = (convert_boolean, convert_category, convert_integer)
"""Recipes of the chapter, in the order in which they are listed."""
