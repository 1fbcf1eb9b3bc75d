"""The arithmetics by name."""

from __future__ import annotations

from transformist.arithmetic.exact import EXACT
from transformist.arithmetic.floating import (
    BFLOAT16,
    FLOAT8_E4M3,
    FLOAT8_E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
)
from transformist.arithmetic.interval import INTERVAL
from transformist.arithmetic.protocol import Arithmetic
from transformist.errors import UnknownName

SYSTEMS: dict[str, Arithmetic] = {
    system.name: system
    for system in (
        EXACT,
        INTERVAL,
        FLOAT64,
        FLOAT32,
        FLOAT16,
        BFLOAT16,
        FLOAT8_E5M2,
        FLOAT8_E4M3,
    )
}


def number_system(arithmetic: str | Arithmetic) -> Arithmetic:
    """The arithmetic of this name; an arithmetic is its own answer.

    Raises:
        UnknownName: when there is none.

    Example:
        >>> number_system("bfloat16").unit_roundoff
        Fraction(1, 256)

    """
    if isinstance(arithmetic, str) and arithmetic in SYSTEMS:
        return SYSTEMS[arithmetic]
    if isinstance(arithmetic, str) or not hasattr(arithmetic, "unit_roundoff"):
        raise UnknownName.among("arithmetic", arithmetic, SYSTEMS)
    return arithmetic
