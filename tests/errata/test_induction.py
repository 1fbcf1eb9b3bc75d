"""What is printed of the induction heads (9.1), on every short string."""

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf


def strings(alphabet, longest):
    """Every string of 1 to `longest` symbols."""
    return [
        "".join(x) for n in range(1, longest + 1) for x in itertools.product(alphabet, repeat=n)
    ]


def recent(x):
    """What followed the last earlier occurrence of each symbol, itself where there is none."""
    answer = ""
    for i, symbol in enumerate(x):
        after = [x[j] for j in range(1, i + 1) if x[j - 1] == symbol]
        answer += after[-1] if after else symbol
    return answer


def counts(x, i, alphabet):
    """How often each b has followed x_i in x_1 … x_i."""
    return [sum(x[j - 1 : j + 1] == x[i] + b for j in range(1, i + 1)) for b in alphabet]


def frequent(x, alphabet):
    """What followed each symbol most often, the first in the alphabet on a tie, or itself."""
    answer = ""
    for i, symbol in enumerate(x):
        seen = counts(x, i, alphabet)
        answer += alphabet[seen.index(max(seen))] if any(seen) else symbol
    return answer


def same(a, b):
    """The dot product of two one-hot vectors; before the first symbol stands the vector 0."""
    return int(a == b and a is not None)


def before(x, j):
    """The symbol at j − 1, None for the vector 0."""
    return x[j - 1] if j else None


MASKS = {
    "future": lambda i, j: j <= i,
    "none": lambda i, j: True,
    "strict-future": lambda i, j: j < i,
}
CHOICES = {"rightmost": lambda best: best[-1:], "leftmost": lambda best: best[:1], "average": list}


def attended(x, mask, choice, swapped=False):
    """The one-hot symbols that one head gives, as shares of each symbol; q = WE, k = Pred."""
    answer = []
    for i in range(len(x)):
        seen = [j for j in range(len(x)) if MASKS[mask](i, j)]
        score = {j: same(before(x, i), x[j]) if swapped else same(x[i], before(x, j)) for j in seen}
        best = CHOICES[choice]([j for j in seen if score[j] == max(score.values())])
        answer.append({a: F(sum(x[j] == a for j in best), len(best)) for a in x} if best else {})
    return answer


def likeliest(shares):
    """The symbol of the largest share, the first in the alphabet on a tie."""
    return min(shares, key=lambda a: (-shares[a], a)) if shares else "-"


def wrong(alphabet, longest, *how, **given):
    """How many strings have a wrong prediction, of how many."""
    tried = strings(alphabet, longest)
    got = ["".join(map(likeliest, attended(x, *how, **given))) for x in tried]
    return sum(a != recent(x) for a, x in zip(got, tried, strict=True)), len(tried)


def built_is_right(name, alphabet, longest, expected):
    model = tf.recipe(name).build(alphabet=alphabet)
    for n in range(1, longest + 1):
        tried = ["".join(x) for x in itertools.product(alphabet, repeat=n)]
        assert list(model.answers(tried, "exact")) == [expected(x) for x in tried]


# 9.1.1


def test_queries_and_keys_of_the_extraction_are_exchanged():
    assert wrong("AB", 8, "future", "rightmost", swapped=True) == (494, 510)
    assert wrong("AB", 8, "future", "rightmost") == (0, 510)
    built_is_right("induction-most-recent", "AB", 8, recent)


@pytest.mark.parametrize(
    ("mask", "choice", "bad"),
    [
        ("future", "rightmost", 0),
        ("none", "rightmost", 494),
        ("strict-future", "rightmost", 510),
        ("future", "leftmost", 494),
        ("future", "average", 466),
    ],
)
def test_without_its_mask_the_printed_head_is_undetermined(mask, choice, bad):
    assert wrong("AB", 8, mask, choice) == (bad, 510)
    assert (wrong("ABC", 4, mask, choice)[0] == 0) == (bad == 0)


def softened(x, i, alphabet, sharpness, tie_break):
    """The shares of each symbol under softmax of sharpness · (q · k + t(j))/√(|Σ| + 1)."""
    scores = [same(x[i], before(x, j)) + tie_break(j + 1, len(x)) for j in range(i + 1)]
    scores = [sharpness * s / math.sqrt(len(alphabet) + 1) for s in scores]
    exps = [math.exp(s - max(scores)) for s in scores]
    return {
        a: sum(e for e, b in zip(exps, x, strict=False) if b == a) / sum(exps) for a in alphabet
    }


def softly_wrong(alphabet, longest, sharpness, tie_break=lambda j, _n: -1 / j):
    """How many strings have a wrong prediction, of how many, and the largest error of a share."""
    bad, largest, tried = 0, 0.0, strings(alphabet, longest)
    for x in tried:
        shares = [softened(x, i, alphabet, sharpness, tie_break) for i in range(len(x))]
        bad += "".join(map(likeliest, shares)) != recent(x)
        largest = max(largest, *(1 - s[a] for s, a in zip(shares, recent(x), strict=True)))
    return bad, len(tried), largest


@pytest.mark.parametrize(("alphabet", "N", "bad"), [("AB", 8, 216), ("ABC", 6, 528)])
def test_printed_temperature_is_that_of_a_gap_the_tie_break_has_undone(alphabet, N, bad):
    """With −1/j the gap is 1/(N(N − 1)√(|Σ| + 1)), not 1; the temperature of that gap is right."""
    strings_tried = sum(len(alphabet) ** n for n in range(1, N + 1))
    printed = softly_wrong(alphabet, N, math.log(8 * N))
    assert printed[:2] == (bad, strings_tried) and printed[2] > 1 / 4
    root = math.sqrt(len(alphabet) + 1)
    for times, tie_break in ((N * (N - 1), lambda j, _n: -1 / j), (N, lambda j, n: j / n)):
        sharpness = root * times * math.log(8 * N)
        *right, largest = softly_wrong(alphabet, N, sharpness, tie_break)
        assert right == [0, strings_tried] and largest <= 1 / 4


