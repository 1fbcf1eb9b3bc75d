"""Compiled functions of whole numbers: under every mask, beyond n, below 0, at 0; certified."""

import functools
import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import pytest

import transformist as tf
from drawn_programs import Case, Expression, expression, outcome, program_of
from transformist.compiler import largest_length
from transformist.compiler.uncompilable import Uncompilable

STRINGS = ["".join(x) for n in range(1, 7) for x in itertools.product("ab", repeat=n)]
STRINGS += ["a" * 8, "b" * 8, "abbabaab", "aabbbbba", "a" * 7, "bbbbbba"]


def square_or_less(v):
    """Another value at each change of sign, with steps up and down on both sides of 0."""
    return (v * v) % 7 - (3 if v < 0 else 0)


PROGRAMS = {
    # name: (of the tokens, from the definition on a string and a position from 1)
    "category": (
        lambda x: (x == "a").count("future").map(lambda k: ("none", "one", "two")[k % 3]),
        lambda s, i: ("none", "one", "two")[s[:i].count("a") % 3],
    ),
    "root": (
        lambda x: (x == "a").count().map(math.isqrt),
        lambda s, i: math.isqrt(s.count("a")),
    ),
    "Boolean": (
        lambda x: (x == "a").count("strict-future").map(lambda k: k in (0, 2, 3, 7)),
        lambda s, i: s[: i - 1].count("a") in (0, 2, 3, 7),
    ),
    "place": (lambda x: x.position("i") % 3, lambda s, i: i % 3),
    "length": (lambda x: x.position("n") % 4, lambda s, i: len(s) % 4),
    "rest": (
        lambda x: (x.position("n") - x.position("i")).map(lambda k: f"{k % 2} to go"),
        lambda s, i: f"{(len(s) - i) % 2} to go",
    ),
    "before": (
        lambda x: ((x == "a").count("future") - x.position("i")).map(square_or_less),
        lambda s, i: square_or_less(s[:i].count("a") - i),
    ),
    "difference": (
        lambda x: ((x == "a").count("future") - (x == "b").count("future")).map(square_or_less),
        lambda s, i: square_or_less(s[:i].count("a") - s[:i].count("b")),
    ),
    "both ways": (
        lambda x: ((x == "a").count() - x.position("i")).map(square_or_less),
        lambda s, i: square_or_less(s.count("a") - i),
    ),
    "beyond n": (
        lambda x: ((x == "a").count("future") + x.position("n") + 2).map(square_or_less),
        lambda s, i: square_or_less(s[:i].count("a") + len(s) + 2),
    ),
    "twice": (
        lambda x: (2 * (x == "a").count() - 3 * (x == "b").count("future")) % 5,
        lambda s, i: (2 * s.count("a") - 3 * s[:i].count("b")) % 5,
    ),
    "remainder of a product": (
        lambda x: (x == "a").count("future") * ((x == "b").count() + 1) % 7,
        lambda s, i: s[:i].count("a") * (s.count("b") + 1) % 7,
    ),
    "remainder of a sum": (
        lambda x: (5 * (x == "a").count() + 3 * (x == "b").count("future") + x.position("n")) % 4,
        lambda s, i: (5 * s.count("a") + 3 * s[:i].count("b") + len(s)) % 4,
    ),
    "of a product": (
        lambda x: (x.position("i") * (x == "a").count("future")).map(
            lambda v: "xyz"[(v > 2) + (v > 20)], max_length=200
        ),
        lambda s, i: "xyz"[(i * s[:i].count("a") > 2) + (i * s[:i].count("a") > 20)],
    ),
    "text": (lambda x: (x == "a").count().map(str), lambda s, i: str(s.count("a"))),
    "square": (
        lambda x: (x == "a").count("future").map(lambda k: k * k),
        lambda s, i: s[:i].count("a") ** 2,
    ),
    "half": (lambda x: x.position("n") // 2, lambda s, i: len(s) // 2),
    "of one count": (
        lambda x: (3 - 2 * (x == "a").count()).abs().map(square_or_less),
        lambda s, i: square_or_less(abs(3 - 2 * s.count("a"))),
    ),
    "never 0": (
        lambda x: (1 - x.position("n") - (x == "a").count("future").min(1)).map(square_or_less),
        lambda s, i: square_or_less(1 - len(s) - min(1, s[:i].count("a"))),
    ),
    "of a function": (
        lambda x: ((x == "a").count("future") // 2).map(lambda k: "xyz"[k % 3]),
        lambda s, i: "xyz"[s[:i].count("a") // 2 % 3],
    ),
    "mapping": (
        lambda x: (x == "a").count("future").min(2).map({0: "none", 1: "one", 2: "more", 9: "!"}),
        lambda s, i: ("none", "one", "more")[min(2, s[:i].count("a"))],
    ),
    "fetched": (
        lambda x: (x == "a").count("future").predecessor(default=12) % 5,
        lambda s, i: (s[: i - 1].count("a") if i > 1 else 12) % 5,
    ),
    "chosen length": (
        lambda x: (x == "a").where(x.position("n"), x.position("n") - 1) % 3,
        lambda s, i: (len(s) - (s[i - 1] == "b")) % 3,
    ),
    "index by a square": (
        lambda x: x.lookup(x.position("i^2"), default="-"),
        lambda s, i: s[i * i - 1] if i * i <= len(s) else "-",
    ),
    "in a sum": (
        lambda x: ((x == "a").count() % 3 - (x == "b").count("future") % 2).map(
            lambda v: v > 0
        ),
        lambda s, i: s.count("a") % 3 - s[:i].count("b") % 2 > 0,
    ),
    "gated": (
        lambda x: (x == "a").where((x == "a").count("future") % 3, -1),
        lambda s, i: s[:i].count("a") % 3 if s[i - 1] == "a" else -1,
    ),
    "compared with a symbol": (
        lambda x: (x == "a").count("future").map(lambda k: "ba"[k % 2]) == x,
        lambda s, i: "ba"[s[:i].count("a") % 2] == s[i - 1],
    ),
    "key": (
        lambda x: ((x == "a").count("future") % 3)
        .select(x.position("i") % 3, mask="strict-future")
        .rightmost(x, default="-"),
        lambda s, i: next(
            (s[j - 1] for j in range(i - 1, 0, -1) if j % 3 == s[:i].count("a") % 3), "-"
        ),
    ),
    "index": (
        lambda x: x.lookup(x.position("i") // 2, default="-"),
        lambda s, i: s[i // 2 - 1] if i > 1 else "-",
    ),
    "index beyond n": (
        lambda x: x.lookup((x == "a").count("future") // 2 + 2, default="-"),
        lambda s, i: s[k - 1] if (k := s[:i].count("a") // 2 + 2) <= len(s) else "-",
    ),
    "index below 1": (
        lambda x: x.lookup(((x == "a").count() - x.position("i")) // 3, default="-"),
        lambda s, i: s[k - 1] if (k := (s.count("a") - i) // 3) >= 1 else "-",
    ),
    "table of two": (
        lambda x: ((x == "a").count("future") % 3).table(
            x, (x == "b").count().map(lambda k: "pqrstu"[k % 6]), values="{}{}{}".format
        ),
        lambda s, i: f"{s[:i].count('a') % 3}{s[i - 1]}{'pqrstu'[s.count('b') % 6]}",
    ),
    "large divisor": (
        lambda x: ((x == "a").count() - (x == "b").count("future")) % 100 == 98,
        lambda s, i: (s.count("a") - s[:i].count("b")) % 100 == 98,
    ),
}  # fmt: skip


@functools.cache
def program(name):
    return tf.program(alphabet="ab")(lambda x: PROGRAMS[name][0](x).tag())


def expected(name, s):
    return [PROGRAMS[name][1](s, i) for i in range(1, len(s) + 1)]


def require_right(name, model, strings, arithmetic):
    answers = model.answers(strings, arithmetic=arithmetic)
    for s, answer in zip(strings, answers, strict=True):
        assert list(answer) == list(program(name)(s)) == expected(name, s), s


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("max_length", [8, 13])
def test_the_function_is_taken_at_each_position(name, max_length):
    require_right(name, tf.compile(program(name), max_length=max_length), STRINGS[::3], "float32")


@pytest.mark.parametrize("name", PROGRAMS)
def test_hard_attention_takes_the_function(name):
    model = tf.compile(program(name), max_length=8, weighting="average-hard")
    require_right(name, model, STRINGS[1::4], "exact")


@pytest.mark.parametrize("name", ["place", "length", "rest", "chosen length", "index"])
def test_positions_need_no_means(name):
    model = tf.compile(program(name), max_length=8, weighting="rightmost-hard")
    require_right(name, model, STRINGS[2::4], "exact")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
@pytest.mark.parametrize("max_length", [6, 8])
def test_the_function_is_taken_on_every_short_string(name, weighting, max_length):
    model = tf.compile(program(name), max_length=max_length, weighting=weighting)
    arithmetic = "float32" if weighting == "softmax" else "exact"
    strings = [s for s in STRINGS if len(s) <= max_length]
    require_right(name, model, strings, arithmetic)


SHORTER = {"beyond n": 50, "of a product": 50, "key": 100, "fetched": 100, "index by a square": 50}
"""Lengths up to which these are certified: sums of steps, and scores or indices beyond n."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("longest", [50, 200])
def test_long_ones_are_right_and_certified(name, longest):
    draw, max_length = random.Random(longest), min(longest, SHORTER.get(name, longest))
    model = tf.compile(program(name), max_length=max_length)
    certificate = tf.certify(model, "float32")
    assert certificate.holds and certificate.grade == 1, certificate.limiting
    strings = ["a" * max_length, "b" * max_length, "ab" * (max_length // 2)]
    strings += ["".join(draw.choices("ab", k=n)) for n in (9, 10, 11, 33, max_length)]
    require_right(name, model, [s for s in strings if len(s) <= max_length], "float32")


def hidden_units(f, max_length):
    made = tf.program(alphabet="ab")(lambda x: (x == "a").count().map(f).tag())
    layers = tf.compile(made, max_length=max_length).layers
    return sum(len(layer.feed_forward.b_1) for layer in layers if layer.feed_forward)


def test_each_change_takes_two_hidden_units():
    steps = [hidden_units(lambda k, at=at: sum(k >= v for v in at), 30)
             for at in ([4], [4, 9], [4, 9, 10, 22, 30])]  # fmt: skip
    assert [each - steps[0] for each in steps] == [0, 2, 8]
    parities = [hidden_units(lambda k: k % 2, N) for N in (20, 30)]
    assert parities[1] - parities[0] == 20


def refusal_of(function, **options):
    made = tf.program(alphabet="ab")(lambda x: function(x).tag())
    with pytest.raises(Uncompilable) as refusal:
        tf.compile(made, **options)
    return str(refusal.value)


def test_a_length_that_the_function_is_not_known_for_is_refused():
    said = refusal_of(lambda x: (x == "a").count().map(str, max_length=5), max_length=6)
    assert (
        "received '(x == \"a\").count()', none at 6, but values at 0 to 5, for max_length = 6"
        in said
    )
    said = refusal_of(lambda x: (x == "a").count().map({0: 0, 2: 1}), max_length=2)
    assert "none at 1" in said and "test_whole_functions.py, line " in said


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
def test_any_length_is_refused_where_the_number_has_no_bound(weighting):
    how = {"max_length": None, "weighting": weighting}
    said = refusal_of(lambda x: (x == "a").count() % 2, **how)
    assert "max_length must be known" in said
    made = tf.program(alphabet="ab")(lambda x: (x.position("i").clip(2, 5) % 2).tag())
    assert tf.compile(made, **how)("abbabab", "float32") == [0, 0, 1, 0, 1, 1, 1]


def test_without_places_a_function_takes_steps():
    made = tf.program(alphabet="ab")(lambda x: (x == "a").count().map(lambda k: k in (2, 3)).tag())
    model = tf.compile(made, max_length=8, positions=[])
    assert model.embedding.positions is None
    for s in STRINGS[::5]:
        assert model(s) == [s.count("a") in (2, 3)] * len(s)


def test_without_squares_of_places_hard_attention_takes_no_mean_for_n():
    made = tf.program(alphabet="ab")(lambda x: x.position("n").map(lambda n: n % 2).tag())
    model = tf.compile(made, max_length=8, weighting="rightmost-hard", positions=["i"])
    for s in STRINGS[::5]:
        assert model.run(s, "exact").answer == [len(s) % 2] * len(s)


@pytest.mark.slow
@pytest.mark.parametrize("masks", ["future", "none"])
def test_the_function_keeps_to_the_masks_of_a_target(masks):
    refused = set()
    for name in PROGRAMS:
        try:
            model = tf.compile(program(name), max_length=8, masks=masks)
        except Uncompilable:
            refused.add(name)
            continue
        assert {str(head.mask) for layer in model.layers for head in layer.heads} <= {masks}
        require_right(name, model, STRINGS[::40], "float32")
    # An encoder has neither counts of a prefix nor predecessors of them; a decoder does not see n.
    assert len(refused) < len(PROGRAMS) - 3, refused
    assert ("fetched" in refused) == (masks == "none")
    made = tf.program(alphabet="ab")(lambda x: ((x == "a").count() % 3 == 1).accept())
    model = tf.compile(made, max_length=8, masks=masks)
    assert [model(s) for s in STRINGS[::9]] == [s.count("a") % 3 == 1 for s in STRINGS[::9]]


def test_an_index_that_is_at_most_i_looks_back_alone():
    made = tf.program(alphabet="ab")(
        lambda x: x.lookup(
            (x == "a").count("future") // 2 + x.position("i") // 2, default="-"
        ).tag()
    )
    model = tf.compile(made, max_length=8)
    assert {head.mask for layer in model.layers for head in layer.heads} == {"future"}
    for s in STRINGS[::9]:
        places = [s[:i].count("a") // 2 + i // 2 for i in range(1, len(s) + 1)]
        assert list(model(s)) == [s[k - 1] if k else "-" for k in places]


FUNCTIONS = (
    "($0 % 3)",
    "(($0 // 2) % 2)",
    "$0.map(lambda v: v > 1)",
    "$0.map(lambda v: v % 2 == 1)",
    "$0.map(lambda v: v * v % 3 - 1)",
    "$0.map(lambda v: 'ba'[v % 2])",
    "$0.map(lambda v: ('p', 'q', (v % 2, 'r'))[v % 3])",
    "$0.map({v: v in (0, 3) for v in range(-99, 99)})",
)


@pytest.mark.parametrize(
    ("function", "max_length", "limit"),
    [
        (
            lambda k, n: k * n // 5,
            100_000,
            "have at most 1,048,576 values; .* 10,000,000,001 values",
        ),
        (lambda k, n: (k * n) // 1, 90, "at most 4,096 times; .* 8,100 changes"),
    ],
)
def test_functions_of_too_many_values_are_refused(function, max_length, limit):
    @tf.program(alphabet="ab")
    def made(x):
        return function((x == "a").count("future"), x.position("n")).tag()

    with pytest.raises(tf.TransformistError, match=limit):
        tf.compile(made, max_length=max_length, arithmetic="float64")
    assert tf.compile(made, max_length=5)("aab") == made("aab")


def test_a_value_that_does_not_occur_decides_the_form_of_the_answer():
    made = tf.program(alphabet="ab")(
        lambda x: (x.position("n") // 3).map(lambda v: "p" if v < 5 else ("q", v)).tag()
    )
    model = tf.compile(made, max_length=4)
    assert made("abba") == model("abba", "float32") == ["p"] * 4


@pytest.mark.trials(1, 80)
def test_drawn_functions_are_right_and_certified(trials):
    draw, counts = random.Random(8), Counter()
    while counts["right"] < trials:
        number = expression("W", draw.choice((1, 2, 3)), draw)
        body = Expression("output", f"{draw.choice(FUNCTIONS)}.tag()", (number,))
        weighting = draw.choice(("softmax", "average-hard"))
        case = Case(body, weighting, "float32", draw.choice((3, 5, 9, 12)))
        what, why = outcome(case)
        counts[what] += 1
        if what == "no program":
            # A product with a mean need not be whole. One of counts has millions of values for the
            # default of max_length.
            told = ("a whole number with a known bound", "called on at most 65,536 values")
            assert any(words in str(why) for words in told), (str(case), why)
            continue
        assert what in ("right", "refused"), (str(case), why)
        if what == "right":
            made = program_of(body.text)
            model = tf.compile(made, max_length=case.max_length, weighting=weighting)
            certificate = tf.certify(model, "float32")
            counts[certificate.grade] += 1
            assert certificate.holds, (str(case), certificate.limiting)
    print(dict(counts))
    assert counts[1] >= 0.9 * trials and counts["refused"] < trials


def test_accepting_is_right_on_nothing():
    for f in (lambda k: k % 2 == 0, lambda k: k > 1, lambda k: k == 3):

        def accepting(x, *, f=f):
            return (x == "a").count("future").map(f).accept()

        made = tf.program(alphabet="ab")(accepting)
        model = tf.compile(made, max_length=8)
        for s in ["", *STRINGS[::4]]:
            assert model(s) is made(s) is f(s.count("a")), s


def test_the_largest_length_is_at_most_that_of_the_function():
    program = tf.program(alphabet="ab")(
        lambda x: ((x == "a").count().map(lambda v: v % 3 == 0, max_length=20)).tag()
    )
    assert largest_length(program) == 20


def test_a_value_that_is_missing_is_that_of_the_number_the_function_is_of():
    """Functions of functions are compiled as one; the refusal is of the one the user wrote."""
    half = tf.program(alphabet="ab")(
        lambda x: ((x == "a").count() // 2).map(lambda v: v > 1, max_length=10).tag()
    )
    with pytest.raises(tf.TransformistError, match=r"'.*// 2.*none at 6, but values at 0 to 5"):
        tf.compile(half, max_length=12)


@pytest.mark.parametrize("weighting", ["softmax", "average-hard"])
@pytest.mark.parametrize("factor", [10**400, Fraction(1, 10**400)])
def test_numbers_beyond_those_of_bounds_are_refused(factor, weighting):
    program = tf.program(alphabet="ab")(
        lambda x: (x == "a").count().map(lambda v: factor * v).predecessor().mean().tag()
    )
    with pytest.raises(tf.TransformistError, match="between 1e-300 and 1e300 in magnitude"):
        tf.compile(program, max_length=7, weighting=weighting)


def test_a_remainder_by_a_number_that_is_no_index_is_refused_or_right():
    program = tf.program(alphabet="ab")(lambda x: ((x == "a").count() % 10**30 > 1).tag())
    assert program("aab") == [True, True, True]
    assert tf.compile(program, max_length=5)("aab", "float32") == [True, True, True]
    with pytest.raises(tf.TransformistError, match="must be called on at most 65,536 values"):
        tf.program(alphabet="ab")(lambda x: (x == "a").count().map(str, max_length=10**100).tag())
