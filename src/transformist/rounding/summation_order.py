"""Orders of summation, and the error of sums in each.

w is the unit roundoff of the accumulator. An addition in it is within w |s| of the real sum s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transformist.arithmetic import Floating
from transformist.errors import UnknownName, is_name


def _no_difference(_rows: int, _a: Floating) -> float:
    return 0.0


@dataclass(frozen=True)
class Order:
    """An order in which an evaluation adds up.

    Attributes:
        name: of the order.
        words: the order in a sentence.
        growth: function of n and w: logarithm of the factor by which a sum of n products of one
            size can exceed itself.
        accumulation: function of k, a, b and w: error bound of a sum of k hidden units. Each step
            among them has two large units, which cancel; a is the sum of the sizes of one large
            unit of each step, b the sum of the sizes of the values of the atoms.
        apart: function of the number of rows and the format: largest difference between what a
            head fetches and what it fetches in the reference, relative to the largest value.

    Example:
        >>> ANY_ORDER.accumulation(5, 8.0, 1.0, 0.5), REFERENCE_ORDER.accumulation(5, 8.0, 1.0, 0.5)
        (34.0, 6.5)

    """

    name: str
    words: str
    growth: Callable[[int, float], float]
    accumulation: Callable[[int, float, float, float], float]
    apart: Callable[[int, Floating], float] = _no_difference


def _growth_in_any(n: int, w: float) -> float:
    # A term is rounded once as a product and in at most n − 1 additions, each time by a factor of
    # at most 1 + w: (1 + w)ⁿ, and one factor to spare.
    return (n + 1) * math.log1p(w)


def _growth_from_left(n: int, w: float) -> float:
    # From left to right the k-th partial sum is at most k/n of the whole, so its rounding costs
    # w k/n instead of w. Over k = 2, …, n that is at most w (n + 1)/2, enlarged at most
    # (1 + w)^(n+1) times by the roundings before; the products add w.
    return math.log1p(w + w * (n + 1) / 2 * math.exp((n + 1) * math.log1p(w)))


def _accumulation_in_any(units: int, large: float, total: float, w: float) -> float:
    # (k − 1) w Σ|xⱼ|, as `summation.sum_error` derives; Σ|xⱼ| ≤ 2 a + b, two large units a step.
    return (units - 1) * w * (2 * large + total)


def _accumulation_from_left(units: int, large: float, total: float, w: float) -> float:
    # The two units of a step follow each other and cancel, so that a step makes only the partial
    # sum between them large: a for all steps together. Each of the k partial sums has b at most
    # beside that, and rounding costs w times their sum.
    return w * (large + units * total)


def _apart_by_methods(rows: int, a: Floating) -> float:
    # The error that `engines/structured` states for a head in float64. In narrower formats that
    # engine sums in float64, and so stays within the error bound of the reference.
    return (16 * rows + 5000) * 2.0**-53 + 2.0**-40 if a.name == "float64" else 0.0


ANY_ORDER = Order("any", "in any order of summation", _growth_in_any, _accumulation_in_any)
"""Every order, as linear algebra libraries choose it."""

REFERENCE_ORDER = Order(
    "reference",
    "in the order of the reference, from left to right",
    _growth_from_left,
    _accumulation_from_left,
)
"""Order of `Transformer.run`."""

STRUCTURED_ORDER = Order(
    "structured",
    "by the structured engine, in the order of each method",
    _growth_from_left,
    _accumulation_from_left,
    _apart_by_methods,
)
"""Order of `engines/structured`."""

ORDERS: Mapping[str, Order] = {
    each.name: each for each in (ANY_ORDER, REFERENCE_ORDER, STRUCTURED_ORDER)
}
"""Orders by name; in each, softmax is normalised before it is applied."""


def order_of(given: Order | str) -> Order:
    """Return the order of summation of this name; an `Order` is returned as it is.

    Raises:
        UnknownName: for a name that no order has.

    Example:
        >>> order_of("any") is ANY_ORDER is order_of(ANY_ORDER)
        True

    """
    if isinstance(given, Order):
        return given
    if not is_name(given, ORDERS):
        raise UnknownName.among("order of summation", given, ORDERS)
    return ORDERS[given]
