"""Steps: pairs of hidden units with equal rows of W₁ and opposite columns of W₂.

Such a pair is ReLU(x) − ReLU(x − h): 0 for x ≤ 0, h for x ≥ h. A layer can have thousands of steps,
so all of them are bounded at once, in arrays with an axis for the steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.model import FeedForward
from transformist.verify.proof.grids import ANY_POWER, Grid, exponent, quantum, sum_grid
from transformist.verify.proof.ideal import ONE, Form, Ideal, Moving
from transformist.verify.proof.rounding_errors import (
    AffineMap,
    RoundingErrors,
    exponents,
    largest_sums,
)
from transformist.verify.proof.slack import Ledger, Margin
from transformist.verify.proof.upwards import NEARLY, TINIEST, Floats, up

Group = tuple[int, ...]
"""The numbers of one or two hidden units."""


class Contribution(NamedTuple):
    """The number that a unit or a pair contributes, with bounds as in `Approximation`.

    Attributes:
        form, lo, hi, size, error, absolute, relative: the number, which a column of W₂ multiplies.
        reach: bound of the sum of the computed magnitudes of the units.
        quantum: the exponent k of 2ᵏ, of which each computed unit is a multiple, or `None`.
        height: h of a step; `None` for other units.
        rounds_alike: (kinds,): True if a step is off by at most u 2^e + u P/2, where 2^e ≤ s for
            the sum s ≥ h of the upper unit before it is stored, and P is the largest power of two
            below 2h (`_rounding_alike`).

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
    rounds_alike: NDArray[np.bool_] | None = None


class Shifts(NamedTuple):
    """The two shifts b₁ > b₂ of a step, and what follows from them alone.

    Attributes:
        b: b₁.
        height: h = b₁ − b₂.
        of_height: |(b̃₁ − b̃₂) − h|, where b̃ is b in the format.

    """

    b: Fraction
    height: Fraction
    of_height: float


class Crossing(NamedTuple):
    """Position of x relative to the steps from 0 to h, (steps, kinds).

    Attributes:
        is_low, is_high: True if x may be below h/2, or above h/2.
        clear: True if the computed x is at most 0 wherever x is below h/2, and at least h wherever
            x is above.

    """

    is_low: NDArray[np.bool_]
    is_high: NDArray[np.bool_]
    clear: NDArray[np.bool_]


