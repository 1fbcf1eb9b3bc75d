"""Transformers on strings against a function, or against the claim of their recipe."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Any, TypeAlias

from transformist.arithmetic import Arithmetic, is_whole, number_system
from transformist.claims import Recipe, Settings, StringClaim, ask
from transformist.domains import String, Strings
from transformist.errors import InvalidValue, OutOfTime, raised_at, raised_in_words
from transformist.model import Transformer
from transformist.user_code import TimeIsOver
from transformist.verify.sequences import close
from transformist.verify.verdict import Counterexample, Verdict, described

LOG = logging.getLogger(__name__)

STRINGS = 2**11
"""Strings are tried one and all up to the length of which there are fewer than so many."""

LONGEST = 250
"""Hard and drawn strings are tried to the safe length, or to this one where it is less."""

LONGEST_IN = {"exact": 60, "interval": 24}
"""These arithmetics are slower."""

MOST_STRINGS = 2**24
"""Strings of one length are tried one and all where there are at most so many."""

DECLARED = 2**20 - 1
"""Short strings are tried in models built for the safe length, or this one where it is less."""

DRAWN = 50
"""How many strings are drawn at random for each arithmetic."""


def check(
    model: Transformer,
    reference: Callable[[str], Any],
    max_length: int | None = None,
    arithmetic: Arithmetic | str = "float64",
) -> Verdict:
    """Compare a model with a function on every string up to a length.

    Args:
        model: the transformer.
        reference: the answer that a string should have.
        max_length: the longest strings; 14, or the length the model is built for where that is
            less, when left out.
        arithmetic: the number system to evaluate in.

    Raises:
        InvalidValue: for a length below 0 or beyond what is feasible, symbols of more than one
            character, or a reference that raises.
        InputTooLong: for a length beyond N.

    Example:
        >>> import transformist as tf
        >>> tf.check(tf.recipe("dyck-1").build(), lambda x: x == "", max_length=3).counterexample
        Counterexample(input='()', expected=False, got=True, arithmetic='float64', settings='')

    """
    if not isinstance(model, Transformer):
        raise InvalidValue(
            "what is compared with a function or a program must be a Transformer",
            received=f"{type(model).__name__} as the first argument",
            where="check",
            remedy="compile a program, tf.compile(program), or give it second; or give a "
            "transformer such as tf.recipe('dyck-1').build()",
        )
    alphabet = model.alphabet
    if any(isinstance(symbol, str) and len(symbol) != 1 for symbol in alphabet):
        raise InvalidValue(
            "strings must be made of symbols of one character",
            received=f"the alphabet {' '.join(map(str, alphabet))}",
            where="check",
            remedy="compare the answers of model.answers(...) yourself",
        )
    if max_length is None:
        max_length = min(14, model.max_length or 14)
    require_feasible(max_length, len(alphabet))
    system, shortest = number_system(arithmetic), _shortest(model)
    strings = Strings(alphabet, lambda _: ()).every(max_length, shortest)
    cases, found = _compare(model, reference, strings, system)
    covered = f"every string {lengths_in_words(shortest, max_length)}"
    if found is not None:
        covered = f"strings to length {max_length}, until one of length {len(found.input)} failed"
    return Verdict("model", cases, (system.name,), covered, found)


def lengths_in_words(shortest: int, longest: int) -> str:
    """Which lengths were tried, one that is left out being said.

    Example:
        >>> lengths_in_words(0, 9), lengths_in_words(1, 9)
        ('to length 9', 'of length 1 to 9')

    """
    return f"to length {longest}" if shortest == 0 else f"of length {shortest} to {longest}"


def require_feasible(length: int, symbols: int) -> None:
    """Refuse a length to which there are too many strings to try.

    Raises:
        InvalidValue: below 0, and beyond the longest.

    """
    if not is_whole(length, 0):
        raise InvalidValue(
            "strings must have a length of at least 0",
            received=f"max_length = {length!r:.40}",
            where="check",
            remedy="give a length of at least 0",
        )
    longest = int(math.log(MOST_STRINGS, max(symbols, 2)))
    if length > longest:
        raise InvalidValue(
            f"there must be at most {MOST_STRINGS:,} strings of one length",
            received=f"max_length = {length} over {symbols} symbols",
            where="check",
            remedy=f"give a length of at most {longest}",
        )


def check_strings(recipe: Recipe[StringClaim], max_length: int | None = None) -> Verdict:
    """Every short string, then hard and drawn ones, in models built for n and for the longest N."""
    claim, total, covered = recipe.claim, 0, ""
    tried_in: dict[str, None] = {}
    for given in ({}, *claim.variants):
        settings = recipe.settings(given)
        domain: Strings = ask(claim.domain, **settings)
        symbols = len(domain.alphabet)
        length = length_within(STRINGS // (4 if given else 1), symbols)
        if max_length is not None:
            require_feasible(max_length, symbols)
            length = max_length
        reference = partial(ask, claim.reference, **settings)
        reached, shortest = {}, 0
        for name, safe in claim.safe_lengths(settings).items():
            n, N = max(LONGEST_IN.get(name, LONGEST), length), DECLARED
            if safe is not None:
                n, N = min(n, safe), min(N, safe)
            reached[name] = n
            chosen = [*domain.hard(n), *domain.drawn(n, DRAWN, seed=0)]
            tried = [(N, [*domain.every(min(length, n)), *chosen])]
            if "max_length" in recipe.parameters and n < N:
                tried.append((n, chosen))
            for declared, strings in tried:
                bound = {"max_length": declared} if "max_length" in recipe.parameters else {}
                model = recipe.build(**{**given, **bound})
                shortest = _shortest(model)
                strings = [x for x in strings if len(x) >= shortest]
                system = number_system(name)
                limit = admitted_in(claim, settings, system)
                cases, found = _compare(model, reference, strings, system, limit)
                total += cases
                tried_in[name] = None
                if found is not None:
                    found = replace(found, settings=described({**given, **bound}))
                    return Verdict(recipe.name, total, tuple(tried_in), str(domain), found)
        lengths = ", ".join(f"{n} in {name}" for name, n in reached.items())
        tried_all = lengths_in_words(shortest, length)
        covered = covered or f"{domain}: all {tried_all}, hard and drawn ones to {lengths}"
    return Verdict(recipe.name, total, tuple(tried_in), covered)


def _shortest(model: Transformer) -> int:
    """The length of the shortest input."""
    return 0 if model.embedding.front or model.embedding.back else 1


Limit: TypeAlias = Callable[[int], "Fraction | float"]
"""The error admitted at a length n."""


def admitted_in(claim: StringClaim, settings: Settings, system: Arithmetic) -> Limit | None:
    """The error that a claim on numbers admits; `None` where answers are right or wrong."""
    if not claim.in_numbers:
        return None
    return lambda n: ask(claim.error, n=n, arithmetic=system, **settings)  # type: ignore[arg-type]


def judged(
    model: Transformer,
    reference: Callable[[Any], Any],
    strings: Sequence[String],
    system: Arithmetic,
    limit: Limit | None = None,
) -> Iterator[tuple[String, Any, Any, bool]]:
    """Each string with the answer it should have, the one given, and whether that is right."""
    if limit is None:
        for string, got in zip(strings, model.answers(strings, system), strict=True):
            expected = _expected(reference, string)
            yield string, expected, got, got == expected
        return
    for string, y in zip(strings, model.values(strings, system), strict=True):
        expected = _expected(reference, string)
        numbers, radii = system.numbers(y).tolist(), system.radius(y).tolist()
        right = close(numbers, radii, expected, limit(len(string)))
        yield string, expected, numbers, right


def length_within(count: int, symbols: int) -> int:
    """The length up to which there are at most `count` strings; of one symbol as of two."""
    symbols = max(symbols, 2)
    return next(n for n in itertools.count() if symbols ** (n + 2) > count * (symbols - 1))


def _compare(
    model: Transformer,
    reference: Callable[[Any], Any],
    strings: Iterable[String],
    system: Arithmetic,
    limit: Limit | None = None,
) -> tuple[int, Counterexample | None]:
    """How many strings were compared, and the first on which the answers differ."""
    total = 0
    for block in _blocks(strings):
        for string, expected, got, right in judged(model, reference, block, system, limit):
            total += 1
            LOG.debug("%d strings compared in %s", total, system.name)
            if not right:
                return total, Counterexample(string, expected, got, system.name)
    return total, None


def _expected(reference: Callable[[Any], Any], string: String) -> Any:
    """The answer of a reference in plain values: those of numpy as Python's own.

    Raises:
        InvalidValue: for a reference that raises, or gives what no model answers with.
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
        return [_plain(each) for each in answer]
    if isinstance(answer, dict):  # probabilities
        return {key: _plain(each) for key, each in answer.items()}
    if hasattr(answer, "tolist"):  # an array or a number of numpy, and what is like them
        return _plain(answer.tolist())
    raise _NoAnswer("None" if answer is None else f"a value of type {type(answer).__name__}")


def _blocks(strings: Iterable[String]) -> Iterator[Sequence[String]]:
    block: list[String] = []
    for string in strings:
        block.append(string)
        if len(block) == 4096:
            yield block
            block = []
    if block:
        yield block
