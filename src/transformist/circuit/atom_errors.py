"""How far a format can be off each kind of atom, and the margins that steps and heads ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from transformist.arithmetic import Floating
from transformist.circuit.atoms import Embedded, Fetched, Kept, PositionFeature, Relu, StepFunction
from transformist.circuit.circuit import Circuit
from transformist.circuit.forms import Form
from transformist.circuit.heads import SCORES, At, Match, Uniform
from transformist.circuit.margins import Errors, Margins, magnitude, significant_bits
from transformist.circuit.score_errors import at_scores, scores
from transformist.circuit.shares import (
    INDEX_ERROR,
    MEAN_SCORE_ERROR,
    SCORE_ERROR,
    SHARES,
    scale_divisor,
)


def _embedded(margins: Margins, atom: Embedded, _number: int) -> Errors:
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


def _feature(margins: Margins, atom: PositionFeature, _number: int) -> Errors:
    law = margins.circuit.laws[margins.circuit.number(atom)]
    size = float(law.rows[0].size)
    whole = law.grid is not None and not law.grid.counts
    if whole and size <= 2**margins.a.precision:
        return Errors(0.0, 0.0)
    return Errors(2 * margins.u * size, 2 * margins.u * size * margins.most)


def _relu(margins: Margins, atom: Relu, _number: int) -> Errors:
    error = margins.error(atom.form)
    rows = margins.circuit.rows(atom.form)
    silent = frozenset(kind for kind, row in enumerate(rows) if row.hi < -error)
    return Errors(error, margins.scaled_error(atom.form), silent=silent)


def _step(margins: Margins, atom: StepFunction, number: int) -> Errors:
    """0 is exact; 1 is the difference of two numbers that round."""
    error = margins.step_error(number, atom.zone, atom.zone / 4)
    margins.require(number, "the error of a comparison", error, atom.zone / 4)
    error = margins.step_rounding(number)
    falls = number in margins.falling  # then 0 is the difference of two numbers that round
    return Errors(error, error * margins.most, math.inf if falls else error)


def _kept(margins: Margins, atom: Kept, _number: int) -> Errors:
    """A sum, of which what was there has been stored before."""
    return Errors(margins.error(atom.form), margins.scaled_error(atom.form))


def _fetched(margins: Margins, atom: Fetched, number: int) -> Errors:
    errors = FETCHED[type(atom.head)](margins, atom.head, atom.value, number)
    apart = margins.order.apart(margins.most, margins.a)
    if not apart:
        return errors
    size = apart * margins.reach(atom.value)
    least = magnitude(margins.circuit.separation(Form.atom(number)) or 0)
    return replace(
        errors,
        absolute=errors.absolute + size,
        scaled=errors.scaled + size * margins.most,
        relative=errors.relative + size / least if least else math.inf,
    )


def _mean(margins: Margins, _head: Uniform, value: Form, number: int) -> Errors:
    """The mean of BOS is its weight 1/D, rounded; D is counted exactly in the accumulator."""
    size = margins.reach(value)
    counted = min(margins.a.largest, 1 / margins.w)
    margins.require(number, "the number of positions of a mean", margins.most, counted)
    error = margins.mean_error(size)
    inherited = margins.error(value)
    scaled = error * margins.most
    if margins.circuit.is_bos(value):
        scaled = margins.u if margins.u == margins.w else 4 * margins.u
        scaled += 2 * margins.most * margins.a.smallest
    one = margins.mean_error(1)
    relative = (1 + margins.relative_error(value)) * (1 + one) - 1
    if relative < math.inf:  # and what the products, and the result, lose by underflow
        least = magnitude(margins.circuit.separation(value) or 0) / margins.most
        lost = margins.a.smallest + margins.most * margins.a.smallest_partial
        relative += lost / least if least else math.inf
    return Errors(error + inherited, scaled + inherited * margins.most, relative)


def _match(margins: Margins, head: Match, value: Form, number: int) -> Errors:
    largest, inexact, divided = _match_scores(margins, head)
    _require_range(margins, head, 2 * largest, number)
    alone = head.place is None and head.choose not in ("any", "mean")
    allowed: Any = SCORE_ERROR
    if head.choose == "mean":
        allowed = MEAN_SCORE_ERROR
    if divided:  # equal scores stay equal, others apart
        margins.require(number, "the error of a quotient of scores", divided, allowed)
    hard = margins.circuit.weighting != "softmax"
    if alone or (head.choose == "mean" and hard):  # equal scores, all or one of which are chosen
        allowed = Fraction(0)
    if inexact:
        margins.require(number, "the error of a selection", inexact + divided, allowed)
    return _chosen(margins, head, value, inexact)


def _match_scores(margins: Margins, head: Match) -> tuple[float, float, float]:
    """How large scores are, how far they can be off, and as far as quotients of exact ones can be.

    All are in units of scores.
    """
    if margins.readings is not None:
        found = [scores(margins, head, each) for each in margins.readings.scores[head]]
        return (*map(max, zip(*found, strict=True)),)
    keys, queries = (_by_kind(margins, forms) for forms in (head.keys, head.queries))
    scale = magnitude(head.scale)
    largest = scale * max(_dot(key, query) for key in keys for query in queries)
    largest += magnitude(margins.circuit.longest) if head.place is not None else 0.0
    inexact = _product_error(margins, head, keys, queries) * scale
    whole = all(margins.is_exact(form) for form in head.forms)
    parts = math.prod(_bottom(margins.circuit, forms) for forms in (head.keys, head.queries))
    held = largest * parts * _bits(margins.sharpness[head]) <= 2**margins.a.precision
    if not (whole and held):
        inexact += (len(head.keys) + 4) * (margins.w + margins.u) * largest
    return largest, inexact, 0.0


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


def _at(margins: Margins, head: At, value: Form, number: int) -> Errors:
    longest = float(margins.circuit.longest)
    most = 1 if head.unit.is_constant else margins.most
    scores = longest * max(longest, margins.size(head.index) * most)  # q beyond N counts as well
    if margins.readings is not None:
        found = [at_scores(margins, head, each) for each in margins.readings.scores[head]]
        error = max(found)
    else:
        error = margins.error(head.index)
        if not head.unit.is_constant:
            error = margins.scaled_error(head.index)
            error += longest**2 * margins.scaled_error(head.unit)
        if error or 3 * scores * _bits(margins.sharpness[head]) > 2**margins.a.precision:
            stored = 2 * margins.u if margins.u > margins.w else 0.0
            error += (4 * margins.w + stored) * scores
        error += 0 if longest**2 <= 2**margins.a.precision else math.inf
    _require_range(margins, head, 4 * scores, number)
    margins.require(number, "the error of a position that is looked up", error, INDEX_ERROR)
    return _chosen(margins, head, value, 0.0)


def _require_range(margins: Margins, head: Match | At, largest: float, number: int) -> None:
    """Refuse scores, and weights of queries, that are too large, times 1/τ and √d_key."""
    pairs = SCORES[type(head)](head)
    weights = [magnitude(factor) for query, _ in pairs for _, factor in query.terms]
    scale = magnitude(margins.sharpness[head]) * 2 * max(len(pairs), 1) ** 0.5
    size = max(largest, *weights, 0.0) * scale
    margins.require(number, "the size of scores", size, margins.a.largest)


def _bits(sharpness: Fraction) -> float:
    """By how much it can lengthen the significand of a whole number."""
    bits = significant_bits(sharpness)
    return bits if bits == math.inf else 2.0**bits


def _chosen(margins: Margins, head: Match | At, value: Form, spread: float) -> Errors:
    """What a head fetches from one place, or from all that match."""
    circuit = margins.circuit
    rows = circuit.rows(value)
    diameter = float(max(row.hi for row in rows) - min(row.lo for row in rows))
    size = margins.reach(value)
    error = margins.error(value)
    if circuit.weighting == "softmax":
        # A difference m of scores is rounded, to m (1 − u) at least: m² (1 − u) − 3m/4, of which
        # (1 − 4u) m/4 is left, and m (1 − u) − 1/2, of which (1 − 2u) m/2 is.
        sharpness = float(margins.sharpness[head]) * (1 - 4 * margins.u)
        if not (sharpness > 0 and error < math.inf):
            return Errors(math.inf, math.inf)
        error += SHARES[type(head)](circuit, head, sharpness) * diameter
        if isinstance(head, Match) and head.choose == "mean":
            error += 2 * spread * float(margins.sharpness[head]) * diameter
        terms = min(float(margins.most), _heavy(margins, head, sharpness))
        error += math.expm1(7 * margins.u + 2 * (terms + 2) * margins.w) * size
        error += 3 * margins.most * margins.a.smallest * max(size, 1.0)
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
    blunt = sharpness < scale_divisor(margins.circuit, head)
    if blunt or (isinstance(head, Match) and head.choose == "mean"):
        return math.inf
    return 8 * math.log(1 / margins.w) * scale_divisor(margins.circuit, head) / sharpness + 10


FETCHED: Mapping[type[Any], Callable[[Margins, Any, Form, int], Errors]] = {
    Uniform: _mean,
    Match: _match,
    At: _at,
}
"""The error of what each kind of head fetches."""

ERRORS: Mapping[type[Any], Callable[[Margins, Any, int], Errors]] = {
    Embedded: _embedded,
    PositionFeature: _feature,
    Relu: _relu,
    StepFunction: _step,
    Fetched: _fetched,
    Kept: _kept,
}
"""The error of each kind of atom."""


def follow(margins: Margins) -> None:
    """Add the errors of the next atom, and ask for its margins."""
    number = len(margins.errors)
    atom = margins.circuit.atoms[number]
    margins.errors.append(ERRORS[type(atom)](margins, atom, number))
