"""Whether a certificate follows from weights: another reading of them than the one that found it.

The lines of a certificate say what every number is. Here each is confirmed from the weights, by
multiplying out what they compute: scores as polynomials in the lines, hidden units one by one. What
then follows, the ranges, grids and errors of lines and the margins, follows by the laws (`Circuit`,
`Recorded`, `READ_OUTS`), which are all that this shares with what finds certificates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from transformist.arithmetic import Floating, number_system
from transformist.compiler.circuit import Circuit, Embedded, Feature, Fetched, Kept, Relu, Step
from transformist.compiler.forms import Form, total
from transformist.compiler.heads import BEHIND, SCORES, At, Head, Match, Uniform, rows_under
from transformist.errors import InvalidValue
from transformist.laws import Grid
from transformist.model import Attention, FeedForward, PositionFunctions, Transformer
from transformist.model import rationals as exactly
from transformist.verify.certificate.read_outs import READ_OUTS
from transformist.verify.certificate.reading import roundings, separation
from transformist.verify.certificate.recorded import Recorded
from transformist.verify.certificate.statement import ORDERS, Certificate, Units


class Unproved(InvalidValue):
    """A certificate that does not follow from the weights."""


def check_certificate(model: Transformer, certificate: Certificate) -> None:
    """Check that a certificate which holds follows from the weights of a model.

    Raises:
        Unproved: with the first thing that does not follow.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=100)
        >>> check_certificate(model, tf.certify(model))

    """
    need(certificate.holds, "it holds")
    try:
        Reading(model, certificate).follow()
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, Unproved):
            raise
        need(False, f"its lines are those of the model ({type(error).__name__}: {error})")


def need(truth: Any, what: str) -> None:
    """Refuse what does not follow."""
    if not truth:
        raise Unproved(
            f"a certificate follows from the weights: {what}",
            received="one of which this is not so",
            where="check_certificate",
            remedy="certify the model again",
        )


class Reading:
    """A model read along the lines of a certificate, each of which it has to compute."""

    def __init__(self, model: Transformer, certificate: Certificate) -> None:
        self.model, self.certificate = model, certificate
        front = model.embedding.front
        plain = not model.embedding.back and len(front) < 2 and model.final_norm is None
        norms = [norm for each in model.layers for norm in (*each.pre_norms, *each.post_norms)]
        need(plain and not any(norms), "inputs stand behind BOS or nothing, and there are no norms")
        need(certificate.max_length <= (model.max_length or math.inf), "N is within the model's")
        weighting, assumed = certificate.weighting, {each.line for each in certificate.assumes}
        self.circuit = Circuit(model.alphabet, bool(front), certificate.max_length, weighting)
        for number, line in enumerate(certificate.lines):
            rows = line.law.rows if number in assumed else None
            self.circuit.add(line.atom, line.name, rows=rows)
        self.sharpness: dict[Head, Fraction] = {}
        self.hidden: dict[Form, Fraction] = {}
        self.falling, self.met = set[int](), set[int]()
        self.state = self.embedded()
        for number, layer in enumerate(model.layers):
            added = [[Form()] for _ in self.state]
            for head, kind in zip(layer.heads, certificate.heads[number], strict=True):
                self.attend(head, kind, added)
            self.add(added)
            if layer.feed_forward is not None:
                self.add(self.units(layer.feed_forward, certificate.units[number]))

    def follow(self) -> None:
        """The laws, for what the weights have been seen to compute, give what is said."""
        said, read_out = self.certificate, self.model.read_out
        a: Any = number_system(said.arithmetic)
        need(isinstance(a, Floating) and said.order in ORDERS, "it is for a format and an order")
        forms = self.rows(read_out.W_out, read_out.b_out)
        rounds, hidden, falling = roundings(self.model, a), self.hidden, self.falling
        margins = Recorded(self.circuit, self.sharpness, a, [], said.order, rounds, hidden, falling)
        for number, line in enumerate(said.lines):
            margins.follow(number)
            laws = (self.circuit.laws[number], margins.errors[number], number in self.falling)
            need(laws == (line.law, line.errors, line.falls), f"line {number}, {line.name}")
            need(number in self.met, f"line {number}, {line.name}, is a number of the model")
        margins.place = "read-out"
        is_told = READ_OUTS[type(read_out)](margins, self.circuit, read_out, forms)
        need(is_told or any(each.line is None for each in said.assumes), "one answer is best")
        need(all(each.share > 0 for each in margins.demands), "every margin is kept")
        found = tuple(margins.demands)
        need(found == said.demands[: len(said.demands) - (not is_told)], "its margins")

    def line(self, atom: Any) -> Form:
        """The line of what the weights compute, which is made of lines that were met before."""
        number = self.circuit.number(atom)
        need(self.met.issuperset(each for form in atom.reads for each in form.atoms), "an order")
        self.met.add(number)
        return Form.atom(number)

    def rows(self, matrix: Any, shift: Any) -> list[Form]:
        """The rows of W z + b."""
        found = []
        for row, constant in zip(exactly(matrix), exactly(shift), strict=True):
            parts = [self.state[slot] * row[slot] for slot in np.flatnonzero(row)]
            found.append(added_up([*parts, Form.of(constant)], self.hidden))
        return found

    def embedded(self) -> list[Form]:
        """Before the first layer: a number for each symbol, and a function of the position."""
        embedding = self.model.embedding
        order = [embedding.symbols.index(s) for s in (*self.model.alphabet, *embedding.front)]
        names = getattr(embedding.positions or self, "names", (None,) * self.model.width)
        need(isinstance(embedding.positions, PositionFunctions | None), "positions have names")
        state = []
        for column, name in zip(exactly(embedding.vectors)[order].T, names, strict=True):
            same, values = len(set(column)) == 1, tuple(map(Fraction, column))
            form = Form.of(values[0]) if same else self.line(Embedded(values))
            state.append(form if name is None else form + self.line(Feature(name)))
        return state

    def add(self, added: list[list[Form]]) -> None:
        """The residual connection; a slot is empty before or after, or its sum has a line."""
        for slot, parts in enumerate(added):
            old, new = self.state[slot], added_up(parts)
            is_emptied = new == -old and sum(part != Form() for part in parts) == 1
            form = Form() if is_emptied else added_up([old, new])
            is_sum = Form() not in (old, new, form)
            self.state[slot] = self.line(Kept(form)) if is_sum else form

    def attend(self, head: Attention, kind: Head, added: list[list[Form]]) -> None:
        """A head has the scores of its kind, times a positive number, and fetches its values."""
        need(kind.mask == head.mask, "a head has its mask")
        queries, keys = self.rows(head.W_Q, head.b_Q), self.rows(head.W_K, head.b_K)
        values, size = self.rows(head.W_V, head.b_V), len(queries)
        need(not self.hidden.keys() & {*queries, *keys, *values}, "no constant is hidden in a head")
        pairs = [(q, k) for q, k in zip(queries, keys, strict=True) if q != Form()]
        found, wanted = multiplied(pairs), multiplied(SCORES[type(kind)](kind))
        weights = [sum(abs(x) for part in each for _, x in part) for each in (found, wanted)]
        ratio = Fraction(weights[0], weights[1] or 1) if wanted else Fraction(1)
        scaled = [[(each, x * ratio) for each, x in part] for part in wanted]
        need(found == scaled and ratio, "scores are those of the kind")
        told = all(not key.is_constant for _, key in pairs)
        fits = told and head.weighting == self.circuit.weighting
        need(fits or not wanted, "all scores are told, of heads of one weighting")
        root = Fraction(math.isqrt(size << 80) + 1, 1 << 40)
        root = Fraction(math.isqrt(size)) if size in (4**k for k in range(16)) else root
        sharpness = ratio / root if wanted else ratio
        need(self.sharpness.setdefault(kind, sharpness) == sharpness, "heads have one temperature")
        KINDS[type(kind)](self.circuit, head, kind, values, root)
        at_bos = [self.circuit.span_at_bos(value) for value in values]
        need(head.mask not in BEHIND or all(x.is_point for x in at_bos), "values at BOS are known")
        lines = [self.line(Fetched(kind, value)) for value in values]
        output = np.eye(len(values)) if head.W_O is None else exactly(head.W_O)
        for slot, (row, constant) in enumerate(zip(output, exactly(head.b_O), strict=True)):
            added[slot].extend(lines[m] * Fraction(row[m]) for m in np.flatnonzero(row))
            added[slot].append(Form.of(constant))

    def units(self, network: FeedForward, told: tuple[Units, ...]) -> list[list[Form]]:
        """What each slot gets: every unit is in one of the groups, which add what they say."""
        need(network.activation == "relu", "networks are of ReLUs")
        inputs, columns = self.rows(network.W_1, network.b_1), exactly(network.W_2).T
        numbers = sorted(unit for each in told for unit in each.units)
        need(numbers == list(range(len(inputs))), "every hidden unit is told of once")
        added = [[Form.of(constant)] for constant in exactly(network.b_2)]
        for each in told:
            first, *second = each.units
            form = self.two(network, inputs, first, *second) if second else None
            form = form or self.line(Relu(inputs[first]))
            need(form == each.added, "units add what is told")
            for slot in np.flatnonzero(columns[first]):
                part = form * Fraction(columns[first][slot])
                own = network.W_1[first][slot] != 0 and abs(columns[first][slot]) == 1
                need(own or part != -self.state[slot], "a slot is emptied by what it holds")
                added[slot].append(part)
        return added

    def two(self, network: FeedForward, inputs: list[Form], j: int, k: int) -> Form:
        """ReLU(x) − ReLU(−x), x of a slot; ReLU(x + h) − ReLU(x), h times a step, or 1 less."""
        need(np.array_equal(network.W_2[:, j], -network.W_2[:, k]), "two units are a difference")
        row, other = network.W_1[j], network.W_1[k]
        if np.array_equal(row, -other):
            alone = np.count_nonzero(row) == 1 and abs(row).max() == 1
            need(alone and not network.b_1[[j, k]].any(), "two halves are those of a slot")
            return inputs[j]
        upper, lower = sorted((inputs[j], inputs[k]), key=lambda form: form.constant)
        height = lower.constant - upper.constant
        need(np.array_equal(row, other) and height > 0, "the units of a step differ by its height")
        need(not {upper, lower} & self.hidden.keys(), "no constant is hidden in a step")
        sign, rising = 1 if inputs[j] == lower else -1, upper + 3 * height / 2
        for form, falls in ((rising, False), (2 * height - rising, True)):
            for line in self.certificate.lines:
                atom = line.atom
                if isinstance(atom, Step) and atom.form * (2 * height / atom.zone) == form:
                    least, step = separation(self.circuit, atom.form), self.line(atom)
                    need(least and least >= atom.zone, "a step has its zone between its values")
                    self.falling |= {*step.atoms} if falls else set()
                    return ((1 - step) if falls else step) * (height * sign)
        return self.line(Relu(lower)) * sign - self.line(Relu(upper)) * sign


def added_up(parts: Iterable[Form], hidden: dict[Form, Fraction] | None = None) -> Form:
    """The sum, in which no line cancels, and no constant but what is noted."""
    listed = list(parts)
    form = total(listed)
    whole, *plain = (
        Form(tuple((k, abs(f)) for k, f in x.terms), abs(x.constant)) for x in (form, *listed)
    )
    need(total(plain).terms == whole.terms, "nothing cancels")
    cancelled = total(plain).constant - whole.constant
    need(not cancelled or hidden is not None, "no constant cancels")
    if cancelled and hidden is not None:
        hidden[form] = max(cancelled, hidden.get(form, Fraction(0)))
    return form


def multiplied(pairs: Iterable[tuple[Form, Form]]) -> list[list[tuple[tuple[int, int], Fraction]]]:
    """Query · key as polynomials, one for each pair whose query is not constant, one for the rest.

    What does not depend on the key is left out. Of constants (−1) nothing cancels.
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


