"""Finite arithmetic: what the largest number B can do where nothing exceeds it.

From "Primitives of transformers" (GLyC, October 2025), corrected. B stands where the source has ∞:
(x + B) + B − B is 0 for every x, since each sum is clamped, and exp(−B) is 0. The infinities of
IEEE 754 do none of this: with them 0 · ∞ and ∞ − ∞ are NaN, and weights are finite here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction as F
from typing import Any, TypeAlias

import numpy as np

from transformist.arithmetic import (
    MOST_BITS,
    SYSTEMS,
    Arithmetic,
    Floating,
    Saturating,
    number_system,
)
from transformist.assembly import flags as on_models
from transformist.assembly import units
from transformist.assembly.maxima import keep_larger_as_printed, keep_largest
from transformist.catalogue.positions import require_size
from transformist.claims import PositionClaim, SequenceClaim, recipe
from transformist.domains import (
    Bits,
    Case,
    Domain,
    FormatNumbers,
    Product,
    Sequences,
    Values,
    Where,
)
from transformist.errors import InvalidValue
from transformist.model import (
    Attention,
    FeedForward,
    Layer,
    LayerStack,
    PositionTable,
    Stream,
)
from transformist.rounding import dot_error

PRIMITIVES = "Primitives of transformers (GLyC, October 2025)"

Matrix: TypeAlias = "tuple[tuple[F, ...], ...]"

NOT_CLAMPED = dict.fromkeys(SYSTEMS, "its sums are not clamped at B: (x + B) + B − B is not 0")
"""Reason for which recipes that clear numbers are claimed in none of these arithmetics."""

NO_INFINITY = "B is a number: of an infinity 0 · ∞ and ∞ − ∞ are NaN"


# In which arithmetics: fixed point of every resolution, and float formats clamped at B


def _ending_at(largest: F) -> list[Arithmetic]:
    """Return the arithmetics whose largest number is B."""
    # Resolutions are powers of two up to 1, B being one. The finest is 1/B, with which B r = 1 and
    # numbers are 1/B apart, or the finest that the system keeps.
    # From the finest on, each twice as coarse as the one before, up to 1.
    finest = max(1 / largest, largest / 2**MOST_BITS)
    steps = [finest * 2**k for k in range(int(1 / finest).bit_length())]
    formats = [name for name, each in SYSTEMS.items() if isinstance(each, Floating)]
    held = [name for name in formats if _holds(SYSTEMS[name], largest)]
    names = [f"saturating:{largest}:{r}" for r in steps] + [f"{name}:{largest}" for name in held]
    return [number_system(name) for name in names]


def _roomy(largest: F) -> list[Arithmetic]:
    """Return the float formats, not clamped, that hold 2 B."""
    formats = [each for each in SYSTEMS.values() if isinstance(each, Floating)]
    return [each for each in formats if 2 * largest <= F(each.largest)]


def _holds(system: Arithmetic, value: F) -> bool:
    """True if the arithmetic holds a number."""
    if system.largest is not None and abs(value) > system.largest:
        return False
    return bool(F(system.numbers(system.array([value]))[0]) == value)


def _names(systems: Iterable[Arithmetic]) -> tuple[str, ...]:
    return tuple(each.name for each in systems)


def _vanishes(system: Arithmetic, largest: F) -> bool:
    """True if exp(−B) is 0."""
    return not system.numbers(system.exp(system.array([-largest])))[0]


def _holding(systems: Iterable[Arithmetic], values: Iterable[F]) -> tuple[str, ...]:
    """Return the names of the systems that hold the values."""
    kept = set(values)
    return _names(each for each in systems if all(_holds(each, value) for value in kept))


def _selecting(systems: Iterable[Arithmetic], largest: F, matrix: Matrix) -> tuple[str, ...]:
    """Return the systems where exp(−B) is 0, so that a head can select, that hold the matrix."""
    chosen = [system for system in systems if _vanishes(system, largest)]
    return _holding(chosen, itertools.chain(*matrix))


def _clamped(x: F, arithmetic: Arithmetic) -> F:
    """Return x, clamped to B in an arithmetic whose largest number is B."""
    if not arithmetic.saturates:
        return x
    limit = F(arithmetic.largest)
    return min(max(x, -limit), limit)


def _numbers(width: int, bound: F, points: tuple[F, ...] = ()) -> Domain:
    """Return vectors of numbers of the arithmetic, up to a bound."""

    def small(case: Case) -> bool:
        return abs(case[0]) <= bound

    return Product((Where(FormatNumbers(points), small, f"|x| ≤ {bound}"),) * width)


def _slots(width: int, letter: str = "x") -> tuple[str, ...]:
    return tuple(f"{letter}{k}" for k in range(1, width + 1))


def _stack(*slots: str, gives: Sequence[str], takes: Sequence[str] | None = None) -> LayerStack:
    """Return a stack of no layers on these slots, to which functions add layers."""
    return LayerStack(Stream(slots), tuple(slots if takes is None else takes), (), tuple(gives))


_CLEARED: dict[str, Any] = {
    "excluded": NOT_CLAMPED,
    "only_in": lambda *, largest: _names(_ending_at(largest)),
}
"""Part of the claims of recipes that clear numbers."""


# Flags


@recipe(
    "flag",
    section="Embedding with flags",
    document=PRIMITIVES,
    claim=PositionClaim(
        statement="pe(i) = 1 at the flagged position, 0 elsewhere",
        reference=lambda *, i, flagged: [int(i == flagged)],
        error=lambda: F(0),
        error_statement="exact, wherever it is claimed",
        only_in=lambda: _names((*SYSTEMS.values(), *_ending_at(F(16)))),
        variants=({"flagged": 2, "max_length": 5}, {"flagged": 11, "max_length": 12}),
        depends_on=("N",),
    ),
    sources=(
        "a flag in a new coordinate changes nothing else as long as d_key stays what it was, and "
        "no norm sees the flag",
    ),
    errata=("flag-width",),
)
def flag(max_length: int = 64, flagged: int = 1) -> PositionTable:
    """A column of the identity matrix."""
    require_size(max_length, 1, "flag")
    if flagged > max_length:
        raise InvalidValue(
            f"the flagged position must be one from 1 to N = {max_length}",
            received=f"flagged = {flagged}",
            where="flag",
            remedy="give a smaller one, or a larger max_length",
        )
    return PositionTable(vectors=np.eye(max_length)[:, [flagged - 1]])


@recipe(
    "add-at-flag",
    section="Add one specific vector to the i th",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="yᵢ = xᵢ + v where the flag is 1, xᵢ where it is 0; clamped if numbers end at B",
        reference=lambda *, x, flag, vector, arithmetic: [
            [_clamped(value + bit * v, arithmetic) for value, v in zip(row, vector, strict=True)]
            for row, (bit,) in zip(x, flag, strict=True)
        ],
        domain=lambda *, vector, largest: Sequences(
            (Values("x", _numbers(len(vector), largest)), Values("flag", Bits(1)))
        ),
        error=lambda *, arithmetic, size, vector: (
            arithmetic.unit_roundoff * (size + max(map(abs, vector)))
        ),
        error_statement="the sum is rounded once in a float format, which holds v; else exact",
        only_in=lambda *, vector, largest: _holding(
            (*_roomy(max(largest, *map(abs, vector))), *_ending_at(largest)), vector
        ),
        excluded=dict.fromkeys(("exact", "interval"), "a claim about formats, whose numbers end"),
        variants=({"vector": [3]}, {"vector": ["1/2", 0, -7], "largest": 8}, {"largest": 1}),
        size="width d + 1, one hidden unit",
    ),
    sources=("no infinity is used: without a clamp the same weights add v in every format",),
    errata=("flag-added-to",),
)
def add_at_flag(vector: tuple[F, ...] = (F(1), F(-1)), largest: F = F(16)) -> LayerStack:
    """One hidden unit reads the flag and writes v."""
    if max(map(abs, vector)) > largest:
        raise InvalidValue(
            f"v must have numbers of the arithmetic, at most B = {largest}",
            received=f"v = [{', '.join(map(str, vector))}]",
            where="add-at-flag",
            remedy="give smaller numbers, or set largest, which is B, to a larger one",
        )
    x = _slots(len(vector))
    return on_models.add_at_flag(
        _stack(*x, "flag", gives=x), "flag", dict(zip(x, vector, strict=True))
    )


@recipe(
    "zero-at-flag",
    section="Make the i th vector zero",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="yᵢ = 0 where the flag is 1, xᵢ where it is 0",
        reference=lambda *, x, flag: [
            [(1 - bit) * value for value in row] for row, (bit,) in zip(x, flag, strict=True)
        ],
        domain=lambda *, width, largest: Sequences(
            (Values("x", _numbers(width, largest)), Values("flag", Bits(1)))
        ),
        **_CLEARED,
        variants=({"width": 1, "largest": 1}, {"largest": 2}, {"width": 3, "largest": 256}),
        size="width d + 1, three layers of one hidden unit",
    ),
    sources=(
        NO_INFINITY,
        "three residual sums, each clamped: B once is not enough for x < 0, and the sum taken at "
        "once, or in another order, is wrong",
    ),
    errata=("infinity-is-largest",),
)
def zero_at_flag(width: int = 2, largest: F = F(16)) -> LayerStack:
    """((x + B) + B) − B where the flag is 1."""
    x = _slots(width)
    return on_models.zero_at_flag(_stack(*x, "flag", gives=x), "flag", x, largest)


# What passes by


def _with_sums(*, x: list[tuple[F, ...]], ignored: tuple[int, ...]) -> list[list[F]]:
    """Return z + ReLU(sum of z), z the kept numbers each plus the sum of the first vector's."""
    # The reference writes the layer out by hand: leftmost-hard attention with equal scores fetches
    # the first position, whose sum is added to every kept number, and then the network adds up the
    # slots.
    kept = [k for k in range(len(x[0])) if k + 1 not in ignored]
    first = sum((x[0][k] for k in kept), F(0))
    rows = []
    for row in x:
        total = sum((row[k] + first for k in kept), F(0))
        rows.append([v + (first + max(total, F(0))) * (k in kept) for k, v in enumerate(row)])
    return rows


