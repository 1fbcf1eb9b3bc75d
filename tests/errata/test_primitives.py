"""Primitives of transformers in clamped arithmetic, over all numbers of small formats.

A format holds the multiples of a step from −B to B. Every operation is rounded to the nearest, ties
to even, and clamped; what is printed as ∞ is B. Then 0 · ∞ = 0.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction as F

import numpy as np
import pytest


@dataclass(frozen=True)
class Format:
    """Multiples of `step` from −B to B."""

    B: F
    step: F = F(1)

    def number(self, x):
        return max(-self.B, min(self.B, round(F(x) / self.step) * self.step))

    def numbers(self):
        most = int(self.B / self.step)
        return [k * self.step for k in range(-most, most + 1)]

    def plus(self, *terms):
        """From left to right, clamped after every addition."""
        total = F(0)
        for term in terms:
            total = self.number(total + term)
        return total

    def times(self, a, b):
        return self.number(a * b)

    def dot(self, row, x):
        return self.plus(*(self.times(a, b) for a, b in zip(row, x, strict=True)))

    def matrix(self, M, x):
        return [self.dot(row, x) for row in M]

    def exp(self, x):
        return self.number(math.exp(x))

    def softmax(self, scores, subtract=True):
        best = max(scores) if subtract else F(0)
        e = [self.exp(self.plus(s, -best)) for s in scores]
        total = self.plus(*e)
        return [self.number(v / total) for v in e]


SMALL = [Format(F(7)), Format(F(15), F(1, 16)), Format(F(31, 8), F(1, 8))]
formats = pytest.mark.parametrize("f", SMALL, ids=str)


def relu(x):
    return max(x, F(0))


def test_the_arithmetic_of_these_tests():
    f = Format(F(31, 8), F(1, 8))
    assert len(f.numbers()) == 63 and max(f.numbers()) == F(31, 8)
    assert f.plus(3, 3, -1) == F(23, 8) and f.plus(3, -1, 3) == F(31, 8)
    assert f.number(F(3, 16)) == F(1, 4) and f.number(F(1, 16)) == 0  # ties to even
    assert f.times(0, f.B) == 0 and f.times(-f.B, f.B) == -f.B


# Flags


def weight(dot, d):
    """The softmax weight of a score dot/√d beside a score 0."""
    return 1 / (1 + math.exp(-dot / math.sqrt(d)))


def test_a_coordinate_more_changes_scaled_scores_and_norms():
    """With zeros at the flag q · k stays, q · k/√d does not, nor does a layer norm."""
    q, k = [1, 0, 1, 0], [1, 2, 1, 5]
    dot = sum(a * b for a, b in zip([*q, 0], [*k, 0], strict=True))
    assert dot == sum(a * b for a, b in zip(q, k, strict=True)) == 2
    assert weight(dot, 4) == pytest.approx(0.7311, abs=1e-4)
    assert weight(dot, 5) == pytest.approx(0.7098, abs=1e-4)
    x = np.array([1.0, -1, 3, -3])
    normed = [(y - y.mean()) / y.std() for y in (x, np.append(x, 0))]
    assert np.abs(normed[0] - normed[1][:4]).max() > 0.1


def add_vector(v):
    """The printed network: W₁ = id, W₂ has v as its last column."""
    return lambda h: [relu(h[-1]) * entry for entry in v]


def test_an_added_vector_keeps_the_flag_only_if_it_is_0_there():
    for v in itertools.product((-1, 0, 2), repeat=3):
        once = [a + b for a, b in zip((5, -2, 1), add_vector(v)([5, -2, 1]), strict=True)]
        twice = [a + b for a, b in zip(once, add_vector(v)(once), strict=True)]
        assert (once[-1] == 1) == (v[-1] == 0)
        wanted = [5 + 2 * v[0], -2 + 2 * v[1]]
        assert twice[:2] == wanted if v[-1] == 0 else twice[:2] != wanted or not any(v[:2])


# Zero


@formats
def test_what_is_printed_as_infinity_is_the_largest_number(f):
    """((h + ∞) + ∞) − ∞ is 0 for all h of a clamped format; IEEE infinities give NaN."""
    assert all(f.plus(h, f.B, f.B, -f.B) == 0 for h in f.numbers())
    assert any(f.plus(h, f.B, -f.B) != 0 for h in f.numbers())  # the first ∞ twice is needed
    with np.errstate(invalid="ignore", over="ignore"):
        h = np.arange(-3, 4, dtype=np.float32)
        infinity, largest = np.float32(np.inf), np.finfo(np.float32).max
        assert np.isnan(h + infinity + infinity - infinity).all()
        assert np.isinf(h + largest + largest - largest).all()


# Attention with infinite scores


@formats
def test_zero_times_infinity_has_to_be_0(f):
    """⟨q_j, k_i'⟩ = −∞ · (h_i')_d is to be 0 at i' = i, where (h_i)_d = 0; IEEE makes it NaN."""
    W_Q, W_K = [[0, 0], [0, -f.B]], [[0, 0], [0, 1]]
    q = f.matrix(W_Q, [1, 1])
    keys = [f.matrix(W_K, h) for h in ([3, 1], [1, 0], [-2, 1])]
    scores = [f.dot(q, k) for k in keys]
    assert scores == [-f.B, 0, -f.B]
    assert f.softmax(scores) == [0, 1, 0]
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.float32(-np.inf) * np.float32(0))
        assert np.isnan(np.array([0, -np.inf], dtype=np.float32) @ np.zeros(2, np.float32))


