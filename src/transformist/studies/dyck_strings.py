"""Strings of Dyck-1, of the studies dyck, precision and exact-uniform."""

from __future__ import annotations

import numpy as np


def is_member(x: str) -> bool:
    """True for a string of Dyck-1, checked with a stack.

    Example:
        >>> is_member("(())()"), is_member("())("), is_member("(")
        (True, False, False)

    """
    stack = []
    for symbol in x:
        if symbol == "(":
            stack.append(symbol)
        elif stack:
            stack.pop()
        else:
            return False
    return not stack


def rotated(x: str) -> str:
    """The rotation of x that is a member, for an x with as many of each bracket.

    Example:
        >>> rotated("))((")
        '(())'

    """
    # Begun where the depth is least, no prefix closes more than it opens.
    steps = [1 if symbol == "(" else -1 for symbol in x]
    start = int(np.argmin(np.cumsum([0, *steps[:-1]])))
    return x[start:] + x[:start]
