"""Lowering of a program to a circuit: each subexpression by the rule of its kind, and once.

A Boolean becomes a form that is 0 or 1; a category a form for each value, 1 where it has it; a
number a form that is a multiple of it, in a scale: comparisons do not ask for the factor, and a
constant beside it gets it too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, wraps
from typing import Any, TypeVar, TypeVarTuple

from transformist.circuit import Circuit, Form, PositionCode
from transformist.compiler.compile_options import Options
from transformist.compiler.lower.builder import AS_IT_IS, Builder, ComputedPositions, Scale
from transformist.compiler.lower.fetching import CHANNELS, FETCHING
from transformist.compiler.lower.means import MEANS
from transformist.compiler.lower.positionwise import POINTWISE
from transformist.compiler.lower.resets import Resets
from transformist.compiler.lower.rule import Asking, Channel, Ranked, Rule, Scales
from transformist.compiler.lower.whole_functions import WHOLE
from transformist.compiler.source_map import SourceMap
from transformist.compiler.uncompilable import Subexpressions
from transformist.language import Program
from transformist.language.node import Node
from transformist.language.types import Boolean

LOG = logging.getLogger(__name__)

RULES: Mapping[type[Node], Rule[Any]] = {**POINTWISE, **WHOLE, **MEANS, **FETCHING}
"""The rule of each kind of subexpression."""

LOOSEST = 2**6
"""A loose form is at least minus this: 8 significand bits hold it and the sums on the way."""

DEEPEST = 40
"""Largest number of nested subexpressions lowered by recursion."""

Made = TypeVar("Made")
More = TypeVarTuple("More")


class _NeededFirst(Exception):
    """Raised to defer a node beyond the recursion limit."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        self.make = make


def once(
    method: Callable[[Lowering, Node, *More], Made],
) -> Callable[[Lowering, Node, *More], Made]:
    """Remember the answer to a question about a subexpression.

    Answers ask further questions, about what lies below. With `DEEPEST` of them waiting for each
    other a question is not taken on; `Lowering.settled` begins with it then.
    """

    @wraps(method)
    def remembered(lowering: Lowering, node: Node, *more: *More) -> Made:
        known, waiting = lowering._known, lowering.build.served
        key = (method, lowering._first_like(node), *more)
        if key not in known:
            # Python's own stack would end at some 1,000 calls, of which a node takes several.
            if len(waiting) == DEEPEST:
                raise _NeededFirst(lambda: remembered(lowering, node, *more))
            waiting.append(node)
            try:
                known[key] = method(lowering, node, *more)
            finally:
                waiting.pop()
            LOG.debug("lowered to %d numbers so far", len(lowering.circuit.atoms))
        made: Made = known[key]
        return made

    return remembered


