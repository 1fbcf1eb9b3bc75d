"""Small transformers drawn at random, with every mask, weighting, norm, activation and read-out."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.catalogue import recipes
from transformist.claims import StringClaim
from transformist.model import GATES, Mask, Outputs, Weighting

CASES = [(str(m), str(w)) for m, w in itertools.product(Mask, Weighting)]


def drawn(mask="none", weighting="softmax", seed=0, at="every", norms="none", positions=True,
          activation="relu", grid=4, back=(), with_output=False, several=False):  # fmt: skip
    """Two layers of width 5 whose scores tie often and, under hard attention, exactly.

    Weights are multiples of 1/grid and positions are whole, so that hard scores are not rounded
    before the root of d_key. Means of 1/3 are rounded, so that a softmax layer follows them.
    """
    rng = np.random.default_rng(seed)

    def numbers(*shape):
        return rng.integers(-grid, grid + 1, shape) / grid

    def norm(width_in=5):
        W_N = None if norms != "selecting" else numbers(5, width_in)
        return tf.LayerNorm(gain=1 + numbers(5) / 4, bias=numbers(5), epsilon=1e-3, W_N=W_N)

    def head(number, chosen):
        shapes = {"W_Q": (2, 5), "W_K": (2, 5), "W_V": (3, 5), "W_O": (5, 3)}
        shapes |= {"b_Q": (2,), "b_K": (2,), "b_V": (3,), "b_O": (5,)}
        if number and not with_output:
            shapes |= {"W_V": (5, 5), "b_V": (5,)}
            del shapes["W_O"]
        weights = {name: numbers(*shape) for name, shape in shapes.items()}
        return tf.Attention(**weights, weighting=chosen, mask=mask)

    def labels(names, at):
        weights = {"W_out": numbers(len(names), 5), "b_out": numbers(len(names))}
        return tf.MultiClass(**weights, labels=tuple(names), at=at)

    def outputs():
        accept = tf.Binary(W_out=numbers(1, 5), b_out=numbers(1))
        return Outputs(names=("tag", "ok"), parts=(labels("xyz", "every"), accept))

    rows = 8 if activation in GATES else 4

    def layer(chosen):
        network = tf.FeedForward(
            W_1=numbers(rows, 5), b_1=numbers(rows), W_2=numbers(5, 4), b_2=numbers(5),
            activation=activation,
        )  # fmt: skip
        pre = (norm(), norm()) if norms in ("pre", "selecting") else (None, None)
        post = (norm(), norm()) if norms == "post" else (None, None)
        return tf.Layer((head(0, chosen), head(1, chosen)), network, pre_norms=pre, post_norms=post)

    second = "softmax" if weighting == "average-hard" else weighting
    places = {"q": "i/n" if weighting == "softmax" else "i", "t": "(-1)^i"}
    stream = tf.Stream(("p", "q", "r", "s", "t"))
    symbols = ("a", "b", "BOS", *back)
    words = {each: dict(zip(stream.slots, numbers(5).tolist(), strict=True)) for each in symbols}
    return tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(
            stream, words, positions=places if positions else None,
            front=("BOS",), back=back,
        ),
        layers=(layer(weighting), layer(second)),
        read_out=outputs() if several else labels("xyz", at),
        final_norm=norm() if norms == "pre" else None,
    )  # fmt: skip


def uniform(activation="relu", norm=None, weighting="average-hard", width=51):
    """A model that keeps equal rows equal: on equal symbols every final vector is the same."""
    rng = np.random.default_rng(5)
    mixing = tf.Attention(
        W_Q=rng.normal(size=(3, width)), W_K=rng.normal(size=(3, width)),
        W_V=rng.normal(size=(4, width)), W_O=rng.normal(size=(width, 4)),
    )  # fmt: skip
    # Products of large values and gates would overflow in float16.
    rows, divisor = (14, 8) if activation in GATES else (7, 1)
    network = tf.FeedForward(
        W_1=rng.normal(size=(rows, width)) / divisor, W_2=rng.normal(size=(width, 7)) / 8,
        activation=activation,
    )  # fmt: skip
    hard = replace(mixing, weighting=weighting)
    return tf.Transformer(
        stream=tf.Stream(tuple(f"x{k}" for k in range(width))),
        embedding=tf.Embedding(symbols=("a", "b"), vectors=rng.normal(size=(2, width))),
        layers=(tf.Layer((mixing,), network, pre_norms=(norm, norm)), tf.Layer((hard,), network)),
        final_norm=norm,
        read_out=tf.RealVector(W_out=np.eye(width), at="every"),
    )


def strings(alphabet, longest=4, most=40):
    """Every short string, as many as there are to be, shorter ones first, and two longer ones."""
    every = (x for n in range(longest + 1) for x in itertools.product(alphabet, repeat=n))
    chosen = list(itertools.islice(every, most))
    long = [tuple(alphabet) * 3, (alphabet[0],) * 5 + (alphabet[-1],) * 4]
    return [as_string(x) for x in (*chosen, *long)]


def of_every_length(alphabet, longest):
    """A drawn string of each length from 0 to the longest."""
    rng = np.random.default_rng(longest)
    drawings = (rng.integers(len(alphabet), size=n) for n in range(longest + 1))
    return [as_string(tuple(alphabet[k] for k in each)) for each in drawings]


def as_string(x):
    return "".join(x) if all(isinstance(each, str) for each in x) else x


def on_strings():
    """The recipes on strings, as parameters of a test."""
    slow = {"original-transformer": [pytest.mark.slow]}
    names = [each.name for each in recipes() if isinstance(each.claim, StringClaim)]
    return [pytest.param(name, marks=slow.get(name, [])) for name in names]
