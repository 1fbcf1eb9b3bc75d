"""The search behind docs/certificates.py: the least N at which a format fails a program.

A program is compiled for N as it is for exact arithmetic, and answers strings of length up to N
in the format; where one answer differs from the program's definition, or none comes out because
numbers overflow, the format fails at N. What is tried depends on nothing but the seed.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

import pages
import transformist as tf
from transformist.arithmetic import number_system
from transformist.errors import NotFinite
from transformist.model import Binary, MultiClass, NearestFraction, Transformer
from transformist.programs import PROGRAMS

sys.path.insert(0, str(pages.ROOT / "tests" / "programs"))

from references import ALPHABETS, REFERENCES, given, hard_strings

SEED = 1
EFFORT = {"bfloat16": 2**24, "float16": 2**22, "float32": 2**22}
"""How many scores, heads times pairs of positions, are computed for one N."""

FEWEST = 4
"""So many strings are tried at every N, whatever they take."""

EACH = 24
"""Every N up to this one is tried."""

GROWTH = 1.12
"""Beyond, the next N is so many times as long; every N between the last that was right and the
first that was not is tried, or where they are many, found by halving."""

MANY = 32
NEARBY = 8
"""Near what fails, where inputs are made of it, a search takes so many times less."""

EXHAUSTIVE = 4096

KNOWN = {
    ("shuffle-dyck-2", "float16"): (512, "(" * 300),
    ("double-histogram", "float16"): (512, "aab" * 170 + "aa"),
    ("most-frequent-token", "float16"): (512, "acc" * 170 + "ac"),
    ("equal-abc", "float16"): (512, "a" * 300),
    ("parity", "float16"): (41, "1" * 35 + "0" * 6),
}
"""Failures that were found before the search had inputs of their kind: N, and the input."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What a search found.

    Attributes:
        program, arithmetic: what was searched.
        seed, effort: with what.
        strings: how many inputs were evaluated.
        tried: the largest N tried.
        max_length: the least N found that fails; `None` where none was.
        input: of what the failing input is made: words, each with how often it is repeated.
        made: how.
        answer: what came out, where that is short; or why nothing did.
        certified: the largest N that was certified when the page was written: where to look first.

    """

    program: str
    arithmetic: str
    seed: int
    effort: int
    strings: int
    tried: int
    max_length: int | None = None
    input: tuple[tuple[str, int], ...] = ()
    made: str = ""
    answer: str = ""
    certified: int | None = None

    @property
    def text(self) -> str:
        """The failing input."""
        return spelled(self.input)

    def record(self) -> dict[str, Any]:
        """As it is kept."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def spelled(words: Iterable[tuple[str, int]]) -> str:
    """The string that words and how often each is repeated stand for.

    >>> spelled([("ab", 2), ("c", 3)])
    'ababccc'
    """
    return "".join(word * count for word, count in words)


def folded(x: str) -> tuple[tuple[str, int], ...]:
    """A string as words and how often each is repeated.

    >>> folded("ababababccccccd")
    (('ab', 4), ('c', 6), ('d', 1))
    """
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(x):
        counts = {w: _repeats(x, at, w) for w in range(1, 7)}
        word = max(counts, key=lambda w: (w * (counts[w] - 1) - w, -w))
        if counts[word] * word - word >= 4:
            found.append((x[at : at + word], counts[word]))
            at += word * counts[word]
        elif found and found[-1][1] == 1:
            found[-1] = (found[-1][0] + x[at], 1)
            at += 1
        else:
            found.append((x[at], 1))
            at += 1
    return tuple(found)


def _repeats(x: str, at: int, w: int) -> int:
    word, count = x[at : at + w], 1
    while x.startswith(word, at + count * w):
        count += 1
    return count


def built(name: str, N: int) -> Transformer:
    """The program for N, refused in no format."""
    return tf.compile(PROGRAMS[name], max_length=N, weighting="softmax", arithmetic="exact")


