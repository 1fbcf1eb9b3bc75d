"""Homogeneity: each degree by exact evaluation, each `None` with a witness, and what it misses."""

from fractions import Fraction as F

import numpy as np
import pytest

from transformist.arithmetic import EXACT
from transformist.bounds import homogeneity
from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    FeedForward,
    FeedForwardStack,
    Heads,
    Layer,
    LayerNorm,
    LayerStack,
    Stream,
    Sublayer,
)

RELU = FeedForward(W_1=[[1, -2], [-3, 1], [2, 2]], W_2=[[3, "1/3", -2], [-1, 1, 1]])
BIASED = FeedForward(W_1=RELU.W_1, W_2=RELU.W_2, b_1=[1, 0, 0])
SHIFTED = FeedForward(W_1=RELU.W_1, W_2=RELU.W_2, b_2=[0, 1])
GELU = FeedForward(W_1=RELU.W_1, W_2=RELU.W_2, activation="gelu")
NORM = LayerNorm(gain=[2, 3])
BIASED_NORM = LayerNorm(gain=[2, 3], bias=[1, 5])
SELECTING = LayerNorm(gain=[1, 1], W_N=[[3, 0], [1, 4]])
WITH_EPSILON = LayerNorm(gain=[2, 3], epsilon=3)


def head(weighting, W_Q=((1, 0), (0, 1)), mask="none"):
    W_K = [[1, 1], [2, 0]]
    return Attention(W_Q=W_Q, W_K=W_K, W_V=[[1, 3], [0, 2]], weighting=weighting, mask=mask)


def biased(weighting, W_Q=((1, 0), (0, 1)), **biases):
    W_K = [[1, 1], [2, 2]]
    return Attention(W_Q=W_Q, W_K=W_K, W_V=[[1, 3], [2, 6]], weighting=weighting, **biases)


HARD = head("average-hard")
SOFT = head("softmax")
NO_SCORES = head("softmax", W_Q=((0, 0), (0, 0)), mask="future")
ORTHOGONAL = Attention(W_Q=[[1, 2], [1, 2]], W_K=[[1, 1], [-1, -1]], W_V=[[1, 3], [0, 2]])
STREAM = Stream(("x", "y"))


def stack(*layers):
    return LayerStack(STREAM, ("x", "y"), layers, ("y",))


SHOWN = {
    "relu": (RELU, 1),
    "norm": (NORM, 0),
    "norm with a bias": (BIASED_NORM, 0),
    "selecting norm": (SELECTING, 0),
    "average-hard": (HARD, 1),
    "leftmost-hard": (head("leftmost-hard", mask="strict-future"), 1),
    "rightmost-hard": (head("rightmost-hard", mask="past"), 1),
    "uniform softmax": (NO_SCORES, 1),
    "softmax of scores that cancel": (ORTHOGONAL, 1),
    "heads": (Heads((HARD, NO_SCORES)), 1),
    "biased keys": (biased("leftmost-hard", b_K=[5, 1]), 1),
    "biased keys of equal scores": (biased("softmax", W_Q=((2, 0), (-1, 0)), b_K=[5, 1]), 1),
    "biases that cancel": (biased("average-hard", b_Q=[4, -2]), 1),
    "residual": (Sublayer(RELU), 1),
    "residual of attention": (Sublayer(Heads((HARD,))), 1),
    "post-norm": (Sublayer(RELU, post_norm=BIASED_NORM), 0),
    "stack of networks": (FeedForwardStack((RELU, RELU)), 1),
    "layer": (Layer((HARD,), RELU), 1),
    "empty layer": (Layer(), 1),
    "after a norm": (Layer((HARD,), BIASED, post_norms=(NORM, None)), 0),
    "stack of layers": (stack(Layer((HARD,), RELU), Layer((NO_SCORES,))), 1),
    "stack with a final norm": (LayerStack(STREAM, ("x", "y"), (Layer((HARD,)),), ("x",), NORM), 0),
    "list": ([NORM, BIASED], 0),
}

