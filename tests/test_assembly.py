"""Assembly: each function against the composition it stands for, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from transformist.assembly import (
    attend,
    beside,
    cancel_residual,
    postcompose,
    precompose,
    route,
)
from transformist.errors import ShapeMismatch
from transformist.model import FeedForward, Stream

THIRD = Fraction(1, 3)
NETWORK = FeedForward(
    W_1=[[1, THIRD], [2, -1], [0, 3]],
    b_1=[1, 0, THIRD],
    W_2=[[1, 2, 3], [THIRD, 0, -1]],
    b_2=[5, 0],
)
INPUTS = [[Fraction(a, 7), Fraction(b, 5)] for a in (-9, -1, 4) for b in (-6, 0, 11)]


def exact(network, x):
    return network(x, "exact").tolist()


def test_precompose_and_postcompose_are_affine_maps_around_the_network():
    A, b = [[THIRD, 2, 0], [0, 1, -1]], [Fraction(1, 7), 2]
    x = [1, Fraction(1, 9), -2]
    inner = [
        sum(a * v for a, v in zip(row, x, strict=True)) + c for row, c in zip(A, b, strict=True)
    ]
    assert exact(precompose(NETWORK, A, b), x) == exact(NETWORK, inner)
    for inputs in INPUTS:
        y = exact(NETWORK, inputs)
        assert exact(postcompose([[THIRD, -2]], NETWORK), inputs) == [THIRD * y[0] - 2 * y[1]]


def test_route_reads_and_writes_slots():
    stream = Stream(("a", "b", "c", "d"))
    routed = route(NETWORK, stream, ["d", {"a": 2, "b": -1}], ["c", "a"], shift=[0, THIRD])
    x = [3, 1, 100, Fraction(1, 2)]
    y = exact(NETWORK, [Fraction(1, 2), 5 + THIRD])
    assert exact(routed, x) == [y[1], 0, y[0], 0]


def test_beside_sums_what_the_networks_write():
    for x in INPUTS:
        both = exact(beside(NETWORK, NETWORK, NETWORK), x)
        assert both == [3 * y for y in exact(NETWORK, x)]
    with pytest.raises(ShapeMismatch, match="one width"):
        beside(NETWORK, FeedForward(W_1=[[1]], W_2=[[1]]))
    with pytest.raises(ShapeMismatch, match="activation"):
        gelu = FeedForward(W_1=np.eye(2), W_2=np.eye(2), activation="gelu")
        beside(NETWORK, gelu)


def test_cancel_residual_takes_the_input_away():
    for x in INPUTS:
        y = exact(cancel_residual(NETWORK), x)
        assert [a + b for a, b in zip(y, x, strict=True)] == exact(NETWORK, x)
    with pytest.raises(ShapeMismatch, match="R\\^d"):
        cancel_residual(FeedForward(W_1=[[1, 1]], W_2=[[1]]))


def test_a_head_without_query_adds_a_mean_to_a_slot():
    stream = Stream(("x", "mean"))
    head = attend(stream, [{"x": THIRD}], ["mean"])
    assert exact(head, [[3, 0], [6, 0]]) == [[0, Fraction(3, 2)]] * 2
