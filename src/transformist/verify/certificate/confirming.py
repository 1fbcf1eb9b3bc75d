"""Check of a certificate of the second grade: a second reading of the weights, by other code.

The lines of a certificate say what every number is. Here each is confirmed from the weights, by
multiplying out: scores as polynomials in the lines, hidden units one by one. The laws (`circuit/`),
the conditions on weights (`conditions`), the margins (`recorded_margins`, `read_outs`) and the
observations (`observing`) are those of the search. So are the record of how the weights add up each
slot (`slot_contents`) and the choice of read-out rows (`chosen_rows`). The form of each slot, the
heads and the units are read by other code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import Floating, number_system
from transformist.circuit import READ_OUT, Circuit, Form, Head, Match, total
from transformist.circuit.atoms import Embedded, Fetched, Kept, PositionFeature, Relu, StepFunction
from transformist.laws import Range, hull
from transformist.model import Attention, FeedForward, PositionFunctions, Transformer
from transformist.model import rationals as exactly
from transformist.rounding import ORDERS
from transformist.verify.certificate import conditions
from transformist.verify.certificate.chosen_rows import needed_rows
from transformist.verify.certificate.observing import Observations, observe
from transformist.verify.certificate.read_outs import READ_OUTS, ReadOutForms
from transformist.verify.certificate.recorded_margins import (
    follow_within,
    noted,
    require_finite,
    require_observed,
)
from transformist.verify.certificate.refusals import Unproved, need
from transformist.verify.certificate.slot_contents import Contents
from transformist.verify.certificate.statement import TIES, Certificate, Units, assumed


def confirm(model: Transformer, certificate: Certificate) -> None:
    """Confirm every line of a certificate from the weights, by the laws that it was found by.

    Raises:
        Unproved: with the first thing that does not follow.

    """
    try:
        Reading(model, certificate).follow()
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, Unproved):
            raise
        need(False, f"its lines describe the model ({type(error).__name__}: {error})")


class Reading:
    """A model read along the lines of a certificate, each of which it has to compute."""

    def __init__(self, model: Transformer, certificate: Certificate) -> None:
        self.model, self.certificate = model, certificate
        front = model.embedding.front
        plain = not model.embedding.back and len(front) < 2 and model.final_norm is None
        norms = [norm for each in model.layers for norm in (*each.pre_norms, *each.post_norms)]
        need(
            plain and not any(norms),
            "inputs must stand behind BOS or nothing, and a model must have no norms",
        )
        need(certificate.max_length <= (model.max_length or math.inf), "N is within the model's")
        parts = (len(model.layers), len(model.layers), repr(model), certificate.max_length)
        said = (len(certificate.heads), len(certificate.units))
        none = [
            units
            for units, each in zip(certificate.units, model.layers, strict=False)
            if each.feed_forward is None
        ]
        need(not any(none), "a layer without a network has no units")
        need((*said, certificate.model, certificate.largest_length) == parts, "it is of this model")
        weighting, free = certificate.weighting, {each.line for each in certificate.assumes}
        heads = {str(head.weighting) for layer in model.layers for head in layer.heads}
        need(weighting in (heads or {"softmax"}), "some head of the model has the stated weighting")
        self.circuit = Circuit(model.alphabet, bool(front), certificate.max_length, weighting)
        for number, line in enumerate(certificate.lines):
            # A tuple has one range for each kind. A forger's `Ranges` could have others for kinds
            # −1, −2, …, and bounds over all ranges would then leave out the common one.
            rows = tuple(line.law.rows) if number in free else None
            self.circuit.add(line.atom, line.name, rows=rows)
        self.sharpness: dict[Head, Fraction] = {}
        self.cancelled: dict[Form, Fraction] = {}
        self.falling, self.met = set[int](), set[int]()
        self.contents = Contents(model, self.circuit)
        self.sums: dict[int, tuple[int, int]] = {}
        self.sublayer = 0
        self.state = self.embedded()
        for number, layer in enumerate(model.layers):
            added, kinds = [[Form()] for _ in self.state], certificate.heads[number]
            pairs = zip(layer.heads, kinds, strict=True)
            fetched = [self.attend(head, kind, added) for head, kind in pairs]
            if layer.heads:
                self.contents.add_heads(layer.heads, fetched)
                self.add(added)
            if layer.feed_forward is not None:
                self.add(self.units(layer.feed_forward, certificate.units[number]), by_units=True)

    def follow(self) -> None:
        """Derive every line and margin again by the laws, and compare."""
        said, read_out = self.certificate, self.model.read_out
        a: Any = number_system(said.arithmetic)
        need(isinstance(a, Floating) and said.order in ORDERS, "it is for a format and an order")
        rows, count = needed_rows(self.circuit, read_out, self.contents, self.state)
        W, b = self.contents.add_read_out(read_out, rows)
        forms, readings, order = self.rows(W, b), self.contents.readings, ORDERS[said.order]
        margins, demands = noted(self.circuit, self.sharpness, a, order, readings, self.falling)
        for number, line in enumerate(said.lines):
            follow_within(margins)
            laws = (self.circuit.laws[number], margins.errors[number], number in self.falling)
            need(
                laws == (line.law, line.errors, line.falls),
                f"line {number}, {line.name}, is as stated",
            )
            need(number in self.met, f"line {number}, {line.name}, is a number of the model")
        require_finite(margins, self.model)
        is_one = READ_OUTS[type(read_out)](margins, read_out, ReadOutForms(forms, count))
        assumes = [assumed(self.circuit, each.line, each.checked) for each in said.assumes]
        are_sums = all(each.line in self.sums for each in said.assumes if each.line is not None)
        need(are_sums, "what is assumed is the range of a sum")
        need(sum(each.line is None for each in said.assumes) == (not is_one), "one answer is best")
        if not is_one:
            margins.require(READ_OUT, TIES, 0, 1)
        need(tuple(assumes) == said.assumes, "what is assumed is in the lines")
        require_observed(margins, assumes)
        self.observed()
        need(all(each.share > 0 for each in demands), "every margin is kept")
        need(tuple(demands) == said.demands, "its margins are as stated")

    def observed(self) -> None:
        """Check that assumptions hold on the short inputs, and are the same for all symbols."""
        assumes = [each for each in self.certificate.assumes if each.line is not None]
        seen = observe(self.model, self.certificate.max_length) if assumes else Observations()
        symbols = range(len(self.circuit.alphabet))
        for each in assumes:
            need(each.checked == seen.length, "what is assumed is checked to this length")
            number = each.line or 0
            rows, met = self.circuit.laws[number].rows, seen.held[self.sums[number]]
            derived = self.circuit.rows(self.circuit.atoms[number].reads[0])
            most = hull(rows[kind] for kind in symbols)
            cut = [Range(max(d.lo, most.lo), min(d.hi, most.hi)) for d in derived[: len(symbols)]]
            need(cut == [rows[k] for k in symbols], "a range is assumed of all symbols together")
            inside = (r.lo <= x.lo and x.hi <= r.hi for r, x in zip(rows, met, strict=True))
            need(all(inside), "what is assumed is what is met")

    def line(self, atom: Any) -> Form:
        """Return the line of a computed atom, which must be made of lines that were met before."""
        number = self.circuit.number(atom)
        need(
            self.met.issuperset(each for form in atom.reads for each in form.atoms),
            "lines read earlier lines only",
        )
        self.met.add(number)
        return Form.atom(number)

    def rows(self, matrix: Any, shift: Any) -> list[Form]:
        """Return the rows of W z + b."""
        found = []
        for row, constant in zip(exactly(matrix), exactly(shift), strict=True):
            parts = [self.state[slot] * row[slot] for slot in np.flatnonzero(row)]
            found.append(added_up([*parts, Form.of(constant)], self.cancelled))
        return found

    def embedded(self) -> list[Form]:
        """Return the stream before the first layer: numbers and functions of the position."""
        embedding = self.model.embedding
        order = [embedding.symbols.index(s) for s in (*self.model.alphabet, *embedding.front)]
        names = getattr(embedding.positions or self, "names", (None,) * self.model.width)
        need(isinstance(embedding.positions, PositionFunctions | None), "positions have names")
        state = []
        columns = exactly(embedding.vectors)[order].T
        for slot, (column, name) in enumerate(zip(columns, names, strict=True)):
            same, values = len(set(column)) == 1, tuple(map(Fraction, column))
            form = Form.of(values[0]) if same else self.line(Embedded(values))
            if name is not None:
                form += self.line(PositionFeature(name))
                form = self.kept(form, slot) if same and any(column) else form
            state.append(form)
        return state

    def kept(self, form: Form, slot: int) -> Form:
        """Return the line of the contents of a slot, which are stored again."""
        kept = self.line(Kept(form))
        self.contents.keep(slot, kept)
        self.sums[kept.atoms[0]] = (slot, self.sublayer)
        name = f"{self.model.stream.slots[slot]} after sublayer {self.sublayer}"
        need(self.certificate.lines[kept.atoms[0]].name == name, "a sum has its name")
        return kept

    def add(self, added: list[list[Form]], by_units: bool = False) -> None:
        """Add to the stream; a slot is empty before or after, or its sum has a line.

        So has a number that is shifted.
        """
        self.sublayer += 1
        for slot, parts in enumerate(added):
            old, new = self.state[slot], added_up(parts)
            is_emptied = by_units and new == -old and sum(part != Form() for part in parts) == 1
            form = Form() if is_emptied else added_up([old, new])
            if is_emptied:
                self.contents.empty(slot)
            is_shifted = any(part.is_constant and part != Form() for part in parts)
            if Form() not in (old, new, form):
                form = self.kept(form, slot)
            elif is_shifted and form.terms:
                conditions.of_slot(form, f"slot {slot}")
                form = self.kept(form, slot)
            conditions.of_slot(form, f"slot {slot}")
            self.state[slot] = form

    def attend(self, head: Attention, kind: Head, added: list[list[Form]]) -> list[Form]:
        """Check that a head has the scores of its kind, up to a factor; return its values."""
        queries, keys = self.rows(head.W_Q, head.b_Q), self.rows(head.W_K, head.b_K)
        values, size = self.rows(head.W_V, head.b_V), len(queries)
        read = {*queries, *keys, *values}
        need(not self.cancelled.keys() & read, "no constant is hidden in a head")
        pairs = list(zip(queries, keys, strict=True))
        conditions.of_head(self.circuit, head, kind, pairs, "a head")
        conditions.of_values(self.circuit, kind, values, "a head")
        found, wanted = multiplied(pairs), multiplied(kind.scores)
        # If the scores found are those of the kind times a factor, the sums of the magnitudes of
        # their coefficients have this factor as their ratio: so it is the only one to try.
        weights = [sum(abs(x) for part in each for _, x in part) for each in (found, wanted)]
        ratio = Fraction(weights[0], weights[1] or 1) if wanted else Fraction(1)
        scaled = [[(each, x * ratio) for each, x in part] for part in wanted]
        need(found == scaled and ratio, "scores are of the stated kind")
        fits = head.weighting == self.circuit.weighting
        need(fits or not wanted, "heads with scores must have one weighting")
        # √d_key, or up to 2⁻⁴⁰ above it, which makes 1/τ smaller: the safe side.
        root = Fraction(math.isqrt(size << 80) + 1, 1 << 40)
        root = Fraction(math.isqrt(size)) if size in (4**k for k in range(16)) else root
        alone = isinstance(kind, Match) and kind.choose == "mean"
        need(not alone or root.denominator == 1, "√d_key of what is meant is a power of two")
        sharpness = ratio / root if wanted else ratio
        need(
            self.sharpness.setdefault(kind, sharpness) == sharpness,
            "heads that attend alike must have one sharpness",
        )
        lines = [self.line(Fetched(kind, value)) for value in values]
        readings, rows = self.contents.readings, self.contents.read
        readings.add_scores(kind, rows(head.W_Q, head.b_Q), rows(head.W_K, head.b_K))
        readings.add(rows(head.W_V, head.b_V))
        output = np.eye(len(values)) if head.W_O is None else exactly(head.W_O)
        for slot, (row, constant) in enumerate(zip(output, exactly(head.b_O), strict=True)):
            added[slot].extend(lines[m] * Fraction(row[m]) for m in np.flatnonzero(row))
            added[slot].append(Form.of(constant))
        return lines

    def units(self, network: FeedForward, groups: tuple[Units, ...]) -> list[list[Form]]:
        """Return what a network adds to each slot; every unit must be in one of the groups."""
        need(network.activation == "relu", "networks must be of ReLUs")
        inputs, columns = self.rows(network.W_1, network.b_1), exactly(network.W_2).T
        numbers = sorted(unit for each in groups for unit in each.units)
        need(numbers == list(range(len(inputs))), "every hidden unit is listed once")
        added = [[Form.of(constant)] for constant in exactly(network.b_2)]
        self.inputs = self.contents.read(network.W_1, network.b_1)
        written: list[Any] = []
        twice = [each.added for each in groups if len(each.units) == 2]
        need(len(set(twice)) == len(twice), "a step must be computed once")
        for each in groups:
            first, *second = each.units
            form = self.two(network, inputs, first, *second) if second else None
            if form is None:
                self.contents.readings.add([self.inputs[first]])
                form = self.line(Relu(inputs[first]))
            rows = [network.W_1[unit] for unit in each.units]
            is_copy = bool(second) and np.array_equal(rows[0], -rows[-1])
            written.append((each.units, self.inputs[first] if is_copy else form))
            need(form == each.added, "units add what is stated")
            for slot in np.flatnonzero(columns[first]):
                part = form * Fraction(columns[first][slot])
                own = network.W_1[first][slot] != 0
                need(own or part != -self.state[slot], "a slot is emptied by what it holds")
                added[slot].append(part)
        self.contents.add_network(network, written)
        return added

    def two(self, network: FeedForward, inputs: list[Form], j: int, k: int) -> Form:
        """Return the form of a copy ReLU(x) − ReLU(−x), or of a step ReLU(x + h) − ReLU(x)."""
        need(np.array_equal(network.W_2[:, j], -network.W_2[:, k]), "two units are a difference")
        row, other = network.W_1[j], network.W_1[k]
        if np.array_equal(row, -other):
            alone = np.count_nonzero(row) == 1 and abs(row).max() == 1
            need(alone and not network.b_1[[j, k]].any(), "two halves belong to one slot")
            conditions.of_copy(network, (j, k), "units")
            return inputs[j]
        # With l = `lower` and h = `height`: a step of f = l + h/2 from h/2 on, or one that falls.
        # ReLU(f) − ReLU(f − h) is 0 for f ≤ 0, h for f ≥ h, and rises between. A step of zone z
        # rises from z/4 to 3z/4, so over h = z/2 in the scale of its form: hence the factor 2h/z
        # below.
        upper, lower = sorted((inputs[j], inputs[k]), key=lambda form: form.constant)
        height = lower.constant - upper.constant
        need(np.array_equal(row, other) and height > 0, "the units of a step differ by its height")
        need(not {upper, lower} & self.cancelled.keys(), "no constant is hidden in a step")
        sign, rising = 1 if inputs[j] == lower else -1, upper + 3 * height / 2
        for form, falls in ((rising, False), (2 * height - rising, True)):
            for line in self.certificate.lines:
                atom = line.atom
                if isinstance(atom, StepFunction) and atom.form * (2 * height / atom.zone) == form:
                    conditions.of_step(self.circuit, atom, height, network, (j, k), "units")
                    step = self.line(atom)
                    steps = self.contents.readings.steps.setdefault(step.atoms[0], [])
                    steps.append((self.inputs[j], self.inputs[k]))
                    self.falling |= {*step.atoms} if falls else set()
                    return ((1 - step) if falls else step) * (height * sign)
        self.contents.readings.add([self.inputs[j], self.inputs[k]])
        return self.line(Relu(lower)) * sign - self.line(Relu(upper)) * sign


def added_up(parts: Iterable[Form], cancelled: dict[Form, Fraction] | None = None) -> Form:
    """Return a sum in which each line occurs once, and constants cancel only if that is noted."""
    listed = list(parts)
    form = total(listed)
    atoms = [atom for part in listed for atom in part.atoms]
    need(len(set(atoms)) == len(atoms), "a number must be added once")
    bottom, *bottoms = (
        math.lcm(*(x.denominator for x in (*each.factors.values(), each.constant)))
        for each in (form, *listed)
    )
    need(all(bottom % each == 0 for each in bottoms), "summands must be on the grid of their sum")
    lost = sum(abs(part.constant) for part in listed) - abs(form.constant)
    need(not lost or cancelled is not None, "no constant cancels")
    if lost and cancelled is not None:
        cancelled[form] = max(lost, cancelled.get(form, Fraction(0)))
    return form


def multiplied(pairs: Iterable[tuple[Form, Form]]) -> list[list[tuple[tuple[int, int], Fraction]]]:
    """Return query · key as polynomials: one for each pair with a varying query, one for the rest.

    Terms that do not depend on the key are left out. Of constants (−1) nothing cancels.
    """
    found: list[dict[tuple[int, int], Fraction]] = [{}]
    for query, key in pairs:
        into = found[0] if query.is_constant else {}
        found += [] if query.is_constant else [into]
        parts = [*query.terms, *[(-1, query.constant)] * bool(query.constant)]
        for (i, x), (j, y) in itertools.product(parts, key.terms):
            need(into.get((i, j), 0) * x * y >= 0, "no part of a score cancels")
            into[i, j] = into.get((i, j), Fraction(0)) + x * y
    return sorted(sorted(each.items()) for each in found if each)
