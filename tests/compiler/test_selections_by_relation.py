"""Selections by <, <=, >, >= and != between keys and queries."""

import itertools
import operator
import random
from fractions import Fraction

import pytest

import transformist as tf
from transformist.errors import InvalidValue

MASKS = {
    "none": lambda i, j: True,
    "future": lambda i, j: j <= i,
    "strict-future": lambda i, j: j < i,
    "past": lambda i, j: j >= i,
    "strict-past": lambda i, j: j > i,
}
COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
BEYOND = "the positions beyond those for which what is assumed has been observed"
"""The margin that limits a certificate of labels which are fetched or the symbol here."""

VALUE = {"a": 2, "b": -1, "c": Fraction(1, 2)}

VALUES = {
    "the symbol": (lambda x: x, lambda x, i: x[i]),
    "the symbol before": (
        lambda x: x.predecessor(default="b"),
        lambda x, i: x[i - 1] if i else "b",
    ),
    "a number of it": (lambda x: x.map(VALUE), lambda x, i: VALUE[x[i]]),
    "one of the symbol before": (
        lambda x: x.map(VALUE).predecessor(),
        lambda x, i: VALUE[x[i - 1]] if i else 0,
    ),
    "a count": (lambda x: (x == "a").count("future"), lambda x, i: x[: i + 1].count("a")),
    "twice a count of all": (lambda x: 2 * (x == "a").count(), lambda x, i: 2 * x.count("a")),
    "a position, less 3": (lambda x: x.position("i") - 3, lambda x, i: i - 2),
    "a share": (
        lambda x: (x == "a").mean("future"),
        lambda x, i: Fraction(x[: i + 1].count("a"), i + 1),
    ),
    "a Boolean": (lambda x: x == "a", lambda x, i: x[i] == "a"),
}
KINDS = (
    ("the symbol", "the symbol before"),
    ("a number of it", "one of the symbol before", "a count", "a share"),
    ("a Boolean",),
)
UNLISTED = {"a count", "a share"}
PAIRS = [
    pair for kind in KINDS for pair in itertools.product(kind, kind) if not {*pair} <= UNLISTED
]
USES = {
    "rightmost": (
        lambda x, found: found.rightmost(x, default="-").tag(),
        lambda x, i, at: x[at[-1]] if at else "-",
    ),
    "leftmost": (
        lambda x, found: found.leftmost(x, default=x).tag(),
        lambda x, i, at: x[at[0]] if at else x[i],
    ),
    "rightmost, or itself": (
        lambda x, found: found.rightmost(x, default=x).tag(),
        lambda x, i, at: x[at[-1]] if at else x[i],
    ),
    "any": (lambda x, found: found.any().tag(), lambda x, i, at: bool(at)),
    "mean": (
        lambda x, found: (found.mean(x == "a") > "1/2").tag(),
        lambda x, i, at: 2 * sum(x[j] == "a" for j in at) > len(at),
    ),
}


def require_right(queries, keys, mask, relation, use, weighting, N):
    """Interpretation and weights give what the definition gives; return if they are certified."""

    @tf.program(alphabet="abc")
    def selection(x):
        key, query = VALUES[keys][0](x), VALUES[queries][0](x)
        return USES[use][0](x, query.select(key, mask=mask, relation=relation))

    model = tf.compile(selection, max_length=N, weighting=weighting)
    key, query = VALUES[keys][1], VALUES[queries][1]
    given = [
        "".join(x) for n in range(1, min(N, 4) + 1) for x in itertools.product("abc", repeat=n)
    ]
    draw = random.Random(N)
    given += ["".join(draw.choices("abc", k=N)) for _ in range(20)]
    for x, got in zip(given, model.answers(given, arithmetic="float32"), strict=True):
        wanted = []
        for i in range(len(x)):
            holds = COMPARE[relation]
            at = [j for j in range(len(x)) if MASKS[mask](i, j) and holds(key(x, j), query(x, i))]
            wanted.append(USES[use][1](x, i, at))
        assert list(got) == wanted == list(selection(x)), (x, queries, keys, mask, relation, use)
    found = tf.certify(model)
    assert found.holds or found.limiting.what == BEYOND, (queries, keys, mask, relation, use)
    return found.holds


