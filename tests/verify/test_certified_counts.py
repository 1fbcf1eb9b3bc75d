"""Read-outs of a count: few of their rows are read, and the certificate is as if all were."""

import random
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf
from transformist.arithmetic import number_system
from transformist.circuit import Errors, Sum, SumMatrix, row_bounds, sum_errors
from transformist.programs import PROGRAMS
from transformist.verify.certificate import chosen_rows, confirming, finding
from transformist.verify.certificate.affine import read
from transformist.verify.certificate.certification import Certification
from transformist.verify.certificate.counted_labels import as_count, count_of_rows
from transformist.verify.certificate.recorded_margins import noted

FORMATS = ["float32", "bfloat16", "float16", "float64"]

BFLOAT16 = number_system("bfloat16")

COARSE = replace(BFLOAT16, name="bfloat16 in itself", accumulator=BFLOAT16.dtype)
"""A format whose accumulator rounds by so much that terms of second order show."""

FINITE = np.finfo(float).max

COUNTS = {
    "one": lambda a, b: a.count(),
    "several": lambda a, b: a.count() + 2 * b.count(),
    "of both signs": lambda a, b: a.count() - b.count(),
    "thirds": lambda a, b: a.count() * F(1, 3),
    "from 5": lambda a, b: a.count() + 5,
}


def counting(name, N=20):
    def tags(x):
        return COUNTS[name](x == "a", x == "b").tag()

    return tf.compile(tf.program(alphabet="ab")(tags), max_length=N, arithmetic="exact")


def search(model, a="float32"):
    return Certification(model, number_system(a), model.max_length, "any").by_laws


@pytest.mark.parametrize("a", FORMATS)
@pytest.mark.parametrize("name", COUNTS)
def test_a_certificate_is_as_if_every_row_was_read(name, a, monkeypatch):
    model = counting(name)
    found = search(model, a).certificate(20)
    monkeypatch.setattr(chosen_rows, "count_of_rows", lambda *_: None)
    assert search(model, a).certificate(20) == found


def test_few_of_many_rows_are_added_up(monkeypatch):
    added, add = [], SumMatrix.row

    def recorded(sums, row):
        added.append((row, len(sums.W)))
        return add(sums, row)

    monkeypatch.setattr(SumMatrix, "row", recorded)
    model = counting("one", 3000)
    assert search(model).certificate(3000).demands
    assert len(added) < 5 and {rows for _, rows in added} == {3001}


def test_the_check_reads_as_few(monkeypatch):
    model = tf.compile(PROGRAMS["histogram"], max_length=893)
    found, read_by, counts = tf.certify(model, order="reference"), confirming.Reading.rows, []
    assert found.holds and found.grade == 2

    def recorded(reading, W, b):
        counts.append(len(W))
        return read_by(reading, W, b)

    monkeypatch.setattr(confirming.Reading, "rows", recorded)
    tf.check_certificate(model, found)
    assert max(counts) < 50
    monkeypatch.setattr(chosen_rows, "count_of_rows", lambda *_: None)
    tf.check_certificate(model, found)
    assert max(counts) == 894


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("seed", range(12))
def test_rows_are_of_a_count_only_if_their_forms_are(name, seed):
    """A weight, a bias or a label is changed, or all of them are scaled."""
    draw, model = random.Random(seed), counting(name, 6)
    read_out = model.read_out
    W, b = read_out.W_out.astype(object), read_out.b_out.astype(object)
    labels, row = [*read_out.labels], draw.randrange(len(W))
    x = draw.choice([F(1), F(1, 3), F(1, 2**40)])
    change = draw.choice(["weight", "bias", "label", "all labels", "all rows", "nothing"])
    if change == "weight":
        W[row, draw.choice(np.flatnonzero(W.any(axis=0)).tolist())] += x
    elif change == "bias":
        b[row] += x
    elif change == "label":
        labels[row] += x
    elif change == "all labels":
        labels = [2 * k for k in labels]
    elif change == "all rows":
        W *= 2
    read_out = replace(read_out, W_out=W, b_out=b, labels=tuple(labels))
    found = finding.extract(model, 6)
    forms = read(W, b, found.state, {})
    counted = as_count(found.circuit, read_out, forms)
    assert count_of_rows(found.circuit, read_out, found.state) == counted
    assert (counted is not None) == (change == "nothing")


