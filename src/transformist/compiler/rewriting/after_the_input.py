"""Taggers for a causal decoder: the input, then a separator, then the tags, one token a step.

Let the separator stand at position p, so that the input has n = p − 1 symbols. Position m ≥ p, the
separator or a tag after it, predicts tag i = m − p + 1. The program is computed there in two ways:

- A subexpression that depends on no later position has the same value at position j ≤ n of both
  programs. At m it is looked up at position i, and a mean, a count, `any` or a selection over the
  whole input is taken at m over the positions before the separator.
- A function of values at i is computed at m from the values there.

i is the number of positions from the separator to m, and n the number before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transformist.compiler.lower import POINTWISE, WHOLE
from transformist.compiler.rewriting.choices import value_or_default
from transformist.compiler.rewriting.first_match import cut_off_by_places
from transformist.compiler.rewriting.rules import READ_HERE
from transformist.compiler.target import OR_ANY_MASKS
from transformist.compiler.uncompilable import Subexpressions, Uncompilable
from transformist.errors import InvalidValue
from transformist.language import Program
from transformist.language.across import Count, Exists, Lookup, Mean, Shift
from transformist.language.leaves import Constant, Position, Token
from transformist.language.node import Node, different
from transformist.language.output_kinds import NextToken, Tag
from transformist.language.places import Place
from transformist.language.pointwise import Choice, Comparison, Linear, Table
from transformist.language.selection import Select
from transformist.language.types import Boolean, Category, Number
from transformist.model import BOS, CLS, EOS, Mask

TRUE = Constant((), Boolean, True)

END = EOS
"""The prediction after the last tag."""

RESERVED = (BOS, CLS, EOS)
"""Symbols that models add or predict themselves."""

UP_TO_HERE = (Mask.FUTURE, Mask.STRICT_FUTURE)
"""The masks under which a value depends on no later position."""

AHEAD = tuple(mask for mask in Mask if mask.looks_ahead and mask != Mask.NONE)
"""The masks that begin at i; they are replaced by the first or last match of all positions."""


def answered_after(program: Program, separator: str = "=") -> Program:
    """Return the program that reads an input, then a separator, and then predicts the tags.

    A causal decoder gives a tag before it reads the rest of the input. The program that is returned
    gives the tags afterwards. On input x, the separator, and the tags of x, it predicts:

    - at each symbol of x: the separator;
    - at the separator and at each tag: the next tag;
    - at the last tag: EOS.

    So greedy generation continues x by the separator and its tags, and stops. The alphabet is that
    of the program, the separator, and the tags that are no symbols. The program is a function of
    every string over it: the first separator counts, and a tag in the input that is no symbol
    counts as the first symbol. For inputs of n symbols a model needs N = 2 n + 1.

    Args:
        program: a program that tags, with values that are listed: symbols, Booleans (as `yes` and
            `no`), or numbers of few values.
        separator: a symbol that the alphabet and the tags do not have.

    Raises:
        InvalidValue: for a program without such tags, a tag BOS, CLS or EOS, a separator that is a
            symbol, a tag or one of these, or a subexpression that neither depends on the positions
            so far alone nor is a mean, a count, `any`, a selection, a lookup or a successor over
            the whole input.

    Example:
        >>> import transformist as tf
        >>> backwards = tf.answered_after(tf.programs.PROGRAMS["reverse"])
        >>> backwards(list("abc=cba"))
        ['=', '=', '=', 'c', 'b', 'a', 'EOS']
        >>> model = tf.compile(backwards, max_length=13, masks="future")
        >>> model(list("abc=cba"))
        ['=', '=', '=', 'c', 'b', 'a', 'EOS']

    """
    output: Any = getattr(program, "output", None)
    if not isinstance(output, Tag):
        raise InvalidValue(
            "the argument must be a program that tags",
            received=f"{program!r:.60}",
            where="answered_after",
            remedy="compile a program that accepts or predicts with masks=future as it is",
        )
    program = cut_off_by_places(program, AHEAD)
    ((_, tagged),) = program.output.parts
    node, values = tagged.node, tagged.node.type.values
    if values is None:
        raise Subexpressions(program).refused(
            node,
            "the tags of a program that answers after its input must be listed",
            received="a number without listed values",
            remedy=f"tag symbols, Booleans or a number of few values{OR_ANY_MASKS}",
        )
    own, tags = program.alphabet, tuple(map(_as_symbol, values))
    known = dict.fromkeys((*own, *tags))
    reserved = [each for each in tags if each in RESERVED]
    if reserved:
        raise InvalidValue(
            f"a tag must be none of {', '.join(RESERVED)}, which models add or predict themselves",
            received=repr(reserved[0]),
            where="answered_after",
            remedy="give the tag another name",
        )
    if type(separator) is not str or not separator or separator in (*known, *RESERVED):
        free = next("=" * k for k in itertools.count(1) if "=" * k not in known)
        raise InvalidValue(
            f"the separator must be a non-empty string other than {', '.join(RESERVED)} and the "
            "symbols and tags of the program",
            received=f"{separator!r:.40}, beside {', '.join(map(repr, known))}"[:120],
            where="answered_after",
            remedy=f"give another separator, such as separator={free!r}",
        )
    alphabet = (*program.alphabet, separator, *(each for each in known if each not in own))
    after = _After(program, alphabet, separator)
    tag = Table((after.tag,), tags, Category(tuple(dict.fromkeys(tags))))
    is_over = Comparison((Linear((after.i, after.n), (1, -1), 0),), ">")
    ended = Choice((is_over, Constant((), Category, END), tag))
    predicted = Choice((after.is_after, ended, Constant((), Category, separator)))
    nodes, _ = different(predicted)
    first, _, _ = program.description.partition("\n")
    return replace(
        program,
        alphabet=alphabet,
        output=NextToken(predicted),
        description=f"{first.rstrip('.')}: after the input and {separator}, one tag a step, then "
        f"{END}.",
        names=(),
        places=tuple(after.places.get(id(each), program.places[-1]) for each in nodes.values()),
    )


def _as_symbol(tag: Any) -> Any:
    """The symbol that stands for a tag: a Boolean is `yes` or `no`."""
    return {True: "yes", False: "no"}[tag] if type(tag) is bool else tag


class _After:
    """The subexpressions of a program that answers after a separator.

    Attributes:
        i: the number of the tag that a position predicts; 0 before the separator.
        n: the length of the input, at the separator and after it.
        is_after: true at the separator and after it.
        tag: the tag i.
        places: the place in the source of each new node, by its identity.

    """

    def __init__(self, program: Program, alphabet: tuple[Any, ...], separator: str) -> None:
        self._program, own = program, program.alphabet
        token = Token((), alphabet)
        is_separator = Table((token,), tuple(each == separator for each in alphabet), Boolean())
        # `any` is a step of a mean of 1/N or more: its slope is about 4 N, so its 1 is off by about
        # 4 N u, and a count of N of them by 4 N² u, which float32 (u = 2⁻²⁴) keeps below 1/4 up to
        # N = 1,000 or less. A second step, between 0 and 1, has a slope of about 4: its 1 is off by
        # some u, and a count by N u.
        found = Exists((is_separator,), Mask.FUTURE.value)
        as_number = Choice((found, *(Constant((), Number, each) for each in (1, 0))))
        self.is_after = Comparison((as_number,), ">")
        self._is_before = Table((self.is_after,), (True, False), Boolean())
        self.i = Count((self.is_after,), Mask.FUTURE.value)
        self.n = Count((self._is_before,), Mask.FUTURE.value)
        rows = tuple(each if each in own else own[0] for each in alphabet)
        self._symbol = Table((token,), rows, Category(own))
        self.places: dict[int, Place] = {}
        entries, (root,) = different(program.output.parts[0][1].node)
        numbered = {node: number for number, node in enumerate(program.nodes)}
        places = [program.places[numbered[node]] for node in entries.values()]
        # Children come before the nodes that are made of them: no recursion, however deep.
        columns: list[Node | None] = []
        for (_, _, children), node, place in zip(entries, entries.values(), places, strict=True):
            columns.append(self._column(node, [columns[each] for each in children]))
            self._place(columns[-1], place)
        needed = {root}
        for number, (kind, _, children) in reversed([*enumerate(entries)]):
            if number in needed:
                needed.update(children[k] for k in _read_here(kind, len(children)))
        values: dict[int, Node] = {}
        for number, ((_, _, children), node) in enumerate(entries.items()):
            if number in needed:
                values[number] = self._value(
                    node,
                    columns[number],
                    [columns[each] for each in children],
                    [values.get(each) for each in children],
                )
                self._place(values[number], places[number])
        self.tag = values[root]

    def _place(self, node: Node | None, place: Place) -> None:
        """Give a node, and the new nodes below it, the place of the one that it stands for."""
        waiting = [] if node is None else [node]
        while waiting:
            each = waiting.pop()
            if id(each) not in self.places:
                self.places[id(each)] = place
                waiting.extend(each.children)

    def _column(self, node: Node, children: list[Node | None]) -> Node | None:
        """The node at a symbol of the input; None if it depends on later positions."""
        if isinstance(node, Token):
            return self._symbol
        if isinstance(node, Position):
            return None if "n" in node.name else node
        is_causal = (
            type(node) in (*POINTWISE, *WHOLE)
            or getattr(node, "mask", None) in UP_TO_HERE
            or (isinstance(node, Shift) and node.k >= 0)
        )
        if not is_causal or None in children:
            return None
        return _made_of(node, children)

    def _value(
        self,
        node: Node,
        column: Node | None,
        columns: list[Node | None],
        values: list[Node | None],
    ) -> Node:
        """The node at position i of the input, at a position that predicts.

        Args:
            node: the node.
            column: the node at a symbol of the input, if it depends on no later position.
            columns: its children at a symbol of the input.
            values: its children at a position that predicts, where they are read there.

        """
        if isinstance(node, Position) and node.name in ("i", "n"):
            return self.i if node.name == "i" else self.n
        if type(node) in (*POINTWISE, *WHOLE) and not isinstance(node, Position | Token):
            return _made_of(node, values)
        if column is not None:
            return Lookup((column, self.i), _some_value(column), Mask.FUTURE.value)
        if isinstance(node, Shift) and columns[0] is not None:
            # x at i − k, here for k < 0; no position of the input has a number above n.
            index = Linear((self.i,), (1,), -node.k)
            return _fetched(node, _Children(columns, [None, index], self._is_before))
        rule = _OVER_THE_INPUT.get(type(node))
        read = [each for k, each in enumerate(columns) if k not in READ_HERE.get(type(node), ())]
        if rule is None or None in read or getattr(node, "mask", None) != Mask.NONE:
            raise self._refused(node)
        return rule(node, _Children(columns, values, self._is_before))

    def _refused(self, node: Node) -> Uncompilable:
        return Subexpressions(self._program).refused(
            node,
            "after its input, a decoder must compute tags from values of the positions so far, and "
            "from means, counts, any, selections, lookups and successors of these over the whole "
            "input",
            received=f"a {type(node).__name__.lower()} that is none of these",
            remedy=f"use only these{OR_ANY_MASKS}",
        )


def _read_here(kind: type[Node], children: int) -> Sequence[int]:
    """The children of a node that are read where the node itself is read."""
    is_pointwise = kind in POINTWISE or kind in WHOLE
    return range(children) if is_pointwise else READ_HERE.get(kind, ())


def _made_of(node: Node, children: Sequence[Node | None]) -> Node:
    return type(node)(tuple(children), *node.attributes)  # type: ignore[arg-type]


def _some_value(node: Node) -> Any:
    """A value of the node's type: no valid input makes a lookup of i fail."""
    return node.type.values[0] if node.type.values else 0


