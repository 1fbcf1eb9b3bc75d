"""What a compilation is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformist.bounds import float_format_of
from transformist.errors import InvalidValue, UnknownName
from transformist.positions import POSITIONS

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
        arithmetic: in which the margins have to fit; when left out float32, and `exact` for any
            length, since no format keeps the margins of all.
        heads: `many` or `one` a layer.
        positions: the position functions that may be used, all when `None`.

    """

    max_length: int | None = 256
    weighting: str = "softmax"
    arithmetic: str = ""
    heads: str = "many"
    positions: tuple[str, ...] | None = None

    @classmethod
    def of(cls, **given: Any) -> Options:
        """The options by their names, `None` where one is left to its default."""
        return cls(**{**given, "arithmetic": given["arithmetic"] or ""})

    def __post_init__(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise UnknownName.among("weighting of a compiled program", self.weighting, WEIGHTINGS)
        if self.heads not in HEADS:
            raise UnknownName.among("number of heads a layer", self.heads, HEADS)
        if self.max_length is not None and (
            type(self.max_length) is not int or self.max_length < 1
        ):
            raise InvalidValue(
                "max_length is a whole number of at least 1, or None",
                received=f"{self.max_length!r:.40}",
                where="compile",
                remedy="give the length of the longest input",
            )
        usual = "exact" if self.max_length is None else "float32"
        object.__setattr__(self, "arithmetic", self.arithmetic or usual)
        if float_format_of(self.arithmetic) is not None and self.max_length is None:
            raise InvalidValue(
                "a number format keeps its margins up to some length",
                received=f"arithmetic = {self.arithmetic}, max_length = None",
                where="compile",
                remedy="give max_length, or leave arithmetic out",
            )
        if self.positions is not None:
            self._require_positions(self.positions)

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
