"""Every matrix of a model as coloured cells with named rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import require_type
from transformist.figures.canvas import CHARACTER, GREY, VERMILION, drawn, short
from transformist.figures.matrix_cells import CELL, WIDEST, draw_cells, largest, margin_of
from transformist.model.weights_table import HasWeights, NamedMatrix, NamedPart

LINES = 40
"""Most rows and columns of a matrix that are drawn."""

MATRICES = 40
"""Most matrices that are drawn of a model."""


def weights(model: HasWeights) -> Any:
    """Draw the matrices of a model that are not all zero, with named rows and columns.

    Blue is above 0 and red below; colours compare the numbers of one matrix. Of a matrix with more
    than 12 rows or columns, rows and columns of zeros are left out. What does not fit is left out,
    and the figure says so.

    Args:
        model: a transformer, or a part of one that has weights.

    Returns:
        A matplotlib `Figure`; its label is a description in words.

    Raises:
        InvalidValue: for anything else, and without matplotlib.

    """
    require_type(
        model,
        HasWeights,
        "the model must have weights",
        where="weights",
        remedy="give tf.compile(program) or tf.recipe('dyck-1').build()",
    )
    # Biases of 0 and matrices of 0 are many in compiled models, and say only that they are 0.
    every = [(part, matrix.shown()) for part, matrix in model.weights_table() if _is_drawn(matrix)]
    shown = every[:MATRICES]
    note = f"Drawn in part: {len(shown)} of {len(every)} matrices." if shown != every else ""
    return _draw(shown, note)


def _is_drawn(matrix: NamedMatrix) -> bool:
    """True for numbers that are not all zero; formulas of positions are not numbers."""
    values = matrix.values
    is_text = any(isinstance(value, str) for value in values.ravel().tolist())
    return not is_text and bool((values != 0).any())


TALLEST, BROADEST = 7.5, 24.0
"""Height in inches of a column of matrices, and width of a row of columns, which go on below."""


Column = list[tuple[str, NamedMatrix, float]]
"""Matrices below one another, each with its title and its height."""

COLOURING = "Full colour: the largest magnitude of the matrix. ≈0: below 2^-20 of that."
"""The scale of the colours, in words."""


def _draw(shown: list[tuple[NamedPart, NamedMatrix]], note: str) -> Any:
    """Draw the matrices one below the other, in columns."""
    # Filled from the top: a matrix that would pass the bottom begins the next column. A column is
    # as wide as its widest matrix or title, so that no title runs into the next column.
    columns: list[Column] = [[]]
    filled = 0.0
    for part, matrix in shown:
        cut = ", drawn in part" if max(matrix.shape) > LINES else ""
        down = min(matrix.shape[0], LINES) * CELL + margin_of(matrix.columns, 12) + 0.55
        if columns[-1] and filled + down > TALLEST:
            columns.append([])
            filled = 0.0
        columns[-1].append((f"{part.name}: {matrix.heading()}{cut}", matrix, down))
        filled += down
    bands = _bands(columns)
    width = max(sum(across for _, across in band) for band in bands) + 0.2
    heights = [max(sum(d for _, _, d in column) for column, _ in band) for band in bands]
    height = sum(heights) + 0.25 * len(bands) + 0.45
    with drawn(width, height) as figure:
        top = height
        for band, tallest in zip(bands, heights, strict=True):
            x = 0.1
            for column, across in band:
                y = top
                for title, matrix, down in column:
                    y -= down
                    _draw_matrix(figure, (x, y, width, height), title, matrix)
                x += across
            top -= tallest + 0.25
        figure.text(0.1 / width, 0.26 / height, COLOURING, fontsize=6.5, color=GREY)
        if note:
            figure.text(0.1 / width, 0.08 / height, note, color=VERMILION)
        told = "; ".join(title for column in columns for title, _, _ in column)
        figure.set_label(" ".join(f"Matrices of weights. {note} {told}. {COLOURING}".split()))
    return figure


def _bands(columns: list[Column]) -> list[list[tuple[Column, float]]]:
    """The columns with their widths, in rows of at most `BROADEST`."""
    bands: list[list[tuple[Column, float]]] = [[]]
    for column in columns:
        across = max([2.5, *(_width(title, each) for title, each, _ in column)])
        if bands[-1] and sum(taken for _, taken in bands[-1]) + across > BROADEST:
            bands.append([])
        bands[-1].append((column, across))
    return bands


def _width(title: str, matrix: NamedMatrix) -> float:
    cells = min(matrix.shape[1], LINES) * WIDEST
    return max(margin_of(matrix.rows) + 0.1 + cells, len(title) * CHARACTER * 1.15) + 0.3


def _draw_matrix(
    figure: Any, place: tuple[float, float, float, float], title: str, matrix: NamedMatrix
) -> None:
    """Draw a matrix with its title; its place is the left and lower end, and the figure's size."""
    x, y, width, height = place
    rows, columns = matrix.rows[:LINES], matrix.columns[:LINES]
    left, top = margin_of(rows) + 0.1, margin_of(columns, 12)
    down, across = len(rows) * CELL, len(columns) * WIDEST
    axes = figure.add_axes(((x + left) / width, y / height, across / width, down / height))
    values = _floats(matrix.values)[:LINES, :LINES]
    names = [short(each) for each in rows]
    draw_cells(axes, values, names, columns, [largest(values)] * len(rows))
    figure.text(x / width, (y + down + top + 0.16) / height, title, fontweight="bold")


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    return np.array([[float(value) for value in row] for row in values.tolist()])
