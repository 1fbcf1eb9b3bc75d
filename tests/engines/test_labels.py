"""The first of the largest labels, beside all of them compared."""

import random
import warnings
from collections import Counter
from itertools import accumulate

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import FLOAT32, FLOAT64
from transformist.engines.structured import labels
from transformist.engines.structured.decoding import reading
from transformist.engines.structured.labels import Labels
from transformist.engines.structured.sparse import SparseMap
from transformist.errors import NotFinite, TakesLong
from transformist.programs import PROGRAMS


def points(draw):
    """Labels in the plane, at most sixty, by how they lie."""
    m = int(draw.integers(1, 60))
    k = np.arange(m)
    spread = draw.integers(0, 5000, m)
    near = np.stack([k, -k], axis=1) + draw.integers(-2, 3, (m, 2)) * 2.0**-50
    return {
        "those of a count": np.stack([2 * k, -k * k], axis=1),
        "some of a long count": np.stack([2 * spread, -spread * spread], axis=1),
        "of a fraction": np.stack([2 * k / m, -((k / m) ** 2)], axis=1),
        "equal and on lines": draw.integers(-4, 5, (m, 2)),
        "anywhere": draw.normal(size=(m, 2)),
        "nearly on a line": near[draw.permutation(m)],
        "far out": np.stack([k, draw.integers(0, 2, m)], axis=1) * 1e37,
        "further out": np.stack([k, draw.integers(0, 2, m)], axis=1) * 1e306,
    }


def asked(draw):
    """Vectors that ask, some looking down."""
    q = int(draw.integers(0, 40))
    rows = draw.integers(1, 6000, q)
    return [
        np.stack([draw.integers(0, 6000, q) / rows, 1 / rows], axis=1),
        np.stack([draw.integers(0, 60, q), np.ones(q)], axis=1),
        draw.normal(size=(q, 2)) * [1, 0] + np.abs(draw.normal(size=(q, 2))) * [0, 1],
        np.abs(draw.normal(size=(q, 1))) + draw.integers(-2, 3, (q, 2)) * 2.0**-50,
        draw.integers(-3, 4, (q, 2)),
    ]


@pytest.mark.trials(20, 400)
@pytest.mark.parametrize("a", [FLOAT64, FLOAT32], ids=lambda a: a.name)
@pytest.mark.parametrize("kind", points(np.random.default_rng(0)))
def test_it_is_the_first_of_the_largest_as_they_are_rounded(kind, a, trials, monkeypatch):
    monkeypatch.setattr(labels, "MANY", 1)
    draw, searched = np.random.default_rng(1), 0
    for _ in range(trials):
        for z in asked(draw):
            drawn = points(draw)[kind] * draw.choice([1, -1], 2)
            mirrored = drawn[:, :: draw.choice([1, -1])]
            with np.errstate(over="ignore"):
                W, vectors = (np.ascontiguousarray(each, a.dtype) for each in (mirrored, z))
            if not np.isfinite(W).all() or len(SparseMap.of(W, None).read) < 2:
                continue
            found = Labels(SparseMap.of(W, None), a)
            with np.errstate(over="ignore"):
                y = vectors[:, None, 0] * W[:, 0] + vectors[:, None, 1] * W[:, 1]
            if not np.isfinite(y).all():
                with pytest.raises(NotFinite, match="one that overflows"):
                    found.largest(vectors)
                continue
            assert found.largest(vectors).tolist() == y.argmax(axis=1).tolist()
            searched += found._searched(found._hulls, vectors) is not None
    assert searched or kind == "further out"


def counted(mask="future"):
    return tf.program(alphabet="ab")(lambda x: (x == "a").count(mask).tag())


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_a_count_of_many_positions(weighting):
    n = 20_000
    model = tf.compile(counted(), max_length=n, weighting=weighting, arithmetic="float64")
    x = "".join(random.Random(0).choices("ab", k=n))
    expected = list(accumulate(symbol == "a" for symbol in x))
    with warnings.catch_warnings():
        warnings.simplefilter("error", TakesLong)
        assert tf.run(model, x, engine="structured") == expected


def test_a_histogram_of_many_positions():
    n = 3000
    model = tf.compile(PROGRAMS["histogram"], max_length=n, arithmetic="float64")
    x = "".join(random.Random(0).choices(model.alphabet, k=n))
    times = Counter(x)
    assert tf.run(model, x, engine="structured") == [times[symbol] for symbol in x]


@pytest.mark.parametrize("most", [2**4, 2**13])
def test_a_token_at_a_time(most, monkeypatch):
    monkeypatch.setattr(labels, "MANY", 2**4)
    monkeypatch.setattr(reading, "FOR_THE_KERNEL", most)
    model = tf.compile(counted(), max_length=60, arithmetic="float64")
    decoder = tf.decoder(model)
    assert [decoder.take(symbol) for symbol in "ab" * 30] == [(i + 1) // 2 for i in range(1, 61)]
    assert decoder.answer == 30


def test_labels_that_are_no_points_of_the_plane_are_compared_with_a_warning(monkeypatch):
    monkeypatch.setattr(labels, "SLOW_LENGTH", 40)
    draw = np.random.default_rng(0)
    W, z = draw.normal(size=(300, 3)), draw.normal(size=(20, 3))
    found = Labels(SparseMap.of(W, None), FLOAT64)
    with pytest.warns(TakesLong, match="compares 20 vectors with 300 labels"):
        assert found.largest(z).tolist() == (z @ W.T).argmax(axis=1).tolist()


def test_a_bias_is_added():
    k = np.arange(300.0)
    W, b = np.stack([2 * k, -k * k], axis=1), np.zeros(300)
    b[7] = 1e6
    z = np.array([[100.0, 1.0], [7.0, 1.0]])
    assert Labels(SparseMap.of(W, None), FLOAT64).largest(z).tolist() == [100, 7]
    assert Labels(SparseMap.of(W, b), FLOAT64).largest(z).tolist() == [7, 7]
