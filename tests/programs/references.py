"""What each program computes, from its definition, and the strings it is most likely to fail on."""

import functools
import itertools
import random
from collections import Counter
from fractions import Fraction

ALPHABETS = {
    "dyck-1": "()",
    "dyck-k-d": "()[]",
    "shuffle-dyck-2": "()[]",
    "induction-most-recent": "abc",
    "induction-most-frequent": "abc",
    "histogram": "abcd",
    "double-histogram": "abcd",
    "most-frequent-token": "abcd",
    "majority": "01",
    "parity": "01",
    "fraction-of-previous": "ab",
    "reverse": "abc",
    "palindrome": "ab",
    "sort": "1234",
    "equal-abc": "abc",
    "contains-abc": "abcd",
    "binary-increment": "01",
}

HARD = ("average-hard", "rightmost-hard")

EACH = ("softmax", *HARD)

WITHOUT_MEANS = (
    "induction-most-recent",
    "reverse",
    "palindrome",
    "contains-abc",
    "binary-increment",
)

WEIGHTINGS = {
    name: EACH if name in WITHOUT_MEANS else ("softmax", "average-hard") for name in ALPHABETS
}
"""Those that a program can be compiled to: rightmost-hard has no mean."""

CASES = [(name, weighting) for name, admitted in WEIGHTINGS.items() for weighting in admitted]


def given(name, x):
    """What the program is handed: sort takes numbers, written here as a string of digits."""
    return [int(digit) for digit in x] if name == "sort" else x


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


share = functools.cache(Fraction)
"""A fraction made once, for a million strings have the same few."""


def fractions_of_a(x):
    totals = itertools.accumulate(int(symbol == "a") for symbol in x)
    return [share(total, i) for i, total in enumerate(totals, start=1)]


def is_nested(x):
    expected = []
    for bracket in x:
        if bracket in "([":
            expected.append({"(": ")", "[": "]"}[bracket])
        elif not expected or expected.pop() != bracket:
            return False
        if len(expected) > 3:
            return False
    return not expected


def is_shuffled(x):
    depths = {"()": 0, "[]": 0}
    for bracket in x:
        for pair in depths:
            depths[pair] += (bracket == pair[0]) - (bracket == pair[1])
        if min(depths.values()) < 0:
            return False
    return set(depths.values()) == {0}


def after_most(x):
    followers, answer = {symbol: Counter() for symbol in x}, ""
    for before, symbol in zip(" " + x, x, strict=False):
        if before in followers:
            followers[before][symbol] += 1
        ranked = sorted(followers[symbol].items(), key=lambda each: (-each[1], each[0]))
        answer += ranked[0][0] if ranked else symbol
    return answer


def occur_as_often(x):
    counts = Counter(x)
    alike = Counter(counts.values())
    return [alike[counts[symbol]] for symbol in x]


def most_often(x):
    counts = Counter(sorted(x))  # of several, most_common names the one met first
    return "".join(symbol for symbol, _ in counts.most_common(1)) * len(x)


def has_odd_ones(x):
    odd = False
    for symbol in x:
        odd ^= symbol == "1"
    return odd


def is_palindrome(x):
    return all(x[i] == x[-1 - i] for i in range(len(x)))


def in_order(x):
    return sorted(int(digit) for digit in x)


