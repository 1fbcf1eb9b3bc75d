"""Fingerprints of models, functions and programs: equal values have equal ones in every process.

A fingerprint is a hash of the head of a value, such as its class or its bytes, and of the
fingerprints of its parts (a Merkle tree). It depends on no address and on no sharing of parts. The
values are walked without recursion, since programs may be deep.

A Python function is its bytecode, constants, defaults, closure, attributes, and the globals that it
names; a function below `functools.cache` is the function itself. The globals of what is installed
beside Python, such as numpy, and of this library, are not read.
"""

from __future__ import annotations

import copyreg
import hashlib
import sys
import sysconfig
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property, singledispatch
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from transformist.errors import InvalidValue, raised_in_words


class _Parts(NamedTuple):
    """A value taken apart: its head, its parts, and whether the parts have an order."""

    head: str
    parts: Sequence[Any] = ()
    is_ordered: bool = True


def fingerprint(value: Any) -> str:
    """The fingerprint of a value, 64 hexadecimal digits.

    Args:
        value: a model, a function or a program.

    Raises:
        InvalidValue: for a value without lasting contents, such as an open file, also as a part.

    Example:
        >>> fingerprint(lambda x: x == "") == fingerprint(lambda x: x == "")
        True
        >>> fingerprint(lambda x: x == "") == fingerprint(lambda x: x == "a")
        False

    """
    found: dict[int, bytes] = {}
    kept = []  # an address is that of one value only while the value exists
    waiting: list[tuple[Any, _Parts | None]] = [(value, None)]
    while waiting:
        each, taken = waiting.pop()
        if taken is not None:
            own = [found[id(part)] for part in taken.parts]
            text = b"".join(
                [taken.head.encode(), b"\0", *(own if taken.is_ordered else sorted(own))]
            )
            found[id(each)] = hashlib.sha256(text).digest()
        elif id(each) not in found:
            # A value may be among its own parts, as a recursive function is.
            found[id(each)] = b"itself"
            taken = _parts(each)
            kept.append((each, taken))
            waiting.append((each, taken))
            waiting.extend((part, None) for part in taken.parts)
    return found[id(value)].hex()


