"""Answers of a program: a rule for each kind of output and each type of value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from transformist.circuit import (
    READ_OUT,
    Circuit,
    Embedded,
    Fetched,
    Form,
    Relu,
    Uniform,
    at_bos,
    rows_under,
    total,
)
from transformist.compiler.answer_kinds import (
    Accepted,
    Answer,
    Counted,
    Labelled,
    NearestMean,
    NearestValue,
    Several,
    part_of,
)
from transformist.compiler.lower import AS_IT_IS, Lowering, Scale
from transformist.language import Accept, NextToken, Tag
from transformist.language.node import Node
from transformist.language.output_kinds import AnyOutput, NamedOutputs, Output, joined
from transformist.language.pointwise import Multiplication
from transformist.language.types import Boolean, Category, Number, exact
from transformist.laws import ZERO, Range
from transformist.model import Mask

Way: TypeAlias = Callable[[Lowering], Answer]
"""A way to read out the output of a lowered program."""


def ways(output: AnyOutput) -> tuple[Way, ...]:
    """The ways to read out the outputs; the compiler takes the first that keeps its margins.

    Categories, and numbers that are tagged, have two ways; other outputs have one.

    - A number with listed values: in the first way, the labels of all values read one form of the
      number. Their margin is the least squared distance of two values, and their forms are as large
      as the squares of the values. In the second way, each value has a form of its own that is 1 or
      0, as for a category. This takes more weights, but the margin is 1 in every format.
    - A whole number: in the first way, each value has a label, so that the weights alone decide.
      The forms are as large as the squares of the values. In the second way, the answer is the
      nearest whole number, which allows a greater error.
    - A category: in the first way, the labels read its rank if the circuit does not show that its
      forms exclude each other. In the second way, the labels read these forms.
    """
    has_two = any(_is_number(each) or _is_category(each) for _, each in output.parts)
    return (answer, _second_way) if has_two else (answer,)


def _is_category(output: Output) -> bool:
    return isinstance(output, Tag | NextToken) and isinstance(output.node.type, Category)


def _is_number(output: Output) -> bool:
    return isinstance(output, Tag) and isinstance(output.node.type, Number)


def answer(lowering: Lowering) -> Answer:
    """The answer to read out for the output of the program that is lowered."""
    return _answer(lowering, lambda each: ANSWERS[type(each)](lowering, each))


def _second_way(lowering: Lowering) -> Answer:
    return _answer(lowering, lambda each: _second_answer(lowering, each))


def _second_answer(lowering: Lowering, output: Output) -> Answer:
    """The answer in the second way; in the only way for an output that has one."""
    node = output.node
    if _is_category(output):
        return _ranked(lowering, node) or _one_hot(lowering, node)
    if not _is_number(output):
        return ANSWERS[type(output)](lowering, output)
    if node.type.values is not None:
        return _one_hot(lowering, node)
    return _ranked(lowering, node) or _fraction(lowering, node)


def _answer(lowering: Lowering, of: Callable[[Output], Answer]) -> Answer:
    """The answer of each output; several are joined to one `Several`."""
    output, served = lowering.program.output, lowering.source_map.served
    found = [lowering.settled(partial(of, each)) for _, each in output.parts]
    if not isinstance(output, NamedOutputs):
        return found[0]
    names = [name for name, _ in output.parts]
    served |= {part_of(READ_OUT, name): each.node for name, each in output.parts}
    return Several(tuple(zip(names, found, strict=True)))


def _accepted(lowering: Lowering, output: Accept) -> Accepted:
    """The answer on the empty input is what BOS alone gives; where it is not, BOS says so."""
    form, margin = lowering.parted(output.node)
    circuit = lowering.circuit
    alone = circuit.over_nothing(form)
    # BOS alone gets the margin on the side of `empty`; on other inputs BOS is not read.
    if output.empty != (alone > 0):
        form += at_bos(circuit) * ((margin if output.empty else -margin) - alone)
    return Accepted(form, margin)


def _tagged(lowering: Lowering, output: Tag | NextToken) -> Answer:
    return TAGS[type(output.node.type)](lowering, output.node)


def _ranked(lowering: Lowering, node: Node) -> Labelled | None:
    """The label k with the largest 2 k r − k², r the rank of the value; `None` without a rank."""
    found = lowering.rank(node)
    if found is None:
        return None
    rank, labels = found
    # An answer is a string if every label is a character, else a list. If all values up to N are
    # characters, but not all values, one of the others becomes a label of a rank that never occurs:
    # the answer is then a list, as in the interpretation.
    others = [value for value in node.type.values or () if joined((value,), ()) == []]
    if others and joined(labels, ()) == "":
        labels = (*labels, others[0])
    return _nearest_to(rank, range(len(labels)), labels)


def _nearest_to(y: Form, values: Sequence[Any], labels: Sequence[Any] = ()) -> Labelled:
    """The label of the value nearest to y, which is one of the values; they increase."""
    # 2 v y − v² = y² − (y − v)²: if y is one of the values, the form of another value is less by
    # its squared distance.
    forms = tuple(y * (2 * value) - value**2 for value in values)
    squares = [(after - before) ** 2 for before, after in itertools.pairwise(values)]
    labels = tuple(labels) or tuple(map(exact, values))
    return Labelled(labels, forms, Fraction(min(squares, default=1)))


def _tagged_category(lowering: Lowering, node: Node) -> Labelled:
    return _ranked(lowering, node) or _category(lowering, node)


def _one_hot(lowering: Lowering, node: Node) -> Labelled:
    """The value whose form is 1."""
    labels = node.type.values or ()
    return Labelled(labels, tuple(lowering.literal(node, each) for each in labels), Fraction(1))


def _category(lowering: Lowering, node: Node) -> Labelled:
    found = _one_hot(lowering, node)
    labels, forms = found.labels, found.forms
    circuit = lowering.circuit
    if len(_fetched_numbers(circuit, forms)) < 2 or _are_exclusive(circuit, forms):
        return found
    # Exactly one form is 1, since the node has one value. A certificate sees the weights alone. If
    # the forms depend on several numbers that heads fetch, any combination of these numbers might
    # occur as far as the weights show, and two labels might be the largest together. The rank
    # r = Σ k [value k] is whole for every combination, and 2 k r − k² is the largest for one k
    # alone, so a certificate can follow the rank.
    rank = total(form * k for k, form in enumerate(forms))
    return _nearest_to(rank, range(len(labels)), labels)


def _fetched_numbers(circuit: Circuit, forms: Sequence[Form]) -> set[int]:
    """The numbers that heads with scores fetch and that reach forms through networks alone."""
    found, waiting = set[int](), {number for form in forms for number in form.atoms}
    met = set(waiting)
    while waiting:
        number = waiting.pop()
        head = circuit.atoms[number].fetched_by
        if head is None:
            below = set(circuit.reads(number)) - met
            waiting |= below
            met |= below
        elif head.is_scored:
            found.add(number)
    return found


def _are_exclusive(circuit: Circuit, forms: Sequence[Form]) -> bool:
    """True if the circuit shows that one of these forms is 1 at each symbol and the others are 0.

    This is so if the forms are whole, nowhere negative, and add up to the constant 1; if the symbol
    alone gives them such values; or if one head fetches all of them from such forms.
    """
    whole = all(circuit.is_whole(form) and circuit.span(form).lo >= 0 for form in forms)
    if whole and circuit.span(total(forms)) == Range.of(1):
        return True
    atoms = {number: circuit.atoms[number] for form in forms for number in form.atoms}
    if all(isinstance(atom, Embedded) for atom in atoms.values()):
        rows = zip(*(circuit.rows(form)[: len(circuit.alphabet)] for form in forms), strict=True)
        return all(
            sum(each.lo for each in row) == sum(each.hi for each in row) == 1 for row in rows
        )
    heads = {atom.head if isinstance(atom, Fetched) else None for atom in atoms.values()}
    if len(heads) > 1 or None in heads or any(len(form.terms) > 1 for form in forms):
        return False
    values = [
        total(atoms[number].reads[-1] * factor for number, factor in form.terms) + form.constant
        for form in forms
    ]
    return _are_exclusive(circuit, values)


def _boolean(lowering: Lowering, node: Node) -> Labelled:
    form = lowering.boolean(node)
    # The second form is −1/2 for 0 and 1/2 for 1: 1/2 from the first form, 0, in both cases.
    return Labelled((False, True), (Form(), form - Fraction(1, 2)), Fraction(1, 2))


def _number(lowering: Lowering, node: Node) -> Answer:
    ranked = _ranked(lowering, node)
    if ranked is not None:
        return ranked
    values = node.type.values
    if values is not None:
        return _nearest_to(lowering.number(node), values)
    return _whole(lowering, node) or _fraction(lowering, node)


MOST_LABELS = 2**12
"""Largest number of labels of a number without listed values; a proof compares no more of them."""


def _whole(lowering: Lowering, node: Node) -> NearestValue | None:
    """A label for each value that a whole number can have; `None` for other numbers."""
    form, factor = lowering.in_some_scale(node)
    if factor != AS_IT_IS or not lowering.circuit.is_whole(form):
        return None
    within = _range(lowering, node, form)
    if within.diameter >= MOST_LABELS:
        return None
    least, most = math.ceil(within.lo), math.floor(within.hi)
    if len(form.terms) > 1:
        # A label k multiplies every term by 2 k, and each product rounds. A sum that is kept in one
        # slot is a single term.
        name = lowering.build.name(node)
        form = lowering.build.add(Relu(form - least), f"{name}: to hand out") + least
    return NearestValue(form, tuple(range(least, most + 1)))


def _range(lowering: Lowering, node: Node, form: Form) -> Range:
    """The range of a number; for a product, that of the products of its factors."""
    # The range of the product's form is too wide: it allows all bits of a factor at once, such as
    # 31 for a factor up to 16.
    if not isinstance(node, Multiplication):
        return lowering.circuit.span(form)
    x, y = (lowering.circuit.span(lowering.number(child)) for child in node.children)
    ends = [a * b for a, b in itertools.product((x.lo, x.hi), (y.lo, y.hi))]
    return Range(min(ends), max(ends))


def _fraction(lowering: Lowering, node: Node) -> Answer:
    """The nearest number that a count or a mean can be."""
    form, factor = lowering.in_some_scale(node)
    circuit = lowering.circuit
    grid = circuit.grid(form)
    if factor.kind == "count" and grid is not None and grid.counts == {rows_under(factor.mask)}:
        return _counted(lowering, node, form, factor, grid.c)
    mask = _denominator(grid.counts, factor) if grid is not None else None
    if factor.kind != "count" and grid is not None and mask is not None:
        if mask.startswith("strict") and not _vanishes(circuit, form):
            raise lowering.build.refuse(
                node,
                "a number that the program returns must be 0 where the mask leaves no position",
                received=f"a number that is made of a mean under mask {mask} and of others",
                remedy="return the mean alone",
            )
        if circuit.max_length is None and circuit.is_approximate(form):
            raise lowering.build.needs_length(node, "the sharpness of the scores")
        return NearestMean(form, grid.c, mask, factor != AS_IT_IS, circuit.most_seen)
    if factor == AS_IT_IS and grid is not None and len(grid.counts) == 1:
        return _labelled_fraction(lowering, node, form, grid.c)
    raise lowering.build.refuse(
        node,
        "a number that the program returns must have listed values, be whole, or be made of means "
        "with the same denominator",
        received="another number",
        remedy="return a comparison or a table of it, or one of its means",
    )


def _labelled_fraction(lowering: Lowering, node: Node, y: Form, c: int) -> NearestValue:
    """A label for each fraction with a denominator c D, where D is a number of rows.

    D is the number of matches of a selection, or of the positions that another position counts. The
    read-out does not know D, so it has a label for every fraction that the number can be.
    """
    circuit = lowering.circuit
    if circuit.most_seen is None:
        raise lowering.build.needs_length(node, "the number of labels")
    within, values = circuit.span(y), set[Fraction]()
    for d in range(1, circuit.most_seen + 1):
        least, most = math.ceil(within.lo * c * d), math.floor(within.hi * c * d)
        if most - least < MOST_LABELS:
            values |= {Fraction(p, c * d) for p in range(least, most + 1)}
        if most - least >= MOST_LABELS or len(values) > MOST_LABELS:
            raise lowering.build.refuse_length(
                node,
                f"a mean over matches that the program returns must have at most {MOST_LABELS:,} "
                "values, one for each fraction that it can be",
                received=f"more, for max_length = {circuit.max_length}",
                remedy="give a smaller max_length, or return a comparison of the mean",
            )
    return NearestValue(y, tuple(sorted(values)))


def _vanishes(circuit: Circuit, form: Form) -> bool:
    """True if a form is 0 where the masks of its means leave no symbols."""
    known: list[bool] = []
    for atom in circuit.atoms[: max(form.atoms, default=-1) + 1]:
        if isinstance(atom, Relu):
            inner = atom.form
            known.append(not inner.constant and all(known[number] for number in inner.atoms))
        else:
            is_mean = isinstance(atom, Fetched) and isinstance(atom.head, Uniform)
            known.append(is_mean and circuit.span_at_bos(atom.reads[-1]) == ZERO)
    return not form.constant and all(known[number] for number in form.atoms)


def _denominator(counts: frozenset[str], factor: Scale) -> str | None:
    """The mask that leaves as many positions as the denominator says, or more than it needs."""
    if factor != AS_IT_IS:
        return factor.mask if counts <= {rows_under(factor.mask)} else None
    known = {rows_under(mask): mask for mask in Mask} | {"i": "future", "n": "none"}
    (count,) = counts if len(counts) == 1 else ("" if counts else "i",)
    return known.get(count)


def _counted(lowering: Lowering, node: Node, form: Form, factor: Scale, scale: int) -> Counted:
    circuit = lowering.circuit
    if circuit.most_seen is None:
        raise lowering.build.needs_length(node, "the number of labels")
    # The count is D times the form: of the ends of its range, times D where that widens it.
    within = circuit.span(form).times(Fraction(scale))
    least = math.ceil(within.lo * (circuit.most_seen if within.lo < 0 else 1))
    most = math.floor(within.hi * (circuit.most_seen if within.hi > 0 else 1))
    return Counted(form, lowering.build.one_in(factor), scale, least, most, circuit.most_seen)


TAGS: Mapping[type[Any], Callable[[Lowering, Node], Answer]] = {
    Boolean: _boolean,
    Category: _tagged_category,
    Number: _number,
}
"""The answer at every position, by the type of the value."""

ANSWERS: Mapping[type[Output], Callable[[Lowering, Any], Answer]] = {
    Accept: _accepted,
    Tag: _tagged,
    NextToken: _tagged,
}
"""The answer, by the kind of output."""
