"""Every matrix of a model: facts for JSON, and text in which zeros are dim."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rich.text import Text

from transformist.model.weights_table import NamedMatrix, WeightsTable
from transformist.report.values import plain


def weights_facts(name: str, table: WeightsTable) -> dict[str, Any]:
    """The matrices of a model as plain values; of large ones the rows and columns not all zero.

    Example:
        >>> import transformist as tf
        >>> facts = weights_facts("max", tf.recipe("max").build().weights_table())
        >>> facts["parts"][0]["matrices"][0]["values"]
        [[1, 0], [-1, 0], [-1, 1]]

    """
    return {
        "name": name,
        "parts": [
            {
                "name": part.name,
                "kind": part.kind,
                "matrices": [_facts(each) for each in part.matrices],
            }
            for part in table.parts
        ],
    }


def _facts(matrix: NamedMatrix) -> dict[str, Any]:
    shown = matrix.shown()
    rows = [[_plain(value) for value in row] for row in shown.values.tolist()]
    return {
        "name": matrix.name,
        "shape": list(matrix.shape),
        "rows": list(shown.rows),
        "columns": list(shown.columns),
        "values": rows,
        "zero_rows_left_out": matrix.shape[0] - shown.shape[0],
        "zero_columns_left_out": matrix.shape[1] - shown.shape[1],
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else plain(Fraction(value))


def weights_text(table: WeightsTable) -> Text:
    """The text of the table for a terminal, in which numbers that are 0 are dim."""
    text = Text()
    for first, *rest in table.lines():
        text.append(first, style="" if rest or first.startswith(" ") else "bold")
        for cell in rest:
            text.append(cell, style="dim" if cell.strip() == "0" else "")
        text.append("\n")
    return text
