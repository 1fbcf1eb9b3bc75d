"""What is printed of masks, of First and of many heads (2.2.2, 5.2, 5.4, 5.5), as it stands."""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest

import transformist as tf
from transformist.errors import InvalidValue

INFINITY = float("inf")
HARD = ("average-hard", "leftmost-hard", "rightmost-hard")


def weights(scores, weighting):
    """Definition 5.1 as printed, in which no row is special."""
    best = [j for j, score in enumerate(scores) if score == max(scores)]
    chosen = {"average-hard": best, "leftmost-hard": best[:1], "rightmost-hard": best[-1:]}
    return [F(int(j in chosen[weighting]), len(chosen[weighting])) for j in range(len(scores))]


def attend(scores, values, weighting="average-hard"):
    shares = weights(scores, weighting)
    return sum((a * v for a, v in zip(shares, values, strict=True)), F(0))


def mean(values):
    return F(sum(values), len(values))


def numbers(recipe, rows, **settings):
    """What the recipe gives, a number a position."""
    return [row[0] for row in tf.recipe(recipe).build(**settings)(rows, "exact").tolist()]


def test_printed_strict_mask_leaves_a_row_open():
    for n in range(1, 7):
        values = list(range(1, n + 1))
        masked = [-INFINITY] * n
        assert attend(masked, values, "average-hard") == mean(values)
        assert attend(masked, values, "leftmost-hard") == values[0]
        assert attend(masked, values, "rightmost-hard") == values[-1]
        with np.errstate(invalid="ignore"):
            powers = np.exp(masked)
            assert np.isnan(powers / powers.sum()).all()
        rows = [[F(i, n), v] for i, v in enumerate(values, start=1)]
        for weighting in HARD:
            assert numbers("predecessor-strict", rows, weighting=weighting) == [0, *values[:-1]]
            assert numbers("successor-strict", rows, weighting=weighting) == [*values[1:], 0]
    assert accepts_by_neighbours(")(") and accepts_by_neighbours("()")
    assert not tf.recipe("dyck-1-2").build()(")(")


def accepts_by_neighbours(brackets):
    """The first round of 9.2.2: is every bracket matched by its neighbour?"""
    o, n = [1 if bracket == "(" else -1 for bracket in brackets], len(brackets)
    places = range(1, n + 1)
    matched = []
    for i in places:
        to_left = [F(j, n) if j < i else -INFINITY for j in places]
        to_right = [-F(j, n) if j > i else -INFINITY for j in places]
        left, right = attend(to_left, o, "rightmost-hard"), attend(to_right, o, "leftmost-hard")
        matched.append((o[i - 1] == 1 and right == -1) or (o[i - 1] == -1 and left == 1))
    return all(matched)


def greater_than_zero(x, epsilon):
    """Eq. 29."""
    return min(max(x / epsilon, F(0)), F(1))


def printed_first(n, weighting):
    """5.2: uniform future-masked attention on −(−1)^j, then GTZero of 1/3 at cᵢ − 1/3."""
    values = [-((-1) ** j) for j in range(1, n + 1)]
    means = [attend([0] * i, values[:i], weighting) for i in range(1, n + 1)]
    return [greater_than_zero(c - F(1, 3), F(1, 3)) for c in means]


def test_printed_weightings_of_first():
    for n in range(1, 13):
        wanted = [int(i == 1) for i in range(1, n + 1)]
        assert printed_first(n, "leftmost-hard") == [1] * n
        assert printed_first(n, "rightmost-hard") == [i % 2 for i in range(1, n + 1)]
        assert printed_first(n, "average-hard") == wanted
        assert numbers("first", [[(-1) ** i] for i in range(1, n + 1)]) == wanted
        values = [F(i, 7) for i in range(3, 3 + n)]
        uniform = [attend([0] * i, values[:i], "leftmost-hard") for i in range(1, n + 1)]
        assert uniform == [values[0]] * n
    with pytest.raises(InvalidValue, match="claims: softmax, average-hard"):
        tf.recipe("first").build(weighting="leftmost-hard")


def test_printed_first_does_not_retrieve():
    for n in range(2, 5):
        assert printed_first(n, "average-hard") == [1, *[0] * (n - 1)]
        for values in product((2, 3), repeat=n):
            rows = [[1, (-1) ** i, v] for i, v in enumerate(values, start=1)]
            for weighting in HARD:
                assert numbers("first-value", rows, weighting=weighting) == [values[0]] * n
            at_once = [attend([0] * n, values, "leftmost-hard") for _ in range(n)]
            assert at_once == [values[0]] * n


def test_printed_zeros_for_masked_scores():
    for n in range(1, 6):
        places = range(1, n + 1)

        def before(score, masked, n=n, places=places):
            return [[score * F(j, n) if j < i else masked for j in places] for i in places]

        def after(score, masked, n=n, places=places):
            return [[score * F(j, n) if j > i else masked for j in places] for i in places]

        def masked_attend(row, values):
            return 0 if max(row) == -INFINITY else attend(row, values)

        for values in product((1, 2, 4), repeat=n):
            first, *others = [attend(row, values) for row in before(1, masked=0)]
            assert first == mean(values) != 0
            assert others == list(values[:-1])
            corrected = [masked_attend(row, values) for row in before(1, masked=-INFINITY)]
            rows = [[F(i, n), v] for i, v in enumerate(values, start=1)]
            assert corrected == numbers("predecessor-strict", rows) == [0, *values[:-1]]
        wrong = [attend(row, places) for row in after(-1, masked=0)]
        assert wrong == [mean(range(1, i + 1)) for i in places]  # of the masked positions
        right = [masked_attend(row, places) for row in after(-1, masked=-INFINITY)]
        assert right == [*range(2, n + 1), 0]


def test_printed_heads_one_after_the_other_in_place():
    def head(x, source, target):
        """What a head adds to each vector: the mean of `source` so far, to `target`."""
        added = [[F(0), F(0)] for _ in x]
        for i in range(len(x)):
            added[i][target] = attend([0] * (i + 1), [v[source] for v in x[: i + 1]])
        return added

    def plus(x, *added):
        return [
            [sum(column) for column in zip(*rows, strict=True)]
            for rows in zip(x, *added, strict=True)
        ]

    different = 0
    for n in range(1, 4):
        for flat in product((0, 1), repeat=2 * n):
            x = [list(flat[2 * i : 2 * i + 2]) for i in range(n)]
            together = plus(x, head(x, 0, 1), head(x, 1, 0))
            once = plus(x, head(x, 0, 1))
            different += plus(once, head(once, 1, 0)) != together
            split = tf.recipe("split-heads").build(heads=2, weighting="average-hard")
            assert split(x, "exact").tolist() == together
    assert plus([[1, 0]], head([[1, 0]], 0, 1), head([[1, 0]], 1, 0)) == [[1, 1]]
    once = plus([[1, 0]], head([[1, 0]], 0, 1))
    assert plus(once, head(once, 1, 0)) == [[2, 1]]
    assert different == sum(4**n - 2**n for n in (1, 2, 3))  # wherever some x₀ is 1