@dataclass(frozen=True)
class _Children:
    """What a node of mask none is made of, after the separator.

    Attributes:
        columns: its children at a symbol of the input.
        values: its children at a position that predicts, where they are read there.
        is_before: true at the symbols of the input.

    """

    columns: Sequence[Any]
    values: Sequence[Any]
    is_before: Node


def _counted(node: Any, of: _Children) -> Node:
    """A count or `any` over the input."""
    return _made_of(replace(node, mask=Mask.FUTURE.value), [_both(of.columns[0], of.is_before)])


def _averaged(_node: Any, of: _Children) -> Node:
    return Select((of.is_before, TRUE, of.columns[0]), "mean", Mask.FUTURE.value, 0)


def _fetched(node: Any, of: _Children) -> Node:
    """A lookup, or a shift with its index, whose default stands at the separator and after it."""
    kept = value_or_default(of.is_before, of.columns[0], node.default)
    return Lookup((kept, of.values[1]), node.default, Mask.FUTURE.value)


def _selected(node: Any, of: _Children) -> Node:
    """A selection whose keys match nothing from the separator on."""
    keys, _, chosen = of.columns
    keys, queries = _apart(keys, of.values[1], of.is_before)
    return _made_of(replace(node, mask=Mask.FUTURE.value), [keys, queries, chosen])