def _unclamped(*, width: int, largest: F) -> Domain:
    """Return vectors for which no sum of `_with_sums` is beyond B."""
    # For numbers up to b, s ≤ d b, z ≤ (1 + d) b, their sum ≤ d (1 + d) b: in all (1 + d)² b.
    return _numbers(width, largest / (1 + width) ** 2)


@recipe(
    "ignore-coordinates",
    section="ATTN y FF controlling which coordinates are affected",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="a layer that ignores coordinates: of the others alone it makes z = xᵢ + s, s "
        "the sum of x₁, then z + ReLU(sum of z); the ignored stay as they are",
        reference=_with_sums,
        domain=lambda *, width, largest: Sequences(
            (Values("x", _unclamped(width=width, largest=largest)),)
        ),
        only_in=lambda *, largest: _names(
            each for each in _ending_at(largest) if isinstance(each, Saturating)
        ),
        excluded=dict.fromkeys(SYSTEMS, "sums are claimed in fixed point, where they are exact"),
        weightings=("leftmost-hard",),
        mask="none",
        variants=(
            {"width": 1, "ignored": [1]},
            {"width": 3, "ignored": [1, 3], "largest": 64},
            {"width": 5, "ignored": [2, 3, 5], "largest": 256},
        ),
        size="width d, one layer",
    ),
    sources=(
        "columns of W_Q, W_K, W_V and W₁ and rows of W_O, W₂ and b₂ are 0 (Lemma 8.1 with a "
        "diagonal matrix); rows of W_Q, W_K, W_V and W₁ are no coordinates of the stream",
        "no infinity is used: in every arithmetic the others become, bit for bit, what the layer "
        "without these coordinates makes of them",
    ),
)
def ignore_coordinates(
    width: int = 4, ignored: tuple[int, ...] = (2,), largest: F = F(64)
) -> LayerStack:
    """A head that fetches the sum at the first position, and a network that adds up the slots.

    Both read the kept coordinates only, and write to them only.
    """
    if largest < (1 + width) ** 2:
        raise InvalidValue(
            f"B must be at least (1 + d)² = {(1 + width) ** 2}, so that no sum of ones is clamped",
            received=f"largest = {largest}",
            where="ignore-coordinates",
            remedy="give a larger one, or a smaller width",
        )
    if max(ignored) > width:
        raise InvalidValue(
            f"the ignored coordinates must be some of 1 to {width}, the width",
            received=f"ignored = {list(ignored)}",
            where="ignore-coordinates",
            remedy="give smaller ones, or a larger width",
        )
    # Every coordinate is read and written; then those that are ignored are neither.
    # With W_Q = W_K = 0 all scores are 0, so the leftmost of the largest is the first position.
    every, none = np.ones((1, width)), np.zeros((1, width))
    head = Attention(W_Q=none, W_K=none, W_V=every, W_O=every.T, weighting="leftmost-hard")
    layer = Layer((head,), FeedForward(W_1=every, W_2=every.T))
    x = _slots(width)
    stack = on_models.with_layers(_stack(*x, gives=x), (layer,))
    return on_models.ignoring(stack, [slot for k, slot in enumerate(x, 1) if k in ignored])


