"""The parameters of recipes: one name, one meaning and one check everywhere."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import (
    FORMATS,
    exact_numbers,
    is_power_of_two,
    is_whole,
    rational,
)
from transformist.errors import InvalidValue, TransformistError
from transformist.model import BOS, CLS, EOS, Mask, Weighting


@dataclass(frozen=True)
class Setting:
    """A parameter of a recipe.

    Attributes:
        name: the one name it has everywhere.
        meaning: what it sets, in a few words.
        expects: the invariant of its value.
        read: the value from what was given (a Python value or the text of `--set`); raises
            `ValueError` or `TypeError` where the invariant does not hold.

    """

    name: str
    meaning: str
    expects: str
    read: Callable[[Any], Any]

    def value(self, given: Any, where: str) -> Any:
        """The checked value.

        Raises:
            InvalidValue: when the invariant does not hold.

        """
        try:
            return self.read(given)
        except TransformistError as error:
            reason = f" ({error.invariant})"
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            reason = ""
        raise InvalidValue(
            f"{self.name} must be {self.expects}{reason}",
            received=f"{self.name} = {given!s:.60}",
            where=where,
            remedy=f"give {self.expects}: it sets {self.meaning}",
        )


def _plain(given: Any) -> Any:
    """The text of `--set` as JSON where it is JSON."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except json.JSONDecodeError:
        return given


def _rational(given: Any) -> Fraction:
    given = given.strip() if isinstance(given, str) else given
    if isinstance(given, bool | np.bool_):
        raise TypeError
    return rational(given)


def _positive(given: Any) -> Fraction:
    value = _rational(given)
    if value <= 0:
        raise ValueError
    return value


def _not_negative(given: Any) -> Fraction:
    value = _rational(given)
    if value < 0:
        raise ValueError
    return value


def _whole(least: int, most: float = math.inf) -> Callable[[Any], int]:
    def read(given: Any) -> int:
        value = _rational(given)
        if value.denominator != 1 or not least <= value <= most:
            raise ValueError
        return int(value)

    return read


def _power_of_two(given: Any) -> Fraction:
    value = Fraction(_whole(1, 2**20)(given))
    if not is_power_of_two(value):
        raise ValueError
    return value


# Margins and error bounds compute powers of N in float64, whose largest number is near 2¹⁰²⁴:
# N⁴ ≤ 2²⁴⁸ leaves room for all other factors, and no input is as long.
LONGEST = 2**62
"""The largest N of margins and error bounds."""


def require_length(n: Any, where: str, optional: bool = False) -> None:
    """Require a whole number from 1 to `LONGEST`.

    Args:
        n: the length.
        where: the function that takes it.
        optional: true if the function also takes None, which the refusal then mentions; None
            itself is not checked here.

    Raises:
        InvalidValue: for another value.

    """
    # A whole number of numpy's is refused too: its powers would wrap around at 2⁶³.
    if type(n) is not int or not is_whole(n, 1) or n > LONGEST:
        raise InvalidValue(
            f"max_length must be a whole number from 1 to 2^62{', or None' * optional}",
            received=f"{n!r:.40}",
            where=where,
            remedy="give the length of the longest input",
        )


def whole_length(n: Any, where: str, optional: bool = False) -> int:
    """Return a length as an int, also if it is a whole number of numpy.

    Args:
        n: the length.
        where: the function that takes it.
        optional: as `require_length` has it.

    Raises:
        InvalidValue: as `require_length`.

    Example:
        >>> type(whole_length(np.int64(5), "compile"))
        <class 'int'>

    """
    length: int = int(n) if isinstance(n, np.integer) else n
    require_length(length, where, optional)
    return length


_POWER = "a power of two from 1 to 2^20"


def _coordinates(given: Any) -> tuple[int, ...]:
    listed = _plain(given)
    if not isinstance(listed, list | tuple) or not listed:
        raise TypeError
    return tuple(_whole(1)(each) for each in listed)


def _vector(given: Any) -> tuple[Fraction, ...]:
    values = exact_numbers(_plain(given))
    if values.ndim != 1 or not values.size:
        raise ValueError
    return tuple(Fraction(value) for value in values.tolist())


