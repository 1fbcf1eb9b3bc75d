"""Fingerprints of models, functions and programs: equal values have equal ones in every process.

A fingerprint is a hash of the head of a value, such as its class or its bytes, and of the
fingerprints of its parts (a Merkle tree). It depends on no address and on no sharing of parts. The
values are walked without recursion, since programs may be deep.

A value is taken apart by its exact class. An object of any other class is its class, its
attributes, and what a pickle of it would hold. A value that cannot be taken apart is refused.

A Python function is its bytecode, constants, defaults, closure, attributes, and the globals that it
names; all globals, if it names `globals`, `eval` or the like. Its name, docstring and annotations
are not read. Nor are the globals of what is installed beside Python, such as numpy, and of this
library.
"""

from __future__ import annotations

import copyreg
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property
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
from typing import Any, NamedTuple, TypeVar

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


def _parts(value: Any) -> _Parts:
    """A value taken apart by its class; a metaclass makes classes, whatever its own class is."""
    taken = _BY_CLASS.get(type(value))
    if taken is not None:
        return taken(value)
    if isinstance(value, type):
        return _class(value)
    return _module(value) if isinstance(value, ModuleType) else _object(value)


_BY_CLASS: dict[type, Callable[[Any], _Parts]] = {}
"""Functions that take a value apart, by its exact class."""

_Taking = TypeVar("_Taking", bound=Callable[[Any], _Parts])


def _of(*classes: type) -> Callable[[_Taking], _Taking]:
    """Take values of these classes apart with a function. A subclass may have more than they do."""

    def register(taking: _Taking) -> _Taking:
        _BY_CLASS.update(dict.fromkeys(classes, taking))
        return taking

    return register


def _object(value: Any) -> _Parts:
    """An object of any other class: the class, the attributes, and what a pickle would hold."""
    kind = type(value)
    if is_dataclass(value) and kind.__module__.partition(".")[0] == _LIBRARY:
        # Fields of this library that are not compared are names and the like.
        given = [each.name for each in fields(value) if each.init and each.compare]
        given = [each for each in given if hasattr(value, each)]
        return _Parts("dataclass", [kind, *given, *(getattr(value, n) for n in given)])
    own = [kind, getattr(value, "__dict__", None), dict(_slots(value))]
    if isinstance(value, set | frozenset):
        # A pickle has the members in an order that differs from process to process.
        members: Any = set if isinstance(value, set) else frozenset
        return _Parts("object", [*own, frozenset(members.__iter__(value))])
    return _Parts("object", [*own, *_pickled(value)])


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    """The values of the slots that the user's classes give an object, whatever a pickle has."""
    for kind in type(value).__mro__:
        for name, each in () if _is_installed(kind.__module__) else vars(kind).items():
            if isinstance(each, MemberDescriptorType):
                try:
                    yield f"{kind.__qualname__}.{name}", each.__get__(value)
                except AttributeError:  # not yet given a value
                    continue


def _pickled(value: Any) -> Iterable[Any]:
    """The contents of a pickle: a class written in C keeps its state where no attribute shows it.

    Raises:
        InvalidValue: for an object that refuses to be pickled, such as an open file.

    """
    try:
        reduce = copyreg.dispatch_table.get(type(value))  # compiled regular expressions
        reduced: Any = value.__reduce_ex__(2) if reduce is None else reduce(value)
        # The pickle of a function in functools.cache is its name; its attributes have its code.
        if isinstance(reduced, str):
            return [reduced]
        return [list(each) if hasattr(each, "__next__") else each for each in reduced]
    except Exception as error:
        raise InvalidValue(
            "a journal needs a fingerprint of the model and of the reference",
            received=f"a value of type {type(value).__name__} in one of them "
            f"({raised_in_words(error)})",
            where="check",
            remedy="make the value in the function, or leave out the journal",
        ) from None


@_of(str, bytes, bytearray, bool, float, complex, range, type(None), type(Ellipsis))
def _plain(value: Any) -> _Parts:
    return _Parts(f"{type(value).__name__} {value!r}")


@_of(int, Fraction)
def _rational(value: Any) -> _Parts:
    # In hexadecimal digits: Python refuses to write a long number in decimal ones.
    return _Parts(f"{type(value).__name__} {value.numerator:x}/{value.denominator:x}")


@_of(tuple, list)
def _sequence(value: Sequence[Any]) -> _Parts:
    return _Parts(type(value).__name__, value)


@_of(set, frozenset)
def _set(value: Set[Any]) -> _Parts:
    return _Parts(type(value).__name__, list(value), is_ordered=False)


