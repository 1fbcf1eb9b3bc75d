"""Work on blocks of rows, on all processors."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@cache
def _pool() -> ThreadPoolExecutor:
    """One thread for each processor that this process may use."""
    return ThreadPoolExecutor(_processors(), thread_name_prefix="transformist")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


# Handing work to a thread and waiting for it takes about 30 µs, in which a kernel goes through some
# 20,000 numbers. From six times that on, two threads are faster on a quiet machine.
MUCH = 2**17
"""From this many numbers on, work is divided among threads."""


def on_all_processors(function: Callable[[T], R], items: Iterable[T], numbers: int) -> list[R]:
    """[function(item), …], on all processors; an error is raised when all calls have ended.

    Args:
        function: of an item; it must not call `on_all_processors`.
        items: its arguments.
        numbers: the numbers that all calls together go through.

    Example:
        >>> on_all_processors(abs, [-1, 2], numbers=MUCH)
        [1, 2]

    """
    given = list(items)
    if numbers < MUCH:
        return [function(item) for item in given]
    left, found = deque(range(len(given))), dict[int, R]()

    def work() -> None:
        while left:
            try:
                at = left.popleft()
            except IndexError:  # another thread took the last item
                return
            found[at] = function(given[at])

    others = [_pool().submit(work) for _ in range(min(_processors(), len(given)) - 1)]
    try:
        work()
    finally:
        left.clear()  # after an error the other threads stop at their next item
        wait(others)
    for each in others:
        each.result()
    return [found[at] for at in range(len(given))]


def one_ahead(
    function: Callable[[T], R], items: Iterable[T], numbers: int
) -> Iterator[tuple[T, R]]:
    """Each item with function(item), computed while the item before is used.

    Example:
        >>> list(one_ahead(abs, [-1, 2], numbers=MUCH))
        [(-1, 1), (2, 2)]

    """
    given = list(items)
    if len(given) < 2 or numbers < MUCH or _processors() < 2:
        yield from ((item, function(item)) for item in given)
        return
    ahead = _pool().submit(function, given[0])
    try:
        for item, following in zip(given, [*given[1:], None], strict=True):
            found = ahead.result()
            if following is not None:
                ahead = _pool().submit(function, following)
            yield item, found
    finally:
        wait([ahead])
