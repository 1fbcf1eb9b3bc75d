"""The float format that a bound speaks of, from an arithmetic or its name."""

from __future__ import annotations

from transformist.arithmetic import Arithmetic, Floating, number_system


def float_format_of(arithmetic: Arithmetic | str) -> Floating | None:
    """The format, `None` for an arithmetic in which nothing rounds.

    Raises:
        UnknownName: for a name that no arithmetic has.

    Example:
        >>> float_format_of("float16").precision, float_format_of("exact")
        (11, None)

    """
    system = number_system(arithmetic)
    return system if isinstance(system, Floating) else None