def step_contributions(
    f: FeedForward,
    inner: AffineMap,
    groups: Sequence[Group],
    r: RoundingErrors,
    ledger: Ledger,
    where: str,
) -> list[Contribution]:
    """Return ReLU(x) − ReLU(x − h), or minus that, of each group; note the margins of the steps.

    x is the unit with the larger shift. Where x is clear of the step (`_crossing`), the pair is 0
    or h, and its error does not contain that of z: the rows of W₁ are equal, so x̃₁ − x̃₂ is
    b̃₁ − b̃₂ plus the rounding of the two sums. Elsewhere the error of x is added, as the difference
    is 1-Lipschitz in x.

    Args:
        f: the network.
        inner: W₁ x + b₁.
        groups: the two units of each step.
        r: the error bounds of the format.
        ledger: the margins, to which those of the steps are added.
        where: the place of the network.

    """
    if not groups:
        return []
    ideal, v = r.ideal, inner.values
    ordered = [group if f.b_1[group[0]] >= f.b_1[group[1]] else group[::-1] for group in groups]
    upper, lower = (np.array(each) for each in zip(*ordered, strict=True))
    signs = [1 if pair is group else -1 for pair, group in zip(ordered, groups, strict=True)]
    shifts = _shifts(f, inner, ordered)
    names = [f"{where} unit {group[0]}" for group in groups]
    near = ideal.moving([v.forms[unit] for unit in upper.tolist()])
    crossing = _crossing(inner, ordered, near, shifts, r)
    margins, (is_low, is_high, clear) = crossing
    heights = [each.height for each in shifts]
    h = np.array([float(height) for height in heights])[:, None]
    is_step = clear.all(axis=1) & (h[:, 0] > 0)
    _note(margins, is_step.tolist(), names, ledger)
    of_height = np.array([each.of_height for each in shifts])[:, None]
    rounding, powers, alike = _rounded(f, inner, ordered, shifts, crossing, r)
    rounding = rounding + of_height
    is_zero = clear & ~is_high
    moved = up(np.where(clear, 0.0, inner.inherited[0, upper]) + rounding)
    moved = np.where(is_zero, 0.0, moved)
    # W₂ reads the two units one by one, so their magnitudes, not their difference, round there.
    reach = np.maximum(v.hi[upper] + v.error[0, upper], 0)
    reach = reach + np.maximum(v.hi[lower] + v.error[0, lower], 0)
    lo, hi = np.where(clear & ~is_low, h * NEARLY, 0.0), np.where(is_zero, 0.0, up(h))
    grids: list[Grid] = [
        (height, None) if steps else None
        for height, steps in zip(heights, is_step.tolist(), strict=True)
    ]
    for grid in dict.fromkeys(grids):
        same = [place for place, each in enumerate(grids) if each == grid]
        lo[same], hi[same] = ideal.snapped(grid, lo[same], hi[same])
    of = []
    for unit, height in zip(upper.tolist(), heights, strict=True):
        rows = ideal.row_function(v.forms[unit])
        rows = None if rows is None else rows.clipped(height)
        of.append({"unit": (v.forms[unit], height), "rows": rows})
    numbers = ideal.add_all(names, lo, hi, grids, of)
    scales = ideal.scales[:, None, None]
    error = up(scales * moved)
    reach = up(scales * np.where(is_zero, 0.0, up(reach)))
    # Where the step is 0 its error is 0; elsewhere the error is at most (moved/h) h.
    absolute = np.where(is_step[:, None], 0.0, moved)
    relative = np.where(is_step[:, None], up(moved / (h * NEARLY)), 0.0)
    is_exact = ~(v.error[0, upper].any(axis=1) | v.error[0, lower].any(axis=1))
    found = []
    for place, (number, sign) in enumerate(zip(numbers, signs, strict=True)):
        unknown, height = ideal.unknowns[number], heights[place]
        of_units: Grid = None
        if is_exact[place]:
            of_units = sum_grid((ideal.grid(v.forms[upper[place]]), (height, None)))
        elif is_step[place] and not error[0, place].any() and abs(powers[place]) < ANY_POWER:
            of_units = Fraction(2) ** int(powers[place]), None
        found.append(
            Contribution(
                form={number: _SIGNS[sign]},
                lo=unknown.lo if sign > 0 else -unknown.hi,
                hi=unknown.hi if sign > 0 else -unknown.lo,
                size=unknown.size,
                error=error[:, place],
                absolute=absolute[place],
                relative=relative[place],
                reach=reach[:, place],
                quantum=quantum(of_units),
                height=height if is_step[place] else None,
                rounds_alike=alike[place] if is_step[place] else None,
            )
        )
    return found


