"""What a compilation is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transformist.bounds import float_format_of
from transformist.errors import InvalidValue, UnknownName
from transformist.positions import POSITIONS
from transformist.settings import require_length

WEIGHTINGS = ("softmax", "average-hard", "rightmost-hard")
"""The weightings that programs are compiled to."""

HEADS = ("many", "one")
"""How many heads a layer may have."""


@dataclass(frozen=True)
class Options:
    """What a compilation is asked for; checked when made.

    Attributes:
        max_length: N, the longest input; `None` for any length, where no constant depends on N.
        weighting: of all heads.
        arithmetic: in which the margins have to fit; `None` for the usual one.
        heads: `many` or `one` a layer.
        positions: the position functions that may be used, all when `None`.

    """

    max_length: int | None = 256
    weighting: str = "softmax"
    arithmetic: str | None = None
    heads: str = "many"
    positions: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise UnknownName.among("weighting of a compiled program", self.weighting, WEIGHTINGS)
        if self.heads not in HEADS:
            raise UnknownName.among("number of heads a layer", self.heads, HEADS)
        if self.max_length is not None:
            wanted = "max_length is a whole number of at least 1, or None"
            require_length(self.max_length, "compile", wanted)
        if float_format_of(self.number_system) is not None and self.max_length is None:
            raise InvalidValue(
                "a number format keeps its margins up to some length",
                received=f"arithmetic = {self.arithmetic}, max_length = None",
                where="compile",
                remedy="give max_length, or leave arithmetic out",
            )
        if self.positions is not None:
            self._require_positions(self.positions)

    @property
    def number_system(self) -> str:
        """In which the margins have to fit: usually float32.

        For any length it is `exact`, since no format keeps the margins of all.
        """
        if self.arithmetic is not None:
            return self.arithmetic
        return "exact" if self.max_length is None else "float32"

    def _require_positions(self, positions: Sequence[str]) -> None:
        if isinstance(positions, str):
            raise InvalidValue(
                "positions is a list of names of position functions",
                received=repr(positions),
                where="compile",
                remedy=f"give {[positions]}",
            )
        object.__setattr__(self, "positions", tuple(positions))
        for name in positions:
            if name not in POSITIONS:
                raise UnknownName.among("position function", name, POSITIONS)