@pytest.mark.trials(4, 100)
def test_every_relation_is_right_and_certified(trials):
    draw, resting = random.Random(5), []
    for _ in range(trials):
        queries, keys = draw.choice(PAIRS)
        weighting, uses = draw.choice(("softmax", "average-hard", "rightmost-hard")), [*USES]
        is_unlisted = bool({queries, keys} & UNLISTED)
        if is_unlisted and weighting == "rightmost-hard":  # which has no means
            continue
        if weighting == "rightmost-hard" or (is_unlisted and weighting == "average-hard"):
            uses.remove("mean")  # with hard attention, equal scores must not round
        how = draw.choice([*MASKS]), draw.choice([*COMPARE]), draw.choice(uses)
        case = (queries, keys, *how, weighting, draw.choice((1, 2, 5, 9)))
        if not require_right(*case):
            resting.append(case)
    assert len(resting) <= trials // 20, resting


WHOLE = ("a count", "twice a count of all", "a position, less 3")


@pytest.mark.parametrize(
    ("relation", "mask", "use", "N"),
    [
        ("<", "none", "rightmost", 9),
        ("<=", "strict-past", "leftmost", 9),
        (">", "strict-future", "any", 5),
        (">=", "future", "rightmost, or itself", 5),
        ("!=", "future", "mean", 5),
    ],
)
def test_whole_numbers_without_listed_values_are_compared(relation, mask, use, N):
    draw = random.Random(N)
    queries, keys = draw.sample(WHOLE, 2)
    assert require_right(queries, keys, mask, relation, use, "softmax", N)


@pytest.mark.trials(1, 10)
def test_drawn_comparisons_of_whole_numbers(trials):
    draw = random.Random(7)
    for _ in range(trials):
        case = (
            draw.choice(WHOLE),
            draw.choice(WHOLE),
            draw.choice([*MASKS]),
            draw.choice([*COMPARE]),
        )
        assert require_right(*case, draw.choice([*USES][:4]), "softmax", draw.choice((1, 4, 9)))
        assert require_right(*case, draw.choice([*USES][:4]), "average-hard", 9)


@pytest.mark.parametrize(
    ("keys", "max_length", "message"),
    [
        (lambda x: (x == "a").count(), 300, "at most 256 values: .* 301 values"),
        (lambda x: (x == "a").prefix_mean(), 9, "must be whole, or one of them have listed"),
    ],
)
def test_numbers_of_too_many_values_are_not_compared(keys, max_length, message):
    @tf.program(alphabet="ab")
    def selection(x):
        many = x.position("n") + x.position("i")
        return many.select(keys(x), relation="<").any().tag()

    with pytest.raises(InvalidValue, match=message):
        tf.compile(selection, max_length=max_length, arithmetic="float64")


@pytest.mark.parametrize("relation", ["less", "=", None, 3])
def test_a_relation_has_a_name(relation):
    with pytest.raises(InvalidValue, match="must be one of == != < <= > >="):

        @tf.program(alphabet="ab")
        def selection(x):
            return x.select(x, relation=relation).any().tag()


def test_values_without_an_order_are_refused():
    with pytest.raises(InvalidValue, match="must have an order in Python; .*values .*; map them"):

        @tf.program(alphabet="ab")
        def selection(x):
            kinds = x.map({"a": 1, "b": ("b", 2)}, categories=True)
            return kinds.select(kinds, relation="<").any().tag()


def test_other_values_need_no_order():
    @tf.program(alphabet=[1, "a", (2, "b")])
    def changed(x):
        return x.select(x.predecessor(default=None), mask="future", relation="!=").any().tag()

    model = tf.compile(changed, max_length=5)
    for x in itertools.product((1, "a", (2, "b")), repeat=3):
        expected = [any(x[j - 1] != x[i] if j else True for j in range(i + 1)) for i in range(3)]
        assert model(x) == changed(x) == expected
    assert tf.certify(model).holds


def test_a_number_that_may_be_anywhere_is_not_matched_with_a_listed_one():
    """A mean of means may be arbitrarily close to a listed value without being equal to it."""

    @tf.program(alphabet="ab")
    def selection(x):
        mean = x.map({"a": 1, "b": -1}).prefix_mean().mean("future")
        return mean.select(x.map({"a": 1, "b": 0})).any().tag()

    with pytest.raises(InvalidValue, match="must be 0 or at least some known number"):
        tf.compile(selection, max_length=9)


def test_a_sum_of_keys_outlives_its_other_readers():
    """In an earlier version, the slot of the sum was used again before the head read it."""

    @tf.program(alphabet="ab")
    def selection(x):
        nothing = x.isin([]).count("strict-past") - x.isin([]).count("strict-past")
        before = (x != "b").count("strict-future") - x.isin("ab").count("strict-future")
        found = nothing.select(before % 2, mask="past", relation=">=")
        return found.any().accept(empty=False)

    model = tf.compile(selection, max_length=12, weighting="average-hard")
    assert all(model("ab"[k % 2] * n, "float32") for n in (1, 2, 12) for k in (0, 1))
