"""The embedding of a long input: symbols by a table, positions by arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.arrays import unfilled
from transformist.engines.structured.residual import ResidualStream
from transformist.engines.structured.row_by_row import Many
from transformist.engines.structured.stream_vectors import Few, blocks
from transformist.model import Coded, Embedding, PositionFunctions, Symbol

# For whole numbers a, b < 2²⁶: a and a² are float64 numbers. A quotient a/b is rounded to float64
# and then to float32, which is rounding once unless the float64 number is a midpoint of two float32
# numbers and a/b is not. A midpoint is M 2ᵉ with M < 2²⁵; if a/b is another number, it differs
# from M 2ᵉ by at least 1/(bM) ≥ 2⁻⁵¹ of itself, more than the 2⁻⁵³ by which float64 rounds.
EXACT_SIZE = 2**26
"""Below this size positions, their squares and quotients are computed in float64 first."""

Whole = NDArray[np.int64]

QUOTIENTS: Mapping[str, Callable[[Whole, int], tuple[Any, Any]]] = {
    "1": lambda i, _n: (0 * i + 1, 1),
    "i": lambda i, _n: (i, 1),
    "i^2": lambda i, _n: (i * i, 1),
    "1/i": lambda i, _n: (0 * i + 1, i),
    "-1/i": lambda i, _n: (0 * i - 1, i),
    "i/n": lambda i, n: (i, n),
    "-i/n": lambda i, n: (-i, n),
    "(-1)^i": lambda i, _n: (1 - 2 * (i % 2), 1),
}
"""Position functions that are quotients of whole numbers; the reference computes the others."""


PIECE = 2**16
"""This many characters are encoded at once, which bounds the memory beside the codes."""


def codes(embedding: Embedding, x: Sequence[Symbol], first: int = 1) -> NDArray[Any]:
    """The rows of the symbols of an input, specials included, as `Embedding.encode` has them.

    They have the smallest type that holds the vocabulary: a byte each, as a rule.

    Args:
        embedding: of the model.
        x: the symbols.
        first: the position of the first of them.

    """
    coded = x if isinstance(x, Coded) else _coded(embedding.alphabet, x)
    if coded is None or not set(coded.alphabet) <= set(embedding.alphabet):
        return np.array(embedding.encode(x, first), np.int64)  # or the refusal of an unknown symbol
    rows = {symbol: row for row, symbol in enumerate(embedding.symbols)}
    kind = np.min_scalar_type(len(rows))
    table = np.array([rows[each] for each in coded.alphabet], kind)
    found = np.empty(len(embedding.front) + len(x) + len(embedding.back), kind)
    inner = found[len(embedding.front) :]
    for part in blocks(len(x)):
        inner[part] = table[coded.numbers[part]]
    found[: len(embedding.front)] = [rows[each] for each in embedding.front]
    inner[len(x) :] = [rows[each] for each in embedding.back]
    return found


def _coded(alphabet: Sequence[Symbol], x: Sequence[Symbol]) -> Coded | None:
    """A string over characters by their numbers; `None` for anything else."""
    single = all(isinstance(each, str) and len(each) == 1 for each in alphabet)
    if not (isinstance(x, str) and single):
        return None
    pieces = (x[start : start + PIECE] for start in range(0, len(x), PIECE))
    return Coded.of([str(each) for each in alphabet], pieces)


def embedded(
    embedding: Embedding, rows: NDArray[Any], first: int, n: int, a: Floating
) -> ResidualStream:
    """The stream of `embed`: a part for the symbols, one for columns that positions change."""
    positions, words = embedding.positions, embedding.rounded(a).vectors
    columns, count = list(range(embedding.width)), len(rows)
    if positions is None:
        return ResidualStream.of(count, [(columns, Few.of(words, rows))])
    if not isinstance(positions, PositionFunctions):
        z = embed(embedding, rows, first, n, a)
        return ResidualStream.of(count, [(columns, Many(z))])
    names = positions.names
    still = [column for column in columns if names[column] in (None, "1")]
    moves = [column for column in columns if column not in still]
    # The position function "1" is the same at all positions: it is added to the table once.
    vectors = np.where([name == "1" for name in names], a.add(words, a.array(1)), words)
    functions = PositionFunctions(tuple(names[column] for column in moves))
    own, moved = np.ascontiguousarray(words[:, moves]), unfilled(count, len(moves), a.dtype)
    for part in blocks(count):
        np.take(own, rows[part], axis=0, out=moved[part], mode="clip")
        _add_positions(functions, range(first + part.start, first + part.stop), n, a, moved[part])
    fixed = Few.of(np.ascontiguousarray(vectors[:, still]), rows)
    return ResidualStream.of(count, [(still, fixed), (moves, Many(moved))])


def embed(
    embedding: Embedding, rows: NDArray[Any], first: int, n: int, a: Floating
) -> NDArray[Any]:
    """The vectors of symbols (their rows) at positions first, first + 1, …; n is the length.

    They are those of the reference, bit for bit.
    """
    z = np.empty((len(rows), embedding.width), a.dtype)
    words = embedding.rounded(a).vectors
    for part in blocks(len(rows)):
        np.take(words, rows[part], axis=0, out=z[part], mode="clip")
        if embedding.positions is not None:
            places = range(first + part.start, first + part.stop)
            _add_positions(embedding.positions, places, n, a, z[part])
    return z


def _add_positions(positions: Any, places: range, n: int, a: Floating, z: NDArray[Any]) -> None:
    """z + pe, rounded once."""
    if not isinstance(positions, PositionFunctions):
        z[:] = a.add(z, positions.at(places, n, a))
        return
    largest = max(abs(places[0]), abs(places[-1]), n)
    for column, name in enumerate(positions.names):
        if name is None:
            continue
        divides_by_0 = (name[-2:] == "/i" and 0 in places) or (name[-2:] == "/n" and n == 0)
        if name in QUOTIENTS and largest < EXACT_SIZE and not divides_by_0:
            above, below = QUOTIENTS[name](np.arange(places.start, places.stop), n)
            added = (above / below).astype(a.dtype)
        else:
            added = PositionFunctions((name,)).at(places, n, a)[:, 0]
        z[:, column] = a.add(z[:, column], added)
