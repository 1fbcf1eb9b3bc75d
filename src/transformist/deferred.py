"""Names of a package, and libraries, that are imported when they are first asked for."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all that is here
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def handed_on(
    package: str, rooms: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: names, each from its room, and the rooms.

    Args:
        package: its name.
        rooms: where each name is, below the package.

    Raises:
        AttributeError: by the first, for a name that is neither.

    Example:
        >>> import transformist
        >>> found, listed = handed_on("transformist", {"Range": "laws"})
        >>> found("Range").__module__, "laws" in listed()
        ('transformist.laws', True)

    """

    def found(name: str) -> Any:
        if name in rooms:
            value = getattr(importlib.import_module(f"{package}.{rooms[name]}"), name)
            vars(sys.modules[package])[name] = value
            return value
        try:
            if not name.startswith("_"):
                return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *rooms, *rooms.values()})

    return found, listed


class Library:
    """A library that is imported when the first of its names is asked for.

    Example:
        >>> Library("math").floor(2.5)
        2

    """

    def __init__(self, name: str) -> None:
        self._library = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._library), name)
        vars(self)[name] = value
        return value
