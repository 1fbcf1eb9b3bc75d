"""Programs, and their interpreter, which gives their meaning.

The interpreter goes through the different subexpressions once, children first, and evaluates each
at all positions of an input in exact rational numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from transformist.errors import InvalidValue, UndefinedValue, UnknownSymbol, symbols_in_words
from transformist.language.node import Column, Entry, Node, different, restored
from transformist.language.output_kinds import AnyOutput, NamedOutputs, Output
from transformist.language.places import Place


@dataclass(frozen=True, repr=False)
class Program:
    """A function of strings, written as operations on a value at each position.

    Programs are equal where their alphabets and outputs are, written alike; names and places in
    the source are for messages.

    Attributes:
        alphabet: the symbols of its inputs.
        output: the subexpressions that are handed out, each with its kind of output.
        name: the name of the function.
        description: its docstring.
        names: the user's names of subexpressions, each with its node.
        places: the place where each of `nodes` is written.
        floats: the magnitudes of the constants that were given as floats.

    """

    alphabet: tuple[Any, ...]
    output: AnyOutput
    name: str = field(default="program", compare=False)
    description: str = field(default="", compare=False)
    names: tuple[tuple[str, Node], ...] = field(default=(), compare=False)
    places: tuple[Place, ...] = field(default=(), compare=False)
    floats: frozenset[Fraction] = field(default=frozenset(), compare=False)

    def __call__(self, x: Sequence[Any]) -> Any:
        """The answer on a string, or on a list of symbols.

        Raises:
            UnknownSymbol: for a symbol outside the alphabet, with its position (from 1).
            UndefinedValue: for a number at which a user's function is not defined, with its line.

        """
        columns = self._columns(x)
        return self.output.answer(*(columns[number] for number in self._handed_out))

    def values(self, x: Sequence[Any]) -> dict[str, list[Any]]:
        """The values at each position of every subexpression that has a name, by its name.

        Raises:
            UnknownSymbol: as for the answer.

        """
        columns = self._columns(x)
        return {name: list(columns[number]) for name, number in self._named}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Each different subexpression once, after those that it is made of."""
        return tuple(self._numbered[0].values())

    @cached_property
    def _numbered(self) -> tuple[dict[Entry, Node], list[int]]:
        handed_out = (each.node for _, each in self.output.parts)
        return different(*handed_out, *(node for _, node in self.names))

    @cached_property
    def _handed_out(self) -> list[int]:
        return self._numbered[1][: len(self.output.parts)]

    @cached_property
    def _named(self) -> list[tuple[str, int]]:
        names = (name for name, _ in self.names)
        return list(zip(names, self._numbered[1][len(self.output.parts) :], strict=True))

    @cached_property
    def _steps(self) -> list[tuple[Callable[..., list[Any]], tuple[int, ...]]]:
        entries, _ = self._numbered
        return [(node.meaning, children) for (_, _, children), node in entries.items()]

    @cached_property
    def _symbols(self) -> frozenset[Any]:
        return frozenset(self.alphabet)

    def _columns(self, x: Sequence[Any]) -> list[Column]:
        """The values of all `nodes`, each a list over the positions."""
        self._require_symbols(x)
        # Children come before the subexpressions that are made of them, so their columns are there.
        columns: list[Column] = []
        for meaning, children in self._steps:
            try:
                columns.append(meaning(x, *(columns[each] for each in children)))
            except UndefinedValue as undefined:
                raise self._undefined(len(columns), undefined) from None
        return columns

    def _undefined(self, number: int, undefined: UndefinedValue) -> UndefinedValue:
        """The refusal of an input on which a subexpression has no value, with its line."""
        return UndefinedValue(
            undefined.invariant,
            received=undefined.received,
            where=str(self.places[number]) if self.places else self.name,
            remedy=undefined.remedy,
        )

    def _require_symbols(self, x: Sequence[Any]) -> None:
        # One set operation for an input that is right; the place of a wrong symbol is looked for
        # afterwards. A symbol that has no hash, such as a list, raises TypeError.
        try:
            if self._symbols.issuperset(x):
                return
        except TypeError:
            pass
        if not isinstance(x, Sequence):
            raise InvalidValue(
                "an input must be a string or a list of symbols",
                received=f"{x!r:.40}",
                where=self.name,
                remedy="give a string or a list",
            )
        i = next(i for i, symbol in enumerate(x) if symbol not in self.alphabet)
        raise UnknownSymbol.among(
            self.alphabet,
            x[i],
            i + 1,
            "remove it, or add it to the alphabet of the program",
            where=self.name,
        )

    def __repr__(self) -> str:
        symbols = symbols_in_words(self.alphabet)
        count = len(self.nodes)
        return f"Program({self.name}: {self.output.does} over {symbols}, {count} subexpressions)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the list of its nodes: nested objects would exceed Python's stack."""
        entries, numbers = self._numbered
        parts = tuple((name, type(each), _attributes(each)) for name, each in self.output.parts)
        names = tuple(name for name, _ in self.names)
        about = (self.name, self.description, self.places, self.floats)
        return _restore, (self.alphabet, parts, tuple(entries), numbers, names, about)


def _attributes(output: Output) -> tuple[Any, ...]:
    return tuple(value for name, value in vars(output).items() if name != "node")


def _restore(
    alphabet: tuple[Any, ...],
    parts: tuple[tuple[str, type[Output], tuple[Any, ...]], ...],
    entries: tuple[Entry, ...],
    numbers: list[int],
    names: tuple[str, ...],
    about: tuple[str, str, tuple[Place, ...], frozenset[Fraction]],
) -> Program:
    nodes = restored(entries)
    roots, named = (
        [nodes[number] for number in each]
        for each in (numbers[: len(parts)], numbers[len(parts) :])
    )
    made = [
        (part, kind(root, *attributes))
        for (part, kind, attributes), root in zip(parts, roots, strict=True)
    ]
    output = made[0][1] if parts[0][0] == "" else NamedOutputs(tuple(made))
    name, description, places, floats = about
    pairs = tuple(zip(names, named, strict=True))
    return Program(alphabet, output, name, description, pairs, places, floats)
