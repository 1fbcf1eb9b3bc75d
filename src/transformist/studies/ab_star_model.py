"""A model of (ab)* with a norm before each sublayer, built by the study six-steps."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import transformist as tf


def build_ab_star() -> tf.Transformer:
    """Accept (ab)*, the words of a and b in turn, at every length."""
    means = "mean a", "mean front", "mean error"
    slots = ("one", "is a", "front", "even", "error", *means, "more a", "more b", "any error")
    stream = tf.Stream(slots)

    def signs(*numbers: Mapping[str, Any]) -> tf.LayerNorm:
        """Normalize (y, −y) of each number y: nothing changes where every y is −1 or 1."""
        rows = [[sign * y.get(slot, 0) for slot in slots] for y in numbers for sign in (1, -1)]
        return tf.LayerNorm(gain=[1] * len(rows), W_N=rows)

    # 1. Representation: a bit is −1 or 1. BOS counts as b.
    words = {
        "a": {"one": 1, "is a": 1, "front": -1, "error": -1},
        "b": {"one": 1, "is a": -1, "front": -1, "error": -1},
        "BOS": {"one": 1, "is a": -1, "front": 1, "error": -1},
    }
    # 2. Positions: (−1)^i is 1 at even places.
    embedding = tf.Embedding.of(stream, words, front=["BOS"], positions={"even": "(-1)^i"})

    # 3. Heads: means of three bits over r rows, which the norm gives as pairs. They are
    # (A − B − 1)/r, 2/r − 1 and 2E/r − 1 for A times a, B times b, and E errors.
    bits = signs({"is a": 1}, {"front": 1}, {"error": 1})
    W_V = [[int(k == 2 * bit) for k in range(6)] for bit in range(3)]
    W_O = [[int(slot == each) for each in means] for slot in slots]
    mean = tf.Attention(W_Q=[[0] * 6], W_K=[[0] * 6], W_V=W_V, W_O=W_O, mask="future")

    # 4. Networks: a at an even place is an error, and b at an odd one. There |a + even| is 2, and
    # elsewhere 0; the error rises by it from −1.
    error = [[int(slot == "error")] * 2 for slot in slots]
    misplaced = tf.FeedForward(W_1=[[1, 0, 1, 0], [0, 1, 0, 1]], W_2=error)
    # Each comparison is of a whole number less 1/2, over r: (A − B − 1/2)/r, (B − A − 1/2)/r and
    # (E − 1/2)/r. None is ever 0, and a norm with ε = 0 makes −1 or 1 of them.
    quarter = Fraction(1, 4)
    compared: dict[str, dict[str, Any]] = {
        "more a": {"mean a": 1, "mean front": quarter, "one": quarter},
        "more b": {"mean a": -1, "mean front": -3 * quarter, "one": -3 * quarter},
        "any error": {"mean error": 2 * quarter, "mean front": -quarter, "one": quarter},
    }
    steps = [
        (tf.FeedForward(W_1=[[1, 0]], W_2=[[int(slot == name)] for slot in slots]), signs(y))
        for name, y in compared.items()
    ]

    # 5. Composition: each sublayer writes slots of its own, and has its norm before it.
    layers = (
        tf.Layer((), misplaced, pre_norms=(None, signs({"is a": 1}, {"even": 1}))),
        tf.Layer((mean,), steps[0][0], pre_norms=(bits, steps[0][1])),
        *(tf.Layer((), step, pre_norms=(None, norm)) for step, norm in steps[1:]),
    )
    read_out = tf.Binary(W_out=[[-int(slot in compared) for slot in slots]], b_out=["1/2"])

    # 6. Uniformity: no weight depends on a length.
    return tf.Transformer(stream=stream, embedding=embedding, layers=layers, read_out=read_out)
