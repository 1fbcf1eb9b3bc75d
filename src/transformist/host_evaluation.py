"""Evaluation of a model by a stock class of transformers: the facts that an error bound depends on.

A class computes in float32 what its checkpoint (`hosts`) makes of a model. The stream holds s z_c /
2^(k_c) for each slot z_c of the model: s is the shrink, and k_c an exponent for each slot. A norm
divides by √eps, as the shrunken numbers are small beside eps, and its gain is √eps / s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from transformist.errors import InvalidValue, is_name


@dataclass(frozen=True, kw_only=True)
class HostClass:
    """Constants of a stock class, and of its checkpoints.

    Attributes:
        centres: True if a norm subtracts the mean; a slot of the stream then makes the sum 0.
        epsilon: eps of the norms.
        shrink: s, a power of two.
        silu_factor: c where a hidden unit is silu(c x) / c times 1; 0 where it is ReLU(x).
        angle: largest angle by which queries and keys are rotated.
        biases_from_slot: True if biases of queries, keys, values and hidden units are weights of
            the slot that holds 1. The bias of the read-out is such a weight in every class.

    """

    centres: bool
    epsilon: float
    shrink: float
    silu_factor: float = 0.0
    angle: float = 0.0
    biases_from_slot: bool = False


# A norm computes x / √(mean(x²) + eps). With the stream times s, the sum is eps up to s² mean(x²),
# and float32 rounds to eps all that is below eps · 2⁻²⁵. The hosts have eps ≥ 10⁻¹² > 2⁻⁴⁰, and
# s² = 2⁻¹⁰⁰: this holds for mean(x²) < 2³⁵, where slots that were rescaled have about 1. A slot
# keeps all its bits down to 2⁻⁷⁶, since the least normal number is 2⁻¹²⁶.
SHRINK = 2.0**-50
"""Factor s of the residual stream in a host with norms."""

HOST_CLASSES: Mapping[str, HostClass] = {
    "gpt2": HostClass(centres=True, epsilon=1e-5, shrink=SHRINK),
    "llama": HostClass(
        centres=False,
        epsilon=1e-6,
        shrink=SHRINK,
        # silu(x) = x σ(x) differs from max(x, 0) by at most 0.2785, near |x| = 1.28. With the input
        # times c and the output divided by c, a unit differs from ReLU by 0.2785/c = 2.6 · 10⁻¹⁰.
        silu_factor=2.0**30,
        # A rotation by the angle a changes a score by at most about 2 |a| |q| |k|; float32 rounds
        # the products of the score by up to 2⁻²⁴ |q| |k|.
        angle=2.0**-30,
        biases_from_slot=True,
    ),
}
"""Stock classes whose evaluation can be certified, by the name of the host."""

HOST_ASSUMPTIONS = (
    "the checkpoint is the one that export writes, evaluated in float32 by transformers",
    "matrix products take factors in float32 (no TF32, no bfloat16), and they and sums accumulate "
    "in float32, in any order and grouping",
    "attention is eager or sdpa: weights are normalised before or after they are applied",
    "1/√x is within 2 units in the last place; in llama it is 1 divided by √x, as on processors "
    "(the 1/√ of a GPU is not covered)",
    "silu is within 4 units in the last place, and x itself from x = 32 on",
    "exp in kernels that normalise last is within 2⁻²⁰",
    "padding is masked, and positions count from the first token of each input",
)
"""Assumptions of a certificate for a host, beside those of every certificate."""


@dataclass(frozen=True)
class HostEvaluation:
    """Evaluation of a model in a stock class.

    Attributes:
        host: the name of the class in `HOST_CLASSES`.
        width: coordinates of the stream in the checkpoint, unused ones included.
        exponents: k_c of each slot of the model.

    Example:
        >>> HostEvaluation("gpt2", 64, (0, 1)).constants.centres
        True

    """

    host: str
    width: int
    exponents: tuple[int, ...]

    def __post_init__(self) -> None:
        if not is_name(self.host, HOST_CLASSES):
            raise InvalidValue(
                f"a certified host must be one of {', '.join(HOST_CLASSES)}",
                received=f"{self.host!r:.40}",
                where="HostEvaluation",
                remedy="give one of these",
            )
        whole = type(self.exponents) is tuple and all(type(k) is int for k in self.exponents)
        if not whole or type(self.width) is not int or self.width < len(self.exponents) + 2:
            raise InvalidValue(
                "exponents must be a tuple of whole numbers, and width at least two more than "
                "their number",
                received=f"width {self.width!r:.20}, exponents {self.exponents!r:.60}",
                where="HostEvaluation",
                remedy="call certify(model, host=...), which makes the evaluation of a model",
            )

    @property
    def constants(self) -> HostClass:
        """The constants of the class."""
        return HOST_CLASSES[self.host]
