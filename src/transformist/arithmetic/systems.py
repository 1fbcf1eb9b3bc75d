"""The arithmetics by name.

Those in which every claim on the real numbers is checked have fixed names (`SYSTEMS`).
Others come in families, and their names hold their numbers: `saturating:B:r` is fixed point that
ends at B, `float32:B` is float32 clamped at B, `interval:BITS` has balls of other precisions.
"""

from __future__ import annotations

import functools

from transformist.arithmetic.exact import EXACT
from transformist.arithmetic.floating import FORMATS, Clamped, Floating
from transformist.arithmetic.interval import INTERVAL, Interval
from transformist.arithmetic.protocol import Arithmetic
from transformist.arithmetic.saturating import SATURATING, Saturating
from transformist.errors import InvalidValue, UnknownName

SYSTEMS: dict[str, Arithmetic] = {system.name: system for system in (EXACT, INTERVAL, *FORMATS)}

FAMILIES = ("saturating", "saturating:B:r", "FORMAT:B", "interval:BITS")
"""Names that spell out numbers; `saturating` alone is `saturating:16:1/16`."""


def number_system(arithmetic: str | Arithmetic) -> Arithmetic:
    """Return the arithmetic of a name; an arithmetic is returned as it is.

    Args:
        arithmetic: one of `SYSTEMS`, or of a family: `saturating`, `saturating:B:r` (fixed point of
            largest number B and resolution r), a float format clamped at B, `float32:B`, or
            `interval:BITS`.

    Raises:
        UnknownName: for a name of no arithmetic.
        InvalidValue: for a family whose numbers are out of range, and for several arithmetics.

    Example:
        >>> number_system("bfloat16").unit_roundoff
        Fraction(1, 256)
        >>> number_system("saturating:8:1/2").largest
        Fraction(8, 1)

    """
    if isinstance(arithmetic, str):
        return SYSTEMS.get(arithmetic) or _member(arithmetic)
    if isinstance(arithmetic, list | tuple | set):
        raise InvalidValue(
            "there must be one arithmetic, by its name",
            received=f"{arithmetic!r:.60}",
            remedy="call it once for each",
        )
    if not hasattr(arithmetic, "unit_roundoff"):
        raise _unknown(arithmetic)
    return arithmetic


@functools.cache
def _member(name: str) -> Arithmetic:
    """Make the member of a family from a name such as `interval:256`."""
    family, *numbers = name.split(":")
    wide = SYSTEMS.get(family)
    if family == "saturating" and len(numbers) in (0, 2):
        return Saturating(*numbers) if numbers else SATURATING  # type: ignore[arg-type]
    if family == "interval" and len(numbers) == 1:
        return Interval(int(numbers[0]) if numbers[0].isdecimal() else numbers[0])  # type: ignore[arg-type]
    if isinstance(wide, Floating) and len(numbers) == 1:
        return Clamped.at(numbers[0], wide)
    raise _unknown(name)


def _unknown(name: object) -> UnknownName:
    return UnknownName.among("arithmetic", name, [*SYSTEMS, *FAMILIES])
