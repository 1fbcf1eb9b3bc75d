"""Record of one run of a user's function on sequences that stand for every input.

A subexpression that is written twice is one node: nodes are kept by kind, attributes and the
identity of their children, which are kept ones themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from fractions import Fraction
from types import CodeType
from typing import Any

import numpy as np

from transformist.language.leaves import Constant
from transformist.language.node import Entry, Node, different
from transformist.language.output_kinds import Output
from transformist.language.places import Place, here_in, name_of, refusal, user_frame
from transformist.language.types import Boolean, Category, Number, Type, exact

FLOATS: ContextVar[set[Fraction] | None] = ContextVar("floats", default=None)
"""The magnitudes of the constants that the function being traced gives as floats.

A node keeps a number, not how it was written: only here can a float be told from a `Fraction`.
"""


class Tracing:
    """Record of a program while its function runs.

    Attributes:
        alphabet: the symbols of its inputs.
        nodes: every subexpression once, by its kind, its attributes and the identity of its
            children.
        places: the place where each was first written, by the identity of its node.
        names: the user's names of subexpressions, at the time an output was made.
        outputs: the outputs made so far.
        wrappers: the class of the values of each type.

    """

    def __init__(
        self,
        alphabet: tuple[Any, ...],
        code: CodeType,
        wrappers: Mapping[type[Type], type[Any]],
    ) -> None:
        self.alphabet = alphabet
        self.nodes: dict[Entry, Node] = {}
        self.places: dict[int, Place] = {}
        self.names: dict[str, Node] = {}
        self.outputs: list[Output] = []
        self._code, self.wrappers = code, wrappers

    def node(self, node: Node) -> Node:
        """Keep a node, and return it, or the equal one that was kept before."""
        entry = (type(node), node.attributes, tuple(map(id, node.children)))
        if entry not in self.nodes:
            self.nodes[entry] = node
            self.places[id(node)] = here_in(self._code)
        return self.nodes[entry]

    def sequence(self, node: Node) -> Any:
        """The value of a node that the user computes with."""
        kept = self.node(node)
        return self.wrappers[type(kept.type)](kept, self)

    def over_nothing(self, root: Node) -> Any:
        """The value of a subexpression over no positions; `NO_VALUE` where it has none."""
        # A walk over the list of nodes, not a recursion: programs may be nested more deeply than
        # Python's stack allows.
        entries, (number,) = different(root)
        values: list[Any] = []
        for (_, _, children), node in entries.items():
            values.append(node.over_nothing(*(values[each] for each in children)))
        return values[number]

    def output(self, output: Output) -> Output:
        """Record an output, and the names of the program's variables."""
        # An output may be made in a function that the program calls: the names are those of the
        # program's own frame, further up.
        frame = user_frame()
        while frame.f_code is not self._code and frame.f_back is not None:
            frame = frame.f_back
        for name, value in frame.f_locals.items():
            if getattr(value, "tracing", None) is self:
                self.names[name] = value.node
        self.outputs.append(output)
        return output


def constant(value: Any, kind: type[Type]) -> Constant:
    """A Python value as a constant of this type.

    Raises:
        InvalidValue: when it is none.

    """
    try:
        read = _READ[kind](value)
        floats = FLOATS.get()
        if kind is Number and floats is not None and isinstance(value, float | np.floating):
            floats.add(abs(Fraction(read)))
        return Constant((), kind, read)
    except (ValueError, TypeError, ArithmeticError):
        raise refusal(
            f"{kind.noun} is needed here", received=described(value), remedy=_REMEDY[kind]
        ) from None


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _category(value: Any) -> Any:
    """A value that files can hold: None, a string, a number except NaN, or a tuple of these."""
    # A file keeps the numbers of Python. Those of numpy are equal to them and hash alike, so the
    # symbol is the same one.
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    if isinstance(value, tuple):
        return tuple(map(_category, value))
    known = value is None or isinstance(value, str | int | float | Fraction)
    if not known or type(value) is bool or value != value:
        raise TypeError
    return value


_READ: Mapping[type[Type], Any] = {Boolean: _boolean, Number: exact, Category: _category}

_REMEDY: Mapping[type[Type], str] = {
    Boolean: "compare it (x == 0), or give True or False; put comparisons beside & and | in "
    "parentheses",
    Number: 'give a finite number, or a text such as "1/3"; b.where(1, 0) makes a number of a '
    "Boolean, and x.map({…}) of a category",
    Category: "give a symbol: a string, a number or a tuple of these",
}
"""The remedy for a value that is not of the type."""


def listed(values: Any) -> list[Any]:
    """The members of a list that a user gives.

    Raises:
        InvalidValue: for a value that is no list.

    """
    if not isinstance(values, Iterable):
        raise refusal(
            "a list is needed here", received=described(values), remedy="give a list of them"
        )
    return list(values)


def kind_of(value: Any) -> type[Type]:
    """The type of a sequence, or of a Python value as a constant."""
    if hasattr(value, "node"):
        return type(value.node.type)
    if isinstance(value, bool):
        return Boolean
    return Category if value is None or isinstance(value, str | tuple) else Number


def described(value: Any) -> str:
    """Describe a sequence by its name and type, a Python value by its text."""
    if not hasattr(value, "node"):
        return f"{value!r:.40}"
    name = name_of(value)
    noun: str = value.node.type.noun
    return f"{name}, {noun}" if name else noun
