"""Lengths to which every string can be tried: by their number, and by the time they take."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformist.arithmetic import Arithmetic, is_whole
from transformist.domains import Strings
from transformist.errors import InvalidValue
from transformist.model import Transformer
from transformist.verify.comparison import Refusal, first_wrong_of_every, shortest_input

MOST_STRINGS = 2**24
"""Every string of a length is tried only where there are at most this many."""

MOST_RECORDED = 2**40
"""The same limit where a journal records the check, which may then last long."""

LONGEST_OF_ONE = 2**11
"""Longest strings over one symbol, of which there is one of each length.

A string of length n has n² scores, so all to length n have about n³/3: at n = 2¹¹, fewer than the
2²⁴ strings of 24 symbols, with 2²⁴ · 24² scores.
"""

DEFAULT_LENGTH = 14
"""The longest strings where no length is given: 2¹⁵ − 1 strings of two symbols, some seconds."""

SHORT = 300.0
"""Time in seconds: a refusal names the length that fits it."""

SAMPLE_SECONDS = 0.25
"""A sample of the strings is large enough once it takes this time."""

SAMPLE_STRINGS = 2**16
"""Most strings in a sample."""

SAMPLE_GROWTH = 4
"""Factor from one sample to the next, so that all together take about 4/3 of the last."""


@dataclass(frozen=True)
class Sample:
    """Strings of a check, and the time that comparing them took.

    Attributes:
        strings: their number: every string to a length, up to the first wrong one.
        length: this length.
        seconds: the time, above 0.

    """

    strings: int
    length: int
    seconds: float

    def seconds_to(self, length: int, symbols: int) -> float:
        """Estimated time in seconds for every string up to a length, over an alphabet of this size.

        Example:
            >>> Sample(strings=7, length=2, seconds=21.0).seconds_to(3, 2)
            49.0

        """
        # A string is taken to need a time in proportion to its length plus 1, its last row having
        # so many scores. Where strings share their prefixes this is too much: a row has other costs
        # too. Where they do not, it is too little: n rows have n² scores.
        each = self.seconds / self.strings / (self.length + 1)
        return sum(each * (n + 1) * float(symbols) ** n for n in range(length + 1))

    def longest_within(self, seconds: float, longest: int, symbols: int) -> int:
        """The longest length, at most `longest`, whose estimated time is at most `seconds`."""
        lengths = range(longest, -1, -1)
        return next((n for n in lengths if self.seconds_to(n, symbols) <= seconds), 0)


def sample(
    model: Transformer, reference: Callable[[Any], Any], system: Arithmetic
) -> Sample | None:
    """Compare the first strings of a check, more and more, and measure the time.

    Returns:
        `None` where the model or the reference refuses one of them, where one takes too long, and
        where a wrong one comes so early that nothing was measured.

    """
    domain = Strings(model.alphabet, lambda _: ())
    symbols, shortest = len(model.alphabet), shortest_input(model)
    count, taken = 2**6, None
    while count <= SAMPLE_STRINGS:
        length = max(length_within(count, symbols), shortest)
        if model.max_length is not None:
            length = min(length, model.max_length)
        lengths = range(shortest, length + 1)
        begun = time.perf_counter()
        cases, found = first_wrong_of_every(model, reference, domain, lengths, system)
        spent = time.perf_counter() - begun
        if isinstance(found, Refusal) or not cases:
            return None
        if found is not None and spent < SAMPLE_SECONDS:
            return None  # the check will end as soon as this did
        taken = Sample(cases, length, max(spent, 1e-6))
        if spent >= SAMPLE_SECONDS:
            break
        count *= SAMPLE_GROWTH
    return taken


def require_feasible(
    length: int,
    symbols: int,
    is_recorded: bool = False,
    measure: Callable[[], Sample | None] = lambda: None,
    may_be_recorded: bool = True,
) -> None:
    """Refuse a length with too many strings to try each.

    Args:
        length: of the longest strings.
        symbols: number of symbols in the alphabet.
        is_recorded: True where a journal records the check, so that it may take long.
        measure: measures the first strings of the check, for the refusal to say what a length
            takes.
        may_be_recorded: False for a check that takes no journal, which then none is named for.

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
    if symbols == 1:
        if length > LONGEST_OF_ONE:
            raise InvalidValue(
                f"strings over one symbol must have at most {LONGEST_OF_ONE:,} symbols",
                received=f"max_length = {length}",
                where="check",
                remedy=f"give a length of at most {LONGEST_OF_ONE}",
            )
        return
    # symbolsⁿ ≤ MOST_STRINGS. The largest symbolsⁿ that fits is evaluated in blocks, so that this
    # limits time, not memory.
    most = MOST_RECORDED if is_recorded else MOST_STRINGS
    longest = _longest(most, symbols)
    if length > longest:
        recorded = _longest(MOST_RECORDED, symbols)
        others = f", or of at most {recorded} with a journal (--journal FILE)"
        if is_recorded or not may_be_recorded:
            others = ""
        raise InvalidValue(
            f"there must be at most {most:,} strings of one length",
            received=f"max_length = {length} over {symbols} symbols, "
            f"{_count_in_words(symbols, length)} strings",
            where="check",
            remedy=f"give a length of at most {longest}{others}"
            f"{_in_time(measure(), longest, symbols)}",
        )


def _in_time(taken: Sample | None, longest: int, symbols: int) -> str:
    """The length that fits `SHORT` seconds, in words; empty without a sample."""
    if taken is None:
        return ""
    n = taken.longest_within(SHORT, longest, symbols)
    time_ = seconds_in_words(taken.seconds_to(n, symbols))
    return (
        f"; about {time_} to length {n} in one process, at the speed of the first "
        f"{taken.strings:,} strings"
    )


def _longest(count: int, symbols: int) -> int:
    """The longest length of which there are at most `count` strings, of two symbols or more."""
    return next(n for n in itertools.count() if symbols ** (n + 1) > count)


def _count_in_words(symbols: int, length: int) -> str:
    """The number of strings of a length, as a power of ten where it is long."""
    digits = length * math.log10(symbols)
    return f"{symbols**length:,}" if digits < 19 else f"about 10^{digits:.0f}"


def seconds_in_words(seconds: float) -> str:
    """A time in the largest unit of which it has at least two.

    Example:
        >>> seconds_in_words(90), seconds_in_words(300), seconds_in_words(200_000)
        ('90 s', '5 min', '2 days')

    """
    units = (("days", 86400), ("h", 3600), ("min", 60))
    name, size = next((each for each in units if seconds >= 2 * each[1]), ("s", 1))
    return f"{seconds / size:.0f} {name}"


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
