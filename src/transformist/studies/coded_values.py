"""Codes of Booleans and integers, and networks on them, for the study one-representation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product

import transformist as tf

Vector = list[Fraction]


def packing(N: int, width: int) -> float:
    """An upper bound of the least distance of N vectors of mean 0 and variance 1."""
    # They lie on a sphere of radius R = √d in d − 1 dimensions. Balls of radius g/2 around them do
    # not overlap and lie in a ball of radius R + g/2: N (g/2)^(d−1) ≤ (R + g/2)^(d−1), so that
    # g ≤ 2R/(N^(1/(d−1)) − 1). No two points of the sphere are further apart than 2R.
    return 2 * math.sqrt(width) / max(math.pow(N, 1 / (width - 1)) - 1, 1)


def pairs(N: int, k: int) -> Vector:
    """The pair of Table 4 for each bit of k: (−1, 1) for a bit that is set, (1, −1) for others."""
    signs = [2 * (k >> place & 1) - 1 for place in range((N - 1).bit_length())]
    return [Fraction(sign * b) for b in signs for sign in (-1, 1)]


def on_circle(N: int, k: int) -> Vector:
    """(a, −a, b, −b) with a² + b² = 2, in rationals, at an angle near 2πk/N plus a constant."""
    t = Fraction(math.tan(math.pi * (k / N - 1 / 2) / 2)).limit_denominator(1000)
    # (x, y) lies on the unit circle at the angle 2 arctan t; its double covers all angles.
    x, y = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    x, y = x * x - y * y, 2 * x * y
    return [sign * each for each in (x - y, x + y) for sign in (1, -1)]


def _through(network: tf.FeedForward, x: Sequence[int]) -> tuple[Vector, Vector]:
    """Outputs of a network in exact arithmetic, before and after a norm with ε = 0."""
    found = network(x, "exact")
    norm = tf.LayerNorm(gain=[1] * network.width_out)
    return found.tolist(), norm(found, "exact").tolist()


def minus(x: Vector, y: Vector) -> Vector:
    """The difference of two vectors."""
    return [a - b for a, b in zip(x, y, strict=True)]


def every_function(arguments: int) -> tuple[int, Fraction, int]:
    """Number of Boolean functions, largest change by a norm and wrong results of their networks."""
    inputs = list(product((-1, 1), repeat=arguments))
    # A unit for each input: Σ sᵢ bᵢ is the number of arguments there, and smaller by 2 elsewhere.
    W_1 = [[part for s in signs for part in (0, s)] for signs in inputs]
    moved, wrong = Fraction(0), 0
    tables = list(product((-1, 1), repeat=len(inputs)))
    for table in tables:
        ups = [1 + value for value in table]
        W_2 = [[-each for each in ups], ups]
        network = tf.FeedForward(W_1=W_1, b_1=[1 - arguments] * len(ups), W_2=W_2, b_2=[1, -1])
        for signs, value in zip(inputs, table, strict=True):
            found, normed = _through(network, [part for s in signs for part in (-s, s)])
            wrong += found != [-value, value]
            moved = max(moved, *map(abs, minus(normed, found)))
    return len(tables), moved, wrong


def there_and_back(vectors: Sequence[Vector]) -> tuple[Fraction, int]:
    """Largest change by a norm, and wrong results, of a network from k to its vector and back."""
    # Interpolation at the integers: unit j, ReLU(k − j), changes the slope from j on.
    slopes = [minus(b, a) for a, b in pairwise(vectors)]
    bends = [slopes[0], *(minus(b, a) for a, b in pairwise(slopes))]
    network = tf.FeedForward(
        W_1=[[1]] * len(bends),
        b_1=[-j for j in range(len(bends))],
        W_2=[list(column) for column in zip(*bends, strict=True)],
        b_2=vectors[0],
    )
    moved, wrong = Fraction(0), 0
    for k, vector in enumerate(vectors):
        found, normed = _through(network, [k])
        moved = max(moved, *map(abs, minus(normed, found)))
        scores = [sum(a * b for a, b in zip(normed, each, strict=True)) for each in vectors]
        wrong += found != vector or scores.index(max(scores)) != k
    return moved, wrong
