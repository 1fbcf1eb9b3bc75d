"""Workloads that check every string up to a length, beside a sample checked string by string."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from transformist.catalogue import recipe
from transformist.domains import Strings
from transformist.model import Transformer


@dataclass(frozen=True)
class EveryString:
    """A check of every string.

    Attributes:
        build: returns the model for strings of length n.
        reference: returns the right answer on a string, by a plain algorithm.
        arithmetic: the number system of the check.
        lengths: the lengths that are measured, the first one for `--quick`.

    """

    build: Callable[[int], Transformer]
    reference: Callable[[str], bool]
    arithmetic: str
    lengths: tuple[int, ...]


def is_nested(x: str, depth: int | None = None) -> bool:
    """True if brackets of all kinds match, nested at most `depth` deep.

    Example:
        >>> is_nested("([])"), is_nested("([)]"), is_nested("([])", depth=1)
        (True, False, False)

    """
    stack: list[str] = []
    for symbol in x:
        if symbol in CLOSES:
            stack.append(CLOSES[symbol])
            if depth is not None and len(stack) > depth:
                return False
        elif not stack or stack.pop() != symbol:
            return False
    return not stack


CLOSES = {"(": ")", "[": "]"}
"""The closing bracket of each opening one."""

DEPTH = 3
"""Depth of the case of two kinds of brackets."""


def sampled(model: Transformer, n: int) -> Iterator[Any]:
    """One string in a hundred, in the order of the strings, from the empty one on."""
    every = Strings(tuple(model.alphabet), lambda _: ()).every(n)
    return islice(every, 0, None, IN_SAMPLE)


IN_SAMPLE = 100
"""Number of strings for each one that is checked by itself."""


def _dyck_1(n: int) -> Transformer:
    model: Transformer = recipe("dyck-1").build(max_length=n)
    return model


def _dyck_2(_: int) -> Transformer:
    model: Transformer = recipe("dyck-k-d").build(kinds=2, depth=DEPTH)
    return model


EVERY: Mapping[str, EveryString] = {
    "every-dyck-1": EveryString(_dyck_1, is_nested, "float64", (12, 20)),
    "every-dyck-1-exact": EveryString(_dyck_1, is_nested, "exact", (10, 18)),
    "every-dyck-2": EveryString(_dyck_2, lambda x: is_nested(x, DEPTH), "float64", (5, 9)),
}
"""Checks of every string to a length."""