def _named(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


@singledispatch
def _parts(value: Any) -> _Parts:
    """An object of any other class: what a pickle of it would hold, or its fields."""
    if is_dataclass(value):
        # Fields of this library that are not compared are names and the like; a user's may be read.
        is_own = not _is_installed(type(value).__module__)
        given = [each.name for each in fields(value) if is_own or (each.init and each.compare)]
        given = [each for each in given if hasattr(value, each)]
        return _Parts("dataclass", [type(value), *given, *(getattr(value, n) for n in given)])
    if isinstance(value, cached_property):
        return _Parts("cached property", [value.func])
    try:
        reduce = copyreg.dispatch_table.get(type(value))  # compiled regular expressions
        reduced: Any = value.__reduce_ex__(2) if reduce is None else reduce(value)
        if isinstance(reduced, str):
            # The pickle of a function in functools.cache is its name; its code is in __wrapped__.
            return _Parts(f"named {reduced}", [getattr(value, "__wrapped__", None)])
        function, arguments, *rest = reduced
        state = [list(each) if hasattr(each, "__next__") else each for each in rest]
    except Exception as error:
        raise InvalidValue(
            "a journal needs a fingerprint of the model and of the reference",
            received=f"a value of type {type(value).__name__} in one of them "
            f"({raised_in_words(error)})",
            where="check",
            remedy="make the value in the function, or leave out the journal",
        ) from None
    return _Parts("object", [function, arguments, *state])


@_parts.register(str)
@_parts.register(bytes)
@_parts.register(float)
@_parts.register(complex)
@_parts.register(range)
@_parts.register(type(None))
@_parts.register(type(Ellipsis))
def _plain(value: Any) -> _Parts:
    return _Parts(f"{type(value).__name__} {value!r}")


@_parts.register(int)
@_parts.register(Fraction)
def _rational(value: Any) -> _Parts:
    # In hexadecimal digits: Python refuses to write a long number in decimal ones.
    return _Parts(f"{type(value).__name__} {value.numerator:x}/{value.denominator:x}")


@_parts.register(tuple)
@_parts.register(list)
def _sequence(value: Sequence[Any]) -> _Parts:
    return _Parts("list" if isinstance(value, list) else "tuple", value)


@_parts.register(Set)
def _set(value: Set[Any]) -> _Parts:
    return _Parts("set", list(value), is_ordered=False)


@_parts.register(Mapping)
def _mapping(value: Mapping[Any, Any]) -> _Parts:
    # A defaultdict, or a user's class, has more than its items.
    kind = type(value)
    if kind is not dict and (issubclass(kind, dict) or not _is_installed(kind.__module__)):
        return _parts.dispatch(object)(value)
    return _Parts("mapping", [*value.keys(), *value.values()])


@_parts.register(np.ndarray)
def _array(value: Any) -> _Parts:
    head = f"array {value.shape} {value.dtype}"
    if value.dtype.hasobject:
        return _Parts(head, [value.ravel().tolist()])
    return _Parts(f"{head} {hashlib.sha256(value.tobytes()).hexdigest()}")


@_parts.register(FunctionType)
def _function(value: FunctionType) -> _Parts:
    given = [value.__code__, value.__defaults__, value.__kwdefaults__, value.__closure__]
    given += [value.__dict__] if value.__dict__ else []
    if _is_installed(value.__module__):
        return _Parts(f"function {_named(value)}", given)
    names = [each for each in _names(value.__code__) if each in value.__globals__]
    return _Parts("function", [*given, {each: value.__globals__[each] for each in names}])


def _names(code: CodeType) -> list[str]:
    """Names of globals and attributes in a function and in the functions within it."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


@_parts.register(CodeType)
def _code(value: CodeType) -> _Parts:
    return _Parts(
        "code",
        [
            value.co_code,
            value.co_consts,
            value.co_names,
            value.co_varnames,
            value.co_freevars,
            value.co_exceptiontable,
        ],
    )


@_parts.register(CellType)
def _cell(value: CellType) -> _Parts:
    try:
        return _Parts("cell", [value.cell_contents])
    except ValueError:  # not yet given a value
        return _Parts("empty cell")


@_parts.register(MethodType)
def _method(value: MethodType) -> _Parts:
    return _Parts("method", [value.__func__, value.__self__])


@_parts.register(BuiltinFunctionType)
@_parts.register(np.ufunc)
def _builtin(value: Any) -> _Parts:
    owner = getattr(value, "__self__", None)
    is_bound = owner is not None and not isinstance(owner, ModuleType)
    module = getattr(value, "__module__", None)
    return _Parts(f"builtin {module}.{value.__name__}", [owner] if is_bound else [])


_UNREAD = {
    "__abstractmethods__",
    "__annotations__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__static_attributes__",
    "_abc_impl",
}
"""Attributes of a class that change no answer, or that other attributes determine."""


@_parts.register(type)
def _class(value: type) -> _Parts:
    if _is_installed(value.__module__):
        return _Parts(f"class {_named(value)}")
    own = {
        name: each
        for name, each in sorted(vars(value).items())
        if name not in _UNREAD and not isinstance(each, GetSetDescriptorType | MemberDescriptorType)
    }
    return _Parts(f"class {value.__qualname__}", [value.__bases__, own])


@_parts.register(staticmethod)
@_parts.register(classmethod)
def _wrapped(value: Any) -> _Parts:
    return _Parts(type(value).__name__, [value.__func__])


@_parts.register(property)
def _property(value: property) -> _Parts:
    return _Parts("property", [value.fget])


@_parts.register(cached_property)
def _cached_property(value: Any) -> _Parts:
    return _Parts("cached property", [value.func])


@_parts.register(MappingProxyType)
def _proxy(value: Any) -> _Parts:
    return _mapping(value)


@_parts.register(ModuleType)
def _module(value: ModuleType) -> _Parts:
    """A module of the user is its file, and the user's other modules that it has."""
    file = getattr(value, "__file__", None)
    if _is_installed(value.__name__) or file is None:
        return _Parts(f"module {value.__name__}")
    inner = {
        each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None)
        for each in vars(value).values()
        if isinstance(each, ModuleType | FunctionType | type)
    }
    others = sorted(each for each in inner if each in sys.modules and not _is_installed(each))
    return _Parts("module", [Path(file).read_bytes(), *(sys.modules[each] for each in others)])


_INSTALLED = tuple(
    Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "purelib", "platlib")
)
_LIBRARY = __name__.partition(".")[0]


def _is_installed(module: str | None) -> bool:
    """True for this library, for Python's own modules, and for what is installed beside them."""
    top = (module or "").partition(".")[0]
    if top == _LIBRARY or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return False
    parents = Path(file).resolve().parents
    return any(each in parents for each in _INSTALLED)
