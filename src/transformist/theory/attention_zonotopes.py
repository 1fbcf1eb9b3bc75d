"""Attention with softmax on zonotopes: how far its weights and its values may move."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformist.arithmetic import FLOAT64, Floating
from transformist.model import Attention
from transformist.rounding import near_values
from transformist.rounding.near_values import FloatArray, Near
from transformist.rounding.powers import SLACK, UNDERFLOW
from transformist.theory.zonotopes import LOOSE, Zonotope, linear, shifted, summed


class _Projected(NamedTuple):
    """Queries, keys and values of a head, its weights, their means of values, and the masks."""

    head: Attention
    q: Zonotope
    k: Zonotope
    v: Zonotope
    weights: Near
    means: Near
    seen: list[slice]

    @classmethod
    def of(cls, head: Attention, x: Zonotope) -> _Projected:
        """Those of the vectors x that a head reads."""
        q, k, v = (
            linear(W, b, x)
            for W, b in ((head.W_Q, head.b_Q), (head.W_K, head.b_K), (head.W_V, head.b_V))
        )
        dot = near_values.matrix_product(q.near, (k.near[0].T, k.near[1].T), FLOAT64)
        root = near_values.root(near_values.weight([head.W_Q.shape[0]], FLOAT64), FLOAT64)
        j = np.arange(len(x.value))
        admissible = head.mask.admissible(j[:, None], j[None, :])
        weights = softmax(near_values.quotient(dot, root, FLOAT64), admissible, FLOAT64)
        means = near_values.matrix_product(weights, v.near, FLOAT64)
        return cls(head, q, k, v, weights, means, [*map(_positions, admissible)])

    def row(self, i: int) -> tuple[Zonotope, Zonotope, Zonotope, Near]:
        """The query i, the keys and values that it admits, and their weights."""
        seen = self.seen[i]
        weights = self.weights[0][i, seen], self.weights[1][i, seen]
        return _taken(self.q, i), _taken(self.k, seen), _taken(self.v, seen), weights

    def output(self, c: Zonotope) -> Zonotope:
        """W_O c + b_O."""
        if self.head.W_O is not None:
            return linear(self.head.W_O, self.head.b_O, c)
        return shifted(c, near_values.weight(self.head.b_O, FLOAT64))


def attended(head: Attention, x: Zonotope) -> Zonotope:
    """The numbers that a head with softmax gives: (n, d) → (n, d_out)."""
    projected = _Projected.of(head, x)
    rows = [_mean(*projected.row(i)) for i in range(len(x.value))]
    generators, rest = (np.array(each) for each in zip(*rows, strict=True))
    return projected.output(Zonotope(projected.means, generators, rest))


def attended_by_rows(heads: Sequence[Attention], x: Zonotope) -> Iterator[Zonotope]:
    """The sum of several heads at each position, where each position has εₖ of its own.

    Yields:
        Numbers (1, d_out), with the generators of all positions, one after the other: the work and
        the memory grow less than with n d generators for all.

    """
    projected = [_Projected.of(head, x) for head in heads]
    for i in range(len(x.value)):
        rows = []
        for each in projected:
            generators, rest = _mean_apart(*each.row(i), i, each.seen[i], len(x.value))
            near = each.means[0][i : i + 1], each.means[1][i : i + 1]
            rows.append(each.output(Zonotope(near, generators[None], rest[None])))
        yield functools.reduce(summed, rows)


def spread(x: Zonotope, i: int) -> Zonotope:
    """The numbers (1, d) of position i, with an axis for the generators of every position."""
    # Generators of other positions are 0 here: the numbers of position i depend on its own ε alone.
    n, d, m = x.generators.shape
    generators = np.zeros((1, d, n, m))
    generators[0, :, i] = x.generators[i]
    near = x.near[0][i : i + 1], x.near[1][i : i + 1]
    return Zonotope(near, generators.reshape(1, d, n * m), x.rest[i : i + 1])


def _positions(admissible: NDArray[np.bool_]) -> slice:
    """The positions that a row admits, which follow each other under every mask."""
    seen = np.flatnonzero(admissible)
    return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 0)


def _taken(x: Zonotope, rows: Any) -> Zonotope:
    return Zonotope((x.near[0][rows], x.near[1][rows]), x.generators[rows], x.rest[rows])


# ŵ are the weights at ẑ, and w = ŵ − Δw those at z. Softmax does not see what is the same for every
# score, so that the mean Σ w Δs may be taken from all Δs. Then Δsⱼ = aⱼ + bⱼ with |bⱼ| ≤ `rest`, a
# linear in ε, and Σ ŵ a = 0 but for errors of w.


class _Moves(NamedTuple):
    """How far the weights of one query move: Δwⱼ = ŵⱼ (aⱼ + ρⱼ), |aⱼ| ≤ `size`, |ρⱼ| ≤ `rho`."""

    w: FloatArray
    w_error: FloatArray
    size: FloatArray
    rho: FloatArray

    @classmethod
    def of(cls, weights: Near, size: FloatArray, rest: FloatArray, mean: float) -> _Moves:
        """The moves for the sizes of a, the rests b, and a bound of the mean taken away."""
        # t = e^(−Δs) − 1 = −Δs + r with 0 ≤ r ≤ e^R − 1 − R ≤ R² e^R/2 =: φ, and T = Σ ŵ t =
        # Σ ŵ r + B with |B| ≤ `off`. Δwⱼ = −ŵⱼ (tⱼ − T)/(1 + T) = ŵⱼ (aⱼ + ρⱼ) with ρⱼ = bⱼ − rⱼ +
        # T + (tⱼ − T) T/(1 + T), where 1 + T = Σ ŵ e^(−Δs) ≥ e^(−max R), and rⱼ and Σ ŵ r have one
        # sign.
        w, w_error = weights[0], weights[1] + LOOSE * weights[0]
        R = size + rest
        phi = R * R / 2 * np.exp(R)
        off = w @ rest + w_error @ (R + phi) + w_error.sum() * mean
        T = w @ phi + off
        rho = rest + np.maximum(phi, w @ phi) + off + (np.expm1(R) + T) * T * np.exp(R.max())
        return cls(w, w_error, size, rho)

    def rests(self, v: Zonotope) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return v̂ − u, bounds of its magnitudes, and the rests of Σ Δw (v̂ − u) and Σ Δw Δv.

        u = Σ w v̂ may be taken from all v̂, as Σ Δw = 0.
        """
        w, w_error, size, rho = self
        centred = v.value - w @ v.value
        most = np.abs(centred) + v.near[1] + LOOSE * np.abs(v.value).max(axis=0)
        by = (w * rho) @ most + (w_error * (size + rho)) @ most
        by = by + (w * size) @ (most - np.abs(centred) + LOOSE * most)
        radius = v.radius
        cross = ((w + w_error) * (size + rho)) @ radius
        # Σ |Δw| ≤ 2, whatever the scores are.
        return centred, most, by, np.fmin(cross, 2 * radius.max(axis=0))

    def own_rest(self, v: Zonotope) -> FloatArray:
        """The rest of Σ ŵ Δv."""
        by_rest = self.w @ v.rest + (self.w_error + LOOSE * self.w) @ v.radius
        return np.asarray(by_rest + UNDERFLOW)


