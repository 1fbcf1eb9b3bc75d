"""What is printed of index lookup (5.3), as it stands."""

import math
import random
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

import transformist as tf


def soft_error(scores, target):
    """How far softmax attention is from v at the target, v being 0 there and 1 elsewhere."""
    powers = [math.exp(score - max(scores)) for score in scores]
    return 1 - powers[target] / sum(powers)


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


# 5.3.1


def one_hot_error(N, gap):
    """With τ = γ/ln 8N; every query is alike."""
    dots = [int(j == 0) for j in range(N)]
    return soft_error([math.log(8 * N) / gap * s / math.sqrt(N) for s in dots], 0)


def test_printed_gap_of_one_hot_vectors():
    for N in range(4, 65):
        assert one_hot_error(N, gap=1) > 1 / 4
        assert one_hot_error(N, gap=1 / math.sqrt(N)) <= 1 / 4
        assert tf.recipe("one-hot-lookup").gap(n=2, max_length=N) == (1, N)
    assert one_hot_error(4, gap=1) == pytest.approx(0.347, abs=5e-4)
    assert one_hot_error(64, gap=1) == pytest.approx(0.967, abs=5e-4)


# 5.3.2


def signs(N, m, seed):
    source = random.Random(seed)
    return [[source.choice((-1, 1)) for _ in range(m)] for _ in range(N)]


def test_printed_gap_of_almost_orthogonal_vectors():
    N, epsilon = 8, F(1, 4)
    m = math.ceil(12 / epsilon**2 * F(math.log(2 * N)))
    assert m == 533
    vectors = signs(N, m, seed=0)
    dots = [[F(dot(x, y), m) for y in vectors] for x in vectors]  # of ±1/√m
    assert all(abs(dots[i][j]) <= epsilon for i in range(N) for j in range(N) if i != j)

    def worst(gap):
        scale = math.log(8 * N) / gap / math.sqrt(m)
        return [soft_error([scale * s for s in dots[i]], i) for i in range(N)]

    assert min(worst(1 - 2 * epsilon)) > 3 / 4
    assert max(worst((1 - 2 * epsilon) / math.sqrt(m))) <= 1 / 4
    least = min(1 - dots[i][j] for i in range(N) for j in range(N) if i != j)
    assert least >= 1 - epsilon


def printed_dimension(N, k, epsilon):
    """Eq. 38."""
    return math.ceil(12 * k / epsilon**2 * F(math.log(2 * N)))


def beyond(m, epsilon):
    """The probability that two vectors of m signs have |x · y| > ε."""
    count = sum(math.comb(m, ones) for ones in range(m + 1) if abs(2 * ones - m) > epsilon * m)
    return F(count, 2**m)


def test_printed_probability_is_a_lower_bound():
    N, k, epsilon = 2, 1, F(1, 4)
    satisfied = 1 - beyond(printed_dimension(N, k, epsilon), epsilon)
    delta = F(1, N**k)
    assert satisfied > F(9999, 10000) > 1 - delta


@pytest.mark.parametrize(
    ("N", "k", "m", "failing"), [(64, F(1, 10), 94, F(97, 100)), (256, F(1, 5), 240, F(59, 100))]
)
def test_printed_dimension_for_small_k(N, k, m, failing):
    epsilon = F(1, 4)
    assert printed_dimension(N, k, epsilon) == m
    # That pairs fail are events independent two by two, so that by Chebyshev none fails with a
    # probability of at most Var/E² = (1 − p)/(pairs p).
    pairs, p = math.comb(N, 2), beyond(m, epsilon)
    assert 1 - (1 - p) / (pairs * p) > failing > F(N ** float(-k)) * F(5, 4)
    # Where k is 2/5 or more, the sum over all pairs is small enough.
    for k in (F(2, 5), F(1), F(3)):
        m = printed_dimension(N, k, epsilon)
        assert pairs * beyond(m, epsilon) <= N ** float(-k)
        for long in (2, N, 10**6):
            logarithm = math.log(long * (long - 1)) - 6 * k * math.log(2 * long)
            assert logarithm <= -k * math.log(long)


