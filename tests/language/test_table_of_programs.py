"""The language expresses every program of its design, each equal to a plain reference."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

import transformist as tf
from transformist.programs import PROGRAMS

CASES = {}
"""By name: a program, its reference in plain Python, and the length of the longest strings."""


def case(program, length, name=None):
    def keep(reference):
        CASES[name or program.name] = (program, reference, length)
        return reference

    return keep


def strings(alphabet, length):
    for n in range(length + 1):
        for x in itertools.product(alphabet, repeat=n):
            yield "".join(x) if all(isinstance(a, str) for a in alphabet) else x


@pytest.mark.parametrize("name", CASES_NAMES := [
    "dyck-1", "induction-most-recent", "histogram", "reverse", "majority", "fraction-of-previous",
    "shuffle_dyck_2", "dyck_2_3", "induction_most_frequent", "double_histogram", "palindrome",
    "sort", "most_frequent_token", "parity", "abc_counts", "contains_abc", "increment",
])  # fmt: skip
@pytest.mark.parametrize("fewer", [2, pytest.param(0, marks=pytest.mark.slow)])
def test_equals_its_reference_on_every_short_string(name, fewer):
    program, reference, length = CASES[name]
    for x in strings(program.alphabet, length - fewer):
        assert program(x) == reference(x), x


def test_none_is_left_out():
    assert sorted(CASES) == sorted(CASES_NAMES)
    assert set(PROGRAMS) <= set(CASES)
    assert all(PROGRAMS[name] is CASES[name][0] for name in PROGRAMS)
    assert all(each.description for each in PROGRAMS.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_long_strings_are_no_trouble(name):
    program, reference, _ = CASES[name]
    first, second, *_ = program.alphabet
    for x in (first * 1000 + second * 1000, (first + second) * 1000):
        assert program(x) == reference(x)


def balanced(x, pairs, depth=None):
    closing, stack = dict(pairs), []
    for symbol in x:
        if symbol in closing:
            stack.append(symbol)
        elif not stack or closing[stack.pop()] != symbol:
            return False
        if depth is not None and len(stack) > depth:
            return False
    return not stack


@case(PROGRAMS["dyck-1"], 14, "dyck-1")
def _(x):
    return balanced(x, ["()"])


@case(PROGRAMS["induction-most-recent"], 8, "induction-most-recent")
def _(x):
    answer = ""
    for i in range(len(x)):
        earlier = [j for j in range(i) if x[j] == x[i]]
        answer += x[max(earlier) + 1] if earlier else x[i]
    return answer


@case(PROGRAMS["histogram"], 6, "histogram")
def _(x):
    return [x.count(symbol) for symbol in x]


@case(PROGRAMS["reverse"], 8, "reverse")
def _(x):
    return x[::-1]


@case(PROGRAMS["majority"], 13, "majority")
def _(x):
    return x.count("1") > x.count("0")


@case(PROGRAMS["fraction-of-previous"], 10, "fraction-of-previous")
def _(x):
    return [Fraction(x[:i].count("a"), i) for i in range(1, len(x) + 1)]


@tf.program(alphabet="()[]")
def shuffle_dyck_2(x):
    round_ = x.map({"(": 1, ")": -1, "[": 0, "]": 0}).prefix_mean()
    square = x.map({"(": 0, ")": 0, "[": 1, "]": -1}).prefix_mean()
    good = ((round_ >= 0) & (square >= 0)).all_so_far()
    return (good & (round_ == 0) & (square == 0)).accept()


@case(shuffle_dyck_2, 7)
def _(x):
    kept = ["".join(symbol for symbol in x if symbol in pair) for pair in ("()", "[]")]
    return balanced(kept[0], ["()"]) and balanced(kept[1], ["[]"])


@tf.program(alphabet="()[]")
def dyck_2_3(x):
    """Each round takes away the pairs that have nothing left between them."""
    partner = {"(": ")", "[": "]", ")": "(", "]": "["}
    left = x.isin("()[]")
    for _ in range(3):
        before = x.nearest_left(left, default="none")
        after = x.nearest_right(left, default="none")
        closed = x.isin("([") & (x.map(partner) == after)
        opened = x.isin(")]") & (x.map(partner) == before)
        left = left & ~(closed | opened)
    return (~left).all().accept()


@case(dyck_2_3, 8)
def _(x):
    return balanced(x, ["()", "[]"], depth=3)


def test_dyck_2_3_at_its_depth():
    assert dyck_2_3("([()])[]") and not dyck_2_3("([([])])")


@tf.program(alphabet="abc")
def induction_most_frequent(x):
    """The most frequent follower of the symbol so far, the smallest of several; itself for none."""
    matches = x.select(x.predecessor(default="none"), mask="future")
    shares = {symbol: matches.mean(x == symbol) for symbol in x.alphabet}
    best = shares["a"].max(shares["b"]).max(shares["c"])
    found = (shares["a"] == best).where("a", (shares["b"] == best).where("b", "c"))
    return matches.any().where(found, x).next_token()


@case(induction_most_frequent, 7)
def _(x):
    answer = ""
    for i in range(len(x)):
        followers = Counter(x[j + 1] for j in range(i) if x[j] == x[i])
        most = max(followers.values(), default=0)
        answer += min((s for s in followers if followers[s] == most), default=x[i])
    return answer


@tf.program(alphabet="abcd")
def double_histogram(x):
    """How many different symbols occur as often as the one here."""
    counts = [(x == symbol).count() for symbol in x.alphabet]
    own = sum((x == symbol) * count for symbol, count in zip(x.alphabet, counts, strict=True))
    return sum((count == own).where(1, 0) for count in counts).tag()


@case(double_histogram, 6)
def _(x):
    return [sum(x.count(other) == x.count(symbol) for other in set(x)) for symbol in x]


@tf.program(alphabet="ab")
def palindrome(x):
    mirrored = x.lookup(x.position("n") + 1 - x.position("i"), default="a")
    return (x == mirrored).all().accept()


@case(palindrome, 11)
def _(x):
    return x == x[::-1]


@tf.program(alphabet=[0, 1, 2, 3])
def sort(x):
    i = x.position("i")
    up_to = [(x.isin(range(value + 1))).count() for value in range(3)]
    rest = (i <= up_to[2]).where(2, 3)
    return (i <= up_to[0]).where(0, (i <= up_to[1]).where(1, rest)).tag()


@case(sort, 6)
def _(x):
    return sorted(x)


@tf.program(alphabet="abcd")
def most_frequent_token(x):
    """The smallest of them; a for the empty string."""
    a, b, c, d = ((x == symbol).mean() for symbol in x.alphabet)
    best = a.max(b).max(c).max(d)
    found = (a == best).where("a", (b == best).where("b", (c == best).where("c", "d")))
    return found.tag()


@case(most_frequent_token, 6)
def _(x):
    counts = Counter(x)
    best = min((s for s in counts if counts[s] == max(counts.values())), default="")
    return best * len(x)


@tf.program(alphabet="01")
def parity(x):
    ones = (x == "1").count()
    return (x.position("(-1)^i").lookup(ones, default=1) < 0).accept()


@case(parity, 12)
def _(x):
    return x.count("1") % 2 == 1


@tf.program(alphabet="abc")
def abc_counts(x):
    """aⁿbⁿcⁿ."""
    a, b, c = ((x == symbol).mean() for symbol in x.alphabet)
    disorder = ((x == "a") & x.isin("bc").any_so_far()) | ((x == "b") & (x == "c").any_so_far())
    return ((a == b) & (b == c) & ~disorder.any()).accept()


@case(abc_counts, 9)
def _(x):
    n = len(x) // 3
    return x == "a" * n + "b" * n + "c" * n


@tf.program(alphabet="abcd")
def contains_abc(x):
    is_a, is_b, is_c = (x == symbol for symbol in "abc")
    return ((is_a.predecessor() & is_b).predecessor() & is_c).any().accept()


@case(contains_abc, 7)
def _(x):
    return "abc" in x


@tf.program(alphabet="01")
def increment(x):
    """The number plus 1 modulo 2ⁿ, the most significant bit first."""
    flips = ~(x == "0").any(mask="strict-past")
    flipped = x.map({"0": "1", "1": "0"})
    return flips.where(flipped, x).tag()


@case(increment, 11)
def _(x):
    return format((int(x, 2) + 1) % 2 ** len(x), f"0{len(x)}b") if x else ""
