"""Feed-forward constructions: chapter 4 of the Cookbook.

Every reference below is the function's definition; every network is its weights.
"""

from __future__ import annotations

import math
from fractions import Fraction as F
from itertools import pairwise
from typing import Any

import numpy as np

from transformist.arithmetic import is_power_of_two
from transformist.assembly import beside, cancel_residual, postcompose, precompose
from transformist.catalogue.lattice_form import affine, generators, holds, lattice_form
from transformist.claims import NO_GELU, FunctionClaim, everywhere, recipe
from transformist.domains import Bits, Domain, Product, Reals, Where, WholeMultiples
from transformist.errors import InvalidValue, ShapeMismatch, UnknownName
from transformist.model import FeedForward, FeedForwardStack, Parameter, Sublayer, rationals
from transformist.rounding import power_of_two_at_most

GELU_PRODUCT = {"gelu": F(7, 96), "gelu-tanh": F(733, 10000)}
"""K with |√(π/2)(GELU(x+y) − GELU(x) − GELU(y)) − xy| ≤ K (|x| + |y|)⁴ for all x and y."""
# The left side is |∬ D(s + t)| over the rectangle from 0 to (x, y), D(z) = 1 − √(π/2) GELU″(z). For
# x Φ(x), D(z) = 1 − e^(−z²/2)(1 − z²/2) lies in [0, z²], and the integral of (s + t)² is
# xy (2x² + 3xy + 2y²)/6, at most 7/96 (|x| + |y|)⁴, reached as x = y → 0. For the tanh form
# D(z) ≤ 1.00496 z², and 1.00496 · 7/96 < 0.0733.

GELU_BEND = F(1701, 10000)
"""Bound of |GELU(z) − ReLU(z)|."""
# It is z Φ(−z) at |z| for x Φ(x), largest 0.16997; the tanh form has 0.17004.


