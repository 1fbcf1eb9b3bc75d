"""Search for the largest number of a property that holds up to it, by bisection."""

from collections.abc import Callable


def largest_below(fails: int, holds: Callable[[int], bool], fits: int = 0) -> int:
    """Return `fits`, or a larger number at which a property holds; at the next one it fails.

    Where it holds up to some number and nowhere beyond, the result is this number.

    Args:
        fails: a number above `fits` at which the property fails; it is not tried.
        holds: the property.
        fits: a number at which the property is taken to hold; it is not tried.

    Example:
        >>> largest_below(100, lambda n: n**2 < 50)
        7
        >>> largest_below(100, lambda n: n**2 < 50, fits=5)
        7

    """
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if holds(middle):
            fits = middle
        else:
            fails = middle
    return fits
