"""What the scripts that write pages share: their data, the names in these, and the writing."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import transformist
from transformist.catalogue.finite import PRIMITIVES
from transformist.claims import COOKBOOK
from transformist.errors import InvalidValue, TransformistError

ROOT = Path(__file__).parents[1]

SOURCES = {
    "cookbook": COOKBOOK,
    "extraction": "An unpublished technical extraction of arXiv 2510.00368v1",
    "notation": "A tensor notation with reference to Bayesuvius",
    "summary": "An unpublished summary of the Cookbook with experiments",
    "primitives": PRIMITIVES,
}
"""The documents that recipes and errata refer to, in the order of the pages."""

# Data


def tables(folder: Path, heading: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables `[[heading]]` of every file of a folder, in the order of the files' names.

    Each comes after the words for where it stands: the file, and its `id` or its number there.

    Raises:
        InvalidValue: for a file that holds anything else, or nothing.

    """
    for path in sorted(folder.glob("*.toml")):
        file = f"{folder.name}/{path.name}"
        for number, table in enumerate(_list_of(path, heading, file), start=1):
            name = table.get("id") if isinstance(table, dict) else None
            named = isinstance(name, str) and name.strip()
            where = f"{file}, {name if named else f'{heading} {number}'}"
            if not isinstance(table, dict):
                raise _refusal("an entry is a table", repr(table), where, heading)
            yield where, table


def _list_of(path: Path, heading: str, where: str) -> list[Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refusal("the file is TOML", str(error), where, heading) from error
    found = data.get(heading)
    if set(data) != {heading} or not isinstance(found, list) or not found:
        received = ", ".join(f"{key} ({value!s:.40})" for key, value in data.items())
        invariant = f"the file holds tables [[{heading}]] and nothing else"
        raise _refusal(invariant, received or "an empty file", where, heading)
    return found


def _refusal(invariant: str, received: str, where: str, heading: str) -> InvalidValue:
    remedy = f"write each entry under [[{heading}]]"
    return InvalidValue(invariant, received=received, where=where, remedy=remedy)


# Names


def code(name: str) -> Path | None:
    """The file of a module of the package, or of an attribute of one, from the root of the project.

    Fields of dataclasses count as attributes; `None` for what is not there, or private.
    """
    parts = name.split(".")
    if parts[0] != "transformist" or any(part.startswith("_") for part in parts):
        return None
    module, rest = _imported(parts)
    value, home = module, module.__name__
    for part in rest:
        fields = getattr(value, "__dataclass_fields__", {})
        if not hasattr(value, part) and part not in fields:
            return None
        value = getattr(value, part, fields.get(part))
        given = getattr(value, "__module__", None)
        home = given if isinstance(given, str) and given.startswith("transformist") else home
    return file_of(home)


def _imported(parts: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """The module that the longest part of a dotted name imports, and what is left of the name."""
    module, rest = transformist, parts[1:]
    for end in range(2, len(parts) + 1):
        try:
            module, rest = importlib.import_module(".".join(parts[:end])), parts[end:]
        except ModuleNotFoundError:
            break
    return module, rest


def file_of(module: str) -> Path:
    """The file of an imported module of the package, from the root of the project."""
    package = Path(transformist.__file__).parents[1]
    return Path("src") / Path(str(sys.modules[module].__file__)).relative_to(package)


def test(name: str) -> Path | None:
    """The file of a test `tests/FILE.py::NAME`, from the root of the project; `None` for none."""
    path, _, function = name.partition("::")
    return Path(path) if function and function in _tests_of(path) else None


@functools.cache
def _tests_of(path: str) -> frozenset[str]:
    """The tests in a file, those of a class as `Class::name`."""
    if not is_file(path) or not re.fullmatch(r"tests/.*test_\w+\.py", path):
        return frozenset()
    return frozenset(_tests(ast.parse((ROOT / path).read_text("utf-8")).body))


def _tests(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}::{name}" for name in _tests(node.body))


def is_file(name: str) -> bool:
    """Whether this is a file of the project."""
    return (ROOT / name).resolve().is_relative_to(ROOT) and (ROOT / name).is_file()


# Writing


def write(path: Path, page: Callable[[], str]) -> None:
    """Write a page: all that the script of its name does when it is run."""
    if sys.argv[1:]:
        sys.exit(f"python docs/{path.stem}.py takes no arguments and writes docs/{path.name}")
    try:
        path.write_text(page(), encoding="utf-8")
    except TransformistError as refusal:
        sys.exit(str(refusal))
