"""From the arguments of a command line to its exit code: errors in one line, output to its end."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Any

import typer

from transformist.cli.application import app
from transformist.cli.entry import INTERRUPTED
from transformist.cli.streams import drop
from transformist.errors import TransformistError


def dispatch(given: Sequence[str]) -> int:
    """Call the command that the arguments name, and return its exit code, as `main` lists them.

    A command whose standard output is no longer read goes on without it: its exit code is an answer
    too.
    """
    if sys.stdout is None:
        return _refuse("standard output must be open, for the answer; got a closed one; open it")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.set_int_max_str_digits(0)  # exact answers may be long
    streams = sys.stdout, sys.stderr
    try:
        code = app(list(given), prog_name="transformist", standalone_mode=False)
        _flush()
    except TransformistError as error:
        return _refuse(str(error))
    except _USAGE_ERROR as error:
        command = error.ctx.command_path if error.ctx else "transformist"
        return _refuse(
            f"{error.format_message().rstrip('.')}; {command} --help lists what there is"
        )
    except MemoryError:
        return _refuse("the request does not fit in memory; give a smaller one")
    except OverflowError as error:
        return _refuse(
            "each number computed from the settings and the input must be within float64; received "
            f"values for which one is not ({error}); give values nearer to 1"
        )
    except (BrokenPipeError, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code not in PARSER_ENDS:
            return _terminated(ended.code)
        # The parser's own text, of --help, found no reader.
        sys.stdout, sys.stderr = streams  # the parser wraps both, a closed one (None) too
        drop(sys.stdout)
        return 0
    except OSError as error:
        drop(sys.stdout)
        where = error.filename or "standard output"
        return _refuse(
            "what a command reads and writes must be readable and writable; received "
            f"{where} ({error.strerror or error}); make room, or choose another"
        )
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        return _refuse("interrupted", code)
    return code if isinstance(code, int) else 0


PARSER_ENDS = (None, 0, 1)
"""Codes of SystemExit with which the argument parser ends when its text has no reader."""


def _terminated(code: object) -> int:
    """Answer a library that ends the process: Ray does so on SIGTERM, with the signal's number."""
    # As a shell has it: 128 and the signal's number; 0 would say that the work is done.
    exit_code = 128 + code if isinstance(code, int) and 1 < code < 65 else 2
    return _refuse("the command was terminated before its end", exit_code)


_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
"""Base class of the argument parser's errors, such as `typer.BadParameter`."""


def _flush() -> None:
    """Write buffered output now, so that no write can fail when Python ends."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)


def _refuse(line: str, code: int = 2) -> int:
    if sys.stderr is not None:  # else print takes standard output
        try:
            print(f"error: {' '.join(line.split())}", file=sys.stderr, flush=True)
        except OSError:
            drop(sys.stderr)
    return code
