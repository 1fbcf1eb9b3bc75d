"""The command line in this process, with its own streams, and the promises that each call keeps."""

import io
import json
import os
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from watched import NoEnd, watched

from transformist.cli import main

CODES = (0, 1, 2)
"""Exit codes without Ctrl-C: it did its work; something does not hold; the request was wrong."""

JUDGES = ("check", "certify", "precision", "bench")
"""The commands that end with 1 where something does not hold."""


@dataclass(frozen=True)
class Called:
    """Outcome of a call."""

    arguments: tuple[str, ...]
    code: int
    out: str
    err: str


class Broken(AssertionError):
    """A promise of the command line that a call breaks."""


def called(arguments, given=b"", of=""):
    """Call the installed command's entry.

    Args:
        arguments: those after the name of the program.
        given: on standard input; None where it is closed.
        of: what else the report of a call without an end is to say.

    """
    arguments = tuple(arguments)
    told = f"{in_words(arguments)} {of}"
    with unchanged(), streams(given) as (out, err), watched(told):
        try:
            code = main(list(arguments))
        except NoEnd:
            raise
        except BaseException as error:
            raise Broken(f"{error!r:.200} left the command: {in_words(arguments)}") from error
        return Called(arguments, code, text(out), text(err))


class Kept(io.BytesIO):
    """Bytes that can be read after they are closed."""

    def close(self):
        pass


@contextmanager
def streams(given):
    """Standard input with these bytes, and what goes to the other two."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = Kept(), Kept()
    sys.stdin = None if given is None else io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def unchanged():
    """With the settings of Python and numpy that a file of the user's may change put back."""
    digits, recursion, argv = sys.get_int_max_str_digits(), sys.getrecursionlimit(), [*sys.argv]
    try:
        with warnings.catch_warnings(), np.errstate():
            yield
    finally:
        sys.set_int_max_str_digits(digits)
        sys.setrecursionlimit(recursion)
        sys.argv[:] = argv


def text(stream):
    return stream.getvalue().decode("utf-8", "backslashreplace")


@contextmanager
def inside(directory):
    """With the files of a directory by their bare names."""
    before = os.getcwd()  # noqa: PTH109
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)


def in_words(arguments):
    return " ".join(["transformist", *(repr(each)[:400] for each in arguments)])


def require_promises(done, says_more=False, codes=CODES):
    """What holds of every call.

    Args:
        done: what came of it.
        says_more: a file of the user's may print to standard error itself.
        codes: the exit codes that may come.

    """
    lines = done.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    require(type(done.code) is int and done.code in codes, done, f"exit code {done.code!r}")
    require("Traceback" not in done.out + done.err, done, "a traceback")
    if done.code == 1:
        require(done.arguments[0] in JUDGES, done, "exit code 1 of a command that judges nothing")
    if done.code in (0, 1):
        require(not errors, done, "an error, and the exit code of none")
    else:
        last = lines[-1] if lines else ""
        require("error: " in last, done, "no line of error at the end")
        require(len(last) > len("error: ") + 8, done, "an error that says nothing")
        if not says_more:  # what a file prints may end in the middle of a line
            require(len(errors) == 1 and errors[0] is last, done, "not one line of error")
            usual = ("error: ", "warning: ", "reading standard input", "searched ")
            require(all(line.startswith(usual) for line in lines), done, "more lines than one")
    if "--json" in done.arguments and not {"--help", "--version"} & {*done.arguments}:
        require_one_object(done)


def require_one_object(done):
    """With --json one JSON object, in which every number is one; of a refusal, nothing."""
    if done.code not in (0, 1):
        require(done.out == "", done, "standard output beside a refusal")
        return
    try:
        found = json.loads(done.out, parse_constant=no_number)
    except ValueError as error:
        raise Broken(report(done, f"no JSON ({error})")) from None
    require(isinstance(found, dict), done, "JSON that is no object")


def no_number(name):
    raise ValueError(f"{name} in JSON")


def require(holds, done, what):
    if not holds:
        raise Broken(report(done, what))


def report(done, what):
    return (
        f"{what}: {in_words(done.arguments)}\n  exit code {done.code!r}\n"
        f"  stdout {done.out[:400]!r}\n  stderr {done.err[-800:]!r}"
    )
