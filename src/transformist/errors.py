"""The exception family: every refusal states an invariant, what came, where, and a remedy.

A refusal is one line, so that the command line can print it as it is:

>>> from transformist.errors import InvalidValue
>>> raise InvalidValue(
...     "the tolerance ε must be positive", received="epsilon = 0",
...     where="greater-than-zero", remedy="give a positive number such as 1/8",
... )
Traceback (most recent call last):
...
transformist.errors.InvalidValue: greater-than-zero: the tolerance ε must be positive; \
received epsilon = 0; give a positive number such as 1/8
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Container, Iterable, Sequence
from numbers import Number
from pathlib import Path
from types import UnionType
from typing import Self

LONGEST_LINE = 70
"""Most characters that a refusal quotes of a line of the user's code."""

_PACKAGE = Path(__file__).parent


def raised_at(error: BaseException) -> str:
    r"""The line at which what was called raised, the innermost in the file that it stands in.

    Empty where that is no file, as of a function of Python's own, and where all of it is within
    this library.

    Example:
        >>> try:
        ...     exec(compile("x = 0\ny = 1 / x", "mine.py", "exec"))
        ... except ZeroDivisionError as error:
        ...     raised_at(error)
        'mine.py, line 2'

    """
    frames = traceback.extract_tb(error.__traceback__)[1:]
    while frames and _PACKAGE in Path(frames[0].filename).parents:
        del frames[0]  # what called the user's code
    if not frames:
        return ""
    last = [each for each in frames if each.filename == frames[0].filename][-1]
    text = f": {last.line:.{LONGEST_LINE}}" if last.line else ""
    return f"{Path(last.filename).name}, line {last.lineno}{text}"


def raised_in_words(error: BaseException) -> str:
    """The kind of an exception, and what it says; its words are the user's code, and may raise too.

    Example:
        >>> raised_in_words(ValueError("too long"))
        'ValueError: too long'

    """
    try:
        words = str(error)
    except Exception:
        words = "(no text)"
    return f"{type(error).__name__}: {words}"


def symbols_in_words(symbols: Iterable[object]) -> str:
    """An alphabet on one line; symbols that would not be visible are in quotes.

    Example:
        >>> symbols_in_words(["a", " ", "b", 1])
        "a ' ' b 1"

    """
    texts = [str(each) for each in symbols]
    seen = (text and text.isprintable() and text == text.strip() for text in texts)
    return " ".join(t if is_seen else repr(t) for t, is_seen in zip(texts, seen, strict=True))


def visible(text: str) -> str:
    r"""A text with unprintable characters written out, so that it stays on its line.

    Example:
        >>> print(visible("x = \n, é"))
        x = \n, é

    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class TransformistError(Exception):
    """A request that cannot be met.

    Attributes:
        invariant: what must hold.
        received: the value that came instead.
        where: the function, parameter or place that refuses it, or `None`.
        remedy: the action that helps.

    """

    def __init__(
        self, invariant: str, *, received: str, remedy: str, where: str | None = None
    ) -> None:
        self.invariant = invariant
        self.received = received
        self.where = where
        self.remedy = remedy
        place = f"{where.rstrip(':')}: " if where else ""  # the line of a loop ends with a colon
        text = f"{place}{invariant}; received {received}; {remedy}"
        super().__init__(" ".join(text.split()) if "\n" in text else text)  # as of an array

    def with_remedy(self, remedy: str) -> Self:
        """Return the refusal with more words in its remedy.

        Example:
            >>> from transformist.errors import InvalidValue
            >>> refusal = InvalidValue("it is short", received="9 words", remedy="cut it")
            >>> print(refusal.with_remedy("to 8"))
            it is short; received 9 words; cut it to 8

        """
        longer = f"{self.remedy} {remedy}"
        return type(self)(self.invariant, received=self.received, remedy=longer, where=self.where)

    def with_received(self, more: str) -> Self:
        """Return the refusal with more words on what came, such as the input."""
        received = f"{self.received} {more}"
        return type(self)(self.invariant, received=received, remedy=self.remedy, where=self.where)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the four fields when the exception crosses a process."""
        return (_restore, (type(self), self.invariant, self.received, self.remedy, self.where))


def _restore(
    kind: type[TransformistError], invariant: str, received: str, remedy: str, where: str | None
) -> TransformistError:
    return kind(invariant, received=received, remedy=remedy, where=where)


class InvalidValue(TransformistError, ValueError):
    """A parameter or option out of its range, or of the wrong kind."""


LONGEST_SHOWN = 60
"""Most characters of a value in a message."""


