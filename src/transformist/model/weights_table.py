"""Tables of weights: every matrix of a model, with names for its rows and columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.errors import visible

LARGE = 12
"""A matrix with more rows or columns than this is shown without those that are all zero."""

_LONGEST = 16
"""Most characters of an exact number in a text; a longer one is shown in six digits after ≈."""


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A matrix of weights with names for its rows and columns; a vector is a matrix of one row.

    Attributes:
        name: the field's name, such as `W_Q`.
        rows: the names of the rows.
        columns: the names of the columns.
        values: exact numbers, shape (rows, columns); of positions by formula, the formulas as text.

    """

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.rows), len(self.columns)

    def shown(self) -> NamedMatrix:
        """The matrix itself; of a large one the rows and columns that are not all zero.

        Example:
            >>> import numpy as np
            >>> large = NamedMatrix("W", ("a",), tuple(map(str, range(13))), np.eye(1, 13))
            >>> large.shown().shape
            (1, 1)

        """
        if max(self.shape) <= LARGE:
            return self
        is_set = self.values != 0
        rows, columns = np.flatnonzero(is_set.any(axis=1)), np.flatnonzero(is_set.any(axis=0))
        return NamedMatrix(
            self.name,
            tuple(self.rows[row] for row in rows),
            tuple(self.columns[column] for column in columns),
            self.values[np.ix_(rows, columns)],
        )

    def grid(self) -> list[list[str]]:
        """Cells of the text of the matrix, the first row and column of which are names.

        A matrix that is still wide without its columns of zeros has a row of text for each row,
        with the entries that are not zero: `b: 2, d: -1`.
        """
        shown = self.shown()
        if not (shown.values != 0).any():
            return []
        names = [visible(each) for each in shown.columns]
        cells = [[number_in_words(value) for value in row] for row in shown.values.tolist()]
        if len(names) > LARGE:
            found = (zip(row, names, strict=True) for row in cells)
            sums = [", ".join(f"{name}: {v}" for v, name in row if v != "0") for row in found]
            return [[visible(row), each] for row, each in zip(shown.rows, sums, strict=True)]
        rows = [[visible(name), *row] for name, row in zip(shown.rows, cells, strict=True)]
        return [["", *names], *rows]

    def heading(self) -> str:
        """Name and shape of the matrix, and the numbers of rows and columns that are left out."""
        shown = self.shown()
        is_vector = self.rows == (self.name,)
        text = f"{self.name} ({' × '.join(map(str, self.shape[is_vector:]))})"
        if not (shown.values != 0).any():
            return f"{text}: all zero"
        pairs = zip(self.shape, shown.shape, ("row", "column"), strict=True)
        left_out = [
            f"{whole - kept} {noun}{'s' if whole - kept > 1 else ''}"
            for whole, kept, noun in pairs
            if whole > kept
        ]
        return f"{text}: {' and '.join(left_out)} of zeros left out" if left_out else text


@dataclass(frozen=True, eq=False)
class NamedPart:
    """A part of a model with its matrices.

    Attributes:
        name: the part, such as `layer 0 attention, head 0`.
        kind: what it is beside its weights, such as `softmax, mask future`.
        matrices: its matrices and vectors.

    """

    name: str
    kind: str
    matrices: tuple[NamedMatrix, ...] = ()


