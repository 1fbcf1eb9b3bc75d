"""Stacks of layers as functions of lists of vectors: slots, shapes, exactness, refusals."""

from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import EXACT, SYSTEMS
from transformist.errors import InvalidValue, ShapeMismatch, UnknownName
from transformist.model import Attention, FeedForward, Layer, LayerNorm, LayerStack, Stream

STREAM = Stream(("mean", "x", "y", "product"))
MEAN = Attention(
    W_Q=[[0] * 4],
    W_K=[[0] * 4],
    W_V=[[0, 1, 0, 0]],
    W_O=[[1], [0], [0], [0]],
    mask="future",
    weighting="average-hard",
)
# adds ReLU(mean − y) to `product` and takes x from `x`
NETWORK = FeedForward(
    W_1=[[1, 0, -1, 0], [0, 1, 0, 0], [0, -1, 0, 0]],
    W_2=[[0, 0, 0], [0, -1, 1], [0, 0, 0], [1, 0, 0]],
)
STACK = LayerStack(
    STREAM, ("y", "x"), (Layer((MEAN,), NETWORK), Layer((), NETWORK)), ("product", "mean", "x")
)


def expected(vectors):
    rows, total = [], Fraction(0)
    for i, (y, x) in enumerate(vectors, start=1):
        total += x
        mean = total / i
        rows.append([2 * max(mean - y, 0), mean, 0])
    return rows


def drawn(seed, n):
    source = np.random.default_rng(seed)
    return [[Fraction(int(k), 6) for k in row] for row in source.integers(-9, 9, (n, 2))]


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_it_is_what_its_layers_do_to_its_inputs(n):
    for seed in range(5):
        vectors = drawn(seed, n)
        assert STACK(vectors, "exact").tolist() == expected(vectors)


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16"])
def test_in_a_format_small_numbers_are_exact(name):
    vectors = [[1, 2], [0, 4], [-3, 0], [1, 2]]  # all means are whole or halves
    got = SYSTEMS[name].numbers(STACK(vectors, name))
    assert got.tolist() == [[float(v) for v in row] for row in expected(vectors)]


def test_shapes_of_lists_and_batches():
    assert (STACK.width, STACK.width_out) == (2, 3)
    assert STACK.nonzero == 2 + 2 * (4 + 3)
    one, other = drawn(1, 4), drawn(2, 4)
    both = STACK([one, other], "exact")
    assert both.shape == (2, 4, 3)
    assert both.tolist() == [expected(one), expected(other)]
    assert STACK(one).shape == (4, 3)
    assert STACK(np.zeros((0, 4, 2))).shape == (0, 4, 3)


def test_slots_that_are_no_inputs_start_at_zero():
    before, *after = (z.tolist() for z in STACK.streams([[5, 7]], "exact"))
    assert before == [[0, 7, 5, 0]]
    assert after == [[[7, 7, 5, 0]], [[7, 0, 5, 2]], [[7, 0, 5, 4]]]


def test_every_sublayer_has_a_stream_and_the_outputs_are_of_the_last():
    vectors = drawn(3, 5)
    streams = list(STACK.streams(vectors, EXACT))
    assert len(streams) == 1 + 3
    z = np.array(streams[-1].tolist())
    assert z[:, [3, 0, 1]].tolist() == STACK(vectors, "exact").tolist()


def test_no_layers_hand_the_inputs_on():
    through = LayerStack(STREAM, ("x", "y"), (), ("y", "x", "mean", "y"))
    assert through([[1, 2]]).tolist() == [[2, 1, 0, 2]]
    assert through.nonzero == 0


@pytest.mark.parametrize("vectors", [[[1]], [[1, 2, 3]], [1, 2, 3], [[[1], [2]]], 1])
def test_vectors_of_another_width_are_refused(vectors):
    with pytest.raises(ShapeMismatch, match="width 2"):
        STACK(vectors)


def test_vectors_of_several_widths_are_refused():
    with pytest.raises((ShapeMismatch, InvalidValue)):
        STACK([[1, 2], [1]])


def test_unknown_slots_are_refused():
    with pytest.raises(UnknownName, match="did you mean mean"):
        LayerStack(STREAM, ("x",), (), ("meen",))
    with pytest.raises(UnknownName, match="slot of the stream"):
        LayerStack(STREAM, ("z",), (), ("x",))


def test_layers_of_another_width_are_refused():
    narrow = FeedForward(W_1=[[1, 0]], W_2=[[1], [0]])
    with pytest.raises(ShapeMismatch, match="layer 1, feed-forward"):
        LayerStack(STREAM, ("x",), (Layer((MEAN,)), Layer((), narrow)), ("x",))
    head = Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])
    with pytest.raises(ShapeMismatch, match="layer 0, attention"):
        LayerStack(STREAM, ("x",), (Layer((head,)),), ("x",))


@pytest.mark.parametrize(("inputs", "outputs"), [(("x", "x"), ("x",)), ((), ("x",)), (("x",), ())])
def test_inputs_given_twice_or_none_are_refused(inputs, outputs):
    with pytest.raises(InvalidValue, match="none twice"):
        LayerStack(STREAM, inputs, (), outputs)


def test_a_final_norm_sees_the_whole_stream_before_outputs_are_chosen():
    norm = LayerNorm(gain=[1, 2, 1, 4], bias=[0, 0, 0, 1], epsilon=1)
    normed = LayerStack(STREAM, STACK.inputs, STACK.layers, STACK.outputs, norm)
    vectors = [[1.0, 2.0], [0.5, -3.0]]
    *_, before = STACK.streams(vectors)
    *_, same, after = normed.streams(vectors)
    assert (same == before).all()
    centred = before - before.mean(axis=1, keepdims=True)
    by_hand = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1)
    assert np.allclose(after, by_hand * [1, 2, 1, 4] + [0, 0, 0, 1], rtol=1e-14)
    assert (normed(vectors) == after[:, [3, 0, 1]]).all()
    assert normed.nonzero == STACK.nonzero + norm.nonzero