def test_pairs_of_random_vectors_are_independent_two_by_two():
    """What the argument above rests on, by counting: all triples of 3 signs."""
    every = list(product((-1, 1), repeat=3))
    far = [[abs(dot(x, y)) > 1 for y in every] for x in every]
    p = F(sum(map(sum, far)), 64)
    both = F(sum(far[x][y] and far[x][z] for x, y, z in product(range(8), repeat=3)), 512)
    assert 0 < p < 1 and both == p * p


# 5.3.3


def norm(x):
    """LN with ε = 0, γ = 1, β = 0: of each coordinate the sign and the square, exactly."""
    mean = F(sum(x), 1) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    return [((v > mean) - (v < mean), (v - mean) ** 2 / variance) for v in x]


def lh(x):
    return norm([x, 1, -x, -1])


def test_printed_scale_of_the_hash():
    for x, k in product(range(1, 7), range(2, 5)):
        assert lh(k * x) != lh(x)
        for factor in (F(k), F(1, k)):
            assert norm([factor * v for v in (x, 1, -x, -1)]) == lh(x)
        opposite = [(-sign, square) for sign, square in lh(x)]
        assert norm([-k * v for v in (x, 1, -x, -1)]) == opposite != lh(x)
    assert lh(2) == [(s, F(8, 5) if abs(v) == 2 else F(2, 5)) for s, v in SIGNED]
    at_6 = tf.recipe("position-layernorm-hash").build(max_length=6)(6)[5]
    assert [round(float(v), 3) for v in at_6] == [1.395, 0.232, -1.395, -0.232]


SIGNED = ((1, 2), (1, 1), (-1, -2), (-1, -1))


def looked_up_through_one_norm(queries):
    """Where each position attends when LN is over [q, 1, −q, −1, 1, 1/j, −1, −1/j] at once.

    The scores are positive, so that they are compared by their squares.
    """
    n = len(queries)
    rows = []
    for j, q in enumerate(queries, start=1):
        rows.append(norm([q, 1, -q, -1, 1, F(1, j), -1, -F(1, j)]))
    found = []
    for i in range(n):
        # q̂ · k̂ = 2 (q̂₁ k̂₁ + q̂₂ k̂₂), and k̂₂ = k̂₁/j, q̂₁ = q q̂₂.
        key = [rows[j][4][1] * (queries[i] + F(1, j + 1)) ** 2 for j in range(n)]
        found.append(key.index(max(key)) + 1)
    return found


def test_printed_norm_over_queries_and_keys():
    wrong = 0
    for q in product((1, 2, 3), repeat=3):
        found = looked_up_through_one_norm(q)
        wrong += sum(asked != given for asked, given in zip(q, found, strict=True))
    assert wrong == 50 and looked_up_through_one_norm((3, 2, 1)) == [3, 3, 3]
    for v in (F(1, 2), F(2)):  # a value comes out of the norm changed, alone or with its opposite
        assert norm([2, 1, -2, -1, v])[4] != (1, v * v) != norm([2, 1, -2, -1, v, -v])[4]
    model = tf.recipe("layernorm-hash-lookup").build()
    for n in (1, 2, 3):
        for q, v in product(product(range(1, n + 1), repeat=n), product((-1, 1), repeat=n)):
            rows = [[q[i], 1, F(1, i + 1), v[i]] for i in range(n)]
            given = [row[0] for row in model(rows).tolist()]
            assert given == pytest.approx([v[j - 1] for j in q], abs=1e-12)


# 5.3.4


def at_most(scores):
    """The position, from 1, of the only maximum; `None` where there are several."""
    best = [j for j, s in enumerate(scores, start=1) if s == max(scores)]
    return best[0] if len(best) == 1 else None


