"""Certificates: for every input up to a length, a format decides as the weights do exactly.

The ideal is what the weights compute in exact arithmetic with hard attention: a head attends to the
largest score, or to all that are largest. A bound of how far rounding, and the weight that softmax
leaves elsewhere, move every number is composed atom by atom; a step, and a choice of a head, whose
margin is kept starts again from its ideal value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from transformist.bounds import float_format_of
from transformist.compiler.circuit import FETCHED, ZERO, Circuit, Fetched, Step
from transformist.compiler.forms import Form, total
from transformist.compiler.heads import BEHIND, Head, Match, rows_under
from transformist.compiler.margins import ERRORS, Margins, magnitude, require_count
from transformist.errors import InvalidValue
from transformist.language.node import Node
from transformist.laws import Range, hull
from transformist.model import Binary, MultiClass, NearestFraction, Transformer
from transformist.verify.certificate.lifting import (
    Lifted,
    Unlawful,
    lift,
    one_over,
    read,
    separation,
)

TAKEN_FOR_GRANTED = (
    "+, −, ×, ÷ and √ are correctly rounded",
    "exp is within 2 units in the last place, and exp(0) is 1",
)
"""Of the platform."""


@dataclass(frozen=True)
class Demand:
    """A margin: what may be off, by how much, and how much it can be.

    Attributes:
        place: the slot, or the part of the model.
        what: the quantity.
        error: a bound of it.
        allowed: below this every decision is the ideal one.

    """

    place: str
    what: str
    error: float
    allowed: float

    @property
    def share(self) -> float:
        """The share of the margin that is left; negative where it is exceeded."""
        if not self.allowed or not math.isfinite(self.error):
            return 1.0 if not self.error else -math.inf
        return 1 - self.error / self.allowed


@dataclass(frozen=True)
class Certificate:
    """Whether a format decides as the weights do exactly, for every input up to a length.

    Exactly is in rational arithmetic, with average-hard attention for softmax. Sums are in any
    order, but hidden units that end in one slot are added one after the other; softmax is
    normalised before it is applied. `TAKEN_FOR_GRANTED` says what is asked of the platform.

    Attributes:
        model: what is certified.
        arithmetic: the format.
        max_length: N.
        holds: whether every margin is kept, given what is assumed.
        margin: the least share of a margin that is left.
        limiting: where that is.
        largest_length: the largest N for which it holds; `None` where that was not asked.
        assumes: what is not derived from the weights.

    """

    model: str
    arithmetic: str
    max_length: int
    holds: bool
    margin: float
    limiting: Demand
    largest_length: int | None
    assumes: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        limit = self.limiting
        verdict = "holds" if self.holds else "does not hold"
        given = f", given that {'; '.join(self.assumes)}" if self.assumes else ""
        return (
            f"{self.model} in {self.arithmetic} for N = {self.max_length}: {verdict}{given}; the "
            f"least margin is at {limit.place}, {limit.what}: up to {limit.error:.3g} of "
            f"{limit.allowed:.3g}"
        )


@dataclass(eq=False)
class Recorded(Margins):
    """Margins that are noted, not required.

    Attributes:
        demands: all of them.
        place: where the next is.

    """

    demands: list[Demand] = field(default_factory=list)
    place: str = ""

    def require(self, node: Node | None, what: str, error: float, allowed: Any) -> None:
        """Note a margin."""
        self.demands.append(Demand(self.place, what, error, magnitude(allowed)))


def certify(
    model: Transformer, arithmetic: str = "float32", max_length: int | None = None
) -> Certificate:
    """Whether a format decides as the weights do exactly, for every input of length up to N.

    Args:
        model: a transformer of means, matches, lookups, steps and ReLUs, such as `compile` makes.
        arithmetic: a float format.
        max_length: N; that of the model when left out.

    Raises:
        InvalidValue: without a length, or for an arithmetic that is no float format.
        Unlawful: for a model of which too little is known.

    Returns:
        A certificate. The largest length is found by bisection: it holds for that and not for the
        next.

    Example:
        >>> import transformist as tf
        >>> from transformist.programs import PROGRAMS
        >>> model = tf.compile(PROGRAMS["majority"], max_length=100)
        >>> found = certify(model, "float16")
        >>> found.holds, found.largest_length, found.assumes
        (True, 100, ())

    """
    if not isinstance(model, Transformer):
        raise InvalidValue(
            "a certificate is for a transformer on strings",
            received=f"{type(model).__name__}",
            where="certify",
            remedy="give one, such as tf.compile(program) makes",
        )
    n = model.max_length if max_length is None else max_length
    if n is not None and (type(n) is not int or n < 1):
        raise InvalidValue(
            "max_length is a whole number of at least 1",
            received=f"{n!r:.40}",
            where="certify",
            remedy="give the length of the longest input",
        )
    if n is None:
        raise InvalidValue(
            "a certificate is for every input up to a length",
            received="max_length = None, of a model for any length",
            where="certify",
            remedy="give max_length",
        )
    if model.max_length is not None and n > model.max_length:
        raise InvalidValue(
            f"the model takes inputs of length at most N = {model.max_length}",
            received=f"max_length = {n}",
            where="certify",
            remedy="ask for its own length, or less",
        )
    demands, assumes = _demands(model, arithmetic, n)
    least = min(demands, key=lambda demand: demand.share)
    holds = least.share > 0
    longest = n if holds else _longest(model, arithmetic, n)
    return Certificate(
        repr(model), arithmetic, n, holds, least.share, least, longest, tuple(assumes)
    )


def _longest(model: Transformer, arithmetic: str, n: int) -> int:
    fits, fails = 0, n
    while fails - fits > 1:
        middle = (fits + fails) // 2
        demands, _ = _demands(model, arithmetic, middle)
        if min(demand.share for demand in demands) > 0:
            fits = middle
        else:
            fails = middle
    return fits


def _demands(model: Transformer, arithmetic: str, n: int) -> tuple[list[Demand], list[str]]:
    """Every margin, and what is assumed."""
    a = float_format_of(arithmetic)
    if a is None:
        raise InvalidValue(
            "a certificate is for a format, in which numbers round",
            received=arithmetic,
            where="certify",
            remedy="give float32, float16 or another",
        )
    lifted = lift(model, n)
    circuit = lifted.circuit
    margins = Recorded(circuit, lifted.sharpness, a)
    for number, atom in enumerate(circuit.atoms):
        margins.place = circuit.names[number]
        margins.errors.append(ERRORS[type(atom)](margins, atom, None))
        if circuit.bos and isinstance(atom, Step):
            _require_at_bos(margins, number, atom)
    margins.place = "read-out"
    read_out = model.read_out
    forms = read(read_out.W_out, read_out.b_out, lifted.state)
    rule = READ_OUTS.get(type(read_out))
    if rule is None:
        raise Unlawful(
            "a read-out accepts, chooses a label, or takes the nearest fraction",
            received=type(read_out).__name__,
            where="certify",
            remedy="give a model with one of these",
        )
    assumes = rule(margins, lifted, read_out, forms)
    return margins.demands, assumes


def _require_at_bos(margins: Recorded, number: int, atom: Step) -> None:
    """A step is 0 or 1 at BOS, too: where it is known there, and where BOS stands alone."""
    circuit, error = margins.circuit, margins.error(atom.form)
    ranges = [Range.of(circuit.over_nothing(atom.form))]
    if circuit.laws[number].rows[-1].is_point:
        ranges.append(circuit.span_at_bos(atom.form))
    has_exact_0 = margins.relative_error(atom.form) < 1 / 8
    for each in ranges:
        if has_exact_0 and each == ZERO:
            continue
        beside = max(atom.zone / 4 - each.hi, each.lo - 3 * atom.zone / 4, Fraction(0))
        margins.require(None, "the error of a comparison at BOS", error, beside)


# Read-outs: the margins of each, and what is assumed


def _binary(margins: Recorded, lifted: Lifted, _read_out: Binary, forms: list[Form]) -> list[str]:
    (form,) = forms
    error = margins.error(form)
    margins.require(None, "the answer", error, _from_zero(lifted.circuit, form))
    if lifted.circuit.bos:
        alone = abs(lifted.circuit.over_nothing(form))
        margins.require(None, "the answer on the empty input", error, alone)
    return []


def _from_zero(circuit: Circuit, form: Form) -> Fraction:
    """How far a form is from 0 at least: on one side of it, or beside the points of its grid."""
    within = span(circuit, form)
    if within.lo > 0:
        return Fraction(within.lo)
    if within.hi < 0:
        return -Fraction(within.hi)
    moving = Form(form.terms)
    grid, gap = circuit.grid(moving), separation(circuit, moving)
    constant = abs(form.constant)
    if grid is None or gap is None:
        return Fraction(0)
    if grid.counts:
        return min(constant, gap - constant) if constant < gap else Fraction(0)
    rest = constant % gap
    return min(rest, gap - rest)


def span(circuit: Circuit, form: Form) -> Range:
    """The range of a form at the symbols, what one head fetches taken together."""
    by_head: dict[Any, list[tuple[int, Fraction]]] = {}
    others = []
    for number, factor in form.terms:
        atom = circuit.atoms[number]
        if isinstance(atom, Fetched):
            by_head.setdefault(atom.head, []).append((number, factor))
        else:
            others.append((number, factor))
    rows = list(circuit.rows(Form(tuple(others), form.constant)))
    for head, terms in by_head.items():
        value = total(circuit.atoms[number].value * factor for number, factor in terms)  # type: ignore[union-attr]
        law = FETCHED[type(head)](circuit, head, value)
        fetched = list(law.rows)
        if _leaves_bos_out(circuit, head):
            symbols = circuit.rows(value)[: len(circuit.alphabet)]
            fetched = [hull(symbols)] * len(law.rows)
        rows = [row + more for row, more in zip(rows, fetched, strict=True)]
    return hull(rows[: len(circuit.alphabet)])


def _leaves_bos_out(circuit: Circuit, head: Head) -> bool:
    """Whether a symbol, which sees itself, never attends to BOS.

    The last of what matches is chosen, no product is negative, BOS has none, and its place is 0.
    """
    is_last = isinstance(head, Match) and head.choose == "rightmost" and head.place is not None
    if not circuit.bos or not is_last or head.mask not in ("none", "future"):
        return False
    keys = [circuit.rows(key) for key in head.keys]  # type: ignore[union-attr]
    queries = [circuit.rows(query) for query in head.queries]  # type: ignore[union-attr]
    signs = all(row.lo >= 0 for rows in (*keys, *queries) for row in rows)
    return signs and all(rows[-1].hi == 0 for rows in keys)


def _labels(
    margins: Recorded, lifted: Lifted, read_out: MultiClass, forms: list[Form]
) -> list[str]:
    """A count's labels; one-hot ones; or two numbers that are never equal."""
    circuit = lifted.circuit
    if read_out.at != "every" and circuit.bos:
        alone = sorted((circuit.over_nothing(form) for form in forms), reverse=True)
        gap = alone[0] - alone[1] if len(alone) > 1 else Fraction(1)
        worst = max(margins.error(form) for form in forms)
        margins.require(None, "the answer on the empty input", 2 * worst, gap)
    counted = _as_count(circuit, read_out, forms)
    if counted is not None:
        y, w = counted
        scale = margins.circuit.grid(y).c  # type: ignore[union-attr]
        first, last = (Fraction(read_out.labels[k]) for k in (0, -1))  # type: ignore[arg-type]
        require_count(margins, y, w, scale, int(first * scale), int(last * scale))
        return []
    gaps = [separation(circuit, a - b) for k, a in enumerate(forms) for b in forms[:k] if a != b]
    known = [gap for gap in gaps if gap is not None]
    error = max(margins.error(form) for form in forms)
    gap = min(known) if known and len(known) == len(gaps) else Fraction(0)
    margins.require(None, "the answer", 2 * error, gap)
    whole = all(circuit.is_whole(form) and span(circuit, form).lo >= 0 for form in forms)
    together = span(circuit, total(forms))
    if whole and together.is_point and together.lo == 1:
        return []
    if _as_nearest(circuit, read_out, forms):
        return []
    if len(forms) == 2 and _from_zero(circuit, forms[0] - forms[1]) > 0:
        return []
    return ["no two labels of the read-out are the largest together"]


