"""Texts of a user as values: vectors, settings, lengths and times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from transformist.arithmetic import rational
from transformist.domains import Meaning, Sequences
from transformist.errors import InvalidValue


def read_vector(text: str, width: int, name: str, settings: tuple[str, ...]) -> list[Any]:
    """Read a JSON list of `width` numbers; a number in quotes may be a fraction.

    Args:
        text: the list.
        width: the required number of numbers.
        name: the recipe that reads it, for a refusal.
        settings: the parameters that may set the width.

    Raises:
        InvalidValue: when it is no such list.
    """
    try:
        vector = json.loads(text, parse_float=rational)
    except (RecursionError, ValueError):
        vector = None
    if not isinstance(vector, list) or any(isinstance(v, list | dict) for v in vector):
        raise InvalidValue(
            f"{name} must be given a JSON list of {width} numbers, fractions in quotes",
            received=repr(text)[:60],
            remedy=f"give one such as '{json.dumps([1] * width)}'",
        )
    if len(vector) != width:
        raise InvalidValue(
            f"{name} must be given {width} numbers",
            received=f"{len(vector)}",
            remedy=f"give {width}" + (f", or set {', '.join(settings)}" if settings else ""),
        )
    return vector


def read_vectors(text: str, domain: Sequences, name: str) -> Meaning:
    """Read a JSON list of vectors; a number in quotes may be a fraction.

    Args:
        text: the list; each vector has the free numbers of the domain, in its order, or is that
            number itself where there is one.
        domain: the meaning of the numbers.
        name: the recipe that reads it, for a refusal.

    Raises:
        InvalidValue: when it is no such list, or a number is outside its domain.
        ShapeMismatch: when a vector has another length.
    """
    if domain.free == 0:
        return domain.read([[]] * read_count(text, name))
    try:
        given = json.loads(text, parse_float=rational)
        if not isinstance(given, list):
            given = []
        vectors = [each if isinstance(each, list) else [each] for each in given]
        numbers = [[_number(value) for value in vector] for vector in vectors]
    except (RecursionError, ValueError, TypeError, ArithmeticError):
        numbers = []
    if not numbers:
        free = [column.label for column in domain.columns if column.free]
        raise InvalidValue(
            f"{name} must be given a JSON list of vectors of {domain.free} numbers "
            f"({', '.join(free)}), fractions in quotes",
            received=repr(text)[:60],
            remedy=f"give one such as '{json.dumps([[1] * domain.free] * 3)}'",
        )
    return domain.read(numbers)


def _number(value: Any) -> Fraction:
    if isinstance(value, bool):
        raise TypeError
    return rational(value)


def read_count(text: str, name: str) -> int:
    """Read the number of positions, a whole number of at least 1.

    Raises:
        InvalidValue: when it is none.
    """
    digits = text.strip()
    if digits.isascii() and digits.isdecimal() and len(digits) < 8 and 0 < int(digits) <= 2**20:
        return int(digits)
    raise InvalidValue(
        f"{name} must be given n, the number of positions, a whole number from 1 to {2**20}",
        received=repr(text)[:60],
        remedy="give one such as 5",
    )


def alphabet_of(text: Iterable[str]) -> str:
    """The characters of a text, or of its pieces, in order; at least two, a and b beside one.

    Example:
        >>> alphabet_of("cab"), alphabet_of("b"), alphabet_of("c")
        ('abc', 'ab', 'abc')

    """
    characters = sorted(set().union(*map(set, text)))
    return "".join(characters) if len(characters) > 1 else "".join(sorted({*characters, *"ab"}))


def read_settings(given: Sequence[str]) -> dict[str, str]:
    """Read the pairs of --set.

    Raises:
        InvalidValue: for a text that is no pair.

    Example:
        >>> read_settings(["max-length=8"])
        {'max_length': '8'}

    """
    pairs = [setting.partition("=") for setting in given]
    for setting, (name, equals, _) in zip(given, pairs, strict=True):
        if not equals or not name:
            raise InvalidValue(
                "--set must have the form name=value",
                received=repr(setting),
                remedy="write --set epsilon=1/8",
            )
    return {name.strip().replace("-", "_"): value for name, _, value in pairs}


def with_options(settings: Mapping[str, str], options: Mapping[str, str | None]) -> dict[str, str]:
    """Return the settings of --set and those of options, which are `None` when left out.

    Raises:
        InvalidValue: for a setting that an option gives another value.

    Example:
        >>> with_options({"width": "8"}, {"width": None, "max_length": "9"})
        {'width': '8', 'max_length': '9'}

    """
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if settings.get(name, value) != value:
            raise InvalidValue(
                f"{name} must be given once",
                received=f"{value} by an option and --set {name}={settings[name]}",
                remedy="give one of the two",
            )
    return {**settings, **given}


def read_length(text: str) -> int:
    """Read the whole number of --max-length.

    Raises:
        InvalidValue: when it is none.
    """
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    raise InvalidValue(
        "--max-length must be a whole number of at least 0",
        received=repr(text),
        remedy="write --max-length 12",
    )


def read_whole(text: str, option: str) -> int:
    """Read the whole number of an option, of at least 0.

    Raises:
        InvalidValue: for another text, and for a number of 1,000,000,000 or more.

    Example:
        >>> read_whole("12", "--drawn")
        12

    """
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    raise InvalidValue(
        f"{option} must be a whole number from 0 to 999,999,999",
        received=repr(text)[:60],
        remedy=f"write a number, such as {option} 1000",
    )


def read_seconds(text: str, option: str) -> float:
    """Read the number of seconds of an option, above 0 and at most `LONGEST_TIMEOUT`.

    Raises:
        InvalidValue: when it is none.

    Example:
        >>> read_seconds("1/2", "--timeout")
        0.5

    """
    try:
        seconds = rational(text)
    except (ValueError, ArithmeticError):
        seconds = Fraction(0)
    if LEAST_TIMEOUT <= seconds <= LONGEST_TIMEOUT:
        return float(seconds)
    raise InvalidValue(
        f"{option} must be a number of seconds from {LEAST_TIMEOUT} to {LONGEST_TIMEOUT}",
        received=repr(text)[:60],
        remedy=f"write {option} 60",
    )


LEAST_TIMEOUT = Fraction(1, 1000)
LONGEST_TIMEOUT = 10**6
"""Limits of a time limit, in seconds; a timer of the system takes at most 10⁸."""


def read_between(text: str, option: str, least: int, most: int) -> int:
    """Read the whole number of an option, from `least` ≥ 0 to `most` < 10⁹.

    Raises:
        InvalidValue: when it is none.

    Example:
        >>> read_between("64", "--length", 32, 4096)
        64

    """
    if text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most:
        return int(text)
    raise InvalidValue(
        f"{option} must be a whole number from {least} to {most}",
        received=repr(text)[:60],
        remedy=f"write {option} {least}",
    )


def read_positive(text: str, option: str) -> int:
    """Read the whole number of an option, at least 1.

    Raises:
        InvalidValue: when it is none.

    Example:
        >>> read_positive("256", "--max-length")
        256

    """
    if text.isascii() and text.isdecimal() and len(text) < 13 and int(text):
        return int(text)
    raise InvalidValue(
        f"{option} must be a whole number from 1 to 10^12 − 1",
        received=repr(text)[:60],
        remedy=f"write {option} {2 if option == '--jobs' else 1000}",
    )
