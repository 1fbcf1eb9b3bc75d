"""A transformer from scratch: are there more a's than b's?

One layer: the mean of +1 for a and −1 for b over BOS and the whole string. It is a multiple of
1/(n + 1), so half of 1/(N + 1) parts "more" from "as many", with room for the rounding of floats.
"""

from fractions import Fraction

import transformist as tf
from transformist.assembly import attend

N = 12
stream = tf.Stream(("sign", "mean"))
model = tf.Transformer(
    stream=stream,
    embedding=tf.Embedding.of(
        stream, {"a": {"sign": 1}, "b": {"sign": -1}, "BOS": {}}, front=["BOS"]
    ),
    layers=(tf.Layer(heads=(attend(stream, ["sign"], ["mean"]),)),),
    read_out=tf.Binary(W_out=stream.reading("mean"), b_out=[Fraction(-1, 2 * (N + 1))]),
    max_length=N,
)


def majority(x: str) -> bool:
    """The reference, by counting."""
    return x.count("a") > x.count("b")


if __name__ == "__main__":
    for arithmetic in ("exact", "float64", "float32"):
        verdict = tf.check(model, majority, max_length=N, arithmetic=arithmetic)
        print(f"{verdict.cases} strings in {arithmetic}: {'held' if verdict else verdict}")
        assert verdict
