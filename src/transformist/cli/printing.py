"""Output of commands: tables and lines for a person, or one JSON object."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import typer
from rich import console
from rich.markup import escape

from transformist.cli.streams import drop


class Console(console.Console):
    """A console that goes on when its reader has gone, as `| head` does; rich exits."""

    def on_broken_pipe(self) -> None:
        """Drop the output that is still to come."""
        drop(self.file)


out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
wide = Console(highlight=False, width=160, emoji=False)

EVERY = 10.0
"""Seconds between two lines of progress where standard error is no terminal."""


@contextmanager
def working(on: str) -> Iterator[Callable[[str], None]]:
    """Show progress on standard error: the work, the step that it has reached, and its time.

    A terminal shows one line at once, and removes it at the end. Elsewhere a line is printed every
    `EVERY` seconds, so that short work prints nothing. The steps are log records of the library.

    A thread of its own prints the lines: the work may be a single call into compiled code, which
    gives no other moment to do so. The log keeps only its last record, formatted when it is shown,
    so that a step costs little however often it is logged.

    Args:
        on: the work, in words.

    Yields:
        A function that takes a step in words, to be shown in place of log records from then on.

    """
    began, reached, ended = time.monotonic(), _Reached(on), threading.Event()

    def repeat(every: float, show: Callable[[str], None]) -> None:
        while not ended.wait(every):
            show(f"{reached}, {time.monotonic() - began:.0f} s")

    def print_line(text: str) -> None:
        err.print(text, markup=False)

    with ExitStack() as stack:
        stack.enter_context(_logged_to(reached))
        every, show = EVERY, print_line
        if err.is_terminal:
            status = stack.enter_context(err.status(escape(on)))
            every, show = 1.0, lambda text: status.update(escape(text))
        thread = threading.Thread(target=repeat, args=(every, show), daemon=True)
        thread.start()
        try:
            yield reached.say
        finally:
            ended.set()
            thread.join()


class _Reached(logging.Handler):
    """The last log record, formatted only when it is shown."""

    def __init__(self, on: str) -> None:
        super().__init__()
        self._on = on
        self._last: logging.LogRecord | None = None
        self._said = ""

    def say(self, step: str) -> None:
        """Show this step in place of log records."""
        self._said = step

    def emit(self, record: logging.LogRecord) -> None:
        """Replace the record before."""
        self._last = record

    def __str__(self) -> str:
        step = self._said or (self._last and self._last.getMessage())
        return f"{self._on}: {step}" if step else self._on


@contextmanager
def _logged_to(handler: logging.Handler) -> Iterator[None]:
    """Hand the log records of the library to this handler alone."""
    logger = logging.getLogger("transformist")
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]


def print_json(facts: dict[str, Any]) -> None:
    """Print one JSON object, without NaN or infinity, on standard output."""
    try:
        print(json.dumps(facts, allow_nan=False))
    except BrokenPipeError:
        drop(sys.stdout)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """Print each warning of the library once, as a line on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        yield


def warn(text: str) -> None:
    """Print a warning on standard error; an empty one is left out."""
    if text:
        err.print(f"warning: {text}", markup=False)
