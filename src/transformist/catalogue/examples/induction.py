"""Induction heads: section 9.1 of the Cookbook."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from transformist.arithmetic import Arithmetic, Floating
from transformist.assembly import attend, units
from transformist.catalogue.safe_lengths import longest_apart
from transformist.claims import Finding, StringClaim, recipe
from transformist.domains import Strings
from transformist.model import (
    BOS,
    Attention,
    Embedding,
    FeedForward,
    Layer,
    LinearForm,
    MultiClass,
    Stream,
    Trace,
    Transformer,
)
from transformist.rounding import float_format_of, power_of_two_at_most

Symbols = Sequence[Any]


def _joined(symbols: list[Any], alphabet: Symbols) -> Any:
    """Return the symbols as a string if every symbol of the alphabet is one character."""
    single = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in alphabet)
    return "".join(symbols) if single else symbols


def _hard_strings(n: int, *, alphabet: Symbols) -> list[Any]:
    """Return runs, periods, late first occurrences, rare bigrams at both ends, drawn strings."""
    walk = random.Random(f"{n} {alphabet}")
    first, second, last = alphabet[0], alphabet[1], alphabet[-1]
    half = n // 2
    strings = [[], [first] * n, [last] * n, [first] * (n - 1) + [last], [last] + [first] * (n - 1)]
    strings += [(list(alphabet) * n)[:n], (list(alphabet)[::-1] * n)[:n]]
    strings += [[last, second] + [first] * max(n - 3, 0) + [last]]
    strings += [[first, last] * (half // 2) + [first, second] * (half // 2) + [first]]
    strings += [[first, second] * (half // 2) + [first, last] * (half // 2) + [first]]
    strings += [[first, second] + [last] * (n - 4) + [first, first]]
    strings += [walk.choices(alphabet, k=n), walk.choices(alphabet[:2], k=n)]
    kept = dict.fromkeys(tuple(x) for x in strings if len(x) <= n)
    return [
        x if isinstance(x, str) else tuple(x) for x in (_joined(list(y), alphabet) for y in kept)
    ]


def _strings(*, alphabet: Symbols) -> Strings:
    return Strings(tuple(alphabet), lambda n: _hard_strings(n, alphabet=alphabet))


# Predecessors


RECENCY_GAP = Fraction(9, 4)
"""A gap g of scores with 2/(e^g − 1) ≤ 1/4."""
# Where the m-th best position scores m g less than the best, and at most two positions share an m,
# all of them together have at most 2 (e^−g + e^−2g + …) = 2/(e^g − 1) of its weight: e^g ≥ 9.


def recency_sharpness(max_length: int, d_key: int) -> Fraction:
    """Return the least power of two s with which scores s · j/n /√d_key are 9/2 apart for n ≤ N.

    Example:
        >>> recency_sharpness(1024, d_key=1)
        Fraction(8192, 1)

    """
    # s/(n √d_key) ≥ 2 · RECENCY_GAP: half of each gap is left to the rounding of scores.
    square = (2 * RECENCY_GAP * max_length) ** 2 * d_key
    root = math.isqrt(math.ceil(square) - 1) + 1  # ⌈√square⌉
    return 1 / power_of_two_at_most(Fraction(1, root))


def recency_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the longest n with 1/n > 5u: scores (m + j/n)/√d_key, m ∈ {0, 1}, 0 ≤ j ≤ n, differ.

    Example:
        >>> from transformist.arithmetic import FLOAT32
        >>> recency_length(FLOAT32)
        3355443

    """
    # In order they begin with m = 0, j = 0, …, n, and go on with m = 1. Sums differ by 1/n, by more
    # than 4u with fl(j/n), which is within u/2 and is the sum where m = 0. For m = 1 they are
    # stored within u of themselves, more than 2u apart, so at least 4u, as multiples of 2u. Where
    # the larger of two neighbours is x ≤ 2 (≤ 1 for m = 0) and c = fl(√d_key) ≥ 1, quotients are
    # 4u/c apart or more, which is no less than 2u x/c, and that no less than the spacing at x/c.
    a = float_format_of(arithmetic)
    return None if a is None else longest_apart(5 * a.unit_roundoff)


