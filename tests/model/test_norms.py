"""Pre-norm, post-norm and final norm (6.2): against numpy, and at work."""

from dataclasses import replace

import numpy as np
import pytest

import transformist as tf
from transformist.assembly import attend, postcompose
from transformist.model import Attention, Embedding

D, HIDDEN, KEY = 5, 7, 3


def layer_norm(x, gain, bias, epsilon):
    """Definition 6.1."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gain + bias


def attention(z, heads):
    """Definition 2.3, softmax under a future mask, heads summed."""
    total = np.zeros_like(z)
    for W_Q, W_K, W_V, W_O in heads:
        scores = np.einsum("ik,jk->ij", z @ W_Q.T, z @ W_K.T) / np.sqrt(KEY)
        e = np.tril(np.exp(scores))
        total += e / e.sum(axis=1, keepdims=True) @ (z @ W_V.T) @ W_O.T
    return total


def network(z, W_1, b_1, W_2, b_2):
    """Definition 2.5."""
    return np.maximum(z @ W_1.T + b_1, 0) @ W_2.T + b_2


def drawn(rng):
    heads = [
        [rng.normal(size=shape) for shape in ((KEY, D), (KEY, D), (2, D), (D, 2))] for _ in "ab"
    ]
    weights = [rng.normal(size=shape) for shape in ((HIDDEN, D), (HIDDEN,), (D, HIDDEN), (D,))]
    norms = [(rng.normal(size=D), rng.normal(size=D), float(rng.uniform(0.01, 1))) for _ in "ab"]
    return heads, weights, norms


def as_layer(heads, weights, norms, kind):
    names = ("W_Q", "W_K", "W_V", "W_O")
    made = tuple(tf.LayerNorm(gain=g, bias=b, epsilon=e) for g, b, e in norms)
    return tf.Layer(
        tuple(Attention(**dict(zip(names, head, strict=True)), mask="future") for head in heads),
        tf.FeedForward(**dict(zip(("W_1", "b_1", "W_2", "b_2"), weights, strict=True))),
        **({kind: made} if kind else {}),
    )


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("kind", [None, "pre_norms", "post_norms"])
def test_a_transformer_with_norms_is_that_of_section_6_2(kind, final):
    rng = np.random.default_rng(11)
    words, drawn_layers = rng.normal(size=(3, D)), [drawn(rng) for _ in range(2)]
    last = (rng.normal(size=D), rng.normal(size=D), 0.25)
    stream = tf.Stream(tuple("vwxyz"))
    model = tf.Transformer(
        stream=stream,
        embedding=Embedding(symbols=tuple("abc"), vectors=words),
        layers=tuple(as_layer(*each, kind) for each in drawn_layers),
        read_out=tf.Binary(W_out=np.ones((1, D))),
        final_norm=tf.LayerNorm(gain=last[0], bias=last[1], epsilon=last[2]) if final else None,
    )
    z = words[[0, 1, 2, 2, 0, 1]]
    wanted = [z]
    for heads, weights, norms in drawn_layers:
        for f, given, norm in ((attention, (heads,), norms[0]), (network, weights, norms[1])):
            if kind == "pre_norms":
                z = f(layer_norm(z, *norm), *given) + z
            elif kind == "post_norms":
                z = layer_norm(f(z, *given) + z, *norm)
            else:
                z = f(z, *given) + z
            wanted.append(z)
    if final:
        wanted.append(layer_norm(z, *last))
    streams = model.run("abccab").streams
    assert len(streams) == len(wanted)
    for (name, got), want in zip(streams, wanted, strict=True):
        assert np.abs(got - want).max() < 1e-12 * max(1, np.abs(want).max()), name


# Dyck-1 with comparisons by norms (after Yang & Chiang 2024): no N, no tolerance

SLOTS = tf.Stream(("step", "bos", "1", "balance", "1/i", "up", "down", "dips", "never"))


def sign(form, slot, epsilon=0):
    """A network that stores the sign of a form, by a norm of the form and its opposite."""
    opposite = {name: -value for name, value in form.items()}
    norm = tf.LayerNorm(gain=[1, 1], epsilon=epsilon, W_N=SLOTS.reading(form, opposite))
    copy = tf.FeedForward(W_1=[[1, 0], [-1, 0]], W_2=[[1, -1]])
    return postcompose(SLOTS.writing(slot), copy), (None, norm)


def mean(read, write):
    return (attend(SLOTS, read, write, weighting="softmax", mask="future"),)


def dyck_1(epsilon=0):
    """b/(i + 1) is a mean, half of 1/(i + 1) keeps signs from being those of 0.

    b ≥ 0 where b + ½ > 0, b ≤ 0 where ½ − b > 0; and b ≥ 0 everywhere where the mean of sign − 1
    over the n + 1 positions, 0 or at most −2/(n + 1), is above −1/(n + 1).
    """
    words = {"(": {"step": 1, "1": 1}, ")": {"step": -1, "1": 1}, "BOS": {"bos": 1, "1": 1}}
    not_negative = sign({"balance": 1, "1/i": 0.5}, "up", epsilon)
    not_positive = sign({"balance": -1, "1/i": 0.5}, "down", epsilon)
    everywhere = sign({"dips": 1, "1/i": 1}, "never", epsilon)
    return tf.Transformer(
        stream=SLOTS,
        embedding=Embedding.of(SLOTS, words, front=("BOS",)),
        layers=(
            tf.Layer(mean(["step", "bos"], ["balance", "1/i"]), *not_negative),
            tf.Layer((), *not_positive),
            tf.Layer(mean([{"up": 1, "1": -1}], ["dips"]), *everywhere),
        ),
        read_out=tf.Binary(W_out=SLOTS.reading({"never": 1, "down": 1}), b_out=[-1]),
    )


def balanced(x):
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


@pytest.mark.parametrize("arithmetic", ["exact", "float64", "float32", "float16"])
def test_dyck_1_by_the_signs_of_norms(arithmetic):
    verdict = tf.check(dyck_1(), balanced, max_length=10, arithmetic=arithmetic)
    assert verdict.held, verdict.counterexample
    assert verdict.cases == 2**11 - 1


def test_dyck_1_by_norms_holds_for_long_strings_too():
    n = 600
    deep, flat = "(" * (n // 2) + ")" * (n // 2), "()" * (n // 2)
    dips = "()" * (n // 4) + ")(" + "()" * (n // 4 - 1)
    for x in (deep, flat, dips, flat[:-1] + "(", ")" + deep[:-1], "(" + deep[:-1]):
        for arithmetic in ("float64", "float32"):
            assert dyck_1()(x, arithmetic) == balanced(x)


def test_with_a_positive_epsilon_the_signs_are_none():
    assert not tf.check(dyck_1(epsilon=1), balanced, max_length=6).held


def test_the_signs_are_signs_at_every_position():
    trace = dyck_1().run("())(", "exact")
    assert trace["up"].tolist() == [1, 1, 1, -1, 1]
    assert trace["down"].tolist() == [1, -1, 1, 1, 1]
    assert trace["never"].tolist() == [1, 1, 1, -1, -1]
    without = replace(dyck_1(), layers=dyck_1().layers[:1])
    assert without.run("(", "exact")["up"].tolist() == [1, 1]


def test_an_epsilon_that_the_format_loses_is_named():
    norm = tf.LayerNorm(gain=[1, 1], epsilon=2**-17)
    with pytest.raises(tf.TransformistError, match="ε = 7.62939e-06 needs .* does not round to 0"):
        norm([3, 3], "float8_e5m2")
    with pytest.raises(tf.TransformistError, match="ε = 0 needs a vector whose coordinates"):
        tf.LayerNorm(gain=[1, 1])([3, 3])
