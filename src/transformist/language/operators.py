"""Operators of Python that a class of the language refuses.

Without a refusal of our own, Python's exception names neither the line of the user's file nor what
to write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from transformist.errors import InvalidValue
from transformist.language.places import here, refusal

Kind = TypeVar("Kind", bound=type)

OPERATORS = {
    "+": "add radd",
    "-": "sub rsub",
    "*": "mul rmul",
    "/": "truediv rtruediv",
    "//": "floordiv rfloordiv",
    "%": "mod rmod",
    "divmod": "divmod rdivmod",
    "**": "pow rpow",
    "@": "matmul rmatmul",
    "<<": "lshift rlshift",
    ">>": "rshift rrshift",
    "&": "and rand",
    "|": "or ror",
    "^": "xor rxor",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "a sign": "neg pos",
    "abs": "abs",
    "~": "invert",
}
"""Each operator with the names of its methods; == and != are apart, as every class has them."""

CONVERSIONS = {
    "len": "len",
    "a loop over its positions": "iter",
    "an index": "getitem",
    "in": "contains",
    "float": "float",
    "int": "int",
    "use as an index or in a range": "index",
    "rounding": "round floor ceil trunc",
}
"""Each conversion of a value to one of Python's, and each access to its parts, with its methods."""


EQUALITY = {"==": "eq", "!=": "ne"}
"""For a class that has no equality: Python would compare identities."""


class WithoutText:
    """Value that stands for every input, and so has no text of its own.

    `repr` describes it, for debuggers. An f-string would contain this description, and a program
    could use that text as a symbol by mistake.
    """

    def __str__(self) -> str:
        # `print` calls `__str__` too. The source text of the call tells it from `str`.
        if here().text.startswith("print("):
            return repr(self)
        raise self._refused()

    def __format__(self, _form: str) -> str:
        raise self._refused()

    def __hash__(self) -> int:
        raise refusal(
            "a key of a dictionary or a member of a set must be a value, the same for every input",
            received=repr(self),
            remedy="write x.map(d) for d[x], and a list for a set",
        )

    def _refused(self) -> InvalidValue:
        return refusal(
            "a text must be made of values, the same for every input",
            received=f"{self!r} in a text",
            remedy='write x.map(lambda a: f"{a}…") for a text of each value, and repr(x) to see '
            "its type",
        )


def refusing_operators(
    refuse: Callable[..., NoReturn], *tables: dict[str, str]
) -> Callable[[Kind], Kind]:
    """Make a class refuse the operators of the tables that it does not define itself.

    Args:
        refuse: raises the refusal; takes the object, the operator and the other operands.
        tables: of operators and the names of their methods.

    Example:
        >>> def refuse(self, sign, *others):
        ...     raise TypeError(f"{sign} is not defined here")
        >>> @refusing_operators(refuse, {"+": "add radd"})
        ... class Cell:
        ...     pass
        >>> Cell() + 1
        Traceback (most recent call last):
        ...
        TypeError: + is not defined here

    """

    def refusing(sign: str) -> Callable[..., NoReturn]:
        return lambda self, *others: refuse(self, sign, *others)

    def decorate(kind: Kind) -> Kind:
        for table in tables:
            for sign, names in table.items():
                for name in names.split():
                    if f"__{name}__" not in vars(kind):
                        setattr(kind, f"__{name}__", refusing(sign))
        return kind

    return decorate
