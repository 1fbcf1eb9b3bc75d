"""Models as JSON and named tensors, field by field, and back.

Strings, truth values, `None` and whole numbers are JSON as they are, a tuple is a list, and all
else is an object with one key, which says what it is: `{"Stream": {"slots": ["balance"]}}`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import fields
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import nearest_float64
from transformist.circuit import PositionFeature, StepFunction
from transformist.errors import InvalidValue
from transformist.laws import Ranges
from transformist.model import (
    Attention,
    Binary,
    Embedding,
    FeedForward,
    LanguageModel,
    Layer,
    LayerNorm,
    Mask,
    MultiClass,
    NearestFraction,
    NearZero,
    Outputs,
    PositionFlags,
    PositionFunctions,
    PositionsSideBySide,
    PositionTable,
    RealVector,
    Sinusoids,
    Span,
    Stream,
    Transformer,
    Weighting,
    rationals,
)
from transformist.model.definition import OneOf
from transformist.verify.certificate import PARTS

KEYS: Mapping[type, str] = {PositionFeature: "Feature", StepFunction: "Step"}
"""The keys of definitions that files name otherwise than Python does."""

CLASSES: Mapping[str, type] = {
    KEYS.get(each, each.__name__): each
    for each in (
        Attention,
        Binary,
        Embedding,
        FeedForward,
        LanguageModel,
        Layer,
        LayerNorm,
        MultiClass,
        NearestFraction,
        NearZero,
        Outputs,
        PositionFlags,
        PositionFunctions,
        PositionsSideBySide,
        PositionTable,
        RealVector,
        Sinusoids,
        Span,
        Stream,
        Transformer,
        *PARTS,
    )
}
"""The definitions that are written, each by its fields: those of models and of certificates."""

Json: TypeAlias = Any
Tensors: TypeAlias = "MutableMapping[str, NDArray[np.float64]]"
Read: TypeAlias = Callable[[str], NDArray[Any]]
"""The tensor of a name."""

PLAIN = 2**53
"""Largest JSON number: readers that parse numbers as float64 keep whole numbers up to 2⁵³."""


def encoded(value: Any, name: str, tensors: Tensors) -> Json:
    """A value as JSON; arrays go to `tensors`, under their place in the value.

    An array with rationals that float64 does not hold is a tensor of the nearest ones, and the
    JSON has these entries exactly, in hexadecimal digits, which may be as many as they are.

    Args:
        value: a definition of `CLASSES`, an array of weights, or a plain value.
        name: its place, such as `layers.0.heads.1`.
        tensors: to be filled.

    Raises:
        InvalidValue: for a value of another class.

    Example:
        >>> tensors = {}
        >>> encoded(PositionTable(vectors=[["1/3", 2]]), "table", tensors)
        {'PositionTable': {'vectors': {'rationals': ['table.vectors', [[0, '1/3']]]}}}
        >>> tensors["table.vectors"].tolist()
        [[0.3333333333333333, 2.0]]

    """
    if type(value) not in _WRITERS:
        raise InvalidValue(
            f"a saved value must be {', '.join(CLASSES)}, weights, or a plain value",
            received=f"{value!r:.60}, a {type(value).__name__}",
            where=name or "save",
            remedy="build the model with these",
        )
    return _WRITERS[type(value)](value, name, tensors)


def _as_it_is(value: Any, _name: str, _tensors: Tensors) -> Json:
    return value


def _write_whole(value: int, _name: str, _tensors: Tensors) -> Json:
    # Hexadecimal digits of any number are written and read in linear time, and Python has no limit
    # on their count, as it has on decimal digits.
    return value if abs(value) <= PLAIN else {"integer": f"{value:x}"}


def _write_rational(value: Fraction, _name: str, _tensors: Tensors) -> Json:
    return {"rational": _digits(value)}


def _write_float(value: float, _name: str, _tensors: Tensors) -> Json:
    # The hexadecimal form is exact, and JSON has no infinity and no NaN.
    return {"float": value.hex()}


def _write_set(value: frozenset[Any], name: str, tensors: Tensors) -> Json:
    # In order, so that equal values give equal bytes.
    return {"set": _write_tuple(tuple(sorted(value)), name, tensors)}


def _write_tuple(value: tuple[Any, ...], name: str, tensors: Tensors) -> Json:
    return [encoded(each, f"{name}.{number}", tensors) for number, each in enumerate(value)]


def _write_ranges(value: Ranges, name: str, tensors: Tensors) -> Json:
    return _write_tuple(tuple(value), name, tensors)


def _write_fields(value: Any, name: str, tensors: Tensors) -> Json:
    prefix = f"{name}." if name else ""
    # Fields that are no arguments follow from the others: they are computed again when the value is
    # made, and no file can set them.
    given = [each.name for each in fields(value) if each.init]
    parts = {each: encoded(getattr(value, each), prefix + each, tensors) for each in given}
    return {KEYS.get(type(value), type(value).__name__): parts}


def _write_array(value: NDArray[Any], name: str, tensors: Tensors) -> Json:
    # Bytes of safetensors are little-endian and in the order of rows, on every machine.
    nearest = np.array(value, dtype="<f8", order="C") if value.dtype != object else _nearest(value)
    tensors[name] = nearest
    if value.dtype != object:
        return {"tensor": name}
    pairs = enumerate(zip(value.ravel().tolist(), nearest.ravel().tolist(), strict=True))
    return {"rationals": [name, [[at, _digits(p)] for at, (p, near) in pairs if p != near]]}


def _nearest(value: NDArray[Any]) -> NDArray[np.float64]:
    """The nearest float64 numbers, infinite beyond the largest."""
    near = [nearest_float64(each) for each in value.ravel().tolist()]
    return np.array(near, dtype="<f8").reshape(value.shape)


_WRITERS: Mapping[type, Callable[[Any, str, Tensors], Json]] = {
    str: _as_it_is,
    Mask: _as_it_is,
    Weighting: _as_it_is,
    bool: _as_it_is,
    NoneType: _as_it_is,
    int: _write_whole,
    Fraction: _write_rational,
    float: _write_float,
    frozenset: _write_set,
    tuple: _write_tuple,
    Ranges: _write_ranges,
    np.ndarray: _write_array,
    **dict.fromkeys(CLASSES.values(), _write_fields),
}


def decoded(json: Json, tensor: Read) -> Any:
    """The value that `encoded` wrote.

    Args:
        json: what it gave.
        tensor: the tensor of a name.

    Raises:
        Exception: of many kinds, for what `encoded` did not write.

    Example:
        >>> decoded({"Stream": {"slots": ["balance"]}}, {}.__getitem__).slots
        ('balance',)

    """
    if isinstance(json, list):
        return tuple(decoded(each, tensor) for each in json)
    if not isinstance(json, dict):
        return json
    # An object with several keys, or none, was not written by `encoded`: the unpacking raises.
    ((kind, parts),) = json.items()
    return _READERS[kind](parts, tensor)


def _read_fields(of: type, parts: Json, tensor: Read) -> Any:
    values = {name: decoded(each, tensor) for name, each in parts.items()}
    hints = _hints(of)
    # Annotations of a dataclass are not checked when it is made, and a file comes from anywhere: a
    # value of another type is refused here, before a check relies on it.
    for name, value in values.items():
        if not _is_a(value, hints[name]):
            raise TypeError(f"{name} of {of.__name__} is {value!r:.40}")
    return of(**values)


def _read_tensor(name: str, tensor: Read) -> Any:
    return tensor(name)


def _read_rationals(parts: Json, tensor: Read) -> Any:
    name, exact = parts
    values = tensor(name).astype(object)
    for at, digits in exact:
        if type(at) is not int:
            raise TypeError(f"the place of a rational is {at!r:.20}")
        values.flat[at] = _read_rational(digits, tensor)
    return rationals(values)


def _read_whole(digits: str, _tensor: Read) -> int:
    return int(digits, 16)


def _read_float(digits: str, _tensor: Read) -> float:
    return float.fromhex(digits)


def _read_set(parts: Json, tensor: Read) -> frozenset[Any]:
    return frozenset(decoded(parts, tensor))


def _read_rational(digits: str, _tensor: Read) -> Fraction:
    numerator, denominator = digits.split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))


_READERS: Mapping[str, Callable[[Json, Read], Any]] = {
    "float": _read_float,
    "integer": _read_whole,
    "rational": _read_rational,
    "rationals": _read_rationals,
    "set": _read_set,
    "tensor": _read_tensor,
    **{name: functools.partial(_read_fields, each) for name, each in CLASSES.items()},
}


def _digits(value: Fraction) -> str:
    return f"{value.numerator:x}/{value.denominator:x}"


@functools.cache
def _hints(of: type) -> Mapping[str, Any]:
    return get_type_hints(of)


def _is_a(value: Any, hint: Any) -> bool:
    """True if a value fits the annotation of a field."""
    kind, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if kind in (Union, UnionType):
        return any(_is_a(value, part) for part in parts)
    if kind is OneOf:
        return isinstance(value, str)
    if kind is frozenset:
        return isinstance(value, frozenset) and all(_is_a(each, parts[0]) for each in value)
    if kind is not tuple:
        # In Python True is an `int`: without this it would be read as the number 1.
        return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
    if not isinstance(value, tuple):
        return False
    wanted = parts[:1] * len(value) if parts[1:] == (...,) else parts
    return len(value) == len(wanted) and all(map(_is_a, value, wanted))
