"""Sensitivity to one symbol: K/n where everything is Lipschitz, constant with a norm of ε = 0."""

from fractions import Fraction as F

import pytest

import transformist as tf
from transformist.arithmetic import INTERVAL
from transformist.errors import InvalidValue, UnknownSymbol
from transformist.model import Attention, Embedding

LENGTHS = (8, 16, 32, 64, 128, 256, 512)


def smooth():
    """Two layers of softmax attention with scores of content and bounded positions, and ReLU."""
    stream = tf.Stream(("x", "i/n", "parity", "mean", "bent", "second"))
    embedding = Embedding.of(
        stream, {"a": {"x": 1}, "b": {"x": -1}}, {"i/n": "i/n", "parity": "(-1)^i"}
    )
    first = Attention(
        W_Q=stream.reading({"x": 1, "i/n": 2}),
        W_K=stream.reading({"x": 1, "parity": 1}),
        W_V=stream.reading("x"),
        W_O=stream.writing("mean"),
    )
    network = tf.FeedForward(
        W_1=stream.reading({"mean": 3, "x": 1}, {"mean": -2}),
        b_1=["1/2", 0],
        W_2=stream.writing({"bent": 1}, {"bent": -1}),
    )
    second = Attention(
        W_Q=stream.reading("bent"),
        W_K=stream.reading({"bent": 1, "parity": 1}),
        W_V=stream.reading("bent"),
        W_O=stream.writing("second"),
    )
    return tf.Transformer(
        stream=stream,
        embedding=embedding,
        layers=(tf.Layer((first,), network), tf.Layer((second,))),
        read_out=tf.Binary(W_out=stream.reading("second")),
    )


def voting(epsilon, back=()):
    """The sign of the mean of ±1, by a norm of the pair of the mean and its opposite."""
    stream = tf.Stream(("x", "mean", "-mean", "sign"))
    words = {"a": {"x": 1}, "b": {"x": -1}, **{symbol: {} for symbol in back}}
    head = Attention(
        W_Q=stream.reading({}),
        W_K=stream.reading({}),
        W_V=stream.reading("x"),
        W_O=stream.writing({"mean": 1, "-mean": -1}),
    )
    norm = tf.LayerNorm(gain=[1, 1], epsilon=epsilon, W_N=stream.reading("mean", "-mean"))
    copy = tf.FeedForward(W_1=[[1, 0], [-1, 0]], W_2=stream.writing({"sign": 1}, {"sign": -1}))
    return tf.Transformer(
        stream=stream,
        embedding=Embedding.of(stream, words, back=back),
        layers=(tf.Layer((head,), copy, pre_norms=(None, norm)),),
        read_out=tf.Binary(W_out=stream.reading("sign")),
    )


def places(n):
    """All of the first 64 lengths; some 50 of both parities beyond."""
    return None if n <= 64 else range(1, n, n // 64 + 1)


@pytest.mark.parametrize("lengths", [LENGTHS[:5], pytest.param(LENGTHS, marks=pytest.mark.slow)])
def test_with_lipschitz_parts_n_times_the_sensitivity_stays_bounded(lengths):
    model = smooth()
    scaled = [n * tf.sensitivity(model, [("aab" * n)[:n]], positions=places(n)) for n in lengths]
    assert all(0.3 < each < 0.6 for each in scaled), scaled
    assert max(scaled[2:]) / min(scaled[2:]) < 1.1


def test_a_norm_without_epsilon_keeps_the_sensitivity_and_with_one_it_goes_down():
    for n in LENGTHS:
        almost_even = ["ab" * (n // 2) + "a"]
        few = (1, 2, n // 2 + 1)
        assert tf.sensitivity(voting(0), almost_even, "exact", few) == 2
        falling = tf.sensitivity(voting("1/64"), almost_even, positions=few)
        assert 11 < (n + 1) * falling < 16  # 2/√ε


def test_the_change_is_the_largest_of_all_streams_positions_and_symbols():
    mean = tf.Stream(("x", "mean"))
    words = {"0": {}, "1": {"x": 1}, "5": {"x": 5}}
    head = Attention(
        W_Q=mean.reading({}), W_K=mean.reading({}), W_V=mean.reading("x"), W_O=mean.writing("mean")
    )
    model = tf.Transformer(
        stream=mean,
        embedding=Embedding.of(mean, words),
        layers=(tf.Layer((head,)),),
        read_out=tf.Binary(W_out=mean.reading("mean")),
    )
    assert tf.sensitivity(model, ["1010"], "exact") == F(5, 4)
    assert tf.sensitivity(model, ["1010", "110"], "exact") == F(4, 3)
    assert tf.sensitivity(model, ["1010"], "exact", positions=[1]) == 1
    assert tf.sensitivity(model, ["1"], "exact") == 0  # the last position itself
    assert isinstance(tf.sensitivity(model, ["10"]), float)


def test_where_a_symbol_stands_at_the_back_every_other_one_changes():
    assert tf.sensitivity(voting(1), ["a"]) == 0
    assert tf.sensitivity(voting(1, back=("EOS",)), ["a"]) > 0


def test_what_has_no_symbols_is_refused():
    with pytest.raises(InvalidValue, match="received FeedForward; give tf.compile"):
        tf.sensitivity(tf.recipe("min").build(), ["a"])
    with pytest.raises(UnknownSymbol):
        tf.sensitivity(voting(1), ["abc"])


def test_one_string_and_positions_that_no_string_has_are_refused():
    model = voting(1)
    with pytest.raises(InvalidValue, match="^sensitivity: .*one string, 'abab'; put it in a list"):
        tf.sensitivity(model, "abab")
    for positions in ([5], [0], [1, -1], [1.5], ["a"]):
        with pytest.raises(InvalidValue, match="position .* of strings of at most 4 symbols"):
            tf.sensitivity(model, ["ab", "abab"], positions=positions)
    everywhere = tf.sensitivity(model, iter(["ab", "abab"]), positions=range(1, 5))
    assert everywhere == tf.sensitivity(model, ["ab", "abab"]) > 0


def test_in_interval_the_change_is_bounded_from_above():
    """With ε = 1/3 the norm's root is a ball; the true change is near that of float64."""
    model, strings = voting("1/3"), ["abbab", "abb"]
    bound = tf.sensitivity(model, strings, "interval")
    near = tf.sensitivity(model, strings)
    assert isinstance(bound, F) and abs(float(bound) - near) < 1e-12
    balls = INTERVAL
    for x in strings:
        for k in range(len(x) - 1):
            other = x[:k] + ("b" if x[k] == "a" else "a") + x[k + 1 :]
            for (_, y), (_, z) in zip(
                model.run(x, balls).streams, model.run(other, balls).streams, strict=True
            ):
                y, z = y[-1], z[-1]
                apart = abs(balls.numbers(y) - balls.numbers(z))
                assert (apart + balls.radius(y) + balls.radius(z)).max() <= bound
    exact = tf.sensitivity(voting(0), ["abb"], "exact")
    assert exact <= tf.sensitivity(voting(0), ["abb"], "interval") < exact + F(1, 10**30)
