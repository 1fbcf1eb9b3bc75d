"""Margins between the labels of a count: the worst pair of all, found without listing all."""

import itertools
import random

import numpy as np
import pytest

import transformist as tf
from transformist.programs import PROGRAMS
from transformist.verify.proof import answering


def drawn(seed):
    draw = random.Random(seed)
    labels = np.arange(draw.randint(3, 40), dtype=float)
    columns = [2 * labels, -(labels**2), draw.choice([0, 1]) * np.cos(labels)]
    error = np.array([draw.choice([0, 1e-6, 1e-3, 0.3]) for _ in columns])
    own = np.array([draw.choice([0, 1e-5, 0.1, 5.0]) * draw.random() for _ in labels])
    return np.stack(columns, axis=1), error, own, draw.choice([1.0, 1 / 64])


def worst_of_all(weights, error, own, b):
    """The largest ratio of the error of a difference to the lead, over all pairs."""
    pairs = itertools.combinations(range(len(weights)), 2)
    return max(
        (sum(abs(weights[k] - weights[m]) * error) + own[k] + own[m]) / (b * (k - m) ** 2)
        for k, m in pairs
    )


@pytest.mark.parametrize("seed", range(40))
def test_no_pair_is_worse_than_the_worst(seed):
    given = drawn(seed)
    error, lead = answering._worst_pair(*given)
    assert error / lead == pytest.approx(worst_of_all(*given), rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_a_bound_stands_for_the_pairs_that_are_not_listed(seed, monkeypatch):
    monkeypatch.setattr(answering, "MOST_DISTANCES", 2)
    given = drawn(seed)
    error, lead = answering._worst_pair(*given)
    assert error / lead >= worst_of_all(*given) * (1 - 1e-9)


@pytest.mark.slow
def test_a_count_may_have_many_labels():
    model = tf.compile(PROGRAMS["histogram"], max_length=4100, arithmetic="float64")
    found = tf.certify(model, "float64")
    assert (found.holds, found.grade) == (True, 1)
