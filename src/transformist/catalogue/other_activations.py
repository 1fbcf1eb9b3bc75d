"""Activations that chapter 4 of the Cookbook names: what each approximates, and how well."""

from __future__ import annotations

import math
import random
from fractions import Fraction as F

from transformist.arithmetic import Arithmetic
from transformist.assembly import attend
from transformist.catalogue.feed_forward import require_interval
from transformist.catalogue.safe_lengths import longest
from transformist.claims import NO_EXPONENTIAL, FunctionClaim, StringClaim, recipe
from transformist.domains import Case, Domain, Product, Reals, Strings, Where
from transformist.errors import InvalidValue
from transformist.model import BOS, Embedding, FeedForward, Layer, NearZero, Stream, Transformer
from transformist.rounding import float_format_of, mean_error, power_of_two_at_most
from transformist.rounding.powers import log


def _decay(z: F) -> F:
    """Return e^−z for z ≥ 0, rounded up by less than 2⁻⁴⁰ of itself, and by less than 2⁻¹⁰⁰⁰."""
    # math.exp is off by less than 2⁻⁵⁰ of itself, and −z rounds by 2⁻⁵³ z, z ≤ 700.
    return F(math.exp(-float(min(z, F(700))))) * (1 + F(1, 2**40)) + F(1, 2**1000)


def sigmoid_scale(tolerance: F, epsilon: F) -> F:
    """Return c, the least power of two with e^(−c ε) ≤ tolerance, for [x > 0] ≈ σ(c x).

    Raises:
        InvalidValue: for a tolerance that is not between 0 and 1, or ε that is not positive.

    Example:
        >>> sigmoid_scale(F(1, 1024), F(1, 8))
        Fraction(64, 1)

    """
    if not (0 < tolerance < 1 and epsilon > 0):
        raise InvalidValue(
            "the tolerance must lie between 0 and 1, and epsilon must be positive",
            received=f"tolerance = {tolerance}, epsilon = {epsilon}",
            where="sigmoid_scale",
            remedy="give a tolerance such as 1/1024, and an epsilon such as 1/8",
        )
    # `log` rounds by less than 2⁻⁴⁰ of itself.
    least = F(log(1 / tolerance)) * (1 + F(1, 2**40)) / epsilon
    return 1 / power_of_two_at_most(1 / least)


def _away(epsilon: F) -> Domain:
    numbers = Reals(1, points=(epsilon, -epsilon))
    return Where(numbers, lambda case: abs(case[0]) >= epsilon, f"|x| ≥ {epsilon}")


@recipe(
    "step-by-sigmoid",
    section="4",
    claim=FunctionClaim(
        statement="y ≈ [x > 0] for |x| ≥ ε, by σ(c x)",
        reference=lambda x: [int(x > 0)],
        domain=lambda *, epsilon: _away(epsilon),
        # Beside 0 or 1 the sigmoid lacks 1/(1 + e^z) ≤ e^−z, z = c |x|.
        approximation=lambda x, *, tolerance, epsilon: _decay(
            sigmoid_scale(tolerance, epsilon) * abs(x)
        ),
        approximation_statement="within e^(−c |x|) ≤ tolerance, c the least such power of two",
        excluded={"exact": NO_EXPONENTIAL},
        variants=({"tolerance": "1e-6", "epsilon": 2}, {"epsilon": "1/3"}),
    ),
    sources=("at 0 it is 1/2 for every c",),
)
def step_by_sigmoid(tolerance: F = F(1, 1024), epsilon: F = F(1, 8)) -> FeedForward:
    """One hidden unit, c in W₁."""
    return FeedForward(W_1=[[sigmoid_scale(tolerance, epsilon)]], W_2=[[1]], activation="sigmoid")