def _mean(_c: Circuit, head: Attention, _k: Uniform, _v: list[Form], _r: Fraction) -> None:
    need(head.weighting in ("softmax", "average-hard"), "a mean is of all that are seen")


def _match(c: Circuit, head: Attention, kind: Match, values: list[Form], root: Fraction) -> None:
    forms = (*kind.keys, *kind.queries)
    need(all(c.is_whole(form) for form in forms), "keys and queries are whole numbers")
    at_bos = [c.span_at_bos(key) for key in kind.keys] if head.mask in BEHIND else []
    need(all(x.is_point and Fraction(x.lo).denominator == 1 for x in at_bos), "at BOS too")
    if kind.place is not None:
        ((number, factor),) = kind.place.terms
        units: dict[Any, Any] = {Feature("i"): 1, Feature("i/n"): c.longest}
        need(factor == units.get(c.atoms[number]), "the place is the position, or N of its share")
        low = [row.lo for form in forms for row in c.rows(form)]
        beneath = min(low, default=0) >= 0 and all(c.rows(key)[-1].hi == 0 for key in kind.keys)
        is_last = kind.choose == "rightmost" and beneath
        extra = c.bos and head.mask != "strict-past" and not is_last
        need(not forms or kind.scale >= c.longest + extra, "matches outweigh the place")
        need(kind.choose in ("leftmost", "rightmost"), "the place chooses")
    elif kind.choose in ("leftmost", "rightmost"):
        need(head.weighting == f"{kind.choose}-hard", "of several the weighting chooses")
    elif kind.choose == "any":
        one = len(kind.keys) == 1 and kind.queries[0].is_constant and c.weighting == "average-hard"
        alike = {v.direction for v in (*values, *kind.keys) if v.terms}
        need(one and len(alike) == 1, "all that match have the same value")
    else:
        need(head.weighting in ("softmax", "average-hard"), "a mean is of all that match")
        need(root.denominator == 1, "√d_key is exact")


def _at(c: Circuit, _h: Attention, kind: At, _values: list[Form], _root: Fraction) -> None:
    for form, name in ((kind.place, "i"), (kind.square, "i^2")):
        need(form == Form.atom(c.number(Feature(name))), "keys are the place and its square")
    counts = frozenset[str]()
    if kind.unit != Form.of(1):
        atom: Any = c.atoms[kind.unit.atoms[0]]
        need(kind.unit == Form.atom(kind.unit.atoms[0]) and c.is_bos(atom.value), "the unit is 1/D")
        need(isinstance(atom.head, Uniform), "the unit is a mean")
        counts = frozenset({rows_under(atom.head.mask)})
    need(c.grid(kind.index) == Grid(1, counts), "what is looked up is whole, in the unit")


KINDS: Any = {Uniform: _mean, Match: _match, At: _at}  # what laws of each kind presuppose
