"""From weights back to a circuit: what each slot holds, in terms of what a transformer computes.

Nothing is taken from where the weights come from. Every slot is an affine form of atoms; a head is
read as a mean, a match or a lookup from its scores, two hidden units that saturate as a step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from transformist.bounds import power_of_two_at_most
from transformist.circuit import (
    Circuit,
    Embedded,
    Feature,
    Fetched,
    Form,
    Head,
    Kept,
    Match,
    Relu,
    Rows,
    Step,
    content,
)
from transformist.laws import Range, hull
from transformist.model import (
    BOS,
    Attention,
    FeedForward,
    PositionFunctions,
    Transformer,
    rationals,
)
from transformist.verify.certificate import presupposed
from transformist.verify.certificate.reading import (
    Unlawful,
    read,
    together,
    unlawful,
)
from transformist.verify.certificate.scores import attends
from transformist.verify.certificate.statement import Units

Observed: TypeAlias = "Mapping[tuple[int, int], Rows]"
"""The ranges of what slots hold after a sublayer, by slot and sublayer."""


@dataclass(eq=False)
class Lifted:
    """A circuit that was read off weights.

    Attributes:
        circuit: the atoms.
        observed: ranges that are assumed, where a slot goes on to hold a sum.
        sharpness: 1/τ of each head.
        state: what each slot holds at the end.
        heads: what the heads of each layer are.
        units: what the hidden units of each layer are.
        falling: the steps that are computed from 1 downwards.
        assumed: the sums whose ranges are assumed, with the slot and the sublayer.
        held: all that slots ever hold.
        hidden: by how much the constants that the input of a unit is added up of exceed its own.

    """

    circuit: Circuit
    observed: Observed = field(default_factory=dict)
    sharpness: dict[Head, Fraction] = field(default_factory=dict)
    state: list[Form] = field(default_factory=list)
    heads: list[tuple[Head, ...]] = field(default_factory=list)
    units: list[tuple[Units, ...]] = field(default_factory=list)
    falling: set[int] = field(default_factory=set)
    assumed: dict[int, tuple[int, int]] = field(default_factory=dict)
    hidden: dict[Form, Fraction] = field(default_factory=dict)
    held: set[Form] = field(default_factory=set)


def lift(model: Transformer, max_length: int, observed: Observed | None = None) -> Lifted:
    """Read the circuit of a transformer off its weights.

    Args:
        model: a transformer of ReLU networks without norms, its inputs behind BOS or nothing.
        max_length: N, which what is known of the numbers depends on.
        observed: ranges to be assumed of slots that hold sums with what they held before.

    Raises:
        Unlawful: where a part is not what a circuit is made of.

    """
    embedding = model.embedding
    if embedding.back or embedding.front not in ((), (BOS,)) or model.final_norm is not None:
        raise unlawful(
            "inputs stand behind BOS or nothing, and there are no norms",
            f"special symbols {(*embedding.front, *embedding.back)}",
            "embedding",
        )
    heads = [head for layer in model.layers for head in layer.heads]
    scored = [head.weighting for head in heads if _pairs_matter(head)]
    weightings = set(scored) or {head.weighting for head in heads} or {"softmax"}
    if len(weightings) > 1:
        raise unlawful(
            "heads with scores have one weighting", " and ".join(sorted(weightings)), "heads"
        )
    circuit = Circuit(model.alphabet, bool(embedding.front), max_length, weightings.pop())
    lifted = Lifted(circuit, observed or {})
    try:
        _lift(lifted, model)
    except Unlawful as refusal:
        refusal.after_a_sum = any(isinstance(atom, Kept) for atom in circuit.atoms)
        raise
    return lifted


def _lift(lifted: Lifted, model: Transformer) -> None:
    """Sublayer by sublayer."""
    lifted.state = _embedded(model, lifted.circuit)
    step = 0
    for number, layer in enumerate(model.layers):
        if any(layer.pre_norms) or any(layer.post_norms):
            raise unlawful("a layer has no norms", "a norm", f"layer {number}")
        step += bool(layer.heads)
        names = [model.stream.held(slot, step) for slot in range(model.width)]
        added = [
            _head(lifted, names, head, f"layer {number} head {k}")
            for k, head in enumerate(layer.heads)
        ]
        kinds, parts = zip(*added, strict=True) if added else ((), ())
        lifted.heads.append(kinds)
        _add(lifted, model, step, [together(forms) for forms in zip(*parts, strict=True)])
        network = layer.feed_forward
        if network is None:
            lifted.units.append(())
            continue
        step += 1
        emptied = {slot for slot in range(model.width) if _empties(network, slot)}
        names = [model.stream.held(slot, step) for slot in range(model.width)]
        _add(lifted, model, step, _network(lifted, names, network, f"layer {number}"), emptied)


def _empties(network: FeedForward, slot: int) -> bool:
    """Whether all that is added to a slot is −ReLU(x) + ReLU(−x), x what it holds: exactly −x."""
    units = np.flatnonzero(network.W_2[slot] != 0)
    reads = {(int(network.W_1[j, slot]), int(network.W_2[slot, j])) for j in units}
    alone = all(np.count_nonzero(network.W_1[j]) == 1 for j in units)
    exact = all(abs(network.W_1[j, slot]) == abs(network.W_2[slot, j]) == 1 for j in units)
    none = not any(network.b_1[j] for j in units) and not network.b_2[slot]
    return len(units) == 2 and alone and exact and none and reads == {(1, -1), (-1, 1)}


def _add(
    lifted: Lifted,
    model: Transformer,
    step: int,
    added: list[Form],
    emptied: Collection[int] = (),
) -> None:
    """The residual connection: a slot that is not empty is emptied, which is exact, or kept on."""
    for slot, new in enumerate(added):
        old = lifted.state[slot]
        form = old + new
        if old != Form() and new != Form() and not (slot in emptied and new == -old):
            form = _kept(lifted, model, together([old, new]), slot, step)
        presupposed.of_slot(form, f"{model.stream.slots[slot]} after sublayer {step}")
        lifted.state[slot] = form
        lifted.held.add(form)


def _kept(lifted: Lifted, model: Transformer, form: Form, slot: int, step: int) -> Form:
    """A slot that goes on to hold a sum, an atom of which less may be assumed than is derived."""
    circuit, atom = lifted.circuit, Kept(form)
    derived, rows = circuit.rows(form), lifted.observed.get((slot, step))
    if rows is not None:
        symbols = hull(rows[: len(circuit.alphabet)])
        seen = (symbols,) * len(circuit.alphabet) + rows[len(circuit.alphabet) :]
        rows = tuple(_both(each, other) for each, other in zip(derived, seen, strict=True))
    kept = circuit.add(atom, f"{model.stream.slots[slot]} after sublayer {step}", rows=rows)
    if rows not in (None, derived):
        lifted.assumed[circuit.number(atom)] = (slot, step)
    return kept


def _both(derived: Range, seen: Range) -> Range:
    return Range(max(derived.lo, seen.lo), min(derived.hi, seen.hi))


def _pairs_matter(head: Attention) -> bool:
    """Whether its scores may differ."""
    reads_query = np.any(head.W_Q != 0, axis=1) | (head.b_Q != 0)
    return bool(np.any(reads_query & np.any(head.W_K != 0, axis=1)))


def _embedded(model: Transformer, circuit: Circuit) -> list[Form]:
    embedding = model.embedding
    order = [*model.alphabet, *embedding.front]
    rows = [embedding.symbols.index(symbol) for symbol in order]
    vectors = rationals(embedding.vectors)[rows]
    positions = embedding.positions
    if not isinstance(positions, PositionFunctions | None):
        raise unlawful(
            "positions are functions by their names", type(positions).__name__, "embedding"
        )
    names = positions.names if positions is not None else (None,) * model.width
    forms = []
    for slot, name in enumerate(names):
        values = tuple(Fraction(value) for value in vectors[:, slot])
        form = Form.of(values[0])
        if len(set(values)) > 1:
            form = circuit.add(Embedded(values), model.stream.slots[slot])
        if name in ("1/i", "-1/i") and circuit.bos:
            raise unlawful("positions are functions with a value at BOS", name, "embedding")
        forms.append(form if name is None else form + circuit.add(Feature(name), name))
    return forms


# Heads


def _head(lifted: Lifted, names: list[str], head: Attention, where: str) -> tuple[Head, list[Form]]:
    """What a head is, and what it adds to each slot."""
    circuit = lifted.circuit
    queries = read(head.W_Q, head.b_Q, lifted.state)
    pairs = list(zip(queries, read(head.W_K, head.b_K, lifted.state), strict=True))
    kind, sharpness = attends(circuit, head, pairs, where)
    values = read(head.W_V, head.b_V, lifted.state)
    is_hard = circuit.weighting != "softmax" and isinstance(kind, Match) and kind.choose == "mean"
    if is_hard and presupposed.are_alike(kind, values):  # type: ignore[arg-type]
        kind = replace(kind, choose="any")  # type: ignore[arg-type]
    presupposed.of_head(circuit, head, kind, pairs, where)
    presupposed.of_values(circuit, kind, values, where)
    if lifted.sharpness.setdefault(kind, sharpness) != sharpness:
        raise unlawful("heads that attend alike have one temperature", "two", where)
    output = np.eye(len(values)) if head.W_O is None else rationals(head.W_O)
    added = []
    for slot, (row, constant) in enumerate(zip(output, rationals(head.b_O), strict=True)):
        parts = [
            circuit.add(Fetched(kind, values[m]), f"{where}: {names[slot]}") * Fraction(row[m])
            for m in np.flatnonzero(row != 0)
        ]
        added.append(together([*parts, Form.of(constant)]))
    return kind, added


# Networks


def _network(lifted: Lifted, names: list[str], network: FeedForward, where: str) -> list[Form]:
    """What a network adds to each slot: steps, where two of its units saturate, and ReLUs."""
    if network.activation != "relu":
        raise unlawful("networks are of ReLUs", network.activation, where)
    inputs = read(network.W_1, network.b_1, lifted.state, lifted.hidden)
    writes = rationals(network.W_2).T
    found: list[Units] = []
    for j in range(len(inputs)):
        if all(j not in each.units for each in found):
            written = [names[slot] for slot in np.flatnonzero(writes[j] != 0)]
            name = f"{where} unit {j}: {' and '.join(written)}"
            found.append(_units(lifted, network, inputs, writes, j, found, name))
    told = [each.added for each in found if len(each.units) == 2]
    presupposed.require(len(set(told)) == len(told), "a step is computed once", where, where)
    lifted.units.append(tuple(found))
    return [
        together(
            [
                *(each.added * Fraction(writes[each.units[0]][slot]) for each in found),
                Form.of(constant),
            ]
        )
        for slot, constant in enumerate(rationals(network.b_2))
    ]


def _units(
    lifted: Lifted,
    network: FeedForward,
    inputs: list[Form],
    writes: Any,
    j: int,
    found: Iterable[Units],
    name: str,
) -> Units:
    """A hidden unit, with another that takes it to its end, or that is its other half of a slot."""
    taken = {unit for each in found for unit in each.units}
    for k in range(j + 1, len(inputs)):
        if k in taken or not np.array_equal(writes[j], -writes[k]):
            continue
        row, other = network.W_1[j], network.W_1[k]
        is_slot = (
            np.count_nonzero(row) == 1 and abs(row).max() == 1 and not network.b_1[[j, k]].any()
        )
        if is_slot and np.array_equal(row, -other):
            presupposed.of_copy(network, (j, k), name)
            return Units((j, k), inputs[j])  # ReLU(x) − ReLU(−x) = x
        shown = not {inputs[j], inputs[k]} & lifted.hidden.keys()
        if shown and np.array_equal(row, other) and inputs[k].constant != inputs[j].constant:
            return Units((j, k), _step(lifted, network, (j, k), inputs[j], inputs[k], name))
    return Units((j,), lifted.circuit.add(Relu(inputs[j]), name))


def _step(
    lifted: Lifted,
    network: FeedForward,
    units: tuple[int, int],
    first: Form,
    second: Form,
    name: str,
) -> Form:
    """ReLU(x − a) − ReLU(x − b): from a to b it goes from 0 to b − a.

    It is as well b − a less what b − x does from 0 to b − a: a step that falls from 1.
    """
    circuit = lifted.circuit
    sign = 1 if first.constant > second.constant else -1
    lower, upper = (first, second) if sign > 0 else (second, first)
    height = lower.constant - upper.constant
    rising, zone = lower + height / 2, 2 * height  # zone/4 is where it begins
    for form in (rising, zone - rising):
        common = power_of_two_at_most(
            content([*form.factors.values(), form.constant]) or Fraction(1)
        )
        least = circuit.least_multiple(form)
        if least is not None and least >= zone:
            atom = Step(form * (1 / common), zone / common)
            presupposed.of_step(circuit, atom, height, network, units, name)
            step = circuit.add(atom, name)
            if form == rising:
                return step * (height * sign)
            lifted.falling.add(circuit.number(atom))
            return (1 - step) * (height * sign)
    both = circuit.add(Relu(lower), name) - circuit.add(Relu(upper), f"{name}, the other")
    return both * sign