def _apart(keys: Node, queries: Node, is_before: Node) -> tuple[Node, Node]:
    """Keys with a value from the separator on that no query has, and queries of their type."""
    if isinstance(keys.type, Boolean) and queries == TRUE:
        return _both(keys, is_before), queries
    if isinstance(keys.type, Boolean):
        # As categories, keys and queries can have a third value.
        keys, queries = (
            Table((each,), ("no", "yes"), Category(("no", "yes"))) for each in (keys, queries)
        )
    known: Any = (*(keys.type.values or ()), *(queries.type.values or ()))
    kind, nothing = type(keys.type), "after"
    if isinstance(keys.type, Category):
        while nothing in known:
            nothing += "'"
        return Choice((is_before, keys, Constant((), kind, nothing))), queries
    # A number without listed values is a count or a position, and never below 0.
    is_listed = keys.type.values is not None and queries.type.values is not None
    number = max(known) + 1 if is_listed else -1
    return Choice((is_before, keys, Constant((), kind, number))), queries


def _both(first: Node, second: Node) -> Node:
    return Table((first, second), (False, False, False, True), Boolean())


_OVER_THE_INPUT: Mapping[type[Node], Callable[[Any, _Children], Node]] = {
    Count: _counted,
    Exists: _counted,
    Mean: _averaged,
    Lookup: _fetched,
    Select: _selected,
}
"""The rules of nodes of mask none."""
