"""The options of `transformist.compile`, and the refusals of wrong ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transformist.circuit import LONGEST_CODED
from transformist.compiler.target import TARGETS, Target
from transformist.errors import InvalidValue, UnknownName, is_name, require_type
from transformist.model import Mask
from transformist.position_features import POSITIONS
from transformist.rounding import float_format_of
from transformist.settings import whole_length

WEIGHTINGS = ("softmax", "average-hard", "rightmost-hard")
"""The weightings that programs are compiled to."""

FROM_BOS = "bos"
"""Value of `positions` for a host without position functions."""

WIDEST = 2**16
"""The largest `width`."""

HEADS = ("many", "one")
"""Numbers of heads that a layer may have."""


POSITION_CODES = ("quadratic", "sinusoidal")
"""Codes of positions, by which heads find a position; a quadratic code is j and j²."""


@dataclass(frozen=True)
class Options:
    """Options of a compilation; checked when made.

    Attributes:
        max_length: N, the longest input; `None` for any length, where no constant depends on N.
        weighting: the weighting of all heads.
        arithmetic: the format in which the margins must be kept; `None` for the usual one.
        heads: the number of heads in a layer, `many` or `one`.
        positions: the position functions that may be used beside those of sinusoidal codes, all
            when `None`; `bos` if positions are computed from the share of BOS in a mean, and no
            position function is used.
        masks: the target, by the masks that its heads may have: `any`, `future` or `none`.
        reuse: true if a slot may hold several numbers, one after another.
        width: d, the slots of the residual stream; the fewest that hold the numbers when `None`.
        position_codes: the code by which a position is found: `quadratic`, or `sinusoidal` for
            i + c, c and c − i, while other positions stay quadratic. Its sines, cosines and (-1)^i
            need not be in `positions`.

    """

    max_length: int | None = 256
    weighting: str = "softmax"
    arithmetic: str | None = None
    heads: str = "many"
    positions: Sequence[str] | str | None = None
    masks: str = "any"
    reuse: bool = True
    width: int | None = None
    position_codes: str = "quadratic"

    def __post_init__(self) -> None:
        if not is_name(self.weighting, WEIGHTINGS):
            raise UnknownName.among("weighting of a compiled program", self.weighting, WEIGHTINGS)
        if not is_name(self.heads, HEADS):
            raise UnknownName.among("number of heads a layer", self.heads, HEADS)
        if not is_name(self.masks, tuple(TARGETS)):
            raise UnknownName.among("choice of masks", self.masks, TARGETS)
        if not is_name(self.position_codes, POSITION_CODES):
            raise UnknownName.among("code of positions", self.position_codes, POSITION_CODES)
        require_type(
            self.reuse,
            bool,
            "reuse must be True or False",
            where="compile",
            remedy="give True for few slots, False for a slot for each number",
        )
        if self.width is not None:
            object.__setattr__(self, "width", _whole_width(self.width))
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
        if self.has_sinusoids:
            self._require_coded()
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
    def has_sinusoids(self) -> bool:
        """True if positions are found by cosines and sines."""
        return self.position_codes == "sinusoidal"

    @property
    def precision(self) -> int | None:
        """The bits of the significand of the number system; `None` where nothing rounds."""
        a = float_format_of(self.number_system)
        return None if a is None else a.precision

    def _require_coded(self) -> None:
        """Require what sinusoidal codes need: a longest input, and position functions."""
        if self.max_length is None or self.max_length > LONGEST_CODED:
            raise InvalidValue(
                "position_codes=sinusoidal must come with max_length, at most "
                f"{LONGEST_CODED:,}, since its wavelengths depend on N",
                received=f"max_length = {self.max_length}",
                where="compile",
                remedy=f"give max_length up to {LONGEST_CODED}, or position_codes=quadratic",
            )
        if self.computes_positions:
            raise InvalidValue(
                "position_codes=sinusoidal must come with position functions: GPT-2, OPT and BERT "
                "have a table of them; Llama, Qwen2, Mistral and GPT-NeoX have none",
                received=f"positions = {FROM_BOS}, which is set for a host without a table, and by "
                "which only i, i^2, i^3 and (-1)^i are computed",
                where="compile",
                remedy="leave position_codes out; or choose a host with a table, and leave "
                "positions out",
            )

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


def _whole_width(width: Any) -> int:
    """Return a width as an int, also if it is a whole number of numpy.

    Raises:
        InvalidValue: for what is no width.

    """
    whole: int = int(width) if isinstance(width, np.integer) else width
    if type(whole) is not int or not 1 <= whole <= WIDEST:
        raise InvalidValue(
            f"width must be a whole number from 1 to {WIDEST:,}",
            received=f"{width!r:.60}",
            where="compile",
            remedy="give the width of the residual stream, or leave it out for the least that fits",
        )
    return whole
