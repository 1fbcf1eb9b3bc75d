"""What commands print: tables and lines for a person, or one JSON object."""

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
        """Drop what is still to come."""
        drop(self.file)


out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
wide = Console(highlight=False, width=160, emoji=False)

EVERY = 10.0
"""Seconds after which it is said, where standard error is no terminal, what is being done."""


@contextmanager
def working(on: str) -> Iterator[None]:
    """Say on standard error what is being done, how far it is, and for how long it has been done.

    On a terminal at once, in a line that is removed at the end; elsewhere in a line every `EVERY`
    seconds, so that nothing is said of what is done sooner. How far it is, the library logs.
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
            yield
        finally:
            ended.set()
            thread.join()


class _Reached(logging.Handler):
    """The last that was logged, put in words when it is asked for."""

    def __init__(self, on: str) -> None:
        super().__init__()
        self._on = on
        self._last: logging.LogRecord | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record in place of the one before."""
        self._last = record

    def __str__(self) -> str:
        return self._on if self._last is None else f"{self._on}: {self._last.getMessage()}"


@contextmanager
def _logged_to(handler: logging.Handler) -> Iterator[None]:
    """Hand what the library logs to a handler, and to no other."""
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
    """One object on standard output, in which every number is one."""
    try:
        print(json.dumps(facts, allow_nan=False))
    except BrokenPipeError:
        drop(sys.stdout)


@contextmanager
def shown_warnings() -> Iterator[None]:
    """What the library warns of meanwhile, once each, as lines on standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        yield


def warn(of: str) -> None:
    """A line on standard error; none where there is nothing to warn of."""
    if of:
        err.print(f"warning: {of}", markup=False)
