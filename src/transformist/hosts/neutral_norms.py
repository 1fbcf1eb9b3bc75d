"""Norms that keep the residual stream, by a factor of the stream or by pins.

A norm of z is z / √(mean(z²) + eps) · gain, less the mean in a layer norm. It has to be the
identity up to rounding.

- Shrink, in float32: the stream is s z, so small that the root is √eps. The gain is √eps / s.
- Pin, in float16, which has no numbers as small as s z: P of the d coordinates, which nothing
  reads, hold ±M, so large that the root is √(P M²/d + eps). The gain is this root.

With pins, the root is too large by the factor √(1 + Σ x² / (P M²)), where x are the other
coordinates. Slots are scaled to about 1, and the slot that makes the sum 0 holds up to d/2. So Σ x²
is at most about d + d²/4, which is 2¹⁰ for d = 64. For M = 2¹² and P = 2 the root is then off by
less than 2⁻¹⁵ of itself; float16 rounds to 2⁻¹¹.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from transformist.hosts.plain_model import PlainModel, through

PINNED = "float16"
"""The number format whose norms are made neutral by pins."""

LAYER_PINS = (2.0**12, -(2.0**12))
"""The pins of a layer norm: their sum is 0."""

# A class that divides by the root and rounds, before it multiplies by the gain, keeps numbers down
# to 2⁻²⁴ times the root: M/√d = 2⁷ for M = 2¹⁰ and d = 64, so 2⁻¹⁷ of a slot. For M = 2¹² it would
# be 2⁻¹⁵. There is no slot for the sum, so Σ x² is at most about d: off by 2⁻¹⁵.
MEAN_SQUARE_PINS = (2.0**10,)
"""The pin of a norm by the root mean square."""


@dataclass(frozen=True)
class NeutralNorm:
    """A norm that keeps the stream.

    Attributes:
        factor: s, the factor of the stream.
        pins: the numbers that slots of their own hold in every row.

    """

    factor: float
    pins: tuple[float, ...]

    def gain(self, epsilon: float, width: int) -> float:
        """The gain of a norm that gives the stream without its factor.

        Args:
            epsilon: eps.
            width: d, the coordinates of the stream.

        """
        # The root is √(P M²/d + eps) of the module's text; without pins it is √eps.
        return math.sqrt(sum(pin**2 for pin in self.pins) / width + epsilon) / self.factor

    def pinned(self, plain: PlainModel) -> PlainModel:
        """The model with a slot for each pin, which nothing reads."""
        if not self.pins:
            return plain
        width, wider = plain.width, plain.width + len(self.pins)
        found = through(plain, np.eye(wider, width), np.eye(width, wider))
        found.words[:, width:] = self.pins
        return found


def neutral_norm(plain: PlainModel, shrink: float, pins: tuple[float, ...]) -> NeutralNorm:
    """The norm of a model in its number format: by pins in float16, else by the factor."""
    return NeutralNorm(1.0, pins) if plain.arithmetic == PINNED else NeutralNorm(shrink, ())