def _matrix(given: Any) -> tuple[tuple[Fraction, ...], ...]:
    values = exact_numbers(_plain(given))
    if values.ndim != 2 or not values.size:
        raise ValueError
    return tuple(tuple(Fraction(value) for value in row) for row in values.tolist())


def _polyhedra(given: Any) -> tuple[tuple[tuple[Fraction, ...], ...], ...]:
    listed = _plain(given)
    if not isinstance(listed, list | tuple) or not listed:
        raise TypeError
    polyhedra = tuple(_matrix(each) for each in listed)
    if len({len(vertices[0]) for vertices in polyhedra}) > 1:
        raise ValueError
    return polyhedra


def _rays(given: Any) -> tuple[tuple[tuple[Fraction, ...], ...], ...]:
    listed = _plain(given)
    if not isinstance(listed, list | tuple):
        raise TypeError
    return tuple(_matrix(each) if len(each) else () for each in listed)


def _table(given: Any) -> tuple[int, ...]:
    bits = given if isinstance(given, str) and set(given) <= {"0", "1"} else _plain(given)
    values = tuple(_whole(0)(bit) for bit in bits)
    if set(values) - {0, 1} or len(values) < 2 or len(values) & (len(values) - 1):
        raise ValueError
    return values


def _alphabet(given: Any) -> tuple[Any, ...]:
    if isinstance(given, set | frozenset | dict):
        raise TypeError  # whose order is not the user's
    listed = _plain(given) if isinstance(given, str) and given.startswith("[") else given
    symbols = tuple(listed if isinstance(listed, list | tuple) else given)
    if len(symbols) < 2 or len(set(symbols)) != len(symbols):
        raise ValueError
    if not all(type(each) in (str, int) and each not in (BOS, EOS, CLS) for each in symbols):
        raise TypeError
    return symbols


def _symbols(given: Any) -> tuple[Any, ...]:
    """The symbols of a program: different values of the types that a saved file can hold."""
    if isinstance(given, set | frozenset | dict):
        raise TypeError  # whose order is not the user's
    listed = _plain(given) if isinstance(given, str) and given.startswith("[") else given
    symbols = tuple(listed if isinstance(listed, list | tuple) else given)
    first: dict[Any, Any] = {}
    for each in symbols:
        # 1, 1.0, Fraction(1) and True are one key of a dictionary, and so one symbol.
        if each in first:
            raise _no_alphabet(f"{first[each]!r:.40} and {each!r:.40} are equal")
        first[each] = each
        _require_symbol(each)
    if not symbols:
        raise ValueError
    return symbols


def _require_symbol(symbol: Any) -> None:
    if type(symbol) is tuple:
        for each in symbol:
            _require_symbol(each)
    elif type(symbol) not in (str, int, float, Fraction):
        raise _no_alphabet(f"{symbol!r:.40} is none of these")
    elif symbol in (BOS, EOS, CLS):
        raise _no_alphabet(f"{symbol!r} is a symbol that models add")
    elif symbol != symbol:
        raise _no_alphabet("nan is not equal to itself")


def _no_alphabet(invariant: str) -> InvalidValue:
    return InvalidValue(invariant, received="", where="", remedy="")