def gelu_product_scale(tolerance: F, radius: F, activation: str) -> F:
    """Return s, the largest power of two with K s² radius⁴ ≤ tolerance, for xy = mul(sx, sy)/s².

    Args:
        tolerance: the admitted error of the product, rounding aside.
        radius: a bound of |x| + |y|.
        activation: `gelu` or `gelu-tanh`.

    Raises:
        InvalidValue: for a tolerance or a radius that is not positive.
        UnknownName: for another activation.

    Example:
        >>> gelu_product_scale(F(7, 96), F(8), "gelu")
        Fraction(1, 64)

    """
    if activation not in GELU_PRODUCT:
        raise UnknownName.among("GELU", activation, GELU_PRODUCT, "gelu_product_scale")
    if tolerance <= 0 or radius <= 0:
        raise InvalidValue(
            "tolerance and radius must be greater than 0",
            received=f"tolerance = {tolerance}, radius = {radius}",
            where="gelu_product_scale",
            remedy="give a positive tolerance such as 1/1024, and a positive radius",
        )
    # mul(sx, sy) is off by K (s(|x| + |y|))⁴, so mul(sx, sy)/s² by K s² (|x| + |y|)⁴. s² is the
    # largest even power of two that keeps this within the tolerance: 2^(2⌊k/2⌋) ≤ 2^k.
    square = power_of_two_at_most(tolerance / (GELU_PRODUCT[activation] * radius**4))
    exponent = square.numerator.bit_length() - square.denominator.bit_length()
    return F(2) ** (exponent // 2)


def relu_by_gelu_scale(tolerance: F) -> F:
    """Return c, the least power of two with GELU_BEND / c ≤ tolerance, for ReLU(x) ≈ GELU(cx)/c."""
    return 1 / power_of_two_at_most(tolerance / GELU_BEND)


def _common_exponent(dimension: int) -> Any:
    """Return numbers on one grid with three bits to spare, so that sums of a few stay on it."""
    return lambda *, p: (WholeMultiples(dimension, bits=p - 3, exponent=2 - p),)


def _bits(case: tuple[F, ...]) -> str:
    return "".join(str(int(bit)) for bit in case)


# 4.1–4.3: nothing, linear maps, the residual connection


@recipe(
    "zero",
    section="4.3",
    claim=FunctionClaim(
        statement="y = 0, so that y + x = x",
        reference=lambda *x: [0] * len(x),
        domain=lambda *, width: Reals(width),
        exact_on=everywhere,
        exact_on_statement="all inputs",
        variants=({"width": 1}, {"width": 11}),
    ),
)
def zero(width: int = 2) -> FeedForward:
    """W₁ = 0, W₂ = 0."""
    return FeedForward(W_1=np.zeros((width, width)), W_2=np.zeros((width, width)))


@recipe(
    "identity",
    section="4.3",
    claim=FunctionClaim(
        statement="y = x, by ReLU(x) − ReLU(−x)",
        reference=lambda *x: list(x),
        domain=lambda *, width: Reals(width),
        exact_on=everywhere,
        exact_on_statement="all inputs",
        variants=({"width": 1}, {"width": 11}),
    ),
)
def identity(width: int = 2) -> FeedForward:
    """Eq. 22: W₁ = [I; −I], W₂ = [I, −I]."""
    return _linear(np.eye(width))


@recipe(
    "linear",
    section="4.5",
    claim=FunctionClaim(
        statement="y = A x for a matrix A",
        reference=lambda *x, matrix: [
            sum((a * v for a, v in zip(row, x, strict=True)), F(0)) for row in matrix
        ],
        domain=lambda *, matrix: Reals(len(matrix[0])),
        variants=({"matrix": [["1/3", "-0.1", 7]]}, {"matrix": [[1], [0], [-2]]}),
    ),
)
def linear(matrix: Any = ((1, 2), (3, 4))) -> FeedForward:
    """W₁ = [I; −I], W₂ = [A, −A]."""
    return _linear(matrix)


def _linear(matrix: Any) -> FeedForward:
    A: Parameter = rationals(matrix)
    unit = np.eye(A.shape[1])
    return FeedForward(W_1=np.concatenate([unit, -unit]), W_2=np.concatenate([A, -A], axis=1))


@recipe(
    "scale",
    section="4.6",
    claim=FunctionClaim(
        statement="y = c x for a number c",
        reference=lambda *x, factor: [factor * v for v in x],
        domain=lambda *, width: Reals(width),
        exact_on=lambda *, p, factor, width: (
            (WholeMultiples(width, bits=p - 3, exponent=5 - p),)
            if is_power_of_two(factor) and F(1, 64) <= factor <= 64
            else ()
        ),
        exact_on_statement="inputs for which c x neither underflows nor overflows, where c is a "
        "power of two",
        variants=({"factor": "1/4", "width": 3}, {"factor": "-0.1"}, {"factor": 0}),
    ),
)
def scale(factor: F = F(3), width: int = 1) -> FeedForward:
    """The identity, with c in W₂."""
    return _linear(rationals(np.eye(width)) * factor)


def _interpolated(x: F, *, knots: Any, values: Any) -> list[Any]:
    """Return the value of the polyline through the points, its end pieces extended."""
    piece = 0
    while piece < len(knots) - 2 and x > knots[piece + 1]:
        piece += 1
    share = (x - knots[piece]) / (knots[piece + 1] - knots[piece])
    return [values[piece] * (1 - share) + values[piece + 1] * share]


@recipe(
    "cpwl",
    section="4.1",
    claim=FunctionClaim(
        statement="y = f(x), f continuous and piecewise linear through (xₖ, yₖ), ends extended",
        reference=_interpolated,
        domain=lambda *, knots: Reals(1, points=knots),
        variants=(
            {"knots": [0, 1], "values": [1, 3]},
            {"knots": ["-1/3", "0.1", 2], "values": [0, "1/7", -1]},
            {"knots": list(range(-6, 7)), "values": [(-1) ** k * k for k in range(13)]},
        ),
    ),
)
def cpwl(knots: Any = (-1, 0, 1, 2), values: Any = (1, 0, 1, 0)) -> FeedForward:
    """Hidden units: n + 1 for n pieces, the first line and the bend at each inner knot."""
    if len(knots) != len(values) or len(knots) < 2:
        raise InvalidValue(
            "a polyline must have a value for each of at least two knots",
            received=f"{len(knots)} knots and {len(values)} values",
            where="cpwl",
            remedy="give as many values as knots",
        )
    x, y = list(map(F, knots)), list(map(F, values))
    for left, right in pairwise(x):
        if left >= right:
            raise InvalidValue(
                "knots must increase strictly",
                received=f"{left} before {right}",
                where="cpwl",
                remedy="sort the knots and keep each once",
            )
    # f(x) = y₀ + m₀ (x − x₀) + Σ bendₖ ReLU(x − xₖ): the first line by ReLU(x) and ReLU(−x), and at
    # each inner knot the change of slope.
    m = [(y[k + 1] - y[k]) / (x[k + 1] - x[k]) for k in range(len(x) - 1)]
    bends = [after - before for before, after in pairwise(m)]
    return FeedForward(
        W_1=[[-1], [1]] + [[1]] * len(bends),
        b_1=[0, 0] + [-knot for knot in x[1:-1]],
        W_2=[[-m[0], m[0], *bends]],
        b_2=[y[0] - m[0] * x[0]],
    )


def _largest(pieces: Any, x: tuple[F, ...]) -> F:
    return F(max(sum((a * v for a, v in zip(p, x, strict=False)), p[-1]) for p in pieces))


@recipe(
    "max-affine",
    section="4.1",
    claim=FunctionClaim(
        statement="y = maxₖ(aₖ·x + bₖ) − maxₗ(cₗ·x + eₗ), which is every CPWL function of x",
        reference=lambda *x, pieces, minus: [_largest(pieces, x) - _largest(minus, x)],
        domain=lambda *, pieces: Reals(len(pieces[0]) - 1),
        variants=(
            {"pieces": [[1, 2, 3]], "minus": [[0, 1, 1]]},
            {"pieces": [[k, 1 - k, k % 3] for k in range(9)], "minus": [["1/3", 0, 1], [0, 1, 0]]},
            {"pieces": [[1, 0], [-1, 0]], "minus": [[2, -1], [-2, -1], [0, 0], [1, 1], [3, 0]]},
        ),
    ),
    sources=("Arora et al. 2018: depth, by the number of pieces here and by the dimension there",),
)
def max_affine(
    pieces: Any = ((1, 0, 0), (0, 1, 0), (-1, -1, 1)), minus: Any = ((0, 0, 0),)
) -> FeedForwardStack:
    """⌈log₂ k⌉ networks (at least one) for k pieces: each takes the maximum of pairs."""
    dimension = len(pieces[0]) - 1
    if dimension < 1 or len(minus[0]) != dimension + 1:
        raise ShapeMismatch(
            "every affine piece must have a coefficient for each coordinate and one constant",
            received=f"rows of {len(pieces[0])} and of {len(minus[0])} numbers",
            where="max-affine",
            remedy="give rows [a₁, …, a_d, b] of one length, d at least 1",
        )
    # Both maxima are taken by the same networks side by side, so both get the same number of
    # pieces.
    count = max(len(pieces), len(minus))
    rows = rationals([*_padded(pieces, count), *_padded(minus, count)])
    stages = _halvings(MAXIMUM, 2, count)
    stages[0] = precompose(stages[0], rows[:, :-1], rows[:, -1])
    stages[-1] = postcompose([[1, -1]], stages[-1])
    return FeedForwardStack(tuple(stages))


def _padded(pieces: Any, count: int) -> list[Any]:
    # A piece that stands twice changes no maximum.
    return [*pieces, *[pieces[0]] * (count - len(pieces))]


def _halvings(of_two: FeedForward, groups: int, count: int) -> list[FeedForward]:
    """Return the networks, at least one, that leave one of `count` values in each group."""
    stages = [_halved(of_two, groups, count)]
    while (count := (count + 1) // 2) > 1:
        stages.append(_halved(of_two, groups, count))
    return stages


def _halved(of_two: FeedForward, groups: int, count: int) -> FeedForward:
    """Return the network that halves groups of `count` values, by a function of pairs."""
    # An odd value at the end has no partner and is copied.
    unit = np.eye(groups * count)
    half = (count + 1) // 2
    networks = []
    for group in range(groups):
        for pair in range(half):
            members = unit[group * count + 2 * pair : group * count + min(2 * pair + 2, count)]
            network = of_two if len(members) == 2 else _linear([[1]])
            column = np.eye(groups * half)[:, [group * half + pair]]
            networks.append(postcompose(column, precompose(network, members, [0] * len(members))))
    return beside(*networks)


def _spans(polyhedra: Any, rays: Any) -> list[tuple[tuple[F, ...], ...]]:
    """Return the vertices and rays of each polyhedron in one form."""
    return [
        generators(*each) for each in zip(polyhedra, rays or [()] * len(polyhedra), strict=True)
    ]


def _on_polyhedra(*x: F, polyhedra: Any, pieces: Any, rays: Any) -> list[F]:
    """Return the piece of the first polyhedron that holds x, at x."""
    spans = _spans(polyhedra, rays)
    return next(
        [affine(piece, x)] for span, piece in zip(spans, pieces, strict=True) if holds(span, x)
    )


def _union(*, polyhedra: Any, rays: Any) -> Domain:
    spans = _spans(polyhedra, rays)
    vertices = [x for each in polyhedra for x in each]
    numbers = [number for x in vertices for number in x]
    least, most = (None, None) if any(rays) else (min(numbers), max(numbers))
    box = Reals(len(vertices[0]), least, most, points=tuple(sorted({*numbers})))

    def inside(x: tuple[F, ...]) -> bool:
        return any(holds(each, x) for each in spans)

    return Where(box, inside, "x lies in one of the polyhedra")


_SQUARE = [[[0, 0], [1, 0], [1, 1]], [[0, 0], [0, 1], [1, 1]]]


@recipe(
    "cpwl-polyhedra",
    section="4.1",
    claim=FunctionClaim(
        statement="y = a·x + b of the polyhedron that holds x, each given by its vertices, rays "
        "and [a₁, …, a_d, b], where this is continuous and the union of polyhedra is convex",
        reference=_on_polyhedra,
        domain=_union,
        variants=(
            {
                "polyhedra": [[[-2], [0]], [[0], [1]], [[1], [3]]],
                "pieces": [[-1, 0], [2, 0], [0, 2]],
            },
            {"polyhedra": _SQUARE, "pieces": [["1/3", 0, 1], [0, "1/3", 1]]},
            {  # the largest of x₁, x₂ and 0
                "polyhedra": [[[0, 0]]] * 3,
                "rays": [[[-1, 0], [0, -1]], [[1, 1], [0, -1]], [[1, 1], [-1, 0]]],
                "pieces": [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
            },
        ),
    ),
    sources=(
        "Tarela & Martínez 1999 and Ovchinnikov 2002: the lattice form, maxₛ min_{j ∈ S} ℓⱼ",
        "the form is compared with every piece, exactly, before there are weights",
    ),
)
def cpwl_polyhedra(
    polyhedra: Any = (
        ((0, 0), (1, 0), (0, 1)),
        ((0, 0), (-1, 0), (0, 1)),
        ((0, 0), (-1, 0), (0, -1)),
        ((0, 0), (1, 0), (0, -1)),
    ),
    pieces: Any = ((1, -1, 0), (-1, -1, 0), (-1, 1, 0), (1, 1, 0)),
    rays: Any = (),
) -> FeedForwardStack:
    """⌈log₂ s⌉ networks of minima, s pieces in the largest set, and ⌈log₂ k⌉ of maxima of k sets.

    The default is |x₁| − |x₂| on the square of the points with |x₁| + |x₂| ≤ 1.
    """
    # f = max over sets of the min over the pieces of a set: first all minima, then one maximum.
    sets = lattice_form(polyhedra, pieces, rays)
    count = max(map(len, sets))
    rows = rationals([pieces[j] for each in sets for j in _padded(each, count)])
    stages = _halvings(MINIMUM, len(sets), count) if count > 1 else []
    stages += _halvings(MAXIMUM, 1, len(sets)) if len(sets) > 1 or not stages else []
    stages[0] = precompose(stages[0], rows[:, :-1], rows[:, -1])
    return FeedForwardStack(tuple(stages))


@recipe(
    "cancel-residual",
    section="4.2",
    claim=FunctionClaim(
        statement="f′(x) + x = f(x), here for f(x) = ReLU(A x)",
        reference=lambda *x, matrix: [
            max(F(0), sum((a * v for a, v in zip(row, x, strict=True)), F(0))) for row in matrix
        ],
        domain=lambda *, matrix: Reals(len(matrix)),
        exact_on=lambda *, p, matrix: (
            (WholeMultiples(len(matrix), bits=p - 6, exponent=3 - p),)
            if p >= 6
            and all(a.denominator == 1 for row in matrix for a in row)
            and max(sum(map(abs, row)) for row in matrix) <= 8
            else ()
        ),
        exact_on_statement="inputs for which f(x) − x does not round, such as multiples of one "
        "power of two where A holds small integers",
        rounding_statement="to first order that of f itself and u(|f(x) − x| + |f(x)|); at most "
        "bounds.rounding_error of the input",
        variants=({"matrix": [[1]]}, {"matrix": [["1/3", 0, 1], [0, 2, 0], [1, 1, "-0.1"]]}),
    ),
    sources=("Chiang et al. 2023",),
)
def cancel(matrix: Any = ((1, -1), (2, 0))) -> Sublayer:
    """W₁ = [A; I; −I], W₂ = [I, −I, I], inside a residual connection."""
    if len(matrix) != len(matrix[0]):
        raise ShapeMismatch(
            "a function with a residual connection must map R^d to R^d",
            received=f"a {len(matrix)} × {len(matrix[0])} matrix",
            where="cancel-residual",
            remedy="give a square matrix",
        )
    return Sublayer(cancel_residual(FeedForward(W_1=matrix, W_2=np.eye(len(matrix)))))


# 4.4–4.6: minimum, maximum, sums, products

# min(x₁, x₂) = x₁ − ReLU(x₁ − x₂) and max(x₁, x₂) = x₁ + ReLU(x₂ − x₁), with x₁ = ReLU(x₁) −
# ReLU(−x₁).
MINIMUM = FeedForward(W_1=[[1, 0], [-1, 0], [1, -1]], W_2=[[1, -1, -1]])
MAXIMUM = FeedForward(W_1=[[1, 0], [-1, 0], [-1, 1]], W_2=[[1, -1, 1]])

_ROUNDED_DIFFERENCE = (
    "at most 2u|x₁ − x₂| (2(u + 2⁻²³)|x₁ − x₂| where sums accumulate in float32): the difference "
    "rounds once, and the sum with it lands at most twice as far, the result being representable"
)


def _rounded_difference(x: F, y: F, *, u: F, w: F) -> F:
    # d = x − y is stored within u |d|, or (u + 2w) |d| by way of an accumulator. The sum with it
    # is that far from the result, a number of the format, and rounding to nearest moves it no
    # further than there: at most twice as far in all.
    return 2 * (u + 2 * w) * abs(x - y)


@recipe(
    "min",
    section="4.4",
    claim=FunctionClaim(
        statement="y = min(x₁, x₂), by x₁ − ReLU(x₁ − x₂)",
        reference=lambda x, y: [x if x < y else y],
        domain=lambda: Reals(2),
        exact_on=lambda *, p: (
            *_common_exponent(2)(p=p),
            Where(Reals(2), lambda case: case[0] <= case[1], "x₁ ≤ x₂"),
        ),
        exact_on_statement="inputs with x₁ ≤ x₂, and inputs whose difference is representable, "
        "such as multiples of one power of two",
        rounding_statement=_ROUNDED_DIFFERENCE,
        rounding=_rounded_difference,
    ),
)
def minimum() -> FeedForward:
    """x₁ − ReLU(x₁ − x₂)."""
    return MINIMUM


@recipe(
    "max",
    section="4.4",
    claim=FunctionClaim(
        statement="y = max(x₁, x₂), by x₁ + ReLU(x₂ − x₁)",
        reference=lambda x, y: [x if x > y else y],
        domain=lambda: Reals(2),
        exact_on=lambda *, p: (
            *_common_exponent(2)(p=p),
            Where(Reals(2), lambda case: case[0] >= case[1], "x₁ ≥ x₂"),
        ),
        exact_on_statement="inputs with x₁ ≥ x₂, and inputs whose difference is representable, "
        "such as multiples of one power of two",
        rounding_statement=_ROUNDED_DIFFERENCE,
        rounding=_rounded_difference,
    ),
)
def maximum() -> FeedForward:
    """x₁ + ReLU(x₂ − x₁)."""
    return MAXIMUM


@recipe(
    "add",
    section="4.5",
    claim=FunctionClaim(
        statement="y = x₁ + x₂",
        reference=lambda x, y: [x + y],
        domain=lambda: Reals(2),
        exact_on=_common_exponent(2),
        exact_on_statement="inputs whose sum is representable",
        rounding_statement="at most u|x₁ + x₂|: the correctly rounded sum",
        rounding=lambda x, y, *, u: u * abs(x + y),
        variants=({"printed": True},),
    ),
)
def add(printed: bool = False) -> FeedForward:
    """W₂ = [A, −A] with A = [1, 1]; in print the units of x stand before those of y."""
    # Either order rounds once: of the four units at most two are not 0, one of each number.
    if printed:
        return FeedForward(W_1=[[1, 0], [-1, 0], [0, 1], [0, -1]], W_2=[[1, -1, 1, -1]])
    return _linear([[1, 1]])


@recipe(
    "subtract",
    section="4.5",
    claim=FunctionClaim(
        statement="y = x₁ − x₂",
        reference=lambda x, y: [x - y],
        domain=lambda: Reals(2),
        exact_on=_common_exponent(2),
        exact_on_statement="inputs whose difference is representable",
        rounding_statement="at most u|x₁ − x₂|: the correctly rounded difference",
        rounding=lambda x, y, *, u: u * abs(x - y),
    ),
)
def subtract() -> FeedForward:
    """W₂ = [A, −A] with A = [1, −1]."""
    return _linear([[1, -1]])


@recipe(
    "relu-by-gelu",
    section="4.6",
    claim=FunctionClaim(
        statement="y ≈ ReLU(x), by GELU(c x)/c",
        reference=lambda x: [max(x, F(0))],
        domain=lambda: Reals(1),
        approximation=lambda _, *, tolerance: GELU_BEND / relu_by_gelu_scale(tolerance),
        approximation_statement="within 0.1701/c ≤ tolerance, c the least such power of two",
        excluded={"exact": NO_GELU},
        variants=({"tolerance": "1e-6"}, {"activation": "gelu-tanh"}),
    ),
    errata=("gelu-step-at-zero",),
)
def relu_by_gelu(tolerance: F = F(1, 1024), activation: str = "gelu") -> FeedForward:
    """One hidden unit, c in W₁ and 1/c in W₂."""
    c = relu_by_gelu_scale(tolerance)
    return FeedForward(W_1=[[c]], W_2=[[1 / c]], activation=activation)


def _radius(lo: F, hi: F) -> F:
    return 2 * max(abs(lo), abs(hi))


def _product_error(x: F, y: F, *, tolerance: F, lo: F, hi: F, activation: str) -> F:
    s = gelu_product_scale(tolerance, _radius(lo, hi), activation)
    constant = F(1, 2**52)  # of itself: the nearest float64 of √(π/2) is off by less
    taylor = GELU_PRODUCT[activation] * s**2 * (abs(x) + abs(y)) ** 4
    return taylor * (1 + constant) + abs(x * y) * constant


@recipe(
    "multiply-by-gelu",
    section="4.6",
    claim=FunctionClaim(
        statement="y ≈ x₁ x₂, by √(π/2)(GELU(s x₁ + s x₂) − GELU(s x₁) − GELU(s x₂))/s²",
        reference=lambda x, y: [x * y],
        domain=lambda *, lo, hi: Reals(2, lo, hi),
        approximation=_product_error,
        approximation_statement="within K s² r⁴ ≤ tolerance on [lo, hi]², r = |x₁| + |x₂|, "
        "K = 7/96 (gelu) or 0.0733 (gelu-tanh), s the largest such power of two; the paper's "
        "bound for these weights is s r³/4. Rounding grows as s shrinks",
        excluded={"exact": NO_GELU},
        variants=(
            {"tolerance": "1e-8"},
            {"activation": "gelu-tanh"},
            {"lo": -4, "hi": 3, "tolerance": "1/4"},
        ),
    ),
    sources=("Akyürek et al. 2023, Lemma 4",),
    errata=(
        "gelu-product-activation",
        "gelu-product-bound",
        "gelu-product-range",
        "extraction-gelu-sigmoid",
    ),
)
def multiply_by_gelu(
    tolerance: F = F(1, 1024),
    lo: F = F(-1),
    hi: F = F(1),
    activation: str = "gelu",
) -> FeedForward:
    """Three hidden units; √(π/2) is the rational that is its nearest float64."""
    require_interval(lo, hi, "multiply-by-gelu")
    s = gelu_product_scale(tolerance, _radius(lo, hi), activation)
    # The float64 nearest to √(π/2) is taken as a rational: `_product_error` counts its distance.
    c = F(math.sqrt(math.pi / 2)) / s**2
    return FeedForward(W_1=[[s, s], [s, 0], [0, s]], W_2=[[c, -c, -c]], activation=activation)


def require_interval(lo: F, hi: F, where: str) -> None:
    """Refuse an interval that is empty or a point.

    Raises:
        InvalidValue: for lo ≥ hi.

    """
    if lo >= hi:
        raise InvalidValue(
            "an interval must have lo < hi",
            received=f"lo = {lo}, hi = {hi}",
            where=where,
            remedy="exchange or widen the ends",
        )


# 4.7: comparisons

_EPSILONS: Any = ({"epsilon": "1/3"}, {"epsilon": 2}, {"epsilon": "1/4096"})


def _near_zero(*, epsilon: F) -> Reals:
    return Reals(1, points=(F(0), epsilon, -epsilon))


def _on_the_grid_of(*, p: int, epsilon: F) -> tuple[Domain, ...]:
    """Return inputs x with x ± ε representable, for ε a power of two."""
    if not is_power_of_two(epsilon):
        return ()
    exponent = epsilon.numerator.bit_length() - epsilon.denominator.bit_length()
    return (WholeMultiples(1, bits=p - 3, exponent=exponent - 2),)


_EXACT_COMPARISON = "inputs x with x ± ε representable, where ε is a power of two"


@recipe(
    "greater-than-zero",
    section="4.7",
    claim=FunctionClaim(
        statement="y = [x > 0] for x outside (0, ε), x/ε inside",
        reference=lambda x, *, epsilon: [0 if x <= 0 else (1 if x >= epsilon else x / epsilon)],
        domain=_near_zero,
        exact_on=_on_the_grid_of,
        exact_on_statement=_EXACT_COMPARISON,
        variants=_EPSILONS,
    ),
)
def greater_than_zero(epsilon: F = F(1, 8)) -> FeedForward:
    """Eq. 29: (ReLU(x) − ReLU(x − ε))/ε."""
    return FeedForward(W_1=[[1], [1]], b_1=[0, -epsilon], W_2=[[1 / epsilon, -1 / epsilon]])


@recipe(
    "greater-or-equal-zero",
    section="4.7",
    claim=FunctionClaim(
        statement="y = [x ≥ 0] for x outside (−ε, 0), 1 + x/ε inside",
        reference=lambda x, *, epsilon: [
            1 if x >= 0 else (0 if x <= -epsilon else 1 + x / epsilon)
        ],
        domain=_near_zero,
        exact_on=_on_the_grid_of,
        exact_on_statement=_EXACT_COMPARISON,
        variants=_EPSILONS,
    ),
)
def greater_or_equal_zero(epsilon: F = F(1, 8)) -> FeedForward:
    """Eq. 30: (ReLU(x + ε) − ReLU(x))/ε."""
    return FeedForward(W_1=[[1], [1]], b_1=[epsilon, 0], W_2=[[1 / epsilon, -1 / epsilon]])


@recipe(
    "equal-zero",
    section="4.7",
    claim=FunctionClaim(
        statement="y = [x = 0] for x = 0 or |x| ≥ ε, 1 − |x|/ε between",
        reference=lambda x, *, epsilon: [0 if abs(x) >= epsilon else 1 - abs(x) / epsilon],
        domain=_near_zero,
        exact_on=_on_the_grid_of,
        exact_on_statement=_EXACT_COMPARISON,
        variants=_EPSILONS,
    ),
)
def equal_zero(epsilon: F = F(1, 8)) -> FeedForward:
    """Eq. 31: (ReLU(x + ε) − 2 ReLU(x) + ReLU(x − ε))/ε."""
    e = 1 / epsilon
    # The slope is 0 up to −ε, then 1/ε, then −1/ε from 0 on, and 0 again from ε on: a hat of height
    # 1.
    return FeedForward(W_1=[[1]] * 3, b_1=[epsilon, 0, -epsilon], W_2=[[e, -2 * e, e]])


_WITH_TOLERANCE: Any = {
    "domain": lambda: Product((Reals(1), Reals(1, least=F(0)))),
    "exact_on": lambda *, p: (
        Where(WholeMultiples(2, bits=p - 3, exponent=5 - p), lambda case: case[1] >= 0, "ε ≥ 0"),
    ),
    "exact_on_statement": "inputs whose sum and difference are representable",
}


@recipe(
    "greater-than-zero-with",
    section="4.7",
    claim=FunctionClaim(
        statement="y = ε [x > 0] for x outside (0, ε), x inside; inputs (x, ε), ε ≥ 0",
        reference=lambda x, e: [0 if x <= 0 else (e if x >= e else x)],
        **_WITH_TOLERANCE,
    ),
    errata=("threshold-sign",),
)
def greater_than_zero_with() -> FeedForward:
    """Eq. 32: ReLU(x) − ReLU(x − ε)."""
    return FeedForward(W_1=[[1, 0], [1, -1]], W_2=[[1, -1]])


@recipe(
    "greater-or-equal-zero-with",
    section="4.7",
    claim=FunctionClaim(
        statement="y = ε [x ≥ 0] for x outside (−ε, 0), x + ε inside; inputs (x, ε), ε ≥ 0",
        reference=lambda x, e: [0 if x <= -e else (e if x >= 0 else x + e)],
        **_WITH_TOLERANCE,
    ),
    errata=("threshold-sign",),
)
def greater_or_equal_zero_with() -> FeedForward:
    """Eq. 33: ReLU(x + ε) − ReLU(x)."""
    return FeedForward(W_1=[[1, 1], [1, 0]], W_2=[[1, -1]])


@recipe(
    "equal-zero-with",
    section="4.7",
    claim=FunctionClaim(
        statement="y = ε [x = 0] for x = 0 or |x| ≥ ε, ε − |x| between; inputs (x, ε), ε ≥ 0",
        reference=lambda x, e: [0 if abs(x) >= e else e - abs(x)],
        **_WITH_TOLERANCE,
    ),
    errata=("threshold-sign",),
)
def equal_zero_with() -> FeedForward:
    """Eq. 34: ReLU(x + ε) − 2 ReLU(x) + ReLU(x − ε)."""
    return FeedForward(W_1=[[1, 1], [1, 0], [1, -1]], W_2=[[1, -2, 1]])


# 4.8: Boolean functions


def _few_bits(*, p: int, domain: Bits) -> tuple[Bits, ...]:
    """Return every input, where p bits surely hold m − 1, the largest bias."""
    return (domain,) if domain.dimension <= 2**p + 1 else ()


@recipe(
    "boolean",
    section="4.8",
    claim=FunctionClaim(
        statement="y = φ(x₁, …, xₘ) for any table φ of m bits, x₁ the most significant",
        reference=lambda *x, table: [table[int(_bits(x), 2)]],
        domain=lambda *, table: Bits(len(table).bit_length() - 1),
        exact_on=_few_bits,
        exact_on_statement="all inputs, where the format holds m − 1 (m ≤ 2^p + 1)",
        variants=(
            {"table": "01"},
            {"table": "10"},
            {"table": "0001"},
            {"table": "0100"},
            {"table": "00000000"},
            {"table": "0010110111110001"},
        ),
    ),
    errata=("boolean-order",),
)
def boolean(table: Any = (0, 1, 1, 0, 1, 0, 0, 1)) -> FeedForward:
    """Eq. 35: hidden unit k is 1 where x is the k-th assignment ξₖ and 0 elsewhere."""
    # Unit k reads 1 − Σ|xᵢ − ξᵢ|: 1 where x = ξₖ, at most 0 for all other bits.
    m = len(table).bit_length() - 1
    assignments = [[k >> (m - 1 - i) & 1 for i in range(m)] for k in range(2**m)]
    return FeedForward(
        W_1=[[2 * bit - 1 for bit in xi] for xi in assignments],
        b_1=[1 - sum(xi) for xi in assignments],
        W_2=[list(table)],
    )


_GATE: Any = {
    "domain": lambda *, width: Bits(width),
    "exact_on": _few_bits,
    "exact_on_statement": "all inputs, where the format holds m − 1 (m ≤ 2^p + 1)",
    "variants": ({"width": 1}, {"width": 10}),
}


@recipe(
    "and",
    section="4.8",
    claim=FunctionClaim(
        statement="y = x₁ ∧ … ∧ xₘ",
        reference=lambda *x: [int(all(x))],
        **_GATE,
    ),
)
def conjunction(width: int = 2) -> FeedForward:
    """ReLU(Σ x − (m − 1))."""
    # Σ x − (m − 1) is 1 if all m bits are 1, and at most 0 if one is 0.
    return FeedForward(W_1=[[1] * width], b_1=[1 - width], W_2=[[1]])


@recipe(
    "or",
    section="4.8",
    claim=FunctionClaim(
        statement="y = x₁ ∨ … ∨ xₘ",
        reference=lambda *x: [int(any(x))],
        **_GATE,
    ),
)
def disjunction(width: int = 2) -> FeedForward:
    """1 − ReLU(1 − Σ x)."""
    # 1 − Σ x is 1 if all bits are 0, and at most 0 if one is 1.
    return FeedForward(W_1=[[-1] * width], b_1=[1], W_2=[[-1]], b_2=[1])


@recipe(
    "not",
    section="4.8",
    claim=FunctionClaim(
        statement="y = ¬x",
        reference=lambda x: [int(not x)],
        domain=lambda: Bits(1),
        exact_on=everywhere,
        exact_on_statement="all inputs",
    ),
)
def negation() -> FeedForward:
    """1 − ReLU(x)."""
    return FeedForward(W_1=[[1]], W_2=[[-1]], b_2=[1])


# 4.9 and 6.4: conditional, clipping


def _conditional_grid(*, p: int, lo: F, hi: F) -> tuple[Domain, ...]:
    # All numbers are below 2^size in magnitude and multiples of 2^(size + 3 − p): sums of up to
    # eight are below 2^(size + 3), of p bits, and do not round.
    size = int(max(abs(lo), abs(hi), hi - lo)).bit_length()
    step = F(2) ** (size + 3 - p)
    if lo % step or hi % step:
        return ()
    branches = Where(
        WholeMultiples(2, bits=p - 3, exponent=size + 3 - p),
        lambda case: all(lo <= value <= hi for value in case),
        f"both lie in [{lo}, {hi}]",
    )
    return (Product((Bits(1), branches)),)


@recipe(
    "conditional",
    section="4.9",
    claim=FunctionClaim(
        statement="y = x₁ if p = 1, x₂ if p = 0; inputs (p, x₁, x₂), p a bit, x₁, x₂ in [lo, hi]",
        reference=lambda p, x, y: [x if p else y],
        domain=lambda *, lo, hi: Product((Bits(1), Reals(2, lo, hi))),
        exact_on=_conditional_grid,
        exact_on_statement="lo, hi, x₁ and x₂ multiples of one power of two, with three bits of "
        "the significand to spare",
        rounding_statement="at most 6u(hi − lo + max(|lo|, |hi|))",
        # With M = hi − lo and S = max(|lo|, |hi|), to first order: the unit that is read has errors
        # of u M and u |hi| or u |lo| from its weights, u (M + S) and u M from its sums; the other
        # one, at most 0 but for errors, u M and 2 u S where it comes near 0; and their sum, lo
        # and its sum u M, u |lo| and u S. That is at most 5 u M + 6 u S.
        rounding=lambda _p, _x, _y, *, lo, hi, u: 6 * u * (hi - lo + max(abs(lo), abs(hi))),
        variants=({"lo": -2, "hi": 3}, {"lo": "1/3", "hi": "5/2"}, {"lo": -8, "hi": -1}),
    ),
    sources=("Pérez et al. 2021, Lemma 11", "Merrill & Sabharwal 2024a, Theorem 1"),
    errata=("conditional-range",),
)
def conditional(lo: F = F(0), hi: F = F(1)) -> FeedForward:
    """lo + ReLU(x₁ − lo − M(1 − p)) + ReLU(x₂ − lo − M p), M = hi − lo."""
    require_interval(lo, hi, "conditional")
    # For p = 1 the second unit reads x₂ − lo − M ≤ 0 and the first x₁ − lo ≥ 0; for p = 0 the first
    # reads x₁ − lo − M ≤ 0 and the second x₂ − lo ≥ 0. lo is added back.
    M = hi - lo
    return FeedForward(W_1=[[M, 1, 0], [-M, 0, 1]], b_1=[-M - lo, -lo], W_2=[[1, 1]], b_2=[lo])


@recipe(
    "clip",
    section="6.4",
    claim=FunctionClaim(
        statement="y = x clipped to [−δ, δ]",
        reference=lambda x, *, delta: [-delta if x < -delta else (delta if x > delta else x)],
        domain=lambda *, delta: Reals(1, points=(delta, -delta)),
        variants=({"delta": "1/3"}, {"delta": 4}),
    ),
    errata=("clip-bias",),
)
def clip(delta: F = F(1)) -> FeedForward:
    """ReLU(x + δ) − ReLU(x − δ) − δ."""
    return FeedForward(W_1=[[1], [1]], b_1=[delta, -delta], W_2=[[1, -1]], b_2=[-delta])


RECIPES = (
    cpwl,
    max_affine,
    cpwl_polyhedra,
    cancel,
    zero,
    identity,
    minimum,
    maximum,
    add,
    subtract,
    linear,
    scale,
    relu_by_gelu,
    multiply_by_gelu,
    greater_than_zero,
    greater_or_equal_zero,
    equal_zero,
    greater_than_zero_with,
    greater_or_equal_zero_with,
    equal_zero_with,
    boolean,
    conjunction,
    disjunction,
    negation,
    conditional,
    clip,
)
"""Recipes of the chapter, in the order in which they are listed."""
