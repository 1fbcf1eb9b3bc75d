"""A head that takes one row, after a head that takes one row, takes one row."""

import itertools

import numpy as np
import pytest

import transformist as tf
from transformist.model import Mask
from transformist.verify.proof.attending import seen
from transformist.verify.proof.ideal import Ideal, Pattern

ADMITS = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}


@pytest.mark.parametrize("bos", [None, 2])
@pytest.mark.parametrize("masks", list(itertools.product(ADMITS, repeat=2)), ids="/".join)
def test_every_row_that_two_heads_may_take_is_among_the_choices(masks, bos):
    kinds, longest = 2 + (bos is not None), 3
    ideal = Ideal(kinds, bos, longest, [])
    first, second = (Pattern(name, name, "one", *seen(Mask(name), kinds, bos)) for name in masks)
    composed = ideal._composed(second, first)
    for n in range(bos is None, longest + 1):
        for word in itertools.product(range(2), repeat=n):
            rows = [*([bos] if bos is not None else []), *word]
            for i, kind in enumerate(rows):
                met = taken_after(*masks, rows, i)
                assert {rows[k] for k in met - {None}} <= {*np.flatnonzero(composed.sees[kind])}
                assert composed.empty[kind] or None not in met


def taken_after(first, second, rows, i):
    """Rows that the second head may take through the first from row i; None where there is none."""
    places = range(len(rows))
    by_second = [j for j in places if ADMITS[second](i, j)]
    by_first = [[k for k in places if ADMITS[first](j, k)] or [None] for j in by_second]
    return {*itertools.chain.from_iterable(by_first)} or {None}


def rightmost(symbols):
    @tf.program(alphabet=[f"t{k}" for k in range(symbols)])
    def found(x):
        later = x.select(x, mask="strict-future")
        return later.rightmost(x.predecessor(default="t0"), default="t0").tag()

    return tf.compile(found, max_length=10)


@pytest.mark.parametrize("symbols", [3, pytest.param(66, marks=pytest.mark.slow)])
def test_what_two_heads_fetch_one_after_the_other_is_one_symbol(symbols):
    # 66 labels are too many to compare in pairs, and in pairs 3 of them may be equal.
    found = tf.certify(rightmost(symbols), "float32")
    assert (found.holds, found.grade, found.stopped) == (True, 1, "")