# Linear maps


def _times(matrix: Matrix, x: Sequence[F]) -> list[F]:
    return [sum((m * v for m, v in zip(row, x, strict=True)), F(0)) for row in matrix]


def _mapped(*, matrix: Matrix, largest: F) -> Domain:
    """Return vectors x for which no partial sum of M x is beyond B."""
    # A partial sum of row m is at most Σ|m| times the largest |x|, and x itself is at most B.
    most = max(sum(map(abs, row), F(0)) for row in matrix)
    return _numbers(len(matrix), largest / max(most, F(1)))


def _product_error(*, arithmetic: Arithmetic, matrix: Matrix, size: F) -> Any:
    """Return an error bound of M x for numbers up to `size`."""
    if isinstance(arithmetic, Saturating):
        # A whole number times a multiple of r is one. Each of d other products is rounded by r/2.
        whole = all(entry.denominator == 1 for entry in itertools.chain(*matrix))
        return F(0) if whole else len(matrix) * arithmetic.resolution / 2
    sizes = [size] * len(matrix)
    return max(dot_error(list(map(abs, row)), sizes, arithmetic, "any") for row in matrix)


_PRODUCT_ERROR = "exact in fixed point where M is whole, else d r/2; in a float format that of M x"


def _require_square(matrix: Matrix, where: str) -> None:
    if len(matrix) != len(matrix[0]):
        raise InvalidValue(
            "the matrix must be square: the output must be as long as the input",
            received=f"{len(matrix)} rows of {len(matrix[0])}",
            where=where,
            remedy="pad it with zeros",
        )


