"""Positional features: section 3.5 of the Cookbook, and the vectors of 5.3."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from fractions import Fraction as F
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Arithmetic, Floating
from transformist.assembly import attend
from transformist.catalogue.safe_lengths import count_length, longest
from transformist.claims import PositionClaim, SequenceClaim, recipe, rounded_once
from transformist.domains import Feature, Sequences
from transformist.errors import InvalidValue
from transformist.model import Attention, PositionFunctions, PositionTable, Stream
from transformist.model.position_encoding import sinusoid
from transformist.rounding import mean_error


def _cubes_below_overflow(*, arithmetic: Arithmetic) -> int | None:
    """Return the largest i with i³ at most the largest number of the format."""
    if not isinstance(arithmetic, Floating):
        return None
    most = int(arithmetic.largest)
    return longest(lambda i: i**3 <= most)


@recipe(
    "position-reciprocal",
    section="3.5.1",
    claim=PositionClaim(statement="pe(i) = 1/i", reference=lambda *, i: [F(1, i)]),
)
def position_reciprocal() -> PositionFunctions:
    """1/i."""
    return PositionFunctions(("1/i",))


@recipe(
    "position-fraction",
    section="3.5.1",
    claim=PositionClaim(
        statement="pe_n(i) = i/n", reference=lambda *, i, n: [F(i, n)], depends_on=("n",)
    ),
    sources=("attention cannot compute it: unmasked, every position gets the same",),
    errata=("fraction-by-attention",),
)
def position_fraction() -> PositionFunctions:
    """i/n."""
    return PositionFunctions(("i/n",))


@recipe(
    "position-parity",
    section="5.2",
    claim=PositionClaim(
        statement="pe(i) = (−1)^i",
        reference=lambda *, i: [-1 if i % 2 else 1],
        error=lambda: F(0),
        error_statement="exact, wherever it is claimed",
    ),
)
def position_parity() -> PositionFunctions:
    """−1 at odd positions, 1 at even ones."""
    return PositionFunctions(("(-1)^i",))


@recipe(
    "position-power",
    section="3.5.1",
    claim=PositionClaim(
        statement="pe(i) = [i, i², i³]",
        reference=lambda *, i: [i, i * i, i * i * i],
        safe_length=_cubes_below_overflow,
        why_safe="i³ stays below the largest number of the format",
    ),
)
def position_power() -> PositionFunctions:
    """i, i², i³."""
    return PositionFunctions(("i", "i^2", "i^3"))


@recipe(
    "position-one-hot",
    section="5.3.1",
    claim=PositionClaim(
        statement="pe(i) = eᵢ in R^N",
        reference=lambda *, i, max_length: [int(k == i) for k in range(1, max_length + 1)],
        error=lambda: F(0),
        error_statement="exact, wherever it is claimed",
        variants=({"max_length": 1}, {"max_length": 11}),
        depends_on=("N",),
        size="width N",
    ),
)
def position_one_hot(max_length: int = 64) -> PositionTable:
    """The identity matrix."""
    require_size(max_length, max_length, "position-one-hot")
    return PositionTable(vectors=np.eye(max_length))


MOST_NUMBERS = 2**24
"""Most numbers that a table of positions may hold."""


def require_size(rows: int, width: int, where: str) -> None:
    """Refuse a table of positions too large to build.

    Raises:
        InvalidValue: for more than `MOST_NUMBERS` numbers.

    """
    if rows * width > MOST_NUMBERS:
        raise InvalidValue(
            f"a table of positions must hold at most {MOST_NUMBERS:,} numbers",
            received=f"{rows:,} positions of width {width:,}",
            where=where,
            remedy="build it for fewer positions, or use i and i², which need no table",
        )


def almost_orthogonal_dimension(max_length: int, epsilon: F) -> int:
    """Return m such that N random vectors of ±1 have |x · y| ≤ ε m for x ≠ y, with probability ≥ ½.

    Example:
        >>> almost_orthogonal_dimension(64, F(1, 4))
        288

    """
    # By Hoeffding a pair fails with probability at most 2 e^(−ε² m/2), and there are N(N − 1)/2
    # pairs. Their sum is at most ½ where m ≥ (2/ε²) ln(2 N(N − 1)).
    pairs = max(max_length * (max_length - 1), 1)
    return max(1, math.ceil(2 / epsilon**2 * F(math.log(2 * pairs))))


def printed_dimension(max_length: int, epsilon: F, k: F) -> int:
    """Return m = ⌈12 k ε⁻² ln 2N⌉, Eq. 38, enough with probability at least 1 − N^(−k) for k ≥ 2/5.

    Raises:
        InvalidValue: for k < 2/5, where that is not shown, and false for k = 1/5 and N = 256.

    Example:
        >>> printed_dimension(64, F(1, 4), F(1))
        932

    """
    if k < F(2, 5):
        raise InvalidValue(
            "k must be at least 2/5: for small k the vectors of Eq. 38 fail more often",
            received=f"k = {k}",
            where="printed_dimension",
            remedy="give a larger k, or use almost_orthogonal_dimension",
        )
    # By Hoeffding N² e^(−6 k ln 2N) ≤ N^(−k) is enough: (2N)^(6k) ≥ N^(2 + k), which holds for
    # 5k ≥ 2.
    return math.ceil(12 * k / epsilon**2 * F(math.log(2 * max_length)))


FAMILIES = 64
"""Number of families that are drawn before a refusal."""
# With the derived m each is almost orthogonal with probability ≥ ½: none of 64 is with ≤ 2⁻⁶⁴.


@functools.lru_cache(maxsize=8)
def almost_orthogonal(
    max_length: int, epsilon: F, width: int | None, seed: int
) -> tuple[tuple[int, ...], ...]:
    """Return N vectors of m signs with |x · y| ≤ ε m for all x ≠ y, drawn until they are.

    Raises:
        InvalidValue: when ε is not below ½, or no family is found.

    """
    if epsilon >= F(1, 2):
        raise InvalidValue(
            "almost orthogonal vectors must have ε < 1/2, so that a vector is nearest to itself",
            received=f"epsilon = {epsilon}",
            where="almost orthogonal vectors",
            remedy="give a smaller epsilon, such as 1/4",
        )
    m = almost_orthogonal_dimension(max_length, epsilon) if width is None else width
    require_size(max_length, m, "almost-orthogonal")
    source = random.Random(seed)
    for _ in range(FAMILIES):
        drawn = source.choices((-1, 1), k=max_length * m)
        signs = np.array(drawn, np.int8).reshape(max_length, m)
        if _largest_product(signs) <= epsilon * m:
            return tuple(tuple(row) for row in signs.tolist())
    raise InvalidValue(
        f"{max_length} vectors of {m} signs must have |x · y| ≤ {epsilon} · {m} for all x ≠ y",
        received=f"none among {FAMILIES} families drawn with seed {seed}",
        where="almost-orthogonal",
        remedy=f"give width = {almost_orthogonal_dimension(max_length, epsilon)}, or leave it out",
    )


ROWS = 1024
"""Vectors that are multiplied with all others at once; N² products would not fit in memory."""


def _largest_product(signs: NDArray[np.int8]) -> float:
    """Return the largest |x · y| of two different rows of signs.

    Example:
        >>> _largest_product(np.array([[1, 1, 1], [1, 1, -1], [-1, 1, 1]], np.int8))
        1.0

    """
    # In float32, for the speed of BLAS. No partial sum is larger than m ≤ `MOST_NUMBERS` = 2²⁴, to
    # which float32 holds every whole number: nothing rounds, in whatever order the sums are taken.
    x, largest = signs.astype(np.float32), 0.0
    for start in range(0, len(x), ROWS):
        products = np.abs(x[start : start + ROWS] @ x[start:].T)
        np.fill_diagonal(products, 0)
        largest = max(largest, float(products.max()))
    return largest


def _products(vectors: list[list[F]]) -> list[list[F]]:
    """Return |x · y|/m for all pairs, from products of whole numbers."""
    x = np.array(vectors, dtype=np.float64)
    return [[F(int(entry), x.shape[1]) for entry in row] for row in np.abs(x @ x.T)]


@recipe(
    "position-almost-orthogonal",
    section="5.3.2",
    claim=PositionClaim(
        statement="pe(i) = xᵢ in {−1, 1}^m with xᵢ · xᵢ = m and |xᵢ · xⱼ| ≤ ε m",
        reference=lambda *, i, n: [int(i == j) for j in range(1, n + 1)],
        observed=_products,
        error=lambda *, value, epsilon: F(0) if value else epsilon,
        error_statement="|xᵢ · xⱼ|/m is 1 for i = j and at most ε elsewhere, in every arithmetic",
        variants=(
            {"max_length": 16, "seed": 3},
            {"max_length": 12, "epsilon": "2/5", "width": 40},
        ),
        depends_on=("N",),
        size="width m = ⌈(2/ε²) ln(2 N(N − 1))⌉, or as set",
    ),
    sources=(
        "the printed m = ⌈12 k ε⁻² ln 2N⌉ (Eq. 38) needs k ≥ 2/5: bounds.printed_dimension",
        "√m times the vectors of Eq. 37, so that every format holds them exactly",
    ),
    errata=("almost-orthogonal-probability", "almost-orthogonal-dimension"),
)
def position_almost_orthogonal(
    max_length: int = 64, epsilon: F = F(1, 4), width: int | None = None, seed: int = 0
) -> PositionTable:
    """Random signs, drawn again until the family is almost orthogonal."""
    return PositionTable(vectors=almost_orthogonal(max_length, epsilon, width, seed))


def _sine(x: F) -> F:
    """Return sin x to within 2⁻⁹⁰, by its series."""
    # Once k exceeds x the terms alternate and shrink, so that the rest is less than the next term.
    # Each term is rounded to a multiple of 2⁻¹⁶⁰, without which fractions would grow for ever.
    total, term, k = F(0), x, 1
    while abs(term) > F(1, 2**100) or k < x:
        total += term
        term = -term * x * x / ((k + 1) * (k + 2))
        term = F(round(term * 2**160), 2**160)
        k += 2
    return total


@functools.cache
def _pi() -> F:
    """Return π to within 2⁻¹⁰⁰, by Machin's formula."""

    def arctangent(inverse: int) -> F:
        return sum((F((-1) ** k, (2 * k + 1) * inverse ** (2 * k + 1)) for k in range(90)), F(0))

    # The first term left out, 16/(181 · 5¹⁸¹), is below 2⁻⁴²⁰.
    return 4 * (4 * arctangent(5) - arctangent(239))


