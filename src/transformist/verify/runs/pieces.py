"""Pieces of a check: the strings with a prefix, or a range of drawn strings.

The pieces depend on the alphabet, the lengths and the drawn strings alone, never on the time or on
the machine. So a journal of one run fits the next, and pieces may end in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from transformist.verify.verdict import Drawn

FEWEST_STRINGS = 2**9
"""Least limit on the strings of the longest length in a piece.

Half this limit makes a check about 1.4 times as long (`dyck-1` in float64).
"""

STRINGS = 2**14
"""Most strings of the longest length in a piece, if this makes at most `MOST_PIECES` pieces.

A run that is killed loses at most one piece for each process: 0.2 s for `dyck-1` with a fast
function, and 33 s for a function that takes 1 ms for each string, where a piece over two symbols
has 2¹⁵ strings of all its lengths.
"""

LEAST_PIECES = 2**4
"""Aim for at least this many pieces, unless this takes a limit below `FEWEST_STRINGS`."""

MOST_PIECES = 2**12
"""From about this many pieces on, pieces become larger instead of more."""


@dataclass(frozen=True)
class Prefixed:
    """Every string with a prefix, of several lengths.

    Attributes:
        prefix: the numbers of its symbols in the alphabet, from 0.
        shortest: length of the shortest strings, at least that of the prefix.
        longest: length of the longest strings.

    """

    prefix: tuple[int, ...]
    shortest: int
    longest: int

    def count(self, symbols: int) -> int:
        """Number of its strings, for an alphabet of `symbols` symbols."""
        lengths = range(self.shortest, self.longest + 1)
        return sum(int(symbols ** (n - len(self.prefix))) for n in lengths)

    def __str__(self) -> str:
        """The name of the piece in a journal."""
        places = "-".join(map(str, self.prefix))
        return f"prefix {places or 'empty'} lengths {self.shortest} to {self.longest}"


@dataclass(frozen=True)
class DrawnRange:
    """Drawn strings with consecutive numbers.

    Attributes:
        drawn: all drawn strings.
        first: number of the first string in the range.
        stop: the number after the last string's.

    """

    drawn: Drawn
    first: int
    stop: int

    def count(self, symbols: int) -> int:
        """Number of its strings, whatever the alphabet is."""
        return self.stop - self.first

    def __str__(self) -> str:
        """The name of the piece in a journal."""
        return f"drawn {self.first} to {self.stop - 1}"


Piece: TypeAlias = "Prefixed | DrawnRange"

Place: TypeAlias = tuple[int, int, int]
"""Place of a string in the order of a check.

The place is 0, the length, and the number among the strings of this length. Drawn strings come
after these: 1, 0, and the number of the drawn string.
"""


def pieces(symbols: int, shortest: int, longest: int, drawn: Drawn | None) -> Iterator[Piece]:
    """Yield the pieces of a check, those of short strings first.

    Args:
        symbols: number of symbols in the alphabet.
        shortest: length of the shortest strings of which every one is tried.
        longest: length of the longest.
        drawn: strings tried after these, or `None`.

    Example:
        >>> [str(each) for each in pieces(2, 0, 10, None)]
        ['prefix empty lengths 0 to 0', 'prefix 0 lengths 1 to 10', 'prefix 1 lengths 1 to 10']

    """
    # A piece has symbolsᵐ strings of the longest length, where m symbols follow its prefix, and m
    # is the largest number for which they are at most `most`. There are about symbolsⁿ / symbolsᵐ
    # pieces: at most `MOST_PIECES` times the number of symbols, as `most` is at least
    # symbolsⁿ / MOST_PIECES.
    strings = symbols**longest
    most = max(FEWEST_STRINGS, min(STRINGS, strings // LEAST_PIECES), strings // MOST_PIECES)
    p = next(p for p in range(longest + 1) if symbols ** (longest - p) <= most)
    if p > shortest:
        yield Prefixed((), shortest, p - 1)
    for prefix in itertools.product(range(symbols), repeat=p):
        yield Prefixed(prefix, max(p, shortest), longest)
    if drawn is not None:
        for first in range(0, drawn.count, STRINGS):
            yield DrawnRange(drawn, first, min(first + STRINGS, drawn.count))


def place_of(string: Sequence[object], alphabet: tuple[object, ...]) -> Place:
    """The place of a string among all strings over an alphabet.

    Example:
        >>> place_of("10", ("0", "1"))
        (0, 2, 2)

    """
    places = {symbol: k for k, symbol in enumerate(alphabet)}
    number = 0
    for symbol in string:
        # The symbols are the digits of the number, to the base of the size of the alphabet.
        number = number * len(alphabet) + places[symbol]
    return 0, len(string), number


def string_at(place: Place, alphabet: tuple[object, ...]) -> tuple[object, ...]:
    """The symbols of the string at a place among all.

    Example:
        >>> string_at((0, 2, 2), ("0", "1"))
        ('1', '0')

    """
    _, length, number = place
    symbols = []
    for _ in range(length):
        number, k = divmod(number, len(alphabet))
        symbols.append(alphabet[k])
    return tuple(reversed(symbols))
