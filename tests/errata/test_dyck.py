"""What is printed of the Dyck languages (9.2), on every short string."""

import itertools
from fractions import Fraction as F

import numpy as np
import pytest

import transformist as tf


def bounded(x, depth):
    """Dyck-k-D of brackets +t and −t, by a stack."""
    opened = []
    for bracket in x:
        if bracket > 0:
            opened.append(bracket)
            if len(opened) > depth:
                return False
        elif not opened or opened.pop() != -bracket:
            return False
    return not opened


def brackets(x):
    return [1 if symbol == "(" else -1 for symbol in x]


def strings(kinds, longest):
    signs = [s * t for t in range(1, kinds + 1) for s in (1, -1)]
    return [x for n in range(1, longest + 1) for x in itertools.product(signs, repeat=n)]


# 9.2.1


def test_the_empty_string_has_no_last_position():
    """Dyck-1 contains ε, but (42) divides by i, and there is no position n; with BOS there is."""

    def printed(x):
        balances = [sum(brackets(x)[:i]) for i in range(1, len(x) + 1)]
        errors = [max(F(0), -F(b, i + 1)) for i, b in enumerate(balances)]
        return balances[-1] == 0 and sum(errors) / len(x) == 0

    with pytest.raises(IndexError):
        printed("")
    for name in ("dyck-1", "dyck-1-uniform"):
        model = tf.recipe(name).build()
        assert model("") is True
        for n in range(1, 8):
            tried = ["".join(x) for x in itertools.product("()", repeat=n)]
            assert list(model.answers(tried, "exact")) == [printed(x) for x in tried]


def least(numbers):
    return min(abs(v) for v in numbers if v)


def test_the_least_magnitudes_are_those_printed_at_odd_lengths_only():
    """t_n is at least 1/n², and 1/(n(n − 1)) at even n; B_n/n at least 1/n, and 2/n at even n."""
    for n in range(1, 11):
        totals, balances = [], []
        for x in itertools.product((1, -1), repeat=n):
            prefix = [sum(x[:i]) for i in range(1, n + 1)]
            totals.append(sum(max(F(0), -F(b, i)) for i, b in enumerate(prefix, start=1)) / n)
            balances.append(F(prefix[-1], n))
        odd = n % 2 == 1
        assert least(totals) == (F(1, n * n) if odd else F(1, n * (n - 1)))
        assert least(balances) == (F(1, n) if odd else F(2, n))


def equal_zero(x, epsilon, number):
    """EqZero_ε of 4.7 as printed, every operation in the given number type."""
    zero, one, two = number(0), number(1), number(2)
    hidden = [max(zero, number(x + epsilon)), max(zero, x), max(zero, number(x - epsilon))]
    up, down = number(one / epsilon), number(two / epsilon)
    first = number(number(up * hidden[0]) - number(down * hidden[1]))
    return number(first + number(up * hidden[2]))


@pytest.mark.parametrize(("N", "worst"), [(100, 2**-11), (1000, 1 / 16), (4096, 1), (10_000, 2)])
def test_printed_comparator_cancels_in_float32(N, worst):
    """EqZero_{1/N²} of k/N, 0 for k = 1 … N in rationals, but not in float32."""
    epsilon = np.float32(1 / N**2)
    got = [abs(float(equal_zero(np.float32(k / N), epsilon, np.float32))) for k in range(1, N + 1)]
    assert max(got) == worst
    assert not any(equal_zero(F(k, N), F(1, N**2), F) for k in range(1, N + 1, 7))


def test_the_dead_zone_of_the_library_does_not_cancel_in_float32():
    """With N = 4096, where the printed one is off by 1: short strings, and two long ones."""
    model = tf.recipe("dyck-1").build(max_length=4096)
    tried = ["".join(x) for n in range(7) for x in itertools.product("()", repeat=n)]
    for x in [*tried, "(" * 400, "()" * 200]:
        accept = model.run(x, arithmetic="float32")["accept"][-1]
        assert abs(accept - bounded(brackets(x), len(x))) <= 1e-3, x


# 9.2.2: rounds of marking


def fetched(x, seen, score):
    """The bracket at the best of the positions seen, by average-hard attention; 0 for none."""
    if not seen:
        return 0
    best = max(map(score, seen))
    found = [x[j] for j in seen if score(j) == best]
    return F(sum(found), len(found)) if len(found) > 1 else found[0]


def accepts(x, rounds, left, right, keep=True):
    """Whether `rounds` rounds mark every bracket.

    left, right: the score of a position from j/n, its active bit and 1, all times n.
    keep: whether what is marked stays marked.
    """
    n, active = len(x), [1] * len(x)
    for _ in range(rounds):
        to_left = [left(j + 1, n * a, n) for j, a in enumerate(active)]
        to_right = [right(j + 1, n * a, n) for j, a in enumerate(active)]
        now = []
        for i in range(n):
            before = fetched(x, range(i), to_left.__getitem__)
            after = fetched(x, range(i + 1, n), to_right.__getitem__)
            match = after == -x[i] if x[i] > 0 else before == -x[i]
            now.append(int((active[i] if keep else 1) and not match))
        active = now
    return not any(active)


def wrong(kinds, depth, longest, left, right, keep=True):
    """How many strings D rounds accept and reject wrongly, of how many."""
    tried = strings(kinds, longest)
    off = [x for x in tried if accepts(x, depth, left, right, keep) != bounded(x, depth)]
    rejected = [x for x in off if bounded(x, depth)]
    return len(off) - len(rejected), len(rejected), len(tried)


def nearest_left(place, active, _one):
    """j/n + a_j, right for the left side."""
    return place + active


