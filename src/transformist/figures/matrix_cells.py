"""Matrices of numbers as coloured cells, with names for rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.figures.canvas import CHARACTER, LONGEST, in_digits, short

CELL = 0.24
"""Side of a cell in inches."""

WIDEST = 0.5
"""Width in inches of a cell with a number in it."""

NEGLIGIBLE = 2.0**-20
"""A number of less than this share of full colour is shown as ≈0: its digits say nothing."""


def largest(values: NDArray[Any]) -> float:
    """The largest magnitude of the finite numbers of an array; 0 without any."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0))


def cell_text(value: float, size: float) -> str:
    """A number in a few characters; nothing for 0.

    Args:
        value: the number.
        size: the magnitude that has full colour.

    Example:
        >>> cell_text(0.5, 1), cell_text(-1 / 3, 1), cell_text(2048.0, 4096), cell_text(0.0, 1)
        ('0.5', '-0.333', '2048', '')
        >>> cell_text(1e-9, 1)
        '≈0'

    """
    if value == 0:
        return ""
    return "≈0" if abs(value) < NEGLIGIBLE * size else in_digits(value)


def draw_cells(
    axes: Any,
    values: NDArray[Any],
    rows: Sequence[str],
    columns: Sequence[str],
    sizes: Sequence[float],
) -> None:
    """Draw cells, blue above 0 and red below, with their numbers.

    Args:
        axes: where to draw.
        values: float64, shape (rows, columns).
        rows: the names of the rows, as they are shown.
        columns: the names of the columns.
        sizes: the magnitude that has full colour, for each row.

    """
    # Infinities have no share of a colour: their cells stay white, and their text says what they
    # are. Without this one overflow would take the colour from all the others of its row.
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    size = np.array(sizes, dtype=float).reshape(-1, 1)
    numbers: list[list[float]] = values.tolist()
    # Full colour is left out: black digits stay readable on it.
    shares = np.divide(finite, size, out=np.zeros_like(finite), where=size > 0)
    axes.imshow(shares, cmap="RdBu", vmin=-1.8, vmax=1.8, aspect="auto", interpolation="none")
    for row, column in np.ndindex(*values.shape):
        text = cell_text(numbers[row][column], sizes[row])
        axes.text(column, row, text, ha="center", va="center", fontsize=6)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), [short(each, 12) for each in columns])
    # Lines between the cells: minor ticks stand half-way between the middles of two cells.
    axes.set_xticks(np.arange(-0.5, len(columns)), minor=True)
    axes.set_yticks(np.arange(-0.5, len(rows)), minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.xaxis.tick_top()
    # Names wider than a cell are turned, as they would run into each other.
    longest = max((len(short(each, 12)) for each in columns), default=0)
    if longest * CHARACTER > WIDEST:
        axes.tick_params(axis="x", rotation=90)
    for spine in axes.spines.values():
        spine.set_visible(False)


def margin_of(names: Sequence[str], longest: int = LONGEST) -> float:
    """Return the width in inches of the longest of these names."""
    return max((len(short(each, longest)) for each in names), default=0) * CHARACTER
