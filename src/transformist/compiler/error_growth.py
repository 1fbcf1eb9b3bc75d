"""Choice of resets: as few as keep the rounding errors of a deep program from growing with depth.

A program is lowered without resets first. Where a chain of ReLUs and heads hands on errors that
have grown to a large part of a margin, or beyond it, the program is lowered again with resets:
first at large errors, then at smaller ones. Resets at larger errors are fewer and take fewer
layers, so the first lowering that leaves room in every margin is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from transformist.arithmetic import Floating
from transformist.circuit import Circuit, Fetched, Head, Relu
from transformist.compiler.answer_kinds import Answer
from transformist.compiler.format_margins import GrowingErrors, MarginExceeded, require_margins
from transformist.compiler.lower.resets import Resets
from transformist.compiler.sharpness import sharpnesses
from transformist.compiler.source_map import SourceMap
from transformist.rounding import float_format_of

PARTS = tuple(Fraction(1, 2**bits) for bits in (6, 9, 12, 15))
"""Errors at which resets are tried, as parts of the distance of two values, the largest first."""

SHALLOW = 3
"""Longest chain of ReLUs and heads without resets: along it errors double three times at most."""

ROOM = 2.0**-3
"""Part of a margin that rounding may take in a deep program.

A proof from weights alone does not know which numbers are 1 together, so its bounds are larger than
those of the compiler: 1/8 leaves room for that.
"""


@dataclass(frozen=True)
class Lowered:
    """A circuit, and the answer that is read out of it."""

    circuit: Circuit
    answer: Answer
    source_map: SourceMap


def without_growth(
    lower: Callable[[Resets | None, Circuit], Lowered],
    new_circuit: Callable[[], Circuit],
    arithmetic: str,
) -> tuple[Lowered, Mapping[Head, Fraction]]:
    """Lower a program so that errors do not grow with depth, and find the sharpness of its heads.

    Args:
        lower: lowers the program into a circuit with resets, or without them for `None`.
        new_circuit: returns an empty circuit.
        arithmetic: the format whose margins must be kept.

    Raises:
        MarginExceeded: if no resets keep the margins; it is the error without resets.

    """
    plain = lower(None, new_circuit())
    a = float_format_of(arithmetic)
    if a is None or plain.circuit.max_length is None or longest_chain(plain.circuit) <= SHALLOW:
        return plain, margined(plain, arithmetic)
    try:
        found, least = (plain, margined(plain, arithmetic)), _share(plain, a)
        failure = None
    except (MarginExceeded, ArithmeticError) as exceeded:
        found, least, failure = None, math.inf, exceeded
    for part in PARTS:
        if least <= ROOM:
            break
        circuit = new_circuit()
        resets = Resets(GrowingErrors(circuit, a), part)
        other = lower(resets, circuit)
        share = resets.errors.largest_share(other.answer) if resets.made else math.inf
        if share < least:
            with suppress(MarginExceeded, ArithmeticError):
                found, least = (other, margined(other, arithmetic)), share
    if found is None:
        assert failure is not None
        raise failure
    return found


def _share(lowered: Lowered, a: Floating) -> float:
    """The largest part of a margin that rounding takes."""
    return GrowingErrors(lowered.circuit, a).largest_share(lowered.answer)


def margined(lowered: Lowered, arithmetic: str) -> Mapping[Head, Fraction]:
    """The sharpness of the heads of a circuit.

    Raises:
        MarginExceeded: where the format does not keep a margin.

    """
    sharpness = sharpnesses(lowered.circuit, lowered.answer.tolerances)
    served = lowered.source_map.served
    require_margins(lowered.circuit, sharpness, lowered.answer, arithmetic, served)
    return sharpness


def longest_chain(circuit: Circuit) -> int:
    """Length of the longest chain of ReLUs and heads, each of which reads the one before it."""
    lengths: list[int] = []
    of_heads: dict[Head, int] = {}  # longest chain up to queries and keys; atoms share heads
    for number, atom in enumerate(circuit.atoms):
        if not isinstance(atom, Relu | Fetched):
            lengths.append(0)
            continue
        head, forms = circuit.sources(number)
        before = max((lengths[k] for form in forms for k in form.atoms), default=0)
        if head is not None:
            if head not in of_heads:
                of_heads[head] = max((lengths[k] for k in circuit.atoms_of(head)), default=0)
            before = max(before, of_heads[head])
        lengths.append(1 + before)
    return max(lengths, default=0)