def _score_rest(q: Zonotope, k: Zonotope) -> FloatArray:
    """The rests of the scores of one query."""
    # q̂ · k̂ − q · k = q̂ · Δk + Δq · k̂ − Δq · Δk.
    size_q, size_k, radius_q, radius_k = np.abs(q.value), np.abs(k.value), q.radius, k.radius
    rest = size_k @ q.rest + k.rest @ size_q + radius_k @ radius_q
    rest = rest + (k.near[1] + LOOSE * size_k) @ radius_q
    rest = rest + radius_k @ (q.near[1] + LOOSE * size_q)
    return np.asarray(rest * (1 + LOOSE) / math.sqrt(len(size_q)) + UNDERFLOW)


def _mean(q: Zonotope, k: Zonotope, v: Zonotope, weights: Near) -> tuple[FloatArray, FloatArray]:
    """Generators and rest of Σ ŵ v̂ − Σ w v, for one query and the keys and values it admits.

    It is Σ ŵ Δv + Σ Δw (v̂ − u) − Σ Δw Δv.
    """
    w = weights[0]
    if not len(w):
        return np.zeros((v.value.shape[1], v.generators.shape[-1])), np.zeros(v.value.shape[1])
    # q̂ · Δk + Δq · k̂: the linear part of how far the scores move, all in the same ε.
    s = np.matmul(q.value, k.generators) + k.value @ q.generators
    s = s / math.sqrt(len(q.value))
    radius = np.abs(s).sum(axis=-1) * SLACK
    mean = float(w @ radius)
    a = s - w @ s
    size = np.abs(a).sum(axis=-1) * SLACK
    moves = _Moves.of(weights, size, _score_rest(q, k) + LOOSE * (radius + mean), mean)
    centred, most, by_rest, cross = moves.rests(v)
    by, cap = (centred * w[:, None]).T @ a, 2 * most.max(axis=0)
    # Σ |Δw| ≤ 2, so that Σ Δw (v̂ − u) is at most twice the largest |v̂ − u|, whatever the scores
    # are. Where the linear bound is worse, or NaN, this one is taken.
    lost = ~(np.abs(by).sum(axis=-1) + by_rest <= cap)
    by, by_rest = np.where(lost[:, None], 0.0, by), np.where(lost, cap, by_rest)
    return np.tensordot(w, v.generators, 1) + by, moves.own_rest(v) + by_rest + cross


