"""Functions and programs of a user: programs/NAME, or FILE.py:NAME."""

from __future__ import annotations
import __future__

import ast
import difflib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from transformist.errors import (
    InvalidValue,
    TransformistError,
    UnknownName,
    UnreadableInput,
    raised_at,
    raised_in_words,
)
from transformist.language import Program
from transformist.programs import PROGRAMS
from transformist.texts import read_text
from transformist.user_code import TIMEOUT, TimeIsOver, guarded, limited, printing_aside

MODULE = "transformist_reference"
"""Name of the module that a user's file runs as."""

PACKAGED = "programs/"
"""Prefix of the names of packaged programs."""


@dataclass(frozen=True)
class _Refused:
    """Refusal of a definition or assignment; statements that do not use its names still run.

    Attributes:
        error: the refusal.

    """

    error: TransformistError


def load_function(against: str, timeout: float = TIMEOUT) -> Callable[[Any], Any]:
    """The function that --against names: programs/NAME, or FILE.py:NAME.

    Args:
        against: the name.
        timeout: seconds in which the file must run, and the function must answer each input.

    Raises:
        InvalidValue: when it is not of that form.
        UnreadableInput: when the file cannot be read or does not run.
        OutOfTime: when the file does not run to its end in time; later, when the function does not.
        UnknownName: when there is no such program, or no such function in the file.

    Example:
        >>> load_function("programs/majority")("0111")
        True

    """
    if against.startswith(PACKAGED):
        return load_program(against)
    with limited(timeout, "the file of a reference must run to its end", against):
        path, name, values = _run_file(against, "--against")
    if not callable(_value(values, name)):
        known = [key for key, value in values.items() if callable(value)]
        raise UnknownName.among("function of the file", name, known, path)
    function: Callable[[Any], Any] = values[name]
    return function if isinstance(function, Program) else guarded(function, timeout)


def load_program(given: str) -> Program:
    """The program that programs/NAME or FILE.py:NAME names.

    Raises:
        InvalidValue: when it is not of that form.
        UnreadableInput: when the file cannot be read or does not run.
        UnknownName: when there is no such program.
        TransformistError: for what the program language does not have, with the place in the file.

    """
    if given.startswith(PACKAGED):
        name = given.removeprefix(PACKAGED)
        if name not in PROGRAMS:
            raise UnknownName.among("packaged program", name, PROGRAMS)
        return PROGRAMS[name]
    if given.removesuffix(":").endswith(".py"):
        values = _values_of(given.removesuffix(":"))
        known = _programs_in(values)
        if not known:
            _refuse_undecorated(given.removesuffix(":"), _functions_in(values))
        raise InvalidValue(
            "a program must be programs/NAME, or a file and a name in it, FILE.py:NAME",
            received=repr(given),
            remedy="write " + " or ".join(f"{given.removesuffix(':')}:{name}" for name in known)
            if known
            else "write a program in the file, a function below @tf.program",
        )
    path, name, values = _run_file(given, "a program")
    found = _value(values, name)
    if not isinstance(found, Program):
        known = _programs_in(values)
        if name in _functions_in(values):
            _refuse_undecorated(path, [name], known)
        raise UnknownName.among("program (a function below @tf.program)", name, known, path)
    return found


def _programs_in(values: dict[str, Any]) -> list[str]:
    return [name for name, value in values.items() if isinstance(value, (Program, _Refused))]


def _functions_in(values: dict[str, Any]) -> list[str]:
    """The names of the functions that the file itself defines."""
    return [
        name
        for name, value in values.items()
        if isinstance(value, FunctionType) and value.__module__ == MODULE
    ]


def _refuse_undecorated(path: str, functions: list[str], known: Sequence[str] = ()) -> None:
    """Refuse functions of a file that are not below @tf.program; nothing where there are none.

    Raises:
        InvalidValue: with the function above which to write it.

    """
    if functions:
        others = f", or name a program of the file: {', '.join(known)}" if known else ""
        raise InvalidValue(
            "a program must be a function below @tf.program",
            received=f"{', '.join(functions)!s:.60} in {path}, without @tf.program",
            remedy=f"write @tf.program(alphabet=...) on the line above def {functions[0]}{others}",
        )


def _value(values: dict[str, Any], name: str) -> Any:
    """The value of a name, or `None`; raises the refusal if its definition was refused."""
    found = values.get(name)
    if isinstance(found, _Refused):
        raise found.error
    return found


def _run_file(given: str, what: str) -> tuple[str, str, dict[str, Any]]:
    """The file and the name in FILE.py:NAME, and the names that the file defines."""
    path, _, name = given.rpartition(":")
    if not path or not name:
        raise InvalidValue(
            f"{what} must be programs/NAME, or a file and a name in it, FILE.py:NAME",
            received=repr(given),
            remedy=f"{_packaged_like(given)}, or FILE.py:NAME for one in a file of your own",
        )
    return path, name, _values_of(path)


def _packaged_like(given: str) -> str:
    """The remedy for a name that resembles the name of a packaged program."""
    near = difflib.get_close_matches(given.removeprefix(PACKAGED), PROGRAMS, n=1)
    if near:
        return f"write {PACKAGED}{near[0]} for the packaged program"
    return f"write {PACKAGED}NAME for a packaged program (transformist list has them)"


def _values_of(path: str) -> dict[str, Any]:
    """The names that a file defines, with their values."""
    # Dataclasses, among others, look up the module of a class by its name. It has the name only
    # while the file runs: cloudpickle would send functions of a module by their names alone.
    module = sys.modules[MODULE] = ModuleType(MODULE)
    module.__file__ = path
    values = vars(module)
    try:
        with printing_aside():
            _execute(ast.parse(read_text(Path(path)), path), path, values)
    except (KeyboardInterrupt, TimeIsOver, TransformistError):
        raise
    except BaseException as error:  # SystemExit and GeneratorExit too: none may end the command
        raise UnreadableInput(
            "a file of Python must run to its end",
            received=f"{path}, which raises {raised_in_words(error)}",
            where=raised_at(error) or None,
            remedy="mend the file",
        ) from None
    finally:
        del sys.modules[MODULE]
    return values


def _execute(file: ast.Module, path: str, values: dict[str, Any]) -> None:
    """Run a file statement by statement; a refused function or assignment does not stop it."""
    compile(file, path, "exec", dont_inherit=True)  # nothing runs of a file with wrong syntax
    flags = 0
    for statement in file.body:
        # Otherwise the file would take over the `from __future__` imports of this one.
        code = compile(ast.Module([statement], []), path, "exec", flags, dont_inherit=True)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            # These imports hold for all that follows, which is compiled apart.
            for each in statement.names:
                flags |= getattr(__future__, each.name).compiler_flag
        try:
            exec(code, values)
        except TransformistError as refusal:
            names = _defined(statement)
            if not names:
                raise refusal.with_remedy(f"(raised by {raised_at(refusal)})") from None
            values |= dict.fromkeys(names, _Refused(refusal))


def _defined(statement: ast.stmt) -> list[str]:
    r"""The names of a function, or of what an assignment sets, where these are plain names.

    Example:
        >>> [_defined(each) for each in ast.parse("def f(): pass\na = b = f()\na.x = 1").body]
        [['f'], ['a', 'b'], []]

    """
    if isinstance(statement, ast.FunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    return names if len(names) == len(targets) else []