@dataclass(eq=False)
class Lowering(Asking):
    """The circuit of a program, as far as it has been asked for.

    Attributes:
        program: what is lowered.
        options: of the compilation.
        circuit: the atoms so far.
        resets: resets of numbers whose errors have grown; `None` for no resets.

    """

    program: Program
    options: Options
    circuit: Circuit
    resets: Resets | None = None
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _firsts: dict[Node, Node] = field(default_factory=dict)
    _met: dict[int, tuple[Node, Node]] = field(default_factory=dict)

    @cached_property
    def build(self) -> Builder:
        """Builder of the circuit's forms."""
        options = self.options
        given = self.source, self.circuit, self.source_map
        positions, computed = options.positions, None
        if options.computes_positions:
            positions, computed = None, ComputedPositions(options.precision)
        return Builder(*given, positions, options.target, self.resets, computed, self._code)

    @property
    def _code(self) -> PositionCode | None:
        options = self.options
        if not options.has_sinusoids or options.max_length is None:
            return None
        return PositionCode(max(options.max_length, 1))

    @cached_property
    def source(self) -> Subexpressions:
        """Names and places of the subexpressions."""
        return Subexpressions(self.program)

    @cached_property
    def source_map(self) -> SourceMap:
        """The subexpressions that atoms serve."""
        return SourceMap(self.source.places)

    def settled(self, make: Callable[[], Made]) -> Made:
        """Return what `make` makes, however deep the program is nested.

        Where a question lies too deep, it is answered first, and then `make` starts again: answers
        on the way are remembered.
        """
        needed: list[Callable[[], Any]] = []
        while True:
            try:
                if not needed:
                    return make()
                needed[-1]()
                needed.pop()
            except _NeededFirst as below:
                needed.append(below.make)

    def _first_like(self, node: Node) -> Node:
        """The first of equal nodes; two that are written apart are compared only once."""
        if id(node) not in self._met:
            self._met[id(node)] = node, self._firsts.setdefault(node, node)
        return self._met[id(node)][1]

    @once
    def boolean(self, node: Node) -> Form:
        name, columns = self.build.name(node), self.by_symbol(node)
        if columns is not None:
            return self.build.embedded(columns, name)
        form = RULES[type(node)].boolean(self, self.build, node)
        return self.source_map.call(self.build.reset(form, (0, 1), name), name)

    @once
    def loosely(self, node: Node) -> Form:
        loosely = RULES[type(node)].loosely
        if loosely is None or self.by_symbol(node) is not None:
            return self.boolean(node)
        # A large negative number would cost the sums that read it too many bits.
        found = loosely(self, self.build, node)
        if found is None or self.circuit.span(found).lo < -LOOSEST:
            return self.boolean(node)
        return found

    def parted(self, node: Node) -> tuple[Form, Fraction]:
        """A number that is above 0 where the Boolean holds, else below, and how far at least."""
        parted = RULES[type(node)].parted
        # A comparison that is accepted needs no step: the read-out compares the number itself with
        # 0.
        found = None if parted is None else parted(self, self.build, node)
        # A loose form is 1 where the Boolean holds, and at most 0 elsewhere.
        return found or (self.loosely(node) - Fraction(1, 2), Fraction(1, 2))

    def literal(self, node: Node, value: Any) -> Form:
        if isinstance(node.type, Boolean):
            return self.boolean(node) if value else 1 - self.boolean(node)
        return self._literal(node, value) if value in (node.type.values or ()) else Form()

    @once
    def _literal(self, node: Node, value: Any) -> Form:
        name, columns = self.build.case(node, value), self.by_symbol(node)
        if columns is not None:
            return self.build.embedded_case(columns, value, name)
        # A category with one possible value has it at every position.
        if node.type.values == (value,):
            return Form.of(1)
        form = RULES[type(node)].literal(self, self.build, node, value)
        return self.source_map.call(self.build.reset(form, (0, 1), name), name)

    def number(self, node: Node, scale: Scale = AS_IT_IS) -> Form:
        return self._number(node, scale)

    @once
    def _number(self, node: Node, scale: Scale) -> Form:
        columns = self.by_symbol(node)
        if columns is not None:
            return self.build.embedded_in(columns, scale, node)
        form, name = RULES[type(node)].number(self, self.build, node, scale), self.build.name(node)
        # Only a number with few possible values can be snapped back to the nearest of them.
        if scale == AS_IT_IS and node.type.values is not None:
            form = self.build.reset(form, node.type.values, name)
        return self.source_map.call(form, name)

    @once
    def scales(self, node: Node) -> Scales:
        if self.by_symbol(node) is not None:
            return None
        return RULES[type(node)].scales(self, self.build, node)

    @once
    def rank(self, node: Node) -> Ranked | None:
        rank = RULES[type(node)].rank
        if rank is None or self.by_symbol(node) is not None:
            return None
        return rank(self, self.build, node)

    @once
    def channel(self, node: Node) -> Channel:
        return CHANNELS[type(node)](self, self.build, node)

    @once
    def by_symbol(self, node: Node) -> list[Any] | None:
        if type(node) not in POINTWISE:
            return None
        columns = [self.by_symbol(child) for child in node.children]
        known = [column for column in columns if column is not None]
        if len(known) < len(columns):
            return None
        return node.meaning(self.circuit.alphabet, *known)
