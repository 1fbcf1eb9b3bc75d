"""Failure signatures: the ways in which a number of a run in a format leaves its exact value.

They are the five that docs/diagnosis.md lists: a retrieval that blends positions, a comparison
in its linear region, a norm that moves a stored value, a count below the resolution of the format,
and overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Blend:
    """A head gives weight to other positions than average-hard attention does.

    Attributes:
        layer, head: which head.
        query: position of the query.
        gap: least score of a wanted position minus the largest of the others, in real numbers.
        lead: the same difference of the scores that the format computes; at most 0 where no
            sharpness helps.
        positions, weights: the positions with most weight in the format, and their weights.
        wanted: the first positions of those that share the weight in the ideal.
        stray: the weight on other positions than these.

    """

    name: ClassVar[str] = "retrieval blends positions"

    layer: int
    head: int
    query: int
    gap: float
    lead: float
    positions: tuple[int, ...]
    weights: tuple[float, ...]
    wanted: tuple[int, ...]
    stray: float


@dataclass(frozen=True, kw_only=True)
class LinearRegion:
    """A comparison is given a number in its linear region, or beyond it on the wrong side.

    Attributes:
        layer: of the network.
        value: distance of the number from the end of the region at which the answer is 0.
        exact: the same distance without rounding.
        epsilon: ε, the width of the region.

    """

    name: ClassVar[str] = "comparison falls in its linear region"

    layer: int
    value: float
    exact: float
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class MovedByNorm:
    """A norm scales a stored value otherwise than without rounding.

    Attributes:
        slot: what the coordinate holds.
        factor: normalized value in the format, divided by the exact one.

    """

    name: ClassVar[str] = "norm moves a stored value"

    slot: str
    factor: float


@dataclass(frozen=True, kw_only=True)
class BelowResolution:
    """Neighbouring numbers of the format are too far apart for the value that is stored.

    Attributes:
        of: the slot or the hidden unit that holds the value.
        value: the value before it is rounded.
        spacing: distance of neighbouring numbers of the format at the value.

    """

    name: ClassVar[str] = "count falls below the format's resolution"

    of: str
    value: float
    spacing: float


@dataclass(frozen=True, kw_only=True)
class Overflow:
    """A number is larger than the largest of the format, or saturates there.

    Attributes:
        of: the weight, score, hidden unit or slot that overflows.
        value: the number without the limit.
        largest: the largest number of the format.

    """

    name: ClassVar[str] = "saturation or overflow"

    of: str
    value: float
    largest: float


Signature = Blend | LinearRegion | MovedByNorm | BelowResolution | Overflow
