"""Programs of RASP's literature, each with its meaning in plain Python.

Names and meanings are those of the RASP paper, of tracr's library and its tests, of TracrBench, and
of RASP-L and C-RASP; programs and references are written here. A reference takes a string, or a
list of symbols, and shares no code with its program.
"""

import functools
import itertools
import math
import operator
from collections import Counter
from fractions import Fraction

import transformist as tf

CASES = {}
"""By name: the program, and its reference."""

BITS = (0, 1)
DIGITS = (0, 1, 2, 3)
SIGNED = (-2, -1, 0, 1, 2)


def case(name, alphabet, reference):
    def keep(body):
        assert name not in CASES
        CASES[name] = tf.program(alphabet=alphabet)(body), reference

    return keep


def per_position(function):
    """The reference that gives the value of a function at each position, from 0."""
    return lambda x: [function(x, i) for i in range(len(x))]


def per_symbol(function):
    return lambda x: [function(symbol) for symbol in x]


def text(reference):
    return lambda x: "".join(reference(x))


def before(x, i, k=1, default=0):
    return x[i - k] if i >= k else default


def own_count(x, mask="none"):
    """How often the symbol here occurs, in the language."""
    counts = ((x == symbol) * (x == symbol).count(mask) for symbol in x.alphabet)
    return functools.reduce(operator.add, counts)


def numbers(x):
    return x.map(lambda value: value)


# The library of tracr, and its tests


@case("identity", "abc", lambda x: x)
def _(x):
    return x.tag()


@case("length", "ab", lambda x: [len(x)] * len(x))
def _(x):
    return x.position("n").tag()


@case("length-by-counting", "ab", lambda x: [len(x)] * len(x))
def _(x):
    return x.isin("ab").count().tag()


@case("frac-prevs", "xyz", per_position(lambda x, i: Fraction(x[: i + 1].count("x"), i + 1)))
def _(x):
    return (x == "x").prefix_mean().tag()


@case("frac-prevs-of-a-bracket", "abc()", per_position(
    lambda x, i: Fraction(x[: i + 1].count(")"), i + 1)
))  # fmt: skip
def _(x):
    return (x == ")").prefix_mean().tag()


@case("selector-width-before", "abcd", per_position(lambda x, i: i + 1))
def _(x):
    return x.isin(x.alphabet).count("future").tag()


@case("hist", "abcd", lambda x: [x.count(symbol) for symbol in x])
def _(x):
    return own_count(x).tag()


@case("count", "abc", lambda x: [x.count("a")] * len(x))
def _(x):
    return (x == "a").count().tag()


@case("count-less-freq", "abcd", lambda x: [sum(x.count(s) <= 2 for s in x)] * len(x))
def _(x):
    """The number of positions whose symbol occurs at most twice."""
    counts = [(x == symbol).count() for symbol in x.alphabet]
    return functools.reduce(operator.add, [(c <= 2) * c for c in counts]).tag()


@case("reverse", "abc", lambda x: x[::-1])
def _(x):
    return x.lookup(x.position("n") + 1 - x.position(), default="a").tag()


@case("sort-unique", DIGITS, sorted)
def _(x):
    passed = [(x.position() > x.isin(range(v + 1)).count()).where(1, 0) for v in DIGITS[:-1]]
    return functools.reduce(operator.add, passed).tag()


@case("sort-descending", DIGITS, lambda x: sorted(x, reverse=True))
def _(x):
    passed = [(x.position() > x.isin(range(v, 4)).count()).where(1, 0) for v in DIGITS[1:]]
    return (3 - functools.reduce(operator.add, passed)).tag()


@case(
    "sort-by-key",
    "abc",
    text(lambda x: sorted(x, key={"b": 0, "c": 1, "a": 2}.get)),
)
def _(x):
    is_b = x.position() <= (x == "b").count()
    is_b_or_c = x.position() <= x.isin("bc").count()
    return is_b.where("b", is_b_or_c.where("c", "a")).tag()


