"""Recipes that rounding makes possible: section 7.1 of the Cookbook."""

from __future__ import annotations

from fractions import Fraction as F

from transformist.arithmetic import SYSTEMS, Floating
from transformist.claims import FunctionClaim, recipe
from transformist.domains import Domain, FormatNumbers, Where
from transformist.model import FeedForward, FeedForwardStack

_FORMATS = {name: system for name, system in SYSTEMS.items() if isinstance(system, Floating)}

_LEAST_RANGE = min(_FORMATS, key=lambda name: _FORMATS[name].largest)
"""Format whose largest number is least, so that every format holds weights built for it."""


def _smallest(format: str) -> F:
    """Return s, the smallest positive number of the format, a power of two."""
    return F(_FORMATS[format].smallest)


def _outside(*, domain: Domain, format: str) -> tuple[Domain, ...]:
    """Return the numbers of a format outside (0, s): all where it has none smaller."""
    s = _smallest(format)
    return (Where(domain, lambda case: case[0] <= 0 or case[0] >= s, "x ≤ 0 or x ≥ s"),)


def _rounding(x: F, *, format: str, u: F, w: F) -> F:
    """Return the error of x/s inside (0, s), which only a format with smaller numbers has."""
    # x/s is exact, a product with powers of two. 1 − x/s is at most 1 and is rounded in the
    # accumulator (w, twice) and stored (u), and so is its difference from 1.
    return 2 * (u + 2 * w) if 0 < x < _smallest(format) else F(0)


@recipe(
    "exact-step",
    section="7.1.1",
    claim=FunctionClaim(
        statement="y = [x > 0] for x outside (0, s), x/s inside, s the smallest positive number of "
        "the format",
        reference=lambda x, *, format: [min(F(1), max(F(0), x) / F(_FORMATS[format].smallest))],
        domain=lambda *, format: FormatNumbers(points=(_smallest(format),)),
        exact_on=_outside,
        exact_on_statement="x ≤ 0 and x ≥ s, up to the largest number: in the format, and in every "
        "other that has no smaller number and holds the weights, all numbers",
        rounding_statement="none for x ≤ 0 and x ≥ s; at most 2u for 0 < x < s (2(u + 2⁻²³) where "
        "sums accumulate in float32), which only a format with smaller numbers has",
        rounding=_rounding,
        variants=tuple({"format": name} for name in _FORMATS),
    ),
    sources=(
        "x > y for all numbers, by this step of x − y: a difference that is not 0 does not round "
        "to 0 where there are subnormal numbers",
        "comparisons with a tolerance (4.7) fail at large numbers, where x − ε rounds to x",
    ),
)
def exact_step(format: str = _LEAST_RANGE) -> FeedForwardStack:
    """y = 1 − ReLU(1 − z) = min(1, z), z = ReLU(x)/s in two factors.

    1/s itself overflows most formats. Each factor is a power of two near its root, and scaling up
    by powers of two is exact, or overflows to infinity, or to the largest number: z is exact or at
    least 1, and y is 1 wherever z is at least 1. No infinity meets 0 or another infinity.
    """
    exponent = _smallest(format).denominator.bit_length() - 1
    first = F(2) ** (exponent // 2)
    return FeedForwardStack(
        (
            FeedForward(W_1=[[first]], W_2=[[F(2) ** exponent / first]]),
            FeedForward(W_1=[[-1]], b_1=[1], W_2=[[-1]], b_2=[1]),
        )
    )


RECIPES = (exact_step,)
"""Recipes of the chapter, in the order in which they are listed."""
