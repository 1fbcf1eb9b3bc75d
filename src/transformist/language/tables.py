"""Functions of Booleans and categories, read from a user's mapping or list."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.language.node import Node
from transformist.language.places import refusal
from transformist.language.pointwise import Table, require_kinds, rows_of
from transformist.language.tracing import constant
from transformist.language.types import Boolean, Category, Number, Type, number_of


def tabulated(nodes: tuple[Node, ...], values: Any, categories: bool = False) -> Table:
    """Make the table of a mapping, or of a list in the order of the product of the arguments.

    Args:
        nodes: the arguments.
        values: the value of the function for each of them: Booleans, numbers or categories.
        categories: True if numbers stand for categories.

    Raises:
        InvalidValue: if a value is missing, if a key is not an argument, or if values are of
            different types.

    """
    if any(isinstance(node.type, Number) for node in nodes):
        require_kinds("a table", nodes, *[Boolean] * len(nodes))
    rows_of(*(node.type for node in nodes))
    rows = _from_mapping(nodes, values) if isinstance(values, Mapping) else _listed(values)
    kind = Category if categories else _kind(rows)
    read = tuple(constant(row, kind).value for row in rows)
    return Table(nodes, read, type_of(kind, read))


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
            "a table must be a mapping, a list of values, or bits such as 0110",
            received=f"{values!r:.40}",
            remedy='write x.map({"a": 1, "b": 2})',
        )
    return tuple(values)


def _from_mapping(nodes: tuple[Node, ...], values: Mapping[Any, Any]) -> tuple[Any, ...]:
    domains = [node.type.values or () for node in nodes]
    keys: list[Any] = list(domains[0] if len(nodes) == 1 else itertools.product(*domains))
    missing = [key for key in keys if key not in values]
    if missing:
        raise refusal(
            f"a table must have a value for each of {_shown(keys)}",
            received=f"none for {_shown(missing)}",
            remedy="add it",
        )
    unknown = [key for key in values if key not in set(keys)]
    if unknown:
        raise refusal(
            f"the keys of a table must be {_shown(keys)}",
            received=f"a value for {_shown(unknown)}",
            remedy="leave it out, or add it to the alphabet",
        )
    return tuple(values[key] for key in keys)


def _shown(keys: list[Any]) -> str:
    shown = " ".join(map(repr, keys[:8]))
    return f"{shown} …" if len(keys) > 8 else shown


def _kind(rows: tuple[Any, ...]) -> type[Type]:
    """The one type of the values."""
    kinds = {_kind_of_entry(row) for row in rows}
    if len(kinds) != 1:
        nouns = " and ".join(sorted({kind.noun for kind in kinds})) or "nothing"
        raise refusal(
            "the values of a table must be of one type",
            received=f"{nouns}: {_shown(list(rows))}",
            remedy="give only Booleans, only numbers, or only categories such as strings",
        )
    return kinds.pop()


def _kind_of_entry(value: Any) -> type[Type]:
    is_number = isinstance(value, np.integer | np.floating)
    return Number if is_number else _KINDS.get(type(value), Category)


_KINDS: Mapping[type, type[Type]] = {bool: Boolean, int: Number, float: Number, Fraction: Number}
"""The type that each Python type stands for in a table; every other stands for a category."""