def _mean_apart(
    q: Zonotope, k: Zonotope, v: Zonotope, weights: Near, i: int, seen: slice, n: int
) -> tuple[FloatArray, FloatArray]:
    """Generators and rest of the same difference, where each of n positions has ε of its own."""
    w, root = weights[0], math.sqrt(len(q.value))
    size_v, m = v.value.shape[1], v.generators.shape[-1]
    generators = np.zeros((size_v, n, m))
    if not len(w):
        return generators.reshape(size_v, n * m), np.zeros(size_v)
    # aⱼ = sⱼ εⱼ − Σ w s ε + tⱼ εᵢ: by keys, and by the query, less its mean.
    s = np.matmul(q.value, k.generators) / root
    t = k.value @ q.generators / root
    mean_t = w @ t
    by_key, by_query = (np.abs(each).sum(axis=-1) * SLACK for each in (s, t))
    key_mean, query_mean = float(w @ by_key), float(w @ by_query)
    size = key_mean + (1 - 2 * w) * by_key + np.abs(t - mean_t).sum(axis=-1)
    rest = _score_rest(q, k) + LOOSE * (by_key + by_query + key_mean + query_mean)
    moves = _Moves.of(weights, size * SLACK, rest, key_mean + query_mean)
    centred, most, by_rest, cross = moves.rests(v)
    # Σ ŵ (v̂ − u) is 0 but for errors, so that the mean by keys adds nothing more than these.
    by_rest = by_rest + (np.abs(w @ centred) + 2 * moves.w_error @ most) * key_mean
    of_query, cap = (centred * w[:, None]).T @ (t - mean_t), 2 * most.max(axis=0)
    reached = (w * by_key) @ np.abs(centred) + np.abs(of_query).sum(axis=-1) + by_rest
    kept = (reached <= cap)[:, None]
    moved = np.where(kept, centred[..., None] * s[:, None], 0.0)
    generators[:, seen] = (w[:, None, None] * (v.generators + moved)).swapaxes(0, 1)
    generators[:, i] += np.where(kept, of_query, 0.0)
    rest = moves.own_rest(v) + np.where(kept[:, 0], by_rest, cap) + cross
    return generators.reshape(size_v, n * m), rest


def softmax(scores: Near, admissible: Any, a: Floating) -> Near:
    """Return e^(s − max) over its sum, row by row; 0 where a row has no admissible position."""
    s, error = (np.where(admissible, each, 0.0) for each in scores)
    empty = ~admissible.any(axis=-1, keepdims=True)
    # The largest of numbers that are each off by e is off by the largest e.
    largest = np.where(admissible, s, -np.inf).max(axis=-1, keepdims=True)
    largest = np.where(empty, 0.0, largest)
    below = near_values.summed((s, error), (-largest, error.max(axis=-1, keepdims=True)), a)
    # Exponents are at most 0, in the format and in truth, and so as near to min(v, 0).
    e = near_values.exponential((np.minimum(below[0], 0), below[1]), a)
    e = np.where(admissible, e[0], 0.0), np.where(admissible, e[1], 0.0)
    divisor = near_values.total(e, a)
    # The reference adds 0 to the sum, or 1 in an empty row: neither rounds.
    shares = near_values.quotient(e, (divisor[0] + empty, divisor[1]), a)
    return np.where(admissible, shares[0], 0.0), np.where(admissible, shares[1], 0.0)
