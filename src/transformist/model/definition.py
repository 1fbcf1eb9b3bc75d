"""Definitions as frozen values: checked parts, equality, hashes, copies, and calls on vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Set
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from transformist.arithmetic import Arithmetic, Array, Rationals, number_system
from transformist.errors import InvalidValue, NotFinite, ShapeMismatch, UnknownName
from transformist.model.weights_table import HasWeights

Member = TypeVar("Member", bound=StrEnum)


class OneOf(Generic[Member]):
    """Field of a definition that holds a member of an enumeration, given by its name or itself.

    Args:
        kind: the enumeration.
        default: the member where none is given; without one, the field must be given.

    """

    def __init__(self, kind: type[Member], default: Member | None = None) -> None:
        self._kind = kind
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, definition: object, owner: type | None = None) -> Member:
        # The decorator `dataclass` reads the attribute of the class as the default of the field.
        found = self._default if definition is None else vars(definition).get(self._name)
        if found is None:
            raise AttributeError(self._name)
        return found

    def __set__(self, definition: object, given: str) -> None:
        where = type(definition).__name__
        if not isinstance(given, str):
            raise InvalidValue(
                f"{self._name} must be text",
                received=_shown(given),
                where=where,
                remedy=f"give one of {', '.join(self._kind)}",
            )
        if given not in tuple(self._kind):
            raise UnknownName.among(self._name, given, self._kind, where)
        vars(definition)[self._name] = self._kind(given)


def part(*kinds: type, **options: Any) -> Any:
    """Declare a field of a definition to hold one object of these classes.

    Args:
        kinds: the classes; `NoneType` among them where the part may be left out.
        options: as `dataclasses.field` takes them.

    """
    return field(metadata={"part": kinds}, **options)


def several(*kinds: type, least: int = 0, most: float = math.inf, **options: Any) -> Any:
    """Declare a field of a definition to hold a tuple, which may be given as any sequence.

    Args:
        kinds: the classes of its entries.
        least: how many entries there must be.
        most: how many there may be.
        options: as `dataclasses.field` takes them.

    """
    return field(metadata={"several": _Several(kinds, least, most)}, **options)


@dataclass(frozen=True)
class _Several:
    """Condition on a tuple, as `several` takes it."""

    kinds: tuple[type, ...]
    least: int
    most: float

    def read(self, given: Any, name: str, where: str) -> tuple[Any, ...]:
        """Return the entries of the field `name`.

        Raises:
            InvalidValue: for a single entry, an argument that is not a sequence, or a wrong
                entry.
            ShapeMismatch: for too few entries or too many.

        """
        noun = _nouns(self.kinds)
        # A text is a sequence of texts: without this, a single name would be read as a tuple of its
        # letters.
        is_single = self.kinds != _ANY and isinstance(given, self.kinds)
        values = _entries(given)
        if values is None or is_single:
            raise InvalidValue(
                f"{name} must be a tuple of {noun}",
                received=f"one {type(given).__name__}" if is_single else _shown(given),
                where=where,
                remedy=f"put it in a tuple: {name}=(…,)" if is_single else "give a tuple",
            )
        if not self.least <= len(values) <= self.most:
            count = f"{self.least}" if self.least == self.most else f"at least {self.least}"
            raise ShapeMismatch(
                f"{name} must hold {count} of {noun}",
                received=f"{len(values) or 'none'}",
                where=where,
                remedy=f"give {count}",
            )
        for number, value in enumerate(values):
            if not _is_one(value, self.kinds):
                raise InvalidValue(
                    f"{name} must be a tuple of {noun}",
                    received=f"{_shown(value)} at index {number}",
                    where=where,
                    remedy="take it out, or give another one",
                )
        return values


@dataclass(frozen=True, eq=False)
class Definition:
    """A frozen value: equal to one of its class that was made with equal arguments.

    Weights are compared as the numbers they are. A copy is the definition itself, which cannot
    change; a pickle holds the arguments, with which the definition is made again, so that what
    comes out of it is checked and read-only, and nothing that was computed is stored.

    Example:
        >>> from transformist.model import PositionFunctions
        >>> one, other = PositionFunctions(("i", None)), PositionFunctions(["i", None])
        >>> one == other, one == PositionFunctions(("i",)), len({one, other})
        (True, False, 1)

    """

    def __post_init__(self) -> None:
        for each in fields(self):
            if "several" in each.metadata:
                given, where = getattr(self, each.name), type(self).__name__
                value = each.metadata["several"].read(given, each.name, where)
                object.__setattr__(self, each.name, value)
            elif "part" in each.metadata:
                self._require_part(each.name, each.metadata["part"])

    def _require_part(self, name: str, kinds: tuple[type, ...]) -> None:
        """Refuse a field of another class."""
        given = getattr(self, name)
        if not _is_one(given, kinds):
            raise InvalidValue(
                f"{name} must be {_nouns(kinds)}",
                received=_shown(given),
                where=type(self).__name__,
                remedy=f"give {name} as one of that kind",
            )

    @property
    def nonzero(self) -> int:
        """Number of parameters that are not 0, in this definition and in all its parts."""
        return sum(map(_nonzero, self._arguments().values()))

    def _arguments(self) -> dict[str, Any]:
        """Arguments that the definition is made with, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        # The hash is kept, so that unequal weights are seldom compared entry by entry.
        if hash(self) != hash(other):
            return False
        pairs = zip(self._arguments().values(), other._arguments().values(), strict=True)
        return all(_are_equal(own, its) for own, its in pairs)

    def __hash__(self) -> int:
        kept: int | None = vars(self).get("_hash")
        if kept is None:
            kept = hash((type(self), *map(_hash, self._arguments().values())))
            object.__setattr__(self, "_hash", kept)
        return kept

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self._arguments())

    def __copy__(self) -> Definition:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Definition:
        return self


