"""What is printed of routing (8.2), against what a residual connection makes of it."""

import itertools

import numpy as np

from transformist.assembly import between, cancel_residual
from transformist.model import FeedForward

MATRICES = [np.array(m).reshape(2, 2) for m in itertools.product((-1, 0, 1), repeat=4)]
POINTS = [np.array(x) for x in itertools.product((-2, 0, 1, 3), repeat=2)]


def f(x):
    """[max(x₁, x₂), ReLU(x₁)], the network of the test, by hand."""
    return np.array([max(x[0], x[1]), max(x[0], 0)])


def test_routing_a_layer_with_its_residual_connection_is_no_layer_with_one():
    """L (f(R x) + R x) = (L f R)(x) + x for all x only where L R = I: L, R over −1, 0, 1."""
    for L, R in itertools.product(MATRICES, repeat=2):
        same = all(np.array_equal(L @ (f(R @ x) + R @ x), L @ f(R @ x) + x) for x in POINTS)
        assert same == np.array_equal(L @ R, np.eye(2)), (L, R)


def test_routing_as_printed_zeroes_nothing_out():
    """With L = 0 the layer leaves x as it is; what takes x away is the cancelling of 4.2."""
    network = FeedForward(W_1=[[1, 0], [-1, 0], [-1, 1]], W_2=[[1, -1, 1], [1, 0, 0]])
    zero = between(network, np.eye(2), np.zeros((2, 2)))
    kept = between(network, np.eye(2), [[1, 0], [0, 0]])
    for x in POINTS:
        assert np.array_equal(network(x), f(x))
        assert np.array_equal(zero(x) + x, x)
        assert np.array_equal(kept(x) + x, [f(x)[0] + x[0], x[1]])
        assert np.array_equal(cancel_residual(kept)(x) + x, [f(x)[0], 0])