def _rounded(
    f: FeedForward,
    inner: AffineMap,
    ordered: Sequence[Group],
    shifts: Sequence[Shifts],
    crossing: tuple[Sides, Crossing],
    r: RoundingErrors,
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return bounds of the rounding of both units, (steps, kinds), and powers of two, (steps,).

    Where a bound is 0, both units are multiples of 2ᵏ for the k returned; −∞ stands for none. The
    third value is `Contribution.rounds_alike`.
    """
    upper, lower = (np.array(each) for each in zip(*ordered, strict=True))
    margins, (_, is_high, clear) = crossing
    rounding = inner.rounding[0, upper] + inner.rounding[0, lower]
    powers = np.full(clear.shape, -np.inf)
    if not r.are_stored:
        return rounding, powers.min(axis=1), np.zeros_like(clear)
    alike, is_alike = _rounding_alike(f, inner, upper, lower, shifts, r)
    rounding = np.where(clear, np.minimum(rounding, alike), rounding)
    powers[rounding == 0] = np.broadcast_to(
        _multiples_of(inner, upper, lower)[:, None], clear.shape
    )[rounding == 0]
    is_highest = clear & is_high & _is_highest(inner, upper, margins)
    loose = is_highest & (rounding > 0)
    for step in np.flatnonzero(loose.any(axis=1) & r.narrow).tolist():
        k = _power_at_highest(inner, ordered[step], r)
        exact = loose[step] & np.isfinite(k)
        rounding[step], powers[step] = (
            np.where(exact, new, old) for new, old in ((0.0, rounding[step]), (k, powers[step]))
        )
    # W z is 0 where x is b: the units are b̃₁ and b̃₂ there, which are stored as they are.
    is_b = is_highest & (margins.product[1] == 0) & inner.keeps_zero(upper)
    of_b = np.minimum(*(exponents(inner.stored.shift[each]) for each in (upper, lower)))
    powers = np.where(is_b, of_b[:, None], powers)
    # Below h/2 both units are 0.
    is_zero = clear & ~is_high
    powers = np.where(is_zero, float(ANY_POWER), powers)
    return np.where(is_b | is_zero, 0.0, rounding), powers.min(axis=1), clear & is_alike


def _is_highest(inner: AffineMap, upper: NDArray[np.intp], margins: Sides) -> NDArray[np.bool_]:
    """(steps, kinds): True if x has one value above h/2, its largest: no value is between them."""
    return np.asarray(inner.values.hi[upper] <= margins.value[1])


def _power_at_highest(inner: AffineMap, units: Group, r: RoundingErrors) -> Floats:
    """(kinds,): k if no unit of a step rounds where x is largest, and both are multiples of 2ᵏ.

    −∞ stands for no such k.

    If Σ w_c m_c + b is the largest x, with m_c the end of z_c on the side of w_c, then each z_c is
    m_c where x is largest. There z̃_c is m_c if it has no error, 0 if m_c and its `absolute` are 0,
    and else at least 2^e = 2^⌊log₂(|m_c| − error)⌋ in magnitude: like all numbers of p bits from
    2^e on a multiple of 2^(e−p+1). So all terms are multiples of some 2^q, and neither the sums nor
    their storing round if they are small enough (`_rounding_alike`).

    The sum is compared in float64, which is exact for multiples of 2⁻¹⁰ up to 2¹².
    """
    z, p, none = inner.source, r.a.precision, np.full(inner.values.hi.shape[1], -np.inf)
    weights, off, shift, shift_off = inner.stored
    upper = units[0]
    used = np.flatnonzero(weights[upper])
    rounded = off[list(units)].any() or shift_off[list(units)].any()
    if z.halves is not None or rounded or len(used) > 2**8:
        return none
    w, error = weights[upper, used][:, None], z.error[0, used]
    m = np.where(w > 0, z.hi[used], z.lo[used])
    small = [
        (np.abs(x) <= 2.0**12) & (np.mod(x * 2.0**10, 1) == 0) for x in (w, m, shift[list(units)])
    ]
    found = small[0].all() & small[1].all(axis=0) & small[2].all()
    found &= (w * m).sum(axis=0) + shift[upper] == inner.values.hi[upper]
    # A difference of a number and at most half of it: NEARLY covers its rounding.
    least = np.where(error <= np.abs(m) / 2, (np.abs(m) - error) * NEARLY, 0.0)
    from_least = np.where(least > 0, np.frexp(least)[1] - p, -np.inf)
    of_z = np.where(error == 0, exponents(m), from_least)
    of_z = np.where((m == 0) & (z.absolute[used] == 0), float(ANY_POWER), of_z)
    q = np.minimum(exponents(shift[list(units)]).min(), (exponents(w) + of_z).min(axis=0))
    q = np.clip(q, -2000, 900)
    largest = up(np.maximum(inner.values.hi[upper], 0) + inner.inherited[0, upper])
    found &= (np.exp2(q) >= max(r.tiny, r.tiny_partial)) & (largest <= np.exp2(q + p))
    found &= inner.summed[list(units)].max(axis=0) <= np.exp2(q + r.partial_precision)
    return np.where(found, q, none)


def _rounding_alike(
    f: FeedForward,
    inner: AffineMap,
    upper: NDArray[np.intp],
    lower: NDArray[np.intp],
    shifts: Sequence[Shifts],
    r: RoundingErrors,
) -> tuple[Floats, NDArray[np.bool_]]:
    """(steps, kinds): a bound of |(x̃₁ − x̃₂) − h̃| where both are at least 0; infinite without one.

    Let the accumulator hold s₁ = W̃ z̃ + b̃₁ and s₂ = s₁ − h̃ ≥ 0 exactly, h̃ = b̃₁ − b̃₂. Both are then
    stored, which rounds to the nearest number of p bits. Let 2^e ≤ s₁ < 2^(e+1), where numbers have
    the distance 2^(e−p+1), and let h̃ be a multiple of twice this distance.

    - If s₂ ≥ 2^e, both round alike, ties to even included: x̃₁ = x̃₂ + h̃.
    - Else s₁ is off by at most 2^(e−p), and s₂ by half of that, together by 1.5 u 2^e (u = 2^−p).
      If h̃ ≤ 2^(e−1), s₂ is between 2^(e−1) and 2^e, where numbers have the distance 2^(e−p). So
      x̃₁ − x̃₂ − h̃ is a multiple of 2^(e−p), and at most 2^(e−p) = u 2^e. If h̃ > 2^(e−1), the
      bound is 1.5 u 2^e < 3 u h̃.

    With s₁ ≤ S, all e are at most E = ⌊log₂ S⌋, so the bound is max(u 2^E, 3 u h̃), or 1.5 u 2^E if
    2^E < 2 h̃; h̃ must be a multiple of 2^(E−p+2). s₁ and s₂ are exact if all terms are multiples of
    2^q, which both formats hold, and Σ |term| is at most 2^(q + t) for an accumulator of t bits:
    then no partial sum rounds. If S is at most 2^(q + p), storing does not round either: the bound
    is 0.

    For a single e the bound is at most u 2^e + u P/2, where P is the largest power of two below
    2 h̃: 1.5 u 2^e is needed for 2^e < 2 h̃ alone. The second value is True where this holds.
    """
    p, v = r.a.precision, inner.values
    found = np.full(v.hi[upper].shape, np.inf)
    if not r.narrow:
        return found, np.zeros(found.shape, dtype=bool)
    # q is clipped to what float64 holds, on the side that says False, as in `fits`.
    q = np.clip(_multiples_of(inner, upper, lower), -2000, 900)[:, None]
    largest = up(np.maximum(v.hi[upper], 0) + inner.inherited[0, upper])
    is_stored = np.asarray(~inner.stored.off[upper].any(axis=1))[:, None]
    of_terms = largest_sums(f.W_1[upper], inner.stored.shift[upper], inner.source, r.ideal)
    largest = np.where(is_stored, np.minimum(largest, of_terms), largest)
    is_exact = (np.exp2(q) >= max(r.tiny, r.tiny_partial)) & np.isfinite(largest)
    summed = np.maximum(inner.summed[upper], inner.summed[lower])
    is_exact &= summed <= np.exp2(q + r.partial_precision)
    E = np.frexp(largest)[1] - 1.0  # 2^E ≤ S < 2^(E+1)
    power, h = np.exp2(np.minimum(E, 900)), np.array([float(each.height) for each in shifts])
    bound = np.where(power < 2 * h[:, None], 1.5 * power, np.maximum(power, up(3 * h)[:, None]))
    # h is a multiple of 2^j, and h̃ = h.
    j = [
        exponent(each.height) if each.height > 0 and not each.of_height else None for each in shifts
    ]
    of_height = np.array([-np.inf if each is None else each for each in j])[:, None]
    is_alike = is_exact & (of_height >= E - p + 2)
    found = np.where(is_alike, up(r.u * bound), found)
    return np.where(is_exact & (largest <= np.exp2(q + p)), 0.0, found), is_alike


def _multiples_of(inner: AffineMap, upper: NDArray[np.intp], lower: NDArray[np.intp]) -> Floats:
    """(steps,): q such that all terms of both units are multiples of 2^q, or −∞."""
    return np.minimum(inner.multiples[upper], inner.multiples[lower])


_SIGNS = {1: ONE, -1: -ONE}


def _shifts(f: FeedForward, inner: AffineMap, ordered: Sequence[Group]) -> list[Shifts]:
    """Return the shifts of each step; equal ones are one object, as most steps of a layer share."""
    stored, known, found = inner.stored.shift, dict[Any, Shifts](), []
    for upper, lower in ordered:
        key = f.b_1[upper], f.b_1[lower]
        if key not in known:
            b = Fraction(key[0])
            height = b - Fraction(key[1])
            # h is b₁ − b₂, but b̃₁ − b̃₂ is computed.
            rounded = Fraction(stored[upper]) - Fraction(stored[lower])
            off = 0.0 if rounded == height else float(up(float(abs(rounded - height))))
            known[key] = Shifts(b, height, off)
        found.append(known[key])
    return found


class Sides(NamedTuple):
    """The margins of steps: (2, steps, kinds), below h/2 and above it.

    Attributes:
        there: True if x has a value on this side.
        product: |x − b| at the value next to h/2; NaN where there is none.
        value: that value, if it is a float64; else NaN.
        error: a bound of the error.
        room: the error below which the computed x is on this side.

    """

    there: NDArray[np.bool_]
    product: Floats
    value: Floats
    error: Floats
    room: Floats


def _crossing(
    inner: AffineMap,
    ordered: Sequence[Group],
    near: Sequence[Moving],
    shifts: Sequence[Shifts],
    r: RoundingErrors,
) -> tuple[Sides, Crossing]:
    """Return the kinds of rows where x is clear of the step, and the margins of both sides.

    Let x̃₁ and x̃₂ be the computed x and x − h, off by at most e₁ and e₂.

    - If x ≤ 0, both are at most 0, and the difference is exactly 0, where
      x + e₁ ≤ 0 and x − h + e₂ ≤ 0: max(e₁, e₂ − h) ≤ −x.
    - If x ≥ h, both are at least 0, and the difference is x̃₁ − x̃₂, where
      x − e₁ ≥ 0 and x − h − e₂ ≥ 0: max(e₂, e₁ − h) ≤ x − h.

    It is enough that the values of x next to h/2 on either side keep these margins, as the e grow
    more slowly than −x and x − h (`AffineMap.error_at`, at W z = x − b).

    Storing a sum keeps its sign, so e need not count it: a bound of the sum in the accumulator will
    do. (A sum above 0 may be stored as 0, which is then x̃.)
    """
    # Below and above: room, |x − b|, x. NaN stands for a side without a value.
    known: dict[Any, tuple[float, ...]] = {}  # most steps have the same values
    rooms = np.array(
        [_rooms(each, of, r.ideal, known) for each, of in zip(near, shifts, strict=True)]
    )
    room, product, value = (np.moveaxis(rooms[..., k::3], -1, 0) for k in range(3))
    there = ~np.isnan(room)
    h = np.array([float(each.height) for each in shifts])[:, None]
    e_1, e_2 = (inner.errors_at(list(units), product) for units in zip(*ordered, strict=True))
    if r.are_stored:
        e_1, e_2 = (
            np.minimum(e, _errors_of_sums(inner, list(units), product))
            for e, units in zip((e_1, e_2), zip(*ordered, strict=True), strict=True)
        )
    error = np.stack([np.maximum(e_1[0], _less(e_2[0], h)), np.maximum(e_2[1], _less(e_1[1], h))])
    keeps = (room > error) | ~there
    margins = Sides(there, product, value, error, np.maximum(room, 0.0))
    return margins, Crossing(there[0], there[1], keeps.all(axis=0))


def _errors_of_sums(inner: AffineMap, units: Sequence[int], product: Floats) -> Floats:
    """Return error bounds of sums in the accumulator, where |W z| is `product` and beyond.

    W̃ z̃ + b̃ is off by `inherited`, or by a + ρ |W z| (`AffineMap.common`), and then rounds by
    `accumulated`. For ρ < 1 the second bound grows more slowly than |W z|, as in `error_at`.
    """
    accumulated, (a, rho) = inner.accumulated[0, units], (x[units] for x in inner.common)
    near = np.where(rho < 1, up(a + accumulated + rho * product), np.inf)
    # It is an upper bound already, and kept as it is where nothing rounds.
    inherited = inner.inherited[0, units]
    constant = np.where(accumulated > 0, up(inherited + accumulated), inherited)
    return np.asarray(np.minimum(constant, near))


def _rooms(
    near: Moving, of: Shifts, ideal: Ideal, known: dict[Any, tuple[float, ...]]
) -> list[tuple[float, ...]]:
    """Return for each kind room, |x − b| and x at the value below h/2, and at the one above."""
    found = []
    for kind in range(ideal.kinds):
        # Each object lives as long as the steps are bounded, so its id names it.
        own = near.form.get(kind)
        key = id(own), near.lo[kind], near.hi[kind], id(near.grid), id(of)
        if key not in known:
            sides = [np.nan] * 6
            for _, at, side in ideal.neighbours(near, of.height / 2, [kind]):
                room = _just_above(at - of.height if side > 0 else -at)
                first = 0 if side < 0 else 3
                value = float(at) if Fraction(float(at)) == at else np.nan
                product = 0.0 if at == of.b else max(abs(float(at - of.b)), TINIEST)
                sides[first : first + 3] = room, product, value
            known[key] = tuple(sides)
        found.append(known[key])
    return found


def _less(e: Floats, h: Floats) -> Floats:
    """Return e − h, rounded up where float64 does not hold it.

    For e ≥ h the computed e − (e − h) is exact (Dekker 1971), so it is h just if e − h is exact.
    Where e < h, the result is below 0, and so below every error.
    """
    with np.errstate(invalid="ignore"):
        left = e - h
        return np.where(e - left == h, left, np.nextafter(left, np.inf))


def _just_above(room: Fraction) -> float:
    """Return a float that is above exactly those floats that are at most `room`, or fewer."""
    nearest = float(room)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) == room else nearest * NEARLY


def _note(margins: Sides, is_step: Sequence[bool], names: Sequence[str], ledger: Ledger) -> None:
    """Add the margins of each step to a ledger; of a step that is none, the first that is lost."""
    what = "the error of a comparison"
    there, error, room = (
        np.moveaxis(each, 0, -1).tolist() for each in (margins.there, margins.error, margins.room)
    )
    for place, name in enumerate(names):
        found = [
            Margin(name, what, bound, allowed)
            for sides in zip(there[place], error[place], room[place], strict=True)
            for is_there, bound, allowed in zip(*sides, strict=True)
            if is_there
        ]
        if is_step[place]:
            ledger.kept += found
        else:
            ledger.lost += [each for each in found if not each.allowed > each.error][:1]