def softened_recency_length(arithmetic: Arithmetic | str, d_key: int) -> int:
    """Return the largest power of two N with 1/N ≥ 16u whose scores, at most 2 s(N), are finite."""
    a = float_format_of(arithmetic)
    if a is None:
        return 0
    length = int(1 / (16 * a.unit_roundoff))
    while length and 2 * recency_sharpness(length, d_key) > a.largest:
        length //= 2
    return length


def _is(a: Any) -> str:
    return f"is {a}"


def _before(a: Any) -> str:
    return f"before {a}"


def _next(a: Any) -> str:
    return f"next {a}"


def _embedding(stream: Stream, alphabet: Symbols) -> Embedding:
    """Return the embedding: one-hot symbols; `one`, `first` and `place` if they are slots."""
    one: dict[str, int] = {"one": 1} if "one" in stream.slots else {}
    first: dict[str, int] = {"first": 1} if "first" in stream.slots else {}
    words: dict[Any, LinearForm] = {a: {_is(a): 1, **one} for a in alphabet}
    return Embedding.of(
        stream,
        {**words, BOS: {**one, **first}},
        positions={"place": "i/n"} if "place" in stream.slots else {},
        front=[BOS],
    )


def _position_slots(weighting: str) -> tuple[str, ...]:
    return () if weighting == "rightmost-hard" else ("one", "place")


def _predecessor(
    stream: Stream, alphabet: Symbols, weighting: str, max_length: int, write: Callable[[Any], str]
) -> Attention:
    """Return the head that fetches the symbol before each (5.4), the last of its strict prefix."""
    query: LinearForm = {}
    key: LinearForm = {}
    if weighting != "rightmost-hard":
        scale = recency_sharpness(max_length, d_key=1) if weighting == "softmax" else 1
        query, key = {"one": scale}, "place"
    return attend(
        stream,
        read=[_is(a) for a in alphabet],
        write=[write(a) for a in alphabet],
        query=[query],
        key=[key],
        weighting=weighting,
        mask="strict-future",
    )


def _hits(trace: Trace) -> Finding:
    """Count the positions whose prediction is the symbol that comes next."""
    predicted = list(zip(trace.answer, trace.input[1:], strict=False))
    hits = sum(1 for guess, symbol in predicted if guess == symbol)
    share = f" ({100 * hits / len(predicted):.1f} %)" if predicted else ""
    return Finding(
        sentence=f"the next symbol is predicted at {hits} of {len(predicted)} positions{share}",
        numbers={"predicted": hits, "of": len(predicted)},
    )


def _recent_gap(
    *, n: int, alphabet: Symbols, weighting: str, max_length: int
) -> tuple[Fraction, int]:
    kinds = len(alphabet)
    if weighting == "rightmost-hard":
        return Fraction(1), kinds
    scale = recency_sharpness(max_length, kinds + 1) if weighting == "softmax" else Fraction(1)
    return scale / n, kinds + 1


def _frequent_gap(*, n: int, weighting: str, max_length: int) -> tuple[Fraction, int] | None:
    if weighting == "rightmost-hard":
        return None
    scale = recency_sharpness(max_length, 1) if weighting == "softmax" else Fraction(1)
    return scale / n, 1


def _dependence(*, weighting: str) -> tuple[str, ...]:
    return {"rightmost-hard": (), "average-hard": ("n",)}.get(weighting, ("n", "N"))


_INDUCTION: dict[str, Any] = {
    "domain": _strings,
    "weightings": ("rightmost-hard", "average-hard", "softmax"),
    "mask": "strict-future, then future",
    "features": lambda *, weighting: () if weighting == "rightmost-hard" else ("i/n",),
    "depends_on": _dependence,
}