def test_printed_factors_of_quadratic_maximization():
    n = 8
    places = range(1, n + 1)

    def wrong(score):
        return sum(at_most([score(i, q, j) for j in places]) != q for i in places for q in places)

    assert wrong(lambda i, q, j: F(2 * q * j - j * j, j)) == 56  # keys by 1/j
    assert wrong(lambda i, q, j: 2 * F(q, i) * j - j * j) > 0  # the number q by 1/i
    assert wrong(lambda i, q, j: 2 * F(q, n) * j - j * j) == 64 - 8  # and by 1/n
    assert wrong(lambda i, q, j: F(j * j - 2 * q * j, i)) > 0  # the query by −1/i
    for factor in (F(1), F(1, n), F(3, 2)):
        assert wrong(lambda i, q, j, c=factor: c * (2 * q * j - j * j)) == 0
        assert wrong(lambda i, q, j, c=factor: F(1, i) * c * (2 * q * j - j * j)) == 0
    model = tf.recipe("quadratic-lookup").build()
    for q in places:
        rows = [[q, 1, j, j * j, j] for j in places]
        assert model(rows, "exact").tolist() == [[q]] * n


def test_printed_gap_of_quadratic_maximization():
    def distance(n, tau):
        """‖hardmax − softmax‖₁, the largest over all queries."""
        places = range(1, n + 1)
        return max(
            2 * soft_error([(2 * q * j - j * j) / math.sqrt(2) / tau for j in places], q - 1)
            for q in {1, 2, n // 2, n - 1, n}
        )

    assert distance(16, 0.1) == pytest.approx(0.00339, abs=5e-6)
    assert 2 * 16 * math.exp(-1 / 0.1) == pytest.approx(0.00145, abs=5e-6)
    for n, tau in product((2, 4, 16, 64), (1, 0.5, 0.2, 0.1, 0.05)):
        assert distance(n, tau) <= 2 * n * math.exp(-1 / (tau * math.sqrt(2)))
    assert tf.recipe("quadratic-lookup").gap(n=16) == (1, 2)


def first_wrong(dtype, longest):
    """The least n at which a rounded score of j = q ± 1 is no less than that of j = q."""
    q = np.arange(1, longest + 1)

    def score(j):
        return (2 * q * j - j * j).astype(dtype) / np.sqrt(dtype(2))

    above = (score(q + 1) >= score(q))[:-1]
    below = (score(q - 1) >= score(q))[1:]
    return int(min(*(q[1:][above]), *(q[1:][below])))


@pytest.mark.parametrize(("format", "n"), [("float16", 40), ("float32", 3448)])
def test_printed_scores_of_quadratic_maximization_in_floats(format, n):
    assert first_wrong(getattr(np, format), min(n + 50, 4000)) == n
    assert n // 2 < tf.recipe("quadratic-lookup").safe_lengths()[format] < n


def test_printed_gaps_leave_out_the_root():
    """The extraction's three at once: γ = 1, 1 − 2ε and 1."""
    N, tau = 16, math.log(8 * 16)
    places = range(1, N + 1)
    one_hot = soft_error([tau * int(j == 1) / math.sqrt(N) for j in places], 0)
    assert one_hot > 1 / 4
    for q in (1, 8, 16):
        quadratic = [(2 * q * j - j * j) / math.sqrt(2) for j in places]
        best, second = sorted(quadratic)[-1:-3:-1]
        assert best - second == pytest.approx(1 / math.sqrt(2))
    vectors = signs(N, 1000, seed=1)
    dots = [dot(vectors[0], x) / 1000 for x in vectors]
    assert max(map(abs, dots[1:])) <= 1 / 4
    scores = [s / math.sqrt(1000) for s in dots]
    assert scores[0] - max(scores[1:]) < 1 / 2
    assert scores[0] - max(scores[1:]) >= (1 - 2 / 4) / math.sqrt(1000)
