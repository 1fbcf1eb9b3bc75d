"""What each program computes, from its definition, and the strings it is most likely to fail on."""

import itertools
import random
from collections import Counter
from fractions import Fraction

ALPHABETS = {
    "dyck-1": "()",
    "induction-most-recent": "abc",
    "histogram": "abcd",
    "reverse": "abc",
    "majority": "01",
    "fraction-of-previous": "ab",
}

HARD = ("average-hard", "rightmost-hard")

WEIGHTINGS = {
    "dyck-1": ("softmax", "average-hard"),
    "induction-most-recent": ("softmax", *HARD),
    "histogram": ("softmax", "average-hard"),
    "reverse": ("softmax", *HARD),
    "majority": ("softmax", "average-hard"),
    "fraction-of-previous": ("softmax", "average-hard"),
}
"""Those that a program can be compiled to: rightmost-hard has no mean."""

CASES = [(name, weighting) for name, admitted in WEIGHTINGS.items() for weighting in admitted]


def arithmetics(weighting):
    return ("float32", "float64") if weighting == "softmax" else ("float32", "exact")


# References


def is_balanced(x):
    depth = 0
    for bracket in x:
        depth += 1 if bracket == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def after_the_last(x):
    last, answer = {}, ""
    for i, symbol in enumerate(x):
        answer += x[last[symbol] + 1] if symbol in last else symbol
        last[symbol] = i
    return answer


def occurrences(x):
    counts = Counter(x)
    return [counts[symbol] for symbol in x]


def backwards(x):
    return x[::-1]


def has_more_ones(x):
    counts = Counter(x)
    return counts["1"] > counts["0"]


def fractions_of_a(x):
    totals = itertools.accumulate(int(symbol == "a") for symbol in x)
    return [Fraction(total, i) for i, total in enumerate(totals, start=1)]


REFERENCES = {
    "dyck-1": is_balanced,
    "induction-most-recent": after_the_last,
    "histogram": occurrences,
    "reverse": backwards,
    "majority": has_more_ones,
    "fraction-of-previous": fractions_of_a,
}


# Strings


def every_string(alphabet, length):
    """Every string of at most this length."""
    return [x for n in range(length + 1) for x in every_string_of(alphabet, n)]


def every_string_of(alphabet, n):
    return ["".join(x) for x in itertools.product(alphabet, repeat=n)]


def hard_strings(name, N, drawn=6):
    """Constant, short, near-miss and drawn strings, of lengths 0 to N."""
    alphabet = ALPHABETS[name]
    source = random.Random(f"{name} {N}")
    found = [*_constants(alphabet, N), *_nine_to_twelve(alphabet, N, source)]
    found += NEAR_MISSES[name](N, source)
    for n in sorted({1, 2, 3, 7, 12, N // 3, N // 2, N - 1, N}):
        found += ["".join(source.choices(alphabet, k=n)) for _ in range(drawn)]
    return list(dict.fromkeys(x for x in found if len(x) <= N))


def _constants(alphabet, N):
    return [symbol * n for symbol in alphabet for n in (*range(13), N - 1, N)]


def _nine_to_twelve(alphabet, N, source):
    """Counts 9 to 12 of one symbol: in front, at the end, and among the others."""
    for symbol, count in itertools.product(alphabet, range(9, 13)):
        for n in {13, N // 2, N}:
            others = source.choices(alphabet.replace(symbol, ""), k=max(n - count, 0))
            yield symbol * count + "".join(others)
            yield "".join(others) + symbol * count
            mixed = [*symbol * count, *others]
            source.shuffle(mixed)
            yield "".join(mixed)


def _brackets(N, source):
    """Balanced strings; one bracket turned; two swapped; `)(` in front; a dip and back."""
    for n in {2, 4, 12, N // 2, N - 1, N}:
        pairs = n // 2
        nested, flat, walk = "(" * pairs + ")" * pairs, "()" * pairs, _walk(pairs, source)
        for x in (nested, flat, walk):
            yield x
            place = source.randrange(len(x))
            yield x[:place] + {"(": ")", ")": "("}[x[place]] + x[place + 1 :]
            first, second = sorted(source.sample(range(len(x)), 2))
            yield x[:first] + x[second] + x[first + 1 : second] + x[first] + x[second + 1 :]
            yield ")(" + x[:-2]
            yield x[2:] + ")("
            yield x[:pairs] + ")(" + x[pairs:]
            yield x[:-1]
            yield x[1:]
        half = "()" * (pairs // 2)
        yield half + ")(" + half
        yield nested[1:] + "("


def _walk(pairs, source):
    depth, x = 0, ""
    for left in range(2 * pairs, 0, -1):
        opens = depth == 0 or (depth < left and source.random() < 0.5)
        x += "(" if opens else ")"
        depth += 1 if opens else -1
    return x


def _ties(N, source):
    """Ties and ties but one, in blocks, alternating, and shuffled."""
    for n in {1, 2, 3, 12, N // 2, N - 1, N}:
        for ones in {n // 2 - 1, n // 2, n // 2 + 1, (n + 1) // 2} & set(range(n + 1)):
            x = "1" * ones + "0" * (n - ones)
            yield x
            yield x[::-1]
            yield "".join(source.sample(x, n))
        yield ("01" * n)[:n]
        yield ("10" * n)[:n]


def _far_apart(N, source):
    """The same symbol at both ends, early twice, and one before the last."""
    for n in {4, 12, N // 2, N}:
        for a, b, c in itertools.permutations("abc"):
            yield a + b * (n - 2) + a
            yield a + b + c * (n - 3) + a
            yield a + b * (n - 4) + a + c + a
            yield (a + b) * ((n - 3) // 2) + a + c + a


def _one_other(N, source):
    """One symbol among others that are all the same, at each end and in between."""
    for n in {2, 12, N // 2, N}:
        for place in {0, 1, n // 2 - 1, n // 2, n - 2, n - 1}:
            for a, b in (("a", "b"), ("b", "c"), ("c", "a")):
                yield a * place + b + a * (n - 1 - place)


def _prefixes(N, source):
    """One a or one b at each end; as many of each."""
    for n in {2, 12, N // 2, N}:
        for a, b in ("ab", "ba"):
            yield a + b * (n - 1)
            yield a * (n - 1) + b
            yield a * (n // 2) + b * (n // 2)
            yield (a + b) * (n // 2)


def _levels(N, source):
    """As many of each symbol; each but one; all but one the same."""
    for n in {4, 12, N // 2, N}:
        yield ("abcd" * n)[:n]
        yield "".join(symbol * (n // 4) for symbol in "dcba")
        yield "".join(source.sample(("abc" * n)[:n], n))
        yield "d" + "a" * (n - 1)
        yield "b" * (n - 1) + "c"


NEAR_MISSES = {
    "dyck-1": _brackets,
    "induction-most-recent": _far_apart,
    "histogram": _levels,
    "reverse": _one_other,
    "majority": _ties,
    "fraction-of-previous": _prefixes,
}