def test_scaled_scores_need_exp_to_round_to_0():
    """With B = 7 and 1/16 as step exp(−B) is 0, exp(−B/√16) is 3/16."""
    f = Format(F(7), F(1, 16))
    assert f.softmax([-f.B, F(0)]) == [0, 1]
    assert f.exp(-f.B / 4) == F(3, 16)
    assert f.softmax([-f.B / 4, F(0)])[0] > F(1, 8)
    for g in (*SMALL, f):
        for d_key in (1, 4, 16):
            score = g.number(-g.B / math.isqrt(d_key))
            isolates = g.softmax([score, F(0), score]) == [0, 1, 0]
            assert isolates == (g.exp(score) == 0)


@formats
def test_softmax_has_to_subtract_its_maximum(f):
    """Scores ∞, 0, 0 are to give weights 1, 0, 0; without subtraction exp(∞) is only B."""
    assert f.softmax([f.B, F(0), F(0)]) == [1, 0, 0]
    naive = f.softmax([f.B, F(0), F(0)], subtract=False)
    assert (naive == [1, 0, 0]) == (f.number(1 / f.B) == 0)
    if f.step == F(1, 16):
        assert naive == [1, F(1, 16), F(1, 16)]


def test_a_product_that_saturates_depends_on_the_order():
    """M h of one row over −1, 0, 1, for every h: right where no partial sum is beyond B."""
    f = Format(F(7))
    assert f.plus(7, 7, -7) == 0 and f.plus(7, -7, 7) == 7
    wrong = 0
    for row in itertools.product((-1, 0, 1), repeat=3):
        for h in itertools.product(f.numbers()[::3], repeat=3):
            terms = [a * b for a, b in zip(row, h, strict=True)]
            within = all(abs(s) <= f.B for s in itertools.accumulate(terms))
            right = f.dot(row, h) == sum(terms)
            assert right or not within
            wrong += not right
    assert wrong > 0


def blocks(f, h, W_O):
    """One head that attends to itself alone: what W_O makes of h, added to h."""
    return [f.plus(a, b) for a, b in zip(h, f.matrix(W_O, h), strict=True)]


def test_the_second_printed_matrix_copies_where_it_is_to_move():
    """(0, M h, 1) becomes (M h, M h, 1) by the printed one, (M h, 0, 1) by the corrected one."""
    f = Format(F(7))
    printed = [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [-1, 0, 0, 0, 0], [0, -1, 0, 0, 0], [0] * 5]
    correct = [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, -1, 0, 0], [0, 0, 0, -1, 0], [0] * 5]
    for M in ([[1, 0], [0, 1]], [[1, -1], [0, 1]], [[0, 1], [1, 0]]):
        first = [[-1, 0, 0, 0, 0], [0, -1, 0, 0, 0], [*M[0], 0, 0, 0], [*M[1], 0, 0, 0], [0] * 5]
        for h in itertools.product(f.numbers()[::2], repeat=2):
            Mh = f.matrix(M, h)
            half_way = blocks(f, [*h, 0, 0, 1], first)
            assert half_way == [0, 0, *Mh, 1]
            assert f.matrix(printed, half_way) == [*Mh, 0, 0, 0]
            assert blocks(f, half_way, printed) == [*Mh, *Mh, 1]
            assert blocks(f, half_way, correct) == [*Mh, 0, 0, 1]


# Maximum


def multiplied(f, x, times):
    """x times B, so often."""
    for _ in range(times):
        x = f.times(x, f.B)
    return x


@pytest.mark.parametrize(
    ("f", "times"),
    [(Format(F(7)), 1), (Format(F(15), F(1, 16)), 3), (Format(F(31, 8), F(1, 8)), 3),
     (Format(F(255, 128), F(1, 128)), 8), (Format(F(16), F(1, 16)), 2)],
    ids=str,
)  # fmt: skip
def test_two_multiplications_by_infinity_are_enough_from_1_over_B_on(f, times):
    positive = [x for x in f.numbers() if x > 0]
    assert all(multiplied(f, x, 2) == f.B for x in positive if x >= 1 / f.B)
    assert all(multiplied(f, x, times) == f.B for x in positive)
    assert times == 1 or multiplied(f, f.step, times - 1) != f.B
    assert (times > 2) == any(multiplied(f, x, 2) != f.B for x in positive)