_M: Matrix = ((F(1), F(2)), (F(-1), F(1)))


def _lone_flag(flags: Sequence[Sequence[F]], before: int) -> int | None:
    """Return the one flagged position among the first, unless there are more or it receives."""
    places = [j for j, (flagged, _) in enumerate(flags[:before]) if flagged]
    return places[0] if len(places) == 1 and not flags[places[0]][1] else None


def _mapped_at_receivers(*, x: Any, flags: Any, matrix: Matrix) -> Any:
    """Return M x of the one flagged position before a receiver; `None` elsewhere."""
    sources = [_lone_flag(flags, i) if flags[i - 1][1] else None for i in range(1, len(x) + 1)]
    return [None if source is None else _times(matrix, x[source]) for source in sources]


@recipe(
    "linear-to-the-right",
    section="Linear transformation storing to the right",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="yᵢ = M xⱼ at a receiver i, if exactly one position j up to i is flagged, and j "
        "is no receiver; elsewhere nothing is claimed; flags are [flagged, receiver], 0 or 1",
        reference=_mapped_at_receivers,
        domain=lambda *, matrix, largest: Sequences(
            (
                Values("x", _mapped(matrix=matrix, largest=largest)),
                Values("flags", Bits(2)),
            )
        ),
        error=_product_error,
        error_statement=_PRODUCT_ERROR,
        excluded=NOT_CLAMPED,
        only_in=lambda *, largest, matrix: _selecting(_ending_at(largest), largest, matrix),
        weightings=("softmax",),
        mask="future",
        variants=(
            {"matrix": [[3]], "largest": 8},
            {"matrix": [["1/2", 0], [1, "-1/2"]]},
            {"largest": 128},
            {"printed": True},
            {"printed": True, "matrix": [[3]], "largest": 8},
        ),
        size="width d + 2, four layers; as printed width d + 3, five layers",
    ),
    sources=(
        NO_INFINITY,
        "the score B at the flag needs no coordinate for its complement, as −∞ elsewhere does; "
        "printed=True has the printed scores, with the complement in a slot of its own",
        "the head has d_key = 1, so that exp(−B) is 0 in fixed point of every resolution; with "
        "d_key = d it would be exp(−B/√d)",
        "M x may not be clamped on its way: 7 + 7 − 7 is 0 where B = 7",
    ),
    errata=("zero-times-infinity", "exp-of-minus-infinity", "product-saturates"),
)
def linear_to_the_right(
    matrix: Matrix = _M, largest: F = F(16), printed: bool = False
) -> LayerStack:
    """The receiver is cleared; a head then adds M x of the flag: its score is B, others have 0.

    As printed the flag has 0 and the others −B: minus B times their complement of the flag.
    """
    _require_square(matrix, "linear-to-the-right")
    x = _slots(len(matrix))
    stack = _stack(*x, "flag", "receiver", gives=x)
    if not printed:
        return on_models.linear_to_the_right(stack, x, matrix, largest)
    stack = on_models.with_slots(stack, ["other"])
    stream = stack.stream
    # The complement is 1 − flag, so the printed scores are −B · 1 elsewhere and 0 at the flag.
    others = Layer(feed_forward=units(stream, ({"flag": -1}, 1, "other")))
    cleared = on_models.clearing(stream, largest, on_models.Gate("receiver", 0, x))
    fetched = on_models.fetching(stream, {"other": -largest}, "other", x, matrix)
    return on_models.with_layers(stack, (others, *cleared, Layer((fetched,))))