def wrong(model: Transformer, name: str, x: str, arithmetic: str) -> str | None:
    """What the model answers instead of the right answer, or why it answers nothing."""
    try:
        (answer,) = model.answers([given(name, x)], arithmetic)
    except NotFinite as refusal:
        return f"no answer: {refusal.invariant}"
    return None if answer == REFERENCES[name](x) else f"{answer}"


def with_known(found: Searched) -> Searched:
    """What a search found, or an earlier failure of `KNOWN`, which is evaluated.

    Raises:
        ValueError: if the input of `KNOWN` does not fail.

    """
    name, arithmetic = found.program, found.arithmetic
    N, x = KNOWN.get((name, arithmetic), (sys.maxsize, ""))
    if (found.max_length or sys.maxsize) <= N:
        return found
    answer = wrong(built(name, N), name, x, arithmetic)
    if answer is None:
        raise ValueError(f"{name} must fail in {arithmetic} on its input in KNOWN; it does not")
    return replace(found, max_length=N, input=folded(x), made="known", answer=answer[:80])


# How near a decision is to another


def margins(model: Transformer, name: str, xs: list[str], arithmetic: str) -> list[float]:
    """For each string how far the read-out is from another answer, at its nearest position.

    Not above 0 where it decides otherwise, or not at all.
    """
    a = number_system(arithmetic)
    try:
        values = model.values([given(name, x) for x in xs], a)
    except NotFinite:
        if len(xs) == 1:
            return [-math.inf]
        half = len(xs) // 2
        return [m for part in (xs[:half], xs[half:]) for m in margins(model, name, part, a.name)]
    rule = MARGINS[type(model.read_out)]
    pairs = zip(xs, values, strict=True)
    found = [rule(model.read_out, a.numbers(y), REFERENCES[name](x)) for x, y in pairs]
    return [-math.inf if math.isnan(each) else each for each in found]


def _binary(_read_out: Binary, y: Any, expected: bool) -> float:
    return float(y[0, 0] if expected else -y[0, 0])


def _labels(read_out: MultiClass, y: Any, expected: Any) -> float:
    if not len(y):
        return math.inf
    numbers = _numbers(read_out)
    rows, own = np.arange(len(y)), [numbers[label] for label in expected]
    others = y.copy()
    others[rows, own] = -np.inf
    with np.errstate(invalid="ignore"):
        return float((y[rows, own] - others.max(axis=1)).min())


@functools.lru_cache(8)
def _numbers(read_out: MultiClass) -> dict[Any, int]:
    return {label: number for number, label in enumerate(read_out.labels)}


def _fraction(_read_out: NearestFraction, y: Any, expected: Any) -> float:
    i = np.arange(1, len(y) + 1)
    return float((0.5 - 1e-9 - i * abs(y[:, 0] - np.array(expected, float))).min(initial=1))


MARGINS = {Binary: _binary, MultiClass: _labels, NearestFraction: _fraction}


# What is tried

Maker = tuple[tuple[str, float], ...]
"""Words, each repeated over a share of the length."""


def makers(alphabet: str) -> list[Maker]:
    """Constants, short words repeated, two and three blocks."""
    words = ["".join(w) for k in (1, 2, 3) for w in itertools.product(alphabet, repeat=k)]
    periodic = [((word, 1.0),) for word in words if len(word) == 1 or len(set(word)) > 1]
    halves = [
        ((a, s), (b, 1 - s)) for a, b in _pairs(alphabet) for s in (0.03, 0.25, 0.5, 0.75, 0.97)
    ]
    thirds = [
        ((a, 0.25), (b, 0.5), (c, 0.25))
        for a, b, c in itertools.product(alphabet, repeat=3)
        if a != b != c
    ]
    return [*periodic, *halves, *thirds]


