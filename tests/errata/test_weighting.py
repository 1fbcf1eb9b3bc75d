"""What is printed of one weighting by another (5.6, 5.7), as it stands."""

import math
from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

import transformist as tf


def dot(x, y):
    return sum((a * b for a, b in zip(x, y, strict=True)), F(0))


def times(matrix, x):
    return [dot(row, x) for row in matrix]


def mean_at_best(scores, values):
    """Average-hard attention: the mean of the values where the score is largest."""
    best = [v for s, v in zip(scores, values, strict=True) if s == max(scores)]
    return sum(best, F(0)) / len(best)


def last_of_best(scores, values):
    """Rightmost-hard attention."""
    return max(zip(scores, range(len(scores)), values, strict=True))[2]


def test_printed_tie_break_keys():
    W_Q, W_K = [[1, 0, 0]], [[0, 1, 0]]  # of vectors [1, aⱼ, vⱼ]: the score is aⱼ

    def hatted(first_block_of_keys, bits):
        rows = [[1, a, j, 1, F(j, len(bits))] for j, a in enumerate(bits, start=1)]
        Q = [[*W_Q[0], 0, 0], [0, 0, 0, 1, 0]]
        K = [[*first_block_of_keys[0], 0, 0], [0, 0, 0, 0, 1]]
        query = times(Q, rows[-1])
        return mean_at_best([dot(query, times(K, row)) for row in rows], [row[2] for row in rows])

    wrong = 0
    for n in range(1, 7):
        for bits in product((0, 1), repeat=n):
            wanted = last_of_best(bits, range(1, n + 1))
            wrong += hatted(W_Q, bits) != wanted
            assert hatted(W_K, bits) == wanted
            recipe = tf.recipe("tie-break").build()
            rows = [[1, a, j, 1, F(j, n)] for j, a in enumerate(bits, start=1)]
            assert recipe(rows, "exact")[-1].tolist() == [wanted]
    assert wrong == sum(2 ** (n - 1) - 1 for n in range(1, 7))  # aₙ = 0, and some aⱼ = 1


# 5.6, the rest


def test_printed_sum_of_score_and_term():
    gamma = F(1, 2)
    for d_key, n in product((1, 2, 3, 4), (2, 3)):
        for dots in product(range(d_key + 1), repeat=n):  # of q = (1, …, 1) and keys of bits
            hatted = [F(dots[j]) + gamma * F(j + 1, n) for j in range(n)]  # before the root
            given = [score / math.sqrt(d_key + 1) for score in hatted]
            printed = [dots[j] / math.sqrt(d_key) + gamma * F(j + 1, n) for j in range(n)]
            assert all(abs(a - b) > 0.01 for a, b in zip(given, printed, strict=True))
            best = last_of_best(dots, range(n))
            assert hatted.index(max(hatted)) == printed.index(max(printed)) == best
            scale, root = math.sqrt((d_key + 1) / d_key), math.sqrt(d_key + 1)
            corrected = [(scale * dots[j] + gamma * root * F(j + 1, n)) / root for j in range(n)]
            assert corrected == pytest.approx(printed)
    assert tf.recipe("tie-break").gap(n=5) == (F(1, 5), 2)  # of dot products, and d_key + 1


def first_tie(score, term, longest):
    """The least j whose score in float32 is that of j + 1."""
    sums = np.float32(score) + term(np.arange(1, longest + 2).astype(np.float32))
    ties = np.flatnonzero(sums[:-1] == sums[1:])
    return int(ties[0]) + 1 if len(ties) else None


def test_printed_terms_in_float32():
    assert first_tie(1, lambda j: -1 / j, 10**4) == 4141
    assert first_tie(100, lambda j: -1 / j, 10**4) == 374
    n = 2**20
    assert first_tie(1, lambda j: j / np.float32(n), n - 1) is None
    safe = [tf.recipe("tie-break").safe_lengths(term=term)["float32"] for term in ("-1/i", "i/n")]
    assert safe[0] <= 4141 < 10**5 < safe[1]


def softmax(scores):
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def test_printed_tie_break_under_softmax():
    gamma, n = 1, 2
    hatted = [(0 + gamma * j / n) / math.sqrt(1 + 1) for j in (1, 2)]
    assert softmax(hatted) == pytest.approx([0.41, 0.59], abs=0.005)
    assert mean_at_best(hatted, [0, 1]) == 1
    for n in range(2, 20):
        hatted = [gamma * j / n / math.sqrt(2) for j in range(1, n + 1)]
        assert softmax(hatted)[-1] < 0.6
        tau = gamma / (n * math.sqrt(2)) / math.log(8 * n)
        assert softmax([score / tau for score in hatted])[-1] >= 3 / 4


# 5.7


def test_printed_logarithm_of_the_temperature():
    def error(N, logarithm):
        """Of a lookup with scores 1 and 0, where γ = 1: v is 0 at the best and 1 elsewhere."""
        return 1 - softmax([logarithm(8 * N), *[0] * (N - 1)])[0]

    assert error(64, math.log10) == pytest.approx(0.81, abs=0.005)
    for N in range(2, 300):
        assert error(N, math.log) <= 2 * N * math.exp(-math.log(8 * N)) == pytest.approx(1 / 4)
    model = tf.recipe("soften").build(max_length=8)
    for q in range(8):
        rows = [[int(k == q) for k in range(8)] + [int(k == i) for k in range(8)] for i in range(8)]
        given = model([[*row, int(i != q)] for i, row in enumerate(rows)]).tolist()
        assert max(row[0] for row in given) <= 1 / 4


def test_printed_softmax_in_float64():
    def printed(scores):
        """As defined in 5."""
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.exp(scores)
            return powers / powers.sum()

    for scores in ((800.0, 0.0), (-800.0, -1600.0)):
        assert np.isnan(printed(scores)[0])
        assert softmax(scores) == [1, 0]
    apart = softmax([2**57 * (0.1 + 0.2), 2**57 * 0.3])
    assert apart == pytest.approx([0.9997, 0.0003], abs=5e-5)
    assert softmax([2**57 * (0.25 + 0.5), 2**57 * 0.75]) == [1 / 2, 1 / 2]
    for dtype, ratio in ((np.float16, 17.4), (np.float32, 104), (np.float64, 745.2)):
        assert dtype(np.exp(np.float64(-ratio))) == 0
        assert dtype(np.exp(np.float64(-ratio + 0.2))) > 0
    model = tf.recipe("soften-by-precision").build(max_length=4)
    rows = [
        [*[int(k == 1) for k in range(4)], *[int(k == i) for k in range(4)], i] for i in range(4)
    ]
    assert model(rows).tolist() == [[1]] * 4
