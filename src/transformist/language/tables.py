"""Functions of listed values, from a user's function, mapping or list."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.errors import TransformistError, raised_in_words
from transformist.language.node import Node
from transformist.language.places import refusal
from transformist.language.pointwise import Table, require_known_values, rows_of
from transformist.language.tracing import constant, described
from transformist.language.types import Boolean, Category, Number, Type, number_of


def tabulated(nodes: tuple[Node, ...], values: Any, categories: bool = False) -> Table:
    """Make the table of a function, of a mapping, or of a list in the order of the product.

    Args:
        nodes: the arguments: Booleans, categories, and numbers of listed values.
        values: the value of the function for each of them: Booleans, numbers or categories.
        categories: True if numbers stand for categories.

    Raises:
        InvalidValue: if a value is missing, if values are of different types, or if the function
            raises.

    """
    require_known_values(nodes)
    rows_of(*(node.type for node in nodes))
    domains = [node.type.values or () for node in nodes]
    arguments: list[tuple[Any, ...]] = list(itertools.product(*domains))
    rows, result = values_at(arguments, values, categories)
    return Table(nodes, rows, result)


def values_at(
    arguments: list[tuple[Any, ...]], values: Any, categories: bool
) -> tuple[tuple[Any, ...], Type]:
    """The value of a user's function, mapping or list for each of the arguments, and the type.

    Raises:
        InvalidValue: as `tabulated`.

    """
    if isinstance(values, Mapping):
        rows = _from_mapping([_key(each) for each in arguments], values)
    elif callable(values):
        rows = tuple(_called(values, each) for each in arguments)
        _require_a_value(rows, arguments)
    else:
        rows = _listed(values)
    rows = tuple(bool(row) if isinstance(row, np.bool_) else row for row in rows)
    kind = Category if categories else _kind(rows, arguments)
    read = tuple(constant(row, kind).value for row in rows)
    return read, type_of(kind, read)


def _key(arguments: tuple[Any, ...]) -> Any:
    """The key of a mapping for these arguments: their tuple, or a single argument itself."""
    return arguments[0] if len(arguments) == 1 else arguments


def type_of(kind: type[Type], values: tuple[Any, ...]) -> Type:
    """The type of this kind that has these values."""
    if kind is Category:
        return Category(tuple(dict.fromkeys(values)))
    return number_of(values) if kind is Number else Boolean()


def _listed(values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) and set(values) <= {"0", "1"}:
        return tuple(bit == "1" for bit in values)
    if not isinstance(values, list | tuple):
        raise refusal(
            "a table must be a function, a mapping, a list of values, or bits such as 0110",
            received=f"{values!r:.40}",
            remedy='write x.map({"a": 1, "b": 2})',
        )
    return tuple(values)


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The value of a user's function for these arguments; None, without a call, if one is None."""
    if None in arguments:
        return None
    at = ", ".join(map(repr, arguments))
    try:
        value = function(*arguments)
    except TransformistError:
        raise
    except Exception as error:
        raise refusal(
            "a function of a table must have a value wherever it is called",
            received=f"{raised_in_words(error):.120} for the arguments {at:.60}",
            remedy="give a function that takes each of these and returns a value",
        ) from error
    if hasattr(value, "node"):
        raise refusal(
            "a function of a table must return a plain value: a Boolean, a number or a symbol",
            received=f"{described(value)}, for the arguments {at:.60}",
            remedy="compute with its arguments, which are values; give further sequences as "
            "further arguments: x.table(y, values=f)",
        )
    return value


def _require_a_value(rows: tuple[Any, ...], arguments: list[tuple[Any, ...]]) -> None:
    """Refuse a function without a `return`: it returns None wherever it is called."""
    called = [k for k, each in enumerate(arguments) if None not in each]
    if called and all(rows[k] is None for k in called):
        at = ", ".join(map(repr, arguments[called[0]]))
        raise refusal(
            "a function of a table must return a value other than None",
            received=f"None for the arguments {at:.60}, and for all others",
            remedy="return a value, or None for some arguments only",
        )


def _from_mapping(keys: list[Any], values: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The values of a mapping for these keys; its other keys cannot occur and are ignored."""
    missing = [key for key in keys if key not in values]
    if missing:
        # A misspelt key looks like a missing key: the refusal shows the keys that cannot occur.
        unknown = [key for key in values if key not in set(keys)]
        beside = f", but one for {_shown(unknown)}, which cannot occur" if unknown else ""
        raise refusal(
            f"a table must have a value for each of {_shown(keys)}",
            received=f"none for {_shown(missing)}{beside}",
            remedy="add it",
        )
    return tuple(values[key] for key in keys)


def _shown(keys: list[Any]) -> str:
    shown = " ".join(map(repr, keys[:8]))
    return f"{shown} …" if len(keys) > 8 else shown


def _kind(rows: tuple[Any, ...], arguments: list[tuple[Any, ...]]) -> type[Type]:
    """The one type of the values."""
    # For each type, the first argument that has it, so that a user can find the mistake. A list may
    # be shorter than the arguments; the table itself refuses it.
    firsts: dict[type[Type], Any] = {}
    for row, given in zip(rows, arguments, strict=False):
        firsts.setdefault(_kind_of_entry(row), _key(given))
    if len(firsts) != 1:
        found = sorted((kind.noun, f"for {at!r:.40}") for kind, at in firsts.items())
        nouns = " and ".join(f"{noun} {at}" for noun, at in found) or "nothing"
        raise refusal(
            "the values of a table must be of one type",
            received=f"{nouns}: {_shown(list(rows))}",
            remedy="give only Booleans, only numbers, or only categories such as strings",
        )
    return next(iter(firsts))


def _kind_of_entry(value: Any) -> type[Type]:
    is_number = isinstance(value, np.integer | np.floating)
    return Number if is_number else _KINDS.get(type(value), Category)


_KINDS: Mapping[type, type[Type]] = {bool: Boolean, int: Number, float: Number, Fraction: Number}
"""The type that each Python type stands for in a table; every other stands for a category."""
