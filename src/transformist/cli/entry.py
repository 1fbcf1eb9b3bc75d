"""Entry point of the command line: from here on, Ctrl-C ends the process with one line.

Nothing but what Python itself has loaded is imported above: the time before the handler is in place
is the time in which Ctrl-C prints a traceback.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as in `typing`, which is not imported: it takes as long as all the rest
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

INTERRUPTED = 130
"""Exit code after Ctrl-C; the argument parser returns the same."""

_IMPORTING = "<frozen importlib"
"""Prefix of the file name of every frame of Python's import system."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: those after the name of the program; when left out, those of this process, which
            the command line then has to itself.

    Returns:
        0 the command did its work; 1 a check does not hold, or a measurement was refused; 2 the
        request was wrong, or its answer cannot be written; 130 it was interrupted.

    """
    if arguments is not None:
        return _answered(arguments)
    try:
        # Started with SIGINT ignored, as by nohup, the process goes on ignoring it.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
    except KeyboardInterrupt:  # it came before the handler was in place
        _leave()
    try:
        try:
            return _answered(sys.argv[1:])
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left takes no time
    except KeyboardInterrupt:  # a second one, while the first is answered, or one at the very end
        return INTERRUPTED


def _answered(arguments: Sequence[str]) -> int:
    from transformist.cli.dispatch import dispatch

    return dispatch(arguments)


def _interrupt(_signum: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; end the process at once while a module is imported.

    A module that is being imported (numba takes a second) may swallow the exception, or raise
    another one. At that time no work has begun that would need to be cleaned up.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            _leave()
        frame = frame.f_back
    sys.unraisablehook = _say_nothing
    raise KeyboardInterrupt


def _say_nothing(of: sys.UnraisableHookArgs) -> None:
    """Suppress errors of objects that Ctrl-C interrupted and that fail when they are deleted.

    A KeyboardInterrupt raised in such a callback cannot be passed on, so it ends the process.
    """
    if isinstance(of.exc_value, KeyboardInterrupt):
        _leave()


def _leave() -> None:
    try:
        os.write(2, b"error: interrupted\n")
    finally:
        os._exit(INTERRUPTED)
