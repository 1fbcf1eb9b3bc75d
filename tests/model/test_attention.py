"""Attention against its definition, written in plain Python over `Fraction` and `math`."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from transformist.arithmetic import EXACT, FLOAT64
from transformist.errors import NotRepresentable, ShapeMismatch, UnknownName
from transformist.model import Attention, Mask, Weighting, attention

ADMITS = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}


def by_definition(W_Q, W_K, W_V, z, weighting, mask):
    def apply(W, x):
        return [sum(Fraction(a) * b for a, b in zip(row, x, strict=True)) for row in W]

    answer = []
    for i, x in enumerate(z):
        allowed = [j for j in range(len(z)) if ADMITS[mask](i, j)]
        q = apply(W_Q, x)
        dot = {j: sum(a * b for a, b in zip(q, apply(W_K, z[j]), strict=True)) for j in allowed}
        best = [j for j in allowed if dot[j] == max(dot.values())]
        if weighting == "softmax":
            e = {j: math.exp((dot[j] - max(dot.values())) / math.sqrt(len(W_Q))) for j in allowed}
            weights = {j: e[j] / sum(e.values()) for j in allowed}
        elif weighting == "average-hard":
            weights = {j: Fraction(1, len(best)) for j in best}
        else:
            weights = {best[0 if weighting == "leftmost-hard" else -1]: 1} if best else {}
        values = {j: apply(W_V, z[j]) for j in weights}
        answer.append([sum(weights[j] * values[j][m] for j in weights) for m in range(len(W_V))])
    return answer


def drawn(seed, n, d=3, d_key=2):
    source = random.Random(seed)

    def matrix(rows, columns):
        return [[source.randint(-2, 2) for _ in range(columns)] for _ in range(rows)]

    return matrix(d_key, d), matrix(d_key, d), matrix(d, d), matrix(n, d)


@pytest.mark.parametrize(("weighting", "mask"), list(itertools.product(Weighting, Mask)))
def test_every_weighting_and_mask_equals_the_definition(weighting, mask):
    for n in (1, 2, 3, 5, 8):
        for seed in range(6):
            W_Q, W_K, W_V, z = drawn(seed, n, d_key=1 + seed % 3)
            head = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, weighting=weighting, mask=mask)
            expected = by_definition(W_Q, W_K, W_V, z, weighting, mask)
            assert np.allclose(head(z), np.array(expected, dtype=float), rtol=1e-12, atol=1e-13)
            if weighting != "softmax":
                assert head(z, "exact").tolist() == expected


def test_the_score_is_divided_by_the_root_of_d_key():
    W_Q, W_K, W_V, z = drawn(1, 4, d_key=3)
    scores = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V).scores(FLOAT64.array(z), FLOAT64)
    dots = np.array(z) @ np.array(W_Q).T @ np.array(W_K) @ np.array(z).T
    assert np.allclose(scores, dots / math.sqrt(3), rtol=1e-15)


@pytest.mark.parametrize("weighting", Weighting)
def test_a_row_with_nothing_to_attend_to_gives_zero(weighting):
    for mask, row in (("strict-future", 0), ("strict-past", 2)):
        head = Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]], weighting=weighting, mask=mask)
        for arithmetic in ("exact", "float64", "float16"):
            assert head([[5], [6], [7]], arithmetic).tolist()[row] == [0]
        assert head([[5]]).tolist() == [[0]]


def test_blocks_of_rows_change_nothing(monkeypatch):
    W_Q, W_K, W_V, z = drawn(3, 9)
    for mask in Mask:
        head = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, mask=mask)
        whole = head(z)
        monkeypatch.setattr(attention, "_BLOCK", 20)
        assert np.array_equal(head(z), whole)
        monkeypatch.undo()


def test_a_batch_is_its_sequences_one_by_one():
    W_Q, W_K, W_V, _ = drawn(4, 1)
    batch = [drawn(seed, 5)[3] for seed in range(3)]
    for weighting in Weighting:
        head = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, weighting=weighting, mask="future")
        assert np.array_equal(head(batch), np.array([head(z) for z in batch]))


def test_uniform_softmax_is_exact_and_other_softmax_is_refused():
    uniform = Attention(W_Q=[[0]], W_K=[[1]], W_V=[[1]], mask="future")
    assert uniform([[1], [0], [0]], "exact").tolist() == [[1], [Fraction(1, 2)], [Fraction(1, 3)]]
    with pytest.raises(NotRepresentable, match="float64"):
        Attention(W_Q=[[1]], W_K=[[1]], W_V=[[1]])([[1], [2]], "exact")


def test_an_output_matrix_is_applied_to_the_mixed_values():
    head = Attention(W_Q=[[0, 0]], W_K=[[0, 0]], W_V=[[1, 1]], W_O=[[2], [-1]])
    assert head([[1, 2], [3, 4]]).tolist() == [[10, -5], [10, -5]]
    assert head.width_out == 2
    assert head.nonzero == 4


@pytest.mark.parametrize(("weighting", "mask"), list(itertools.product(Weighting, Mask)))
def test_biases_are_a_coordinate_that_is_1(weighting, mask):
    """The definition without biases, on vectors with a 1 before them, but for b_O."""
    for n, d_key in ((1, 1), (2, 3), (5, 2)):
        source = random.Random(n)
        W_Q, W_K, W_V, z = drawn(n, n, d_key=d_key)
        b_Q, b_K, b_V, b_O = (
            [source.randint(-2, 2) for _ in range(size)] for size in (d_key, d_key, 3, 3)
        )
        before = [
            [[b, *row] for b, row in zip(bias, W, strict=True)]
            for bias, W in ((b_Q, W_Q), (b_K, W_K), (b_V, W_V))
        ]
        expected = by_definition(*before, [[1, *x] for x in z], weighting, mask)
        expected = [[c + b for c, b in zip(row, b_O, strict=True)] for row in expected]
        biases = {"b_Q": b_Q, "b_K": b_K, "b_V": b_V, "b_O": b_O}
        head = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, weighting=weighting, mask=mask, **biases)
        got = head(z)
        assert np.allclose(got, np.array(expected, dtype=float), rtol=1e-12, atol=1e-13)
        if weighting != "softmax":
            assert head(z, "exact").tolist() == expected
        if mask == "strict-future":
            assert got[0].tolist() == b_O  # without b_V


def test_the_bias_of_keys_is_in_the_scores():
    """It changes no weights: to each score of a row it adds the same."""
    W_Q, W_K, W_V, z = drawn(2, 4)
    head = Attention(W_Q=W_Q, W_K=W_K, W_V=W_V, b_Q=[1, 2], b_K=[3, -1])
    q, k = np.array(z) @ np.array(W_Q).T + [1, 2], np.array(z) @ np.array(W_K).T + [3, -1]
    assert np.array_equal(EXACT.numbers(head.scores(EXACT.array(z), EXACT)), q @ k.T)


def test_an_output_bias_comes_after_the_output_matrix():
    zero = {"W_Q": [[0]], "W_K": [[0]]}
    head = Attention(**zero, W_V=[[1]], b_V=[3], W_O=[[2], [5]], b_O=[0, 7])
    assert head([[1]]).tolist() == [[8, 27]] and head.nonzero == 5
    assert Attention(**zero, W_V=[[1]], b_V=[3], b_O=[7])([[1]], "exact").tolist() == [[11]]


def test_what_is_written_includes_biases():
    zero = {"W_Q": np.zeros((1, 3)), "W_K": np.zeros((1, 3))}
    W = np.zeros((3, 3))
    assert Attention(**zero, W_V=W, b_V=[0, 1, 0], b_O=[0, 0, 1]).written == (1, 2)
    W_O = [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert Attention(**zero, W_V=W, W_O=W_O, b_V=[0, 1, 0], b_O=[0, 0, 1]).written == (0, 2)


def test_what_cancels_in_the_value_matrix_is_written_where_it_rounds():
    zero = {"W_Q": [[0]], "W_K": [[0]]}
    head = Attention(**zero, W_V=[["1/3"], [1]], W_O=[[3, -1]], b_V=[0, 2])
    assert head.value_matrix.tolist() == [[0]] and head.value_shift.tolist() == [-2]
    assert Attention(**zero, W_V=[[3]], b_V=[2]).value_matrix.tolist() == [[3]]
    assert Attention(**zero, W_V=[[3]], b_V=[2]).value_shift.tolist() == [2]
    cancelling = Attention(**zero, W_V=[["1/3"], [1]], W_O=[[3, -1]])
    assert cancelling([[1]], "bfloat16").tolist() != [[0]] and cancelling.written == (0,)


@pytest.mark.parametrize(
    ("change", "refusal", "words"),
    [
        ({"b_Q": [1]}, ShapeMismatch, r"b_Q must have shape \(2\), the rows of W_Q"),
        ({"b_K": [1]}, ShapeMismatch, "b_K"),
        ({"b_V": [1]}, ShapeMismatch, "b_V must have shape .*, the rows of W_V"),
        ({"b_O": [1]}, ShapeMismatch, "b_O must have shape .*, the rows of W_V"),
        (
            {"W_O": [[1, 0]], "b_O": [1, 2]},
            ShapeMismatch,
            "b_O must have shape .*, the rows of W_O",
        ),
        ({"W_K": [[1, 0]]}, ShapeMismatch, "W_K"),
        ({"W_V": [[1]]}, ShapeMismatch, "W_V"),
        ({"W_O": [[1, 2, 3]]}, ShapeMismatch, "W_O"),
        ({"weighting": "sofmax"}, UnknownName, "softmax"),
        ({"mask": "causal"}, UnknownName, "mask"),
    ],
)
def test_what_does_not_fit_is_refused(change, refusal, words):
    parts = {"W_Q": [[1, 0], [0, 1]], "W_K": [[1, 0], [0, 1]], "W_V": [[1, 0], [0, 1]], **change}
    with pytest.raises(refusal, match=words):
        Attention(**parts)


def test_vectors_of_another_width_are_refused():
    with pytest.raises(ShapeMismatch, match="width 1"):
        Attention(W_Q=[[0]], W_K=[[0]], W_V=[[1]])([[1, 2]])


def test_the_weights_are_read_only_and_exact():
    head = Attention(W_Q=[[1]], W_K=[[Fraction(1, 3)]], W_V=[[0.5]])
    with pytest.raises(ValueError, match="read-only"):
        head.W_V[0, 0] = 2
    assert head.W_K[0, 0] == Fraction(1, 3)
    assert EXACT.numbers(head.rounded(EXACT).W_K)[0, 0] == Fraction(1, 3)