Observer: TypeAlias = Callable[[Any, Arithmetic], None]
"""A function of the numbers or symbols on which a model is called, and of the arithmetic."""


class Function(HasWeights):
    """A definition that is called on vectors."""

    @abstractmethod
    def on(self, x: Array, a: Arithmetic) -> Array:
        """Value at numbers that the arithmetic computed, which may have overflowed."""

    def __call__(self, x: Any, arithmetic: Arithmetic | str = "float64") -> Array:
        """Value at the given numbers, which must be finite.

        Args:
            x: vectors, as nested lists or an array; their numbers are along the last axis.
            arithmetic: the number system, by name.

        Raises:
            NotFinite: for NaN or an infinity.
            ShapeMismatch: for vectors of another width.

        """
        a = number_system(arithmetic)
        given = finite(x, a, type(self).__name__)
        y = self.on(given, a)
        observe(self, given, a)
        return y


DefinitionT = TypeVar("DefinitionT", bound=Definition)


def observed(model: DefinitionT, observer: Observer) -> DefinitionT:
    """Return an equal model that calls the observer with each input of its own calls.

    The observer is no part of the definition: parts of other models, copies with other fields and
    pickles are without it.
    """
    # Made without `__init__`: its fields are those of a definition that is checked already, and
    # `_observer` is no field, so that equality, hash and pickle do not see it.
    shown = object.__new__(type(model))
    vars(shown).update({**vars(model), "_observer": observer})
    return shown


def observe(model: object, given: Any, a: Arithmetic) -> None:
    """Show an input to the observer of a model, if it has one.

    Args:
        model: the model that is called.
        given: the numbers; of symbols, any sequence of the same length.
        a: the arithmetic.

    """
    observer: Observer | None = vars(model).get("_observer")
    if observer is not None:
        observer(given, a)


def finite(x: Any, a: Arithmetic, where: str) -> Array:
    """Convert numbers to the arithmetic; an array of its own kind is returned as it is.

    Raises:
        NotFinite: for NaN or an infinity.

    """
    array = a.array(x)
    if array is x and not isinstance(array, Rationals):  # rational numbers are finite
        numbers = a.numbers(array)
        if numbers.dtype != object and not np.isfinite(numbers).all():
            raise NotFinite(
                "every number must be finite",
                received=str(numbers[~np.isfinite(numbers)][0]),
                where=where,
                remedy="give finite numbers",
            )
    return array


def _made(kind: type[Definition], arguments: dict[str, Any]) -> Definition:
    """Make a definition from the arguments in a pickle."""
    return kind(**arguments)


def _entries(given: Any) -> tuple[Any, ...] | None:
    """Entries of a sequence; `None` for other values, mappings and sets included."""
    if isinstance(given, Mapping | Set):
        return None
    try:
        return tuple(given)
    except TypeError:
        return None


def _is_one(value: Any, kinds: tuple[type, ...]) -> bool:
    """True for a value of one of the classes; a label must be hashable and equal itself."""
    if kinds != _ANY:
        return isinstance(value, kinds)
    try:
        hash(value)
        # A label that does not equal itself, such as NaN, could never be found among the labels
        # again.
        return bool(value == value)  # NaN does not
    except TypeError:
        return False


def _nouns(kinds: tuple[type, ...]) -> str:
    """Classes in words: "FeedForward, Heads or None"."""
    names = [_WORDS.get(kind, kind.__name__) for kind in kinds]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


_ANY = (Hashable,)

_WORDS: Mapping[type, str] = {
    NoneType: "None",
    Hashable: "hashable values, not NaN",
    bool: "True or False",
    str: "text",
}


def _shown(value: Any) -> str:
    return "None" if value is None else f"{value!r:.40}, a {type(value).__name__}"


def _nonzero(value: Any) -> int:
    """Number of parameters in an argument that are not 0."""
    if isinstance(value, tuple):
        return sum(map(_nonzero, value))
    if isinstance(value, np.ndarray):
        return int(np.count_nonzero(value))
    found: int = getattr(value, "nonzero", 0)  # a definition, or a user's own position encoding
    return found


def _are_equal(one: Any, other: Any) -> bool:
    """True if two arguments are equal; arrays are compared by their numbers."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.shape(one) == np.shape(other) and np.all(one == other))
    return bool(one == other)


def _hash(value: Any) -> int:
    """The hash of an argument."""
    # A float64 array and one of `Fraction` can be equal: each array is hashed as the numbers it
    # holds. In Python equal numbers have one hash, also −0 and 0.
    if isinstance(value, np.ndarray):
        return hash((value.shape, tuple(value.ravel().tolist())))
    return hash(value)