def require_type(
    value: object,
    types: type | UnionType | tuple[type, ...],
    invariant: str,
    *,
    where: str | None,
    remedy: str,
) -> None:
    """Refuse an argument that is no object of a type, or of one of several.

    Raises:
        InvalidValue: with the invariant, the type, and the value if it is short.

    Example:
        >>> require_type("2", int, "N must be an int", where="build", remedy="give 2")
        Traceback (most recent call last):
        ...
        transformist.errors.InvalidValue: build: N must be an int; received '2' (str); give 2

    """
    if not isinstance(value, types):
        kind, shown = type(value).__name__, repr(value)
        received = f"{shown} ({kind})" if len(shown) <= LONGEST_SHOWN else kind
        raise InvalidValue(invariant, received=received, where=where, remedy=remedy)


class ShapeMismatch(TransformistError, ValueError):
    """Arrays whose shapes do not fit a definition."""


class NotFinite(TransformistError, ValueError):
    """NaN or infinity where a number is needed."""


class NotRepresentable(TransformistError, ArithmeticError):
    """A value the asked arithmetic cannot hold, such as a root that is not rational."""


class Undecided(TransformistError, ArithmeticError):
    """A choice, as of the largest score, or a claim, for which balls of `interval` are too wide."""


class UndefinedValue(TransformistError, ArithmeticError):
    """A formula at a point where it has no value, such as a norm of a constant vector at ε = 0."""


class UnknownName(TransformistError, LookupError):
    """A recipe, parameter, slot or arithmetic that does not exist."""

    @classmethod
    def among(
        cls, kind: str, name: object, known: Iterable[str], where: str | None = None
    ) -> UnknownName:
        """The refusal of `name`, with the nearest of the `known` names."""
        names = list(known)
        if not names:
            return cls(
                f"no {kind} has this name",
                received=f"{name!r:.60}",
                where=where,
                remedy="there are none",
            )
        # Names of which half of the letters differ are not near: int8 is not interval.
        spelled: dict[str, list[str]] = {}
        for each in names:
            spelled.setdefault(each.casefold(), []).append(each)
        folded = difflib.get_close_matches(str(name).casefold(), spelled, n=3, cutoff=0.51)
        near = [each for key in folded for each in spelled[key]]
        remedy = f"choose from {', '.join(names)}"
        if near:
            remedy = f"did you mean {' or '.join(near)}?"
        elif len(names) == 1:
            remedy = f"the only one is {names[0]}"
        return cls(f"no {kind} has this name", received=f"{name!r:.60}", where=where, remedy=remedy)


def is_name(name: object, known: Container[str]) -> bool:
    """True if a name is one of those known; an array, which has no one answer to `in`, is none.

    Example:
        >>> is_name("min", ("min", "max")), is_name(["min"], ("min", "max"))
        (True, False)

    """
    return isinstance(name, str) and name in known


class UnknownSymbol(TransformistError, ValueError):
    """An input symbol outside the model's alphabet."""

    @classmethod
    def among(
        cls,
        alphabet: Sequence[object],
        symbol: object,
        place: int,
        remedy: str,
        where: str | None = None,
    ) -> UnknownSymbol:
        """The refusal of a symbol, with the symbol of the alphabet that is written like it.

        Example:
            >>> print(UnknownSymbol.among([3, 4], "3", 1, "remove it"))
            every symbol must be one of 3 4; received '3' at position 1; give the number 3

        """
        alike = next((each for each in alphabet if str(each) == str(symbol)), None)
        if alike is not None:
            remedy = f"give the {_kind_of(alike)} {alike!r}"
        return cls(
            f"every symbol must be one of {symbols_in_words(alphabet)}",
            received=f"{symbol!r} at position {place}",
            remedy=remedy,
            where=where,
        )


def _kind_of(symbol: object) -> str:
    """The kind of a symbol in words."""
    if isinstance(symbol, Number):
        return "number"
    return "string" if isinstance(symbol, str) else "tuple"


class InputTooLong(TransformistError, ValueError):
    """An input longer than the length the model was built for."""


class InputTooLarge(TransformistError, ValueError):
    """An input that the dense reference or memory refuses, with the estimate."""


class BrokenInvariant(TransformistError, AssertionError):
    """A fault of this library: one step of a computation gave a result that the next cannot use."""

    def __init__(
        self,
        invariant: str,
        *,
        received: str,
        where: str | None,
        remedy: str = "please report it, with what was asked",
    ) -> None:
        super().__init__(invariant, received=received, where=where, remedy=remedy)


class UnreadableInput(TransformistError, ValueError):
    """A file that cannot be read."""


class OutOfTime(TransformistError):
    """A user's code that did not end in the time it was given."""


class CoarserFormat(UserWarning):
    """Warning that a model is used in a format coarser than the one that it is compiled for."""


class OutsideClaim(UserWarning):
    """Warning that a recipe's model is called on an input that its claim does not cover."""


class QuadraticCode(UserWarning):
    """Warning that lookups of a program keep the quadratic code of positions."""


class NothingChanged(UserWarning):
    """An intervention that puts into a run the numbers that the run has anyway."""


class TakesLong(UserWarning):
    """Warning that a computation which has begun will take long."""
