"""Work on many items in several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from transformist.verify.runs.processes import Packed, Workers, apply_packed

T = TypeVar("T")
R = TypeVar("R")

EACH_PROCESSOR = Workers()
"""As many processes of this machine as there are processors."""

THIS_PROCESS = Workers(1)
"""No other process."""


def spread(
    function: Callable[[T], R], items: Sequence[T], workers: Workers = EACH_PROCESSOR
) -> Iterator[R]:
    """Apply a function to each item, and yield the results in order, each when it is ready.

    Args:
        function: a function of one argument.
        items: its arguments.
        workers: the processes. Without a backend they are copies of this process, which start
            faster than processes of loky.

    Example:
        >>> list(spread(abs, [-1, 2], Workers(1)))
        [1, 2]

    """
    if workers.backend is not None:
        yield from workers.each(function, items)
        return
    count = min(workers.jobs or os.cpu_count() or 1, len(items))
    if count < 2:
        yield from map(function, items)
        return
    from multiprocessing import Pool  # at import it would cost every user of the package

    # Ctrl-C reaches every process of the group: the parent answers it, and ends the pool.
    left_to_the_parent = (signal.SIGINT, signal.SIG_IGN)
    packed = Packed.of(function)
    with Pool(count, initializer=signal.signal, initargs=left_to_the_parent) as pool:
        yield from pool.imap(partial(apply_packed, packed), items)
