"""Running sums of weights and weighted values, relative to the largest score so far.

`mass` (count, 2) and `sums` (count, 2, d_value) hold the sums of the weights and of the weighted
values, each beside its rounding error. The largest score has the weight 1; where a larger one
comes, sums are scaled down, as in an online softmax (Milakov and Gimelshein, arXiv 1805.02867).
Kernels get whole arrays and the number of a sum, as slices would cost more than the work here.
"""

from __future__ import annotations

import math
from typing import Any

from transformist.engines.structured.heads.weightings import FAR, FIRST, LAST, SOFTMAX
from transformist.engines.structured.kernel import kernel_part


@kernel_part
def start_sum(values: Any, row: int, mass: Any, sums: Any, number: int) -> None:
    """Set a sum to one value of weight 1."""
    mass[number, 0], mass[number, 1] = 1.0, 0.0
    for c in range(values.shape[1]):
        sums[number, 0, c] = values[row, c]
        sums[number, 1, c] = 0.0


@kernel_part
def clear_sum(mass: Any, sums: Any, number: int) -> None:
    """Set a sum to no value."""
    mass[number, 0], mass[number, 1] = 0.0, 0.0
    for c in range(sums.shape[2]):
        sums[number, 0, c] = 0.0
        sums[number, 1, c] = 0.0


@kernel_part
def scale_sum(factor: float, least: float, mass: Any, sums: Any, number: int) -> None:
    """Scale a sum by a factor; numbers that come below `least` become 0."""
    for part in range(2):
        mass[number, part] *= factor
    for c in range(sums.shape[2]):
        scaled, rest = sums[number, 0, c] * factor, sums[number, 1, c] * factor
        # Subnormal numbers are slow, and after many scalings a sum would stay among them for the
        # rest of the input.
        is_there = abs(scaled) + abs(rest) >= least
        sums[number, 0, c] = scaled if is_there else 0.0
        sums[number, 1, c] = rest if is_there else 0.0


@kernel_part
def add_to_sum(weight: float, values: Any, row: int, mass: Any, sums: Any, number: int) -> None:
    """Add a weighted value; the rounding errors of the sums are kept beside them."""
    # old + weight = new + ((old − (new − rest)) + (weight − rest)) exactly, with
    # rest = fl(new − old), whatever the sizes (Knuth's sum of two, TAOCP 4.2.2).
    old = mass[number, 0]
    new = old + weight
    rest = new - old
    mass[number, 1] += (old - (new - rest)) + (weight - rest)
    mass[number, 0] = new
    for c in range(values.shape[1]):
        old, more = sums[number, 0, c], weight * values[row, c]
        new = old + more
        rest = new - old
        sums[number, 1, c] += (old - (new - rest)) + (more - rest)
        sums[number, 0, c] = new


@kernel_part
def take_value(
    kind: int, above: float, values: Any, row: int, mass: Any, sums: Any, number: int
) -> bool:
    """Take a value whose score exceeds the largest so far by `above`; true if it is the largest.

    The largest score is −∞ before the first value, which is then above it by ∞.
    """
    if above < 0.0 and (kind != SOFTMAX or above < -FAR):
        return False
    if kind == FIRST and above == 0.0:
        return False
    if above > FAR or (above > 0.0 and kind != SOFTMAX) or (kind == LAST and above == 0.0):
        start_sum(values, row, mass, sums, number)
        return True
    if above > 0.0:
        scale_sum(math.exp(-above), 0.0, mass, sums, number)
    weight = math.exp(above) if above < 0.0 else 1.0
    add_to_sum(weight, values, row, mass, sums, number)
    return above > 0.0
