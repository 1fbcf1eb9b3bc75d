"""Options of a compilation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transformist.compiler.target import TARGETS, Target
from transformist.errors import InvalidValue, UnknownName, is_name
from transformist.model import Mask
from transformist.positions import POSITIONS
from transformist.rounding import float_format_of
from transformist.settings import whole_length

WEIGHTINGS = ("softmax", "average-hard", "rightmost-hard")
"""The weightings that programs are compiled to."""

FROM_BOS = "bos"
"""Value of `positions` for a host without position functions."""

HEADS = ("many", "one")
"""Numbers of heads that a layer may have."""


@dataclass(frozen=True)
class Options:
    """Options of a compilation; checked when made.

    Attributes:
        max_length: N, the longest input; `None` for any length, where no constant depends on N.
        weighting: the weighting of all heads.
        arithmetic: the format in which the margins must be kept; `None` for the usual one.
        heads: the number of heads in a layer, `many` or `one`.
        positions: the position functions that may be used, all when `None`; `bos` if positions are
            computed from the share of BOS in a mean, and no position function is used.
        masks: the target, by the masks that its heads may have: `any`, `future` or `none`.
        reuse: true if a slot may hold several numbers, one after another.

    """

    max_length: int | None = 256
    weighting: str = "softmax"
    arithmetic: str | None = None
    heads: str = "many"
    positions: Sequence[str] | str | None = None
    masks: str = "any"
    reuse: bool = True

    def __post_init__(self) -> None:
        if not is_name(self.weighting, WEIGHTINGS):
            raise UnknownName.among("weighting of a compiled program", self.weighting, WEIGHTINGS)
        if not is_name(self.heads, HEADS):
            raise UnknownName.among("number of heads a layer", self.heads, HEADS)
        if not is_name(self.masks, tuple(TARGETS)):
            raise UnknownName.among("choice of masks", self.masks, TARGETS)
        if not isinstance(self.reuse, bool):
            raise InvalidValue(
                "reuse must be True or False",
                received=f"{self.reuse!r:.60}",
                where="compile",
                remedy="give True for few slots, False for a slot for each number",
            )
        if self.max_length is not None:
            length = whole_length(self.max_length, "compile", optional=True)
            object.__setattr__(self, "max_length", length)
        if float_format_of(self.number_system) is not None and self.max_length is None:
            raise InvalidValue(
                "an arithmetic must come with a length, up to which it keeps its margins",
                received=f"arithmetic = {self.arithmetic}, max_length = None",
                where="compile",
                remedy="give max_length, or leave arithmetic out",
            )
        if self.computes_positions:
            self._require_causal_heads()
        elif self.positions is not None:
            self._require_positions(self.positions)

    @property
    def target(self) -> Target:
        """The kind of host that has these masks."""
        return TARGETS[self.masks]

    @property
    def number_system(self) -> str:
        """The number system in which the margins must be kept: usually float32.

        For any length it is `exact`, since no format keeps the margins of all.
        """
        if self.arithmetic is not None:
            return self.arithmetic
        return "exact" if self.max_length is None else "float32"

    @property
    def computes_positions(self) -> bool:
        """True if positions are computed from the share of BOS in a mean."""
        return is_name(self.positions, (FROM_BOS,))

    @property
    def precision(self) -> int | None:
        """The bits of the significand of the number system; `None` where nothing rounds."""
        a = float_format_of(self.number_system)
        return None if a is None else a.precision

    def _require_causal_heads(self) -> None:
        if not self.target.admits(Mask.FUTURE):
            raise InvalidValue(
                f"positions={FROM_BOS} must come with heads of mask future",
                received=f"masks = {self.masks}, where the share of BOS is the same at every row",
                where="compile",
                remedy="give masks=future or masks=any, or leave positions out",
            )

    def _require_positions(self, positions: object) -> None:
        if isinstance(positions, str) or not isinstance(positions, Iterable):
            known = positions if isinstance(positions, str) and positions in POSITIONS else "1/i"
            raise InvalidValue(
                f"positions must be a list of names of position functions, or {FROM_BOS}",
                received=f"{positions!r:.60}",
                where="compile",
                remedy=f"give a list such as {[known]}, or {FROM_BOS} to compute positions",
            )
        object.__setattr__(self, "positions", tuple(positions))
        for name in positions:
            if not isinstance(name, str) or name not in POSITIONS:
                raise UnknownName.among("position function", name, POSITIONS)