def is_equal_abc(x):
    return len(x) % 3 == 0 and x == "".join(a * (len(x) // 3) for a in "abc")


def has_abc(x):
    return any(x[i : i + 3] == "abc" for i in range(len(x)))


def one_more(x):
    """From the right: ones become zeros, up to and with the first zero, which becomes a one."""
    answer, carry = [], True
    for bit in reversed(x):
        answer.append({"0": "1", "1": "0"}[bit] if carry else bit)
        carry = carry and bit == "1"
    return "".join(reversed(answer))


REFERENCES = {
    "dyck-1": is_balanced,
    "dyck-k-d": is_nested,
    "shuffle-dyck-2": is_shuffled,
    "induction-most-recent": after_the_last,
    "induction-most-frequent": after_most,
    "histogram": occurrences,
    "double-histogram": occur_as_often,
    "most-frequent-token": most_often,
    "majority": has_more_ones,
    "parity": has_odd_ones,
    "fraction-of-previous": fractions_of_a,
    "reverse": backwards,
    "palindrome": is_palindrome,
    "sort": in_order,
    "equal-abc": is_equal_abc,
    "contains-abc": has_abc,
    "binary-increment": one_more,
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


def _three_deep(N, source):
    """Nested to depth 3 and 4, early, late and throughout; a bracket of the other kind; turned."""
    for n in {2, 4, 8, 12, N // 2, N - 1, N}:
        walk = _two_kinds(n // 2, 3, source)
        blocks = "([()])" * (n // 6)
        for x in (walk, blocks, "[" * (n // 2) + "]" * (n // 2), _two_kinds(n // 2, 4, source)):
            yield x
            yield from _spoiled(x, source)
        yield "([[()]])" + blocks[:-8]
        yield blocks[:-8] + "[(())]()"
        yield "[" + "(())" * (n // 4) + "]"
        yield "[(" + "()" * (n // 2 - 2) + ")]"
        yield "[(" + "()" * (n // 2 - 2) + "])"
        yield "(([" + "()" * ((n - 6) // 2) + "]))"


def _two_kinds(pairs, deepest, source):
    """Well nested brackets of both kinds."""
    expected, x = [], ""
    for left in range(2 * pairs, 0, -1):
        may = len(expected) < min(deepest, left)
        if not expected or (may and source.random() < 0.5):
            pair = source.choice(["()", "[]"])
            x += pair[0]
            expected.append(pair[1])
        else:
            x += expected.pop()
    return x


def _spoiled(x, source):
    """One bracket turned, one of the other kind, two swapped, one missing."""
    if len(x) < 2:
        return
    place = source.randrange(len(x))
    for other in (")(][", "[]()"):
        yield x[:place] + other["()[]".index(x[place])] + x[place + 1 :]
    first, second = sorted(source.sample(range(len(x)), 2))
    yield x[:first] + x[second] + x[first + 1 : second] + x[first] + x[second + 1 :]
    yield x[1:]
    yield x[:-1]


def _shuffled(N, source):
    """Two balanced strings, one kind each, mixed; and those spoiled."""
    for n in {2, 4, 12, N // 2, N - 1, N}:
        square = source.randrange(n // 2 + 1)
        kinds = [iter(_walk(n // 2 - square, source)), iter(_walk(square, source))]
        order = [0] * (2 * (n // 2 - square)) + [1] * (2 * square)
        source.shuffle(order)
        mixed = "".join(("()", "[]")[k]["()".index(next(kinds[k]))] for k in order)
        crossed = "(" * (n // 4) + "[" * (n // 4) + ")" * (n // 4) + "]" * (n // 4)
        for x in (mixed, crossed, "([)]" * (n // 4), "()" * (n // 2), "[]" * (n // 2)):
            yield x
            yield from _spoiled(x, source)


def _followers(N, source):
    """As many followers of each kind, one more of one, the first once and late."""
    for n in {4, 12, N // 2, N}:
        for a, b, c in itertools.permutations("abc"):
            half = (n - 1) // 4
            yield (a + b) * half + (a + c) * half + a
            yield (a + c) * half + (a + b) * (half + 1) + a
            yield a + b + c * (n - 3) + a
            yield (a + b + c) * ((n - 1) // 3) + a
            yield a * (n - 2) + b + a


def _many_levels(N, source):
    """As many of each symbol, of three, of two; one more or less of one."""
    yield from _levels(N, source)
    for n in {4, 12, N // 2, N - 1, N}:
        for some in ("ab", "cd", "bcd", "acd", "abcd"):
            each = n // len(some)
            yield "".join(source.sample(some * each, each * len(some)))
            yield some * (each - 1) + some[:-1]
            yield some[-1] + some * (each - 1)
            yield some[0] * (each + 1) + "".join(other * (each - 1) for other in some[1:])


def _ones(N, source):
    """All ones, one zero, one one; halves; alternating."""
    for n in {1, 2, 11, 12, N // 2, N - 1, N}:
        yield "1" * n
        for place in {0, 1, n // 2, n - 2, n - 1} & set(range(n)):
            for a, b in ("01", "10"):
                yield a * place + b + a * (n - 1 - place)
        for k in {n // 2, n // 2 + 1, n - 2} & set(range(n)):
            for a, b in ("01", "10"):
                yield a * k + b * (n - k)
                yield "".join(source.sample(a * k + b * (n - k), n))
        yield ("01" * n)[:n]
        yield ("10" * n)[:n]


def _mirrored(N, source):
    """Palindromes, odd and even; one symbol changed, at the ends and next to the middle."""
    for n in {2, 3, 11, 12, N // 2, N - 1, N}:
        half = "".join(source.choices("ab", k=n // 2))
        for front in (half, "a" * (n // 2), ("ab" * n)[: n // 2]):
            x = front + ("a" if n % 2 else "") + front[::-1]
            yield x
            for place in {0, n // 2 - 1, n // 2, n - 1}:
                yield x[:place] + {"a": "b", "b": "a"}[x[place]] + x[place + 1 :]
        yield half + half


def _out_of_order(N, source):
    """Falling, rising, alternating; one other, at each end; as many of each; runs of ties."""
    yield "3122241433212"
    for n in {4, 12, N // 2, N - 1, N}:
        yield "4321" * (n // 4)
        yield "".join(symbol * (n // 4) for symbol in "4321")
        yield "".join(symbol * (n // 4) for symbol in "1234")
        yield ("41" * n)[:n]
        yield ("32" * n)[:n]
        for low, high in ("12", "34", "14", "23"):
            yield high + low * (n - 1)
            yield high * (n - 1) + low
            yield "".join(source.sample(low * (n // 2) + high * (n - n // 2), n))


def _equal_thirds(N, source):
    """As many of each in order; one more, less, other; two swapped; another order."""
    for k in {1, 2, 4, N // 6, N // 3 - 1, N // 3} - {0}:
        x = "a" * k + "b" * k + "c" * k
        yield x
        for p, q, r in itertools.product((-1, 0, 1), repeat=3):
            yield "a" * (k + p) + "b" * (k + q) + "c" * (k + r)
        for place in {0, k - 1, 2 * k - 1, 3 * k - 2}:
            yield x[:place] + x[place + 1] + x[place] + x[place + 2 :]
        for some in itertools.permutations("abc"):
            yield "".join(symbol * k for symbol in some)
        yield "abc" * k
        yield x[:-1] + "a"
        yield "c" + x[1:]


def _one_abc(N, source):
    """One abc in front, at the end, in the middle, of each other symbol; all but abc."""
    for n in {3, 4, 12, N // 2, N - 1, N}:
        for other in "abcd":
            for place in {0, 1, (n - 3) // 2, n - 4, n - 3} & set(range(n)):
                for word in ("abc", "ab", "bc", "ac", "abbc", "abdc", "acb"):
                    yield (other * place + word + other * n)[:n]
        for some in ("ab", "bc", "bca", "cab", "aabbcc", "acb", "abdc", "abd"):
            yield (some * n)[:n]
        yield "bc" + "d" * (n - 3) + "a"
        yield "c" + "d" * (n - 3) + "ab"


NEAR_MISSES = {
    "dyck-1": _brackets,
    "dyck-k-d": _three_deep,
    "shuffle-dyck-2": _shuffled,
    "induction-most-recent": _far_apart,
    "induction-most-frequent": _followers,
    "histogram": _levels,
    "double-histogram": _many_levels,
    "most-frequent-token": _many_levels,
    "majority": _ties,
    "parity": _ones,
    "fraction-of-previous": _prefixes,
    "reverse": _one_other,
    "palindrome": _mirrored,
    "sort": _out_of_order,
    "equal-abc": _equal_thirds,
    "contains-abc": _one_abc,
    "binary-increment": _ones,
}
