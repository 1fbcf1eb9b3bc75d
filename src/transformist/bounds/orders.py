"""Orders of summation, and what sums cost in each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from transformist.arithmetic import Floating
from transformist.errors import UnknownName, is_name


def _nothing(_rows: int, _a: Floating) -> float:
    return 0.0


@dataclass(frozen=True)
class Order:
    """An order in which an evaluation adds up.

    Attributes:
        name: by which it is asked for.
        words: what it is called in a sentence.
        growth: of n and w, the logarithm of how much larger a sum of n products of one size can be
            than it is, w the unit roundoff of the accumulator.
        accumulation: of k, a, b and w, how far a sum of k hidden units can be off: a step has two
            that are large, a is what one of each comes to, and b what the sum comes to.
        apart: of the most rows and the format, how far what a head fetches can be from that of the
            reference, in relation to the largest value.

    Example:
        >>> ANY_ORDER.accumulation(5, 8.0, 1.0, 0.5), REFERENCE_ORDER.accumulation(5, 8.0, 1.0, 0.5)
        (34.0, 6.5)

    """

    name: str
    words: str
    growth: Callable[[int, float], float]
    accumulation: Callable[[int, float, float, float], float]
    apart: Callable[[int, Floating], float] = _nothing


def _growth_in_any(n: int, w: float) -> float:
    return (n + 1) * math.log1p(w)


def _growth_from_left(n: int, w: float) -> float:
    return math.log1p(w + w * (n + 1) / 2 * math.exp((n + 1) * math.log1p(w)))


def _accumulation_in_any(units: int, large: float, total: float, w: float) -> float:
    """All large ones may be added first."""
    return (units - 1) * w * (2 * large + total)


def _accumulation_from_left(units: int, large: float, total: float, w: float) -> float:
    """The two units of a step follow each other: beside a large one there is the total at most."""
    return w * (large + units * total)


def _apart_by_methods(rows: int, a: Floating) -> float:
    """What `evaluate` states for float64; in float32 it sums in float64, within the reference's."""
    return (16 * rows + 5000) * 2.0**-53 + 2.0**-40 if a.name == "float64" else 0.0


ANY_ORDER = Order("any", "in any order of summation", _growth_in_any, _accumulation_in_any)
"""As linear algebra libraries choose it."""

REFERENCE_ORDER = Order(
    "reference",
    "in the order of the reference, from left to right",
    _growth_from_left,
    _accumulation_from_left,
)
"""That of `Transformer.run`."""

STRUCTURED_ORDER = Order(
    "structured",
    "by the structured engine, in the order of each method",
    _growth_from_left,
    _accumulation_from_left,
    _apart_by_methods,
)
"""That of `engines/structured`."""

ORDERS: Mapping[str, Order] = {
    each.name: each for each in (ANY_ORDER, REFERENCE_ORDER, STRUCTURED_ORDER)
}
"""Those by name; in each, softmax is normalised before it is applied."""


def order_of(given: Order | str) -> Order:
    """An order of summation by its name, or as it is.

    Raises:
        UnknownName: for a name that there is not.

    Example:
        >>> order_of("any") is ANY_ORDER is order_of(ANY_ORDER)
        True

    """
    if isinstance(given, Order):
        return given
    if not is_name(given, ORDERS):
        raise UnknownName.among("order of summation", given, ORDERS)
    return ORDERS[given]