@case(
    "pair-balance",
    "()",
    per_position(lambda x, i: Fraction(x[: i + 1].count("(") - x[: i + 1].count(")"), i + 1)),
)
def _(x):
    return x.map({"(": 1, ")": -1}).prefix_mean().tag()


def is_balanced(x, pairs, depth=99):
    closing, stack = dict(pairs), []
    for symbol in x:
        if symbol in closing:
            stack.append(closing[symbol])
        elif not stack or stack.pop() != symbol:
            return False
        if len(stack) > depth:
            return False
    return not stack


def is_shuffle(x, pairs):
    return all(is_balanced([s for s in x if s in pair], [pair]) for pair in pairs)


def shuffled(x, pairs):
    """Each kind of bracket well nested on its own."""
    well = []
    for left, right in pairs:
        balance = x.map(lambda a, left=left, right=right: (a == left) - (a == right)).prefix_mean()
        well.append((balance == 0) & (balance >= 0).all_so_far())
    return functools.reduce(operator.and_, well).accept(empty=True)


@case("shuffle-dyck-1", "()", lambda x: is_shuffle(x, ["()"]))
def _(x):
    return shuffled(x, ["()"])


@case("shuffle-dyck-2", "()[]", lambda x: is_shuffle(x, ["()", "[]"]))
def _(x):
    return shuffled(x, ["()", "[]"])


@case("shuffle-dyck-3", "()[]{}", lambda x: is_shuffle(x, ["()", "[]", "{}"]))
def _(x):
    return shuffled(x, ["()", "[]", "{}"])


@case(
    "pair-balance-among-others",
    "ab()",
    per_position(lambda x, i: Fraction(x[: i + 1].count("(") - x[: i + 1].count(")"), i + 1)),
)
def _(x):
    return ((x == "(").prefix_mean() - (x == ")").prefix_mean()).tag()


@case("detect-pattern-a", "abcd", per_symbol(lambda symbol: symbol == "a"))
def _(x):
    return (x == "a").tag()


@case("detect-pattern-ab", "ab", per_position(lambda x, i: x[max(0, i - 1) : i + 1] == "ab"))
def _(x):
    return ((x == "b") & (x == "a").predecessor()).tag()


@case("detect-pattern-abc", "abc", per_position(lambda x, i: x[max(0, i - 2) : i + 1] == "abc"))
def _(x):
    found = x == "c"
    for k, symbol in ((1, "b"), (2, "a")):
        found = found & (x.predecessor(k, default="none") == symbol)
    return found.tag()


@case("map", DIGITS, per_symbol(lambda v: 3 * v * v - v + 1))
def _(x):
    return x.map(lambda v: 3 * v * v - v + 1).tag()


@case("sequence-map", DIGITS, per_position(lambda x, i: x[i] * before(x, i, default=1)))
def _(x):
    return x.table(x.predecessor(default=1), values=operator.mul).tag()


@case("linear-sequence-map", DIGITS, per_position(lambda x, i: 2 * x[i] - 3 * before(x, i)))
def _(x):
    return (2 * numbers(x) - 3 * numbers(x).predecessor()).tag()


@case(
    "nary-sequence-map",
    DIGITS,
    per_position(lambda x, i: (x[i] + before(x, i) + before(x, i, 2)) % 3 == 0),
)
def _(x):
    one, two = x.predecessor(default=0), x.predecessor(2, default=0)
    return x.table(one, two, values=lambda a, b, c: (a + b + c) % 3 == 0).tag()


@case("nary-sequence-map-1", (1, 2, 3), per_position(lambda x, i: x[i] + x[i] - i))
def _(x):
    return (numbers(x) + numbers(x) - (x.position() - 1)).tag()


@case("nary-sequence-map-2", (1, 2, 3), per_position(lambda x, i: Fraction(i * i, x[i])))
def _(x):
    square = x.position("i^2") - 2 * x.position() + 1
    parts = [(x == v) * (square * Fraction(1, v)) for v in x.alphabet]
    return functools.reduce(operator.add, parts).tag()


@case("aggregate-of-indices", "ab", per_position(lambda x, i: Fraction(len(x) - 1, 2)))
def _(x):
    return (x.position() - 1).mean().tag()