# 9.1.1: most recent


def _most_recent(x: Symbols, *, alphabet: Symbols) -> Any:
    """Return the symbol after the last earlier occurrence of each; itself where there is none."""
    followed: dict[Any, Any] = {}
    answer = []
    previous = None
    for position, symbol in enumerate(x):
        if position:
            followed[previous] = symbol
        answer.append(followed.get(symbol, symbol))
        previous = symbol
    return _joined(answer, alphabet)


def _most_recent_length(*, arithmetic: Arithmetic, alphabet: Symbols, weighting: str) -> int | None:
    if weighting == "rightmost-hard":
        return None
    if weighting == "average-hard":
        return recency_length(arithmetic)
    return softened_recency_length(arithmetic, d_key=len(alphabet) + 1)


@recipe(
    "induction-most-recent",
    section="9.1.1",
    claim=StringClaim(
        statement="yᵢ = xⱼ for the last j ≤ i with x at j − 1 equal to xᵢ, yᵢ = xᵢ where none is",
        reference=_most_recent,
        safe_length=_most_recent_length,
        why_safe="rightmost-hard: scores are 0 or fl(1/√|Σ|). Otherwise a match scores 1 + j/n, "
        "another position at most 1, and both scores differ by 1/n from those of their like: "
        "distinct where 1/n > 5u. softmax: where 1/n ≥ 16u at least half of each gap is left, and "
        "all other positions have at most 1/4 of the weight of the right one; predecessors are "
        "rounded back to bits",
        variants=(
            {"weighting": "average-hard"},
            {"weighting": "softmax"},
            {"alphabet": "ab"},
            {"alphabet": "zyx", "weighting": "average-hard"},
            {"alphabet": "01", "weighting": "softmax"},
            {"alphabet": [3, 1, 2]},
        ),
        **_INDUCTION,
        gap=_recent_gap,
        gap_statement="1/√|Σ| (rightmost-hard); 1/(n √(|Σ| + 1)), times 1/τ for softmax",
        size="2 layers, width 3|Σ| (rightmost-hard) to 4|Σ| + 2",
    ),
    sources=("Elhage et al. 2021",),
    explain=_hits,
    errata=("induction-mask", "induction-temperature"),
)
def most_recent(
    alphabet: Any = "ABCD", weighting: str = "rightmost-hard", max_length: int = 1024
) -> Transformer:
    """Two heads: the symbol before each, then the last position before which x_i stands.

    Where no earlier position matches, all scores are 0 but for the tie-break, and the last
    admissible position is i itself. rightmost-hard needs no positions; average-hard adds j/n to
    the score; softmax has sharper weights, which depend on N, and rounds the predecessors (5.7).
    `max_length` serves softmax alone.
    """
    soft = weighting == "softmax"
    kinds = [_is, _before, *([_likely] if soft else []), _next]
    stream = Stream((*[slot(a) for slot in kinds for a in alphabet], *_position_slots(weighting)))
    scale = recency_sharpness(max_length, len(alphabet) + 1) if soft else Fraction(1)
    tie_break: list[Any] = [] if weighting == "rightmost-hard" else [("one", "place")]
    retrieve = attend(
        stream,
        read=[_is(a) for a in alphabet],
        write=[_next(a) for a in alphabet],
        query=[*[{_is(a): scale} for a in alphabet], *[{one: scale} for one, _ in tie_break]],
        key=[*map(_before, alphabet), *[place for _, place in tie_break]],
        weighting=weighting,
        mask="future",
    )
    predecessor = _predecessor(
        stream, alphabet, weighting, max_length, write=_likely if soft else _before
    )
    return Transformer(
        stream=stream,
        embedding=_embedding(stream, alphabet),
        layers=(
            Layer((predecessor,), _rounded_bits(stream, alphabet) if soft else None),
            Layer((retrieve,)),
        ),
        read_out=MultiClass(
            W_out=stream.reading(*map(_next, alphabet)), labels=tuple(alphabet), at="every"
        ),
        max_length=max_length if soft else None,
    )


