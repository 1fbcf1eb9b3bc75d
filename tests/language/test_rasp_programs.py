"""Programs of RASP's literature equal their meaning, interpreted and compiled."""

import itertools
import random

import pytest
from rasp_programs import CASES

import transformist as tf

GRADES = {
    "aggregate-of-indices": 2,
    "selector-and": 2,
    "dyck-1-ptf": 0,
}
"""Grade of the certificate in float32 for N = 50 where it is not the first; 0 for none.

None of the answers that are tried is wrong; for these the proof stops at the read-out: the mean is
not seen to be a multiple of 1/D, or an error is not seen to be 0.
"""

WIDER = {"nary-sequence-map-2": "float64", "sort-freq": "float64"}
"""Formats for N = 50 where float32 is refused: squares of positions over 3 are told apart, and a
rank is a sum of products of counts."""

QUICK, FULL = 100, 3000
"""About the number of short strings that are tried."""


def spelled(program, symbols):
    return "".join(symbols) if all(isinstance(a, str) for a in program.alphabet) else list(symbols)


def short(program, most):
    """Every string up to the largest length that leaves at most so many."""
    found, k = [[]], len(program.alphabet)
    for n in itertools.count(1):
        if len(found) + k**n > most:
            break
        found += itertools.product(program.alphabet, repeat=n)
    return [spelled(program, x) for x in found]


def long(program, lengths, drawn):
    """Strings of one symbol, of two that take turns, and some drawn ones."""
    draw, found = random.Random(3), []
    for n in lengths:
        found += [[a] * n for a in program.alphabet]
        found.append((list(program.alphabet[:2]) * n)[:n])
        found += [draw.choices(program.alphabet, k=n) for _ in range(drawn)]
        # One symbol rare, as counts that are small beside n.
        found += [draw.choices(program.alphabet, [1, *[9] * (len(program.alphabet) - 1)], k=n)
                  for _ in range(drawn)]  # fmt: skip
    return [spelled(program, x) for x in found]


def require_equal(name, strings, model, arithmetic="float32"):
    program, reference = CASES[name]
    for x, answer in zip(strings, model.answers(strings, arithmetic=arithmetic), strict=True):
        expected = reference(x)
        assert program(x) == expected, x
        assert answer == expected, x


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("most", [QUICK, pytest.param(FULL, marks=pytest.mark.slow)])
def test_the_answers_are_those_of_the_reference(name, most):
    """On every short string, and at lengths where one-hot sums of other compilers go wrong."""
    program, _ = CASES[name]
    model = tf.compile(program, max_length=12, arithmetic="float32")
    strings = [*short(program, most), *long(program, range(9, 13), most // QUICK)]
    require_equal(name, strings, model)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_long_strings_and_the_certificate(name):
    program, _ = CASES[name]
    arithmetic = WIDER.get(name, "float32")
    model = tf.compile(program, max_length=50, arithmetic=arithmetic)
    strings = [*short(program, QUICK), *long(program, (13, 31, 50), 8)]
    require_equal(name, strings, model, arithmetic)
    certificate = tf.certify(model, arithmetic)
    grade = certificate.grade if certificate.holds else 0
    assert grade == GRADES.get(name, 1), certificate.stopped


def test_grades_are_of_programs():
    assert {*GRADES, *WIDER} <= set(CASES)
