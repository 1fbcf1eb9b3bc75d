"""Margins: error bounds, compared with the errors that leave every decision as in the ideal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from transformist.verify.proof.upwards import NEARLY


def slack(error: float, allowed: float) -> float:
    """Return the share of a margin that an error leaves; negative where it is exceeded.

    A margin is kept where this is above 0, which means error < allowed. The computed quotient
    cannot fall below 1 where error ≥ allowed, as rounding is monotone.

    Example:
        >>> slack(1, 4), slack(0, 0), slack(1, 0)
        (0.75, 1.0, -inf)

    """
    if not allowed or not math.isfinite(error):
        return 1.0 if not error else -math.inf
    return 1 - error / allowed


class Margin(NamedTuple):
    """An error bound, and the error below which the computed decision is the ideal one."""

    where: str
    what: str
    error: float
    allowed: float

    @property
    def slack(self) -> float:
        """The share of the margin that is left."""
        return slack(self.error, self.allowed)

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is up to {self.error:.3g} of {self.allowed:.3g}"


@dataclass
class Ledger:
    """Margins met on the way through a model.

    Attributes:
        kept: margins of decisions that are shown to be those of the ideal, and of the answer.
        lost: margins of heads and steps that are exceeded, in the order of the model. The proof
            goes on with wider bounds for them, as an answer may not depend on them.

    """

    kept: list[Margin] = field(default_factory=list)
    lost: list[Margin] = field(default_factory=list)

    def answer(self, error: float, allowed: float) -> None:
        """Add a margin of the answer.

        `allowed` is a rational rounded to float64, and at most one float64 operation.
        """
        allowed = max(allowed * NEARLY, 0.0)
        self.kept.append(Margin("read-out", "the error of the answer", float(error), allowed))
