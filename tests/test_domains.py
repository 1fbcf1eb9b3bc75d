"""Domains: every case lies in the domain, the arithmetic represents it, small ones are whole."""

import itertools
from fractions import Fraction

import pytest

from transformist.arithmetic import SYSTEMS
from transformist.domains import (
    Bits,
    Feature,
    GrownStrings,
    Listed,
    NoCase,
    Opposites,
    Product,
    Query,
    Reals,
    Sequences,
    Signs,
    Strings,
    Values,
    Where,
    WholeMultiples,
    boolean_representations,
)
from transformist.errors import InvalidValue, ShapeMismatch

FINITE = ("zero-one", "minus-one-one", "pair")

DOMAINS = [
    Bits(3),
    Reals(2, Fraction(-2), Fraction(1, 3), points=(Fraction(1, 3),)),
    WholeMultiples(2, bits=3, exponent=-3),
    Product((Bits(1), Reals(1))),
    Where(Reals(2), lambda case: case[0] <= case[1], "x₁ ≤ x₂"),
    Signs(3),
    Opposites(Reals(2)),
    Listed(tuple((k, -k) for k in range(9)), "nine pairs"),
    *(each for each in boolean_representations() if each.name not in FINITE),
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
    assert len(set(WholeMultiples(2, bits=2).cases(SYSTEMS["exact"], 100, seed=0))) == 81
    assert len(Bits(20).cases(SYSTEMS["exact"], 50, seed=0)) == 50


def test_signs_and_opposites_hold_what_they_say():
    assert set(Signs(2).cases(SYSTEMS["exact"], 4, seed=0)) == {(1, 1), (1, -1), (-1, 1), (-1, -1)}
    assert (1, -1) in Signs(2) and (1, 0) not in Signs(2)
    pairs = Opposites(Signs(2))
    assert pairs.dimension == 4 and str(pairs) == "[x, −x] for x in {−1, 1}^2"
    assert (1, -1, -1, 1) in pairs
    assert (1, -1, 1, -1) not in pairs and (2, -1, -2, 1) not in pairs
    assert all(case in pairs for case in pairs.cases(SYSTEMS["exact"], 9, seed=0))


def test_every_string_once_and_in_order():
    strings = Strings(("a", "b"), lambda n: ())
    assert list(strings.every(2)) == ["", "a", "b", "aa", "ab", "ba", "bb"]
    assert all(len(x) <= 9 for x in strings.drawn(9, 50, seed=0))


# Lists of vectors

PAIRS = Sequences(
    (
        Query(lambda q, n: (q, q * q), width=2),
        Feature.of("i"),
        Feature("code", lambda i, n: (Fraction(i, n), n - i), width=2),
        Values("v", Bits(2)),
    )
)


def test_columns_stand_side_by_side():
    assert (PAIRS.width, PAIRS.free) == (2 + 1 + 2 + 2, 1 + 2)
    assert PAIRS.features == ("i", "code")
    assert str(PAIRS) == "lists of vectors [q a position from 1 to n, i, code, v in {0, 1}²]" or (
        str(PAIRS).startswith("lists of vectors [q a position from 1 to n, i, code, v in ")
    )


@pytest.mark.parametrize("n", [1, 2, 5])
def test_cases_are_encoded_as_their_columns_say(n):
    cases = PAIRS.cases(n, 16, SYSTEMS["exact"])
    vectors = PAIRS.encode(cases, n, SYSTEMS["exact"]).tolist()
    assert len(vectors) == len(cases)
    for case, rows in zip(cases, vectors, strict=True):
        assert len(rows) == n
        for i, row in enumerate(rows, start=1):
            q, v = case["q"][i - 1], case["v"][i - 1]
            assert row == [q, q * q, i, Fraction(i, n), n - i, *v]
            assert 1 <= q <= n and set(v) <= {0, 1}


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_coordinate_is_rounded_once(name):
    system = SYSTEMS[name]
    thirds = Sequences((Feature("1/3", lambda i, n: (Fraction(i, 3),)),))
    got = system.numbers(thirds.encode(thirds.cases(7, 4, system), 7, system))[0]
    assert [row[0] for row in got] == [
        system.numbers(system.array([Fraction(i, 3)]))[0] for i in range(1, 8)
    ]


@pytest.mark.parametrize("mask", ["none", "future"])
def test_every_query_meets_every_position_where_there_is_room(mask):
    query = Query(lambda q, n: (q,), mask=mask)
    for n in (1, 2, 7):
        lists = query.draw(n, 16, SYSTEMS["exact"], seed=0)
        met = {(i, q) for each in lists for i, q in enumerate(each, start=1)}
        last = (lambda i: i) if mask == "future" else (lambda i, n=n: n)
        assert met == {(i, q) for i in range(1, n + 1) for q in range(1, last(i) + 1)}


def test_a_query_may_be_scaled_by_a_function_of_where_it_is_asked():
    scaled = Query(lambda q, n: (q, 1), width=2, scale=lambda i, n: Fraction(n, i))
    lists = [[2, 3, 1], [1, 1, 3]]
    assert scaled.encode(lists, 3, SYSTEMS["exact"]).tolist() == [
        [[Fraction(3 * q, i), Fraction(3, i)] for i, q in enumerate(each, start=1)]
        for each in lists
    ]
    assert str(scaled) == "q a position from 1 to n, scaled"
    system = SYSTEMS["bfloat16"]  # 3 · 5/7, rounded once: 15/7, not fl(3) · fl(5/7)
    one = Query(lambda q, n: (q,), scale=lambda i, n: Fraction(5, 7))
    (value,) = system.numbers(one.encode([[1, 2, 3]], 3, system))[0, 2]
    assert value == system.numbers(system.array([Fraction(15, 7)]))[0]


def test_many_queries_are_sampled_and_those_beside_are_among_them():
    lists = Query(lambda q, n: (q,)).draw(100, 8, SYSTEMS["exact"], seed=0)
    shifts = {(each[0] - 1) % 100 for each in lists}
    assert len(lists) == 8 and {0, 1, 99} <= shifts
    assert all(1 <= q <= 100 for each in lists for q in each)
    assert lists == Query(lambda q, n: (q,)).draw(100, 8, SYSTEMS["exact"], seed=0)


def test_few_values_are_taken_one_and_all():
    lists = Values("v", Bits(1)).draw(6, 16, SYSTEMS["exact"], seed=0)
    assert len({tuple(each) for each in lists}) == 2**6
    longer = Values("v", Bits(1)).draw(7, 16, SYSTEMS["exact"], seed=0)
    assert len(longer) < 2**7 and all(len(each) == 7 for each in longer)
    assert [(0,)] * 7 in longer and [(1,)] * 7 in longer


@pytest.mark.parametrize("name", SYSTEMS)
def test_values_are_represented_by_the_arithmetic(name):
    system = SYSTEMS[name]
    column = Values("v", Reals(2))
    lists = column.draw(5, 8, system, seed=3)
    got = system.numbers(column.encode(lists, 5, system))
    assert got.shape == (len(lists), 5, 2)
    for entries, rows in zip(lists, got.tolist(), strict=True):
        assert [tuple(map(Fraction, row)) for row in rows] == entries


def test_a_list_is_read_as_it_was_meant():
    meaning = PAIRS.read([[2, 0, 1], ["1", 1.0, Fraction(0)]])
    assert meaning == {"q": [2, 1], "i": [1, 2], "code": [1, 2], "v": [(0, 1), (1, 0)]}
    assert meaning in PAIRS
    assert PAIRS.read([[1, 0, 2]]) not in PAIRS  # 2 is no bit
    assert PAIRS.encode([meaning], 2, SYSTEMS["exact"]).tolist() == [
        [[2, 4, 1, Fraction(1, 2), 1, 0, 1], [1, 1, 2, 1, 0, 1, 0]]
    ]


@pytest.mark.parametrize("vector", [[], [1], [1, 0], [1, 0, 1, 1]])
def test_vectors_of_another_length_are_refused(vector):
    with pytest.raises(ShapeMismatch, match=r"3 numbers \(q, v\)"):
        PAIRS.read([[1, 0, 1], vector])


@pytest.mark.parametrize("q", [0, 3, -1, "1/2"])
def test_a_query_is_a_position_of_the_list(q):
    with pytest.raises(InvalidValue, match="from 1 to n, here 2"):
        PAIRS.read([[1, 0, 0], [q, 0, 0]])


def test_a_feature_of_a_name_is_that_position_function():
    lists = Sequences((Feature.of("i/n"), Feature.of("(-1)^i")))
    (case,) = lists.cases(3, 5, SYSTEMS["exact"])
    assert lists.encode([case], 3, SYSTEMS["exact"]).tolist() == [
        [[Fraction(1, 3), -1], [Fraction(2, 3), 1], [1, -1]]
    ]
    assert lists.free == 0 and lists.read([[], []]) == {"i/n": [1, 2], "(-1)^i": [1, 2]}


def test_a_condition_that_drawn_vectors_do_not_meet():
    """Ten drawn numbers of an interval of 4 are not 3 apart; equal ones and two far ones are."""

    def apart(case):
        steps = [high - low for low, high in itertools.pairwise(sorted(case))]
        return all(step == 0 or step >= 3 for step in steps)

    numbers = Reals(10, Fraction(-2), Fraction(2))
    cases = Where(numbers, apart, "numbers are equal or 3 apart").cases(SYSTEMS["exact"], 60, 0)
    assert all(map(apart, cases)) and {len({*case}) for case in cases} == {1, 2}
    with pytest.raises(NoCase, match=r"among the numbers that are tried; received .* in exact"):
        Where(numbers, lambda _: False, "never").cases(SYSTEMS["exact"], 60, 0)


def test_an_open_interval_reaches_beyond_its_points():
    far = Where(Reals(1, points=(Fraction(500),)), lambda case: abs(case[0]) >= 500, "|x| ≥ 500")
    assert {case[0] > 0 for case in far.cases(SYSTEMS["float32"], 60, 0)} == {False, True}
    # What the format does not hold is not tried: 448 is the largest number of this one.
    with pytest.raises(NoCase):
        far.cases(SYSTEMS["float8_e4m3"], 60, 0)


def palindromes(strings):
    return [x == x[::-1] for x in strings]


def equal_counts_in_order(strings):
    return [x.count("a") == x.count("b") == x.count("c") and list(x) == sorted(x) for x in strings]


@pytest.mark.parametrize(
    ("alphabet", "answers", "lengths"),
    [
        ("abc", palindromes, (9, 16, 31)),
        ("abc", equal_counts_in_order, (9, 30)),
        ("ab", palindromes, (40,)),
    ],
)
def test_grown_strings_have_the_rarer_answer(alphabet, answers, lengths):
    grown = GrownStrings(tuple(alphabet), answers)
    for n in lengths:
        found = grown.of_length(n, 5, seed=0)
        assert found and all(answers(found)) and {len(x) for x in found} == {n}
        assert len({*found}) == len(found) <= 5 and found == grown.of_length(n, 5, seed=0)
    # With the answers negated, the same strings are the rare ones.
    others = GrownStrings(grown.alphabet, lambda strings: [not each for each in answers(strings)])
    assert others.words == grown.words and others.of_length(9, 5, seed=0)


def test_no_string_is_grown_from_nothing_or_beyond_the_longest():
    asked = []

    def answers(strings):
        asked.extend(strings)
        return [False] * len(strings)

    grown = GrownStrings((0, 1), answers, longest=3)
    assert grown.words == () and grown.of_length(3, 5, seed=0) == []
    assert {len(x) for x in asked} == {1, 2, 3}
    undecided = GrownStrings(grown.alphabet, lambda strings: [None] * len(strings))
    assert undecided.words == () and undecided.of_length(9, 5, seed=0) == []
    assert GrownStrings(tuple(range(300)), answers).of_length(3, 5, seed=0) == []
