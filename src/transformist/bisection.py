"""Search for the largest number of a property that holds up to it, by bisection."""

from collections.abc import Callable


def largest_below(fails: int, holds: Callable[[int], bool]) -> int:
    """Return a number at which a property holds, while it fails at the next; 0 if it fails at 1.

    The property is taken to hold at 0. Where it holds up to some number and nowhere beyond, the
    result is this number.

    Args:
        fails: a positive number at which the property fails; it is not tried.
        holds: the property.

    Example:
        >>> largest_below(100, lambda n: n**2 < 50)
        7

    """
    fits = 0
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if holds(middle):
            fits = middle
        else:
            fails = middle
    return fits
