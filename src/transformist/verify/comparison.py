"""A transformer compared with a function, string by string."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Rational
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic
from transformist.domains import String, Strings
from transformist.engines.prefix_tree import Level, NotShared, branches, shares_prefixes
from transformist.errors import (
    InvalidValue,
    OutOfTime,
    TransformistError,
    raised_at,
    raised_in_words,
)
from transformist.model import Transformer
from transformist.user_code import TimeIsOver
from transformist.verify.verdict import Limit, Mismatch, all_agree

LOG = logging.getLogger(__name__)

BLOCK = 2**12
"""Number of strings evaluated together."""

LimitAt: TypeAlias = Callable[[String], Limit]
"""The error admitted for each input."""


def lengths_in_words(shortest: int, longest: int) -> str:
    """The lengths from the shortest to the longest; 0 is the usual shortest, and left out.

    Example:
        >>> lengths_in_words(0, 9), lengths_in_words(1, 9)
        ('to length 9', 'of length 1 to 9')

    """
    return f"to length {longest}" if shortest == 0 else f"of length {shortest} to {longest}"


def shortest_input(model: Transformer) -> int:
    """Length of the shortest input: 0 where BOS or EOS gives the empty string a position."""
    return 0 if model.embedding.front or model.embedding.back else 1


@dataclass(frozen=True)
class Refusal:
    """An error of the model or the reference, and the string on which it was raised."""

    input: String
    error: TransformistError


def compare_every(
    model: Transformer,
    reference: Callable[[Any], Any],
    domain: Strings,
    length: int,
    system: Arithmetic,
    limit: LimitAt | None = None,
) -> tuple[int, Mismatch | None]:
    """Compare on all strings of a domain up to a length, shorter ones first, as `compare` does."""
    lengths = range(shortest_input(model), length + 1)
    return raised(*first_wrong_of_every(model, reference, domain, lengths, system, limit))


def raised(cases: int, found: Mismatch | Refusal | None) -> tuple[int, Mismatch | None]:
    """Raise the error of a refusal; return anything else as it is."""
    if isinstance(found, Refusal):
        raise found.error
    return cases, found


def first_wrong_of_every(
    model: Transformer,
    reference: Callable[[Any], Any],
    domain: Strings,
    lengths: range,
    system: Arithmetic,
    limit: LimitAt | None = None,
    prefix: tuple[Any, ...] = (),
) -> tuple[int, Mismatch | Refusal | None]:
    """Find the first string with a prefix that is wrong or refused, shorter ones first.

    Args:
        model: the transformer.
        reference: returns the right answer on a string.
        domain: the strings.
        lengths: those tried: all from the shortest, or from the length of the prefix, to the
            longest.
        system: the number system to evaluate in.
        limit: as for `compare`.
        prefix: the symbols with which the strings begin.

    Returns:
        The number of strings compared, and the first that is wrong or refused, or on which the
        reference takes too long.

    """
    longest = lengths.stop - 1
    # Prefixes are shared only where the answers of strings are compared as they are: a limit needs
    # values with radii. A string beyond N is refused, which the path string by string words.
    fits = model.max_length is None or longest <= model.max_length
    if fits and limit is None and shares_prefixes(model):
        try:
            return _compare_prefixes(model, reference, domain, lengths, system, prefix)
        except (NotShared, TransformistError):
            # The reference raises the error again, unless an earlier string has a wrong answer.
            LOG.debug("the strings are evaluated apart in %s", system.name)
    strings = domain.every(longest, lengths.start, prefix)
    return first_wrong(model, reference, strings, system, limit)


def _compare_prefixes(
    model: Transformer,
    reference: Callable[[Any], Any],
    domain: Strings,
    lengths: range,
    system: Arithmetic,
    prefix: tuple[Any, ...],
) -> tuple[int, Mismatch | Refusal | None]:
    """Compare on strings of which those with one prefix are evaluated together."""
    first: tuple[int, int] | None = None  # length and place of the first wrong string
    wrong: Mismatch | Refusal | None = None
    total = 0
    for branch in branches(model, domain, lengths.stop - 1, system, prefix=prefix):
        for level in branch:
            # Branches come in the order of their strings, so of two wrong strings of one length the
            # first is met first. After it, only a shorter wrong string can take its place.
            if first is not None and level.length >= first[0]:
                break
            found = _first_wrong_of_level(reference, level)
            if found is not None:
                k, wrong = found
                first = level.length, level.first + k
                break
            total += len(level.strings)
            LOG.debug("%d strings compared in %s", total, system.name)
    if first is None:
        return total, None
    # The strings before it: all with the prefix that are shorter, and those of its length that
    # stand between the first with the prefix and it.
    n, place = first
    symbols = len(domain.alphabet)
    shorter = range(max(lengths.start, len(prefix)), n)
    before = sum(symbols ** (m - len(prefix)) for m in shorter)
    return before + place % symbols ** (n - len(prefix)) + 1, wrong


def _first_wrong_of_level(
    reference: Callable[[Any], Any], level: Level
) -> tuple[int, Mismatch | Refusal] | None:
    """The first string that the reference refuses or whose answer is wrong, with its index."""
    for k, (string, got) in enumerate(zip(level.strings, level.answers, strict=True)):
        try:
            expected = _expected(reference, string)
        except (InvalidValue, OutOfTime) as refused:
            return k, Refusal(string, refused)
        if not _is_answer(got, expected):
            return k, Mismatch(string, expected, got)
    return None


def compare(
    model: Transformer,
    reference: Callable[[Any], Any],
    strings: Iterable[String],
    system: Arithmetic,
    limit: LimitAt | None = None,
) -> tuple[int, Mismatch | None]:
    """Number of strings compared, and the first on which the answer is wrong.

    Args:
        model: the transformer.
        reference: returns the right answer on a string.
        strings: compared in this order.
        system: the number system to evaluate in.
        limit: where answers are in numbers, the error admitted for each input.

    Raises:
        InvalidValue: for a reference that raises, or returns what no model answers with.

    """
    return raised(*first_wrong(model, reference, strings, system, limit))


def first_wrong(
    model: Transformer,
    reference: Callable[[Any], Any],
    strings: Iterable[String],
    system: Arithmetic,
    limit: LimitAt | None = None,
) -> tuple[int, Mismatch | Refusal | None]:
    """Find the first of the strings that is wrong or refused; arguments as for `compare`."""
    total, remaining = 0, iter(strings)
    while block := list(itertools.islice(remaining, BLOCK)):
        cases, found = _first_of_block(model, reference, block, system, limit)
        total += cases
        LOG.debug("%d strings compared in %s", total, system.name)
        if found is not None:
            return total, found
    return total, None


def _first_of_block(
    model: Transformer,
    reference: Callable[[Any], Any],
    strings: Sequence[String],
    system: Arithmetic,
    limit: LimitAt | None,
) -> tuple[int, Mismatch | Refusal | None]:
    """The outcome of strings that are evaluated together, or one by one at an error of the model.

    Half of the strings, and half of these, are evaluated until one string alone has the error: an
    earlier one may have a wrong answer.
    """
    try:
        if limit is None:
            given = model.answers(strings, system)
        else:
            given = list(model.values(strings, system))
    except TransformistError as error:
        if len(strings) == 1:
            return 0, Refusal(strings[0], error.with_received(f"on {strings[0]!r:.60}"))
        # The first half is searched first, so the first string that fails is found, by the order of
        # the strings, after some 2 log₂ n evaluations of half as many strings each time.
        middle = len(strings) // 2
        cases, found = _first_of_block(model, reference, strings[:middle], system, limit)
        if found is None:
            more, found = _first_of_block(model, reference, strings[middle:], system, limit)
            cases += more
        return cases, found
    for k, (string, got) in enumerate(zip(strings, given, strict=True)):
        try:
            expected = _expected(reference, string)
            answer, is_right = _judged(string, got, expected, system, limit)
        except TransformistError as error:
            return k, Refusal(string, error)
        if not is_right:
            return k + 1, Mismatch(string, expected, answer)
    return len(strings), None


def _judged(
    string: String, got: Any, expected: Any, system: Arithmetic, limit: LimitAt | None
) -> tuple[Any, bool]:
    """The answer in plain values, and True if it is right."""
    if limit is None:
        return got, _is_answer(got, expected)
    numbers, radii = system.numbers(got).tolist(), system.radius(got).tolist()
    return numbers, all_agree(numbers, radii, expected, limit(string))


def _is_answer(got: Any, expected: Any) -> bool:
    """True for the expected answer, which is in plain values: tuples are lists there."""
    return bool(got == expected or _plain(got) == expected)


def _expected(reference: Callable[[Any], Any], string: String) -> Any:
    """The answer of a reference in plain values: those of numpy as Python's own.

    Raises:
        InvalidValue: for a reference that raises, or returns what no model answers with.
        OutOfTime: as the reference.

    """
    try:
        return _plain(reference(string))
    except (KeyboardInterrupt, TimeIsOver, OutOfTime):
        raise
    except _NoAnswer as no:
        received, where = f"{no} on {string!r:.60}", ""
        remedy = "return a Boolean, a number, a text, or a list or dict of these"
    except BaseException as error:  # SystemExit and GeneratorExit too: none may end the check
        received = f"{raised_in_words(error)} on {string!r:.60}"
        where, remedy = raised_at(error), "mend the reference"
    raise InvalidValue(
        "a reference must answer every string",
        received=received,
        where=where or getattr(reference, "__name__", "reference"),
        remedy=remedy,
    )


class _NoAnswer(Exception):
    """A value that no model answers with, in words."""


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    str: str.__str__,
    float: float.__float__,
    Rational: lambda answer: answer,
}
"""The plain value of an answer, which may be of a user's own class whose methods raise."""


def _plain(answer: Any) -> Any:
    """An answer as models give them: a Boolean, a number, a text, or a list or dict of such."""
    for kind, plain in _PLAIN.items():
        if isinstance(answer, kind):
            return plain(answer)
    if isinstance(answer, list | tuple):
        # A label may be None; a reference that returns None has no answer.
        return [None if each is None else _plain(each) for each in answer]
    if isinstance(answer, dict):  # probabilities
        return {key: _plain(each) for key, each in answer.items()}
    if hasattr(answer, "tolist"):  # an array or a number of numpy, or of a library like it
        return _plain(answer.tolist())
    raise _NoAnswer("None" if answer is None else f"a value of type {type(answer).__name__}")