@case("width-of-smaller", DIGITS, per_position(lambda x, i: sum(v < x[i] for v in x)))
def _(x):
    parts = [(x == v) * x.isin(range(v)).count() for v in DIGITS[1:]]
    return functools.reduce(operator.add, parts).tag()


@case("selector-and", "abc", per_position(lambda x, i: x[:i].count(x[i])))
def _(x):
    return own_count(x, "strict-future").tag()


@case("selector-not", "abc", per_position(lambda x, i: len(x) - x.count(x[i])))
def _(x):
    return (x.position("n") - own_count(x)).tag()


@case("aggregate-mean", DIGITS, per_position(lambda x, _: Fraction(sum(x), len(x))))
def _(x):
    return numbers(x).mean().tag()


def mean_of_others(x):
    """The mean of j − 2, or of j where that is 0, over the positions j from 0."""
    return Fraction(sum(j - 2 or j for j in range(len(x))), max(len(x), 1))


@case("ov-test-case-1", DIGITS, lambda x: [mean_of_others(x)] * len(x))
def _(x):
    # The selector compares "x > 1 is less than False", which is false everywhere, with itself by ≤.
    # So it matches all positions.
    return (x.position() - 3).map(lambda v: v or 2).mean().tag()


@case("ov-test-case-2", DIGITS, lambda x: [0] * len(x))
def _(x):
    # The differences w − w are 0 at every position, so their mean over any selection is 0. The
    # selector of the original compares two numbers by ≠, which is refused here.
    width = sum((x == v) * x.isin(range(v)).count() for v in x.alphabet)
    return (width - width).mean().tag()


@case("token-at-index", "abc", lambda x: (x[2:3] or "-") * len(x))
def _(x):
    return x.lookup(3, default="-").tag()


@case("shift-by-one", "abcd", text(per_position(lambda x, i: before(x, i, 1, "-"))))
def _(x):
    return x.predecessor(default="-").tag()


@case("shift-by-two", "abc", text(per_position(lambda x, i: before(x, i, 2, "-"))))
def _(x):
    return x.predecessor(2, default="-").tag()


# The RASP paper


@case("double-histogram", "abc", lambda x: [
    sum(x.count(b) == x.count(a) for b in set(x)) for a in x
])  # fmt: skip
def _(x):
    counts = [(x == symbol).count() for symbol in x.alphabet]
    own = own_count(x)
    return functools.reduce(operator.add, [(c == own).where(1, 0) for c in counts]).tag()


@case("most-frequent", "abc", lambda x: max("abc", key=x.count) * len(x))
def _(x):
    a, b, c = [(x == symbol).count() for symbol in x.alphabet]
    return ((a >= b) & (a >= c)).where("a", (b >= c).where("b", "c")).tag()


def prefixes(x, is_good):
    """T where a prefix is well nested, P where it can become so, F elsewhere."""
    tags = ""
    for i in range(1, len(x) + 1):
        endings = ("".join(e) for k in range(i + 1) for e in itertools.product(")", repeat=k))
        tags += "T" if is_good(x[:i]) else "P" if any(is_good(x[:i] + e) for e in endings) else "F"
    return tags


@case("dyck-1-ptf", "()", lambda x: prefixes(x, lambda w: is_balanced(w, ["()"])))
def _(x):
    balance = x.map({"(": 1, ")": -1}).prefix_mean()
    is_never_below = (balance >= 0).all_so_far()
    tags = {(True, True): "T", (True, False): "P", (False, True): "F", (False, False): "F"}
    return is_never_below.table(balance == 0, values=tags).tag()


def nested(x, pairs, depth):
    """Each round takes away the neighbouring pairs of what is left."""
    closing = dict(pairs)
    partner = closing | {right: left for left, right in pairs}
    left = x.isin(x.alphabet)
    for _ in range(depth):
        earlier = x.nearest_left(left, default="none")
        later = x.nearest_right(left, default="none")
        closed = x.isin(closing) & (x.map(partner) == later)
        opened = ~x.isin(closing) & (x.map(partner) == earlier)
        left = left & ~(closed | opened)
    return (~left).all().accept()


