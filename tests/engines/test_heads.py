"""Every method that says it fits a head gives what the dense reference gives, ties included."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import number_system
from transformist.engines.structured import causal
from transformist.engines.structured import head as heads
from transformist.engines.structured.causal import RUNNING, CausalHead
from transformist.engines.structured.evaluation import mixes
from transformist.engines.structured.head import HeadInput, HeadMaps
from transformist.engines.structured.methods import METHODS
from transformist.model import MASKS, WEIGHTINGS, Attention

LENGTHS = (0, 1, 2, 3, 9, 40)


def attended(head, z, fits, a):
    """What a head gives by one method, or None where it does not fit."""
    maps = HeadMaps.of(head, a)
    found = fits(HeadInput(maps, z))
    if found is None:
        return None
    y = np.zeros((len(z), head.width_out), a.dtype)
    for rows, mixed in mixes(found):
        maps.output.add(mixed.astype(a.dtype), y, maps.written, rows)
    return y


def whole(rnd, *shape, size=3):
    return np.array([rnd.randint(-size, size) for _ in range(int(np.prod(shape)))]).reshape(shape)


# Each draws the rows of the stream: three numbers for the query, three for the key, two values.


def constant(rnd, n):
    return np.zeros((n, 3)), whole(rnd, n, 3)


def one_query(rnd, n):
    return np.tile(whole(rnd, 1, 3), (n, 1)), whole(rnd, n, 3, size=9)


def few_queries(rnd, n):
    return np.eye(3)[[rnd.randrange(3) for _ in range(n)]], whole(rnd, n, 3, size=2)


def few_keys(rnd, n):
    return whole(rnd, n, 3, size=9), np.eye(3)[[rnd.randrange(3) for _ in range(n)]]


def rank_one(rnd, n):
    q, k = whole(rnd, n, 3), whole(rnd, n, 3)
    q[:, 1:], k[:, 1:] = 0, 0
    return q, k


def lookup(rnd, n):
    """Positions and squares; queries half-way between two of them tie."""
    j = np.arange(n)
    asked = np.array([rnd.randint(-2, 2 * n + 2) / 2 for _ in range(n)]) * 2
    zero = np.zeros(n)
    return np.stack([asked, zero - 1, zero], 1), np.stack([j, j * j, zero], 1)


def nearest_active(rnd, n):
    """A parabola of which some points are far below."""
    q, k = lookup(rnd, n)
    k[[i for i in range(n) if rnd.random() < 0.5], 1] += 1000
    return q, k


def plane(rnd, n):
    """Points of a small grid, coming from the left or from the right, many on one line."""
    q, k = whole(rnd, n, 3), whole(rnd, n, 3)
    k[:, 0] = np.sort(k[:, 0])[:: rnd.choice([1, -1])]
    q[:, 1], q[:, 2] = rnd.choice([1, 2, -1]), 0
    return q, k


def flat(rnd, n):
    """Keys along a line, at which some queries look so that all of them tie."""
    q, k = plane(rnd, n)
    k[:, 0], k[:, 1] = np.arange(n), 2 * np.arange(n)
    q[:, 0] = -2 * q[:, 1]
    return q, k


def anything(rnd, n):
    return whole(rnd, n, 3), whole(rnd, n, 3)


SHAPES = (constant, one_query, few_queries, few_keys, rank_one, lookup, nearest_active, plane)
SHAPES += (flat, anything)


def drawn(shape, rnd, n, weighting, mask):
    """A head with biases, and vectors for it; the numbers 0 are 0 by the weights."""
    q, k = shape(rnd, n)
    z = np.concatenate([q, k, whole(rnd, n, 2, size=5)], axis=1).astype(float)
    select = np.eye(8)
    W_Q = select[:3] * (np.abs(q).sum(axis=0) != 0)[:, None]
    scale = rnd.choice([1, 1, 0.5])
    shift = rnd.choice([0, 0, 1])  # a column of the query that the weights fix
    head = Attention(
        W_Q=np.concatenate([W_Q * scale, np.zeros((1, 8))]),
        b_Q=[0, 0, 0, shift],
        W_K=np.concatenate([select[3:6], [whole(rnd, 8, size=1)]]),
        W_V=select[6:],
        b_V=whole(rnd, 2),
        W_O=whole(rnd, 5, 2),
        b_O=whole(rnd, 5),
        weighting=weighting,
        mask=mask,
    )
    return head, z


@pytest.mark.trials(1, 8)
@pytest.mark.parametrize("few", [2, 512])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_methods_that_fit_agree_with_the_reference(weighting, mask, few, monkeypatch, trials):
    monkeypatch.setattr(heads, "FEW", few)
    monkeypatch.setattr(heads, "BLOCK", 16)
    a = number_system("float64")
    for shape, n, seed in itertools.product(SHAPES, LENGTHS, range(trials)):
        head, z = drawn(shape, random.Random(f"{shape.__name__} {n} {seed}"), n, weighting, mask)
        expected = head(z)
        for fits in METHODS:
            got = attended(head, z, fits, a)
            if got is not None:
                np.testing.assert_allclose(
                    got, expected, rtol=0, atol=1e-12, err_msg=f"{shape.__name__} {n} {fits}"
                )


def chunks(rnd, n):
    """Cuts of 0 to n: a few rows at a time, none at times."""
    cuts = sorted([0, n, *(rnd.randint(0, n) for _ in range(n // 3))])
    return [slice(*pair) for pair in itertools.pairwise(cuts)]


@pytest.mark.trials(2, 12)
@pytest.mark.parametrize("first", [0, 1, 2, 4], ids=lambda at: RUNNING[at].name)
@pytest.mark.parametrize("mask", ["future", "strict-future"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_heads_give_the_same_as_rows_come(weighting, mask, first, monkeypatch, trials):
    """Each way to evaluate first, and what takes over from it where it ceases to fit."""
    monkeypatch.setattr(causal, "FEW", 3)
    monkeypatch.setattr(causal, "RUNNING", RUNNING[first:])
    used = set()
    for shape, n, seed in itertools.product(SHAPES, LENGTHS, range(trials)):
        rnd = random.Random(f"{shape.__name__} {n} {seed}")
        head, z = drawn(shape, rnd, n, weighting, mask)
        running = CausalHead(HeadMaps.of(head, number_system("float64")), number_system("float64"))
        y = np.zeros((n, head.width_out))
        for rows in chunks(rnd, n):
            running.maps.output.add(running.mix(z[rows]), y, running.maps.written, rows)
        used.add(running.method)
        message = f"{shape.__name__} {n} {seed} {running.method}"
        np.testing.assert_allclose(y, head(z), rtol=0, atol=1e-12, err_msg=message)
    assert used >= {RUNNING[first].name, "dense"}


def test_a_hull_is_kept_of_keys_that_come_from_the_right(monkeypatch):
    """One key does not tell; a second hull takes over, no dense evaluation."""
    monkeypatch.setattr(causal, "RUNNING", RUNNING[2:])
    n = 600
    head = Attention(
        W_Q=[[1, 0, 0], [0, 0, 0]],
        b_Q=[0, -1],
        W_K=[[0, 2, 0], [0, 0, 1]],
        W_V=[[0, 1, 0]],
        W_O=[[1], [0], [0]],
        weighting="average-hard",
        mask="future",
    )
    z = np.array([[-float(i // 2), -float(i), float(i * i)] for i in range(n)])
    running = CausalHead(HeadMaps.of(head, number_system("float64")), number_system("float64"))
    got = np.concatenate([running.mix(z[i : i + 1]) for i in range(n)])
    assert running.method == "hull"
    assert got[:, 0].tolist() == [-float(i // 2) for i in range(n)]


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_means_of_many_are_as_exact_as_the_format(weighting):
    """2⁵³ and a thousand ones: added one by one in float64 they leave 2⁵³."""
    values = [2**53, *[1] * 1000]
    z = np.array(values, dtype=float)[:, None]
    head = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], weighting=weighting, mask="future")
    a = number_system("float64")
    for fits in (METHODS[0], METHODS[1]):
        got = attended(head, z, fits, a)[-1, 0]
        assert abs(Fraction(got) - Fraction(sum(values), 1001)) <= Fraction(np.spacing(got))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_scores_are_compared_as_the_format_rounds_them(weighting):
    """In float32 2²⁴ and 2²⁴ + 1 tie, as in the reference."""
    a = number_system("float32")
    z = np.array([[0, 1], [1, 1]], dtype=a.dtype)
    head = Attention(
        W_Q=[[0, 2**12], [0, 1]],
        W_K=[[0, 2**12], [1, 0]],
        W_V=[[1, 0]],
        W_O=[[1], [0]],
        weighting=weighting,
    )
    tied = {"softmax": 0.5, "average-hard": 0.5, "leftmost-hard": 0, "rightmost-hard": 1}[weighting]
    for fits in (METHODS[0], METHODS[-1]):
        assert attended(head, z, fits, a)[:, 0].tolist() == head(z, a)[:, 0].tolist() == [tied] * 2
