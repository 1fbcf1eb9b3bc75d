"""Extraction of a circuit from weights: the contents of each slot as a form of atoms.

Nothing is taken from where the weights come from. Every slot is an affine form of atoms; a head is
read as a mean, a match or a lookup from its scores, two hidden units that saturate as a step.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from transformist.circuit import (
    Circuit,
    Embedded,
    Fetched,
    Form,
    Head,
    Kept,
    Match,
    Number,
    PositionFeature,
    Relu,
    Rows,
    StepFunction,
    Sum,
    content,
)
from transformist.laws import Range, hull
from transformist.model import (
    BOS,
    Attention,
    FeedForward,
    Layer,
    PositionFunctions,
    Transformer,
    Weighting,
)
from transformist.rounding import power_of_two_at_most
from transformist.verify.certificate import conditions
from transformist.verify.certificate.affine import column_values, is_constant, read, together
from transformist.verify.certificate.refusals import (
    Uncertifiable,
    UncertifiableAfterASum,
    uncertifiable,
)
from transformist.verify.certificate.scores import attends
from transformist.verify.certificate.slot_contents import Contents
from transformist.verify.certificate.statement import Units
from transformist.verify.proof.sparse_rows import SparseRow, exactly, negated, sparse_rows

LOG = logging.getLogger(__name__)

Observed: TypeAlias = "Mapping[tuple[int, int], Rows]"
"""Ranges of the contents of slots, by slot and sublayer."""


@dataclass(frozen=True)
class Extracted:
    """A circuit that was read off weights.

    Attributes:
        circuit: the atoms.
        sharpness: 1/τ of each head.
        state: what each slot holds at the end.
        heads: what the heads of each layer are.
        units: what the hidden units of each layer are.
        falling: the steps that are computed from 1 downwards.
        assumed: the sums whose ranges are assumed.
        contents: what slots hold, and how it is read.

    """

    circuit: Circuit
    sharpness: Mapping[Head, Fraction]
    state: tuple[Form, ...]
    heads: tuple[tuple[Head, ...], ...]
    units: tuple[tuple[Units, ...], ...]
    falling: frozenset[int]
    assumed: tuple[int, ...]
    contents: Contents


def extract(model: Transformer, max_length: int, observed: Observed | None = None) -> Extracted:
    """Read the circuit of a transformer off its weights.

    Args:
        model: a transformer of ReLU networks without norms, its inputs behind BOS or nothing.
        max_length: N, which what is known of the numbers depends on.
        observed: ranges to be assumed of slots that hold sums with what they held before.

    Raises:
        Uncertifiable: where a part is not what a circuit is made of.
        UncertifiableAfterASum: where a slot goes on to hold a sum before that part.

    """
    embedding = model.embedding
    if embedding.back or embedding.front not in ((), (BOS,)) or model.final_norm is not None:
        raise uncertifiable(
            "inputs must stand behind BOS or nothing, and a model must have no norms",
            f"special symbols {(*embedding.front, *embedding.back)}",
            "embedding",
        )
    circuit = Circuit(model.alphabet, bool(embedding.front), max_length, _weighting(model))
    try:
        return _Extraction(model, circuit, observed or {}).extracted()
    except Uncertifiable as refusal:
        if not any(isinstance(atom, Kept) for atom in circuit.atoms):
            raise
        raise UncertifiableAfterASum(
            refusal.invariant,
            received=refusal.received,
            where=refusal.where,
            remedy=refusal.remedy,
        ) from None


def _weighting(model: Transformer) -> str:
    """Return the one weighting of the heads that have scores."""
    heads = [head for layer in model.layers for head in layer.heads]
    scored = [head.weighting for head in heads if _pairs_matter(head)]
    weightings = set(scored) or {head.weighting for head in heads} or {Weighting.SOFTMAX}
    if len(weightings) > 1:
        raise uncertifiable(
            "heads with scores must have one weighting", " and ".join(sorted(weightings)), "heads"
        )
    return weightings.pop()


def _pairs_matter(head: Attention) -> bool:
    """True if the scores of a head may differ."""
    reads_query = np.any(head.W_Q != 0, axis=1) | (head.b_Q != 0)
    return bool(np.any(reads_query & np.any(head.W_K != 0, axis=1)))


NOTHING = Form()
"""What most sublayers add to most slots."""


class _Extraction:
    """State of an extraction, which goes from the embedding to the last layer."""

    def __init__(self, model: Transformer, circuit: Circuit, observed: Observed) -> None:
        self.model, self.circuit, self.observed = model, circuit, observed
        self.sublayer = 0
        self.sharpness: dict[Head, Fraction] = {}
        self.state: list[Form] = []
        self.contents: Contents
        self.inputs: list[Sum] = []
        self.falling = set[int]()
        self.assumed: list[int] = []
        self.cancelled: dict[Form, Fraction] = {}
        self.checked = set[Form]()  # contents of slots that fit `conditions.of_slot`

    def extracted(self) -> Extracted:
        """Read all layers, and return the circuit."""
        self.state = self.embedded()
        layers, parts = self.model.layers, []
        for number, layer in enumerate(layers):
            LOG.debug("reading a circuit off the weights, layer %d of %d", number, len(layers))
            parts.append(self.layer(number, layer))
        return Extracted(
            self.circuit,
            self.sharpness,
            tuple(self.state),
            tuple(heads for heads, _ in parts),
            tuple(units for _, units in parts),
            frozenset(self.falling),
            tuple(dict.fromkeys(self.assumed)),
            self.contents,
        )

    def embedded(self) -> list[Form]:
        """Return the contents of slots before the first layer."""
        embedding, circuit, model = self.model.embedding, self.circuit, self.model
        order = [*model.alphabet, *embedding.front]
        rows = [embedding.symbols.index(symbol) for symbol in order]
        vectors = embedding.vectors[rows]
        positions = embedding.positions
        if not isinstance(positions, PositionFunctions | None):
            raise uncertifiable(
                "positions must be named functions", type(positions).__name__, "embedding"
            )
        names = positions.names if positions is not None else (None,) * model.width
        forms, shifted = [], []
        for slot, name in enumerate(names):
            values = column_values(vectors[:, slot])
            form = Form.of(values[0])
            if not is_constant(values):
                form = circuit.add(Embedded(values), model.stream.slots[slot])
            if name in ("1/i", "-1/i") and circuit.bos:
                raise uncertifiable(
                    "functions of the position must have a value at BOS", name, "embedding"
                )
            if name is not None:
                shifted += [slot] if form.is_constant and form != Form() else []
                form += circuit.add(PositionFeature(name), name)
            forms.append(form)
        self.contents = Contents(model, circuit)
        for slot in shifted:
            forms[slot] = self.kept(forms[slot], slot)
        return forms

    def layer(self, number: int, layer: Layer) -> tuple[tuple[Head, ...], tuple[Units, ...]]:
        """Read a layer: return its heads and hidden units, and add their outputs to the state."""
        if any(layer.pre_norms) or any(layer.post_norms):
            raise uncertifiable("a layer must have no norms", "a norm", f"layer {number}")
        self.sublayer += bool(layer.heads)
        found = [self.head(head, f"layer {number} head {k}") for k, head in enumerate(layer.heads)]
        kinds, parts, fetched = zip(*found, strict=True) if found else ((), (), ())
        self.contents.add_heads(layer.heads, fetched)
        self.add(
            [
                NOTHING if all(form is NOTHING for form in forms) else together(forms)
                for forms in zip(*parts, strict=True)
            ],
            shifted={slot for head in layer.heads for slot in np.flatnonzero(head.b_O).tolist()},
        )
        if layer.feed_forward is None:
            return kinds, ()
        self.sublayer += 1
        units = self.units(layer.feed_forward, f"layer {number}")
        emptied = _emptied(layer.feed_forward, units)
        shifted = set(np.flatnonzero(layer.feed_forward.b_2).tolist())
        self.contents.add_network(
            layer.feed_forward,
            [(each.units, self.number(layer.feed_forward, each)) for each in units],
        )
        self.add(_written(layer.feed_forward, units), emptied, shifted)
        return kinds, units

    # Slots

    def slot(self, number: int) -> str:
        """Return the name of a slot where a sublayer adds to it."""
        return self.model.stream.held(number, self.sublayer)

    def after(self, number: int) -> str:
        """Return the name of a slot after a sublayer has added to it."""
        return f"{self.model.stream.slots[number]} after sublayer {self.sublayer}"

    def add(
        self, added: list[Form], emptied: Collection[int] = (), shifted: Collection[int] = ()
    ) -> None:
        """Add to the state: a slot that holds a number is emptied exactly, or holds a sum.

        A number that is shifted is stored again, too.
        """
        for slot, new in enumerate(added):
            old = self.state[slot]
            if new is NOTHING and slot not in emptied and slot not in shifted:
                if old not in self.checked:
                    conditions.of_slot(old, self.after(slot))
                    self.checked.add(old)
                continue
            form = old + new
            if slot in emptied and new == -old:
                self.contents.empty(slot)
            elif old != Form() and new != Form():
                form = self.kept(together([old, new]), slot)
            elif slot in shifted and form.terms:
                conditions.of_slot(form, self.after(slot))
                form = self.kept(form, slot)
            conditions.of_slot(form, self.after(slot))
            self.state[slot] = form

    def kept(self, form: Form, slot: int) -> Form:
        """Make the sum in a slot an atom, whose range may be assumed as observed."""
        circuit, atom = self.circuit, Kept(form)
        derived, rows = circuit.rows(form), self.observed.get((slot, self.sublayer))
        if rows is not None:
            # A short input need not show every symbol's extremes: symbols share one observed range.
            symbols = hull(rows[: len(circuit.alphabet)])
            seen = (symbols,) * len(circuit.alphabet) + rows[len(circuit.alphabet) :]
            rows = tuple(_both(each, other) for each, other in zip(derived, seen, strict=True))
        kept = circuit.add(atom, self.after(slot), rows=rows)
        self.contents.keep(slot, kept)
        if rows not in (None, derived):
            self.assumed.append(circuit.number(atom))
        return kept

    # Heads

    def head(self, head: Attention, where: str) -> tuple[Head, list[Form], list[Form]]:
        """Read a head: return its kind, the forms that it adds, and the values it fetches."""
        circuit = self.circuit
        queries = read(head.W_Q, head.b_Q, self.state)
        pairs = list(zip(queries, read(head.W_K, head.b_K, self.state), strict=True))
        kind, sharpness = attends(circuit, head, pairs, where)
        values = read(head.W_V, head.b_V, self.state)
        if circuit.weighting != "softmax" and isinstance(kind, Match) and kind.choose == "mean":
            kind = replace(kind, choose="any") if conditions.are_alike(kind, values) else kind
        conditions.of_head(circuit, head, kind, pairs, where)
        conditions.of_values(circuit, kind, values, where)
        if self.sharpness.setdefault(kind, sharpness) != sharpness:
            raise uncertifiable("heads that attend alike must have one sharpness", "two", where)
        readings, read_by = self.contents.readings, self.contents.read
        readings.add_scores(kind, read_by(head.W_Q, head.b_Q), read_by(head.W_K, head.b_K))
        readings.add(read_by(head.W_V, head.b_V))
        output = sparse_rows(np.eye(len(values)) if head.W_O is None else head.W_O)
        if not any(output):  # no number would stand for it, and none require its scores
            raise uncertifiable("a head must write to the stream", "one whose W_O is 0", where)
        added, fetched = [], [Form()] * len(values)
        for slot, (row, constant) in enumerate(zip(output, head.b_O.tolist(), strict=True)):
            if not row and not constant:
                added.append(NOTHING)
                continue
            name = f"{where}: {self.slot(slot)}"
            for m, _ in row:
                fetched[m] = circuit.add(Fetched(kind, values[m]), name)
            parts = [fetched[m] * exactly(weight) for m, weight in row]
            added.append(together([*parts, Form.of(constant)]))
        return kind, added, fetched

    # Networks

    def units(self, network: FeedForward, where: str) -> tuple[Units, ...]:
        """Read the hidden units: copies of slots and steps, of two units each, and ReLUs."""
        if network.activation != "relu":
            raise uncertifiable("networks must be of ReLUs", network.activation, where)
        inputs = read(network.W_1, network.b_1, self.state, self.cancelled)
        self.inputs = self.contents.read(network.W_1, network.b_1)
        found: list[Units] = []
        columns, read_already = sparse_rows(network.W_2.T), set[int]()
        units_of: dict[SparseRow, list[int]] = {}
        for k, column in enumerate(columns):
            units_of.setdefault(column, []).append(k)
        for j, column in enumerate(columns):
            if j in read_already:
                continue
            name = f"{where} unit {j}: {' and '.join(self.slot(slot) for slot, _ in column)}"
            opposite = units_of.get(negated(column), ())
            others = [k for k in opposite if k > j and k not in read_already]
            found.append(self.group(network, inputs, j, others, name))
            read_already.update(found[-1].units)
        # Two pairs with one form would be one atom, although each of them rounds.
        steps = [each.added for each in found if len(each.units) == 2]
        once = len(set(steps)) == len(steps)
        conditions.require(once, "a step must be computed once", where, where)
        return tuple(found)

    def group(
        self, network: FeedForward, inputs: list[Form], j: int, others: list[int], name: str
    ) -> Units:
        """Read a hidden unit, with the other unit of its copy or step if there is one.

        `others` are the units whose columns of W₂ are opposite to its own.
        """
        for k in others:
            if _is_copy(network, j, k):
                conditions.of_copy(network, (j, k), name)
                return Units((j, k), inputs[j])  # ReLU(x) − ReLU(−x) = x
            is_shift = np.array_equal(network.W_1[j], network.W_1[k])
            differ = inputs[k].constant != inputs[j].constant
            if is_shift and differ and not {inputs[j], inputs[k]} & self.cancelled.keys():
                return Units((j, k), self.step(network, (j, k), inputs[j], inputs[k], name))
        self.contents.readings.add([self.inputs[j]])
        return Units((j,), self.circuit.add(Relu(inputs[j]), name))

    def number(self, network: FeedForward, units: Units) -> Number:
        """Return the number that units write: for a copy the sum that it reads, else their form."""
        first, *second = units.units
        return self.inputs[first] if second and _is_copy(network, first, *second) else units.added

    def step(
        self, network: FeedForward, units: tuple[int, int], first: Form, second: Form, name: str
    ) -> Form:
        """Read ReLU(x − a) − ReLU(x − b), which rises from 0 at a to b − a at b.

        It is also b − a minus a step of −x: a step that the weights compute as falling from 1.
        """
        circuit, read_by = self.circuit, (self.inputs[units[0]], self.inputs[units[1]])
        sign = 1 if first.constant > second.constant else -1
        lower, upper = (first, second) if sign > 0 else (second, first)
        height = lower.constant - upper.constant
        # With l = `lower` and h = `height`, ReLU(l) − ReLU(l − h) is 0 for l ≤ 0 and h for l ≥ h.
        # With f = l + h/2 and zone = 2 h it is 0 for f ≤ zone/4 and h for f ≥ 3 zone/4. It is
        # also h minus the same step of h − l, whose f is zone − (l + h/2).
        rising, zone = lower + height / 2, 2 * height
        for form in (rising, zone - rising):
            common = power_of_two_at_most(
                content([*form.distinct_factors, form.constant]) or Fraction(1)
            )
            least = circuit.least_multiple(form)
            if least is not None and least >= zone:
                atom = StepFunction(form * (1 / common), zone / common)
                conditions.of_step(circuit, atom, height, network, units, name)
                step = circuit.add(atom, name)
                self.contents.readings.steps.setdefault(circuit.number(atom), []).append(read_by)
                if form == rising:
                    return step * (height * sign)
                self.falling.add(circuit.number(atom))
                return (1 - step) * (height * sign)
        self.contents.readings.add(read_by)
        both = circuit.add(Relu(lower), name) - circuit.add(Relu(upper), f"{name}, the other")
        return both * sign


def _both(derived: Range, seen: Range) -> Range:
    return Range(max(derived.lo, seen.lo), min(derived.hi, seen.hi))


def _is_copy(network: FeedForward, j: int, k: int) -> bool:
    """True if two units are ReLU(x) and ReLU(−x) of one slot x."""
    row, other = network.W_1[j], network.W_1[k]
    alone = np.count_nonzero(row) == 1 and abs(row).max() == 1
    return bool(alone and np.array_equal(row, -other) and not network.b_1[[j, k]].any())


def _emptied(network: FeedForward, units: Collection[Units]) -> set[int]:
    """Slots to which a copy adds −ReLU(x) + ReLU(−x), exactly −x of their own contents x."""
    pairs = (each.units for each in units if len(each.units) == 2)
    copies = [j for j, k in pairs if _is_copy(network, j, k)]
    read_by = [(slot, j) for j in copies for slot in np.flatnonzero(network.W_1[j]).tolist()]
    return {slot for slot, j in read_by if network.W_2[slot, j] == -network.W_1[j, slot]}


def _written(network: FeedForward, units: Collection[Units]) -> list[Form]:
    """Form that a network adds to each slot."""
    added = {each.units[0]: each.added for each in units}
    rows = zip(sparse_rows(network.W_2), network.b_2.tolist(), strict=True)
    return [
        together([*(added[k] * exactly(x) for k, x in row if k in added), Form.of(constant)])
        if row or constant
        else NOTHING
        for row, constant in rows
    ]