def _name(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise TypeError
    return given


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(given: Any) -> str:
        if given not in choices:
            raise ValueError
        return str(given)

    return read


def _truth(given: Any) -> bool:
    value = _plain(given)
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


_FORMATS = tuple(each.name for each in FORMATS)

SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("max_length", "N, the longest input", "a whole number of at least 1", _whole(1)),
        Setting("d_model", "the width of the stream", "from 1 to 4096", _whole(1, 4096)),
        Setting("d_ff", "how many hidden units a network has", "from 1 to 16384", _whole(1, 16384)),
        Setting("layers", "how many layers", "from 1 to 64", _whole(1, 64)),
        Setting("vocabulary", "how many words there are", "from 2 to 65536", _whole(2, 65536)),
        Setting(
            "width", "how many numbers a vector has", "a whole number from 1 to 256", _whole(1, 256)
        ),
        Setting("printed", "whether the weights are those in print", "true or false", _truth),
        Setting("factor", "the factor c of x ↦ c x", "a number", _rational),
        Setting("epsilon", "the tolerance ε of a comparator", "a positive number", _positive),
        Setting("norm_epsilon", "ε of a layer norm", "a number of at least 0", _not_negative),
        Setting("tolerance", "the admitted error", "a positive number", _positive),
        Setting(
            "weighting", "how scores become weights", " or ".join(Weighting), _one_of(*Weighting)
        ),
        Setting("mask", "which positions a head may attend to", " or ".join(Mask), _one_of(*Mask)),
        Setting("kinds", "the kinds of brackets", "a whole number from 1 to 64", _whole(1, 64)),
        Setting("source", "the representation that is read", "the name of one", _name),
        Setting("target", "the representation that is written", "the name of one", _name),
        Setting(
            "categories",
            "how many categories there are",
            "a whole number from 2 to 256",
            _whole(2, 256),
        ),
        Setting("period", "the period m", "a whole number from 2 to 4096", _whole(2, 4096)),
        Setting("depth", "the deepest nesting", "a whole number from 1 to 1024", _whole(1, 1024)),
        Setting("seed", "the random draw", "a whole number of at least 0", _whole(0)),
        Setting("times", "how often, one after the other", "from 1 to 16", _whole(1, 16)),
        Setting("heads", "how many heads", "a whole number from 2 to 16", _whole(2, 16)),
        Setting(
            "alphabet",
            "the symbols of the inputs",
            "a string of at least two different characters, or a list of different symbols",
            _alphabet,
        ),
        Setting(
            "term",
            "what breaks ties",
            "-1/i or i/n for the rightmost, 1/i or -i/n for the leftmost",
            _one_of("-1/i", "i/n", "1/i", "-i/n"),
        ),
        Setting(
            "format",
            "the float format it is built for",
            " or ".join(_FORMATS),
            _one_of(*_FORMATS),
        ),
        Setting("largest", "B, the largest number of a finite arithmetic", _POWER, _power_of_two),
        Setting(
            "flagged", "the flagged position, from 1", "a whole number of at least 1", _whole(1)
        ),
        Setting(
            "ignored", "the coordinates that pass by, from 1", "a list such as [1, 3]", _coordinates
        ),
        Setting("vector", "the vector v that is added", "a list of numbers", _vector),
        Setting("left", "the rows of the map after", "a list of equally long rows", _matrix),
        Setting("right", "the rows of the map before", "a list of equally long rows", _matrix),
        Setting("delta", "the bound of the clipping", "a positive number", _positive),
        Setting("lo", "the lower end of the interval", "a number", _rational),
        Setting("hi", "the upper end of the interval", "a number", _rational),
        Setting("default", "the result where nothing is found", "a number", _rational),
        Setting("knots", "the points x₁ < x₂ < …", "a list of numbers", _vector),
        Setting("values", "the value at each knot", "a list of numbers", _vector),
        Setting("matrix", "the rows of a linear map", "a list of equally long rows", _matrix),
        Setting(
            "pieces",
            "the affine pieces [a₁, …, a_d, b], of a maximum or one for each polyhedron",
            "a list of equally long rows",
            _matrix,
        ),
        Setting(
            "polyhedra",
            "the polyhedra, each by its vertices [x₁, …, x_d]",
            "a list of polyhedra, each a list of equally long vertices",
            _polyhedra,
        ),
        Setting(
            "rays",
            "the rays [r₁, …, r_d] of each polyhedron, along which it reaches to infinity",
            "a list of lists of rays, one for each polyhedron, empty for a bounded one",
            _rays,
        ),
        Setting(
            "minus",
            "the affine pieces [c₁, …, c_d, e] of the maximum that is subtracted",
            "a list of equally long rows",
            _matrix,
        ),
        Setting(
            "table",
            "the values of a Boolean function at 0…00, 0…01, …, 1…11, x₁ the most significant bit",
            "a list of 2, 4, 8, … bits",
            _table,
        ),
        Setting(
            "activation",
            "the form of GELU",
            "gelu or gelu-tanh (the sigmoid form has another second derivative at 0)",
            _one_of("gelu", "gelu-tanh"),
        ),
    )
}

SYMBOLS = Setting(
    "alphabet",
    "the symbols of the inputs",
    "a string of different characters, or a list of different strings, numbers and tuples of these",
    _symbols,
)
"""The alphabet of a program; the alphabet of a recipe is narrower."""
