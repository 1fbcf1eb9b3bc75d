"""The walk: error bounds of a transformer, operation by operation, from embedding to answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from transformist.arithmetic import Floating
from transformist.model import (
    Attention,
    FeedForward,
    LayerNorm,
    PositionFunctions,
    Transformer,
    rationals,
)
from transformist.positions import position
from transformist.verify.proof.attending import Attending
from transformist.verify.proof.deciding import MOST_LABELS, decide
from transformist.verify.proof.ideal import (
    Floats,
    Form,
    Grid,
    Ideal,
    Unfollowed,
    quantum,
    sum_grid,
    up,
)
from transformist.verify.proof.normalizing import normalized
from transformist.verify.proof.orders import Evaluation
from transformist.verify.proof.rounding import Affine, Rounding, Values


class Margin(NamedTuple):
    """An error bound, and the error below which the computed decision is the ideal one."""

    where: str
    what: str
    error: float
    allowed: float

    @property
    def share(self) -> float:
        """The share of the margin that is left; negative where it is exceeded."""
        if not self.allowed or not math.isfinite(self.error):
            return 1.0 if not self.error else -math.inf
        return 1 - self.error / self.allowed

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is up to {self.error:.3g} of {self.allowed:.3g}"


class Walk:
    """A model, walked on all inputs of up to N symbols at once.

    Attributes:
        margins: margins of decisions that are shown to be those of the ideal, and of the answer.
        lost: margins of heads and steps that are exceeded, in the order of the model. The walk goes
            on with wider bounds for them, as an answer may not depend on them.
        streams: bounds of the residual stream after each step of `Transformer.streams`.

    """

    def __init__(
        self,
        model: Transformer,
        a: Floating,
        longest: int,
        evaluation: Evaluation,
        margins: list[Margin],
        lost: list[Margin],
    ) -> None:
        self.model, self.evaluation = model, evaluation
        self.margins, self.lost = margins, lost
        self.streams: list[Values] = []
        front = model.embedding.front
        if model.embedding.back or len(front) > 1:
            raise Unfollowed("embedding", "it adds symbols besides a single one in front")
        if model.read_out.at == "cls":
            raise Unfollowed("read-out", "it reads at CLS")
        heads = [head for layer in model.layers for head in layer.heads]
        masks = dict.fromkeys(head.mask for head in heads if not (_reads(head)))
        kinds = len(model.alphabet) + len(front)
        bos = kinds - 1 if front else None
        self.ideal = Ideal(kinds, bos, longest, [*masks])
        self.rounding = Rounding(a, self.ideal)

    def decided(self) -> None:
        """Walk the model from the embedding to the answers."""
        model = self.model
        z = self.embedded()
        self.streams.append(z)
        for number, layer in enumerate(model.layers):
            for name, sublayer in layer.sublayers():
                where = f"layer {number}"
                pre, post = sublayer.pre_norm, sublayer.post_norm
                read = z if pre is None else self.norm(pre, z, f"{where} {name} pre-norm")
                if isinstance(sublayer.function, FeedForward):
                    z = self.network(sublayer.function, read, z, where)
                else:
                    z = self.attended(sublayer.function.heads, read, z, where)
                z = z if post is None else self.norm(post, z, f"{where} {name} post-norm")
                self.streams.append(z)
        if model.final_norm is not None:
            z = self.norm(model.final_norm, z, "final norm")
            self.streams.append(z)
        if len(model.read_out.W_out) > MOST_LABELS:
            raise Unfollowed("read-out", f"it has more than {MOST_LABELS} labels")
        read_out = self.rounding.affine(model.read_out.W_out, model.read_out.b_out, z, "read-out")
        decide(self, read_out, z)

    def note(self, where: str, what: str, error: float, allowed: float) -> None:
        """Add a margin of the answer.

        `allowed` is a rational rounded to float64, and at most one float64 operation: within
        2 · 2⁻⁵³ < 2⁻⁵⁰ of the real one.
        """
        self.margins.append(Margin(where, what, error, max(allowed * (1 - 2.0**-50), 0.0)))

    # The embedding

    def embedded(self) -> Values:
        """Return word vectors plus position functions; each is rounded to the format first."""
        embedding, r, ideal = self.model.embedding, self.rounding, self.ideal
        order = [embedding.symbols.index(s) for s in (*self.model.alphabet, *embedding.front)]
        exact = rationals(embedding.vectors)[order]
        _, off = r.rounded(embedding.vectors[order])
        forms: list[Form] = [{kind: x for kind, x in enumerate(column) if x} for column in exact.T]
        words = r.values(forms, off.T)
        r.require(words.size[0] + words.error[0], r.a.largest, "embedding")
        if embedding.positions is None:
            return words
        if not isinstance(embedding.positions, PositionFunctions):
            raise Unfollowed("embedding", "its positions are not named functions")
        forms, errors, shares = [], [], []
        for name in embedding.positions.names:
            form, error, share = ({}, 0.0, 0.0) if name is None else self.place(name)
            forms.append(form)
            errors.append(np.full(ideal.kinds, error))
            shares.append(np.full(ideal.kinds, share))
        places = r.values(forms, np.array(errors))
        r.require(places.size[0], r.a.largest, "positions")
        tiny = np.where(np.array(shares) > 0, r.tiny, 0.0)
        return r.added(
            [words, replace(places, absolute=tiny, relative=np.array(shares))], "embedding"
        )

    def place(self, name: str) -> tuple[Form, float, float]:
        """Return a position function, its absolute and its relative error.

        It is computed exactly and rounded once: u of itself, and underflow. Whole numbers up to
        2ᵖ are numbers of the format. 1/i is a multiple of 1/D for the D = i rows of the mask
        `future`, i/n of 1/D for the D = n rows of the mask `none`: without BOS, which counts in D.
        """
        ideal, r = self.ideal, self.rounding
        n = ideal.longest
        whole = {"1": 1, "i": n, "i^2": n**2, "i^3": n**3, "(-1)^i": 1}
        divided = {"1/i": "future", "-1/i": "future", "i/n": "none", "-i/n": "none"}
        if name not in (*whole, *divided) or (name in ("1/i", "-1/i") and ideal.bos is not None):
            raise Unfollowed("embedding", f"the position function {name} has no bound")
        sign = -1 if name.startswith("-") else 1
        lo, hi = np.ones(ideal.kinds), np.full(ideal.kinds, float(whole.get(name, 1)))
        grid: Grid = (Fraction(1), None)
        if name in divided:
            lo = np.full(ideal.kinds, (1 - 2**-40) / n)  # 1/i and i/n are at least 1/N
            grid = None if ideal.bos is not None else (Fraction(1), divided[name])
        elif name == "(-1)^i":
            lo = -lo
        if ideal.bos is not None:
            lo[ideal.bos] = hi[ideal.bos] = float(position(name, 0, 0))
        number = ideal.add(name.removeprefix("-"), lo, hi, grid)
        largest = whole.get(name, 0)
        exact = name in whole and largest <= 2**r.a.precision and r.a.smallest <= 1
        share = 0.0 if exact else r.u
        return {number: Fraction(sign)}, float(share * max(largest, 1) + (share and r.tiny)), share

    def norm(self, norm: LayerNorm, z: Values, where: str) -> Values:
        """Return the stream after a norm."""
        return normalized(norm, z, self.rounding, where)

    # Heads

    def attended(self, heads: Sequence[Attention], read: Values, z: Values, layer: str) -> Values:
        """Return z + Σ (W_O c + b_O) over the heads."""
        parts = [z]
        for k, head in enumerate(heads):
            where = f"{layer} head {k}"
            c, scores = Attending(head, where, self.rounding, self.evaluation).output(read)
            if scores.gap != math.inf and scores.gap + scores.error > 0:
                margin = Margin(
                    where, "the error of a difference of scores", scores.error, scores.gap
                )
                (self.margins if scores.chooses.all() else self.lost).append(margin)
            if head.W_O is not None:
                c = self.rounding.affine(head.W_O, head.b_O, c, f"{where} output").values
            elif np.any(head.b_O != 0):
                eye = np.eye(len(c.forms))
                c = self.rounding.affine(eye, head.b_O, c, f"{where} output").values
            parts.append(c)
        return self.rounding.added(parts, f"{layer} attention")

    # Networks

    def network(self, network: FeedForward, read: Values, z: Values, where: str) -> Values:
        """Return z + W₂ ReLU(W₁ z + b₁) + b₂.

        Two hidden units whose columns of W₂ are opposite contribute their difference, so they are
        taken as one number (`paired`):

        - with equal rows of W₁ it is ReLU(x) − ReLU(x − h), a *step*: 0 for x ≤ 0, h for x ≥ h;
        - with opposite rows and shifts it is ReLU(x) − ReLU(−x) = x, a *copy*.
        """
        if network.activation != "relu":
            raise Unfollowed(where, f"its activation is {network.activation}")
        r = self.rounding
        inner = r.affine(network.W_1, network.b_1, read, f"{where} units")
        groups = paired(network)
        found = [self.unit(network, inner, group, f"{where} unit {group[0]}") for group in groups]
        first = [group[0] for group in groups]
        hidden = Values(
            [each.form for each in found],
            np.array([each.bounds[0] for each in found]),
            np.array([each.bounds[1] for each in found]),
            np.array([each.size for each in found]).swapaxes(0, 1),
            np.array([each.error for each in found]).swapaxes(0, 1),
            np.array([each.mixed[0] for each in found]),
            np.array([each.mixed[1] for each in found]),
            pairs=(
                np.array([len(group) == 2 for group in groups]),
                np.array([each.raw for each in found]).swapaxes(0, 1),
                [each.quantum for each in found],
            ),
        )
        outer = r.affine(network.W_2[:, first], network.b_2, hidden, f"{where} output")
        y = self._zero_where_all_are(outer, network, network.W_2[:, first], hidden, found)
        added = r.added([z, y], where)
        # z + (−z) is exactly 0 whatever the error of z: products with ±1 and the sum do not round.
        empties = [read is z and _empties(network, groups, slot) for slot in range(len(z.forms))]
        left = ~np.array(empties, dtype=bool)
        left = left | np.array([bool(form) for form in added.forms])
        error, apart = added.error * left[:, None], added.absolute * left[:, None]
        return replace(added, error=error, absolute=apart, relative=added.relative * left[:, None])

    def _zero_where_all_are(
        self, outer: Affine, network: FeedForward, W: Any, hidden: Values, found: list[Unit]
    ) -> Values:
        """Replace the errors of sums of steps by relative ones.

        In a slot that only steps write, all with one sign, the ideal sum is 0 or at least the least
        height m in magnitude. If it is 0, every step is 0 in the ideal and computed, and so is the
        sum. Else the error E is at most (E/m) |ideal|: a = 0, ρ = E/m.
        """
        y = outer.values
        apart, share = y.error[0].copy(), np.zeros_like(y.absolute)
        signs = np.where(hidden.lo.min(axis=1) < 0, -1.0, 1.0)
        for slot, row in enumerate(W):
            used = np.flatnonzero(row)
            heights = [found[k].height for k in used]
            if network.b_2[slot] or None in heights or not heights:
                continue
            if len({bool(row[k] * signs[k] > 0) for k in used}) == 1:
                least = min(abs(Fraction(row[k])) * found[k].height for k in used)  # type: ignore[operator]
                apart[slot], share[slot] = 0.0, up(y.error[0][slot] / float(least))
        return replace(y, absolute=apart, relative=share)

    def unit(self, network: FeedForward, inner: Affine, group: tuple[int, ...], where: str) -> Unit:
        """Return the number that a group of hidden units contributes to the output."""
        if len(group) == 1:
            return self.single(inner, group[0], where)
        j, k = group
        if np.array_equal(network.W_1[j], network.W_1[k]):
            return self.step(network, inner, j, k, where)
        v = inner.values
        error = up(inner.inherited[:, j] + inner.rounding[:, j] + inner.rounding[:, k])
        size = v.size[:, j]
        bounds, quanta = (v.lo[j], v.hi[j]), quantum(self.ideal.grid(v.forms[j]))
        mixed = (error[0], np.zeros_like(error[0]))
        return Unit(v.forms[j], bounds, size, error, mixed, up(size + error), quanta)

    def single(self, inner: Affine, j: int, where: str) -> Unit:
        """Return ReLU(x).

        ReLU is 1-Lipschitz, so its error is at most that of x. For x ≥ 0 also the bound a + ρ x
        carries over. For x < 0 and ρ < 1 the computed x is at most x + a + ρ |x| < a, so the error
        is at most a: again the bound a + ρ · 0.
        """
        ideal, v = self.ideal, inner.values
        form, lo, hi = v.forms[j], v.lo[j], v.hi[j]
        grid = ideal.grid(form)
        off = hi + v.error[0, j] <= 0  # the computed x is at most 0
        error = np.where(off, 0.0, v.error[:, j])
        size = np.where(hi <= 0, 0.0, v.size[:, j])
        small = v.relative[j] < 1
        apart = np.where(small, v.absolute[j], v.error[0, j])
        mixed = np.where(off, 0.0, apart), np.where(off | ~small, 0.0, v.relative[j])
        if (hi <= 0).all():
            form = {}
        elif not (lo >= 0).all():
            ends = np.maximum(lo, 0), np.maximum(hi, 0)
            form = {ideal.add(where, *ends, grid, size, unit=(form, None)): Fraction(1)}
        bounds = np.maximum(lo, 0), np.maximum(hi, 0)
        return Unit(form, bounds, size, error, mixed, up(size + error), quantum(grid))

    def step(self, network: FeedForward, inner: Affine, j: int, k: int, where: str) -> Unit:
        """Return ReLU(x) − ReLU(x − h), or minus that; x is the unit with the larger shift.

        Let x̃₁ and x̃₂ be the computed x and x − h, off by at most e₁ and e₂.

        - If x ≤ 0, both are at most 0, and the difference is exactly 0, where
          x + e₁ < 0 and x − h + e₂ < 0: max(e₁, e₂ − h) < −x.
        - If x ≥ h, both are above 0, and the difference is x̃₁ − x̃₂, where
          x − e₁ > 0 and x − h − e₂ > 0: max(e₂, e₁ − h) < x − h.

        The e are a + ρ |W z| with ρ < 1 (or constants), and so grow more slowly than −x and x − h:
        it is enough that the values of x next to h/2 on either side keep these margins. Then the
        unit is a step, 0 or h, and its error does not contain that of z: the rows of W₁ are equal,
        so x̃₁ − x̃₂ is b̃₁ − b̃₂ and the rounding of the two sums. Where a margin is exceeded, the
        difference, which is 1-Lipschitz in x, has the error of x besides.
        """
        ideal, v, kinds = self.ideal, inner.values, self.ideal.kinds
        shifts = [Fraction(network.b_1[unit]) for unit in (j, k)]
        sign = 1 if shifts[0] >= shifts[1] else -1
        upper, lower = (j, k) if sign > 0 else (k, j)
        height, b = abs(shifts[0] - shifts[1]), max(shifts)
        h = float(height)
        x = v.forms[upper]
        moving = ideal.varying(x)
        # For each kind of row: can[0] that x may be below h/2, can[1] above; kept: with margins.
        can, kept = np.full((2, kinds), True), np.full(kinds, True)
        met, exceeded = list[Margin](), list[Margin]()
        for kind in range(kinds):
            own = x.get(kind, Fraction(0))
            below, above = ideal.neighbours(moving, height / 2 - own, kind)
            can[:, kind] = math.isfinite(below), math.isfinite(above)
            for end, high in ((below, False), (above, True)):
                if math.isfinite(end):
                    at = Fraction(end) + own
                    room = float(at - height if high else -at) * (1 - 2.0**-50)
                    off = [self.off(inner, unit, kind, float(at - b)) for unit in (upper, lower)]
                    error = max(off[1], off[0] - h) if high else max(off[0], off[1] - h)
                    margin = Margin(where, "the error of a comparison", error, max(room, 0.0))
                    kept[kind] &= room > error
                    (met if room > error else exceeded).append(margin)
        is_step = bool(kept.all()) and height > 0
        (self.margins if is_step else self.lost).extend(met if is_step else exceeded[:1])
        # h is b₁ − b₂, but b̃₁ − b̃₂ is computed.
        rounded = Fraction(inner.shift[upper]) - Fraction(inner.shift[lower])
        of_height = 0.0 if rounded == height else float(up(float(abs(rounded - height))))
        rounding = inner.rounding[0, upper] + inner.rounding[0, lower]
        is_zero = kept & ~can[1]
        moved = up(np.where(kept, 0.0, inner.inherited[0, upper]) + rounding + of_height)
        moved = np.where(is_zero, 0.0, moved)
        # W₂ reads the two units one by one, so their magnitudes, not their difference, round there.
        reach = v.hi[upper] + v.error[0, upper], v.hi[lower] + v.error[0, lower]
        raw = np.where(is_zero, 0.0, up(sum(np.maximum(end, 0) for end in reach)))
        lo, hi = np.where(kept & ~can[0], h * (1 - 2.0**-50), 0.0), np.where(is_zero, 0.0, up(h))
        grid: Grid = (height, None) if is_step else None
        number = ideal.add(where, *ideal.snapped(grid, lo, hi), grid, unit=(x, height))
        lo, hi = ideal.unknowns[number].lo, ideal.unknowns[number].hi
        scales = ideal.scales[:, None]
        exact = not v.error[0, [upper, lower]].any()
        ratio = up(moved / (h * (1 - 2.0**-50))) if is_step else np.zeros(kinds)
        return Unit(
            {number: Fraction(sign)},
            (lo, hi) if sign > 0 else (-hi, -lo),
            scales * hi,
            scales * moved,
            (np.zeros(kinds) if is_step else moved, ratio),
            scales * raw,
            quantum(sum_grid((ideal.grid(x), (height, None)))) if exact else None,
            height if is_step else None,
        )

    def off(self, inner: Affine, unit: int, kind: int, at: float) -> float:
        """Error bound of a row of W z + b at inputs where its W z is `at`.

        For ρ ≥ 1 it is the constant E, as a + ρ |at| would grow faster than a margin does.
        """
        mixed = inner.absolute[unit, kind] + inner.relative[unit, kind] * abs(at)
        error: float = inner.values.error[0, unit, kind]
        return min(error, float(up(mixed))) if inner.relative[unit, kind] < 1 else error


class Unit(NamedTuple):
    """The number that a hidden unit or a pair contributes, with bounds as in `Values`.

    Attributes:
        form, bounds, size, error: the number, which a column of W₂ multiplies.
        mixed: a and ρ.
        raw: bound of the sum of the computed magnitudes of the units.
        quantum: the exponent k of 2ᵏ, of which each computed unit is a multiple, or `None`.
        height: h of a step; `None` for other units.

    """

    form: Form
    bounds: tuple[Floats, Floats]
    size: Floats
    error: Floats
    mixed: tuple[Any, Any]
    raw: Floats
    quantum: int | None
    height: Fraction | None = None


def _reads(head: Any) -> bool:
    """True if a product of query and key need not be 0."""
    query = np.any(head.W_Q != 0, axis=1) | (head.b_Q != 0)
    key = np.any(head.W_K != 0, axis=1) | (head.b_K != 0)
    return bool((query & key).any())


def paired(network: FeedForward) -> list[tuple[int, ...]]:
    """Return the hidden units in groups of one or two.

    Two are a pair if their columns of W₂ are opposite, and their rows of W₁ are equal, or opposite
    with opposite shifts.
    """
    columns = [tuple(column) for column in network.W_2.T.tolist()]
    waiting: dict[Any, list[int]] = {}
    partner: dict[int, int] = {}
    for k, column in enumerate(columns):
        opposite = tuple(-x for x in column)
        for j in waiting.get(opposite, []):
            same = np.array_equal(network.W_1[j], network.W_1[k])
            other = np.array_equal(network.W_1[j], -network.W_1[k])
            if same or (other and network.b_1[j] == -network.b_1[k]):
                partner[j] = k
                waiting[opposite].remove(j)
                break
        else:
            waiting.setdefault(column, []).append(k)
    second = set(partner.values())
    return [
        (j, partner[j]) if j in partner else (j,) for j in range(len(columns)) if j not in second
    ]


def _empties(network: FeedForward, groups: list[tuple[int, ...]], slot: int) -> bool:
    """True if the network adds exactly −z to a slot that holds z."""
    units = np.flatnonzero(network.W_2[slot])
    if tuple(units) not in groups or len(units) != 2 or network.b_2[slot]:
        return False
    j = units[0]
    reads = np.flatnonzero(network.W_1[j])
    if list(reads) != [slot] or not np.array_equal(network.W_1[units[1]], -network.W_1[j]):
        return False
    if network.b_1[units].any():
        return False
    return bool(
        network.W_1[j, slot] * network.W_2[slot, j] == -1 and abs(network.W_2[slot, j]) == 1
    )