def _as_nearest(circuit: Circuit, read_out: MultiClass, forms: list[Form]) -> bool:
    """Whether the labels are neighbouring whole numbers k with 2 k y − k², y a whole number."""
    labels = read_out.labels
    if not all(type(label) is int for label in labels):
        return False
    numbers = [Fraction(label) for label in labels]  # type: ignore[arg-type]
    if any(b - a != 1 for a, b in itertools.pairwise(numbers)):
        return False
    k = next((number for number in numbers if number), None)
    if k is None:
        return False
    y = (forms[numbers.index(k)] + k**2) * (1 / (2 * k))
    agree = all(form == y * (2 * m) - m**2 for m, form in zip(numbers, forms, strict=True))
    return agree and circuit.is_whole(y)


def _as_count(
    circuit: Circuit, read_out: MultiClass, forms: list[Form]
) -> tuple[Form, Form] | None:
    """y and w, where the form of the label k is 2 k y − k² w, y a whole number times w = 1/D."""
    labels = read_out.labels
    if not all(isinstance(label, int | Fraction) and type(label) is not bool for label in labels):
        return None
    known = [(Fraction(label), form) for label, form in zip(labels, forms, strict=True) if label]  # type: ignore[arg-type]
    if len(known) < 2:
        return None
    (k, first), (m, second) = known[:2]
    w = (first * (1 / k) - second * (1 / m)) * (1 / (m - k))
    y = (first + w * k**2) * (1 / (2 * k))
    pairs = zip(labels, forms, strict=True)
    agree = all(
        form == y * (2 * Fraction(label)) - w * Fraction(label) ** 2  # type: ignore[arg-type]
        for label, form in pairs
    )
    counts, grid = one_over(circuit, w), circuit.grid(y)
    if not agree or counts is None or grid is None or grid.counts != counts:
        return None
    step = Fraction(1, grid.c)
    numbers = [Fraction(label) for label in labels]  # type: ignore[arg-type]
    if any(b - a != step for a, b in itertools.pairwise(numbers)):
        return None
    within = span(circuit, y).times(Fraction(circuit.most_seen or 1))
    return (y, w) if numbers[0] - step < within.lo and within.hi < numbers[-1] + step else None


def _fraction(
    margins: Recorded, lifted: Lifted, read_out: NearestFraction, forms: list[Form]
) -> list[str]:
    (form,) = forms
    grid = lifted.circuit.grid(form)
    wanted = frozenset({rows_under(read_out.mask)})
    sees_bos = lifted.circuit.bos and read_out.mask in BEHIND
    fits = grid is not None and grid.counts <= wanted and read_out.scale % grid.c == 0
    fits = fits and read_out.with_bos == sees_bos
    error = read_out.scale * margins.scaled_error(form)
    margins.require(None, "the answer, a mean", error, Fraction(1, 2) if fits else Fraction(0))
    return []


READ_OUTS: Mapping[type[Any], Callable[..., list[str]]] = {
    Binary: _binary,
    MultiClass: _labels,
    NearestFraction: _fraction,
}
"""What each kind of read-out asks."""
