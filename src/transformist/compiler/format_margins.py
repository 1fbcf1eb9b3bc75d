"""Check that a number format keeps every margin of a compiled program."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from transformist.circuit import Circuit, Head, MarginOwner, Margins, follow
from transformist.compiler.answer_kinds import Answer
from transformist.language.node import Node
from transformist.rounding import ANY_ORDER, REFERENCE_ORDER, Order, float_format_of

ORDER = Order(
    "compiled",
    "means in any order, hidden units from left to right",
    ANY_ORDER.growth,
    REFERENCE_ORDER.accumulation,
)
"""Order of summation that the margins are computed for."""


class MarginExceeded(Exception):
    """An error bound that is not below its limit.

    Attributes:
        node: the subexpression.
        what: the quantity.
        error, allowed: the bound found, and its limit.

    """

    def __init__(self, node: Node | None, what: str, error: float, allowed: float) -> None:
        super().__init__(what)
        self.node, self.what, self.error, self.allowed = node, what, error, allowed


def require_margins(
    circuit: Circuit,
    sharpness: Mapping[Head, Fraction],
    answer: Answer,
    arithmetic: str,
    served: Mapping[MarginOwner, Node],
) -> None:
    """Refuse a circuit whose margins a format does not keep.

    No margin is required where nothing rounds, nor where there is no longest input.

    Args:
        circuit: the atoms.
        sharpness: 1/τ of each head.
        answer: what is read out.
        arithmetic: the format.
        served: the subexpression that each atom serves.

    Raises:
        MarginExceeded: with the first error bound that is not below its limit.

    """
    a = float_format_of(arithmetic)
    if a is None or circuit.max_length is None:
        return

    def refuse(part: MarginOwner, what: str, error: float, allowed: float) -> None:
        if not error < allowed:
            raise MarginExceeded(served.get(part), what, error, allowed)

    margins = Margins(circuit=circuit, a=a, order=ORDER, sharpness=sharpness, on_margin=refuse)
    for _ in circuit.atoms:
        follow(margins)
    answer.require(margins)