@_of(dict, MappingProxyType)
def _mapping(value: Mapping[Any, Any]) -> _Parts:
    return _Parts("mapping", [*value.keys(), *value.values()])


@_of(np.ndarray)
def _array(value: Any) -> _Parts:
    head = f"array {value.shape} {value.dtype}"
    if value.dtype.hasobject:
        return _Parts(head, [value.ravel().tolist()])
    return _Parts(f"{head} {hashlib.sha256(value.tobytes()).hexdigest()}")


@_of(FunctionType)
def _function(value: FunctionType) -> _Parts:
    given = [value.__code__, value.__defaults__, value.__kwdefaults__, value.__closure__]
    given += [value.__dict__] if value.__dict__ else []
    all_ = value.__globals__
    # `functools.wraps` gives a function the module of another one, but not its globals.
    if _is_installed(all_.get("__name__")):
        return _Parts(f"function {_named(value)}", given)
    names = _names(value.__code__)
    if not _READ_ALL.isdisjoint(names):
        names = sorted(each for each in all_ if not each.startswith("__"))
    read = {each: all_[each] for each in names if each in all_}
    # The attributes of a module may have changed since its file was run.
    changed = {
        f"{module}.{each}": vars(read[module])[each]
        for module in read
        if isinstance(read[module], ModuleType) and not _is_installed(read[module].__name__)
        for each in names
        if each in vars(read[module])
    }
    return _Parts("function", [*given, read, changed])


_READ_ALL = {"eval", "exec", "globals", "locals", "vars"}
"""Names of functions that reach globals which the code does not name."""


def _names(code: CodeType) -> list[str]:
    """Names of globals and attributes in a function and in the functions within it."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return sorted({*code.co_names, *(name for each in inner for name in _names(each))})


@_of(CodeType)
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
            value.co_cellvars,
            # The parameters: f(x) and f(*x) may have one bytecode.
            value.co_flags,
            value.co_argcount,
            value.co_posonlyargcount,
            value.co_kwonlyargcount,
        ],
    )


@_of(CellType)
def _cell(value: CellType) -> _Parts:
    try:
        return _Parts("cell", [value.cell_contents])
    except ValueError:  # not yet given a value
        return _Parts("empty cell")


@_of(MethodType)
def _method(value: MethodType) -> _Parts:
    return _Parts("method", [value.__func__, value.__self__])


@_of(BuiltinFunctionType, np.ufunc)
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


def _class(value: type) -> _Parts:
    if _is_installed(value.__module__):
        return _Parts(f"class {_named(value)}")
    own = {
        name: each
        for name, each in sorted(vars(value).items())
        if name not in _UNREAD and not isinstance(each, GetSetDescriptorType | MemberDescriptorType)
    }
    return _Parts(f"class {value.__qualname__}", [type(value), value.__bases__, own])


@_of(staticmethod, classmethod)
def _wrapped(value: Any) -> _Parts:
    return _Parts(type(value).__name__, [value.__func__])


@_of(property)
def _property(value: property) -> _Parts:
    return _Parts("property", [value.fget, value.fset, value.fdel])


@_of(cached_property)
def _cached_property(value: Any) -> _Parts:
    return _Parts("cached property", [value.func])


def _module(value: ModuleType) -> _Parts:
    """A module of the user: its file, and the other modules of the user that it imports from."""
    file = getattr(value, "__file__", None)
    if _is_installed(value.__name__):
        return _Parts(f"module {value.__name__}")
    if file is None:
        own = {each: of for each, of in vars(value).items() if not each.startswith("__")}
        return _Parts(f"module {value.__name__}", [own])
    inner = {
        each.__name__ if isinstance(each, ModuleType) else getattr(each, "__module__", None)
        for each in vars(value).values()
        if isinstance(each, ModuleType | FunctionType | type)
    }
    others = sorted(each for each in inner if each in sys.modules and not _is_installed(each))
    return _Parts("module", [Path(file).read_bytes(), *(sys.modules[each] for each in others)])


_INSTALLED = tuple(
    Path(sysconfig.get_path(each)).resolve()
    for each in ("stdlib", "platstdlib", "purelib", "platlib")
)
_LIBRARY = __name__.partition(".")[0]


def _is_installed(module: str | None) -> bool:
    """True for this library, for Python's own modules, and for what is installed beside them."""
    top = (module or "").partition(".")[0]
    if top == _LIBRARY:
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:
        return top in sys.stdlib_module_names
    # A user's queue.py stands for Python's own.
    parents = Path(file).resolve().parents
    return any(each in parents for each in _INSTALLED)