def _mapped_at_flag(*, x: Any, flag: Any, matrix: Matrix) -> Any:
    """Return [M x, 0] where the flag is 1 for the first time; `None` elsewhere."""
    first = next((i for i, (bit,) in enumerate(flag) if bit), None)
    return [
        [*_times(matrix, row), *[F(0)] * len(matrix)] if i == first else None
        for i, row in enumerate(x)
    ]


@recipe(
    "linear-in-place",
    section="Linear transformation doubling the embedding size",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="yᵢ = [M xᵢ, 0] at the first position whose flag is 1, the second half being "
        "scratch; elsewhere nothing is claimed",
        reference=_mapped_at_flag,
        domain=lambda *, matrix, largest: Sequences(
            (Values("x", _mapped(matrix=matrix, largest=largest)), Values("flag", Bits(1)))
        ),
        error=_product_error,
        error_statement=_PRODUCT_ERROR,
        excluded=dict.fromkeys(SYSTEMS, "exp(−B) is not 0, or 2 B is no number"),
        only_in=lambda *, largest, matrix: _selecting(
            (*_ending_at(largest), *_roomy(largest)), largest, matrix
        ),
        weightings=("softmax",),
        mask="future",
        variants=(
            {"matrix": [[-3]], "largest": 4},
            {"matrix": [["1/2", 0], [1, "-1/2"]]},
            {"largest": 128},
        ),
        size="width 2d + 1, two layers",
    ),
    sources=(
        "nothing is clamped here: the same weights work in IEEE formats where exp(−B) is 0, such "
        "as float32 and bfloat16 for B = 128",
        "W_O of the second head is [[0, I], [0, −I]]: the printed one adds [M x, M x]",
        "the flagged position attends to itself: its score is B, those before it have 0",
        "M x may not be clamped on its way",
    ),
    errata=("swap-matrix", "softmax-maximum", "exp-of-minus-infinity", "product-saturates"),
)
def linear_in_place(matrix: Matrix = _M, largest: F = F(16)) -> LayerStack:
    """A head moves M x to the scratch and takes x away; another moves it back."""
    _require_square(matrix, "linear-in-place")
    x, scratch = _slots(len(matrix)), _slots(len(matrix), "scratch ")
    stack = _stack(*x, *scratch, "flag", takes=(*x, "flag"), gives=(*x, *scratch))
    return on_models.linear_in_place(stack, x, scratch, matrix, largest)


# Gates and maxima


@recipe(
    "gate-by-flag",
    section="Special operation",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="y = [x₁ · flag₁, …, x_d · flag_d], the flags being 0 or 1",
        reference=lambda *, x, flags: [
            [value * bit for value, bit in zip(row, bits, strict=True)]
            for row, bits in zip(x, flags, strict=True)
        ],
        domain=lambda *, width, largest: Sequences(
            (Values("x", _numbers(width, largest)), Values("flags", Bits(width)))
        ),
        **_CLEARED,
        variants=({"width": 1, "largest": 1}, {"largest": 2}, {"width": 3, "largest": 256}),
        size="width 2d, three layers of d hidden units",
    ),
    sources=(
        NO_INFINITY,
        "each number is cleared by its own flag's complement; the source crosses the flags, which "
        "gives a (1 − flag of b), and its summary adds B where the flag is 1, which clears a",
    ),
    errata=("special-operation-summary", "infinity-is-largest"),
)
def gate_by_flag(width: int = 2, largest: F = F(16)) -> LayerStack:
    """Each number is cleared where 1 − flag is 1."""
    x, flags = _slots(width), _slots(width, "flag ")
    stack = _stack(*x, *flags, gives=x)
    return on_models.gate_by_flags(stack, dict(zip(x, flags, strict=True)), largest)


