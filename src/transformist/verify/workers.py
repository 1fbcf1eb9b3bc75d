"""Work on many items in several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def spread(
    function: Callable[[T], R], items: Sequence[T], processes: int | None = None
) -> Iterator[R]:
    """Apply a function to each item, and yield the results in order, each when it is ready.

    Args:
        function: at the top of a module, or a `partial` of one that is.
        items: its arguments.
        processes: number of processes; as many as there are processors, when left out.

    Example:
        >>> list(spread(abs, [-1, 2], processes=1))
        [1, 2]

    """
    workers = min(processes or os.cpu_count() or 1, len(items))
    if workers < 2:
        yield from map(function, items)
        return
    from multiprocessing import Pool  # at import it would cost every user of the package

    # Ctrl-C reaches every process of the group: the parent answers it, and ends the pool.
    left_to_the_parent = (signal.SIGINT, signal.SIG_IGN)
    with Pool(workers, initializer=signal.signal, initargs=left_to_the_parent) as pool:
        yield from pool.imap(function, items)
