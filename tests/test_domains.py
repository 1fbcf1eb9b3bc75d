"""Domains: every case lies in the domain, the arithmetic represents it, small ones are whole."""

from fractions import Fraction

import pytest

from transformist.arithmetic import SYSTEMS
from transformist.domains import Bits, Grid, Product, Reals, Strings, Where

DOMAINS = [
    Bits(3),
    Reals(2, Fraction(-2), Fraction(1, 3), points=(Fraction(1, 3),)),
    Grid(2, bits=4, exponent=-3),
    Product((Bits(1), Reals(1))),
    Where(Reals(2), lambda case: case[0] <= case[1], "x₁ ≤ x₂"),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_the_arithmetic_represents_every_case(domain, name):
    system = SYSTEMS[name]
    cases = domain.cases(system, 300, seed=0)
    assert len(cases) >= 8
    values = system.numbers(system.array(cases)).tolist()
    assert [tuple(map(Fraction, row)) for row in values] == cases
    assert domain.cases(system, 300, seed=0) == cases  # the same every time


def test_reals_stay_inside_and_touch_what_matters():
    domain = Reals(1, Fraction(-2), Fraction(3), points=(Fraction(1, 2),))
    cases = [case[0] for case in domain.cases(SYSTEMS["exact"], 300, seed=0)]
    assert all(-2 <= x <= 3 for x in cases)
    assert {-2, 3, 0, 1, Fraction(1, 2)} <= set(cases)
    assert len(set(cases)) > 200


def test_small_domains_are_covered_whole():
    assert len(set(Bits(5).cases(SYSTEMS["exact"], 32, seed=0))) == 32
    assert len(set(Grid(2, bits=2).cases(SYSTEMS["exact"], 100, seed=0))) == 81
    assert len(Bits(20).cases(SYSTEMS["exact"], 50, seed=0)) == 50


def test_every_string_once_and_in_order():
    strings = Strings(("a", "b"), lambda n: ())
    assert list(strings.every(2)) == ["", "a", "b", "aa", "ab", "ba", "bb"]
    assert all(len(x) <= 9 for x in strings.drawn(9, 50, seed=0))
