"""The float format that a bound speaks about, found by its name.

u is the unit roundoff of the format, w that of the accumulator in which sums and dot products are
added up. Where the accumulator is wider (w < u), a sum rounds once more when it is stored.
"""

from __future__ import annotations

from fractions import Fraction

from transformist.arithmetic import Arithmetic, Floating, Saturating, number_system
from transformist.errors import InvalidValue


def float_format_of(arithmetic: Arithmetic | str) -> Floating | None:
    """Return the float format of this name, or `None` for an arithmetic in which nothing rounds.

    Raises:
        UnknownName: for a name that no arithmetic has.
        InvalidValue: for saturating arithmetic, as `for_real_numbers`.

    Example:
        >>> float_format_of("float16").precision, float_format_of("exact")
        (11, None)

    """
    system = for_real_numbers(arithmetic)
    return system if isinstance(system, Floating) else None


def is_as_fine(one: Arithmetic, other: Arithmetic) -> bool:
    """True if a float format rounds, overflows and underflows no sooner than another.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT16, FLOAT32
        >>> is_as_fine(FLOAT32, BFLOAT16), is_as_fine(BFLOAT16, FLOAT16)
        (True, False)

    """
    return (
        isinstance(one, Floating)
        and isinstance(other, Floating)
        and one.precision >= other.precision
        and one.accumulator_roundoff <= other.accumulator_roundoff
        and one.largest >= other.largest
        and one.smallest <= other.smallest
    )


def for_real_numbers(arithmetic: Arithmetic | str) -> Arithmetic:
    """Return the number system of this name, which must stand for the real numbers.

    Raises:
        UnknownName: for a name that no arithmetic has.
        InvalidValue: for saturating arithmetic, whose sums depend on their order by more than
            rounding.

    """
    system = number_system(arithmetic)
    if isinstance(system, Saturating):
        raise InvalidValue(
            "a rounding error needs a format that approximates the real numbers",
            received=f"{system.name}, a finite arithmetic of its own",
            where="bounds",
            remedy="give a float format; recipes of the chapter finite state what holds here",
        )
    return system


def storing_roundoff(a: Floating) -> Fraction:
    """Return the unit roundoff of storing a sum: u, or 0 where sums accumulate in the format.

    Example:
        >>> from transformist.arithmetic import BFLOAT16, FLOAT64
        >>> storing_roundoff(BFLOAT16), storing_roundoff(FLOAT64)
        (Fraction(1, 256), Fraction(0, 1))

    """
    return a.unit_roundoff if a.unit_roundoff > a.accumulator_roundoff else Fraction(0)