NOT_SHOWN = {
    "biased hidden units": BIASED,
    "biased outputs": SHIFTED,
    "gelu": GELU,
    "norm with ε": WITH_EPSILON,
    "softmax": SOFT,
    "heads": Heads((HARD, SOFT)),
    "biased queries": biased("leftmost-hard", b_Q=[5, 0]),
    "biased queries alone": biased("softmax", W_Q=((0, 0), (0, 0)), b_Q=[5, 0]),
    "biased values": biased("average-hard", b_V=[1, 0]),
    "biased output": biased("average-hard", b_O=[0, 1]),
    "residual of a norm": Sublayer(RELU, pre_norm=NORM),
    "residual of biases": Sublayer(BIASED),
    "post-norm after biases": Sublayer(BIASED, post_norm=NORM),
    "post-norm with ε": Sublayer(RELU, post_norm=WITH_EPSILON),
    "stack of networks": FeedForwardStack((RELU, SHIFTED)),
    "layer": Layer((HARD,), BIASED),
    "stack of layers": stack(Layer((SOFT,)), Layer((HARD,))),
    "stack with ε": LayerStack(STREAM, ("x", "y"), (Layer((HARD,)),), ("y",), WITH_EPSILON),
    "list": [BIASED, HARD],
    "norm too late": [SHIFTED, NORM],
}


def value(part, x, arithmetic):
    for each in part if isinstance(part, list) else [part]:
        x = each(x, arithmetic)
    return x


def drawn(rng):
    """Three vectors of two different numbers: σ is half of their difference, a rational."""
    first = rng.integers(-9, 10, 3)
    return np.stack([first, first + rng.choice([-1, 1], 3) * rng.integers(1, 9, 3)], axis=1)


@pytest.mark.parametrize("name", SHOWN)
def test_a_degree_that_is_shown_is_one(name):
    part, degree = SHOWN[name]
    assert homogeneity(part) == degree
    rng = np.random.default_rng(1)
    tried = 0
    while tried < 25:
        x = drawn(rng)
        try:
            once = EXACT.numbers(value(part, x, "exact"))
        except ArithmeticError:  # a norm of a vector that the parts before made constant
            continue
        tried += 1
        for c in (F(1, 3), F(2), F(7)):
            scaled = EXACT.array([[c * int(v) for v in row] for row in x])
            assert (EXACT.numbers(value(part, scaled, "exact")) == c**degree * once).all()


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_where_none_is_shown_there_is_none(name):
    """f(x), f(2x), f(4x) are no geometric series."""
    part = NOT_SHOWN[name]
    assert homogeneity(part) is None
    rng = np.random.default_rng(2)
    found = False
    for _ in range(200):
        x = drawn(rng) / rng.choice([8, 32])
        try:
            one, two, four = (np.ravel(value(part, c * x, "float64")) for c in (1, 2, 4))
        except ArithmeticError:  # a constant vector again
            continue
        at = np.argmax(np.abs(one))
        factor = two[at] / one[at]
        found = not (np.allclose(two, factor * one) and np.allclose(four, factor**2 * one))
        if found:
            break
    assert found


def test_what_is_no_part_is_refused():
    with pytest.raises(InvalidValue, match="received str; give one of FeedForward"):
        homogeneity("relu")


def test_norms_are_not_idle_though_every_layer_has_degree_one():
    """3, −1, −1 have mean 1/3; after a norm of each position, a factor for each, −1/3."""
    mean = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 0], [0, 1]])
    pairs = [[3, -3], [-1, 1], [-1, 1]]
    norm = LayerNorm(gain=[1, 1])
    assert homogeneity(mean) == 1 and homogeneity([norm, mean]) == 0
    assert EXACT.numbers(mean(pairs, "exact"))[0, 0] == F(1, 3)
    assert EXACT.numbers(mean(norm(pairs, "exact"), "exact"))[0, 0] == F(-1, 3)
    # one factor for all positions would have kept the sign
    assert EXACT.numbers(mean([[F(v, 2) for v in row] for row in pairs], "exact"))[0, 0] > 0
