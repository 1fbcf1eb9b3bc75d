"""Masks and weightings are their names, and know what follows from them."""

import copy
import json
import pickle

import numpy as np
import pytest

from transformist.arithmetic import FLOAT64
from transformist.errors import InvalidValue, UnknownName
from transformist.model import Attention, Mask, Weighting

ADMITS = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}
ONE = {"W_Q": [[1]], "W_K": [[1]], "W_V": [[1]]}


def test_every_mask_is_its_definition():
    assert list(ADMITS) == list(Mask)
    for mask, n in ((mask, n) for mask in Mask for n in (1, 2, 5)):
        i = np.arange(n)
        expected = [[ADMITS[mask](row, column) for column in range(n)] for row in range(n)]
        assert mask.admissible(i[:, None], i[None, :]).tolist() == expected
        for row in range(n):
            first, stop = mask.span(row, n)
            assert [first <= column < stop for column in range(n)] == expected[row]
    middle = {mask: [ADMITS[mask](1, j) for j in range(3)] for mask in Mask}
    for mask, (back, itself, ahead) in middle.items():
        assert (mask.looks_back, mask.admits_itself, mask.looks_ahead) == (back, itself, ahead)
        assert (mask.is_causal, mask.is_strict) == (not ahead, not itself)
        assert mask.is_whole == (back and itself and ahead)


def test_every_weighting_gives_ties_what_it_says():
    shares = {"mean": [0.5, 0, 0.5], "leftmost": [1, 0, 0], "rightmost": [0, 0, 1]}
    for weighting in Weighting:
        weights = weighting(FLOAT64.array([[800, 0, 800]]), np.full((1, 3), True), FLOAT64)
        assert weights.tolist() == [shares[weighting.ties]]
        assert weighting.takes_one == (weighting.ties != "mean")
        lower = weighting(FLOAT64.array([[1, 0]]), np.full((1, 2), True), FLOAT64)[0, 1]
        assert (lower == 0) == weighting.is_hard


@pytest.mark.parametrize("value", [*Mask, *Weighting])
def test_a_value_is_its_name(value):
    name = str(value)
    assert type(name) is str and value == name and hash(value) == hash(name)
    assert {name: 1}[value] == 1 and repr(value) == repr(name) and f"{value}" == name
    assert json.dumps(value) == json.dumps(name)
    for each in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), type(value)(name)):
        assert each is value


def test_a_head_keeps_the_value_of_a_name():
    head = Attention(**ONE, mask="past", weighting="leftmost-hard")
    assert head.mask is Mask.PAST and head.weighting is Weighting.LEFTMOST_HARD
    assert (Attention(**ONE).mask, Attention(**ONE).weighting) == ("none", "softmax")
    assert head == Attention(**ONE, mask=Mask.PAST, weighting=Weighting.LEFTMOST_HARD)
    with pytest.raises(UnknownName, match="did you mean past"):
        Attention(**ONE, mask="pasts")
    with pytest.raises(InvalidValue, match="weighting must be text"):
        Attention(**ONE, weighting=None)
    with pytest.raises(AttributeError):
        head.mask = "future"