@case("dyck-2-of-depth-3", "()[]", lambda x: is_balanced(x, ["()", "[]"], 3))
def _(x):
    return nested(x, ["()", "[]"], 3)


@case("dyck-3-of-depth-2", "()[]{}", lambda x: is_balanced(x, ["()", "[]", "{}"], 2))
def _(x):
    return nested(x, ["()", "[]", "{}"], 2)


# TracrBench


@case("absolute", SIGNED, per_symbol(abs))
def _(x):
    return x.map(abs).tag()


@case("sign", SIGNED, per_symbol(lambda v: (v > 0) - (v < 0)))
def _(x):
    return numbers(x).clip(-1, 1).tag()


@case("threshold", DIGITS, per_symbol(lambda v: v >= 2))
def _(x):
    return (numbers(x) >= 2).tag()


@case("is-square", (1, 2, 4, 9, 10), per_symbol(lambda v: v in (1, 4, 9)))
def _(x):
    return x.map(lambda v: round(v**0.5) ** 2 == v).tag()


@case("pairwise-sum", DIGITS, per_position(lambda x, i: x[i] + before(x, i)))
def _(x):
    return (numbers(x) + numbers(x).predecessor()).tag()


@case("difference", DIGITS, per_position(lambda x, i: abs(x[i] - before(x, i, default=x[0]))))
def _(x):
    change = numbers(x) - numbers(x).predecessor()
    return ((x.position() > 1) * change.abs()).tag()


@case("larger-of-two", DIGITS, per_position(lambda x, i: max(x[i], before(x, i))))
def _(x):
    return numbers(x).max(numbers(x).predecessor()).tag()


@case("mirrored-sum", DIGITS, lambda x: [a + b for a, b in zip(x, x[::-1], strict=True)])
def _(x):
    return (numbers(x) + numbers(x).lookup(x.position("n") + 1 - x.position())).tag()


@case("alternate-elements", "abc", text(per_position(lambda x, i: "-" if i % 2 else x[i])))
def _(x):
    return (x.position("(-1)^i") < 0).where(x, "-").tag()


@case("first-element", "abc", lambda x: x[:1] * len(x))
def _(x):
    return x.first(default="-").tag()


@case("last-element", "abc", lambda x: x[-1:] * len(x))
def _(x):
    return x.last(default="-").tag()


@case("swap-first-last", "abc", lambda x: x[-1] + x[1:-1] + x[0] if len(x) > 1 else x)
def _(x):
    first, last = x.first(default="-"), x.last(default="-")
    is_first, is_last = x.position() == 1, x.position() == x.position("n")
    return is_first.where(last, is_last.where(first, x)).tag()


@case("rotate-left", "abc", lambda x: x[1:] + x[:1])
def _(x):
    is_last = x.position() == x.position("n")
    return is_last.where(x.first(default="-"), x.successor(default="-")).tag()


@case("swap-pairs", "abc", lambda x: "".join(
    x[k : k + 2][::-1] for k in range(0, len(x), 2)
))  # fmt: skip
def _(x):
    after, is_last = x.successor(default="-"), x.position() == x.position("n")
    is_odd = x.position("(-1)^i") < 0
    return is_odd.where(is_last.where(x, after), x.predecessor(default="-")).tag()


@case("is-increasing", DIGITS, lambda x: list(x) == sorted(x))
def _(x):
    return (numbers(x) >= numbers(x).predecessor()).all().accept()


@case("is-palindrome", "abc", lambda x: x == x[::-1])
def _(x):
    return (x == x.lookup(x.position("n") + 1 - x.position(), default="a")).all().accept()


@case("is-constant", "abc", lambda x: len(set(x)) <= 1)
def _(x):
    return (x == x.first(default="-")).all().accept()


@case("is-alternating", "ab", lambda x: "aa" not in x and "bb" not in x)
def _(x):
    return (x != x.predecessor(default="-")).all().accept()


@case("maximum", DIGITS, lambda x: [max(x)] * len(x) if x else [])
def _(x):
    return functools.reduce(
        operator.add, [x.isin(range(v, 4)).any().where(1, 0) for v in DIGITS[1:]]
    ).tag()


