"""Answers: the margins within which the computed read-out decides as the ideal one.

A value without an error needs no margin. Otherwise:

- *accept*: computed and ideal value have the same sign if the error is below |ideal value|;
- *labels*: the ideal best label is the computed one if it leads every other by more than the errors
  of both. The lead comes from the first of these that applies. A count: label k has the value
  A k − B k² + constant with A/(2B) whole, so the best leads the label at distance m by at least
  B m² (`attending`, "nearest"). Cases: all combinations of values that the labels can have. Pairs:
  the least difference of two labels on either side of 0, from their grid;
- *nearest fraction*: the ideal value is a whole multiple of 1/(scale · D), and rounding to the
  nearest finds it if scale · D times the error is below 1/2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from transformist.model import Binary, MultiClass, NearestFraction
from transformist.verify.proof.ideal import Floats, Form, Ideal, Unfollowed, exponent, up
from transformist.verify.proof.rounding import Affine, Values

if TYPE_CHECKING:
    from transformist.verify.proof.walking import Walk

MOST_CASES, MOST_PAIRS, MOST_LABELS = 4096, 64, 4096
"""Limits, for time: cases that are enumerated; labels compared in pairs; labels at all."""

WHERE, WHAT = "read-out", "the error of the answer"


def decide(walk: Walk, y: Affine, z: Values) -> None:
    """Note the margins of a read-out.

    Raises:
        Unfollowed: if the read-out decides nothing, or a margin has no bound.

    """
    read_out, ideal = walk.model.read_out, walk.ideal
    kinds = range(ideal.kinds if read_out.at == "last" else ideal.kinds - (ideal.bos is not None))
    loose = [kind for kind in kinds if y.values.error[0, :, kind].any()]
    if isinstance(read_out, Binary):
        for kind in loose:
            _accept(walk, y, kind)
    elif isinstance(read_out, MultiClass):
        if loose and not _is_count(walk, y, z, loose):
            for kind in loose:
                _best(walk, y, kind)
    elif isinstance(read_out, NearestFraction):
        _fraction(walk, y, read_out)
    else:
        raise Unfollowed(WHERE, f"{type(read_out).__name__} returns numbers and makes no decision")
    if not walk.margins:
        walk.note(WHERE, WHAT, 0.0, 1.0)


def _accept(walk: Walk, y: Affine, kind: int) -> None:
    """Note the margins of the values next to 0.

    The error is at most a + ρ |value − shift| with ρ < 1, or constant, so it grows more slowly than
    |value|: where the values next to 0 keep their margin, all do.
    """
    ideal, form = walk.ideal, y.values.forms[0]
    own = form.get(kind, Fraction(0))
    shift = Fraction(walk.model.read_out.b_out[0])
    for end, sign in zip(ideal.neighbours(ideal.varying(form), -own, kind), (-1, 1), strict=True):
        if math.isfinite(end):
            at = Fraction(end) + own
            walk.note(WHERE, WHAT, walk.off(y, 0, kind, float(at - shift)), float(at * sign))


def _fraction(walk: Walk, y: Affine, read_out: NearestFraction) -> None:
    ideal = walk.ideal
    grid = ideal.grid(y.values.forms[0])
    sees = ideal.bos is not None and read_out.mask.looks_back
    fits = grid is not None and grid[1] in (None, read_out.mask) and read_out.with_bos == sees
    fits = fits and (grid[0] * read_out.scale).denominator == 1  # type: ignore[index]
    if not fits:
        raise Unfollowed(WHERE, "the mean is not shown to be a multiple of 1/(scale · D)")
    which = 1 + ideal.masks.index(read_out.mask) if read_out.mask in ideal.masks else None
    error = y.values.error[0] * ideal.most_rows if which is None else y.values.error[which]
    symbols = slice(0, ideal.kinds - (ideal.bos is not None))
    walk.note(WHERE, WHAT, float(up(error[0, symbols].max() * read_out.scale)), 0.5)


def _is_count(walk: Walk, y: Affine, z: Values, kinds: Sequence[int]) -> bool:
    """Note the margin of labels A k − B k² + constant; False if they are not of this form.

    The difference of labels k and l is off by |W̃_k − W̃_l| times the error of z, and by the rounding
    of W and b and of the evaluation for each of the two (`own`). Of all pairs the worst ratio of
    error to lead is noted. 2⁻⁴⁰ covers the rounding of B (k − l)² in float64.
    """
    ideal, forms = walk.ideal, y.values.forms
    if not 3 <= len(forms) <= MOST_LABELS:
        return False
    one = Fraction(1)
    first = ideal.combined([(one, forms[1]), (-one, forms[0])])
    twice = ideal.combined([(one, first), (one, forms[1]), (-one, forms[2])])  # 2 B
    B = ideal.combined([(Fraction(1, 2), twice)])
    A = ideal.combined([(one, first), (one, B)])
    for k, form in enumerate(forms):
        if form != ideal.combined([(one, forms[0]), (Fraction(k), A), (Fraction(-k * k), B)]):
            return False
    scale, divisor = ideal.unit(B)
    grid = ideal.grid(A)
    if scale is None or grid is None or (grid[0] / (2 * scale)).denominator != 1:
        return False
    if (grid[0] and grid[1] not in (None, divisor)) or divisor not in (None, *ideal.masks):
        return False
    which = 0 if divisor is None else 1 + ideal.masks.index(divisor)
    read_out = walk.model.read_out
    off, shift = walk.rounding.rounded(read_out.W_out)[1], walk.rounding.rounded(read_out.b_out)[1]
    own = off @ z.size[which] + shift[:, None] * ideal.scales[which] + y.rounding[which]
    own = up(own)[:, kinds].max(axis=1)
    error = z.error[which][:, kinds].max(axis=1)
    labels = np.arange(len(forms))
    worst = (-math.inf, math.inf, 0.0)
    for k in labels.tolist():
        between = np.abs(y.weights - y.weights[k]) @ error + own + own[k]
        gaps = float(scale) * (labels - k) ** 2.0 * (1 - 2.0**-40)
        rest = np.flatnonzero(labels != k)
        at = int(rest[np.argmax(up(between[rest]) / gaps[rest])])
        worst = max(worst, (float(between[at] / gaps[at]), float(up(between[at])), float(gaps[at])))
    walk.note(WHERE, WHAT, worst[1], worst[2])
    return True


def _best(walk: Walk, y: Affine, kind: int) -> None:
    """Note the margin of the best label at a kind of row, by cases or by pairs.

    Labels without an error need no margin between them: equal ones stay equal.
    """
    error, forms = y.values.error[0, :, kind], y.values.forms
    found = cases(walk.ideal, forms, kind)
    if found is not None:
        best = found.argmax(axis=1)
        rows = np.arange(len(found))
        gaps = found[rows, best][:, None] - found
        off = up(np.broadcast_to(error[None] + error[best][:, None], gaps.shape))
        rounds = (np.arange(len(forms))[None] != best[:, None]) & (off > 0)
        if rounds.any():
            left = np.where(rounds, gaps - off, math.inf)
            at = np.unravel_index(left.argmin(), left.shape)
            walk.note(WHERE, WHAT, float(off[at]), float(gaps[at]))
        return
    if len(forms) > MOST_PAIRS:
        raise Unfollowed(WHERE, f"{len(forms)} labels, too many to compare in pairs")
    for a, b in itertools.combinations(range(len(forms)), 2):
        if forms[a] == forms[b] or not (error[a] or error[b]):
            raise Unfollowed(WHERE, "two labels may be equal, and no error separates them")
        difference = walk.ideal.combined([(Fraction(1), forms[a]), (Fraction(-1), forms[b])])
        own = difference.get(kind, Fraction(0))
        ends = walk.ideal.neighbours(walk.ideal.varying(difference), -own, kind)
        for end, sign in zip(ends, (-1, 1), strict=True):
            if math.isfinite(end):
                apart = float((Fraction(end) + own) * sign)
                walk.note(WHERE, WHAT, float(up(error[a] + error[b])), apart)


def cases(ideal: Ideal, forms: Sequence[Form], kind: int) -> Floats | None:
    """(cases, forms): all combinations of values of forms at a kind of row, or `None`.

    A head that attends to a single row chooses one kind of row: one of its shares is 1. A hidden
    unit is computed from these choices where it depends on nothing else; a step that depends on
    more may be 0 or its height. There may be combinations that no input has. `None`: a form depends
    on other unknowns, there are too many cases, or float64 would round a value.
    """
    needed = sorted(_needed(ideal, forms))
    choices: dict[Any, list[Any]] = {}
    for number in needed:
        unknown = ideal.unknowns[number]
        if unknown.share is not None:
            head = unknown.share[0]
            if head.way != "one":
                return None
            seen: list[int | None] = [int(k) for k in np.flatnonzero(head.sees[kind])]
            choices[head] = seen + ([None] if head.empty[kind] or not seen else [])
        elif unknown.unit is None:
            return None
        elif not _follows(ideal, number):
            height = unknown.unit[1]
            if height is None or unknown.grid is None:
                return None
            ends = (float(unknown.lo[kind]), float(unknown.hi[kind]))
            choices[number] = sorted({x for x in (0.0, float(height)) if ends[0] <= x <= ends[1]})
    if math.prod(map(len, choices.values())) > MOST_CASES:
        return None
    every = list(itertools.product(*choices.values()))
    columns = dict(zip(choices, zip(*every, strict=True), strict=True)) if choices else {}
    values = _Values(kind, ideal.kinds, len(every))
    for number in needed:
        unknown = ideal.unknowns[number]
        if unknown.share is not None:
            head, of = unknown.share
            values.add(number, np.array([float(row == of) for row in columns[head]]), 0)
        elif number in columns:
            height = unknown.unit[1]  # type: ignore[index]
            values.add(number, np.array(columns[number], dtype=float), exponent(height))  # type: ignore[arg-type]
        else:
            form, height = unknown.unit  # type: ignore[misc]
            x, power = values.of(form)
            top = math.inf if height is None else float(height)
            powers = (power, 10_000 if height is None else exponent(height))
            values.add(number, np.clip(x, 0, top), None if None in powers else min(powers))  # type: ignore[type-var]
    found = [values.of(form) for form in forms]
    return None if values.rounds else np.array([x for x, _ in found]).T


class _Values:
    """Values of unknowns and forms in all cases, which float64 must hold exactly.

    Each is stored with a k such that all values are multiples of 2ᵏ. A sum of multiples of 2ᵏ whose
    magnitudes add up to less than 2^(53 + k) is exact in float64. `rounds` is set once one is not.
    """

    def __init__(self, kind: int, kinds: int, count: int) -> None:
        self.kind, self.kinds, self.count = kind, kinds, count
        self.known: dict[int, tuple[Floats, int | None]] = {}
        self.rounds = False

    def add(self, number: int, values: Floats, power: int | None) -> None:
        """Set the values of an unknown, multiples of 2^power."""
        self.known[number] = values, power

    def of(self, form: Form) -> tuple[Floats, int | None]:
        """Return the values of a form, and k."""
        own = form.get(self.kind, Fraction(0))
        total, size = np.full(self.count, float(own)), np.full(self.count, abs(float(own)))
        powers = [exponent(own)]
        for number, x in form.items():
            if number >= self.kinds:
                values, power = self.known[number]
                total, size = total + float(x) * values, size + abs(float(x)) * np.abs(values)
                by = exponent(x)
                powers.append(None if by is None or power is None else by + power)
        least = None if None in powers else min(powers)  # type: ignore[type-var]
        if least is None or not (least > -1000 and np.all(size < 2.0 ** min(53 + least, 1000))):
            self.rounds = True
        return total, least


def _needed(ideal: Ideal, forms: Sequence[Form]) -> set[int]:
    """Return the unknowns of forms, and those that hidden units among them are computed from."""
    needed: set[int] = set()
    waiting = [number for form in forms for number in form]
    while waiting:
        number = waiting.pop()
        if number >= ideal.kinds and number not in needed:
            needed.add(number)
            unit = ideal.unknowns[number].unit
            if unit is not None and _follows(ideal, number):
                waiting.extend(unit[0])
    return needed


def _follows(ideal: Ideal, number: int) -> bool:
    """True if a hidden unit depends only on symbols, shares of single rows, and hidden units."""
    form, _ = ideal.unknowns[number].unit  # type: ignore[misc]
    for k in form:
        share, unit = ideal.unknowns[k].share, ideal.unknowns[k].unit
        known = k < ideal.kinds or (share is not None and share[0].way == "one")
        if not known and (unit is None or (unit[1] is None and not _follows(ideal, k))):
            return False
    return True
