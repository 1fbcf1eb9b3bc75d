"""The language expresses every program of its design, each equal to a plain reference."""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

import transformist as tf
from transformist.programs import PROGRAMS

CASES = {}
"""By name: the reference in plain Python, and the length of the longest strings."""


def case(name, length):
    def keep(reference):
        CASES[name] = (reference, length)
        return reference

    return keep


def strings(alphabet, length):
    for n in range(length + 1):
        for x in itertools.product(alphabet, repeat=n):
            yield "".join(x) if all(isinstance(a, str) for a in alphabet) else x


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("fewer", [2, pytest.param(0, marks=pytest.mark.slow)])
def test_equals_its_reference_on_every_short_string(name, fewer):
    program, (reference, length) = PROGRAMS[name], CASES[name]
    for x in strings(program.alphabet, length - fewer):
        assert program(x) == reference(x), x


def test_none_is_left_out():
    assert set(CASES) == set(PROGRAMS)
    assert all(each.description for each in PROGRAMS.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_long_strings_are_no_trouble(name):
    program, (reference, _) = PROGRAMS[name], CASES[name]
    first, second, *_ = program.alphabet
    for x in ([first] * 1000 + [second] * 1000, [first, second] * 1000):
        given = "".join(x) if isinstance(first, str) else x
        assert program(given) == reference(given)


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


@case("dyck-1", 14)
def _(x):
    return balanced(x, ["()"])


@case("induction-most-recent", 8)
def _(x):
    answer = ""
    for i in range(len(x)):
        earlier = [j for j in range(i) if x[j] == x[i]]
        answer += x[max(earlier) + 1] if earlier else x[i]
    return answer


@case("histogram", 6)
def _(x):
    return [x.count(symbol) for symbol in x]


@case("reverse", 8)
def _(x):
    return x[::-1]


@case("majority", 13)
def _(x):
    return x.count("1") > x.count("0")


@case("fraction-of-previous", 10)
def _(x):
    return [Fraction(x[:i].count("a"), i) for i in range(1, len(x) + 1)]


@case("shuffle-dyck-2", 7)
def _(x):
    kept = ["".join(symbol for symbol in x if symbol in pair) for pair in ("()", "[]")]
    return balanced(kept[0], ["()"]) and balanced(kept[1], ["[]"])


@case("dyck-k-d", 8)
def _(x):
    return balanced(x, ["()", "[]"], depth=3)


@case("induction-most-frequent", 7)
def _(x):
    answer = ""
    for i in range(len(x)):
        followers = Counter(x[j + 1] for j in range(i) if x[j] == x[i])
        most = max(followers.values(), default=0)
        answer += min((s for s in followers if followers[s] == most), default=x[i])
    return answer


@case("double-histogram", 6)
def _(x):
    return [sum(x.count(other) == x.count(symbol) for other in set(x)) for symbol in x]


@case("palindrome", 11)
def _(x):
    return x == x[::-1]


@case("sort", 6)
def _(x):
    return sorted(x)


@case("most-frequent-token", 6)
def _(x):
    counts = Counter(x)
    best = min((s for s in counts if counts[s] == max(counts.values())), default="")
    return best * len(x)


@case("parity", 12)
def _(x):
    return x.count("1") % 2 == 1


@case("equal-abc", 9)
def _(x):
    n = len(x) // 3
    return x == "a" * n + "b" * n + "c" * n


@case("contains-abc", 7)
def _(x):
    return "abc" in x


@case("binary-increment", 11)
def _(x):
    return format((int(x, 2) + 1) % 2 ** len(x), f"0{len(x)}b") if x else ""


# Other ways to write two of them


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


@tf.program(alphabet="abc")
def induction_most_frequent(x):
    """The most frequent follower of the symbol so far, the smallest of several; itself for none."""
    matches = x.select(x.predecessor(default="none"), mask="future")
    shares = {symbol: matches.mean(x == symbol) for symbol in x.alphabet}
    best = shares["a"].max(shares["b"]).max(shares["c"])
    found = (shares["a"] == best).where("a", (shares["b"] == best).where("b", "c"))
    return matches.any().where(found, x).next_token()


@pytest.mark.parametrize(
    ("program", "name"),
    [(dyck_2_3, "dyck-k-d"), (induction_most_frequent, "induction-most-frequent")],
)
@pytest.mark.parametrize("fewer", [2, pytest.param(0, marks=pytest.mark.slow)])
def test_another_way(program, name, fewer):
    """With neighbours found again in each round; with means of what is selected, and maxima."""
    reference, length = CASES[name]
    for x in strings(program.alphabet, length - fewer):
        assert program(x) == reference(x), x


@pytest.mark.parametrize("program", [dyck_2_3, PROGRAMS["dyck-k-d"]])
def test_at_most_three_deep(program):
    assert program("([()])[]") and not program("([([])])")
