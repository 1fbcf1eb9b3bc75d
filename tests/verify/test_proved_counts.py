"""Margins between the labels of a count: the worst pair of all, found without listing all."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.programs import PROGRAMS
from transformist.verify.proof import answering, prove
from transformist.verify.proof.rounding_errors import RoundingErrors
from transformist.verify.proof.slack import Ledger
from transformist.verify.proof.softmax_orders import EVALUATIONS
from transformist.verify.proof.walking import Walk


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


def parabolas(seed):
    """Weights and biases w + s k + t k² for drawn w, s and t: whole, dyadic or other rationals."""
    draw = random.Random(seed)
    unit, dtype = draw.choice([(Fraction(1), float), (Fraction(3, 1024), float), (None, object)])

    def number():
        return unit * draw.randint(-99, 99) if unit else Fraction(draw.randint(-9, 9), 7)

    count = draw.randint(4, 200)
    columns = [[number(), number(), number()] for _ in range(draw.randint(1, 4))]
    rows = [[w + s * k + t * k * k for w, s, t in columns] for k in range(count)]
    return draw, np.array(rows, dtype=dtype)


@pytest.mark.parametrize("seed", range(40))
def test_labels_are_a_parabola_until_one_weight_is_changed(seed):
    draw, given = parabolas(seed)
    assert answering._are_parabolas(given[:, 1:], given[:, 0])
    row, column = draw.randrange(len(given)), draw.randrange(given.shape[1])
    given[row, column] += draw.choice([1, -2, Fraction(1, 2**20)])
    assert not answering._are_parabolas(given[:, 1:], given[:, 0])


def test_a_parabola_beyond_float64_is_compared_exactly():
    k = np.arange(60, dtype=object)
    given = np.stack([k**2 * 2**50 + k], axis=1)
    assert answering._are_parabolas(given, 0 * k)
    assert not answering._are_parabolas(given.astype(float), 0.0 * k.astype(float))


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["histogram", "sort", "majority", "dyck-1"])
def test_bounds_of_many_rows_are_no_smaller_than_those_of_written_ones(name, arithmetic):
    model = tf.compile(PROGRAMS[name], max_length=12, arithmetic="float32")
    walk = Walk(model, number_system(arithmetic), 12, EVALUATIONS["any"], Ledger())
    with np.errstate(all="ignore"):
        walk.run()
    z, draw = walk.streams[-1], random.Random(name)
    W = np.array([[draw.choice([0, 0, 1, 3, -5, 0.375]) for _ in z.forms] for _ in range(60)])
    b = np.array([draw.choice([0, 0, 2, -0.75]) for _ in W])
    written, many = (
        each(W, b, z, "rows") for each in (walk.rounding.affine, walk.rounding.many_rows)
    )
    room = 1e-9 * (1 + np.abs(written.values.size[0]))
    assert (many.values.lo <= written.values.lo + room).all()
    assert (many.values.hi >= written.values.hi - room).all()
    assert (many.values.size >= written.values.size * (1 - 1e-9)).all()
    assert (many.values.error >= written.values.error * (1 - 1e-9)).all()
    assert (many.rounding >= written.rounding * (1 - 1e-9)).all()


@pytest.mark.parametrize("arithmetic", ["float32", "float16"])
def test_the_last_labels_alone_refuse_what_all_of_them_refuse(arithmetic, monkeypatch):
    model, a = tf.compile(PROGRAMS["histogram"], max_length=300), number_system(arithmetic)
    lengths = [1, 5, 20, 100, 300]
    found = [prove(model, a, n, "any") for n in lengths]
    monkeypatch.setattr(answering, "FEW_LABELS", len(model.read_out.W_out))
    every = [prove(model, a, n, "any") for n in lengths]
    assert [each.holds for each in found] == [each.holds for each in every]
    assert all(one == other for one, other in zip(found, every, strict=True) if one.holds)


@pytest.mark.parametrize(("most", "name"), [(10, "many_rows"), (4096, "affine")])
def test_every_label_is_bounded_where_the_last_ones_keep_their_lead(most, name, monkeypatch):
    counts, bounded = [], getattr(RoundingErrors, name)

    def noted(r, W, b, z, where):
        counts.append((where, len(W)))
        return bounded(r, W, b, z, where)

    monkeypatch.setattr(RoundingErrors, name, noted)
    monkeypatch.setattr(answering, "MOST_LABELS", most)
    model = tf.compile(PROGRAMS["histogram"], max_length=30)
    for left, rows in ((1e-9, [answering.FEW_LABELS, 31]), (0.0, [answering.FEW_LABELS])):
        monkeypatch.setattr(answering, "slack", lambda *_, left=left: left)
        prove(model, number_system("float32"), 30, "any")
        assert [count for where, count in counts if where == answering.WHERE] == rows
        counts.clear()


def shifted(by, N):
    @tf.program(alphabet="ab")
    def counted(x):
        return ((x == "a").count() + by).tag()

    return tf.compile(counted, max_length=N, arithmetic="exact")


@pytest.mark.parametrize(
    ("by", "N", "arithmetic"), [(-3, 2, "bfloat16"), (-3, 7, "float16"), (5, 4, "float16")]
)
def test_slots_that_cancel_in_labels_are_not_bounded_one_by_one(by, N, arithmetic, monkeypatch):
    model, a = shifted(by, N), number_system(arithmetic)
    assert tf.certify(model, a).grade == 1
    monkeypatch.setattr(answering, "MOST_LABELS", 1)
    assert not prove(model, a, N, "any").holds  # with the bounds for thousands of labels


def test_labels_that_are_equal_are_no_count():
    stream = tf.Stream(("x", "c"))
    model = tf.Transformer(
        stream=stream,
        embedding=tf.Embedding.of(stream, {"a": {"c": 1}, "b": {"x": 1, "c": 1}}),
        layers=(),
        read_out=tf.MultiClass(
            W_out=[[2 * k, -k * k] for k in range(4)], b_out=[0] * 4, labels=(1,) * 4, at="every"
        ),
        max_length=3,
    )
    assert not tf.certify(model, "float8_e5m2").holds


@pytest.mark.slow
def test_a_count_may_have_many_labels():
    model = tf.compile(PROGRAMS["histogram"], max_length=4100, arithmetic="float64")
    found = tf.certify(model, "float64")
    assert (found.holds, found.grade) == (True, 1)
