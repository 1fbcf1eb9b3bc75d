"""Dyck-k-D against cancelling by hand, to the lengths and in the formats that its claim names."""

import itertools
import random
import re

import pytest

import transformist as tf
from transformist.arithmetic import BFLOAT16, EXACT, FLOAT16, FLOAT32, FLOAT64
from transformist.bounds import nearest_active_length

WEIGHTINGS = ["average-hard", "leftmost-hard", "rightmost-hard"]
ARITHMETICS = ["exact", "float64", "float32", "float16", "bfloat16"]
BRACKETS = "()[]{}<>"


def height(x, pairs):
    """How deep x nests: rounds of cutting out every adjacent pair; None where one never ends."""
    pattern = re.compile("|".join(map(re.escape, pairs)))
    rounds = 0
    while x:
        shorter = pattern.sub("", x)
        if shorter == x:
            return None
        x, rounds = shorter, rounds + 1
    return rounds


def is_bounded(x, kinds, depth):
    pairs = [BRACKETS[2 * t : 2 * t + 2] for t in range(kinds)]
    found = height(x, pairs)
    return found is not None and found <= depth


def active_after(x, depth):
    """The positions that D rounds of marking neighbours leave."""
    left = list(enumerate(x, start=1))
    pairs = [BRACKETS[t : t + 2] for t in range(0, 8, 2)]
    for _ in range(depth):
        kept, k = [], 0
        while k < len(left):
            if k + 1 < len(left) and left[k][1] + left[k + 1][1] in pairs:
                k += 2
            else:
                kept.append(left[k])
                k += 1
        left = kept
    return [position for position, _ in left]


def every_string(kinds, length):
    symbols = BRACKETS[: 2 * kinds]
    return ["".join(x) for n in range(length + 1) for x in itertools.product(symbols, repeat=n)]


def build(kinds, depth, weighting="average-hard"):
    return tf.recipe("dyck-k-d").build(kinds=kinds, depth=depth, weighting=weighting)


def assert_right(model, strings, kinds, depth, arithmetic):
    for x, answer in zip(strings, model.answers(strings, arithmetic), strict=True):
        assert answer == is_bounded(x, kinds, depth), (arithmetic, len(x), x)


def words(kinds, depth, length, count, seed):
    """Words of Dyck-k-D from a reflected walk, and near misses."""
    source = random.Random(seed)
    for number in range(count):
        x, closing = "", ""
        most = depth + (number % 3 == 2)
        for left in range(length - length % 2, 0, -1):
            room = len(closing) < min(most, left - 1)
            if not closing or (room and source.random() < 0.6):
                t = 2 * source.randrange(kinds)
                x, closing = x + BRACKETS[t], closing + BRACKETS[t + 1]
            else:
                x, closing = x + closing[-1], closing[:-1]
        yield x
        k, m = sorted(source.sample(range(len(x)), 2))
        yield x[:k] + source.choice(BRACKETS[: 2 * kinds]) + x[k + 1 :]
        yield x[:k] + x[m] + x[k + 1 : m] + x[k] + x[m + 1 :]
        yield x[:k] + x[k + 1 :]
        yield x[k:] + x[:k]


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(("kinds", "length"), [(1, 7), (2, 4), (3, 3)])
def test_every_short_string(kinds, length, weighting):
    strings = every_string(kinds, length)
    for depth in range(1, 5):
        model = build(kinds, depth, weighting)
        assert_right(model, strings, kinds, depth, "bfloat16")
    assert_right(build(kinds, 2, weighting), strings, kinds, 2, "exact")