def _likely(a: Any) -> str:
    return f"likely before {a}"


def _step(form: LinearForm, shift: Any, write: LinearForm) -> list[Any]:
    """Return two units that add 0 where form + shift ≤ 1/4 and 1 where it is at least 3/4."""
    slots: dict[str, Any] = {form: 1} if isinstance(form, str) else dict(form)
    added: dict[str, Any] = {write: 1} if isinstance(write, str) else dict(write)
    return [
        (slots, shift - Fraction(1, 4), {slot: 2 * value for slot, value in added.items()}),
        (slots, shift - Fraction(3, 4), {slot: -2 * value for slot, value in added.items()}),
    ]


def _rounded_bits(stream: Stream, alphabet: Symbols) -> FeedForward:
    # The weight of all other positions is at most 1/4 of that of the right one (RECENCY_GAP), so
    # the right one has at least 4/5 of the weight: a bit is at least 4/5 or at most 1/5.
    return units(stream, *[u for a in alphabet for u in _step(_likely(a), 0, _before(a))])


# 9.1.2: most frequent


def _most_frequent(x: Symbols, *, alphabet: Symbols) -> Any:
    """Return the most frequent symbol after each so far, the first in the alphabet on a tie."""
    answer = []
    for position, symbol in enumerate(x):
        so_far = pairwise(x[: position + 1])
        followers = Counter(after for before, after in so_far if before == symbol)
        most = max(followers.values(), default=0)
        tied = [after for after in alphabet if followers[after] == most > 0]
        answer.append(tied[0] if tied else symbol)
    return _joined(answer, alphabet)


def _most_frequent_length(*, arithmetic: Arithmetic, weighting: str) -> int | None:
    """Return the smaller of the safe lengths of the predecessor and of the counts."""
    lengths = []
    if isinstance(arithmetic, Floating):
        # Shares of equal counts are equal bit for bit; those of different counts are at least
        # 1/(n + 1) − (w n/2 + 6u) apart. With n + 1 = m, m ≤ 1/(16u) and m² ≤ 1/(4w) leave
        # 1/m − 1/(8m) − 3/(8m) = 1/(2m).
        u, w = arithmetic.unit_roundoff, arithmetic.accumulator_roundoff
        lengths = [max(min(int(1 / (16 * u)), math.isqrt(int(1 / (4 * w)))) - 1, 0)]
    elif weighting == "softmax":
        return 0
    if weighting == "softmax":
        lengths.append(softened_recency_length(arithmetic, d_key=1))
    return min(lengths, default=None)


