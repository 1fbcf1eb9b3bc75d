"""Weighted sums of values, kept as keys come: those of the largest score so far, or around it.

`mass` (count, 2) and `sums` (count, 2, d_value) hold the sums of the weights and of the weighted
values, the largest score having the weight 1, each with its error. Arrays come whole, with the
places in them, as slices of them cost more than what is done here.
"""

from __future__ import annotations

import math
from typing import Any

from transformist.engines.structured.heads.weightings import FAR, FIRST, LAST, SOFTMAX
from transformist.engines.structured.kernel import kernel_part


@kernel_part
def start_sum(values: Any, row: int, mass: Any, sums: Any, number: int) -> None:
    """One value, of weight 1."""
    mass[number, 0], mass[number, 1] = 1.0, 0.0
    for c in range(values.shape[1]):
        sums[number, 0, c] = values[row, c]
        sums[number, 1, c] = 0.0


@kernel_part
def clear_sum(mass: Any, sums: Any, number: int) -> None:
    """No value."""
    mass[number, 0], mass[number, 1] = 0.0, 0.0
    for c in range(sums.shape[2]):
        sums[number, 0, c] = 0.0
        sums[number, 1, c] = 0.0


@kernel_part
def scale_sum(factor: float, least: float, mass: Any, sums: Any, number: int) -> None:
    """The sums, of weights so many times smaller; 0 where they come below a number."""
    for part in range(2):
        mass[number, part] *= factor
    for c in range(sums.shape[2]):
        scaled, rest = sums[number, 0, c] * factor, sums[number, 1, c] * factor
        is_there = abs(scaled) + abs(rest) >= least
        sums[number, 0, c] = scaled if is_there else 0.0
        sums[number, 1, c] = rest if is_there else 0.0


@kernel_part
def add_to_sum(weight: float, values: Any, row: int, mass: Any, sums: Any, number: int) -> None:
    """One more value; the errors of the sums are kept beside them (Knuth's sum of two)."""
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
    kind: int, below: float, values: Any, row: int, mass: Any, sums: Any, number: int
) -> bool:
    """A value comes whose score lies so far below the largest before it; is it the new largest?"""
    if below < 0.0 and (kind != SOFTMAX or below < -FAR):
        return False
    if kind == FIRST and below == 0.0:
        return False
    if below > FAR or (below > 0.0 and kind != SOFTMAX) or (kind == LAST and below == 0.0):
        start_sum(values, row, mass, sums, number)
        return True
    if below > 0.0:
        scale_sum(math.exp(-below), 0.0, mass, sums, number)
    weight = math.exp(below) if below < 0.0 else 1.0
    add_to_sum(weight, values, row, mass, sums, number)
    return below > 0.0