def weight(draw, a):
    """A weight: 0, whole, a power of two, long, not dyadic, tiny, or near the format's largest."""
    return draw.choice(
        [
            lambda: F(0),
            lambda: F(draw.randint(-9, 9)),
            lambda: F(2) ** draw.randint(-4, 12),
            lambda: F(draw.randint(-(2**30), 2**30), 2 ** draw.randint(0, 20)),
            lambda: F(draw.randint(1, 9), 7),
            lambda: F(a.smallest) * F(draw.randint(1, 9), 4),
            lambda: F(a.largest) * F(draw.randint(1, 5), 4 * draw.choice([1, 10**4])),
        ]
    )()


def drawn_errors(draw):
    """Errors of an atom, which is exactly 0 at some of three kinds of rows: a, b and BOS."""
    sizes = [draw.choice([0.0, 1e-6, 0.3, 20.0]) for _ in range(2)]
    return Errors(*sizes, silent=frozenset(draw.sample(range(3), draw.choice([0, 0, 1, 2]))))


@pytest.mark.parametrize("dtype", [object, np.float64])
@pytest.mark.parametrize("a", [*map(number_system, FORMATS), COARSE], ids=[*FORMATS, "coarse"])
@pytest.mark.parametrize("seed", range(8))
def test_no_row_is_above_its_bound_and_the_largest_is_found(seed, a, dtype):
    draw, model = random.Random(seed), counting([*COUNTS][seed % len(COUNTS)], 6)
    found = finding.extract(model, 6)
    y, w = count_of_rows(found.circuit, model.read_out, found.state)
    margins, _ = noted(found.circuit, {}, a, readings=found.contents.readings)
    margins.errors += [drawn_errors(draw) for _ in found.circuit.atoms]
    held = [number for number in found.contents.held if number is not None]
    held.append(Sum(((F(1, 3), held[0]), (F(2), held[-1])), F(1, 7)))
    numbers = tuple(draw.sample(held, draw.randint(1, len(held))))
    drawn = np.array([[weight(draw, a) for _ in range(len(numbers) + 1)] for _ in range(40)])
    drawn = np.clip(drawn, -F(FINITE), F(FINITE)).astype(dtype)
    sums = SumMatrix(numbers, drawn[:, 1:], np.where(drawn[:, 0] < 4, drawn[:, 0], 0))
    rows = [sums.row(row) for row in range(40)]
    sizes = [sum_errors.magnitude_of(margins, x) for x in numbers]
    owns = [sum_errors.rounding(margins, x) for x in numbers]
    values = np.array([sum_errors.magnitude_of(margins, x) for x in rows])
    bounds = row_bounds.limits_of_rounding(margins, sums, sizes, owns, values, 1.0)
    roundings = [sum_errors.rounding(margins, x) for x in rows]
    assert all(x <= bound for x, bound in zip(roundings, bounds.tolist(), strict=True))
    scaled = np.array([margins.scaled_rounding(x, w, 36.0, (y, 6.0)) for x in rows])
    # An infinite bound says nothing about the other rows, so they are compared without it as well.
    for kept in (values >= 0, (values < np.inf) & (scaled < np.inf), values < 300):
        some = SumMatrix(numbers, sums.W[kept], sums.shift[kept])
        assert row_bounds.largest_magnitude_of_rows(margins, some) == max(values[kept], default=0)
        found = margins._largest_scaled_rounding(some, w, 36.0, (y, 6.0))
        assert found == max(scaled[kept], default=0)
