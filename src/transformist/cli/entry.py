"""Where the command line begins and ends: what is given, the exit code, and errors in one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

import typer

from transformist.cli.application import app
from transformist.errors import TransformistError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 the command did its work; 1 a check does not hold, or a measurement was refused; 2 the
        request was wrong, or its answer cannot be written; 130 it was interrupted.

    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stdout is None:
        return _refuse("answers go to standard output; received a closed one; leave it open")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.set_int_max_str_digits(0)  # exact answers may be long
    try:
        code = app(given, prog_name="transformist", standalone_mode=False)
        sys.stdout.flush()
    except TransformistError as error:
        return _refuse(str(error))
    except _USAGE_ERROR as error:
        return _refuse(
            f"{error.format_message().rstrip('.')}; transformist --help lists what there is"
        )
    except MemoryError:
        return _refuse("the request does not fit in memory; give a smaller one")
    except (BrokenPipeError, SystemExit):  # rich exits when the reader of a pipe has gone
        _drop(sys.stdout)
        return 0
    except OSError as error:
        _drop(sys.stdout)
        where = error.filename or "standard output"
        return _refuse(
            "what a command reads and writes can be read and written; received "
            f"{where} ({error.strerror or error}); make room, or choose another"
        )
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        return _refuse("interrupted", code)
    return code if isinstance(code, int) else 0


_INTERRUPTED = 130
"""The exit code after Ctrl-C, which is also what the argument parser makes of it."""


_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
"""The argument parser's own error, of which `typer.BadParameter` is a case."""


def _refuse(line: str, code: int = 2) -> int:
    if sys.stderr is not None:  # else print takes standard output
        try:
            print(f"error: {' '.join(line.split())}", file=sys.stderr, flush=True)
        except OSError:
            _drop(sys.stderr)
    return code


def _drop(stream: TextIO) -> None:
    """Lead a stream to nowhere, so that nothing is written to it at the end either."""
    with suppress(OSError, ValueError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
