"""Whether a number format keeps every margin: a bound of the error of every number, atom by atom.

An error is bounded as it is; times D, the number of rows a mean is over, for numbers whose scale is
1/D; and, for numbers that are never negative and whose 0 is exactly 0, in relation to them. Means
and the sums of a form are bounded in any order; hidden units that end in one slot are taken to be
added one after the other, as the reference does. What is exact in the format, sums of whole numbers
or of other multiples of one power of two that its significand holds, has no error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from transformist.arithmetic import Floating, is_power_of_two
from transformist.bounds import float_format_of, mean_error
from transformist.compiler.answers import Accepted, Answer, Counted, Labelled, Measured
from transformist.compiler.circuit import Circuit, Embedded, Feature, Fetched, Kept, Relu, Step
from transformist.compiler.forms import Form
from transformist.compiler.heads import SCORES, At, Head, Match, Uniform
from transformist.compiler.temperatures import (
    INDEX_ERROR,
    MEAN_SCORE_ERROR,
    SCORE_ERROR,
    SHARES,
    inverse,
)
from transformist.language.node import Node
from transformist.laws import Bound


class MarginExceeded(Exception):
    """An error bound above what a use allows.

    Attributes:
        node: the subexpression.
        what: the use.
        error, allowed: in its units.

    """

    def __init__(self, node: Node | None, what: str, error: float, allowed: float) -> None:
        super().__init__(what)
        self.node, self.what, self.error, self.allowed = node, what, error, allowed


@dataclass(frozen=True)
class Errors:
    """How far an atom can be off.

    Attributes:
        absolute: as it is.
        scaled: times D.
        relative: in relation to it, if it is at least 0 and its 0 exactly 0; else infinite.
        silent: the kinds of rows at which it is exactly 0.

    """

    absolute: float
    scaled: float
    relative: float = math.inf
    silent: frozenset[int] = frozenset()


@dataclass(eq=False)
class Margins:
    """The errors of the atoms of a circuit in a format.

    Attributes:
        circuit: the atoms.
        sharpness: 1/τ of each head.
        a: the format.
        errors: of each atom.

    """

    circuit: Circuit
    sharpness: Mapping[Head, Fraction]
    a: Floating
    errors: list[Errors] = field(default_factory=list)

    @property
    def most(self) -> int:
        """The largest D."""
        return self.circuit.most_seen or 1

    @property
    def u(self) -> float:
        """The unit roundoff of the format."""
        return float(self.a.unit_roundoff)

    @property
    def w(self) -> float:
        """That of its accumulator."""
        return float(self.a.accumulator_roundoff)

    def size(self, form: Form) -> float:
        """Σ |factor| |atom| + |constant|, at the symbols or BOS."""
        total = magnitude(form.constant)
        for atom, factor in form.terms:
            most = self.circuit.laws[atom].size
            total += magnitude(factor) * magnitude(most) if most else 0.0
        return total

    def is_exact(self, form: Form) -> bool:
        """Whether the format computes it without an error, in any order of summation."""
        grid = self.circuit.grid(form)
        if grid is None or grid.counts or any(self.errors[atom].absolute for atom in form.atoms):
            return False
        whole = math.lcm(grid.c, self._at_bos(form))
        if whole & (whole - 1):
            return False
        c = magnitude(whole)
        fits = self.size(form) * c <= 2.0**self.a.precision
        return fits and c * self._divisor(form) * self.a.smallest <= 1

    def _at_bos(self, form: Form) -> int:
        """The denominator of what it is at BOS, where that is known, and where BOS stands alone."""
        if not self.circuit.bos:
            return 1
        at_bos = self.circuit.span_at_bos(form)
        known = Fraction(at_bos.lo).denominator if at_bos.is_point else 1
        return math.lcm(known, self.circuit.over_nothing(form).denominator)

    def rounding(self, form: Form) -> float:
        """How far the evaluation of a form can be off, its atoms as they are."""
        size, divisor = self.size(form), self._divisor(form)
        if max(2 * size, divisor) >= self.a.largest:
            return math.inf
        if self.is_exact(form):
            return 0.0
        underflow = self._underflow(form)
        if _is_a_power_of_two(form):
            return underflow if abs(form.terms[0][1]) < 1 else 0.0
        return self._relative(form) * size + underflow

    def crowding(self, form: Form) -> float:
        """What it costs to add up units of several atoms in one slot: a step has two large ones.

        Nothing where all that is added are multiples of one power of two that the format holds.
        """
        steps, sizes, c, is_dyadic = 0.0, 0.0, 1, True
        units, products = 0, False
        for number, factor in form.terms:
            atom, share = self.circuit.atoms[number], magnitude(factor)
            if not isinstance(atom, Relu | Step):
                continue
            units += 1
            products |= significant_bits(factor) > 1
            sizes += share * magnitude(self.circuit.laws[number].size)
            if isinstance(atom, Step):
                units += 1
                steps += share * magnitude(max(self.highest(number, atom), 0) * 2 / atom.zone)
            read = atom.form if isinstance(atom, Relu) else _scaled(atom)
            grid = self.circuit.grid(read)
            is_dyadic &= grid is not None and not grid.counts
            c = c if grid is None else math.lcm(c, grid.times(factor).c)
        if not steps or (units < 3 and not products):
            return 0.0
        exact = is_dyadic and not c & (c - 1) and (2 * steps + sizes) * c <= 2.0**self.a.precision
        if exact and not any(self.errors[atom].absolute for atom in form.atoms):
            return 0.0
        rounded = self.w * (2 * steps + sizes) if products else 0.0
        return (self.crowded(units, steps, sizes) + rounded) * (1 + 2**-10)

    def highest(self, _number: int, atom: Step) -> Bound:
        """How large what the units of a step read can be, before it is divided by half the zone."""
        return max(row.hi for row in self.circuit.rows(atom.form))

    def crowded(self, units: int, large: float, total: float) -> float:
        """As the reference adds them: beside a large one of a step there is `total` at the most."""
        return self.w * (large + units * total)

    def _underflow(self, form: Form) -> float:
        return 2 * (len(form.terms) + 1) * self.a.smallest * self._divisor(form)

    @staticmethod
    def _divisor(form: Form) -> float:
        """The most that a sum may be divided by where it is kept; no factor is larger."""
        return max(1.0, *(magnitude(factor) for _, factor in form.terms), 1.0)

    def error(self, form: Form) -> float:
        """How far a form can be off."""
        return self._inherited(form, "absolute") + self.crowding(form) + self.rounding(form)

    def _inherited(self, form: Form, which: str) -> float:
        """The errors of the atoms together, at the kind of row where they are the most."""
        parts = [
            (_times(f, getattr(self.errors[atom], which)), self.errors[atom].silent)
            for atom, f in form.terms
        ]
        everywhere: float = sum(error for error, silent in parts if not silent)
        kinds = range(len(self.circuit.alphabet) + self.circuit.bos)
        return everywhere + max(
            math.fsum(error for error, silent in parts if silent and kind not in silent)
            for kind in kinds
        )

    def scaled_error(self, form: Form) -> float:
        """How far a form can be off, times D."""
        own = self.crowding(form) + self.rounding(form)
        return self._inherited(form, "scaled") + own * self.most

    def relative_error(self, form: Form) -> float:
        """How far a sum can be off in relation to it, where no term is negative, and 0 exact."""
        negative = form.constant or any(factor < 0 for _, factor in form.terms)
        if negative or not self._is_normal(form):
            return math.inf
        inherited = max((self.errors[atom].relative for atom in form.atoms), default=0.0)
        if self.is_exact(form) and not self.crowding(form):
            return inherited
        least = magnitude(self.circuit.separation(form) or 0)
        crowding = self.crowding(form)
        crowded = crowding / least if crowding else 0.0
        return (1 + inherited) * (1 + self._relative(form)) - 1 + crowded

    def comparison_error(self, form: Form, at: Any) -> float:
        """How far a form can be off where it is at most `at`, which is compared with a threshold.

        Where no term is negative, those with an error in relation to them are off by a part of
        `at`, and only the others by as much anywhere.
        """
        terms = [(number, magnitude(factor)) for number, factor in form.terms]
        below = any(row.lo < 0 for atom, _ in terms for row in self.circuit.laws[atom].rows)
        if form.constant or below or any(factor < 0 for _, factor in form.terms):
            return math.inf
        kept = Form(tuple(t for t in form.terms if self.errors[t[0]].relative < math.inf))
        if not self._is_normal(kept):
            return math.inf
        share = max((self.errors[atom].relative for atom in kept.atoms), default=0.0)
        others = sum(
            factor * self.errors[atom].absolute
            for atom, factor in terms
            if self.errors[atom].relative == math.inf
        )
        others += self.crowding(form) + self._underflow(form)
        rounded = self._relative(form)
        parts = (1 + share) * (1 + rounded) - 1 + rounded  # of the form, and of the threshold
        return others * (1 + rounded) + parts * magnitude(at)

    def _is_normal(self, form: Form) -> bool:
        """Whether no part of it, nor of a mean of it, is so small that the format loses bits."""
        least = 2 * self.most * self.a.smallest / self.u
        separations = [
            magnitude(factor) * magnitude(self.circuit.separation(Form.atom(atom)) or 0)
            for atom, factor in form.terms
        ]
        return min(separations, default=math.inf) >= least

    def _relative(self, form: Form) -> float:
        """In relation to its terms: a sum is stored, or what a head brings, and each further head.

        Then it is read, and stored again. A factor that the format does not hold rounds as well.
        One number alone has been stored as it is.
        """
        terms = len(form.terms) + 2
        atoms = [self.circuit.atoms[atom] for atom in form.atoms]
        heads = len({atom.head for atom in atoms if isinstance(atom, Fetched)})
        weights = (*(factor for _, factor in form.terms), form.constant)
        rounded = any(significant_bits(weight) > self.a.precision for weight in weights)
        kept = max(heads, 1) if len(atoms) > 1 else 0
        stored = (kept + 1 + rounded) * self.u
        return terms * self.w / (1 - terms * self.w) + stored / (1 - stored)

    def mean_error(self, size: Any) -> float:
        """How far a mean of numbers of this size can be off, in any order of summation."""
        return mean_error(self.most, Fraction(size), self.a)

    def require(self, node: Node | None, what: str, error: float, allowed: Any) -> None:
        """Refuse an error that is not below what is allowed."""
        if not error < magnitude(allowed):
            raise MarginExceeded(node, what, error, magnitude(allowed))


def magnitude(value: Any) -> float:
    """|x| in float64; infinite where that is too large for it."""
    try:
        return abs(float(value))
    except OverflowError:
        return math.inf


def significant_bits(value: Fraction) -> float:
    """How many bits the significand of a number has; infinite where it has no end.

    Example:
        >>> significant_bits(Fraction(5, 8)), significant_bits(Fraction(1, 3))
        (3, inf)

    """
    if value.denominator & (value.denominator - 1):
        return math.inf
    odd = abs(value.numerator)
    return (odd // (odd & -odd)).bit_length() if odd else 0


def _times(factor: Fraction, error: float) -> float:
    return magnitude(factor) * error if error else 0.0


def _is_a_power_of_two(form: Form) -> bool:
    """Whether the form is an atom times a power of two."""
    return not form.constant and len(form.terms) == 1 and is_power_of_two(abs(form.terms[0][1]))


def require_margins(
    circuit: Circuit, sharpness: Mapping[Head, Fraction], answer: Answer, arithmetic: str
) -> None:
    """Refuse a circuit whose margins a format does not keep.

    Nothing is asked where nothing rounds, nor where there is no longest input.

    Raises:
        MarginExceeded: with the first use whose error may be too large.

    """
    a = float_format_of(arithmetic)
    if a is None or circuit.max_length is None:
        return
    margins = Margins(circuit, sharpness, a)
    for atom, origin in zip(circuit.atoms, circuit.origins, strict=True):
        margins.errors.append(ERRORS[type(atom)](margins, atom, origin))
    REQUIRED[type(answer)](margins, answer)


def _embedded(margins: Margins, atom: Embedded, _origin: Node | None) -> Errors:
    if max(map(abs, atom.values)) >= margins.a.largest:
        return Errors(math.inf, math.inf)
    gaps = [abs(value - _stored(value, margins.a)) for value in atom.values]
    error = magnitude(max(gaps))
    relative = max(
        magnitude(gap / value) if value > 0 else math.inf if value < 0 else 0.0
        for gap, value in zip(gaps, atom.values, strict=True)
    )
    return Errors(error, error * margins.most, relative)


def _stored(value: Fraction, a: Floating) -> Fraction:
    return Fraction(float(a.numbers(a.array([value]))[0]))


def _feature(margins: Margins, atom: Feature, _origin: Node | None) -> Errors:
    law = margins.circuit.laws[margins.circuit.number(atom)]
    size = float(law.rows[0].size)
    whole = law.grid is not None and not law.grid.counts
    if whole and size <= 2**margins.a.precision:
        return Errors(0.0, 0.0)
    return Errors(2 * margins.u * size, 2 * margins.u * size * margins.most)


def _relu(margins: Margins, atom: Relu, _origin: Node | None) -> Errors:
    error = margins.error(atom.form)
    rows = margins.circuit.rows(atom.form)
    silent = frozenset(kind for kind, row in enumerate(rows) if row.hi < -error)
    return Errors(error, margins.scaled_error(atom.form), silent=silent)


def _step(margins: Margins, atom: Step, origin: Node | None) -> Errors:
    """0 is exact; 1 is the difference of two numbers that round."""
    shifted = atom.form - atom.zone / 4
    error = min(margins.error(shifted), margins.comparison_error(atom.form, atom.zone))
    margins.require(origin, "the error of a comparison", error, atom.zone / 4)
    scaled = _scaled(atom)
    error = 2 * margins.rounding(scaled) + (0 if margins.is_exact(scaled) else 2 * margins.u)
    return Errors(error, error * margins.most, error)


def _scaled(atom: Step) -> Form:
    """What the second of the two units of a step reads."""
    return atom.form * (2 / atom.zone) - Fraction(3, 2)


def _kept(margins: Margins, atom: Kept, _origin: Node | None) -> Errors:
    """A sum, of which what was there has been stored before."""
    form = atom.form
    stored = 0.0 if margins.is_exact(form) else margins.u * margins.size(form)
    error = margins.error(form) + stored
    return Errors(error, margins.scaled_error(form) + stored * margins.most)


def _fetched(margins: Margins, atom: Fetched, origin: Node | None) -> Errors:
    return FETCHED[type(atom.head)](margins, atom.head, atom.value, origin)


def _mean(margins: Margins, _head: Uniform, value: Form, origin: Node | None) -> Errors:
    """The mean of BOS is its weight 1/D, rounded; D is counted exactly in the accumulator."""
    size = margins.size(value)
    counted = min(margins.a.largest, 1 / margins.w)
    margins.require(origin, "the number of positions of a mean", margins.most, counted)
    error = margins.mean_error(size)
    inherited = margins.error(value)
    scaled = error * margins.most
    if margins.circuit.is_bos(value):
        scaled = margins.u if margins.u == margins.w else 4 * margins.u
    one = margins.mean_error(1)
    relative = (1 + margins.relative_error(value)) * (1 + one) - 1
    return Errors(error + inherited, scaled + inherited * margins.most, relative)


def _match(margins: Margins, head: Match, value: Form, origin: Node | None) -> Errors:
    keys, queries = (_by_kind(margins, forms) for forms in (head.keys, head.queries))
    scale = magnitude(head.scale)
    largest = scale * max(_dot(key, query) for key in keys for query in queries)
    largest += magnitude(margins.circuit.longest) if head.place is not None else 0.0
    _require_range(margins, head, 2 * largest, origin)
    inexact = _product_error(margins, head, keys, queries) * scale
    whole = all(margins.is_exact(form) for form in head.forms)
    parts = math.prod(_bottom(margins.circuit, forms) for forms in (head.keys, head.queries))
    held = largest * parts * _bits(margins.sharpness[head]) <= 2**margins.a.precision
    if not (whole and held):
        inexact += (len(head.keys) + 4) * (margins.w + margins.u) * largest
    allowed: Any = SCORE_ERROR
    if head.choose == "mean":
        allowed = MEAN_SCORE_ERROR if margins.circuit.weighting == "softmax" else Fraction(0)
    elif head.place is None and head.choose != "any":  # equal scores, of which the last is chosen
        allowed = Fraction(0)
    if inexact:
        margins.require(origin, "the error of a selection", inexact, allowed)
    return _chosen(margins, head, value, inexact)


def _bottom(circuit: Circuit, forms: tuple[Form, ...]) -> int:
    """The common denominator of numbers that have one, as halves have."""
    return math.lcm(*(grid.c for form in forms if (grid := circuit.grid(form)) is not None))


def _by_kind(margins: Margins, forms: tuple[Form, ...]) -> list[list[float]]:
    """The largest magnitudes of forms, at each kind of row."""
    rows = [margins.circuit.rows(form) for form in forms]
    kinds = range(len(margins.circuit.alphabet) + margins.circuit.bos)
    return [[magnitude(row[kind].size) for row in rows] for kind in kinds]


def _dot(x: list[float], y: list[float]) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True))


def _product_error(
    margins: Margins, head: Match, keys: list[list[float]], queries: list[list[float]]
) -> float:
    """Of Σ key · query, from the errors of each and the largest magnitudes of the others."""
    key_errors = [margins.error(form) for form in head.keys]
    query_errors = [margins.error(form) for form in head.queries]
    of_queries = max(_dot(query_errors, key) for key in keys)
    of_keys = max(_dot(key_errors, query) for query in queries)
    return of_queries + of_keys + _dot(key_errors, query_errors)


def _at(margins: Margins, head: At, value: Form, origin: Node | None) -> Errors:
    longest = float(margins.circuit.longest)
    error = margins.error(head.index)
    if not head.unit.is_constant:
        error = margins.scaled_error(head.index) + longest**2 * margins.scaled_error(head.unit)
    most = 1 if head.unit.is_constant else margins.most
    scores = longest * max(longest, margins.size(head.index) * most)  # q beyond N counts as well
    if error or 3 * scores * _bits(margins.sharpness[head]) > 2**margins.a.precision:
        stored = 2 * margins.u if margins.u > margins.w else 0.0
        error += (4 * margins.w + stored) * scores
    error += 0 if longest**2 <= 2**margins.a.precision else math.inf
    _require_range(margins, head, 4 * scores, origin)
    margins.require(origin, "the error of a position that is looked up", error, INDEX_ERROR)
    return _chosen(margins, head, value, 0.0)


def _require_range(margins: Margins, head: Match | At, largest: float, origin: Node | None) -> None:
    """Refuse scores, and weights of queries, that are too large, times 1/τ and √d_key."""
    pairs = SCORES[type(head)](head)
    weights = [magnitude(factor) for query, _ in pairs for _, factor in query.terms]
    scale = magnitude(margins.sharpness[head]) * 2 * max(len(pairs), 1) ** 0.5
    size = max(largest, *weights, 0.0) * scale
    margins.require(origin, "the size of scores", size, margins.a.largest)


def _bits(sharpness: Fraction) -> float:
    """By how much it can lengthen the significand of a whole number."""
    bits = significant_bits(sharpness)
    return bits if bits == math.inf else 2.0**bits


def _chosen(margins: Margins, head: Match | At, value: Form, spread: float) -> Errors:
    """What a head fetches from one place, or from all that match."""
    circuit = margins.circuit
    rows = circuit.rows(value)
    diameter = float(max(row.hi for row in rows) - min(row.lo for row in rows))
    size = margins.size(value)
    error = margins.error(value)
    if circuit.weighting == "softmax":
        sharpness = float(margins.sharpness[head])
        error += SHARES[type(head)](circuit, head, sharpness) * diameter
        if isinstance(head, Match) and head.choose == "mean":
            error += 2 * spread * sharpness * diameter
        terms = min(float(margins.most), _heavy(margins, head, sharpness))
        error += math.expm1(7 * margins.u + 2 * (terms + 2) * margins.w) * size
        error += 3 * margins.most * margins.a.smallest
    elif circuit.weighting == "average-hard" and _is_a_mean(head):
        error += margins.mean_error(size)
    return Errors(error, error * margins.most)


def _is_a_mean(head: Match | At) -> bool:
    """Whether equal scores are meant: one of several that are alike is their mean."""
    return isinstance(head, Match) and head.choose in ("mean", "any")


def _heavy(margins: Margins, head: Match | At, sharpness: float) -> float:
    """How many weights can round a sum: adding a number e ≥ 0 is off by at most e.

    The weights are at most e^(−βm/4), m ≥ 1, at most two for an m, with β = 1/τ, of an index in
    the unit w at least 1/(τ D); those below the roundoff together have less than 2/(1 − e^(−β/4))
    of it, which the ten more terms cover for β ≥ 1.
    """
    blunt = sharpness < inverse(margins.circuit, head)
    if blunt or (isinstance(head, Match) and head.choose == "mean"):
        return math.inf
    return 8 * math.log(1 / margins.w) * inverse(margins.circuit, head) / sharpness + 10


FETCHED: Mapping[type[Any], Callable[[Margins, Any, Form, Node | None], Errors]] = {
    Uniform: _mean,
    Match: _match,
    At: _at,
}
"""The error of what each kind of head fetches."""

ERRORS: Mapping[type[Any], Callable[[Margins, Any, Node | None], Errors]] = {
    Embedded: _embedded,
    Feature: _feature,
    Relu: _relu,
    Step: _step,
    Fetched: _fetched,
    Kept: _kept,
}
"""The error of each kind of atom."""


def _accepted(margins: Margins, answer: Accepted) -> None:
    margins.require(None, "the error of the answer", margins.error(answer.form), answer.margin)


def _labelled(margins: Margins, answer: Labelled) -> None:
    error = max((margins.error(form) for form in answer.forms), default=0.0)
    margins.require(None, "the error of the answer", 2 * error, answer.gap)


def _counted(margins: Margins, answer: Counted) -> None:
    require_count(margins, answer.y, answer.w, answer.scale, answer.least, answer.most)


def require_count(margins: Margins, y: Form, w: Form, scale: int, least: int, most: int) -> None:
    """2 k y − k² w of neighbouring k, in units of w/scale²: D y and D w are off, and round.

    Of both, the products, their sum and what is stored: 8w k²; 8u k² more where the format is
    narrower than its accumulator, and does not hold the weights.
    """
    largest = max(most, -least, 1)
    rounding = 8 * margins.w + (8 * margins.u if margins.u > margins.w else 0.0)
    error = 2 * scale * margins.scaled_error(y) + (2 * largest + 1) * margins.scaled_error(w)
    error += rounding * largest**2
    margins.require(None, "the weights of the answer, a count", largest**2, margins.a.largest)
    margins.require(None, "the error of the answer, a count", error, 1)


def _measured(margins: Margins, answer: Measured) -> None:
    error = answer.scale * margins.scaled_error(answer.form)
    margins.require(None, "the error of the answer, a mean", error, 1 / 2)


REQUIRED: Mapping[type[Any], Callable[[Margins, Any], None]] = {
    Accepted: _accepted,
    Labelled: _labelled,
    Counted: _counted,
    Measured: _measured,
}
"""What each kind of answer asks."""
