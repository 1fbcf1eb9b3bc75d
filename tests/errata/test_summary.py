"""A summary of the Cookbook with experiments: what it expects of them, run as it says."""

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf

# Experiment 1


def relu(x):
    return np.maximum(x, 0)


def smaller(x, y):
    """Min, section 4.4: ReLU(x) − ReLU(−x) − ReLU(x − y)."""
    return relu(x) - relu(-x) - relu(x - y)


def larger(x, y):
    """Max, section 4.4: ReLU(x) − ReLU(−x) + ReLU(y − x)."""
    return relu(x) - relu(-x) + relu(y - x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_error_of_min_and_max_on_random_inputs_is_not_zero(dtype):
    """About 18 % of normal pairs come out inexact; whole numbers and sums do not."""
    x, y = np.random.default_rng(0).normal(size=(2, 20_000)).astype(dtype)
    for printed, exact in ((smaller, np.minimum), (larger, np.maximum)):
        assert 0.16 < np.mean(printed(x, y) != exact(x, y)) < 0.20
    assert smaller(dtype(1e16), dtype(1)) == 0
    bits = np.finfo(dtype).nmant
    for a, b in [(1.5, -(2**bits) - 1), *zip(x[:2000].tolist(), y[:2000].tolist(), strict=True)]:
        error = abs(F(float(smaller(dtype(a), dtype(b)))) - min(F(a), F(b)))
        assert error <= F(2, 2 ** (bits + 1)) * abs(F(a) - F(b))
    assert smaller(dtype(1.5), dtype(-(2**bits) - 1)) == -(2**bits)  # off by nearly 2u |x − y|
    assert (relu(x) - relu(-x) + relu(y) - relu(-y) == x + y).all()
    p, q = np.trunc(x * 1000), np.trunc(y * 1000)
    assert (smaller(p, q) == np.minimum(p, q)).all() and (larger(p, q) == np.maximum(p, q)).all()
    for a, b in zip(x[:200].tolist(), y[:200].tolist(), strict=True):
        pair = F(a), F(b)
        assert max(pair[0], 0) - max(-pair[0], 0) - max(pair[0] - pair[1], 0) == min(pair)
        assert tf.recipe("min").build()(list(pair), "exact").tolist() == [min(pair)]


# Experiment 2


def retrieval_error(n, q, tau):
    """|c − v_q| for v_q = 1 and −1 elsewhere, under softmax of (2qj − j²)/(τ √2)."""
    j = np.arange(1, n + 1)
    scores = (2 * q * j - j * j) / (math.sqrt(2) * tau)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    return abs(weights @ np.where(j == q, 1, -1) - 1)


def test_the_error_bound_of_the_lookup_needs_the_gap_of_scores():
    """2n e^(−γ/τ) with γ = 1, the gap of dot products, is exceeded; with γ = 1/√2 it never is."""
    exceeded = set()
    for n, tau in itertools.product((16, 64, 256, 1024), (1, 0.5, 0.2, 0.1, 0.05)):
        worst = max(retrieval_error(n, q, tau) for q in (1, 2, n // 2, n - 1, n))
        assert worst <= 2 * n * math.exp(-1 / (tau * math.sqrt(2)))
        if worst > 2 * n * math.exp(-1 / tau):
            exceeded.add((n, tau))
    assert exceeded == {(16, 0.1), (16, 0.05), (64, 0.05), (256, 0.05)}
    assert retrieval_error(16, 8, 0.1) == pytest.approx(3.39e-3, rel=1e-2)
    assert tf.recipe("quadratic-lookup").gap(16) == (1, 2)


# Experiment 3


def prefix_means(values, number):
    """Row by row, by softmax of equal scores, summed from left to right, in a number type."""
    means = []
    for i in range(1, len(values) + 1):
        weight, total = number(number(1) / number(i)), number(0)
        for v in values[:i]:
            total = number(total + number(weight * v))
        means.append(total)
    return means


def equal_zero(x, epsilon, number):
    """EqZero_ε of 4.7, every operation in the number type."""
    hidden = [max(number(0), number(x + shift)) for shift in (epsilon, number(0), -epsilon)]
    up = number(number(1) / epsilon)
    first = number(number(up * hidden[0]) - number(number(2 * up) * hidden[1]))
    return number(first + number(up * hidden[2]))


def head(x, number):
    """Section 9.2.1: B_n/n, and the decision EqZero_{1/n²}(B_n/n) ∧ EqZero_{1/n²}(t_n)."""
    n, signs = len(x), [number(1 if symbol == "(" else -1) for symbol in x]
    balance = prefix_means(signs, number)
    total = prefix_means([max(number(0), -b) for b in balance], number)
    epsilon = number(number(1) / number(n * n))
    bits = [equal_zero(v, epsilon, number) for v in (balance[-1], total[-1])]
    return balance[-1], max(number(0), number(number(bits[0] + bits[1]) - number(1)))


def balanced(x):
    depths = list(itertools.accumulate(1 if symbol == "(" else -1 for symbol in x))
    return min(depths) >= 0 == depths[-1]


@pytest.mark.parametrize("number", [float, np.float32])
def test_dyck_1_is_not_decided_by_an_exact_0_or_1_in_floats(number):
    """`((()))` ends at B_n/n ≠ 0 and accepts with less than 1; half-way thresholds decide right."""
    balance, accept = head("((()))", number)
    assert balance != 0 and 0.99 < accept < 1
    wrong = 0
    for n in range(1, 9):
        for x in map("".join, itertools.product("()", repeat=n)):
            balance, accept = head(x, number)
            assert (accept > 0.5) == balanced(x)
            wrong += balanced(x) and balance != 0
    assert wrong > 0


def test_dyck_1_is_decided_by_an_exact_0_or_1_in_rationals():
    for n in range(1, 8):
        bits = [equal_zero(F(k, n * n), F(1, n * n), F) for k in range(-n, n + 1)]
        assert bits == [*[0] * n, 1, *[0] * n]
        for x in map("".join, itertools.product("()", repeat=n)):
            assert head(x, F)[1] == balanced(x)


def test_dyck_1_of_the_library_decides_half_way():
    model = tf.recipe("dyck-1").build(max_length=8)
    for n in range(1, 9):
        tried = ["".join(x) for x in itertools.product("()", repeat=n)]
        assert list(model.answers(tried, "float32")) == [balanced(x) for x in tried]


# Open question 1


def test_the_open_question_of_one_representation_is_answered_by_the_table():
    """[+1, −1] and [−1, +1] keep a distance, with mean 0 and variance 1 in any number."""
    false, true = np.array([1, -1]), np.array([-1, 1])
    assert ((false - true) ** 2).sum() == 8
    for m in (1, 2, 3):
        for bits in itertools.product((false, true), repeat=m):
            x = np.concatenate(bits)
            assert x.mean() == 0 and x.var() == 1
    pair = next(each for each in tf.boolean_representations() if each.name == "pair")
    assert tuple(false) in pair.false and tuple(true) in pair.true
    assert all(pair.properties.values())


def test_integers_up_to_n_have_such_a_representation_and_all_integers_have_none():
    """[e; −e] up to N; of a fixed width, points of a sphere that are g apart are finitely many."""
    N = 12
    codes = [np.concatenate([row, -row]) for row in np.eye(N)]
    assert all(each.mean() == 0 and each.var() == 1 / N for each in codes)
    distances = [((x - y) ** 2).sum() for x, y in itertools.combinations(codes, 2)]
    assert set(distances) == {4}
    # Balls of radius g/2 about points of the unit sphere that are g apart do not overlap and lie
    # in one of radius 1 + g/2: at most (1 + 2/g)^d points. So hashes of width 4 come near.
    angles = [math.atan2(1, x) for x in range(1, 10**4)]
    for g in (1, 0.1, 0.01):
        last, apart = angles[0], 1
        for angle in angles[1:]:
            if 2 * math.sin((last - angle) / 2) >= g:
                last, apart = angle, apart + 1
        assert 1 <= apart <= (1 + 2 / g) ** 2 and apart < len(angles)
