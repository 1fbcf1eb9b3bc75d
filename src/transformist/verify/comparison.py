"""A transformer compared with a function, string by string."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Rational
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic, is_whole, number_system
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
from transformist.verify.verdict import (
    Limit,
    Mismatch,
    Trial,
    Verdict,
    all_agree,
    verdict_of,
)

LOG = logging.getLogger(__name__)

MOST_STRINGS = 2**24
"""Every string of a length is tried only where there are at most this many."""

DEFAULT_LENGTH = 14
"""The longest strings where no length is given: 2¹⁵ − 1 strings of two symbols, some seconds."""

BLOCK = 2**12
"""Number of strings evaluated together."""

LimitAt: TypeAlias = Callable[[int], Limit]
"""The error admitted at each length."""


def check(
    model: Transformer,
    reference: Callable[[str], Any],
    max_length: int | None = None,
    arithmetic: Arithmetic | str = "float64",
) -> Verdict:
    """Compare a model with a function on every string up to a length.

    Args:
        model: the transformer.
        reference: returns the right answer on a string.
        max_length: length of the longest strings; 14, or the length the model is built for where
            that is less, when left out.
        arithmetic: the number system to evaluate in.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible, or a reference that raises.
        InputTooLong: for a length beyond N.

    Example:
        >>> import transformist as tf
        >>> tf.check(tf.recipe("dyck-1").build(), lambda x: x == "", max_length=3).counterexample
        Counterexample(input='()', expected=False, got=True, arithmetic='float64', settings='')

    """
    if not isinstance(model, Transformer):
        raise InvalidValue(
            "the model to compare must be a Transformer",
            received=f"{type(model).__name__} as the first argument",
            where="check",
            remedy="compile a program, tf.compile(program), or give it second; or give a "
            "transformer such as tf.recipe('dyck-1').build()",
        )
    alphabet = model.alphabet
    if max_length is None:
        max_length = min(DEFAULT_LENGTH, model.max_length or DEFAULT_LENGTH)
    require_feasible(max_length, len(alphabet))
    system, shortest = number_system(arithmetic), shortest_input(model)
    domain = Strings(alphabet, lambda _: ())
    cases, wrong = compare_every(model, reference, domain, max_length, system)
    covered = f"every string {lengths_in_words(shortest, max_length)}"
    tried = covered
    if wrong is not None:
        tried = f"strings to length {max_length}, until one of length {len(wrong.input)} failed"
    return verdict_of("model", [Trial(system.name, cases, tried, {}, wrong)], covered)


def lengths_in_words(shortest: int, longest: int) -> str:
    """The lengths from the shortest to the longest; 0 is the usual shortest, and left out.

    Example:
        >>> lengths_in_words(0, 9), lengths_in_words(1, 9)
        ('to length 9', 'of length 1 to 9')

    """
    return f"to length {longest}" if shortest == 0 else f"of length {shortest} to {longest}"


def require_feasible(length: int, symbols: int) -> None:
    """Refuse a length with too many strings to try each.

    Raises:
        InvalidValue: below 0, and beyond the longest feasible length.

    """
    if not is_whole(length, 0):
        raise InvalidValue(
            "strings must have a length of at least 0",
            received=f"max_length = {length!r:.40}",
            where="check",
            remedy="give a length of at least 0",
        )
    # symbolsⁿ ≤ MOST_STRINGS, with one symbol counted as two. The largest symbolsⁿ that fits is
    # evaluated in blocks, so that this limits time, not memory.
    longest = int(math.log(MOST_STRINGS, max(symbols, 2)))
    if length > longest:
        raise InvalidValue(
            f"there must be at most {MOST_STRINGS:,} strings of one length",
            received=f"max_length = {length} over {symbols} symbols",
            where="check",
            remedy=f"give a length of at most {longest}",
        )


def length_within(count: int, symbols: int) -> int:
    """The longest length up to which there are at most `count` strings; at least 0.

    One symbol counts as two, as every length would do.

    Example:
        >>> length_within(15, 2), length_within(14, 2)
        (2, 2)

    """
    # There are 1 + s + … + sⁿ = (sⁿ⁺¹ − 1)/(s − 1) strings up to length n, which is below `count`
    # where sⁿ⁺¹ ≤ count (s − 1): n is the last length of which that is true.
    symbols = max(symbols, 2)
    return next(n for n in itertools.count() if symbols ** (n + 2) > count * (symbols - 1))


def shortest_input(model: Transformer) -> int:
    """Length of the shortest input: 0 where BOS or EOS gives the empty string a position."""
    return 0 if model.embedding.front or model.embedding.back else 1


def compare_every(
    model: Transformer,
    reference: Callable[[Any], Any],
    domain: Strings,
    length: int,
    system: Arithmetic,
    limit: LimitAt | None = None,
) -> tuple[int, Mismatch | None]:
    """Compare on all strings of a domain up to a length, shorter ones first, as `compare` does."""
    fits = model.max_length is None or length <= model.max_length
    if fits and limit is None and shares_prefixes(model):
        try:
            return _compare_prefixes(model, reference, domain, length, system)
        except OutOfTime:
            raise
        except (NotShared, TransformistError):
            # `compare` raises the error again, unless an earlier string has a wrong answer.
            LOG.debug("the strings are evaluated apart in %s", system.name)
    strings = domain.every(length, shortest_input(model))
    return compare(model, reference, strings, system, limit)


def _compare_prefixes(
    model: Transformer,
    reference: Callable[[Any], Any],
    domain: Strings,
    length: int,
    system: Arithmetic,
) -> tuple[int, Mismatch | None]:
    """Compare on all strings up to a length; strings with one prefix are evaluated together."""
    first: tuple[int, int] | None = None  # length and place of the first wrong string
    wrong: Mismatch | InvalidValue | None = None
    total = 0
    for branch in branches(model, domain, length, system):
        for level in branch:
            # Branches come in the order of their strings, so of two wrong strings of one length the
            # first is met first. After it, only a shorter wrong string can take its place.
            if first is not None and level.length >= first[0]:
                break
            found = _first_wrong(reference, level)
            if found is not None:
                k, wrong = found
                first = level.length, level.first + k
                break
            total += len(level.strings)
            LOG.debug("%d strings compared in %s", total, system.name)
    if first is None:
        return total, None
    if isinstance(wrong, InvalidValue):
        raise wrong
    shorter = range(shortest_input(model), first[0])
    return sum(len(domain.alphabet) ** n for n in shorter) + first[1] + 1, wrong


def _first_wrong(
    reference: Callable[[Any], Any], level: Level
) -> tuple[int, Mismatch | InvalidValue] | None:
    """The first string that the reference refuses or whose answer is wrong, with its index."""
    for k, (string, got) in enumerate(zip(level.strings, level.answers, strict=True)):
        try:
            expected = _expected(reference, string)
        except InvalidValue as refused:
            return k, refused
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
        limit: where answers are in numbers, the error admitted at each length.

    Raises:
        InvalidValue: for a reference that raises, or returns what no model answers with.

    """
    total, remaining = 0, iter(strings)
    while block := list(itertools.islice(remaining, BLOCK)):
        for string, expected, got, is_right in _judged(model, reference, block, system, limit):
            total += 1
            LOG.debug("%d strings compared in %s", total, system.name)
            if not is_right:
                return total, Mismatch(string, expected, got)
    return total, None


