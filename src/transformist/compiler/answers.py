"""What is read out of a program's output: a rule for each kind of output and type of value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from transformist.compiler.forms import Form
from transformist.compiler.heads import BEHIND
from transformist.compiler.lower import ONE, Lowering, Unit
from transformist.compiler.temperatures import Use
from transformist.language import Accept, NextToken, Tag
from transformist.language.across import Count, Mean
from transformist.language.node import Node
from transformist.language.outputs import Output
from transformist.language.types import Boolean, Category, Number


@dataclass(frozen=True)
class Accepted:
    """Whether a number is above 0 at the last position; it is `margin` away from 0 at least."""

    form: Form
    margin: Fraction

    @property
    def forms(self) -> tuple[Form, ...]:
        """What is read."""
        return (self.form,)

    @property
    def uses(self) -> tuple[Use, ...]:
        """The forms that are used, and how far off softmax may leave them."""
        return (Use(self.form, self.margin / 2),)


@dataclass(frozen=True)
class Labelled:
    """At every position the label whose form is the largest, by a gap at least."""

    labels: tuple[Any, ...]
    forms: tuple[Form, ...]
    gap: Fraction

    @property
    def uses(self) -> tuple[Use, ...]:
        """The forms that are used, and how far off softmax may leave them."""
        return tuple(Use(form, self.gap / 8) for form in self.forms)


@dataclass(frozen=True)
class Counted:
    """At every position the number k from 0 to `most` with 2 k y − k² w the largest.

    y is the count and w is 1, both in one unit.
    """

    y: Form
    w: Form
    least: int
    most: int

    @property
    def uses(self) -> tuple[Use, ...]:
        """The forms that are used, and how far off softmax may leave them."""
        return (Use(self.y, Fraction(1, 8 * (self.most + 1))),)

    @property
    def labels(self) -> tuple[int, ...]:
        """The numbers."""
        return tuple(range(self.least, self.most + 1))

    @property
    def forms(self) -> tuple[Form, ...]:
        """What is read."""
        return self.y, self.w

    @property
    def factors(self) -> list[tuple[int, int]]:
        """Those of y and w for each label."""
        return [(2 * k, -(k**2)) for k in self.labels]


@dataclass(frozen=True)
class Measured:
    """At every position a number on the grid of a mean: the multiple of 1/(scale · D) nearest."""

    form: Form
    scale: int
    mask: str
    with_bos: bool

    @property
    def forms(self) -> tuple[Form, ...]:
        """What is read."""
        return (self.form,)

    @property
    def uses(self) -> tuple[Use, ...]:
        """The forms that are used, and how far off softmax may leave them."""
        return ()


Answer: TypeAlias = "Accepted | Labelled | Counted | Measured"


def answer(lowering: Lowering) -> Answer:
    """What is read out of the output of the program that is lowered."""
    output = lowering.program.output
    return ANSWERS[type(output)](lowering, output)


def _accepted(lowering: Lowering, output: Accept) -> Accepted:
    """The answer on the empty input is what BOS alone gives; where it is not, BOS says so."""
    form, margin = lowering.parted(output.node)
    circuit = lowering.circuit
    alone = circuit.over_nothing(form)
    if output.empty != (alone > 0):
        form += circuit.at_bos * ((margin if output.empty else -margin) - alone)
    return Accepted(form, margin)


def _tagged(lowering: Lowering, output: Tag | NextToken) -> Answer:
    return TAGS[type(output.node.type)](lowering, output.node)


def _category(lowering: Lowering, node: Node) -> Labelled:
    labels = node.type.values or ()
    forms = tuple(lowering.literal(node, value) for value in labels)
    return Labelled(labels, forms, Fraction(1))


def _boolean(lowering: Lowering, node: Node) -> Labelled:
    form = lowering.boolean(node)
    return Labelled((False, True), (Form(), form - Fraction(1, 2)), Fraction(1, 2))


def _number(lowering: Lowering, node: Node) -> Answer:
    form, unit = lowering.in_some_unit(node)
    if node.type.values is not None:
        return _listed(lowering, node)
    kind, mask = unit
    if kind == "count" and _is_whole_count(lowering, form):
        return _counted(lowering, node, form, unit)
    means = _means_below(node)
    grid = lowering.circuit.grid(form)
    if grid is not None and len(means) == 1 and len(grid.counts) == 1:
        (mask,) = means
        with_bos = lowering.circuit.bos and mask in BEHIND
        return Measured(form, grid.c, mask, with_bos)
    raise lowering.refuse(
        node,
        "a number that is handed out has listed values, is a whole count, or is made of means "
        "under one mask",
        received="another number",
        remedy="hand out a comparison or a table of it, or one of its means",
    )


def _listed(lowering: Lowering, node: Node) -> Labelled:
    """The value v with the largest 2 v y − v²."""
    y = lowering.number(node)
    values: tuple[Any, ...] = node.type.values or ()
    forms = tuple(y * (2 * value) - value**2 for value in values)
    squares = [(b - a) ** 2 for a, b in itertools.pairwise(values)]
    return Labelled(values, forms, Fraction(min(squares, default=1)))


def _is_whole_count(lowering: Lowering, form: Form) -> bool:
    grid = lowering.circuit.grid(form)
    return grid is not None and grid.c == 1 and len(grid.counts) == 1


def _counted(lowering: Lowering, node: Node, form: Form, unit: Unit) -> Counted:
    circuit = lowering.circuit
    if circuit.most_seen is None:
        raise lowering.needs_length(node, "how many labels there are")
    within = circuit.span(form)
    ends = (within.lo * circuit.most_seen, within.hi * circuit.most_seen)
    return Counted(form, lowering.unit(unit), math.ceil(ends[0]), math.floor(ends[1]))


def _means_below(node: Node) -> set[str]:
    found: set[str] = set()
    stack = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, Mean | Count):
            found.add(each.mask)
        stack.extend(each.children)
    return found


TAGS: Mapping[type[Any], Callable[[Lowering, Node], Answer]] = {
    Boolean: _boolean,
    Category: _category,
    Number: _number,
}
"""What is read at every position, by the type of the value."""

ANSWERS: Mapping[type[Output], Callable[[Lowering, Any], Answer]] = {
    Accept: _accepted,
    Tag: _tagged,
    NextToken: _tagged,
}
"""What is read, by the kind of output."""

__all__ = [
    "ANSWERS",
    "ONE",
    "TAGS",
    "Accepted",
    "Answer",
    "Counted",
    "Labelled",
    "Measured",
    "answer",
]
