"""Hidden units, single and in pairs: the numbers that a network adds to its stream.

Two hidden units whose columns of W₂ are opposite contribute their difference, so they are taken as
one number:

- with equal rows of W₁ it is ReLU(x) − ReLU(x − h), a *step*: 0 for x ≤ 0, h for x ≥ h;
- with opposite rows and shifts it is ReLU(x) − ReLU(−x) = x, a *copy*.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.model import FeedForward
from transformist.verify.proof.grids import exponent, quantum
from transformist.verify.proof.ideal import ONE, Ideal
from transformist.verify.proof.rounding_errors import (
    AffineMap,
    Approximation,
    Halves,
    Mixed,
    RoundingErrors,
    largest_sums,
)
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.sparse_rows import exactly, negated, sparse_rows
from transformist.verify.proof.step_pairs import Contribution, Group, step_contributions
from transformist.verify.proof.upwards import NEARLY, Floats, Unfollowed, raised, up

MOST_ACTIVE = 4
"""Most steps of a sum whose sets are bounded one by one: there are 2⁴ of them."""


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
    groups, hidden = layer.groups, layer.values
    used = r.used_rows(layer.W_2, f.b_2, where)
    W, b = layer.W_2[used], f.b_2[used]
    output = r.affine(W, b, hidden, f"{where} output")
    output = with_exclusive_steps(f, output, W, layer, r)
    output = with_active_steps(f, output, W, layer, inner, r)
    written = relative_to_steps(output, W, b, hidden, layer.heights)
    update = Approximation.assembled(len(z.forms), [(used, written)], r.ideal)
    added = r.added([z, update], where)
    # z + (−z) is exactly 0 whatever the error of z: products with ±1 and the sum do not round.
    pairs_of_units = {group for group in groups if len(group) == 2}
    writers = [tuple(unit for unit, _ in row) for row in sparse_rows(f.W_2)]
    empties = [
        read is z and units in pairs_of_units and _empties(f, units, slot)
        for slot, units in enumerate(writers)
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
        alike: `Contribution.rounds_alike` of each group.

    """

    values: Approximation
    W_2: Any
    groups: Sequence[Group]
    heights: Sequence[Fraction | None]
    alike: Sequence[NDArray[np.bool_]]


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
    first, last = np.array([(group[0], group[-1]) for group in groups]).reshape(-1, 2).T
    is_step = (first != last) & (f.W_1[first] == f.W_1[last]).all(axis=1)
    steps = [group for group, is_one in zip(groups, is_step.tolist(), strict=True) if is_one]
    of_steps: dict[Group, Contribution] = dict(
        zip(steps, step_contributions(f, inner, steps, r, ledger, where), strict=True)
    )
    found = [
        each
        if (each := of_steps.get(group)) is not None
        else _copy(inner, group, r.ideal)
        if len(group) == 2
        else _alone(f, inner, group[0], r.ideal, f"{where} unit {group[0]}")
        for group in groups
    ]
    stacked: dict[str, Any] = {
        name: np.stack([getattr(each, name) for each in found], axis=-2)
        for name in ("lo", "hi", "size", "error", "absolute", "relative", "reach")
    }
    halves = Halves(first != last, stacked.pop("reach"), [each.quantum for each in found])
    known = inner.values.multiples
    multiples = None if known is None else np.minimum(known[first], known[last])
    hidden = Approximation(
        [each.form for each in found], **stacked, halves=halves, multiples=multiples
    )
    W_2 = f.W_2[:, [group[0] for group in groups]]
    never = np.zeros(r.ideal.kinds, dtype=bool)
    alike = [never if each.rounds_alike is None else each.rounds_alike for each in found]
    return HiddenLayer(hidden, W_2, groups, [each.height for each in found], alike)


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
        if read.cap is not None and r.are_stored:
            most = np.minimum(most, size * read.cap[slot])
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


# Outputs


