"""Check that a number format keeps every margin of a compiled program."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from transformist.arithmetic import Floating
from transformist.circuit import Circuit, Form, Head, MarginOwner, Margins, follow
from transformist.compiler.answer_kinds import Answer
from transformist.compiler.sharpness import sharpness_for
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
        # Written so that NaN, which is below nothing, is refused.
        if not error < allowed:
            raise MarginExceeded(served.get(part), what, error, allowed)

    margins = Margins(circuit=circuit, a=a, order=ORDER, sharpness=sharpness, on_margin=refuse)
    for _ in circuit.atoms:
        follow(margins)
    answer.require(margins)


LITTLE = 2.0**-40
"""Weight off target that is small beside every rounding of float32, and not 0.

With 0, a number that a head fetches would count as exact, and so would all that follows from it.
"""


class _Sharpest(dict[Head, Fraction]):
    """Sharpness with which each head leaves a weight of `LITTLE` off target, computed when read."""

    def __init__(self, circuit: Circuit) -> None:
        super().__init__()
        self.circuit = circuit

    def __missing__(self, head: Head) -> Fraction:
        self[head] = sharpness_for(self.circuit, head, LITTLE)
        return self[head]


@dataclass(eq=False)
class GrowingErrors:
    """Bounds of rounding errors in a circuit to which atoms may still be added.

    The sharpness of heads follows from the whole circuit, so it is not known yet. Until then, heads
    are taken to leave a weight of `LITTLE` off target.

    Attributes:
        circuit: the atoms so far.
        a: the number format.

    """

    circuit: Circuit
    a: Floating

    def of(self, form: Form) -> float:
        """Error bound of a form."""
        for _ in range(len(self._margins.errors), len(self.circuit.atoms)):
            follow(self._margins)
        return self._margins.error(form)

    def largest_share(self, answer: Answer) -> float:
        """The largest part of a margin that rounding takes, the margins of the answer included."""
        self.of(Form())  # notes the margins of the atoms that are not followed yet
        answer.require(self._margins)
        return max(self._shares, default=0.0)

    @cached_property
    def _shares(self) -> list[float]:
        return []

    @cached_property
    def _margins(self) -> Margins:
        def note(_part: MarginOwner, _what: str, error: float, allowed: float) -> None:
            if error:
                self._shares.append(error / allowed if allowed else math.inf)

        return Margins(
            circuit=self.circuit,
            a=self.a,
            order=ORDER,
            sharpness=_Sharpest(self.circuit),
            on_margin=note,
        )
