"""Checks of the arguments of functions on flags: slots, forms and the largest number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from transformist.arithmetic import rational
from transformist.errors import InvalidValue


def listed_slots(slots: Any, where: str, name: str = "slots", least: int = 1) -> tuple[str, ...]:
    """Return the names of slots, each given once, at least `least` of them.

    Raises:
        InvalidValue: for another argument.

    """
    given = tuple(slots) if isinstance(slots, Iterable) and not isinstance(slots, str) else None
    are_names = given is not None and all(isinstance(each, str) for each in given)
    if not are_names or len(given or ()) < least or len(set(given or ())) < len(given or ()):
        raise InvalidValue(
            f"{name} must be a list of names of slots, at least {least}, each once",
            received=f"{slots!r:.60}",
            where=where,
            remedy='give names such as ["x", "y"]',
        )
    return given or ()


def mapped_slots(given: Any, where: str, name: str, meaning: str) -> Mapping[str, Any]:
    """Return a mapping from names of slots, which must have at least one entry.

    Raises:
        InvalidValue: for another argument.

    """
    is_mapping = isinstance(given, Mapping) and all(isinstance(each, str) for each in given)
    if not is_mapping or not given:
        raise InvalidValue(
            f"{name} must map names of slots to {meaning}, with at least one entry",
            received=f"{given!r:.60}",
            where=where,
            remedy=f"give a dict such as {{'x': …}}, from a slot to {meaning}",
        )
    return dict(given)


def require_forms(where: str, **forms: Any) -> None:
    """Require slots, or forms: mappings from slots to coefficients.

    Raises:
        InvalidValue: for another argument.

    """
    for name, form in forms.items():
        if not isinstance(form, str | Mapping):
            raise InvalidValue(
                f"{name} must be a slot, or a form, which maps slots to coefficients",
                received=f"{form!r:.60}",
                where=where,
                remedy="give one such as 'x' or {'x': 1, 'y': -1}",
            )


def positive(largest: Any, where: str) -> Fraction:
    """Return B, the largest number of an arithmetic that clamps.

    Raises:
        InvalidValue: for another argument than a number greater than 0.

    """
    try:
        value = rational(largest)
    except (ValueError, TypeError, ArithmeticError):
        value = Fraction(0)
    if value <= 0:
        raise InvalidValue(
            "`largest` must be greater than 0: it is the number B at which the arithmetic clamps",
            received=f"{largest!r:.40}",
            where=where,
            remedy="give B, such as 16 for saturating:16:4",
        )
    return value


def layer_numbers(layers: Any, count: int, where: str) -> set[int]:
    """Return the numbers of some layers, or of all for `None`.

    Raises:
        InvalidValue: for another argument.

    """
    given: Sequence[Any] = (
        range(count)
        if layers is None
        else list(layers)
        if isinstance(layers, Iterable)
        else [layers]
    )
    is_some = isinstance(layers, Iterable) or layers is None
    if not is_some or not all(type(each) is int and 0 <= each < count for each in given):
        raise InvalidValue(
            f"the layers that ignore slots must be a list of some of 0 to {count - 1}",
            received=f"{layers!r:.40}",
            where=where,
            remedy="give their numbers, from 0, or leave them out",
        )
    return set(given)