@case("maximum-so-far", DIGITS, per_position(lambda x, i: max(x[: i + 1])))
def _(x):
    return functools.reduce(
        operator.add, [x.isin(range(v, 4)).any_so_far().where(1, 0) for v in DIGITS[1:]]
    ).tag()


@case("range", DIGITS, lambda x: [max(x) - min(x)] * len(x) if x else [])
def _(x):
    above = [x.isin(range(v, 4)).any().where(1, 0) for v in DIGITS[1:]]
    below = [x.isin(range(v)).any().where(1, 0) for v in DIGITS[1:]]
    return (functools.reduce(operator.add, [*above, *below]) - 3).tag()


@case("median", DIGITS, lambda x: [sorted(x)[(len(x) - 1) // 2]] * len(x) if x else [])
def _(x):
    """The lower one: the least v such that at least half are at most v."""
    above = [(x.isin(range(v)).mean() < "1/2").where(1, 0) for v in DIGITS[1:]]
    return functools.reduce(operator.add, above).tag()


@case("count-vowels", "abe", lambda x: [sum(x.count(vowel) for vowel in "ae")] * len(x))
def _(x):
    return x.isin("aeiou").count().tag()


@case("count-bigrams", "abc", lambda x: [
    sum(x[k : k + 2] == "ab" for k in range(len(x)))
] * len(x))  # fmt: skip
def _(x):
    return ((x == "b") & (x == "a").predecessor()).count().tag()


@case("first-occurrence", "abc", per_position(lambda x, i: x[i] not in x[:i]))
def _(x):
    return (~x.select(x, mask="strict-future").any()).tag()


@case("last-occurrence", "abc", per_position(lambda x, i: x[i] not in x[i + 1 :]))
def _(x):
    return (~x.select(x, mask="strict-past").any()).tag()


@case("distinct-symbols", "abcd", lambda x: [len(set(x))] * len(x))
def _(x):
    return (~x.select(x, mask="strict-future").any()).count().tag()


@case("number-of-runs", "ab", lambda x: [len(list(itertools.groupby(x)))] * len(x))
def _(x):
    return (x != x.predecessor(default="-")).count().tag()


@case(
    "triplets", "ab", per_position(lambda x, i: f"{before(x, i, 1, '-')}{x[i]}{(x + '-')[i + 1]}")
)
def _(x):
    earlier, later = x.predecessor(default="-"), x.successor(default="-")
    return x.table(earlier, later, values=lambda b, a, c: f"{a}{b}{c}").tag()


@case("leave-first-three", "abc", lambda x: x[:3] + "-" * len(x[3:]))
def _(x):
    return (x.position() <= 3).where(x, "-").tag()


@case("replace-by-previous", "abc", text(per_position(
    lambda x, i: before(x, i, 1, "-") if x[i] == "b" else x[i]
)))  # fmt: skip
def _(x):
    return (x == "b").where(x.predecessor(default="-"), x).tag()


@case("is-frequent", "abc", per_position(lambda x, i: 2 * x.count(x[i]) > len(x)))
def _(x):
    return (2 * own_count(x) > x.position("n")).tag()


@case("xor-with-previous", BITS, per_position(lambda x, i: x[i] ^ before(x, i)))
def _(x):
    return x.table(x.predecessor(default=0), values=operator.xor).tag()


@case("parity-so-far", BITS, per_position(lambda x, i: sum(x[: i + 1]) % 2))
def _(x):
    ones = (x == 1).count("future")
    return (x.position("(-1)^i").lookup(ones, default=1) < 0).where(1, 0).tag()


@case(
    "remove-outliers",
    DIGITS,
    per_position(lambda x, i: x[i] if x[i] * len(x) <= 2 * sum(x) else -1),
)
def _(x):
    is_small = numbers(x) <= 2 * numbers(x).mean()
    return is_small.where(numbers(x), -1).tag()


# RASP-L and C-RASP


@case("majority", BITS, lambda x: 2 * sum(x) > len(x))
def _(x):
    return ((x == 1).mean() > "1/2").accept()


@case("majority-so-far", BITS, per_position(lambda x, i: 2 * sum(x[: i + 1]) > i + 1))
def _(x):
    return ((x == 1).prefix_mean() > "1/2").tag()


@case("at-least-three", "ab", lambda x: x.count("a") >= 3)
def _(x):
    return ((x == "a").count() >= 3).accept()


@case("exactly-two", "ab", lambda x: x.count("a") == 2)
def _(x):
    return ((x == "a").count() == 2).accept()


@case("equal-counts", "abc", lambda x: x.count("a") == x.count("b") == x.count("c"))
def _(x):
    a, b, c = [(x == symbol).count() for symbol in x.alphabet]
    return ((a == b) & (b == c)).accept()


@case("first-is-last", "abc", lambda x: bool(x) and x[0] == x[-1])
def _(x):
    return (x == x.first(default="-")).accept(empty=False)


@case("a-before-b", "ab", lambda x: "ba" not in x)
def _(x):
    return (~((x == "a") & (x == "b").any_so_far())).all().accept()


@case("subsequence-abc", "abc", lambda x: any(
    picked == ("a", "b", "c") for picked in itertools.combinations(x, 3)
))  # fmt: skip
def _(x):
    ab = (x == "b") & (x == "a").any_so_far()
    return ((x == "c") & ab.any_so_far()).any().accept()


@case("even-length-of-a", "ab", lambda x: set(x) <= {"a"} and len(x) % 2 == 0)
def _(x):
    is_even = x.position("(-1)^i") > 0
    return ((x == "a").all() & is_even).accept(empty=True)


@case("tomita-2", BITS, lambda x: list(x) == [1, 0] * (len(x) // 2))
def _(x):
    is_odd = x.position("(-1)^i") < 0
    return (((x == 1) == is_odd).all() & (x == 0)).accept(empty=True)


@case("tomita-4", BITS, lambda x: not any(list(x[k : k + 3]) == [0] * 3 for k in range(len(x))))
def _(x):
    zero = x == 0
    return (~(zero & zero.predecessor() & zero.predecessor(2)).any()).accept()


@case("tomita-5", BITS, lambda x: sum(x) % 2 == 0 and len(x) % 2 == 0)
def _(x):
    sign = x.position("(-1)^i")
    evens = [sign.lookup((x == bit).count(), default=1) > 0 for bit in BITS]
    return (evens[0] & evens[1]).accept()


@case("tomita-7", BITS, lambda x: len([k for k, _ in itertools.groupby([0, *x])]) <= 4)
def _(x):
    changes = (numbers(x) != numbers(x).predecessor()).count()
    return (changes <= 3).accept()


@case("counting-up", DIGITS, per_position(lambda x, i: i == 0 or x[i] == (x[i - 1] + 1) % 4))
def _(x):
    follows = x.predecessor(default="none").map(
        lambda v: "none" if v == "none" else str((v + 1) % 4)
    )
    return ((follows == "none") | (follows == x.map(str))).tag()


@case("induction", "abc", text(per_position(
    lambda x, i: next((x[j + 1] for j in reversed(range(i)) if x[j] == x[i]), "-")
)))  # fmt: skip
def _(x):
    previous = x.predecessor(default="none")
    return x.select(previous, mask="future").rightmost(x, default="-").tag()


@case("mode-of-prefix", "ab", text(per_position(
    lambda x, i: max("ab", key=Counter(x[: i + 1]).__getitem__)
)))  # fmt: skip
def _(x):
    return ((x == "a").prefix_mean() >= "1/2").where("a", "b").tag()


@case("copy-of-the-first-two", "abc", lambda x: "".join(x[k % 2] for k in range(len(x))))
def _(x):
    is_odd = x.position("(-1)^i") < 0
    return is_odd.where(x.lookup(1, default="-"), x.lookup(2, default="-")).tag()


# Whole numbers as keys, and functions of them


def permuted(x, rank):
    """The symbols in the order of their ranks, which are 0 to n − 1, each once."""
    return (x.position() - 1).select(rank).rightmost(x, default=x.alphabet[0])


def of_own(x, values):
    """The value that belongs to the symbol here, from a value for each symbol."""
    return functools.reduce(operator.add, [(x == c) * value for c, value in values.items()])


@case("sort-by-permutation", DIGITS, sorted)
def _(x):
    smaller = {v: x.isin(range(v)).count() for v in DIGITS}
    return permuted(x, of_own(x, smaller) + own_count(x, "strict-future")).tag()


@case("sort-by-position-descending", "abcd", lambda x: x[::-1])
def _(x):
    return permuted(x, x.position("n") - x.position()).tag()


@case("sort-freq", "abc", text(lambda x: sorted(x, key=lambda symbol: -x.count(symbol))))
def _(x):
    """As often as they occur, the most frequent first; equal ones stay in their order."""
    total = {c: (x == c).count() for c in x.alphabet}
    so_far = {c: (x == c).count("strict-future") for c in x.alphabet}
    rank = {}
    for c in x.alphabet:
        parts = [(total[d] > total[c]) * total[d] for d in x.alphabet if d != c]
        parts += [(total[d] == total[c]) * so_far[d] for d in x.alphabet if d != c]
        rank[c] = functools.reduce(operator.add, parts) + so_far[c]
    return permuted(x, of_own(x, rank)).tag()


def well_nested(x, pairs):
    """Each closing bracket closes the last open one of its depth, which is of its kind."""
    closing = dict(pairs)
    opens = x.isin(closing)
    depth = opens.count("future") - (~opens).count("future")
    level = depth + (~opens).where(1, 0)
    partner = level.select(opens.where(level, 0), mask="strict-future").rightmost(x, default="-")
    fits = x.table(partner, values=lambda right, left: closing.get(left) == right)
    return ((opens | fits).all() & (depth >= 0).all() & (depth == 0)).accept(empty=True)


@case("dyck-2", "()[]", lambda x: is_balanced(x, ["()", "[]"]))
def _(x):
    return well_nested(x, ["()", "[]"])


@case("dyck-3", "()[]{}", lambda x: is_balanced(x, ["()", "[]", "{}"]))
def _(x):
    return well_nested(x, ["()", "[]", "{}"])


@case("tomita-6", BITS, lambda x: (2 * sum(x) - len(x)) % 3 == 0)
def _(x):
    return (((x == 1).count() - (x == 0).count()) % 3 == 0).accept()


@case("every-third", "abc", text(per_position(lambda x, i: x[i] if i % 3 == 2 else "-")))
def _(x):
    return (x.position() % 3 == 0).where(x, "-").tag()


@case("shift-by-position", DIGITS, per_position(lambda x, i: (x[i] + i) % 4))
def _(x):
    return x.table((x.position() - 1) % 4, values=lambda v, i: (v + i) % 4).tag()


@case("repeat-each-twice", "abc", lambda x: "".join(a + a for a in x)[: len(x)])
def _(x):
    return x.lookup((x.position() + 1) // 2, default="-").tag()


@case("is-doubled", "ab", lambda x: x[: len(x) // 2] * 2 == x)
def _(x):
    n, i = x.position("n"), x.position()
    is_late = i > n // 2
    is_same = x == x.lookup(i + n // 2, default="-")
    return ((is_late | is_same).all() & (n % 2 == 0)).accept(empty=True)


@case("digit-sum", DIGITS[:3], lambda x: [sum(x) % 5] * len(x))
def _(x):
    ones, twos = [(x == v).count() % 5 for v in (1, 2)]
    return ones.table(twos, values=lambda a, b: (a + 2 * b) % 5).tag()


@case("root-of-a-count", "ab", per_position(lambda x, i: int(x[: i + 1].count("a") ** 0.5)))
def _(x):
    return (x == "a").count("future").map(math.isqrt).tag()


@case("is-prime-position", "ab", per_position(
    lambda x, i: i > 0 and all((i + 1) % k for k in range(2, i + 1))
))  # fmt: skip
def _(x):
    return x.position().map(lambda i: [k for k in range(1, i + 1) if i % k == 0] == [1, i]).tag()
