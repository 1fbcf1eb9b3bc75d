"""Answers: the margins within which the computed read-out decides as the ideal one.

A value without an error needs no margin. Otherwise:

- *accept*: the computed and the ideal value have the same sign if the error is below |ideal value|.
- *labels*: the best label in the ideal is also the best computed one if it leads every other label
  by more than the errors of both. The lead comes from the first of four methods that applies:
  *count*, where label k has the value A k − B k² + constant with a whole vertex (`Ideal.vertex`),
  so the best leads the label at distance m by at least B m² (`scoring`, "nearest");
  *cases*, all combinations of values that the labels can have;
  *values*, where label k is a_k Y + b_k, every value that Y can have;
  *pairs*, the least difference of two labels on either side of 0, from their grid.
- *nearest fraction*: the ideal value is a whole multiple of 1/(scale · D). Rounding to the nearest
  multiple finds the ideal value if scale · D times the error is below 1/2. D is the number of rows
  that the mask admits at the row of the value, or that without BOS.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.model import Binary, MultiClass, NearestFraction, ReadOut
from transformist.verify.proof.enumerating import case_keys, combinations
from transformist.verify.proof.grids import SYMBOLS
from transformist.verify.proof.ideal import ONE, ZERO, Form, Ideal, Moving
from transformist.verify.proof.rounding_errors import (
    AffineMap,
    Approximation,
    RoundingErrors,
    exponents,
)
from transformist.verify.proof.slack import Ledger, slack
from transformist.verify.proof.sparse_rows import exactly
from transformist.verify.proof.upwards import MOST_TERMS, ROOM, Floats, Unfollowed, raised, up

# Limits that bound the running time.

MOST_PAIRS = 64
"""Most labels that are compared in pairs."""

MOST_LABELS = 4096
"""Most labels of a read-out, unless they are those of a count."""

FEW_LABELS = 3
"""Last labels of a count, which are compared first: any number of 2 or more would do."""

MOST_DISTANCES = 4096
"""Most distances at which labels of a count are compared one by one."""

MOST_LABELLED_VALUES = 2**20
"""Largest product of the number of values and the number of labels."""

WHERE = "read-out"


def decide(read_out: ReadOut, z: Approximation, r: RoundingErrors, ledger: Ledger) -> None:
    """Note the margins of a read-out.

    Raises:
        Unfollowed: if the read-out makes no decision, or a margin has no bound.

    """
    note = DECISIONS.get(type(read_out))
    if note is None:
        raise Unfollowed(
            "the error of the answer",
            f"{type(read_out).__name__} returns numbers and makes no decision",
        )
    note(read_out, z, r, ledger)
    if not ledger.kept:
        ledger.answer(0.0, 1.0)


def _loose(read_out: ReadOut, y: AffineMap, r: RoundingErrors) -> list[int]:
    """Return the kinds of rows at which an answer is read and some value has an error."""
    read = range(r.ideal.kinds if read_out.at == "last" else _kinds_of_symbols(r.ideal))
    return [kind for kind in read if y.values.error[0, :, kind].any()]


def _kinds_of_symbols(ideal: Ideal) -> int:
    """Return the number of kinds of rows other than BOS."""
    return ideal.kinds - (ideal.bos is not None)


def _accept(read_out: Binary, z: Approximation, r: RoundingErrors, ledger: Ledger) -> None:
    """Note the margins of the values next to 0.

    The error grows more slowly than |value| (`AffineMap.error_at`): where the values next to 0 keep
    their margin, all do.
    """
    y = r.affine(read_out.W_out, read_out.b_out, z, WHERE)
    shift = Fraction(read_out.b_out[0])
    (near,) = r.ideal.moving(y.values.forms)
    for kind, at, side in r.ideal.neighbours(near, ZERO, _loose(read_out, y, r)):
        ledger.answer(y.error_at(0, kind, abs(float(at - shift))), float(at * side))


def _fraction(
    read_out: NearestFraction, z: Approximation, r: RoundingErrors, ledger: Ledger
) -> None:
    """Note the margin of the fraction whose error bound is largest."""
    y = r.affine(read_out.W_out, read_out.b_out, z, WHERE)
    ideal, (form,) = r.ideal, y.values.forms
    grid, sees_bos = ideal.grid(form), ideal.bos is not None and read_out.mask.looks_back
    # D is the number of symbols that the mask admits, and BOS if `with_bos`: at most N, and BOS. A
    # multiple of 1/scale is one of 1/(scale · D) for every D.
    is_of_rows = read_out.with_bos == sees_bos
    is_of_symbols = not read_out.with_bos and read_out.mask == "none"
    counts = {None, *[read_out.mask] * is_of_rows, *[SYMBOLS] * is_of_symbols}
    if grid is None or grid[1] not in counts or (grid[0] * read_out.scale).denominator != 1:
        raise Unfollowed(WHERE, "the mean is not shown to be a multiple of 1/(scale · D)")
    index = ideal.index_of(read_out.mask) if is_of_rows else None
    most = max(ideal.most_rows, ideal.longest + read_out.with_bos)
    error = y.values.error[0] * most if index is None else y.values.error[index]
    ledger.answer(float(up(error[0, : _kinds_of_symbols(ideal)].max() * read_out.scale)), 0.5)


def _labels(read_out: MultiClass, z: Approximation, r: RoundingErrors, ledger: Ledger) -> None:
    """Note the margins of labels: of one pair if they are of a count, else by `_best`.

    If the weights show a count, the last labels are compared first: of a count from 0 they have the
    largest weights. If a pair of them keeps no margin, this pair is noted. Else the pair of all
    labels with the largest ratio of error to lead is noted.
    """
    W, b = read_out.W_out, read_out.b_out
    is_many = len(W) > MOST_LABELS
    vertex = _vertex(r.forms(W[:3], b[:3], z), r.ideal) if _are_parabolas(W, b) else None
    # Of many labels with a known vertex the forms need not be written (`many_rows`).
    may_be_unwritten = is_many and vertex is not None and W.shape[1] <= MOST_TERMS
    bounded = r.many_rows if may_be_unwritten else r.affine
    if vertex is not None:
        last = _worst_of(
            bounded(W[-FEW_LABELS:], b[-FEW_LABELS:], z, WHERE), read_out, z, r, vertex
        )
        if slack(*last) <= 0:
            ledger.answer(*last)
            return
    y = bounded(W, b, z, WHERE)
    if not _loose(read_out, y, r):
        return
    if vertex is None:
        vertex = _vertex_of_forms(y.values.forms, r.ideal)
    if vertex is not None:
        ledger.answer(*_worst_of(y, read_out, z, r, vertex))
        return
    if is_many:
        raise Unfollowed(WHERE, f"it has more than {MOST_LABELS} labels")
    _best(y, z, _loose(read_out, y, r), r, ledger)


class _Differences(NamedTuple):
    """Error bounds of the differences of labels, or of D times the differences.

    The difference of labels k and l is off by |W̃_k − W̃_l| times the error of z, and by the rounding
    of W and b and of the evaluation for each of the two.

    Attributes:
        weights: W̃, for the coordinates that some label reads.
        error: the error of these coordinates.
        own: the rounding of each label.

    """

    weights: Floats
    error: Floats
    own: Floats

    @classmethod
    def of(
        cls, y: AffineMap, z: Approximation, kinds: Sequence[int], r: RoundingErrors, index: int = 0
    ) -> _Differences:
        """Return the largest bounds over these kinds of rows; `index` is that of D."""
        weights, off, _, shift_off = y.stored
        of_weights = raised(off @ z.size[index], off.shape[1])
        own = of_weights + shift_off[:, None] * r.ideal.scales[index] + y.rounding[index]
        error = z.error[index][:, kinds].max(axis=1)
        used = np.flatnonzero(weights.any(axis=0))
        return cls(weights[:, used], error[used], up(own)[:, kinds].max(axis=1))

    def from_label(self, k: int) -> Floats:
        """Return the error bounds of the differences of label k and each label."""
        moved = raised(np.abs(self.weights - self.weights[k]) @ self.error, len(self.error))
        together: Floats = up(moved + self.own + self.own[k])
        return together


class _Vertex(NamedTuple):
    """Curvature of labels A k − B k² + constant with a whole vertex.

    Attributes:
        curvature: D B, by which D times the labels lead.
        scale: index of D (`Ideal.index_of`).

    """

    curvature: float
    scale: int


def _worst_of(
    y: AffineMap, read_out: MultiClass, z: Approximation, r: RoundingErrors, vertex: _Vertex
) -> tuple[float, float]:
    """Return the error and the lead of the worst pair of labels of a count, both times D."""
    loose = _loose(read_out, y, r)
    if not loose:
        return 0.0, 1.0
    return _worst_pair(*_Differences.of(y, z, loose, r, vertex.scale), vertex.curvature)


def _vertex(forms: Sequence[Form], ideal: Ideal) -> _Vertex | None:
    """Return the vertex of labels A k − B k² + constant, of which these are the first three."""
    A, B = _first_and_second(forms, ideal)
    found = ideal.vertex(A, B)
    return found and _Vertex(float(found[0]), found[1])


def _vertex_of_forms(forms: Sequence[Form], ideal: Ideal) -> _Vertex | None:
    """Return the vertex if the forms of all labels are A k − B k² + constant, else `None`."""
    if len(forms) < 3 or not _is_parabola(forms, *_first_and_second(forms, ideal)):
        return None
    return _vertex(forms, ideal)


def _first_and_second(forms: Sequence[Form], ideal: Ideal) -> tuple[Form, Form]:
    """Return A and B of labels A k − B k² + constant."""
    first = ideal.combined([(ONE, forms[1]), (-ONE, forms[0])])  # A − B
    second = ideal.combined([(ONE, forms[2]), (-ONE, forms[1])])  # A − 3 B
    B = ideal.combined([(ONE / 2, first), (-ONE / 2, second)])
    return ideal.combined([(ONE, first), (ONE, B)]), B


def _are_parabolas(W: Any, b: Any) -> bool:
    """True if the weights of label k are A k − B k² + constant in each column, and the biases.

    Then so are the forms of the labels. Such sequences are those with third differences of 0. Four
    labels refute most others.
    """
    parts = (np.column_stack([W[:count], b[:count]]) for count in (4, len(W)))
    return len(W) > 2 and all(not _third_differences(part).any() for part in parts)


def _is_parabola(forms: Sequence[Form], A: Form, B: Form) -> bool:
    """True if the label k has the form A k − B k² + constant form, for every k."""
    numbers = sorted({*A, *B, *itertools.chain.from_iterable(forms)})
    zero = ZERO.as_integer_ratio()
    # Over one denominator q the coefficients are whole, and faster to compare than rationals.
    q = math.lcm(*(x.denominator for form in (A, B, forms[0]) for x in form.values()))
    a, b, c = ([int(form.get(n, ZERO) * q) for n in numbers] for form in (A, B, forms[0]))
    for k, form in enumerate(forms):
        for n, s, t, start in zip(numbers, a, b, c, strict=True):
            x, y = form[n].as_integer_ratio() if n in form else zero
            if x * q != y * (start + k * s - k * k * t):
                return False
    return True


def _third_differences(given: NDArray[Any]) -> NDArray[Any]:
    """Return the third differences of the columns that are not 0, without a rounding.

    They are computed as float64 where all numbers are whole multiples of one 2ᵏ, each below 2⁵⁰ of
    them: then no difference exceeds 2⁵³. Else, and beyond |k| = 500, where `ldexp` could underflow
    or overflow, they are rationals.
    """
    used = given[:, (given != 0).any(axis=0)]
    if used.dtype == np.float64 and used.size:
        k = int(np.clip(exponents(used).min(), -500, 500))
        whole = np.ldexp(used, -k)
        if np.abs(whole).max() < 2.0**50 and (whole == np.rint(whole)).all():
            return np.diff(whole, n=3, axis=0)
    return np.diff(np.array([exactly(x) for x in used.flat], object).reshape(used.shape), 3, axis=0)


def _worst_pair(
    weights: Floats, error: Floats, own: Floats, curvature: float
) -> tuple[float, float]:
    """Return the error and the lead of the pair of labels with the largest ratio of the two.

    Labels at distance m lead by c m², c the curvature. The weights of labels at distance m differ
    by at most m times the largest difference of two neighbours, coordinate by coordinate. So the
    ratio at distance m is at most (m S + 2 max own)/(c m²), S = Σ difference · error. It falls with
    m: from the first m on where this is below the largest ratio so far, no pair is worse. After
    `MOST_DISTANCES` it stands for all further pairs.
    """
    largest_difference = np.abs(np.diff(weights, axis=0)).max(axis=0)
    of_neighbours = up(raised(largest_difference @ error, len(error)))
    of_own = float(own.max())
    worst = (0.0, 0.0, 1.0)
    for m in range(1, len(weights)):
        lead = curvature * m**2.0 * (1 - ROOM)
        most = float(up(up(m * of_neighbours + 2 * of_own)))  # twice: it covers its own rounding
        if most / lead < worst[0]:
            break
        if m > MOST_DISTANCES:
            worst = (most / lead, most, lead)
            break
        moved = raised(np.abs(weights[m:] - weights[:-m]) @ error, len(error))
        far, near = own[m:], own[:-m]
        apart = float(np.maximum(up(moved + far + near), up(moved + near + far)).max())
        worst = max(worst, (apart / lead, apart, lead))
    return worst[1:]


def _best(
    y: AffineMap, z: Approximation, kinds: Sequence[int], r: RoundingErrors, ledger: Ledger
) -> None:
    """Note the margin of the best label at each kind of row, by cases, by values or by pairs.

    Kinds with the same cases and the same errors have one margin, which is computed once.
    """
    errors, alike = y.values.error[0], case_keys(r.ideal, y.values.forms)
    known: dict[Hashable, list[tuple[float, float]] | None] = {}
    lines = _Lines.of(y.values.forms, r.ideal)
    for kind in kinds:
        key = alike[kind], errors[:, kind].tobytes()
        if key not in known:
            known[key] = _by_cases(y, kind, r)
        margins = known[key]
        if margins is None and lines is not None:
            margins = lines.margins(kind, _Differences.of(y, z, [kind], r), r.ideal)
        if margins is None:
            _in_pairs(y, kind, r, ledger)
        for margin in margins or ():
            ledger.answer(*margin)


def _by_cases(y: AffineMap, kind: int, r: RoundingErrors) -> list[tuple[float, float]] | None:
    """Return the least margin of all cases, none if nothing rounds; `None` if no case is listed."""
    found = combinations(r.ideal, y.values.forms, kind)
    if found is None:
        return None
    # Labels without an error need no margin between them: equal ones stay equal.
    error, every = y.values.error[0, :, kind], np.arange(len(found))
    best = found.argmax(axis=1)
    leads = (found[every, best][:, None] - found).astype(float)
    off = up(error[None] + error[best][:, None])
    rounds = (np.arange(found.shape[1])[None] != best[:, None]) & (off > 0)
    if not rounds.any():
        return []
    return _least_margin(rounds, leads, off)


def _least_margin(
    rounds: NDArray[np.bool_], leads: Floats, off: Floats
) -> list[tuple[float, float]]:
    """Return the error and the lead of the pair of labels with the least room between them."""
    left = np.where(rounds, leads - off, np.inf)
    at = np.unravel_index(left.argmin(), left.shape)
    return [(float(off[at]), float(leads[at]))]


class _Lines(NamedTuple):
    """Labels a_k Y + b_k, where Y is one number and b_k a constant of the kind of row.

    Attributes:
        Y: the number, without a constant.
        slopes: a_k.
        forms: the labels.

    """

    Y: Moving
    slopes: list[Fraction]
    forms: Sequence[Form]

    @classmethod
    def of(cls, forms: Sequence[Form], ideal: Ideal) -> _Lines | None:
        """Return the labels in this form, or `None` if they are not of one number."""
        moving = [{n: x for n, x in form.items() if n >= ideal.kinds} for form in forms]
        first = next(filter(None, moving), None)
        if first is None:
            return None
        number, unit = next(iter(first.items()))
        slopes = [part.get(number, ZERO) / unit for part in moving]
        for part, a in zip(moving, slopes, strict=True):
            if part != ({n: a * x for n, x in first.items()} if a else {}):
                return None
        (near,) = ideal.moving([first])
        return cls(near, slopes, forms)

    def margins(
        self, kind: int, errors: _Differences, ideal: Ideal
    ) -> list[tuple[float, float]] | None:
        """Return the least margin over all values of Y, none if nothing rounds, or `None`.

        For Y = p/q, q times the labels are whole multiples of 1/(least common denominator of the
        a_k and b_k): they are compared as whole numbers. Labels without an error need no margin
        between them: equal ones stay equal.
        """
        values = ideal.values(self.Y, kind)
        if values is None or len(values) * len(self.forms) > MOST_LABELLED_VALUES:
            return None
        shifts = [form.get(kind, ZERO) for form in self.forms]
        common = math.lcm(*(x.denominator for x in (*self.slopes, *shifts)))
        a, b = (np.array([int(x * common) for x in y], object) for y in (self.slopes, shifts))
        p, q = (
            np.array(x, object) for x in zip(*(x.as_integer_ratio() for x in values), strict=True)
        )
        labels = p[:, None] * a[None] + q[:, None] * b[None]
        best, every = labels.argmax(axis=1), np.arange(len(values))
        lead = (labels[every, best][:, None] - labels) / (q * common)[:, None]
        leads = lead.astype(float) * (1 - ROOM)  # the quotient is rounded to float64
        off = np.zeros_like(leads)
        for k in set(best.tolist()):
            off[best == k] = errors.from_label(k)
        rounds = (np.arange(len(a))[None] != best[:, None]) & (off > 0)
        return _least_margin(rounds, leads, off) if rounds.any() else []


def _in_pairs(y: AffineMap, kind: int, r: RoundingErrors, ledger: Ledger) -> None:
    """Note the margins of every pair of labels: their differences next to 0."""
    error, forms = y.values.error[0, :, kind], y.values.forms
    if len(forms) > MOST_PAIRS:
        raise Unfollowed(WHERE, f"{len(forms)} labels, too many to compare in pairs")
    for k, m in itertools.combinations(range(len(forms)), 2):
        if forms[k] == forms[m] or not (error[k] or error[m]):
            raise Unfollowed(WHERE, "two labels may be equal, and no error separates them")
        difference = r.ideal.combined([(ONE, forms[k]), (-ONE, forms[m])])
        (near,) = r.ideal.moving([difference])
        for _, at, side in r.ideal.neighbours(near, ZERO, [kind]):
            ledger.answer(float(up(error[k] + error[m])), float(at * side))


DECISIONS: Mapping[type[Any], Callable[[Any, Approximation, RoundingErrors, Ledger], None]] = {
    Binary: _accept,
    MultiClass: _labels,
    NearestFraction: _fraction,
}
"""The function that notes the margins of a read-out, by its class."""