def nearest_right(place, active, _one):
    """−j/n + a_j, right for the right side."""
    return active - place


SMALL = [(1, 2, 8, 510), (2, 2, 4, 340), (1, 3, 7, 254)]


@pytest.mark.parametrize(("kinds", "depth", "longest", "count"), SMALL)
def test_the_corrected_rounds_are_right(kinds, depth, longest, count):
    assert wrong(kinds, depth, longest, nearest_left, nearest_right) == (0, 0, count)


def library_is_right(kinds, depth, longest):
    model = tf.recipe("dyck-k-d").build(kinds=kinds, depth=depth)
    alphabet = "()[]"
    code = dict(zip(alphabet, (1, -1, 2, -2), strict=True))
    for n in range(longest + 1):
        tried = ["".join(x) for x in itertools.product(alphabet[: 2 * kinds], repeat=n)]
        right = [bounded([code[b] for b in x], depth) for x in tried]
        assert list(model.answers(tried, "exact")) == right


def test_the_library_recognizes_bounded_depth():
    library_is_right(1, 2, 8)
    library_is_right(2, 2, 4)


def test_past_masked_scores_as_printed_find_the_farthest():
    """+j/n + a_j on the right prefers the last active bracket: `(()` is accepted."""
    assert wrong(1, 2, 8, nearest_left, nearest_left) == (29, 11, 510)
    assert accepts(brackets("(()"), 2, nearest_left, nearest_left)
    assert not accepts(brackets("(()"), 2, nearest_left, nearest_right)


def test_matches_are_lost_where_the_active_bit_is_computed_anew():
    """(47) with l, r for the neighbours, which the sentence after (49) rules out."""
    assert wrong(1, 2, 8, nearest_left, nearest_right, keep=False) == (0, 7, 510)
    assert not accepts(brackets("()(())"), 2, nearest_left, nearest_right, keep=False)
    assert accepts(brackets("()(())"), 2, nearest_left, nearest_right)


def test_scores_of_the_extraction_prefer_what_is_matched():
    """j/n − (a_j − 1) is larger at inactive positions; so is −j/n − (a_j − 1), on the right."""

    def printed(place, active, one):
        return place - (active - one)

    def turned(place, active, one):
        return -place - (active - one)

    assert all(printed(1, 0, n) > printed(n, n, n) for n in range(2, 9))
    assert wrong(1, 2, 8, printed, turned) == (0, 11, 510)
    assert not accepts(brackets("(())"), 2, printed, turned)
    assert wrong(1, 2, 8, printed, printed) == (29, 11, 510)


def test_no_linear_query_is_constant():
    """No linear form is 1 on the states [o, a, 0, 0, i/n] of both brackets, active or not.

    A query i/n instead of 1 multiplies all scores of a row by i/n > 0, and leaves their order.
    """
    states = [[o, a, 0, 0, p] for o in (1, -1) for a in (0, 1) for p in (0.5, 1)]
    rank = np.linalg.matrix_rank(states)
    assert rank == 3
    assert np.linalg.matrix_rank([[*z, 1] for z in states]) == rank + 1
    for n in range(2, 6):
        for i, bits in itertools.product(range(1, n), itertools.product((0, 1), repeat=n)):
            plain = [F(j + 1, n) + bits[j] for j in range(i)]
            scaled = [F(i + 1, n) * s for s in plain]
            assert plain.index(max(plain)) == scaled.index(max(scaled))
    for name in ("nearest-left", "nearest-right"):
        assert tf.recipe(name).claim.needed_features({})[0] == "1"


def test_the_readable_examples():
    """`((())` is not balanced, `((())())()` nests 3 deep; `(()())()` is what the text describes."""
    assert not bounded(brackets("((())"), 5)
    assert bounded(brackets("((())())()"), 3) and not bounded(brackets("((())())()"), 2)
    assert bounded(brackets("(()())()"), 2)
    x = "(()())()"
    kept = [
        i for i in range(len(x)) if not (x[i : i + 2] == "()" or (i and x[i - 1 : i + 1] == "()"))
    ]
    assert "".join(x[i] for i in kept) == "()" and len(x) - len(kept) == len("()()()")


# 9.2.1: bits without N


def prefix_balances(x):
    """B_i/i for i from 0 on, that of BOS being 0."""
    signs = brackets(x)
    return [F(0), *(F(sum(signs[:i]), i) for i in range(1, len(x) + 1))]


def leftmost(scores):
    """The first position of the largest score."""
    return scores.index(max(scores))


def exact_bit(x):
    """Two leftmost-hard heads, each of which gives 1 where it attends to BOS."""
    b = prefix_balances(x)
    unviolated = int(leftmost([-each for each in b]) == 0)
    all_closed = int(leftmost([b[-1] * (j > 0) for j in range(len(b))]) == 0)
    return max(0, unviolated + all_closed - 1)


def test_a_uniform_model_produces_bits_by_leftmost_hard_heads():
    """No weight above knows n. A fixed ε does fail beside the printed heads."""
    tried = ["".join(x) for n in range(10) for x in itertools.product("()", repeat=n)]
    assert len(tried) == 1023
    wanted = [int(bounded(brackets(x), len(x))) for x in tried]
    assert [exact_bit(x) for x in tried] == wanted
    model = tf.recipe("dyck-1-exact-uniform").build()
    assert list(model.answers(tried, "float32")) == wanted
    for epsilon in (F(1, 4), F(1, 100)):
        n = 2 * int(1 / epsilon) + 1  # odd, and 1/n² < ε
        errors = [max(F(0), -b) for b in prefix_balances("()" * (n // 2) + ")")]
        assert 0 < equal_zero(sum(errors) / n, epsilon, F) < 1
