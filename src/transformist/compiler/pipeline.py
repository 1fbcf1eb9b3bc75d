"""Compiler from a program to a transformer: the passes, one after the other."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from transformist.arithmetic import FORMATS
from transformist.bisection import largest_below
from transformist.circuit import LONGEST_CODED, At, Circuit, Form, total
from transformist.compiler.allocate import Allocation, allocate
from transformist.compiler.answers import Way, ways
from transformist.compiler.compile_options import Options
from transformist.compiler.emit import emit
from transformist.compiler.error_growth import Lowered, without_growth
from transformist.compiler.format_margins import MarginExceeded
from transformist.compiler.lower import POINTWISE, Lowering
from transformist.compiler.lower.resets import Resets
from transformist.compiler.rewriting import rewritten
from transformist.compiler.schedule import schedule
from transformist.compiler.uncompilable import (
    NoValueAtLength,
    Subexpressions,
    TooNarrow,
    Uncompilable,
)
from transformist.errors import QuadraticCode, is_name, require_type
from transformist.language import Accept, Program
from transformist.language.across import Mean
from transformist.language.node import Node, different
from transformist.model import Transformer
from transformist.rounding import float_format_of
from transformist.settings import whole_length

LOG = logging.getLogger(__name__)


def compile(
    program: Program,
    *,
    max_length: int | None = 256,
    weighting: str = "softmax",
    arithmetic: str | None = None,
    heads: str = "many",
    positions: Sequence[str] | str | None = None,
    masks: str = "any",
    reuse: bool = True,
    width: int | None = None,
    position_codes: str = "quadratic",
) -> Transformer:
    """Turn a program into the weights of a transformer that computes it.

    Every tolerance and sharpness follows from what the values can be: thresholds lie in the
    middle of separations, and 1/τ follows from what the results of a head are used for.

    The compiler accepts some programs that cannot be certified, about 2 of 100 drawn ones.
    `tf.grade_of(model, model.built_for)` returns the grade of the certificate, 0 for such a
    program, and the reason why the proof stops; `transformist compile` prints both.

    Args:
        program: made by `tf.program`.
        max_length: N, the longest input; `None` for any length, where no constant depends on N.
        weighting: `softmax`, `average-hard`, or `rightmost-hard` where no mean is needed.
        arithmetic: the number system in which the margins have to fit: float32 when left out. For
            any length it is `exact`, in which nothing rounds; no format keeps the margins of all.
        heads: `many` or `one` a layer.
        positions: the functions of positions that may be used, all when left out; those of
            sinusoidal codes come with `position_codes` and need not be among them. `bos` is for a
            host without functions of positions, in which i, i^2, i^3 and (-1)^i are computed from
            the share of BOS in a mean of mask future.
        masks: the masks that the host has: `any`; `future` for a causal decoder, in which every
            head has this mask; `none` for an encoder, in which every head sees all positions. Other
            masks of the program are replaced; a mask that cannot be replaced is refused.
        reuse: False gives each number a slot of its own, which a host with layer norms needs.
        width: d, the slots of the residual stream: the fewest that hold the numbers of the program
            when left out. With more, the rest are 0; with fewer, the program is refused.
        position_codes: the code by which a head finds a position. `quadratic` has the numbers j
            and j², and scores 1 apart in a range of N². `sinusoidal` has cosines and sines, 2 F − 1
            numbers for the longest wavelength 2^F. It finds the positions i + c, c and c − i for a
            whole number c: all neighbours, the first position, lookups of such an index. If its
            largest score is 1, all others are lower by at least 0.28 (i − 1) or 0.13 (others) for
            every N up to 2,047, so narrow formats tell them apart. Other lookups keep the quadratic
            code, with a warning. The score of a match at place 0 is subtracted from all scores of a
            last or first match.

    Raises:
        InvalidValue: for a subexpression that cannot be compiled as asked, with its name, its line
            and what would help.
        UnknownName: for an option that does not exist.

    Warns:
        QuadraticCode: for sinusoidal codes, where lookups keep the quadratic code.

    Example:
        >>> import transformist as tf
        >>> @tf.program(alphabet="ab")
        ... def most_a(x):
        ...     return (x.map({"a": 1, "b": -1}).mean() > 0).accept()
        >>> model = tf.compile(most_a, max_length=100)
        >>> model, model("aab"), model("ab")
        (Transformer(1 layers, width 2, N = 100), True, False)

    """
    options = Options(
        max_length, weighting, arithmetic, heads, positions, masks, reuse, width, position_codes
    )
    require_type(
        program,
        Program,
        "the argument must be a program",
        where="compile",
        remedy="write a function below @tf.program(alphabet=…)",
    )
    program = rewritten(program, options.masks)
    try:
        found = _compiled(program, options)
    except MarginExceeded as excess:
        raise _without_margin(program, options, excess) from None
    if options.has_sinusoids and found.by_squares:
        warnings.warn(_of_squares(found.by_squares), stacklevel=2)
    return found.model


def largest_length(program: Program, *, most: int = 2**17, **given: Any) -> int:
    """The largest N up to `most` for which a number format keeps every margin; 0 for none.

    By bisection: N fits and N + 1 does not. A format that keeps the margins of an N nearly always
    keeps those of less.

    Args:
        program: made by `tf.program`.
        most: no larger N is tried; with sinusoidal codes none above 65,535, their largest N.
        given: options of `compile` but `max_length`.

    Raises:
        InvalidValue: for a subexpression that cannot be compiled, whatever N is.
        UnknownName: for an option that does not exist.

    Example:
        >>> from transformist.programs import PROGRAMS
        >>> largest_length(PROGRAMS["majority"], most=10**5, arithmetic="bfloat16")
        31

    """
    if is_name(given.get("position_codes"), ("sinusoidal",)):
        most = min(whole_length(most, "largest_length"), LONGEST_CODED)
    options = Options(**{**given, "max_length": most})
    program = rewritten(program, options.masks)
    try:
        _compiled(program, options)
    except (MarginExceeded, NoValueAtLength):
        return _longest(program, options)
    return most


@dataclass(frozen=True)
class Compiled:
    """A model, and what is said of it.

    Attributes:
        model: the weights.
        by_squares: places of the subexpressions whose heads read j², as the quadratic code does.

    """

    model: Transformer
    by_squares: Sequence[str]


def _of_squares(places: Sequence[str]) -> QuadraticCode:
    """The warning that lookups have no sinusoidal code."""
    shown = "; ".join(places[:SHOWN_PLACES])
    more = len(places) - SHOWN_PLACES
    return QuadraticCode(
        "compile: sinusoidal codes find the positions i + c, c and c - i, for whole numbers c; "
        "other lookups keep the quadratic code, whose scores reach N^2, so that narrow formats "
        f"tell them apart only for small N: {shown}{f', and {more} more' if more > 0 else ''}; "
        "use float32 for them, or a smaller max_length"
    )


SHOWN_PLACES = 3
"""Most places of a program in one warning."""


def _compiled(program: Program, options: Options) -> Compiled:
    """The model with the first way to read out the output that keeps every margin.

    Raises:
        MarginExceeded: if no way keeps every margin; the error is that of the first way.

    """
    # The first way takes the fewest weights, so it is taken wherever the format keeps its margins.
    # Where no way keeps them, its margin is the one that the user can do something about: the
    # others compare the same number, at more cost.
    first, *others = ways(program.output)
    try:
        return _handing_out(program, options, first)
    except MarginExceeded:
        for way in others:
            with suppress(MarginExceeded):
                return _handing_out(program, options, way)
        raise
    except (OverflowError, ZeroDivisionError):
        # Error bounds and the sharpness of heads are computed in float64. A number of the program
        # beyond 2¹⁰²⁴ overflows there, and one below 2⁻¹⁰⁷⁴ becomes 0 as a divisor.
        ((_, output), *_) = program.output.parts
        raise Subexpressions(program).refused(
            output.node,
            "every number of a program, and every difference of two, must be 0 or between "
            "1e-300 and 1e300 in magnitude",
            received="computed from numbers beyond",
            remedy="scale the numbers",
        ) from None


def _handing_out(program: Program, options: Options, way: Way) -> Compiled:
    """The passes, one after the other.

    Raises:
        MarginExceeded: where the format does not keep a margin.

    """
    LOG.debug("lowered for N = %s", options.max_length)

    def new_circuit() -> Circuit:
        bos, longest = begins_with_bos(program), options.max_length
        return Circuit(program.alphabet, bos, longest, options.weighting)

    def lower(resets: Resets | None, circuit: Circuit) -> Lowered:
        lowering = Lowering(program, options, circuit, resets)
        return Lowered(circuit, way(lowering), lowering.source_map)

    # The width is checked after the margins: a wider stream would not help a format that lacks
    # bits.
    found, sharpness = without_growth(lower, new_circuit, options.number_system)
    read = found.answer
    LOG.debug("%d numbers are scheduled", len(found.circuit.atoms))
    scheduled = schedule(found.circuit, read.read, options.heads)
    allocation = allocate(scheduled, reuse=options.reuse)
    if options.width is not None:
        if options.width < allocation.width:
            raise _too_narrow(program, options.width, allocation)
        allocation = replace(allocation, spare=options.width - allocation.width)
    model = emit(allocation, sharpness, read, found.source_map)
    by_squares = [
        Form.atom(number)
        for number in sorted(scheduled.times)
        if isinstance(found.circuit.atoms[number].fetched_by, At)
    ]
    model = replace(model, built_for=options.number_system)
    return Compiled(model, found.source_map.written(total(by_squares)))


def _too_narrow(program: Program, width: int, allocation: Allocation) -> TooNarrow:
    """The refusal of a width, with the least that fits, and that with reuse where it is less."""
    remedy = f"give width={allocation.width} or more, or leave it out"
    least = allocate(allocation.schedule).width
    if least < allocation.width:
        remedy += f"; with reuse=True width={least} fits"
    return TooNarrow(
        f"the width must be at least {allocation.width}, the slots that the numbers of "
        f"{program.name} take",
        received=f"width = {width}",
        where="compile",
        remedy=remedy,
    )


def _without_margin(program: Program, options: Options, excess: MarginExceeded) -> Uncompilable:
    """The refusal for a format that does not keep a margin, with the largest N that fits."""
    # The remedy is about margins alone: a width that is too small is refused by itself.
    options = replace(options, width=None)
    ((_, first), *_) = program.output.parts
    node = first.node if excess.node is None else excess.node
    return Subexpressions(program).refused(
        node,
        f"{excess.what} in {options.number_system} must be below {excess.allowed:.3g}",
        received=f"where it is up to {excess.error:.3g} for N = {options.max_length}",
        remedy=_what_fits(program, options) + _a_float_in(node, program.floats),
    )


def _what_fits(program: Program, options: Options) -> str:
    """The largest N that the bounds allow, or that there is none, and what else can be asked for.

    The compiler bounds errors by laws of `circuit/`. A certificate follows the errors through the
    weights, so it may hold for a format in which these bounds exceed a margin. It may also hold for
    weights that are compiled for another format.
    """
    finer = _finer(program, options)
    longest = _longest(program, options)
    if longest:
        return f"max_length={longest} fits; or compile it for {finer}"
    none = "no max_length fits the compiler's bounds, which may be too large"
    other = f"compile it for {finer}, and certify that model for {options.number_system}"
    hard = replace(options, weighting="average-hard")
    if options.weighting == "softmax" and _fits(program, hard):
        return f"{none}; weighting=average-hard fits; or {other}"
    return f"{none}; {other}"


def _finer(program: Program, options: Options) -> str:
    """The coarsest of the finer formats in which the program fits; exact where none does."""
    a = float_format_of(options.number_system)
    more = [each for each in FORMATS if a is None or each.precision > a.precision]
    for each in sorted(more, key=lambda each: each.precision):
        if _fits(program, replace(options, arithmetic=each.name)):
            return f"an arithmetic with more bits, such as arithmetic={each.name}"
    return "arithmetic=exact, in which nothing rounds"


def _fits(program: Program, options: Options) -> bool:
    """True if the program can be compiled with these options."""
    try:
        _compiled(program, options)
    except (MarginExceeded, Uncompilable):
        return False
    return True


LIKE_A_FLOAT = 2**20
"""A float with a smaller denominator is a number that was meant, such as 0.5 or 0.375."""


def _a_float_in(node: Node, floats: frozenset[Fraction]) -> str:
    """Advice on a float that made a margin small; empty if the node contains none."""
    for each in different(node)[0].values():
        for given in each.attributes:
            for value in given if isinstance(given, tuple) else [given]:
                is_float = isinstance(value, Fraction) and abs(value) in floats
                if is_float and value.denominator > LIKE_A_FLOAT:
                    text = f'"{abs(float(value)):.12g}"'
                    return (
                        f"; a float stands for the number it is, here {abs(value)}: write a text "
                        f"such as {text}, or in a table Fraction({text})"
                    )
    return ""


def _longest(program: Program, options: Options) -> int:
    """The largest N below that which was asked for which every margin fits, by bisection."""

    def fits(max_length: int) -> bool:
        try:
            _compiled(program, replace(options, max_length=max_length))
        except (MarginExceeded, NoValueAtLength):
            return False
        return True

    return largest_below(options.max_length or 1, fits)


_WITHOUT_BOS = frozenset({*POINTWISE, Mean})


def begins_with_bos(program: Program) -> bool:
    """True if BOS stands in front: for the empty input, counts, and queries without a match."""
    if any(isinstance(each, Accept) for _, each in program.output.parts):
        return True
    return not all(type(node) in _WITHOUT_BOS for node in program.nodes)