def made(maker: Maker, n: int) -> str:
    """The string of length n."""
    x, share = "", 0.0
    for word, part in maker:
        share += part
        upto = n if share > 0.999 else round(share * n)
        x += (word * (upto // len(word) + 1))[: upto - len(x)]
    return x


def shown(maker: Maker) -> str:
    """How a string is made, in words."""
    return "blocks" if len(maker) > 1 else "repeated" if len(maker[0][0]) > 1 else "constant"


@dataclass
class Search:
    """The search of a program in a format.

    Attributes:
        name, arithmetic: of which.
        seed, effort: with what.
        nearest: the last margin of each maker.
        strings: how many inputs were evaluated.
        failing: a failing input of each N that fails.

    """

    name: str
    arithmetic: str
    seed: int
    effort: int
    nearest: dict[Maker, float] = field(default_factory=dict)
    strings: int = 0
    failing: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    near: list[str] = field(default_factory=list)

    def run(self, longest: int, after: int = 0) -> Searched:
        """Search the N from `after` + 1 to `longest`."""
        right, N = after, after
        for N in lengths(after, longest):
            if self.fails(N):
                self._between(right, N)
                self._below()
                break
            right = N
        least = min(self.failing, default=None)
        found = {}
        if least is not None:
            x, how, answer = self.failing[least]
            found = {"max_length": least, "input": folded(x), "made": how, "answer": answer[:80]}
        return Searched(
            program=self.name,
            arithmetic=self.arithmetic,
            seed=self.seed,
            effort=self.effort,
            strings=self.strings,
            tried=N,
            **found,
        )

    def _between(self, right: int, fails: int) -> None:
        if fails - right <= MANY:
            any(self.fails(N, NEARBY) for N in range(right + 1, fails))
            return
        while fails - right > 1:
            middle = (right + fails) // 2
            if self.fails(middle, NEARBY):
                fails = middle
            else:
                right = middle

    def _below(self) -> None:
        """What fails, made shorter, down to three quarters of the length, as long as any fails."""
        again = True
        while again:
            least = min(self.failing)
            below = range(max(1, 3 * least // 4), least)
            step = max(1, len(below) // MANY)
            again = any(self.fails(N, NEARBY) for N in below[::step])

    def fails(self, N: int, share: int = 1) -> bool:
        """Try one N, with a part of the effort."""
        draw = random.Random(f"{self.name} {self.arithmetic} {self.seed} {N} {len(self.failing)}")
        model = built(self.name, N)
        heads = max(1, sum(len(layer.heads) for layer in model.layers))
        most = max(FEWEST, self.effort // (share * heads * (N + 1) ** 2))
        tried: dict[str, float] = {}
        for how, xs in self._kinds(N, draw, most):
            fresh = list(dict.fromkeys(x for x in xs if x not in tried and len(x) <= N))
            if fresh and self._try(model, N, how, fresh, tried):
                return True
        for each in makers(ALPHABETS[self.name]) if N <= 2 * EACH else self.nearest:
            self.nearest[each] = tried.get(made(each, N), self.nearest.get(each, math.inf))
        if most > 4 * FEWEST and len(tried) < _count(ALPHABETS[self.name], N):
            return self._climb(model, N, draw, most // 2, tried)
        return False

    def _kinds(self, N: int, draw: random.Random, most: int) -> Iterator[tuple[str, list[str]]]:
        alphabet = ALPHABETS[self.name]
        if _count(alphabet, N) <= min(most, EXHAUSTIVE):
            yield "every string", [x for n in range(N + 1) for x in _every(alphabet, n)]
            return
        if self.failing:
            yield "a longer one made shorter", list(self._shorter(N, draw))
        hard = [x for x in hard_strings(self.name, N, drawn=2) if len(x) >= N // 3]
        kinds: dict[str, list[str]] = {}
        for each in self._makers(alphabet)[: max(1, most // 2)]:
            kinds.setdefault(shown(each), []).append(made(each, N))
        yield from kinds.items()
        yield "a shorter constant", [c * (k * N // 8) for c in alphabet for k in (7, 6, 5, 4)]
        if N <= 2 * EACH:
            cuts = [a * k + b * (N - k) for a, b in _pairs(alphabet) for k in range(1, N)]
            yield "two blocks", draw.sample(cuts, min(len(cuts), max(1, most // 4)))
        near = self.near[: max(1, most // 8)]
        yield "near a threshold before", [(x * (N // max(len(x), 1) + 1))[:N] for x in near]
        yield "hard", draw.sample(hard, min(len(hard), max(1, most // 4)))
        drawn = max(1, min(most // 8, 256))
        yield "drawn", ["".join(draw.choices(alphabet, k=N)) for _ in range(drawn)]
        if N > EACH:
            return
        few = [n for n in range(N) if _count(alphabet, n) <= EXHAUSTIVE // 4]
        yield "every short string", [x for n in few for x in _every(alphabet, n)]

    def _makers(self, alphabet: str) -> list[Maker]:
        """Those first that were nearest to a threshold."""
        return sorted(makers(alphabet), key=lambda each: self.nearest.get(each, -math.inf))

    def _shorter(self, N: int, draw: random.Random) -> Iterator[str]:
        for x in {self.failing[each][0] for each in sorted(self.failing)[:3]}:
            if len(x) <= N:
                yield x
                continue
            out, middle = len(x) - N, N // 2
            yield from (x[:N], x[out:], x[:middle] + x[middle + out :])
            for _ in range(3):
                left = sorted(draw.sample(range(len(x)), N))
                yield "".join(x[i] for i in left)

    def _try(
        self, model: Transformer, N: int, how: str, xs: list[str], tried: dict[str, float]
    ) -> bool:
        """Evaluate; keep the margins, and the simplest input that fails."""
        self.strings += len(xs)
        found = margins(model, self.name, xs, self.arithmetic)
        tried.update(zip(xs, found, strict=True))
        suspects = [x for x, margin in zip(xs, found, strict=True) if margin <= 0]
        suspects.sort(key=lambda x: (sum(len(w) for w, _ in folded(x)), len(x)))
        for x in suspects[:8]:
            answer = wrong(model, self.name, x, self.arithmetic)
            if answer is not None:
                self.failing[N] = x, how, answer
                return True
        return False

    def _climb(
        self, model: Transformer, N: int, draw: random.Random, budget: int, tried: dict[str, float]
    ) -> bool:
        """Change what is nearest to a threshold, again and again."""
        size = min(32, max(4, budget // 6))
        for _ in range(max(1, min(budget // size, 12))):
            best = sorted(tried, key=tried.__getitem__)[:6]
            children = [changed(draw.choice(best), ALPHABETS[self.name], draw) for _ in range(size)]
            fresh = list(dict.fromkeys(x for x in children if x not in tried))
            if fresh and self._try(model, N, "climbed", fresh, tried):
                return True
        self.near = sorted(tried, key=tried.__getitem__)[:3]
        return False


def changed(x: str, alphabet: str, draw: random.Random) -> str:
    """A string with a symbol or a block of it changed, or two swapped."""
    if len(x) < 2:
        return draw.choice(alphabet)
    i, j = sorted(draw.sample(range(len(x) + 1), 2))
    kind = draw.randrange(5)
    if kind == 0:
        return x[:i] + draw.choice(alphabet) * (j - i) + x[j:]
    if kind == 1:
        return x[:i] + x[i:j][::-1] + x[j:]
    if kind == 2:
        return x[i:] + x[:i]
    i = draw.randrange(len(x))
    if kind == 3:
        return x[:i] + draw.choice(alphabet) + x[i + 1 :]
    j = draw.randrange(len(x))
    swapped = list(x)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    return "".join(swapped)


def lengths(after: int, longest: int) -> Iterator[int]:
    """The N that are tried: powers of two among them, from which on weights are larger."""
    N = after
    while longest > N:
        power = 2 ** N.bit_length()
        N = N + 1 if N < EACH else min(longest, max(N + 1, int(N * GROWTH)), power)
        yield N


def _pairs(alphabet: str) -> list[tuple[str, str]]:
    return list(itertools.permutations(alphabet, 2))


def _count(alphabet: str, N: int) -> int:
    return sum(len(alphabet) ** n for n in range(N + 1)) if N < 40 else sys.maxsize


def _every(alphabet: str, n: int) -> list[str]:
    return ["".join(x) for x in itertools.product(alphabet, repeat=n)]
