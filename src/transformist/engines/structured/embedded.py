"""The embedding of a long input: symbols by a table, positions by arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import Floating
from transformist.engines.structured.head import blocks
from transformist.model import Embedding, PositionFunctions, Symbol

EXACT_SIZE = 2**26
"""Below it whole numbers, their squares and the quotients of two are rounded once by what follows:
float64 holds the first two, and a quotient rounded to it is no midpoint of two float32 numbers,
but where the real quotient is."""

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
"""Position functions as quotients of whole numbers; the others are computed one by one."""


def codes(embedding: Embedding, x: Sequence[Symbol]) -> NDArray[np.int64]:
    """The rows of the symbols of an input, specials included, as `Embedding.encode` has them."""
    allowed = embedding.alphabet
    single = all(isinstance(each, str) and len(each) == 1 for each in allowed)
    if not (isinstance(x, str) and single):
        return np.array(embedding.encode(x), np.int64)
    points = np.frombuffer(x.encode("utf-32-le", "surrogatepass"), np.uint32)
    known = np.sort(np.array([ord(str(each)) for each in allowed], np.uint32))
    if not np.isin(points, known).all():
        embedding.encode(x)  # which says which symbol is unknown
    rows = {symbol: row for row, symbol in enumerate(embedding.symbols)}
    table = np.array([rows[chr(point)] for point in known], np.int64)
    front, back = ([rows[each] for each in side] for side in (embedding.front, embedding.back))
    inner = table[np.searchsorted(known, points)] if len(known) else np.zeros(0, np.int64)
    return np.concatenate([np.array(front, np.int64), inner, np.array(back, np.int64)])


def embed(
    embedding: Embedding, rows: NDArray[np.int64], first: int, n: int, a: Floating
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