def test_how_many_multiplications_powers_of_two_need():
    """⌈fb/log₂ B⌉ + 1 for fb fractional bits, and no fewer; for B = 9/8 no number is enough."""
    for fb, k in itertools.product(range(9), range(1, 9)):
        f, times = Format(F(2**k), F(1, 2**fb)), -(-fb // k) + 1
        assert multiplied(f, f.step, times) == f.B
        assert times == 1 or multiplied(f, f.step, times - 1) != f.B
    assert multiplied(Format(F(9, 8), F(1, 8)), F(1, 8), 1) == F(1, 8)


def at_most_1(f, x):
    """min(x, 1) of x ≥ 0, by ReLU(x) − ReLU(x − 1)."""
    return f.plus(relu(x), -relu(f.plus(x, -1)))


def test_division_by_infinity_as_a_weight():
    """1/∞, rounded, times ∞ is to be 1."""
    divided = {f.B: f.times(f.B, f.number(1 / f.B)) for f in SMALL}
    assert divided == {7: 0, 15: F(15, 16), F(31, 8): 1}
    largest = np.finfo(np.float32).max
    assert np.float32(1) / largest * largest == np.float32(1 - 2**-24)
    power = np.float32(2.0**126)
    assert np.float32(1) / power * power == 1
    for f in SMALL:
        assert [at_most_1(f, x) for x in (F(0), f.B)] == [0, 1]
    assert largest - (largest - np.float32(1)) == 0  # the remedy of fixed point fails in float32


def special(f, a, b, I_a, I_b):
    """The three printed networks: (∞ I_b, ∞ I_a) is added twice, then subtracted."""
    return (f.plus(a, *signed(f, I_b)), f.plus(b, *signed(f, I_a)))


def signed(f, indicator):
    by = f.times(f.B, indicator)
    return by, by, -by


def test_the_printed_summary_of_the_special_operation_keeps_the_smaller():
    """a + ∞ I_a + ∞ I_a − ∞ I_a is 0 where I_a = 1: wrong for all 930 pairs of B = 15."""
    f, wrong, pairs = Format(F(15)), 0, 0
    for a, b in itertools.permutations(f.numbers(), 2):
        I_a, I_b = F(a > b), F(b > a)
        wanted = (a * I_a, b * I_b)
        printed = (f.plus(a, *signed(f, I_a)), f.plus(b, *signed(f, I_b)))
        wrong, pairs = wrong + (printed != wanted), pairs + 1
        assert special(f, a, b, I_a, I_b) == wanted
    assert (wrong, pairs) == (930, 930)


def larger_kept(f, a, b, times):
    """The whole of the maximum of two, with min(x, 1) for the division by ∞."""
    differences = (relu(f.plus(a, -b)), relu(f.plus(b, -a)))
    I_a, I_b = (at_most_1(f, multiplied(f, x, times)) for x in differences)
    return special(f, a, b, I_a, I_b)


@pytest.mark.parametrize(
    ("f", "times"),
    [
        (Format(F(7)), 1),
        pytest.param(Format(F(31, 8), F(1, 8)), 3, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_maximum_of_two_keeps_both_of_a_tie(f, times):
    """a = b is no printed case; a × I(a > b) would be 0 at both, the networks keep a at both."""
    for a, b in itertools.product(f.numbers(), repeat=2):
        got = larger_kept(f, a, b, times)
        assert got == ((a, 0) if a > b else (0, b) if b > a else (a, a))
        formula = (a * (a > b), b * (b > a))
        assert (got == formula) == (a != b or a == 0)


def kept_of_four(x, tie_to_the_first):
    """The larger pair of the two pairs' larger ones, 0 elsewhere, in whole numbers."""

    def indicators(u, v):
        return (u >= v if tie_to_the_first else u > v), v > u

    a, b, c, d = x
    (I_a, I_b), (I_c, I_d) = indicators(a, b), indicators(c, d)
    a, b, c, d = a * (not I_b), b * (not I_a), c * (not I_d), d * (not I_c)
    left, right = indicators(a + b, c + d)
    return a * (not right), b * (not right), c * (not left), d * (not left)


def test_the_maximum_of_four_fails_on_ties():
    """The sum of what is kept is to be the maximum: wrong for 602 of 2401, ties all of them."""
    tried = list(itertools.product(range(-3, 4), repeat=4))
    wrong = [x for x in tried if sum(kept_of_four(x, False)) != max(x)]
    assert (len(wrong), len(tried)) == (602, 2401)
    assert all(len(set(x)) < 4 for x in wrong)
    assert kept_of_four((3, 3, 4, 0), False) == (3, 3, 0, 0)
    assert all(sum(kept_of_four(x, True)) == max(x) for x in tried)
