"""A transformer from scratch: are there more a's than b's?

One layer: the mean of +1 for a and −1 for b over the whole string, read at the last position.
"""

import transformist as tf
from transformist.assembly import uniform

stream = tf.Stream(("sign", "mean"))
model = tf.Transformer(
    stream=stream,
    embedding=tf.Embedding.of(
        stream, {"a": {"sign": 1}, "b": {"sign": -1}, "BOS": {}}, front=["BOS"]
    ),
    layers=(tf.Layer(heads=(uniform(stream, read="sign", write="mean", mask="none"),)),),
    read_out=tf.Binary(W_out=stream.reading("mean")),
)

verdict = tf.check(model, lambda x: x.count("a") > x.count("b"), max_length=12, arithmetic="exact")
print(f"{verdict.cases} strings, {verdict.covered}, held: {verdict.held}")
assert verdict.held