def with_exclusive_steps(
    f: FeedForward, output: AffineMap, W: Any, layer: HiddenLayer, r: RoundingErrors
) -> AffineMap:
    """Lower the errors of sums that add steps of which at most one is not 0.

    Let two steps read x = w z + b and x′ = −w z + b′ with b + b′ ≤ 0. A step is not 0 only where
    its x is above h/2 > 0, so one of the two is 0, as x + x′ ≤ 0, and computed as 0. Together they
    are off by at most the larger of both errors.
    """
    rows, found = sparse_rows(f.W_1), dict[Any, int]()
    partner: dict[int, int] = {}
    for k, group in enumerate(layer.groups):
        if layer.heights[k] is None:
            continue
        other = found.get(negated(rows[group[0]]))
        if other is not None:
            largest = [max(exactly(f.b_1[j]) for j in layer.groups[n]) for n in (k, other)]
            if sum(largest) <= 0:
                partner[k] = other
        found[rows[group[0]]] = k
    if not partner:
        return output
    _, off, _, shift_off = output.stored
    of_units, bounds = layer.values.error, dict[int, Floats]()
    for slot, row in enumerate(sparse_rows(W)):
        weights = {k: abs(float(exactly(x))) for k, x in row}
        pairs = {k: other for k, other in partner.items() if k in weights and other in weights}
        if not pairs or off[slot].any() or shift_off[slot] or len({*pairs.values()}) < len(pairs):
            continue
        if set(pairs) & set(pairs.values()):
            continue
        alone = set(weights) - set(pairs) - set(pairs.values())
        inherited = sum(
            (
                np.maximum(weights[k] * of_units[:, k], weights[n] * of_units[:, n])
                for k, n in pairs.items()
            ),
            np.zeros_like(of_units[:, 0]),
        )
        inherited = inherited + sum((weights[k] * of_units[:, k] for k in alone), 0.0)
        inherited = raised(inherited, len(row))
        bounds[slot] = r.least((up(inherited) + output.rounding[:, slot])[:, None])[:, 0]
    return _within(output, bounds)


def with_active_steps(
    f: FeedForward,
    output: AffineMap,
    W: Any,
    layer: HiddenLayer,
    inner: AffineMap,
    r: RoundingErrors,
) -> AffineMap:
    """Lower the errors of sums of a few steps that round alike (`_of_active`)."""
    _, off, _, shift_off = output.stored
    bounds = dict[int, Floats]()
    rounds = np.asarray(inner.stored.off.any(axis=1))
    alike = [
        k
        for k, (each, group) in enumerate(zip(layer.alike, layer.groups, strict=True))
        if each.any() and not rounds[list(group)].any()
        if layer.values.error[0, k].any()
    ]
    for slot, row in enumerate(sparse_rows(W) if len(alike) > 1 else ()):
        weights = {k: abs(float(exactly(x))) for k, x in row}
        few = [k for k in alike if k in weights]
        if not 2 <= len(few) <= MOST_ACTIVE or off[slot].any() or shift_off[slot]:
            continue
        others = [x * layer.values.error[0, k] for k, x in weights.items() if k not in few]
        bound = sum(others, _of_active(f, few, weights, layer, inner, r))
        bound = raised(bound, len(row))
        bounds[slot] = up(r.ideal.scales[:, None] * up(bound + output.rounding[0, slot]))
    return _within(output, bounds)


def _within(output: AffineMap, bounds: Mapping[int, Floats]) -> AffineMap:
    """Lower the errors (1 + masks, kinds) of slots to bounds of them, where these are smaller."""
    values = output.values
    error, absolute = values.error.copy(), values.absolute.copy()
    for slot, bound in bounds.items():
        error[:, slot] = np.minimum(error[:, slot], bound)
        is_plain = values.relative[slot] == 0
        least = np.minimum(absolute[slot], error[0, slot])
        absolute[slot] = np.where(is_plain, least, absolute[slot])
    return replace(output, values=replace(values, error=error, absolute=absolute))


