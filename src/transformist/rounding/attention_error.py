"""Error bounds of heads: of a mean, and of softmax over scores with one maximum.

u is the unit roundoff of the format, w that of its accumulator.
"""

from __future__ import annotations

import math
from fractions import Fraction

from transformist.arithmetic import Arithmetic
from transformist.rounding.float_format import float_format_of
from transformist.rounding.powers import SLACK
from transformist.rounding.summation_order import ANY_ORDER, Order, order_of


def mean_error(
    n: int, size: Fraction, arithmetic: Arithmetic | str, order: Order | str = ANY_ORDER
) -> float:
    """Return an error bound of the mean of n numbers, computed by attention with equal scores.

    The bound is infinite where the result or the count may overflow, or the accumulator may not
    count on (n > 1/w). In the order of the reference it is about half of that in any order.

    Args:
        n: how many numbers there are.
        size: a bound of their magnitudes.
        arithmetic: the number system.
        order: of summation, or its name in `ORDERS`.

    Raises:
        UnknownName: for an order that does not exist.

    Example:
        >>> mean_error(100, Fraction(1), "float32", "reference") < 4e-6 < mean_error(
        ...     100, Fraction(1), "float32", "any"
        ... )
        True

    """
    a, order = float_format_of(arithmetic), order_of(order)
    if a is None:
        return 0.0
    u, w = float(a.unit_roundoff), float(a.accumulator_roundoff)
    # A sum of n ones is exact up to 1/w, from where on not every integer is a number.
    if n > min(Fraction(a.largest), 1 / a.accumulator_roundoff):
        return math.inf
    # Relative errors multiply: storing the count, if it has more bits than the format (a divisor
    # off by u: 1/(1 − u)); rounding each weight 1/n (1 + u); the products and their sum (`order`);
    # storing the result (1 + u).
    count = -math.log1p(-u) if n > 2**a.precision else 0.0
    relative = math.expm1(2 * math.log1p(u) + count + order.growth(n, w))
    if size * (1 + Fraction(relative)) >= Fraction(a.largest):
        return math.inf
    # Underflow moves each weight by half of `smallest`, so each term by that times its size; each
    # product by half of `smallest_partial`; the stored result by half of `smallest`.
    underflow = a.smallest * (n * float(size) + 1) + n * a.smallest_partial
    # `SLACK` covers the rounding of this formula itself in float64.
    return (float(size) * relative + underflow) * SLACK


def softmax_error(
    n: int, scores: float, remainder: Fraction, arithmetic: Arithmetic | str
) -> float:
    """Return an error bound of a mean of values in [0, 1] that softmax fetches from one position.

    Args:
        n: how many positions there are.
        scores: a bound of the magnitude of the scores.
        remainder: a bound of the weight elsewhere, relative to the weight of the position.
        arithmetic: the number system.

    """
    a = float_format_of(arithmetic)
    if a is None:
        return 0.0
    u, w = float(a.unit_roundoff), float(a.accumulator_roundoff)
    # A score rounds at most four times (product, store, root, quotient), and its difference from
    # the largest once more, which is at most twice as large. Two scores are off by at most 4u each,
    # the difference by 2u: 10u of the largest score, (1 + u)⁴ for the higher orders.
    delta = 10 * u * (1 + u) ** 4 * scores
    if delta > 1:
        return math.inf
    # The weight elsewhere, relative to that of the position, grows by at most e^δ. The mean is a
    # fraction: the exponentials above and below it (2u each), storing their sum, the quotient and
    # storing the mean (u each) make 7u. The sum of exponentials, and the sum of products with the
    # values, round at most n + 2 times each in the accumulator.
    relative = math.expm1(7 * u + 2 * (n + 2) * math.log1p(w))
    moved = float(remainder) * math.expm1(delta)
    # In each of n places an exponential, a weight and a product may underflow.
    return (moved + (1 + moved) * relative + 3 * n * a.smallest) * SLACK
