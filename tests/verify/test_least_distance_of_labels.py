"""The least distance of two labels, and read-outs whose rows add nothing to what is described."""

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import pytest

import transformist as tf
from transformist.circuit import Circuit, Embedded, Form, total
from transformist.programs import PROGRAMS
from transformist.verify.certificate import finding, uniqueness
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


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("unknown", [0, 1])
def test_the_distance_of_many_labels_is_the_least_of_all_pairs(seed, unknown):
    """Most labels read one number or two: many pairs have no number in common."""
    drawn = random.Random(seed)
    values = [Fraction(drawn.randint(1, 3), drawn.choice((1, 1, 4))) for _ in range(5)]
    circuit, atoms = numbers_of_two_symbols(values)
    for number in range(unknown):
        law = circuit.laws[number]
        circuit.laws[number] = replace(law, grid=None, least=values[number])
    labels = [
        total(
            atom * drawn.choice((1, 1, -1, 2, Fraction(1, 3)))
            for atom in drawn.sample(atoms, drawn.choice((0, 1, 1, 2)))
        )
        + drawn.choice((0, 0, Fraction(1, 2), 1))
        for _ in range(drawn.randint(2, 7))
    ]
    pairs = [pair for pair in itertools.combinations(labels, 2) if pair[0] != pair[1]]
    distances = [apart(circuit, [*pair]) for pair in pairs]
    assert apart(circuit, labels) == min(distances, default=0)


def test_labels_alike_are_nearer_where_they_have_no_number_in_common():
    """a + q and b + q differ by a − b, a whole number; a + q and c + r by a multiple of 1/4."""
    values = [1, 2, 3, Fraction(1, 4), Fraction(3, 4)]
    circuit, (a, b, c, q, r) = numbers_of_two_symbols([Fraction(x) for x in values])
    assert apart(circuit, [a + q, b + q]) == 1
    assert apart(circuit, [a + q, b + q, c + r]) == Fraction(1, 4)


def test_without_a_grid_labels_of_one_kind_are_told_apart_by_their_signs():
    """x − (−y) is at least 1 where x and y are at least that or 0; x − z may be anything."""
    circuit, (x, one, two) = numbers_of_two_symbols([Fraction(1), Fraction(2), Fraction(3)])
    circuit.laws[0] = replace(circuit.laws[0], grid=None, least=Fraction(1))
    assert apart(circuit, [x, -one]) == 1
    assert apart(circuit, [x, -one, two]) == 0


def test_pairs_of_labels_that_read_different_numbers_are_looked_at_once(monkeypatch):
    circuit, atoms = numbers_of_two_symbols([Fraction(k) for k in range(1, 41)])
    pairs, distance = [], uniqueness._distance_by_terms

    def noted(circuit, terms, *rows):
        pairs.append(rows)
        return distance(circuit, terms, *rows)

    monkeypatch.setattr(uniqueness, "_distance_by_terms", noted)
    assert apart(circuit, atoms) == 1 and len(pairs) == 1


@pytest.mark.parametrize("name", ["histogram", "majority", "reverse"])
def test_rows_of_the_read_out_that_are_left_out_change_no_line(name, monkeypatch):
    model = tf.compile(PROGRAMS[name], max_length=6)
    found, asked = tf.certify(model), []
    assert found.grade == 1 and found.lines

    def every(read_out, *more):
        asked.append((len(read_out.W_out), finding_rows(read_out, *more)))
        return range(len(read_out.W_out))

    finding_rows = finding.read_elsewhere
    monkeypatch.setattr(finding, "read_elsewhere", every)
    assert tf.certify(model) == found
    ((rows, read),) = asked
    assert len(read) < rows or name == "majority"


def test_a_row_that_another_row_reads_as_well_is_not_left_out():
    model = tf.compile(PROGRAMS["majority"], max_length=6)
    found = finding.extract(model, 6)
    read_out, held = model.read_out, (found.contents, found.state)
    form = finding.read(read_out.W_out, read_out.b_out, found.state, {})[0]
    before = finding.read_elsewhere(read_out, *held)
    found.contents.readings.sums[form] = []
    after = finding.read_elsewhere(read_out, *held)
    assert [*before] == [] and [*after] == [0]


@pytest.mark.parametrize("seed", range(30))
def test_a_common_bound_is_at_most_the_distance_of_any_two_labels(seed, monkeypatch):
    """As for labels too many to be compared in pairs; here they are few, so that both are known."""
    drawn = random.Random(seed)
    values = [Fraction(drawn.randint(1, 3), drawn.choice((1, 2, 4))) for _ in range(3)]
    circuit, atoms = numbers_of_two_symbols(values)
    common = Fraction(drawn.randint(1, 4), drawn.choice((1, 3)))
    labels = [
        total(atom * drawn.randint(-4, 4) for atom in atoms) * common + common * drawn.randint(0, 9)
        for _ in range(drawn.randint(2, 9))
    ]
    exactly = apart(circuit, labels)
    monkeypatch.setattr(uniqueness, "MOST_PAIRS", 0)
    together = apart(circuit, labels)
    assert 0 <= together <= exactly and (together > 0) == (exactly > 0)
    # Every number is a multiple of 1/4, so labels are of common/4: the bound is not coarser.
    assert together % (common / 4) == 0