def _of_active(
    f: FeedForward,
    steps: Sequence[int],
    weights: Mapping[int, float],
    layer: HiddenLayer,
    inner: AffineMap,
    r: RoundingErrors,
) -> Floats:
    """(kinds,): a bound of the error of Σ w_k · step k over a few steps.

    A step is exactly 0 unless it is *active*: the sum s_k of its upper unit is at least h_k.
    It is then off by at most e_k and, where it rounds alike, by u 2^(e_k) + u P_k/2, where 2^(e_k)
    is at most s_k. So a set of n active steps is off by at most Σ |w_k| e_k, and by at most
    u max |w_k| (T + Σ P_k/2), where T is the largest sum of n powers of two up to Σ s_k: the first
    n bits of Σ s_k that are 1.

    Σ s_k is the sum of their rows and shifts, which may have a lower bound than its terms: m₁ − m₂
    and m₂ − m₃ are not both 1. If it is below Σ h_k, the steps are never active together.
    """
    e, upper = layer.values.error[0], {k: _upper(f, layer.groups[k]) for k in steps}
    sets = [A for n in range(1, len(steps) + 1) for A in itertools.combinations(steps, n)]
    rows = [[sum(map(exactly, x)) for x in f.W_1[[upper[k] for k in A]].T] for A in sets]
    shifts = [sum(exactly(inner.stored.shift[upper[k]]) for k in A) for A in sets]
    given = np.array(rows, dtype=object), np.array(shifts, dtype=float)
    found = np.zeros(r.ideal.kinds)
    for A, s in zip(sets, largest_sums(*given, inner.source, r.ideal), strict=True):
        heights = np.array([float(layer.heights[k] or 0) for k in A])
        below = np.exp2(np.ceil(np.log2(heights)))  # of P: 2^(⌈log₂ 2h⌉ − 1)
        powers = _first_bits(s, len(A)) + below.sum() / 2
        alike = np.logical_and.reduce([layer.alike[k] for k in A])
        each = up(sum((weights[k] * e[k] for k in A), np.zeros(r.ideal.kinds)))
        jointly = np.where(alike, up(r.u * max(weights[k] for k in A) * powers), np.inf)
        is_possible = ~alike | (s >= heights.sum() * NEARLY)
        found = np.where(is_possible, np.maximum(found, np.minimum(each, jointly)), found)
    return found


def _upper(f: FeedForward, group: Group) -> int:
    """Return the unit of a step that has the larger shift."""
    return max(group, key=lambda j: exactly(f.b_1[j]))


def _first_bits(x: Floats, n: int) -> Floats:
    """Return the largest sums of n powers of two that are at most x ≥ 0, without a rounding."""
    left, found = x, np.zeros_like(x)
    for _ in range(n):
        power = np.where(left > 0, np.exp2(np.frexp(left)[1] - 1.0), 0.0)
        left, found = left - power, found + power
    return np.where(np.isfinite(x), found, np.inf)


def relative_to_steps(
    output: AffineMap, W: Any, b: Any, hidden: Approximation, steps: Sequence[Fraction | None]
) -> Approximation:
    """Replace the errors of sums of steps by relative ones.

    In a slot that only steps write, all with one sign, the ideal sum Σ |w_k| s_k is 0 or at least
    the least height m in magnitude. If it is 0, every step is 0 in the ideal and computed, and so
    is the sum. Else each step is off by at most ρ_k s_k, so the terms are off by at most
    max ρ_k Σ |w_k| s_k: steps that are 0 add nothing. The sum rounds by R ≤ (R/m) |ideal|. So
    a = 0, and ρ is the sum of max ρ_k and R/m, or E/m, if that is less. The weights must be those
    of the format.
    """
    y, off = output.values, output.stored.off
    absolute, relative, error = y.absolute.copy(), y.relative.copy(), y.error.copy()
    signs = np.where(hidden.lo.min(axis=1) < 0, -1, 1)
    for slot, row in enumerate(sparse_rows(W)):
        if not row:
            continue
        terms = [(exactly(x) * int(signs[k]), steps[k]) for k, x in row]
        heights = [abs(weight) * height for weight, height in terms if height is not None]
        one_sign = len({weight > 0 for weight, _ in terms}) == 1
        if one_sign and len(heights) == len(terms) and not b[slot]:
            least = float(min(heights)) * NEARLY
            rho = up(y.error[0, slot] / least)
            if not off[slot].any():
                of_terms = hidden.relative[[k for k, _ in row]].max(axis=0)
                rho = np.minimum(rho, up(of_terms + output.rounding[0, slot] / least))
            absolute[slot], relative[slot] = 0.0, rho
            error[:, slot] = np.minimum(error[:, slot], up(rho * y.size[:, slot]))
    return replace(y, absolute=absolute, relative=relative, error=error)


def _empties(f: FeedForward, units: Group, slot: int) -> bool:
    """True if a pair of units adds exactly −z to a slot that holds z: a copy with weights ±1."""
    if f.b_2[slot] or f.b_1[list(units)].any():
        return False
    j, k = units
    reads_it = np.flatnonzero(f.W_1[j]).tolist() == [slot] and np.array_equal(f.W_1[j], -f.W_1[k])
    weight = f.W_2[slot, j]
    return bool(reads_it and abs(weight) == 1 and f.W_1[j, slot] * weight == -1)