def _first_maximum(x: Sequence[F]) -> list[F]:
    """Return the first of the largest numbers at its place, 0 elsewhere."""
    best = x.index(max(x))
    return [value if k == best else F(0) for k, value in enumerate(x)]


def _apart(width: int, largest: F) -> Domain:
    """Return vectors of numbers that are equal or at least 1/B apart."""

    def apart(case: Case) -> bool:
        pairs = itertools.pairwise(sorted(case))
        return all(low == high or high - low >= 1 / largest for low, high in pairs)

    text = "numbers are equal or at least 1/B apart, as all are in fixed point"
    # At these numbers the comparison B (b − a) bends or is clamped.
    points = 1 / largest, F(1), largest / 2
    return Where(_numbers(width, largest, points), apart, text)


@recipe(
    "max-of-two",
    section="Maximum of two numbers",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="y = [a, 0] where a ≥ b, [0, b] where a < b; their sum is max(a, b); as "
        "printed a tie keeps both",
        reference=lambda *, x, printed: [
            [a if a >= b else F(0), b if b > a or (printed and a == b) else F(0)] for a, b in x
        ],
        domain=lambda *, largest: Sequences((Values("x", _apart(2, largest)),)),
        excluded=NOT_CLAMPED,
        only_in=lambda *, largest, printed: _holding(
            _ending_at(largest), (1 / largest, 1 - 1 / largest) if printed else ()
        ),
        variants=(
            {"largest": 2},
            {"largest": 256},
            {"printed": True},
            {"printed": True, "largest": 2},
        ),
        size="width 3, four layers; as printed width 4, seven layers",
    ),
    sources=(
        NO_INFINITY,
        "a tie keeps a: as printed, [a > b] and [b > a] keep neither, and crossed flags keep both; "
        "printed=True has the printed circuit, where 1/B and 1 − 1/B are numbers of the arithmetic",
        "B (b − a) is at least 1, since numbers are 1/B apart, and gates as 1 does: nothing is "
        "divided by B, of which fixed point has no inverse where r > 1/B",
    ),
    errata=("multiply-twice", "divide-by-infinity", "maximum-tie"),
)
def max_of_two(largest: F = F(16), printed: bool = False) -> LayerStack:
    """One comparison; as printed, two, which the factors B, B and 1/B turn into flags."""
    x = _slots(2)
    keep = keep_larger_as_printed if printed else keep_largest
    return keep(_stack(*x, gives=x), x, largest)


@recipe(
    "max-of-many",
    section="Maximum of two numbers",
    document=PRIMITIVES,
    claim=SequenceClaim(
        statement="y = x with all but the first of its largest numbers set to 0; the sum is max x",
        reference=lambda *, x: [_first_maximum(row) for row in x],
        domain=lambda *, width, largest: Sequences((Values("x", _apart(width, largest)),)),
        **_CLEARED,
        variants=({"width": 1}, {"width": 3, "largest": 2}, {"width": 7, "largest": 64}),
        size="width 2d − 1, 4 ⌈log₂ d⌉ layers",
    ),
    sources=(
        NO_INFINITY,
        "a tie keeps the left block; with [a > b] and [b > a] as printed, the sum of four numbers "
        "with ties is not their maximum",
    ),
    errata=("multiply-twice", "divide-by-infinity", "maximum-tie", "maximum-of-four"),
)
def max_of_many(width: int = 4, largest: F = F(16)) -> LayerStack:
    """Rounds of comparisons of blocks, of which one number each is left."""
    x = _slots(width)
    return keep_largest(_stack(*x, gives=x), x, largest)


RECIPES = (
    flag,
    add_at_flag,
    zero_at_flag,
    ignore_coordinates,
    linear_to_the_right,
    linear_in_place,
    gate_by_flag,
    max_of_two,
    max_of_many,
)
"""Recipes of the chapter, in the order in which they are listed."""
