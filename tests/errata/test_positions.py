"""What is printed of positional encodings and of the predecessor (3.4, 3.5, 5.4), as it stands."""

import math
from fractions import Fraction as F
from itertools import product

import numpy as np

import transformist as tf


def uniform(values):
    """What uniform attention gives a row that sees these values."""
    return sum((F(1, len(values)) * v for v in values), F(0))


def numbers(recipe, rows, **settings):
    """What the recipe gives, a number a position."""
    return [row[0] for row in tf.recipe(recipe).build(**settings)(rows, "exact").tolist()]


def test_printed_reciprocal_depends_on_where_bos_stands():
    for n in range(1, 9):
        counted = [uniform([int(j == 1) for j in range(1, i + 1)]) for i in range(1, n + 1)]
        before = [uniform([int(j == 0) for j in range(i + 1)]) for i in range(1, n + 1)]
        assert counted == [F(1, i) for i in range(1, n + 1)]
        assert before == [F(1, i + 1) for i in range(1, n + 1)]
        flags = [[int(i == 1)] for i in range(1, n + 1)]
        assert numbers("reciprocal-from-bos", flags, weighting="average-hard") == counted


def test_printed_reciprocal_needs_a_token_at_the_beginning():
    for n in range(1, 9):
        at_the_end, before = [*[0] * n, 1], [1, *[0] * n]
        assert [uniform(at_the_end[:i]) for i in range(1, n + 1)] == [0] * n
        assert uniform(at_the_end) == uniform(before) == F(1, n + 1)  # unmasked
        assert [uniform(before[: i + 1]) for i in range(1, n + 1)] == [
            F(1, i + 1) for i in range(1, n + 1)
        ]
        flags = [[flag] for flag in before]
        assert numbers("reciprocal-from-bos", flags, weighting="average-hard")[1:] == [
            F(1, i + 1) for i in range(1, n + 1)
        ]


def test_printed_fraction_by_attention():
    for n in range(2, 9):
        wanted = [F(i, n) for i in range(1, n + 1)]
        for values in product((0, 1, F(n, 2)), repeat=min(n, 5)):
            padded = [*values, *[1] * (n - len(values))]
            seen = [padded for _ in range(n)]  # unmasked: every row sees everything
            given = [uniform(row) for row in seen]
            assert len(set(given)) == 1 and given != wanted
        flags = [[int(i == 1)] for i in range(1, n + 1)]
        assert numbers("one-over-n-from-bos", flags, weighting="average-hard") == [F(1, n)] * n
        encoded = tf.recipe("position-fraction").build()(n, "exact").tolist()
        assert encoded == [[value] for value in wanted]


def test_printed_sinusoids_hold_no_parity():
    d, n, M = 16, 400, 10000
    encoding = [
        [f(i / M ** (2 * c / d)) for c in range(d // 2) for f in (math.sin, math.cos)]
        for i in range(1, n + 1)
    ]
    parity = [(-1) ** i for i in range(1, n + 1)]

    def left_over(features):
        weights, *_ = np.linalg.lstsq(features, parity, rcond=None)
        return np.linalg.norm(np.asarray(features) @ weights - parity) / math.sqrt(n)

    assert left_over(encoding) > 0.99
    assert left_over([[*row, math.cos(math.pi * i)] for i, row in enumerate(encoding, 1)]) < 1e-9
    model = tf.recipe("parity").build()
    for length in range(7):
        for bits in product("01", repeat=length):
            assert model("".join(bits)) == (bits.count("1") % 2 == 1)


def conditional(p, x, y):
    """4.9, for x and y in [0, 1]."""
    return max(p + x - 1, F(0)) + max(-p + y, F(0))


def head(values, sign, choose):
    """5.4: a future-masked head with the scores sign · (−1)^j."""
    given = []
    for i in range(1, len(values) + 1):
        scores = [sign * (-1) ** j for j in range(1, i + 1)]
        best = [v for s, v in zip(scores, values, strict=False) if s == max(scores)]
        given.append(choose(best))
    return given


def printed_predecessor(values, choose):
    odd, even = head(values, 1, choose), head(values, -1, choose)
    is_even = [max(F((-1) ** i), F(0)) for i in range(1, len(values) + 1)]  # GTZero₁((−1)^i)
    return [conditional(p, e, o) for p, e, o in zip(is_even, even, odd, strict=True)]


def last(best):
    return best[-1]


def test_printed_predecessor_at_position_1():
    for n in range(1, 6):
        for values in product((F(0), F(1, 2), F(1)), repeat=n):
            printed = printed_predecessor(values, last)
            assert printed == [values[0], *values[:-1]]
            first = [int(i == 1) for i in range(1, n + 1)]
            corrected = [conditional(f, F(0), y) for f, y in zip(first, printed, strict=True)]
            assert corrected == [0, *values[:-1]]
    for n in range(1, 6):
        values = [F(i, n) for i in range(1, n + 1)]
        rows = [[1, (-1) ** i, v] for i, v in enumerate(values, start=1)]
        assert numbers("predecessor", rows) == [0, *values[:-1]]


def test_printed_predecessor_under_other_weightings():
    values = [F(i, 8) for i in range(1, 9)]
    averaged, leftmost = (
        [i for i in range(2, 9) if printed_predecessor(values, choose)[i - 1] == values[i - 2]]
        for choose in (uniform, lambda best: best[0])
    )
    assert averaged == leftmost == [2, 3]
    assert printed_predecessor(values, last)[1:] == values[:-1]
    strict = [[F(i, 8), v] for i, v in enumerate(values, start=1)]
    quadratic = [[1, i, i * i, (-1) ** i, v] for i, v in enumerate(values, start=1)]
    for weighting in ("average-hard", "leftmost-hard", "rightmost-hard"):
        assert numbers("predecessor-strict", strict, weighting=weighting) == [0, *values[:-1]]
        assert numbers("predecessor-quadratic", quadratic, weighting=weighting) == [0, *values[:-1]]