@functools.cache
def _sinusoid(i: int, width: int) -> list[F]:
    """Return cos and sin of i/10000^(2c/d) for c from 0, by their series."""
    values: list[F] = []
    for c in range(width // 2):
        rate = _root(F(1, 10**8) ** c, width)
        values += [_sine(_pi() / 2 - i * rate), _sine(i * rate)]
    return values


@functools.cache
def on_the_circle(i: int, period: int) -> tuple[F, F]:
    """Return cos and sin of 2πi/m to within 2⁻⁸⁰, the same for equal i mod m."""
    angle = 2 * _pi() * (i % period) / period
    return _sine(_pi() / 2 - angle), _sine(angle)


@functools.cache
def _root(x: F, degree: int) -> F:
    """Return x^(1/degree) for x ≤ 1 to within 2⁻⁸⁰."""
    low, high = F(0), F(1)
    while high - low > F(1, 2**90):
        middle = (low + high) / 2
        low, high = (middle, high) if middle**degree <= x else (low, middle)
    return high


@recipe(
    "position-sinusoidal",
    section="3.5.2",
    claim=PositionClaim(
        statement="pe(i) = [cos(i/10000^(2c/d)), sin(i/10000^(2c/d))] for c = 0, …, d/2 − 1",
        reference=lambda *, i, width: _sinusoid(i, width),
        error=lambda *, arithmetic, value: rounded_once(arithmetic, value) + F(1, 2**70),
        error_statement="rounded once from the real value, which the rationals are within 2⁻⁷⁰ of",
        variants=({"width": 2, "max_length": 12},),
        depends_on=("N",),
        size="width d, whatever N",
    ),
    sources=("the original transformer has sin at 2c and cos at 2c + 1",),
    errata=("sinusoid-coordinates",),
)
def position_sinusoidal(max_length: int = 64, width: int = 8) -> PositionTable:
    """Rationals near cosine and sine, which every float format rounds as it rounds these."""
    if width % 2:
        raise InvalidValue(
            "sinusoids must come in pairs",
            received=f"width = {width}",
            where="position-sinusoidal",
            remedy="give an even width",
        )
    require_size(max_length, width, "position-sinusoidal")
    # Coordinate 2c is a cosine here, and a sine in the original transformer.
    places = [(2 * c + odd) for c in range(width // 2) for odd in (1, 0)]
    return PositionTable(
        vectors=[[sinusoid(i, each, width) for each in places] for i in range(1, max_length + 1)]
    )


def layernorm_hash(x: int, bits: int = 110) -> Sequence[F]:
    """Return √(2/(x² + 1)) [x, 1, −x, −1], the root rounded down to a multiple of 2^−bits."""
    root = F(math.isqrt(2 * 4**bits // (x * x + 1)), 2**bits)
    return [root * x, root, -root * x, -root]


@recipe(
    "position-layernorm-hash",
    section="5.3.3",
    claim=PositionClaim(
        statement="pe(i) = lh(i) = √(2/(i² + 1)) [i, 1, −i, −1] = LN([i, 1, −i, −1])",
        reference=lambda *, i: list(layernorm_hash(i)),
        # In float64 the quotient rounds, its root halves that and rounds, and the product rounds:
        # 2.5 · 2⁻⁵³ of the value, below 2⁻⁵¹.
        error=lambda *, arithmetic, value: (
            (F(1, 2**51) + arithmetic.unit_roundoff) * abs(value)
            + F(getattr(arithmetic, "smallest", 0))
        ),
        error_statement="within 2⁻⁵¹ of the real value, relatively, as rational; then rounded once",
        variants=({"max_length": 12},),
        depends_on=("N",),
        size="width 4, whatever N",
    ),
    sources=("LN of population variance and ε = 0; LN(k[x, 1, −x, −1]) = lh(x) for k > 0",),
    errata=("hash-scale",),
)
def position_layernorm_hash(max_length: int = 64) -> PositionTable:
    """The float64 values, taken exactly."""
    require_size(max_length, 4, "position-layernorm-hash")
    return PositionTable(
        vectors=[
            [math.sqrt(2 / (i * i + 1)) * entry for entry in (i, 1, -i, -1)]
            for i in range(1, max_length + 1)
        ]
    )


_FLAG = Feature("[j is BOS]", lambda i, _n: (int(i == 1),))

_MEAN_OF_FLAG: dict[str, Any] = {
    "domain": lambda: Sequences((_FLAG,)),
    "error": lambda *, n, arithmetic: mean_error(n, F(1), arithmetic),
    "error_statement": "bounds.mean_error",
    "safe_length": lambda *, arithmetic: count_length(arithmetic),
    "why_safe": "bounds.count_length",
    "weightings": ("softmax", "average-hard"),
    "variants": ({"weighting": "average-hard"},),
}


@recipe(
    "reciprocal-from-bos",
    section="3.4",
    claim=SequenceClaim(
        statement="yᵢ = 1/i, BOS being position 1 (1/(i + 1) where BOS is position 0)",
        reference=lambda *, n: [[F(1, i)] for i in range(1, n + 1)],
        mask="future",
        **_MEAN_OF_FLAG,
    ),
    errata=("reciprocal-bos", "reciprocal-any-token"),
)
def reciprocal_from_bos(weighting: str = "softmax") -> Attention:
    """The mean, up to each position, of a flag that BOS alone has."""
    return _share_of_bos(weighting, mask="future")


@recipe(
    "one-over-n-from-bos",
    section="3.4",
    claim=SequenceClaim(
        statement="yᵢ = 1/n, BOS counted among the n (1/(n + 1) where it is not)",
        reference=lambda *, n: [[F(1, n)]] * n,
        mask="none",
        **_MEAN_OF_FLAG,
    ),
    sources=("the printed i/n cannot come of it: every position gets the same",),
    errata=("fraction-by-attention",),
)
def one_over_n_from_bos(weighting: str = "softmax") -> Attention:
    """The mean of a flag that BOS alone has."""
    return _share_of_bos(weighting, mask="none")


def _share_of_bos(weighting: str, mask: str) -> Attention:
    return attend(Stream(("bos",)), ["bos"], ["bos"], weighting=weighting, mask=mask)


RECIPES = (
    position_reciprocal,
    position_fraction,
    position_parity,
    position_power,
    position_one_hot,
    position_almost_orthogonal,
    position_sinusoidal,
    position_layernorm_hash,
    reciprocal_from_bos,
    one_over_n_from_bos,
)
"""Recipes of the chapter, in the order in which they are listed."""
