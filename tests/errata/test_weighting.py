"""The printed formulas of sections 5.5 to 5.7, as they stand."""

from fractions import Fraction as F
from itertools import product

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
