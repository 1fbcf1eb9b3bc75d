"""Symbols as numbers: a long input in a byte a symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from transformist.model.embedding import Symbol


@final
class Coded(Sequence[Symbol]):
    """A sequence of symbols, kept as their numbers in an alphabet.

    Attributes:
        alphabet: the symbols that there can be.
        numbers: of the symbols, as small as the alphabet admits.

    Example:
        >>> x = Coded.of("()", ["(()", ")"])
        >>> len(x), x[1], "".join(x[2:]), x.numbers.dtype
        (4, '(', '))', dtype('uint8'))

    """

    def __init__(self, alphabet: Sequence[Symbol], numbers: NDArray[Any]) -> None:
        self.alphabet, self.numbers = tuple(alphabet), numbers

    @classmethod
    def of(
        cls,
        alphabet: Sequence[str],
        pieces: Iterable[str],
        ignore_others: bool = False,
        admit: Callable[[int], None] = lambda _: None,
    ) -> Coded | None:
        """The characters of a text that comes in pieces, none of which is kept.

        Args:
            alphabet: the characters that are symbols.
            pieces: of the text.
            ignore_others: whether to skip other characters.
            admit: called with the number of symbols read so far; it may refuse to read more.

        Returns:
            `None` where another character comes that is not to be skipped.

        """
        coded, other = cls.begun(alphabet, pieces, ignore_others, admit)
        return coded if other is None else None

    @classmethod
    def begun(
        cls,
        alphabet: Sequence[str],
        pieces: Iterable[str],
        ignore_others: bool = False,
        admit: Callable[[int], None] = lambda _: None,
    ) -> tuple[Coded, str | None]:
        """Symbols before the first other character, and the piece with that character, if any.

        Example:
            >>> x, other = Coded.begun("()", ["((", ")x", ")"])
            >>> len(x), other
            (2, ')x')

        """
        # A table from code points to numbers: one look-up for each character of a piece. Points
        # beyond the largest of the alphabet are clipped to its last row, which is no symbol.
        points = np.array([ord(each) for each in alphabet], np.uint32)
        kind = np.min_scalar_type(max(len(points) - 1, 0))
        size = int(points.max(initial=0)) + 2
        numbers, is_symbol = np.zeros(size, kind), np.zeros(size, np.bool_)
        numbers[points], is_symbol[points] = np.arange(len(points)), True
        held = bytearray()
        for piece in pieces:
            found = np.frombuffer(piece.encode("utf-32-le", "surrogatepass"), np.uint32)
            coded, is_known = (each.take(found, mode="clip") for each in (numbers, is_symbol))
            if not is_known.all():
                if not ignore_others:
                    return cls(alphabet, np.frombuffer(held, kind)), piece
                coded = coded[is_known]
            held += coded.tobytes()
            admit(len(held) // kind.itemsize)
        return cls(alphabet, np.frombuffer(held, kind)), None

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Symbol: ...

    @overload
    def __getitem__(self, index: slice) -> Coded: ...

    def __getitem__(self, index: int | slice) -> Symbol | Coded:
        """One symbol, or a slice of the symbols."""
        if isinstance(index, slice):
            return Coded(self.alphabet, self.numbers[index])
        found: Symbol = self.alphabet[self.numbers[index]]
        return found
