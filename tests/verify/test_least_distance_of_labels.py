"""The least distance of two labels, and read-outs whose rows add nothing to what is described."""

import itertools
import random
from fractions import Fraction

import pytest

import transformist as tf
from transformist.circuit import Circuit, Embedded, Form, total
from transformist.programs import PROGRAMS
from transformist.verify.certificate import finding
from transformist.verify.certificate.uniqueness import apart


def numbers_of_two_symbols(values):
    """A circuit with one number for each value: this at the first symbol, 0 at the second."""
    circuit = Circuit(("a", "b"), False, 4, "average-hard")
    atoms = [circuit.add(Embedded((value, Fraction(0))), str(value)) for value in values]
    return circuit, atoms


@pytest.mark.parametrize("seed", range(6))
def test_the_distance_of_labels_is_the_step_of_the_grid_of_their_difference(seed):
    drawn = random.Random(seed)
    values = [Fraction(drawn.randint(1, 6), q) for q in (1, 2, 3, 4)]
    circuit, atoms = numbers_of_two_symbols(values)
    rows = [
        (
            [Fraction(drawn.randint(-6, 6), drawn.choice((1, 2, 5))) for _ in atoms],
            drawn.randint(0, 3),
        )
        for _ in range(5)
    ]
    labels = [
        total([*(atom * x for atom, x in zip(atoms, row, strict=True)), Form.of(shift)])
        for row, shift in rows
    ]
    # Each number lies on the multiples of 1/q, q its denominator. The difference of two labels is a
    # sum of multiples of x/q and of 1: the largest step on which all of these lie is their gcd.
    steps = set()
    for (row, shift), (other, also) in itertools.combinations(rows, 2):
        terms = [
            (x - y) / value.denominator for x, y, value in zip(row, other, values, strict=True)
        ]
        terms = [abs(x) for x in (*terms, Fraction(shift - also)) if x]
        if terms:
            steps.add(greatest_common_step(terms))
    assert 0 < apart(circuit, labels) <= min(steps)


def greatest_common_step(terms):
    step, *others = terms
    for x in others:
        while x:
            step, x = x, step % x
    return step


def test_equal_labels_have_no_distance_and_one_pair_alone_decides():
    circuit, (x,) = numbers_of_two_symbols([Fraction(1)])
    assert apart(circuit, [x, x]) == 0
    assert apart(circuit, [x, x, x * 3]) == 2
    assert apart(circuit, [x, x * 3, x + Fraction(1, 4)]) == Fraction(1, 4)


@pytest.mark.parametrize("name", ["histogram", "majority", "reverse"])
def test_rows_of_the_read_out_that_are_left_out_change_no_line(name, monkeypatch):
    model = tf.compile(PROGRAMS[name], max_length=6)
    found, asked = tf.certify(model), []

    def every(W_out, b_out, extracted):
        asked.append((len(W_out), finding_rows(W_out, b_out, extracted)))
        return finding.every_row(W_out, b_out, extracted)

    finding_rows = finding.read_elsewhere
    monkeypatch.setattr(finding, "read_elsewhere", every)
    assert tf.certify(model) == found and found.grade == 1 and found.lines
    ((rows, read),) = asked
    assert len(read) < rows or name == "majority"


def test_a_row_that_another_row_reads_as_well_is_not_left_out():
    model = tf.compile(PROGRAMS["majority"], max_length=6)
    found = finding.extract(model, 6)
    W, b = model.read_out.W_out, model.read_out.b_out
    form = finding.read(W, b, found.state, {})[0]
    before = finding.read_elsewhere(W, b, found)
    found.contents.readings.sums[form] = []
    assert [*before] == [] and [*finding.read_elsewhere(W, b, found)] == [0]