def tanh_scale(tolerance: F, radius: F) -> F:
    """Return c, the largest power of two with c² radius³/3 ≤ tolerance, for x ≈ tanh(c x)/c.

    Raises:
        InvalidValue: for a tolerance or a radius that is not positive.

    Example:
        >>> tanh_scale(F(1, 1024), F(1))
        Fraction(1, 32)

    """
    if tolerance <= 0 or radius <= 0:
        raise InvalidValue(
            "tolerance and radius must be greater than 0",
            received=f"tolerance = {tolerance}, radius = {radius}",
            where="tanh_scale",
            remedy="give a positive tolerance such as 1/1024, and a positive radius",
        )
    # c² ≤ 3 tolerance/radius³, and c = 2^k is the largest with 2^(2k) at most this: half of the
    # exponent, rounded down.
    square = power_of_two_at_most(3 * tolerance / radius**3)
    exponent = square.numerator.bit_length() - square.denominator.bit_length()
    return F(2) ** (exponent // 2)


def _tanh_error(x: F, *, tolerance: F, lo: F, hi: F) -> F:
    # 0 ≤ z − tanh z ≤ z³/3 for z ≥ 0, as 1 − tanh′ = tanh² ≤ z².
    return tanh_scale(tolerance, max(abs(lo), abs(hi))) ** 2 * abs(x) ** 3 / 3


@recipe(
    "identity-by-tanh",
    section="4",
    claim=FunctionClaim(
        statement="y ≈ x on [lo, hi], by tanh(c x)/c",
        reference=lambda x: [x],
        domain=lambda *, lo, hi: Reals(1, lo, hi),
        approximation=_tanh_error,
        approximation_statement="within c² |x|³/3 ≤ tolerance, c the largest such power of two",
        excluded={"exact": NO_EXPONENTIAL},
        variants=({"tolerance": "1e-6"}, {"lo": -4, "hi": 3, "tolerance": "1/4"}),
    ),
    sources=("its values end at ±1/c: outside [lo, hi] it is no identity",),
)
def identity_by_tanh(tolerance: F = F(1, 1024), lo: F = F(-1), hi: F = F(1)) -> FeedForward:
    """One hidden unit, c in W₁ and 1/c in W₂."""
    require_interval(lo, hi, "identity-by-tanh")
    c = tanh_scale(tolerance, max(abs(lo), abs(hi)))
    return FeedForward(W_1=[[c]], W_2=[[1 / c]], activation="tanh")


def _elu_scale(tolerance: F) -> F:
    return 1 / power_of_two_at_most(tolerance)


@recipe(
    "relu-by-elu",
    section="4",
    claim=FunctionClaim(
        statement="y ≈ ReLU(x), by ELU(c x)/c",
        reference=lambda x: [max(x, F(0))],
        domain=lambda: Reals(1),
        # ELU is ReLU above 0, and e^z − 1 below, between −1 and 0.
        approximation=lambda x, *, tolerance: (
            F(0) if x >= 0 else min(1 / _elu_scale(tolerance), -x)
        ),
        approximation_statement="exact for x ≥ 0; else within 1/c ≤ tolerance, and |x|, c the "
        "least such power of two",
        excluded={"exact": NO_EXPONENTIAL},
        variants=({"tolerance": "1e-6"}, {"tolerance": 1}),
    ),
)
def relu_by_elu(tolerance: F = F(1, 1024)) -> FeedForward:
    """One hidden unit, c in W₁ and 1/c in W₂."""
    c = _elu_scale(tolerance)
    return FeedForward(W_1=[[c]], W_2=[[1 / c]], activation="elu")


def _switched(*, epsilon: F) -> Domain:
    def away(case: Case) -> bool:
        return abs(case[0]) >= epsilon

    numbers = Product((Reals(1, points=(epsilon, -epsilon)), Reals(1)))
    return Where(numbers, away, f"|p| ≥ {epsilon}")


@recipe(
    "switch-by-glu",
    section="4",
    claim=FunctionClaim(
        statement="y ≈ x if p > 0, 0 if p < 0, for |p| ≥ ε; inputs (p, x); by σ(c p) x",
        reference=lambda p, x: [x if p > 0 else F(0)],
        domain=_switched,
        approximation=lambda p, x, *, tolerance, epsilon: (
            _decay(sigmoid_scale(tolerance, epsilon) * abs(p)) * abs(x)
        ),
        approximation_statement="within e^(−c |p|) |x| ≤ tolerance |x|, c as in step-by-sigmoid",
        excluded={"exact": NO_EXPONENTIAL},
        variants=({"tolerance": "1e-6", "epsilon": 2},),
    ),
    sources=("the gated linear unit, Dauphin et al. 2017",),
)
def switch_by_glu(tolerance: F = F(1, 1024), epsilon: F = F(1, 8)) -> FeedForward:
    """One gated unit: the value is x, the gate c p."""
    c = sigmoid_scale(tolerance, epsilon)
    return FeedForward(W_1=[[0, 1], [c, 0]], W_2=[[1]], activation="glu")


@recipe(
    "multiply-by-gate",
    section="4",
    claim=FunctionClaim(
        statement="y = x₁ x₂, by x₂ ReLU(x₁) − x₂ ReLU(−x₁)",
        reference=lambda x, y: [x * y],
        domain=lambda: Reals(2),
    ),
    sources=(
        "gated linear units with ReLU (Shazeer 2020): a product, where 4.6 approximates it by GELU",
    ),
)
def multiply_by_gate() -> FeedForward:
    """Two gated units, of which one is 0: the product rounds once."""
    return FeedForward(W_1=[[0, 1], [0, 1], [1, 0], [-1, 0]], W_2=[[1, -1]], activation="reglu")


# A transformer whose layer multiplies


def product_of_counts_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the longest n up to which #a · #b is told from #c by their shares.

    Example:
        >>> [product_of_counts_length(name) for name in ("exact", "float32", "float16")]
        [None, 1445, 100]

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u, w = a.unit_roundoff, a.accumulator_roundoff
    least_normal = F(a.smallest) * 2 ** (a.precision - 1)

    def holds(n: int) -> bool:
        # Over r = n + 1 rows every share is a sum of equal weights 1/r, off by at most ρ of itself.
        # A product of two shares rounds once more: δ. Neither underflows where 1/r² is normal.
        rows = n + 1
        rho = mean_error(rows, F(1), a)
        if math.isinf(rho) or rows**2 * least_normal > 1:
            return False
        delta = (1 + F(rho)) ** 2 * (1 + u) - 1
        # The difference of the products is off by η of itself: its sum, and its storing.
        eta = (1 + w) * (1 + u) - 1
        # Times r² the products are p = #a #b and q = #c ≤ n. If p = q, the difference is at most
        # 2 δ q (1 + η); else it is at least (|p − q| − δ (p + q))(1 − η), with p + q ≤ 2q + |p − q|
        # and |p − q| ≥ 1. The check stands at 1/2.
        most, least = 2 * delta * n * (1 + eta), (1 - delta * (2 * n + 1)) * (1 - eta)
        return most < F(1, 2) <= least

    return longest(holds)


def _is_product(x: str) -> bool:
    """True if #a · #b = #c."""
    return x.count("a") * x.count("b") == x.count("c")


def _near_products(n: int) -> list[str]:
    """Return strings of about n symbols with #a · #b − #c from −1 to 1, in several orders."""
    source, found = random.Random(n), []
    for a in sorted({*range(4), math.isqrt(n), n // 2}):
        # a + b + a b is at most n.
        b = max(n - a, 0) // (a + 1)
        for c in {a * b, a * b + 1, max(a * b - 1, 0)}:
            x = "a" * a + "b" * b + "c" * c
            found += [x, x[::-1], "".join(source.sample(x, len(x)))]
    return list(dict.fromkeys(found))


@recipe(
    "product-of-counts",
    section="4",
    claim=StringClaim(
        statement="#a · #b = #c, in any order, by products of shares in gated units",
        reference=_is_product,
        domain=lambda: Strings(("a", "b", "c"), _near_products),
        safe_length=lambda *, arithmetic: product_of_counts_length(arithmetic),
        why_safe="the difference (#a · #b − #c)/(n + 1)² of two products is a multiple of "
        "1/(n + 1)²; the check outside the weights parts 0 from the others half-way, and the "
        "shares and their products round by less",
        weightings=("softmax", "average-hard"),
        mask="none",
        variants=({"weighting": "average-hard"},),
        size="width 9, 1 layer, 2 gated units",
    ),
    sources=(
        "bilinear units (Shazeer 2020), whose products are exact in a layer of a transformer",
    ),
)
def product_of_counts(weighting: str = "softmax") -> Transformer:
    """Shares of a, b, c and BOS, which is 1/(n + 1); then share(a) share(b) − share(c) share(BOS).

    With products of numbers a layer tells whether a count is the product of two others; sums of
    shares alone are linear in the counts.
    """
    counted = ("a", "b", "c", "first")
    shares = tuple(f"share of {slot}" for slot in counted)
    stream = Stream((*counted, *shares, "difference"))
    a, b, c, first = shares
    products = FeedForward(
        W_1=stream.reading(a, c, b, first),
        W_2=stream.writing({"difference": 1}, {"difference": -1}),
        activation="bilinear",
    )
    return Transformer(
        stream=stream,
        embedding=Embedding.of(
            stream,
            {**{symbol: {symbol: 1} for symbol in "abc"}, BOS: {"first": 1}},
            front=[BOS],
        ),
        layers=(Layer((attend(stream, counted, shares, weighting=weighting),), products),),
        read_out=NearZero(W_out=stream.reading("difference"), powers=(2,)),
    )


RECIPES = (
    *(step_by_sigmoid, identity_by_tanh, relu_by_elu),
    *(switch_by_glu, multiply_by_gate, product_of_counts),
)
"""Recipes of the activations, in the order in which they are listed."""