EVERY = [
    *[("average-hard", arithmetic) for arithmetic in ARITHMETICS],
    *itertools.product(["leftmost-hard", "rightmost-hard"], ["exact", "bfloat16"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("weighting", "arithmetic"), EVERY)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("kinds", "length"), [(1, 12), (2, 7), (3, 5)])
def test_every_string(kinds, length, depth, weighting, arithmetic):
    """To the full length with average-hard; in exact arithmetic one less with the others."""
    longest = length - (arithmetic == "exact" and weighting != "average-hard")
    model = build(kinds, depth, weighting)
    assert_right(model, every_string(kinds, longest), kinds, depth, arithmetic)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_dyck_1_2_is_the_case_of_one_kind_and_depth_2(weighting):
    model = tf.recipe("dyck-1-2").build(weighting=weighting)
    assert_right(model, every_string(1, 9), 1, 2, "float32")
    assert model("(()())()") and model("") and not model("((()))")


def test_the_size_does_not_grow_with_the_kinds():
    for kinds, depth in [(1, 2), (2, 3), (64, 5)]:
        model = build(kinds, depth)
        assert model.width == 8 and len(model.layers) == depth + 1
        assert model.layers[0].feed_forward.W_1.shape == (10, 8)
        assert model.max_length is None


@pytest.mark.parametrize("length", [84, 85])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_words_and_near_misses_at_the_safe_length_of_bfloat16(length, weighting):
    for kinds, depth in [(1, 3), (2, 2), (4, 6)]:
        strings = list(words(kinds, depth, length, 6, seed=length))
        assert_right(build(kinds, depth, weighting), strings, kinds, depth, "bfloat16")


@pytest.mark.slow
@pytest.mark.parametrize("length", [680, 681, 682])
def test_words_and_near_misses_at_the_safe_length_of_float16(length):
    strings = list(words(3, 4, length, 3, seed=length))
    assert_right(build(3, 4), strings, 3, 4, "float16")


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ["float64", "float32", "float16"])
@pytest.mark.parametrize("length", [50, 200, 500])
def test_words_and_near_misses(length, arithmetic):
    for kinds, depth in [(1, 1), (2, 3), (4, 8)]:
        strings = list(words(kinds, depth, length, 3, seed=length + kinds))
        strings += ["()" * (length // 2), "(" * depth + ")" * depth, "(" * length, ")" * length]
        strings += ["(" + "()" * (length // 2 - 1) + ")", ")" + "()" * (length // 2 - 1) + "("]
        assert_right(build(kinds, depth), strings, kinds, depth, arithmetic)


def test_a_pair_far_apart_meets_across_what_is_inactive():
    for inside, arithmetic in [("[]" * 40, "bfloat16"), ("[]" * 240, "float16")]:
        model = build(2, 2)
        assert model(f"({inside})", arithmetic)
        assert not model(f"({inside}]", arithmetic)
        assert not model(f"([{inside}])", arithmetic)


@pytest.mark.parametrize("kinds", [6, pytest.param(64, marks=pytest.mark.slow)])
def test_many_kinds_are_whole_numbers(kinds):
    model = build(kinds, 3)
    assert model.alphabet[:4] == (1, -1, 2, -2)
    for arithmetic in ARITHMETICS:
        for t in range(1, kinds + 1):
            other = t % kinds + 1
            cases = {
                (t, -t): True,
                (t, other, -other, -t): True,
                (t, -other): False,
                (-t, t): False,
                (t, other, -t, -other): False,
                (t, t): False,
                (-t, -t): False,
            }
            if arithmetic in {"bfloat16", "float32"} or t in {1, kinds - 1, kinds}:
                assert model.answers(list(cases), arithmetic) == list(cases.values()), t


def test_the_safe_length_keeps_scores_apart():
    """The scores of active positions are distinct up to it, and in bfloat16 soon no longer."""
    lengths = {a.name: nearest_active_length(a) for a in (BFLOAT16, FLOAT16, FLOAT32, FLOAT64)}
    assert lengths == {
        "bfloat16": 85,
        "float16": 682,
        "float32": 5_592_405,
        "float64": 3_002_399_751_580_330,
    }
    assert nearest_active_length(EXACT) is None
    for a in (BFLOAT16, FLOAT16):
        for n in {*range(1, 86), 500, nearest_active_length(a)}:
            if n <= nearest_active_length(a):
                assert distinct_scores(a, n) == 2 * n, (a.name, n)
    assert any(distinct_scores(BFLOAT16, n) < 2 * n for n in range(86, 150))


def distinct_scores(a, n):
    places = a.array([f"{j}/{n}" for j in range(1, n + 1)])
    one = a.array([1])
    left, right = a.numbers(a.add(one, places)), a.numbers(a.subtract(one, places))
    return len(set(left.tolist())) + len(set(right.tolist()))


RELATED = {"[(]": (2, 3), "()(]": (3, 4), "(((())))": (4,), "([)]": (2, 3)}
"""The brackets that do not match each other, or the deepest one."""


@pytest.mark.parametrize(
    ("x", "words", "position"),
    [
        ("", "matched", None),
        ("([])", "matched", None),
        ("())(", "never opened", 3),
        ("()[", r"a \[ is never closed", 3),
        ("[(]", r"a \[ is never matched: inside it a \( is closed by a \]", 1),
        ("()(]", r"a \( is closed by a \]", 3),
        ("(((())))", "nest 4 deep, deeper than 3", 1),
        ("([)]", r"inside it a \[ is closed by a \)", 1),
    ],
)
def test_the_trace_explains_the_answer(x, words, position):
    recipe = tf.recipe("dyck-k-d")
    trace = recipe.build().run(x)
    finding = recipe.explain(trace)
    assert re.search(words, finding.sentence), finding.sentence
    assert finding.position == position
    assert finding.related == RELATED.get(x, ())
    assert trace.answer == (position is None)


@pytest.mark.parametrize(
    ("kinds", "depth", "length"),
    [
        (1, 2, 5),
        (3, 1, 2),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [(1, 2, 7), (2, 2, 4), (3, 1, 3)]
        ),
    ],
)
def test_the_position_is_the_first_that_stays_active(kinds, depth, length):
    recipe = tf.recipe("dyck-k-d")
    model = build(kinds, depth)
    for x in every_string(kinds, length):
        trace = model.run(x, "exact" if len(x) < 4 else "float32")
        active = [i for i, bit in enumerate(trace["active"].tolist()) if bit]
        assert active == active_after(x, depth), x
        assert recipe.explain(trace).position == (active[0] if active else None), x
        assert trace.answer == (not active), x


def test_scratch_is_cleared_and_bits_are_bits():
    model = build(2, 3)
    for arithmetic in ARITHMETICS:
        trace = model.run("([()]))[(", arithmetic)
        assert not trace["left"].any() and not trace["right"].any()
        assert set(trace["active"].tolist()) == {0, 1}