@dataclass(frozen=True, eq=False)
class WeightsTable:
    """Every matrix of a model, part by part; its text is aligned for a fixed-width font.

    Example:
        >>> import transformist as tf
        >>> print(tf.recipe("scale").build(factor="1/3").weights_table())
        feed-forward: relu
          W_1 (2 × 1)
                      input 0
            hidden 0        1
            hidden 1       -1
          b_1 (2): all zero
          W_2 (1 × 2)
                      hidden 0  hidden 1
            output 0       1/3      -1/3
          b_2 (1): all zero

    """

    parts: tuple[NamedPart, ...]

    def __iter__(self) -> Iterator[tuple[NamedPart, NamedMatrix]]:
        """Every matrix, with its part."""
        return ((part, matrix) for part in self.parts for matrix in part.matrices)

    def __getitem__(self, key: tuple[str, str]) -> NamedMatrix:
        """The matrix with this name in the part with this name.

        Raises:
            KeyError: where there is none.

        """
        for part, matrix in self:
            if (part.name, matrix.name) == key:
                return matrix
        raise KeyError(key)

    def __str__(self) -> str:
        return "\n".join("".join(cells).rstrip() for cells in self.lines())

    def lines(self) -> Iterator[list[str]]:
        """Lines of the text, each a list of cells that are padded to their columns."""
        for part in self.parts:
            yield [visible(f"{part.name}: {part.kind}" if part.kind else part.name)]
            for matrix in part.matrices:
                yield [f"  {matrix.heading()}"]
                yield from _aligned(matrix.grid())


def _aligned(grid: list[list[str]]) -> Iterator[list[str]]:
    """Rows of a grid with names to the left and numbers to the right of their columns."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    is_list = bool(grid and grid[0][0])  # entries in words, without a row of names above
    for first, *rest in grid:
        cells = [f"  {each}" for each in rest]
        if not is_list:
            cells = [each.rjust(w + 2) for each, w in zip(cells, widths[1:], strict=True)]
        yield [f"    {first.ljust(widths[0])}", *cells]


def number_in_words(value: Any) -> str:
    """An exact number as p or p/q; a long one in six digits after ≈; a formula as it is.

    Example:
        >>> number_in_words(0.75), number_in_words(2.0), number_in_words("i/n")
        ('3/4', '2', 'i/n')
        >>> number_in_words(0.1)
        '≈0.1'

    """
    if isinstance(value, str):
        return value
    exact = Fraction(value)
    text = str(exact)
    if len(text) <= _LONGEST:
        return text
    digits = Context(prec=6).divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"≈{digits.normalize():g}"


def numbered(noun: str, count: int) -> tuple[str, ...]:
    """Names of coordinates that have none of their own.

    Example:
        >>> numbered("query", 2)
        ('query 0', 'query 1')

    """
    return tuple(f"{noun} {number}" for number in range(count))


def named_matrix(
    name: str, rows: Sequence[object], columns: Sequence[str], values: Any
) -> NamedMatrix:
    """A matrix with names; the names of rows may be any symbols."""
    return NamedMatrix(name, tuple(map(str, rows)), tuple(columns), np.asarray(values))


def named_vector(name: str, coordinates: Sequence[str], values: Any) -> NamedMatrix:
    """A vector with names for its coordinates, as a matrix of one row."""
    return NamedMatrix(name, (name,), tuple(coordinates), np.asarray(values)[None, :])


class HasWeights(ABC):
    """A definition whose matrices have named rows and columns."""

    @abstractmethod
    def named_parts(
        self, name: str = "", reads: Sequence[str] = (), writes: Sequence[str] = ()
    ) -> Iterator[NamedPart]:
        """The parts of the definition with their matrices.

        Args:
            name: the name of the definition in its model.
            reads: the names of the coordinates that it reads; `input 0`, … where there are none.
            writes: the names of those that it gives; `output 0`, … where there are none.

        """

    def weights_table(self) -> WeightsTable:
        """Every matrix with named rows and columns; `print` shows it as text.

        Rows and columns are slots of the stream, hidden units, coordinates of queries, keys and
        values, symbols and labels. A matrix with more than 12 rows or columns is printed without
        those that are all zero; `values` has them.

        Example:
            >>> import transformist as tf
            >>> table = tf.recipe("dyck-1").build(max_length=4).weights_table()
            >>> table["layer 0 attention, head 0", "W_V"].rows
            ('value 0',)

        """
        return WeightsTable(tuple(self.named_parts()))