def _judged(
    model: Transformer,
    reference: Callable[[Any], Any],
    strings: Sequence[String],
    system: Arithmetic,
    limit: LimitAt | None,
) -> Iterator[tuple[String, Any, Any, bool]]:
    """Each string with its right answer, the answer given, and whether that is right."""
    if limit is None:
        for string, got in zip(strings, model.answers(strings, system), strict=True):
            expected = _expected(reference, string)
            yield string, expected, got, _is_answer(got, expected)
        return
    for string, y in zip(strings, model.values(strings, system), strict=True):
        expected = _expected(reference, string)
        numbers, radii = system.numbers(y).tolist(), system.radius(y).tolist()
        yield string, expected, numbers, all_agree(numbers, radii, expected, limit(len(string)))


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


def _plain(answer: Any) -> Any:
    """An answer as models give them: a Boolean, a number, a text, or a list or dict of such."""
    if isinstance(answer, str | float | Rational):
        return answer
    if isinstance(answer, list | tuple):
        # A label may be None; a reference that returns None has no answer.
        return [None if each is None else _plain(each) for each in answer]
    if isinstance(answer, dict):  # probabilities
        return {key: _plain(each) for key, each in answer.items()}
    if hasattr(answer, "tolist"):  # an array or a number of numpy, or of a library like it
        return _plain(answer.tolist())
    raise _NoAnswer("None" if answer is None else f"a value of type {type(answer).__name__}")
