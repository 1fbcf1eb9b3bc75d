"""Libraries of the optional extras, imported when a host needs them."""

from __future__ import annotations

import importlib
from typing import Any

from transformist.errors import InvalidValue


class MissingLibrary(InvalidValue):
    """Refusal of work that needs a library which is not installed."""


def optional(module: str, extra: str, where: str) -> Any:
    """Import a module that needs the library of an extra.

    Args:
        module: the name of the module.
        extra: the extra of `transformist` that installs the library.
        where: the function that needs it.

    Raises:
        MissingLibrary: if the library is not installed, with the command that installs it.

    Example:
        >>> optional("math", "torch", "to_torch").floor(2.5)
        2
        >>> optional("no_such_library", "torch", "to_torch")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        transformist.hosts.optional_library.MissingLibrary: to_torch: no_such_library ...

    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("transformist"):
            raise
        raise MissingLibrary(
            f"{error.name} must be installed",
            received="an environment without it",
            where=where,
            remedy=f"run: pip install 'transformist[{extra}]'",
        ) from None
