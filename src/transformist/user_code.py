"""Running a user's Python code: in bounded time, and with its output kept apart from ours."""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from transformist.errors import OutOfTime, raised_at

TIMEOUT = 10.0
"""Seconds that a user's function may take for one input, where the user does not say."""

AGAIN = 0.1
"""Seconds after which code that has swallowed the alarm is interrupted once more."""


class TimeIsOver(BaseException):
    """Raised in a `limited` block when its time is over. Users' code may catch `Exception`."""


@contextmanager
def limited(seconds: float, invariant: str, received: str) -> Iterator[None]:
    """Interrupt the block when its time is over.

    A timer of the operating system sends a signal, which Python handles between two instructions: a
    single call into compiled code is interrupted when it returns. Signals reach the main thread
    of a process, worker processes included; in another thread, and on Windows, nothing is limited.

    Args:
        seconds: the time.
        invariant: the sentence "… must end" of the error.
        received: the code that did not end.

    Raises:
        OutOfTime: when the time is over, with the line that was running.

    Example:
        >>> try:
        ...     with limited(0.01, "a loop must end", "an endless one"):
        ...         while True:
        ...             pass
        ... except OutOfTime as error:
        ...     error.invariant, error.received
        ('a loop must end within 0.01 s', 'an endless one')

    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    is_over = False

    def ring(*_: object) -> None:
        if not is_over:
            raise TimeIsOver

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        try:
            yield
        finally:
            is_over = True  # an alarm may still come before the timer has been stopped
    except TimeIsOver as alarm:
        raise OutOfTime(
            f"{invariant} within {seconds:g} s",
            received=received,
            where=raised_at(alarm) or None,
            remedy="mend it, or give it more time (--timeout)",
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def printing_aside() -> Iterator[None]:
    """Redirect what the block prints to standard error: standard output is for the answer."""
    with redirect_stdout(sys.stderr):
        yield


def guarded(function: Callable[[Any], Any], seconds: float) -> Callable[[Any], Any]:
    """Wrap a user's function: it prints to standard error, and each call is limited in time.

    Args:
        function: a function of one argument.
        seconds: the time limit of a call.

    Example:
        >>> guarded(len, 1)("abc")
        3

    """
    return _Guarded(function, seconds)


@dataclass(eq=False)
class _Guarded:
    """A function that is limited in time, and what it is; the limit changes no answer."""

    function: Callable[[Any], Any]
    seconds: float = field(compare=False)

    def __post_init__(self) -> None:
        functools.update_wrapper(self, self.function, updated=())

    def __call__(self, x: Any) -> Any:
        asked = limited(self.seconds, "a reference must answer", f"no answer on {x!r:.60}")
        with printing_aside(), asked:
            return self.function(x)
