"""Hidden units, single and in pairs: the numbers that a network adds to its stream.

Two hidden units whose columns of W₂ are opposite contribute their difference, so they are taken as
one number:

- with equal rows of W₁ it is ReLU(x) − ReLU(x − h), a *step*: 0 for x ≤ 0, h for x ≥ h;
- with opposite rows and shifts it is ReLU(x) − ReLU(−x) = x, a *copy*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.model import FeedForward
from transformist.verify.proof.grids import Grid, exponent, quantum, sum_grid
from transformist.verify.proof.ideal import ONE, Form, Ideal, Moving
from transformist.verify.proof.rounding_errors import (
    AffineMap,
    Approximation,
    Halves,
    Mixed,
    RoundingErrors,
)
from transformist.verify.proof.slack import Ledger, Margin
from transformist.verify.proof.sparse_rows import exactly, negated, sparse_rows
from transformist.verify.proof.upwards import NEARLY, Floats, Unfollowed, up

Group = tuple[int, ...]
"""The numbers of one or two hidden units."""


class Contribution(NamedTuple):
    """The number that a unit or a pair contributes, with bounds as in `Approximation`.

    Attributes:
        form, lo, hi, size, error, absolute, relative: the number, which a column of W₂ multiplies.
        reach: bound of the sum of the computed magnitudes of the units.
        quantum: the exponent k of 2ᵏ, of which each computed unit is a multiple, or `None`.
        height: h of a step; `None` for other units.

    """

    form: Form
    lo: Floats
    hi: Floats
    size: Floats
    error: Floats
    absolute: Floats
    relative: Floats
    reach: Floats
    quantum: int | None
    height: Fraction | None = None


def network(
    f: FeedForward,
    read: Approximation,
    z: Approximation,
    r: RoundingErrors,
    ledger: Ledger,
    where: str,
) -> Approximation:
    """Return z + W₂ ReLU(W₁ x + b₁) + b₂, where x is what the network reads."""
    if f.activation != "relu":
        raise Unfollowed(where, f"its activation is {f.activation}")
    inner = clipped(f, r.affine(f.W_1, f.b_1, read, f"{where} units"), read, r)
    layer = hidden_layer(f, inner, r, ledger, where)
    groups, W, hidden = layer.groups, layer.W_2, layer.values
    y = r.affine(W, f.b_2, hidden, f"{where} output").values
    added = r.added([z, relative_to_steps(y, W, f.b_2, hidden, layer.heights)], where)
    # z + (−z) is exactly 0 whatever the error of z: products with ±1 and the sum do not round.
    pairs_of_units = {group for group in groups if len(group) == 2}
    written = [tuple(unit for unit, _ in row) for row in sparse_rows(f.W_2)]
    empties = [
        read is z and units in pairs_of_units and _empties(f, units, slot)
        for slot, units in enumerate(written)
    ]
    left = ~np.array(empties, dtype=bool) | np.array([bool(form) for form in added.forms])
    kept = {
        name: getattr(added, name) * left[:, None] for name in ("error", "absolute", "relative")
    }
    return named_positions(replace(added, **kept), r)


class HiddenLayer(NamedTuple):
    """The contributions of the hidden units, and the columns of W₂ that multiply them.

    Attributes:
        values: the contributions, one for each group.
        W_2: the column of each group.
        groups: the units of each group.
        heights: h for a step, `None` for other groups.

    """

    values: Approximation
    W_2: Any
    groups: Sequence[Group]
    heights: Sequence[Fraction | None]


def hidden_layer(
    f: FeedForward, inner: AffineMap, r: RoundingErrors, ledger: Ledger, where: str
) -> HiddenLayer:
    """Return the contributions of all hidden units, single or in pairs.

    Args:
        f: the network.
        inner: W₁ x + b₁.
        r: the error bounds of the format.
        ledger: the margins, to which those of steps are added.
        where: the place of the network.

    """
    groups = paired(f)
    steps = [g for g in groups if len(g) == 2 and np.array_equal(f.W_1[g[0]], f.W_1[g[1]])]
    near = r.ideal.moving([inner.values.forms[_ordered(f, g)[0]] for g in steps])
    crossed: dict[Group, Moving] = dict(zip(steps, near, strict=True))
    found = [
        _contribution(f, inner, g, crossed.get(g), r, ledger, f"{where} unit {g[0]}")
        for g in groups
    ]
    stacked = {
        name: np.stack([getattr(each, name) for each in found], axis=-2)
        for name in ("lo", "hi", "size", "error", "absolute", "relative", "reach")
    }
    pairs = np.array([len(group) == 2 for group in groups])
    halves = Halves(pairs, stacked.pop("reach"), [each.quantum for each in found])
    hidden = Approximation([each.form for each in found], **stacked, halves=halves)
    W_2 = f.W_2[:, [group[0] for group in groups]]
    return HiddenLayer(hidden, W_2, groups, [each.height for each in found])


def clipped(f: FeedForward, inner: AffineMap, read: Approximation, r: RoundingErrors) -> AffineMap:
    """Return W₁ x + b₁ without the roundings that ReLU takes away.

    Let a unit be ReLU(y − t), with y = ±2ᵏ x for a number x of the format, t > 0 a number of it,
    and t a multiple of 2^(E − p), where y − t ≤ 2^E. The computed unit is exactly ReLU(y − t):

    - y ≤ t: rounding is monotone, so the computed y − t is at most 0.
    - y > t, 2^(e−1) ≤ y < 2ᵉ: y is a multiple of 2^(e−p). For e ≤ E so is t, and y − t < 2ᵉ; for
      e > E both are multiples of 2^(E−p), and y − t ≤ 2^E. Either way p bits hold y − t.
    - y and t are multiples of t's unit in the last place, 2^L with L = ⌊log₂ t⌋ + 1 − p, and so is
      y − t. Where the format and its accumulator hold 2^L, nothing underflows.

    So y − t stands for the computed number: both have the same ReLU, and only x has an error.

    For every other unit let s be the sum in the accumulator. Storing keeps its sign and is off by
    `storing` of it, so ReLU of the stored number is ReLU(s′) with |s′ − s| ≤ storing · max(s, 0):
    s′ is the stored number where s > 0, and s elsewhere. s is at most hi + inherited + accumulated.
    """
    v, p, mixed = inner.values, r.a.precision, inner.mixed
    weights, off, shift, shift_off = inner.stored
    absolute, relative = mixed.absolute.copy(), mixed.relative.copy()
    exact = np.zeros_like(v.lo, dtype=bool)
    alone = ((weights != 0).sum(axis=1) == 1) & ~off.any(axis=1) & (shift < 0) & (shift_off == 0)
    for unit in np.flatnonzero(alone).tolist():
        (slot,) = np.flatnonzero(weights[unit]).tolist()
        size, t = abs(float(weights[unit, slot])), -float(shift[unit])
        # L: t is in [2^(L + p − 1), 2^(L + p)). As `within_reach` keeps t near 2⁻⁵⁰⁰ or above, the
        # cut of L at −1000 never applies. The cut at 2¹⁰⁰⁰ below can only refuse more.
        place = int(np.frexp(t)[1]) - p
        largest = max(r.tiny, r.tiny_partial)
        if np.frexp(size)[0] != 0.5 or 2.0 ** max(place, -1000) < largest:
            continue
        most = up(np.maximum(v.hi[unit], 0) + inner.inherited[0, unit])  # of y − t
        fits = most <= 2.0 ** min(_twos(f.b_1[unit]) + p, 1000)
        exact[unit] = fits & np.isfinite(inner.inherited[0, unit])
        a, rho = up(size * read.absolute[slot]), read.relative[slot]
        absolute[unit] = np.where(exact[unit], a, absolute[unit])
        relative[unit] = np.where(exact[unit], rho, relative[unit])
    above = r.ideal.scales[:, None, None] * np.maximum(v.hi, 0) + inner.inherited
    of_positive = up(inner.accumulated + r.storing * (above + inner.accumulated))
    rounding = np.where(exact, 0.0, np.minimum(inner.rounding, of_positive))
    error = np.minimum(v.error, r.least(inner.inherited + rounding))
    kept = [np.where(exact, x, y) for x, y in ((error[0], v.absolute), (0.0, v.relative))]
    return replace(
        inner,
        values=replace(v, error=error, absolute=kept[0], relative=kept[1]),
        rounding=rounding,
        mixed=Mixed(absolute, relative),
    )


def _twos(x: Fraction | float) -> int:
    """Return the largest k such that a number of a format, not 0, is a whole multiple of 2ᵏ."""
    k = exponent(Fraction(x))
    assert k is not None
    return k


def named_positions(z: Approximation, r: RoundingErrors) -> Approximation:
    """Return the stream with position functions in place of sums of hidden units equal to them."""
    forms = [r.ideal.named(form) for form in z.forms]
    if all(new is old for new, old in zip(forms, z.forms, strict=True)):
        return z
    lo, hi, size = r.ideal.measured(forms)
    return replace(z, forms=forms, lo=lo, hi=hi, size=size)


def paired(f: FeedForward) -> list[Group]:
    """Return the hidden units in groups of one or two.

    Two are a pair if their columns of W₂ are opposite, and their rows of W₁ are equal, or opposite
    with opposite shifts.
    """
    columns, rows = sparse_rows(f.W_2.T), sparse_rows(f.W_1)
    waiting: dict[Any, list[int]] = {}
    partner: dict[int, int] = {}
    for k, column in enumerate(columns):
        opposite = negated(column)
        for j in waiting.get(opposite, []):
            is_copy = rows[j] == negated(rows[k]) and f.b_1[j] == -f.b_1[k]
            if is_copy or rows[j] == rows[k]:
                partner[j] = k
                waiting[opposite].remove(j)
                break
        else:
            waiting.setdefault(column, []).append(k)
    second = set(partner.values())
    singles_and_first = (j for j in range(len(columns)) if j not in second)
    return [(j, partner[j]) if j in partner else (j,) for j in singles_and_first]


def _contribution(
    f: FeedForward,
    inner: AffineMap,
    group: Group,
    near: Moving | None,
    r: RoundingErrors,
    ledger: Ledger,
    where: str,
) -> Contribution:
    """Return what a group adds; `near` has the bounds of a step, `None` for other groups."""
    if len(group) == 1:
        return _alone(f, inner, group[0], r.ideal, where)
    if near is not None:
        return _step(f, inner, group, near, r, ledger, where)
    return _copy(inner, group, r.ideal)


def _alone(f: FeedForward, inner: AffineMap, j: int, ideal: Ideal, where: str) -> Contribution:
    """Return ReLU(x).

    ReLU is 1-Lipschitz, so its error is at most that of x. For x ≥ 0 also the bound a + ρ x
    carries over. For x < 0 and ρ < 1 the computed x is at most x + a + ρ |x| < a, so the error
    is at most a: again the bound a + ρ · 0.

    Let x = p + b with p ≤ 0 < b, and let a + ρ |p| with ρ ≤ 1 bound the error of x (`mixed`). Then
    the error of ReLU(x) is at most a + ρ b. For x ≥ 0 this is so since |p| = b − x ≤ b. For x < 0
    it is so since the computed x is at most x + a + ρ (b − x) = a + ρ b + (1 − ρ) x ≤ a + ρ b.
    """
    v = inner.values
    form, lo, hi = v.forms[j], v.lo[j], v.hi[j]
    grid, (low, high) = ideal.grid(form), (np.maximum(lo, 0), np.maximum(hi, 0))
    size = np.minimum(v.size[:, j], up(ideal.scales[:, None] * high))
    if (hi <= 0).all():
        form = {}
    elif not (lo >= 0).all():
        rows = ideal.row_function(form)
        rows = None if rows is None else rows.clipped(None)
        form = {ideal.add(where, low, high, grid, size, unit=(form, None), rows=rows): ONE}
    is_off = hi + v.error[0, j] <= 0  # the computed x is at most 0
    error = v.error[:, j]
    a, rho = (each[j] for each in inner.mixed)
    b = float(f.b_1[j])
    if b > 0:
        falls = (hi <= b * NEARLY) & (rho <= 1)  # b is rounded to float64: down, to be safe
        bent = np.where(falls, up(a + rho * up(b)), np.inf)
        error = np.minimum(error, ideal.scales[:, None] * bent)
    error = np.where(is_off, 0.0, error)
    has_ratio = v.relative[j] < 1
    a = np.where(is_off, 0.0, np.where(has_ratio, v.absolute[j], v.error[0, j]))
    rho = np.where(is_off | ~has_ratio, 0.0, v.relative[j])
    return Contribution(form, low, high, size, error, a, rho, up(size + error), quantum(grid))


def _copy(inner: AffineMap, group: Group, ideal: Ideal) -> Contribution:
    """Return ReLU(x) − ReLU(−x) = x.

    Rows and shifts are opposite, so both units read ±y for y = W̃ z̃ + b̃, with roundings δ and δ′ of
    their own. ReLU(y + δ) − ReLU(−y + δ′) differs from y by at most |δ| + |δ′|, as each ReLU is
    1-Lipschitz. The computed magnitudes add up to at most |y| + |δ| + |δ′|.
    """
    (j, k), v = group, inner.values
    error = up(inner.inherited[:, j] + inner.rounding[:, j] + inner.rounding[:, k])
    return Contribution(
        form=v.forms[j],
        lo=v.lo[j],
        hi=v.hi[j],
        size=v.size[:, j],
        error=error,
        absolute=error[0],
        relative=np.zeros_like(error[0]),
        reach=up(v.size[:, j] + error),
        quantum=quantum(ideal.grid(v.forms[j])),
    )


# Steps


class Crossing(NamedTuple):
    """Position of x relative to a step from 0 to h, for each kind of row.

    Attributes:
        is_low, is_high: True if x may be below h/2, or above h/2.
        clear: True if the computed x is at most 0 wherever x is below h/2, and at least h wherever
            x is above.

    """

    is_low: NDArray[np.bool_]
    is_high: NDArray[np.bool_]
    clear: NDArray[np.bool_]


def _ordered(f: FeedForward, group: Group) -> list[int]:
    """Return the two units of a step, the one with the larger shift first."""
    return sorted(group, key=lambda unit: -Fraction(f.b_1[unit]))


def _step(
    f: FeedForward,
    inner: AffineMap,
    group: Group,
    near: Moving,
    r: RoundingErrors,
    ledger: Ledger,
    where: str,
) -> Contribution:
    """Return ReLU(x) − ReLU(x − h), or minus that; x is the unit with the larger shift.

    Where x is clear of the step (`_crossing`), the pair is 0 or h, and its error does not contain
    that of z: the rows of W₁ are equal, so x̃₁ − x̃₂ is b̃₁ − b̃₂ plus the rounding of the two sums.
    Elsewhere the error of x is added, as the difference is 1-Lipschitz in x.
    """
    ideal, v = r.ideal, inner.values
    upper, lower = _ordered(f, group)
    sign, x = 1 if upper == group[0] else -1, v.forms[upper]
    height = Fraction(f.b_1[upper]) - Fraction(f.b_1[lower])
    crossing = _crossing(f, inner, (upper, lower), near, ideal, ledger, where)
    is_step, clear = bool(crossing.clear.all()) and height > 0, crossing.clear
    # h is b₁ − b₂, but b̃₁ − b̃₂ is computed.
    shift = inner.stored.shift
    rounded = Fraction(shift[upper]) - Fraction(shift[lower])
    of_height = 0.0 if rounded == height else float(up(float(abs(rounded - height))))
    rounding = inner.rounding[0, upper] + inner.rounding[0, lower] + of_height
    is_zero = clear & ~crossing.is_high
    moved = up(np.where(clear, 0.0, inner.inherited[0, upper]) + rounding)
    moved = np.where(is_zero, 0.0, moved)
    # W₂ reads the two units one by one, so their magnitudes, not their difference, round there.
    reach = sum(np.maximum(v.hi[unit] + v.error[0, unit], 0) for unit in (upper, lower))
    h, grid = float(height), (height, None) if is_step else None
    lo = np.where(clear & ~crossing.is_low, h * NEARLY, 0.0)
    lo, hi = ideal.snapped(grid, lo, np.where(is_zero, 0.0, up(h)))
    rows = ideal.row_function(x)
    rows = None if rows is None else rows.clipped(height)
    number = ideal.add(where, lo, hi, grid, unit=(x, height), rows=rows)
    lo, hi = ideal.unknowns[number].lo, ideal.unknowns[number].hi
    scales = ideal.scales[:, None]
    is_exact = not v.error[0, [upper, lower]].any()
    units_grid: Grid = sum_grid((ideal.grid(x), (height, None))) if is_exact else None
    return Contribution(
        form={number: Fraction(sign)},
        lo=lo if sign > 0 else -hi,
        hi=hi if sign > 0 else -lo,
        size=ideal.unknowns[number].size,
        error=up(scales * moved),
        # Where the step is 0 its error is 0; elsewhere the error is at most (moved/h) h.
        absolute=np.zeros_like(moved) if is_step else moved,
        relative=up(moved / (h * NEARLY)) if is_step else np.zeros_like(moved),
        reach=up(scales * np.where(is_zero, 0.0, up(reach))),
        quantum=quantum(units_grid),
        height=height if is_step else None,
    )


def _crossing(
    f: FeedForward,
    inner: AffineMap,
    units: tuple[int, int],
    near: Moving,
    ideal: Ideal,
    ledger: Ledger,
    where: str,
) -> Crossing:
    """Return the kinds of rows where x is clear of the step, and note the margins of both sides.

    Let x̃₁ and x̃₂ be the computed x and x − h, off by at most e₁ and e₂.

    - If x ≤ 0, both are at most 0, and the difference is exactly 0, where
      x + e₁ < 0 and x − h + e₂ < 0: max(e₁, e₂ − h) < −x.
    - If x ≥ h, both are above 0, and the difference is x̃₁ − x̃₂, where
      x − e₁ > 0 and x − h − e₂ > 0: max(e₂, e₁ − h) < x − h.

    It is enough that the values of x next to h/2 on either side keep these margins, as the e grow
    more slowly than −x and x − h (`AffineMap.error_at`, at W z = x − b).
    """
    upper, lower = units
    b = Fraction(f.b_1[upper])
    height = b - Fraction(f.b_1[lower])
    h, sides = float(height), np.full((2, ideal.kinds), False)
    clear, kept, lost = np.full(ideal.kinds, True), list[Margin](), list[Margin]()
    known = dict[tuple[int, int], tuple[float, float]]()  # most kinds have the same values
    neighbours = list(ideal.neighbours(near, height / 2, range(ideal.kinds)))
    for kind, at, side in neighbours:
        sides[(side + 1) // 2, kind] = True
        if (id(at), side) not in known:
            room = float(at - height if side > 0 else -at) * NEARLY
            known[id(at), side] = room, abs(float(at - b))
        room, product = known[id(at), side]
        e_1, e_2 = (inner.error_at(unit, kind, product) for unit in units)
        # e − h is a difference: where it matters e ≥ h/2, and `up` has raised e by 2⁻⁴⁰ e.
        error = max(e_2, e_1 - h) if side > 0 else max(e_1, e_2 - h)
        margin = Margin(where, "the error of a comparison", error, max(room, 0.0))
        clear[kind] &= room > error
        (kept if room > error else lost).append(margin)
    is_step = bool(clear.all()) and height > 0
    (ledger.kept if is_step else ledger.lost).extend(kept if is_step else lost[:1])
    return Crossing(sides[0], sides[1], clear)


# Outputs


def relative_to_steps(
    y: Approximation, W: Any, b: Any, hidden: Approximation, steps: Sequence[Fraction | None]
) -> Approximation:
    """Replace the errors of sums of steps by relative ones.

    In a slot that only steps write, all with one sign, the ideal sum is 0 or at least the least
    height m in magnitude. If it is 0, every step is 0 in the ideal and computed, and so is the
    sum. Else the error E is at most (E/m) |ideal|: a = 0, ρ = E/m.
    """
    absolute, relative = y.absolute.copy(), y.relative.copy()
    signs = np.where(hidden.lo.min(axis=1) < 0, -1, 1)
    for slot, row in enumerate(sparse_rows(W)):
        if not row:
            continue
        terms = [(exactly(x) * int(signs[k]), steps[k]) for k, x in row]
        heights = [abs(weight) * height for weight, height in terms if height is not None]
        one_sign = len({weight > 0 for weight, _ in terms}) == 1
        if one_sign and len(heights) == len(terms) and not b[slot]:
            absolute[slot], relative[slot] = 0.0, up(y.error[0][slot] / float(min(heights)))
    return replace(y, absolute=absolute, relative=relative)


def _empties(f: FeedForward, units: Group, slot: int) -> bool:
    """True if a pair of units adds exactly −z to a slot that holds z: a copy with weights ±1."""
    if f.b_2[slot] or f.b_1[list(units)].any():
        return False
    j, k = units
    reads_it = np.flatnonzero(f.W_1[j]).tolist() == [slot] and np.array_equal(f.W_1[j], -f.W_1[k])
    weight = f.W_2[slot, j]
    return bool(reads_it and abs(weight) == 1 and f.W_1[j, slot] * weight == -1)
