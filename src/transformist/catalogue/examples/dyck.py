"""The Dyck languages: section 9.2 of the Cookbook."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from transformist.arithmetic import Arithmetic, Floating
from transformist.assembly import attend, beside, route, units
from transformist.catalogue.feed_forward import (
    cpwl,
    equal_zero,
    greater_than_zero,
    identity,
)
from transformist.catalogue.safe_lengths import longest, nearest_active_length
from transformist.claims import Finding, StringClaim, recipe
from transformist.domains import Strings
from transformist.model import (
    BOS,
    Attention,
    Binary,
    Embedding,
    Layer,
    LinearForm,
    NearZero,
    Stream,
    Trace,
    Transformer,
)
from transformist.rounding import float_format_of, power_of_two_at_most


def _is_balanced(x: str) -> bool:
    """True for a word of Dyck-1: no prefix closes more than it opens, the whole closes all."""
    depth = 0
    for symbol in x:
        depth += 1 if symbol == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _hard_strings(n: int) -> list[str]:
    """Return strings of about length n that are balanced, or fail to be at a single place."""
    half, third = n // 2, n // 6
    walk = random.Random(n)
    drawn = walk.sample("(" * half + ")" * half, 2 * half)
    depth = lowest = where = 0
    for position, symbol in enumerate(drawn, start=1):
        depth += 1 if symbol == "(" else -1
        if depth < lowest:
            lowest, where = depth, position
    # Rotated to begin behind its lowest point, a string with as many of each bracket never falls
    # below zero: so it is balanced (the cycle lemma).
    rotated = "".join(drawn[where:] + drawn[:where])
    strings = ["(" * n, ")" * n, ")(" * half, ")" * half + "(" * half]
    for x in ("((()))" * third, "(" * half + ")" * half, "()" * half, rotated):
        middle, inner = len(x) // 2, x[: max(len(x) - 2, 0)]
        strings += [x, f"{x}(", f"{x})", f"({x}", f"){x}"]  # one bracket too many
        strings += [x[1:], x[:-1], x[:middle] + x[middle + 1 :]]  # one too few
        strings += [f"){x[1:]}", f"{x[:-1]}(", f"){x[:-1]}", f"{x[1:]}("]  # one turned or moved
        strings += [f")({inner}", f"{inner})(", f"{x[:middle]})({x[middle:]}"]  # one dip below zero
    return [x for x in dict.fromkeys(strings) if len(x) <= n]


def _unmatched(trace: Trace) -> Finding:
    """Find the first bracket of the input that stays unmatched, by matching, in no format."""
    opened: list[int] = []
    for position, symbol in enumerate(trace.input, start=1):
        if symbol == "(":
            opened.append(position)
        elif opened:
            opened.pop()
        else:
            return Finding(sentence="a ) closes a bracket that was never opened", position=position)
    if opened:
        sentence = f"a ( is never closed ({len(opened)} in all)"
        return Finding(sentence=sentence, position=opened[0])
    return Finding(sentence="every bracket is matched")


def _mean(stream: Stream, read: str, write: str, weighting: str) -> Attention:
    """Return the head that takes the mean of a slot up to each position, with equal scores."""
    return attend(stream, [read], [write], weighting=weighting, mask="future")


def step_zone(max_length: int) -> Fraction:
    """Return s, the largest power of two that is at most 1/(N + 1).

    A mean over i + 1 ≤ N + 1 positions of integers is 0 or at least s in magnitude.

    Example:
        >>> step_zone(1000)
        Fraction(1, 1024)

    """
    return power_of_two_at_most(Fraction(1, max_length + 1))


def balance_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the longest N, a power of two less 1, for which dyck-1 parts means of 0 from others.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT32
        >>> balance_length(BFLOAT16), balance_length(FLOAT32)
        (63, 2047)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # s = 1/(N + 1) is the least magnitude of a mean of ±1 that is not 0. A mean that is 0 is
    # computed as exactly 0, or within u N/4 < s/4 of it where sums round in the format itself:
    # 2 u (N + 1)² ≤ 1. A step from 0 at s/4 to 1 at 3s/4 is the difference of numbers of at most
    # 1/s, so that its 1 is within u/s ≤ 1/4 of 1: 4 u (N + 1) ≤ 1.
    u = a.unit_roundoff
    return min(int(1 / (4 * u)), _rows_of_zero_sums(a, lambda rows: 2 * u * rows**2 <= 1)) - 1


def balance_check_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which the means of dyck-1-uniform, where not 0, are told from 0.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT16, FLOAT32
        >>> [balance_check_length(each) for each in (BFLOAT16, FLOAT16, FLOAT32)]
        [32767, 2047, 307]

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    u, least = a.unit_roundoff, Fraction(a.smallest)
    if u == a.accumulator_roundoff:
        # Sums round in the format itself: a mean that is 0 is computed within u n/4 of it. Half of
        # (n + 1)⁻², where the check parts 0 from the others, is more, with an eighth left to the
        # second mean, for u n (n + 1)² ≤ 7/4.
        return longest(lambda n: u * n * (n + 1) ** 2 <= Fraction(7, 4))
    # A mean that is 0 is computed as exactly 0. One that is not keeps more than half of itself
    # through five roundings of u ≤ 1/8, if it does not underflow: 4 · smallest ≤ (n + 1)⁻². The
    # count of rows does not overflow.
    rows = _rows_of_zero_sums(a, lambda _: False)
    while 4 * least * rows**2 > 1 or rows > a.largest:
        rows //= 2
    return rows - 1


def _rows_of_zero_sums(a: Floating, is_near: Callable[[int], bool]) -> int:
    """Return the most rows, a power of two, over which ±1 that cancel have a mean of 0, or nearly.

    Args:
        a: the format.
        is_near: of the rows, where the format accumulates in itself: true if the mean is near 0.

    """
    # A weight 1/m, m ≤ rows, is rounded to a multiple of u/rows. Partial sums of weights and their
    # negatives are multiples of it below 2. The accumulator holds these, up to 1/w times u/rows, so
    # that what cancels is exactly 0, where 2 w rows ≤ u.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    holds = is_near if w == u else (lambda rows: 2 * w * rows <= u)
    rows = 1
    while holds(2 * rows):
        rows *= 2
    return rows


_PARENTHESES = Strings(alphabet=("(", ")"), hard=_hard_strings)
_DYCK_1: dict[str, Any] = {
    "reference": _is_balanced,
    "domain": lambda: _PARENTHESES,
    "weightings": ("softmax", "average-hard"),
    "mask": "future",
    "variants": ({"weighting": "average-hard"},),
}
_WORDS = {"(": {"sign": 1}, ")": {"sign": -1}, BOS: {"sign": 0}}


@recipe(
    "dyck-1-uniform",
    section="9.2.1",
    claim=StringClaim(
        statement="x is in Dyck-1, for every length, by a check outside the weights",
        **_DYCK_1,
        safe_length=lambda *, arithmetic: balance_check_length(arithmetic),
        why_safe="a balance that is 0 is computed within u n/4 of 0, and exactly in the formats "
        "that accumulate in float32; the check parts 0 from 1/(n + 1)² half-way",
    ),
    sources=("Bhattamishra et al. 2020",),
    explain=_unmatched,
    errata=("dyck-1-empty", "dyck-1-least-magnitudes", "dyck-1-uniform-bit"),
)
def dyck_1_uniform(weighting: str = "softmax") -> Transformer:
    """Prefix means of ±1, then of the parts below zero; both are 0 at the end of a Dyck word."""
    stream = Stream(("sign", "balance", "shortfall", "shortfalls"))
    below_zero = cpwl.build(knots=[-1, 0, 1], values=[0, 0, 1])
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, _WORDS, front=[BOS]),
        layers=(
            Layer(
                heads=(_mean(stream, "sign", "balance", weighting),),
                feed_forward=route(below_zero, stream, read=[{"balance": -1}], write=["shortfall"]),
            ),
            Layer(heads=(_mean(stream, "shortfall", "shortfalls", weighting),)),
        ),
        # A balance that is not 0 is at least 1/(n + 1). Then so is a shortfall that is not 0, and
        # its mean over n + 1 rows is at least 1/(n + 1)².
        read_out=NearZero(W_out=stream.reading("balance", "shortfalls"), powers=(1, 2)),
    )


def comparator_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the longest N for which dyck-1-nonuniform tells 0 from the least means by EqZero.

    Example:
        >>> from transformist.arithmetic import FLOAT16, FLOAT32
        >>> comparator_length(FLOAT16), comparator_length(FLOAT32)
        (5, 183)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # EqZero has ε = 1/Q and weights Q, −2Q, Q, with Q = r², r = N + 1 rows. On a number x of at
    # most 1 its sums x + ε and x − ε round by u (with ε: Q · 2u + 3u of the result), its products
    # by w (4 w Q), its two sums by w of at most Q and 1. In all it is off by (2u + 5w) Q + 5u; Q
    # and 2Q round alike, and so scale the result.
    # A mean that is not 0 loses a share ρ of itself, and EqZero gains ρ at most where the mean is
    # the least one, ε. Where w is below u, ρ is five roundings, 5u. Where w = u, a balance of at
    # least 1/r is off by u (r/2 + 2), and the mean of shortfalls loses (r + 2) u more: ρ ≤ 3 u Q.
    # A mean that is 0 is computed as 0; where w = u, within u r/4, the second one within a share
    # r u of that, below 1/8. So EqZero loses 9/32 u r Q.
    # Both bits may be off by less than 1/4, as their conjunction is compared with 1/2; 1/8 leaves
    # room for higher orders and the rounding of the conjunction.
    u, w = a.unit_roundoff, a.accumulator_roundoff
    share = Fraction(9, 32) if u == w else Fraction(0)
    within = balance_check_length(a) or 0

    def holds(n: int) -> bool:
        rows = n + 1
        return n <= within and (5 * (u + w) + share * u * rows) * rows**2 + 12 * u <= Fraction(1, 8)

    return longest(holds)


@recipe(
    "dyck-1",
    section="9.2.1",
    claim=StringClaim(
        statement="x is in Dyck-1, for n ≤ N, as a slot that is 0 or 1",
        **{
            **_DYCK_1,
            "variants": (
                {"weighting": "average-hard"},
                {"printed": True, "weighting": "average-hard", "max_length": 24},
            ),
        },
        safe_length=lambda *, arithmetic, printed: (
            comparator_length(arithmetic) if printed else balance_length(arithmetic)
        ),
        why_safe="with s ≤ 1/(N + 1) a power of two, a balance that is 0 is computed within u n/4 "
        "< s/4 of 0, and exactly in the formats that accumulate in float32; a word that ends in "
        "balance after a violation has passed −1, where the step counts at least 1 − u/s ≥ 3/4; as "
        "printed: bounds.comparator_length",
        depends_on=("N",),
    ),
    sources=("Bhattamishra et al. 2020", "printed=True has the circuit of dyck-1-nonuniform"),
    explain=_unmatched,
    errata=("dyck-1-empty", "dyck-1-least-magnitudes", "dyck-1-comparator-cancels"),
)
def dyck_1(
    max_length: int = 1024, weighting: str = "softmax", printed: bool = False
) -> Transformer:
    """Means are 0 or at least s in magnitude; steps that are 0 to s/4 and 1 from 3s/4 part them.

    The first layer marks each prefix that closes more than it opens. The mark is exactly 0 within
    the dead zone, so that the rounding of many balances cannot add up in the second mean.
    """
    if printed:
        nonuniform: Transformer = dyck_1_nonuniform.build(
            max_length=max_length, weighting=weighting
        )
        return nonuniform
    # The first step reads −balance − s/4: 0 for balances ≥ −s/4, 1 for those ≤ −3s/4. The second
    # reads 3s/4 − violations − |balance|, the sum of which is 0 or at least s: 1 where it is ≤ s/4,
    # 0 where it is ≥ 3s/4. So each number may be off by s/4.
    s = step_zone(max_length)
    step = greater_than_zero.build(epsilon=s / 2)
    stream = Stream(("sign", "balance", "imbalance", "violation", "violations", "accept"))
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, _WORDS, front=[BOS]),
        layers=(
            Layer(
                heads=(_mean(stream, "sign", "balance", weighting),),
                feed_forward=beside(
                    route(step, stream, [{"balance": -1}], ["violation"], shift=-s / 4),
                    units(stream, *(({"balance": sign}, 0, "imbalance") for sign in (1, -1))),
                ),
            ),
            Layer(
                heads=(_mean(stream, "violation", "violations", weighting),),
                feed_forward=route(
                    step, stream, [{"violations": -1, "imbalance": -1}], ["accept"], shift=3 * s / 4
                ),
            ),
        ),
        read_out=Binary(W_out=stream.reading("accept"), b_out=["-1/2"]),
        max_length=max_length,
    )


@recipe(
    "dyck-1-nonuniform",
    section="9.2.1",
    claim=StringClaim(
        statement="x is in Dyck-1, for n ≤ N, by EqZero as printed, with ε = 1/(N + 1)²",
        **{
            **_DYCK_1,
            "weightings": ("average-hard", "softmax"),
            "variants": ({"weighting": "softmax", "max_length": 24},),
        },
        safe_length=lambda *, arithmetic: comparator_length(arithmetic),
        why_safe="bounds.comparator_length: the weights (N + 1)² of EqZero cancel, so that a "
        "rounding of u is one of about (N + 1)² u",
        depends_on=("N",),
    ),
    sources=(
        "Bhattamishra et al. 2020",
        "ε is 1/(N + 1)², as BOS is one of the positions; printed for inputs of length n: 1/n²",
        "no certificate holds at any N: a proof bounds EqZero by the range of the mean, and does "
        "not use that the mean is 0 or at least ε, so it finds no margin at the read-out; dyck-1 "
        "has steps in place of EqZero, and is certified",
    ),
    explain=_unmatched,
    errata=("dyck-1-empty", "dyck-1-least-magnitudes", "dyck-1-comparator-cancels"),
)
def dyck_1_nonuniform(max_length: int = 64, weighting: str = "average-hard") -> Transformer:
    """EqZero of the balance and of the mean shortfall, then their conjunction in a third layer."""
    stream = Stream(
        ("sign", "balance", "shortfall", "shortfalls", "balanced", "unviolated", "accept")
    )
    is_zero = equal_zero.build(epsilon=Fraction(1, (max_length + 1) ** 2))
    both = units(stream, ({"balanced": 1, "unviolated": 1}, -1, "accept"))
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, _WORDS, front=[BOS]),
        layers=(
            Layer(
                heads=(_mean(stream, "sign", "balance", weighting),),
                feed_forward=units(stream, ({"balance": -1}, 0, "shortfall")),
            ),
            Layer(
                heads=(_mean(stream, "shortfall", "shortfalls", weighting),),
                feed_forward=beside(
                    route(is_zero, stream, read=["balance"], write=["balanced"]),
                    route(is_zero, stream, read=["shortfalls"], write=["unviolated"]),
                ),
            ),
            Layer(feed_forward=both),
        ),
        read_out=Binary(W_out=stream.reading("accept"), b_out=["-1/2"]),
        max_length=max_length,
    )


_BITS = ("unviolated", "all closed")


def share_length(arithmetic: Arithmetic | str) -> int | None:
    """Return the n up to which shares of two symbols are equal in a format if their counts are.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT32
        >>> share_length(BFLOAT16), share_length(FLOAT32)
        (63, 4194303)

    """
    a = float_format_of(arithmetic)
    if a is None:
        return None
    # A share of k symbols is the weight c = fl(1/r), r ≤ n + 1, added k times to 0, beside zeros
    # that change no sum: equal counts give equal numbers. Let r ≤ 1/(4u), so that c ≥ 4u (1 − u).
    # Another c adds at least c − 2w to a sum below 2, which is more than 0. Where sums are stored
    # in a narrower format, w ≤ u/4 and u ≤ 1/8 make it 3u at least, more than the spacing 2u of
    # numbers below 2: larger counts give larger numbers. Their difference rounds to 0 only if
    # it is 0: no format here rounds the difference of two unequal numbers to 0.
    return int(1 / (4 * a.unit_roundoff)) - 1


@recipe(
    "dyck-1-exact-uniform",
    section="9.2.1",
    claim=StringClaim(
        statement="x is in Dyck-1, for every length, as a slot that is exactly 0 or 1, by weights "
        "that depend on no length and leftmost-hard heads",
        **_DYCK_1,
        safe_length=lambda *, arithmetic: share_length(arithmetic),
        why_safe="bounds.share_length: equal counts of brackets have equal shares, bit for bit",
        gap=lambda *, n: (Fraction(1, n + 1) ** 2, 1),
        gap_statement="at least 1/(n + 1)²",
        excluded={"interval": "a ball around a balance of 0 has no sign"},
    ),
    sources=("the paper holds that weights without N cannot give a bit; uniform heads cannot",),
    explain=_unmatched,
    errata=("dyck-1-empty", "dyck-1-uniform-bit"),
)
def dyck_1_exact_uniform(weighting: str = "softmax") -> Transformer:
    """Shares of both brackets, then two leftmost-hard heads that find BOS unless one is larger.

    The scores of the first are the shares of ) less those of (: BOS has 0, and so the leftmost
    maximum, unless some prefix closes more than it opens. Those of the second are the last balance
    at every position and 0 at BOS: BOS has the leftmost maximum unless that balance is positive.
    """
    stream = Stream(("opens", "closes", "one", "front", "opened", "closed", *_BITS, "accept"))
    words: dict[Any, LinearForm] = {
        "(": {"opens": 1, "one": 1},
        ")": {"closes": 1, "one": 1},
        BOS: {"front": 1, "one": 1},
    }
    deficit: LinearForm = {"closed": 1, "opened": -1}
    balance: LinearForm = {"opened": 1, "closed": -1}

    def finds_front(bit: str, query: LinearForm | str, key: LinearForm) -> Attention:
        return attend(stream, ["front"], [bit], [query], [key], "leftmost-hard", "future")

    unviolated, all_closed = _BITS
    return Transformer(
        stream=stream,
        embedding=Embedding.of(stream, words, front=[BOS]),
        layers=(
            Layer(
                heads=(
                    _mean(stream, "opens", "opened", weighting),
                    _mean(stream, "closes", "closed", weighting),
                )
            ),
            Layer(
                heads=(
                    finds_front(unviolated, "one", deficit),
                    finds_front(all_closed, balance, {"front": -1}),
                ),
                feed_forward=units(stream, ({unviolated: 1, all_closed: 1}, -1, "accept")),
            ),
        ),
        read_out=Binary(W_out=stream.reading("accept"), b_out=["-1/2"]),
    )


# 9.2.2 and 9.2.3: bounded depth


_PAIRS = ("()", "[]", "{}", "<>")


def bracket_alphabet(kinds: int) -> tuple[str, ...] | tuple[int, ...]:
    """Return the brackets of each kind, opening and closing; from 5 kinds on integers +t and −t.

    Example:
        >>> bracket_alphabet(2), bracket_alphabet(5)
        (('(', ')', '[', ']'), (1, -1, 2, -2, 3, -3, 4, -4, 5, -5))

    """
    if kinds <= len(_PAIRS):
        return tuple("".join(_PAIRS[:kinds]))
    return tuple(sign * t for t in range(1, kinds + 1) for sign in (1, -1))


def _signed(symbol: Any) -> int:
    """Return +t for the opening bracket of kind t, −t for the closing one."""
    if isinstance(symbol, int):
        return symbol
    kind, closes = divmod("".join(_PAIRS).index(symbol), 2)
    return -(kind + 1) if closes else kind + 1


def _is_bounded_dyck(x: Sequence[Any], *, kinds: int, depth: int) -> bool:
    """True for a word of Dyck-k-D: brackets close the last one open, never more than D open."""
    alphabet = bracket_alphabet(kinds)
    closing = dict(zip(alphabet[::2], alphabet[1::2], strict=True))
    expected: list[Any] = []
    for symbol in x:
        if symbol in closing:
            expected.append(closing[symbol])
            if len(expected) > depth:
                return False
        elif not expected or expected.pop() != symbol:
            return False
    return not expected


def _hard_bounded(n: int, *, kinds: int, depth: int) -> list[Any]:
    """Return words of about length n that nest D deep, and strings near them."""
    walk = random.Random(f"{n} {kinds} {depth}")
    alphabet = bracket_alphabet(kinds)
    pairs = list(zip(alphabet[::2], alphabet[1::2], strict=True))
    half = n // 2

    def nest(height: int) -> list[Any]:
        chosen = [walk.choice(pairs) for _ in range(height)]
        return [left for left, _ in chosen] + [right for _, right in reversed(chosen)]

    def walked(height: int) -> list[Any]:
        word: list[Any] = []
        closing: list[Any] = []
        for left in range(2 * half, 0, -1):
            room = len(closing) < min(height, left - 1)
            if not closing or (room and walk.random() < 0.5):
                opened, closed = walk.choice(pairs)
                word.append(opened)
                closing.append(closed)
            else:
                word.append(closing.pop())
        return word

    words = [nest(min(depth, half)) * max(1, half // depth), nest(1) * half, nest(half)]
    words += [nest(depth + 1), walked(depth), walked(depth), walked(depth + 1)]
    words += [nest(depth)[:-1] + nest(1) * (half - depth) + nest(depth)[-1:]]
    words += [[pairs[0][0]] + nest(1) * (half - 1) + [pairs[-1][1]], [pairs[0][1], pairs[0][0]]]
    strings = [[], *words]
    for word in words:
        if word:
            place, other = walk.randrange(len(word)), walk.choice(alphabet)
            strings += [word[1:], word[:-1], word[:place] + word[place + 1 :]]
            strings += [[*word[:place], other, *word[place + 1 :]]]
            strings += [[*word[:place], other, *word[place:]], word[place:] + word[:place]]
    kept = dict.fromkeys(tuple(x) for x in strings if len(x) <= n)
    return ["".join(x) for x in kept] if kinds <= len(_PAIRS) else list(kept)


def _bounded(kinds: int, depth: int, weighting: str) -> Transformer:
    """Return the model of D rounds, each marking the active pairs of neighbours that match."""
    stream = Stream(("bracket", "opens", "active", "left", "right", "place", "one", "remaining"))
    words: dict[Any, LinearForm] = {
        symbol: {
            "bracket": _signed(symbol),
            "opens": int(_signed(symbol) > 0),
            "active": 1,
            "one": 1,
        }
        for symbol in bracket_alphabet(kinds)
    }

    def nearest(side: str, key: LinearForm, mask: str) -> Any:
        return attend(stream, ["bracket"], [side], ["one"], [key], weighting, mask)

    M = _marking(kinds)
    match = equal_zero.build(epsilon=1)
    opening: dict[str, int] = {"bracket": -1, "right": -1, "active": M, "opens": M, "one": -2 * M}
    closing: dict[str, int] = {"bracket": 1, "left": 1, "active": M, "opens": -M, "one": -M}
    unmark: list[LinearForm] = [{"active": -1}]
    # One round for each depth. The head to the left finds the last active position before, the head
    # to the right the first one after. If a bracket and its neighbour match, both are marked: the
    # layer subtracts 1 from `active`, and clears what the heads have written for the next round.
    round_ = Layer(
        heads=(
            nearest("left", {"active": 1, "place": 1}, "strict-future"),
            nearest("right", {"active": 1, "place": -1}, "strict-past"),
        ),
        feed_forward=beside(
            route(match, stream, [opening], unmark),
            route(match, stream, [closing], unmark),
            route(identity.build(), stream, [{"left": -1}, {"right": -1}], ["left", "right"]),
        ),
    )
    # An active position scores 1, all others 0, so that the head fetches 1 if there is one.
    any_active = attend(stream, ["active"], ["remaining"], ["one"], ["active"], weighting)
    return Transformer(
        stream=stream,
        embedding=Embedding.of(
            stream, {**words, BOS: {"one": 1}}, positions={"place": "i/n"}, front=[BOS]
        ),
        layers=(*[round_] * depth, Layer(heads=(any_active,))),
        read_out=Binary(W_out=stream.reading({"remaining": -1}), b_out=["1/2"]),
    )


def _marking(kinds: int) -> int:
    """Return M, a power of two above 2k: the weight of `active` and `opens`; brackets have 1."""
    # The step of `opening` reads −bracket − right + M (active + opens − 2): the brackets alone at
    # an active opening bracket, at most 2k − M ≤ −1 elsewhere, where [x = 0] of zone 1 is 0. That
    # of `closing` reads bracket + left + M (active − opens − 1): likewise.
    return 1 << (2 * kinds + 1).bit_length()


def _bounded_length(*, arithmetic: Arithmetic, kinds: int) -> int | None:
    """Return the safe length of the scores; 0 where the format does not hold k or the weights."""
    if isinstance(arithmetic, Floating) and (
        kinds > 2**arithmetic.precision or 2 * _marking(kinds) > arithmetic.largest
    ):
        return 0
    return nearest_active_length(arithmetic)


def _left_active(x: Sequence[Any], depth: int) -> list[int]:
    """Return the positions that no round marks.

    A pair is marked in the round after all that it encloses. Each entry of the stack is an unmarked
    position, its bracket, and the number of rounds that the brackets after it took.
    """
    stack: list[tuple[int, int, int]] = [(0, 0, 0)]
    for position, symbol in enumerate(x, start=1):
        value = _signed(symbol)
        _, bracket, rounds = stack[-1]
        if value < 0 and bracket == -value and rounds < depth:
            stack.pop()
            before, outer, taken = stack.pop()
            stack.append((before, outer, max(taken, rounds + 1)))
        else:
            stack.append((position, value, 0))
    return [position for position, _, _ in stack[1:]]


def _first_active(trace: Trace) -> Finding:
    """Find the first bracket that stays active after D rounds, and the reason."""
    depth = len(trace.model.layers) - 1
    active = _left_active(trace.input, depth)
    if not active:
        return Finding(sentence="every bracket is matched")
    return _why_active(trace.input, active[0], depth)


def _why_active(x: Sequence[Any], position: int, depth: int) -> Finding:
    """Find the reason for which the first active bracket has no match."""
    symbol = x[position - 1]
    if _signed(symbol) < 0:
        sentence = f"a {symbol} closes a bracket that was never opened"
        return Finding(sentence=sentence, position=position)
    opened, deepest, innermost = [position], 1, position
    for place in range(position + 1, len(x) + 1):
        if _signed(x[place - 1]) > 0:
            opened.append(place)
            if len(opened) > deepest:
                deepest, innermost = len(opened), place
            continue
        inner = opened.pop()
        if _signed(x[inner - 1]) != -_signed(x[place - 1]):
            met = f"a {x[inner - 1]} is closed by a {x[place - 1]}"
            sentence = met if inner == position else f"a {symbol} is never matched: inside it {met}"
            return Finding(sentence=sentence, position=position, related=(inner, place))
        if not opened:
            sentence = f"a {symbol} opens brackets that nest {deepest} deep, deeper than {depth}"
            return Finding(sentence=sentence, position=position, related=(innermost,))
    return Finding(sentence=f"a {symbol} is never closed", position=position)


_BOUNDED_SOURCES = ("Yao et al. 2021", "Yang et al. 2024")

_BOUNDED: dict[str, Any] = {
    "reference": _is_bounded_dyck,
    "safe_length": lambda *, arithmetic: _bounded_length(arithmetic=arithmetic, kinds=1),
    "why_safe": "the nearest active position is told from the others by j/n: scores a ± j/n stay "
    "distinct where 1/n > 3u; the other numbers are whole and at most 2k, of which those above 2^p "
    "occur only as negative ones, which ReLU takes to 0. A format that does not hold the k kinds, "
    "or the weights, is not claimed",
    "weightings": ("average-hard", "leftmost-hard", "rightmost-hard"),
    "mask": "strict-future and strict-past",
    "features": ("i/n",),
    "depends_on": ("n",),
    "gap": lambda *, n: (Fraction(1, n), 1),
    "gap_statement": "1/n, between active positions",
}


@recipe(
    "dyck-1-2",
    section="9.2.2",
    claim=StringClaim(
        statement="x is in Dyck-1-2: balanced, with at most 2 brackets open at a time",
        **{
            **_BOUNDED,
            "reference": lambda x: _is_bounded_dyck(x, kinds=1, depth=2),
            "domain": lambda: Strings(("(", ")"), lambda n: _hard_bounded(n, kinds=1, depth=2)),
        },
        variants=({"weighting": "leftmost-hard"}, {"weighting": "rightmost-hard"}),
        size="width 8, 3 layers",
    ),
    sources=_BOUNDED_SOURCES,
    explain=_first_active,
    errata=("constant-query", "past-mask-sign"),
)
def dyck_1_2(weighting: str = "average-hard") -> Transformer:
    """Dyck-k-D for one kind and depth 2: two rounds of marking adjacent pairs."""
    return _bounded(1, 2, weighting)


@recipe(
    "dyck-k-d",
    section="9.2.3",
    claim=StringClaim(
        statement="x is in Dyck-k-D: brackets of k kinds match, at most D open at a time",
        domain=lambda *, kinds, depth: Strings(
            bracket_alphabet(kinds), lambda n: _hard_bounded(n, kinds=kinds, depth=depth)
        ),
        **{**_BOUNDED, "safe_length": _bounded_length},
        variants=(
            {"weighting": "leftmost-hard"},
            {"weighting": "rightmost-hard"},
            {"kinds": 1, "depth": 1},
            {"kinds": 3, "depth": 2},
            {"kinds": 4, "depth": 4},
            {"kinds": 6, "depth": 2},
            {"kinds": 64, "depth": 2},
        ),
        size="width 8, D + 1 layers, 10 hidden units, whatever k",
    ),
    sources=_BOUNDED_SOURCES,
    explain=_first_active,
    errata=("constant-query", "past-mask-sign"),
)
def dyck_k_d(kinds: int = 2, depth: int = 3, weighting: str = "average-hard") -> Transformer:
    """In each round, active brackets find the nearest active ones; pairs that match turn inactive.

    The scores are a_j + j/n to the left and a_j − j/n to the right. Let o = ±t be the bracket, and
    l and r the brackets that the two heads find. An opening bracket is matched if −o − r = 0, a
    closing one if o + l = 0. M ≥ 2k + 1 is subtracted if the bracket is inactive, or
    closing in the first case, opening in the second, so that EqZero₁ gives 0.
    """
    return _bounded(kinds, depth, weighting)


RECIPES = (dyck_1_uniform, dyck_1, dyck_1_nonuniform, dyck_1_exact_uniform, dyck_1_2, dyck_k_d)
"""Recipes of the chapter, in the order in which they are listed."""