@recipe(
    "induction-most-frequent",
    section="9.1.2",
    claim=StringClaim(
        statement="yᵢ = b for the b most often after xᵢ in x₁ … xᵢ, the first in the alphabet "
        "on a tie; yᵢ = xᵢ where nothing has followed xᵢ",
        reference=_most_frequent,
        safe_length=_most_frequent_length,
        why_safe="equal counts have bit-equal shares, since they add the same weight as often; "
        "different ones stay 1/(2(n + 1)) apart or more; the winner is beaten by exactly 0",
        variants=(
            {"weighting": "average-hard"},
            {"weighting": "softmax"},
            {"alphabet": "ba"},
            {"alphabet": "xyz", "weighting": "softmax"},
        ),
        **_INDUCTION,
        gap=_frequent_gap,
        gap_statement="1/n for the predecessor, times 1/τ for softmax; none for rightmost-hard",
        size="3 layers, width 2|Σ|² + 4|Σ| + 2 (rightmost-hard) or + 4, at most 2|Σ|² hidden units",
    ),
    sources=("Elhage et al. 2021",),
    explain=_hits,
    errata=("bigram-value-matrix", "bigram-count-scale", "frequent-fallback"),
)
def most_frequent(
    alphabet: Any = "ABCD", weighting: str = "rightmost-hard", max_length: int = 1024
) -> Transformer:
    """Bigrams as bits, their shares of all positions so far, and a comparison of the shares.

    The bigram ab is marked by a step of [before is a] + [is b]; its share is count/(i + 1), that of
    BOS 1/(i + 1). Of the shares with a = x_i, b is beaten by c with what c has more, or, where c
    comes before b, with half of 1/(i + 1) more. Only the first of the most frequent is beaten by
    0. Where nothing has followed x_i it is favoured by |Σ|/(i + 1).

    The weighting is that of the first head; rightmost-hard needs no positions, and the weights
    then know neither n nor N. The second head counts, by average-hard attention, or softmax if
    that is chosen, with scores of 0. `max_length` serves softmax alone.
    """
    pairs = [(a, b) for a in alphabet for b in alphabet]
    stream = Stream(
        (
            *[slot(a) for slot in (_is, _before, _after, _next) for a in alphabet],
            *[slot(a, b) for slot in (_pair, _share) for a, b in pairs],
            "first",
            "unit",
            *_position_slots(weighting),
        )
    )
    counting = attend(
        stream,
        read=["first", *[_pair(a, b) for a, b in pairs]],
        write=["unit", *[_share(a, b) for a, b in pairs]],
        weighting="softmax" if weighting == "softmax" else "average-hard",
        mask="future",
    )
    # [before is a] + [is b] − 1 is 1 where both hold, else at most 0. Softmax leaves the first bit
    # a little below 1, which the step takes away.
    mark = [u for a, b in pairs for u in _step({_before(a): 1, _is(b): 1}, -1, _pair(a, b))]
    # A share is at most 1: ReLU(share + [x_i is a] − 1) is the share where x_i is a, and 0
    # elsewhere.
    select = [({_share(a, b): 1, _is(a): 1}, -1, _after(b)) for a, b in pairs]
    return Transformer(
        stream=stream,
        embedding=_embedding(stream, alphabet),
        layers=(
            Layer(
                (_predecessor(stream, alphabet, weighting, max_length, write=_before),),
                units(stream, *mark),
            ),
            Layer((counting,), units(stream, *select)),
            Layer((), units(stream, *_beaten(alphabet), *_fallback(alphabet))),
        ),
        read_out=MultiClass(
            W_out=stream.reading(*map(_next, alphabet)), labels=tuple(alphabet), at="every"
        ),
        max_length=max_length if weighting == "softmax" else None,
    )


def _pair(a: Any, b: Any) -> str:
    return f"{a} then {b}"


def _share(a: Any, b: Any) -> str:
    return f"share of {a} then {b}"


def _after(b: Any) -> str:
    return f"after it {b}"


def _beaten(alphabet: Symbols) -> list[Any]:
    """Return units that subtract from b the excess of each other share, with a half on ties."""
    # Shares are multiples of unit = 1/(i + 1). c takes its excess over b from b, c before b half a
    # unit more. So the first of the most frequent loses nothing: a c before it has a unit less. All
    # others lose at least half a unit.
    order = list(enumerate(alphabet))
    ahead = {True: {"unit": Fraction(1, 2)}, False: {}}
    return [
        ({_after(c): 1, _after(b): -1, **ahead[m < k]}, 0, {_next(b): -1})
        for k, b in order
        for m, c in order
        if m != k
    ]


def _fallback(alphabet: Symbols) -> list[Any]:
    """Return units that add |Σ|/(i + 1) to x_i where no share is positive."""
    # One positive share, at least a unit, makes unit − 2 · share negative. Where all shares are 0,
    # a symbol loses at most (|Σ| − 1)/2 units to those before it, and x_i gains |Σ|.
    shares = {_after(b): -2 for b in alphabet}
    return [({"unit": 1, _is(a): 1, **shares}, -1, {_next(a): len(alphabet)}) for a in alphabet]


RECIPES = (most_recent, most_frequent)
"""Recipes of the chapter, in the order in which they are listed."""
