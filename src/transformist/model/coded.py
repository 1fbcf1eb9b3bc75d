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
            admit: told how many symbols there are, as they come, it may refuse more of them.

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
        """The same as far as it goes, and the piece in which another character comes, if one does.

        Example:
            >>> x, other = Coded.begun("()", ["((", ")x", ")"])
            >>> len(x), other
            (2, ')x')

        """
        points = np.array([ord(each) for each in alphabet], np.uint32)
        order = np.argsort(points).astype(np.min_scalar_type(max(len(points) - 1, 0)))
        known, held = points[order], bytearray()
        for piece in pieces:
            found = np.frombuffer(piece.encode("utf-32-le", "surrogatepass"), np.uint32)
            at = np.searchsorted(known, found)
            is_known = np.take(known, at, mode="clip") == found if len(known) else at > 0
            if not ignore_others and not is_known.all():
                return cls(alphabet, np.frombuffer(held, order.dtype)), piece
            held += order[at[is_known]].tobytes()
            admit(len(held) // order.itemsize)
        return cls(alphabet, np.frombuffer(held, order.dtype)), None

    def __len__(self) -> int:
        """How many symbols there are."""
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Symbol: ...

    @overload
    def __getitem__(self, index: slice) -> Coded: ...

    def __getitem__(self, index: int | slice) -> Symbol | Coded:
        """A symbol, or some of them."""
        if isinstance(index, slice):
            return Coded(self.alphabet, self.numbers[index])
        found: Symbol = self.alphabet[self.numbers[index]]
        return found