def test_softmax_of_the_library_is_right():
    model = tf.recipe("induction-most-recent").build(
        alphabet="AB", weighting="softmax", max_length=8
    )
    for n in range(1, 8):
        tried = ["".join(x) for x in itertools.product("AB", repeat=n)]
        assert list(model.answers(tried, "float64")) == [recent(x) for x in tried]


def test_the_example_in_its_readable_form():
    """The list of one-hot vectors reads ACABDACDCA; the lists that are printed after it fit."""
    x = "ACABDACDCA"
    assert recent(x) == "ACCBDBAADC" and frequent(x, "ABCD") == "ACCBDBAAAC"
    assert [x[j - 1 : j + 1] for j in (6, 7)] == ["AC", "CD"]
    assert tf.recipe("induction-most-recent").build(alphabet="ABCD")(x) == recent(x)


# 9.1.2


def first_of_the_most(x, i, alphabet, at_least):
    """The first b whose count is at least that of every other, by `at_least` of the difference."""
    seen = counts(x, i, alphabet)
    fits = [b for b, m in zip(alphabet, seen, strict=True) if all(at_least(m - k) for k in seen)]
    return fits[0]


def test_printed_choice_of_the_most_frequent_has_no_fallback():
    """Where nothing has followed x_i all counts are 0, and the first of the alphabet comes out."""
    x = "ACABDACDCA"
    literal = "".join(first_of_the_most(x, i, "ABCD", lambda d: d >= 0) for i in range(10))
    assert literal == "AACAABAAAC" != frequent(x, "ABCD")
    assert [i + 1 for i in range(10) if literal[i] != frequent(x, "ABCD")[i]] == [2, 4, 5]
    for y in strings("ABC", 6):
        for i in range(len(y)):
            literal = first_of_the_most(y, i, "ABC", lambda d: d >= 0)
            seen = any(counts(y, i, "ABC"))
            assert (literal if seen else y[i]) == frequent(y, "ABC")[i]
            assert seen or literal == "A"
    built_is_right("induction-most-frequent", "ABC", 5, lambda y: frequent(y, "ABC"))


def test_no_value_matrix_selects_a_bigram():
    """W_V [e_a; e_b] = f(a) + g(b): the alternating sum of four is 0, a bigram's is ±1."""
    one_hot = np.eye(2)
    pairs = list(itertools.product(range(2), repeat=2))
    z = np.array([np.concatenate([one_hot[a], one_hot[b]]) for a, b in pairs])
    signs = np.array([1, -1, -1, 1])
    assert not (signs @ z).any()
    for wanted in range(4):
        assert abs(signs @ np.eye(4)[wanted]) == 1
    # two strings with the same symbols, before and at: every W_V gives one mean, AB occurs 1, 2 ×
    means = [
        np.mean([[b == "A", b == "B", a == "A", a == "B"] for a, b in bigrams], axis=0)
        for bigrams in (("AA", "AB", "BB"), ("AB", "BA", "AB"))
    ]
    assert np.array_equal(*means)
    # ReLU(e_a + e_b − 1) is the bigram, for every pair
    for (a, b), (c, d) in itertools.product(pairs, repeat=2):
        assert max(one_hot[c][a] + one_hot[d][b] - 1, 0) == ((a, b) == (c, d))


def shares(scores, weighting):
    """The weights of a row, in rationals; the base of softmax is 2, which changes nothing here."""
    best = max(scores)
    raw = {
        "uniform": [F(1) for _ in scores],
        "softmax": [F(2) ** s for s in scores],
        "average-hard": [F(s == best) for s in scores],
    }[weighting]
    return [w / sum(raw) for w in raw]


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_counting_by_a_constant_value_counts_nothing(weighting):
    """The query [e_A; e_B], bigrams as keys, W_V = 1: weights sum to 1, whatever the bigrams.

    The mean of the bigram as a value, by uniform weights, is its count over i.
    """
    for x in strings("AB", 6):
        found = [same(x[j], "B") * same(before(x, j), "A") for j in range(len(x))]
        scores = [same(x[j], "B") + same(before(x, j), "A") for j in range(len(x))]
        assert sum(w * 1 for w in shares(scores, weighting)) == 1
        mean = sum(w * v for w, v in zip(shares(scores, "uniform"), found, strict=True))
        assert mean == F(x.count("AB"), len(x))


def at_least_zero(x, epsilon):
    """GEZero_ε of 4.7."""
    return max(F(0), min(F(1), 1 + x / epsilon))


@pytest.mark.parametrize("N", [4, 7])
def test_printed_counts_are_shares_and_the_tolerance_has_to_follow(N):
    """A difference of shares is at least 1/i where it is not 0: ε = 1/N decides, ε = 1 does not."""
    library = tf.recipe("greater-or-equal-zero").build(epsilon=F(1, N))
    undecided = 0
    for x in strings("AB", N):
        for i in range(len(x)):
            first, second = (F(c, i + 1) for c in counts(x, i, "AB"))
            share = np.mean([x[j - 1 : j + 1] == x[i] + "A" and j > 0 for j in range(i + 1)])
            assert float(first) == pytest.approx(share)
            exact = int(first - second >= 0)
            assert at_least_zero(first - second, F(1, N)) == exact
            assert library([first - second], "exact").tolist() == [exact]
            undecided += at_least_zero(first - second, F(1)) not in (0, 1)
    assert undecided > 0
    assert at_least_zero(F(-1, N + 1), F(1, N)) not in (0, 1)
