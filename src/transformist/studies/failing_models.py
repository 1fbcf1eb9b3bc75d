"""Failing models of the study signatures, and the change that mends each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import transformist as tf

BLEND, REGION = "retrieval blends positions", "comparison falls in its linear region"
NORM, COUNT = "norm moves a stored value", "count falls below the format's resolution"
OVERFLOW = "saturation or overflow"


class Failure(NamedTuple):
    """A model that fails on an input, and its remedy.

    Attributes:
        signature: the failure that is provoked.
        model: the model in words.
        build: returns the model for a setting.
        settings: the settings before and after the remedy.
        x: the input.
        right: the answer by definition.
        formats: the formats before and after the remedy.
        remedy: the change in words.

    """

    signature: str
    model: str
    build: Callable[[Any], tf.Transformer]
    settings: tuple[Any, Any]
    x: Sequence[Any]
    right: Any
    formats: tuple[str, str]
    remedy: str


def _binary(words: Any, layer: tf.Layer, *reads: Any, above: Any) -> tf.Transformer:
    """Accept if a weighted sum of the slots of the last row is above a number."""
    vectors = [[*vector, *[0] * (len(reads) - len(vector))] for vector in words.values()]
    return tf.Transformer(
        stream=tf.Stream(tuple(f"slot {k}" for k in range(len(reads)))),
        embedding=tf.Embedding(symbols=tuple(words), vectors=vectors),
        layers=(layer,),
        read_out=tf.Binary(W_out=[reads], b_out=[-Fraction(above)]),
    )


def lookup_model(sharpness: int) -> tf.Transformer:
    """Find an a: its score is half the sharpness, and the score of a b is 0."""
    W_Q, W_K, W_O = [[0, sharpness, 0]], [["1/2", 0, 0]], [[0], [0], [1]]
    head = tf.Attention(W_Q=W_Q, W_K=W_K, W_V=[[1, 0, 0]], W_O=W_O)
    return _binary({"a": (1, 1), "b": (0, 1)}, tf.Layer((head,)), 0, 0, 1, above="3/4")


def comparison_model(slope: int) -> tf.Transformer:
    """Compare x with y; ε is 1/slope, and the least positive difference is 1/96."""
    # Near 1 the numbers of bfloat16 are 1/128 apart, so that 1 + 1/96 is rounded to 1 + 1/128. The
    # comparison is 1 from ε on: it gives 96/128 = 3/4 for ε = 1/96, and 1 for ε = 1/128.
    step = tf.FeedForward(W_1=[[slope, -slope, 0]] * 2, b_1=[0, -1], W_2=[[0, 0], [0, 0], [1, -1]])
    words = {"a": (1 + Fraction(1, 96), 1), "b": (1, 1)}
    return _binary(words, tf.Layer((), step), 0, 0, 1, above="7/8")


def norm_model(setting: tuple[str, Any]) -> tf.Transformer:
    """Accept if x = 1 and reject if x = −1; with A and B a number c is stored beside x."""
    # The norm reads (x, −x), (x, −x, c) or (x, −x, c, −c). The mean of the second is c/3 = 1365,
    # where the numbers of bfloat16 are 8 apart: x and −x, less the mean, are the same number.
    read, above = setting
    width, c, minus = {"(x, −x)": (2, 4096, 0), "all": (3, 4096, 0), "pairs": (4, 4096, -4096)}[
        read
    ]
    words = {"a": (1, -1), "b": (-1, 1), "A": (1, -1, c, minus), "B": (-1, 1, c, minus)}
    W_N = [[int(slot == each) for slot in range(5)] for each in range(width)]
    copy = tf.FeedForward(W_1=[[1, -1, 0, 0][:width]], W_2=[[0]] * 4 + [[1]])
    layer = tf.Layer((), copy, pre_norms=(None, tf.LayerNorm(gain=[1] * width, W_N=W_N)))
    return _binary(words, layer, 0, 0, 0, 0, 1, above=above)


def majority_model(_: None) -> tf.Transformer:
    """Compare the counts A/n and B/n of a uniform head."""
    zeros, W_V = [[0] * 4], [[1, 0, 0, 0], [0, 1, 0, 0]]
    head = tf.Attention(W_Q=zeros, W_K=zeros, W_V=W_V, W_O=[[0, 0], [0, 0], [1, 0], [0, 1]])
    return _binary({"a": (1, 0), "b": (0, 1)}, tf.Layer((head,)), 0, 0, 1, -1, above=0)


def sum_model(setting: tuple[int, int, int]) -> tf.Transformer:
    """Compare (x + y)/scale with a number."""
    size, scale, above = setting
    add = tf.FeedForward(W_1=[[1, 0, 0], [0, 1, 0]], W_2=[[0, 0], [0, 0], [1, 1]])
    words = {"a": (size, size), "b": (0, 0)}
    return _binary(words, tf.Layer((), add), 0, 0, Fraction(1, scale), above=above)


def compiled_model(setting: tuple[str, int]) -> tf.Transformer:
    """Compile a worked program with weights for exact arithmetic."""
    name, N = setting
    return tf.compile(tf.programs.PROGRAMS[name], max_length=N, arithmetic="exact")


ALL, W_N, PAIRS = ("all", 0), ("(x, −x)", 0), ("pairs", 0)
BELOW, ABOVE = ("all", "1/2"), ("(x, −x)", "1/2")
SMALL, LARGE = (256, 16, 30), (40000, 1024, 79)
ABAB, TWOS, AS, BS = "ab" * 8 + "a", [2, 1] * 6, "a" * 257 + "b" * 256, "a" + "b" * 37
FINE, HALF, SHORT = ("float64",) * 2, ("bfloat16",) * 2, ("float8_e5m2",) * 2
WIDER, MORE, MOST = ("bfloat16", "float16"), ("float8_e4m3", "float16"), ("float16", "float32")
REVERSE, SORT = (("reverse", 17),) * 2, (("sort", 40), ("sort", 28))
HISTOGRAM, PARITY, COUNTS = (("histogram", 38),) * 2, (("parity", 46),) * 2, [1] + [37] * 37
_FAILURES: Sequence[tuple[Any, ...]] = (
    (BLEND, "find an a", lookup_model, (1, 8), "babb", True, FINE, "queries times 8"),
    (BLEND, "find an a", lookup_model, (1, 8), "babb", True, HALF, "queries times 8"),
    (REGION, "x > y", comparison_model, (96, 128), "bba", True, HALF, "ε = 1/128 for ε = 1/96"),
    (REGION, "x > y", comparison_model, (96, 96), "bba", True, WIDER, "float16"),
    (NORM, "x > 0 beside c", norm_model, (ALL, W_N), "A", True, HALF, "W_N keeps (x, −x)"),
    (NORM, "x > 0 beside c", norm_model, (ALL, PAIRS), "A", True, HALF, "c is paired with −c"),
    (NORM, "x > 1/4 beside c", norm_model, (BELOW, ABOVE), "A", True, FINE, "W_N keeps (x, −x)"),
    (COUNT, "majority", majority_model, (None, None), AS, True, WIDER, "float16"),
    (OVERFLOW, "x + y > 480", sum_model, (SMALL, SMALL), "ba", True, MORE, "float16"),
    (OVERFLOW, "x + y > 80,896", sum_model, (LARGE, LARGE), "ba", False, MOST, "float32"),
    (BLEND, "reverse, N = 17", compiled_model, REVERSE, ABAB, ABAB, WIDER, "float16"),
    (BLEND, "sort, N = 40", compiled_model, SORT, TWOS, sorted(TWOS), SHORT, "N = 28"),
    (COUNT, "histogram, N = 38", compiled_model, HISTOGRAM, BS, COUNTS, MOST, "float32"),
    (OVERFLOW, "parity, N = 46", compiled_model, PARITY, "1" * 46, False, MOST, "float32"),
)
FAILURES = tuple(Failure(*each) for each in _FAILURES)
"""Ten models by hand, then four compiled programs."""
