"""Refusals of calls with wrong arguments, which name the line of the user's file."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from transformist.language.places import refusal

Kind = TypeVar("Kind", bound=type)


def with_checked_calls(kind: Kind) -> Kind:
    """Make the public methods of a class refuse arguments that they do not take.

    Python's own exception names neither the line nor the arguments.

    Example:
        >>> @with_checked_calls
        ... class Cell:
        ...     def where(self, x, y):
        ...         return x
        >>> try:
        ...     Cell().where(1)
        ... except ValueError as refusal:
        ...     print(refusal.invariant)
        where must be called as where(x, y)

    """
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, _checked(method))
    return kind


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    # Shown without self and without annotations, as a user would write the call.
    signature = inspect.signature(method)
    taken = [each.replace(annotation=each.empty) for each in signature.parameters.values()][1:]
    shown = signature.replace(parameters=taken, return_annotation=signature.empty)
    named = [each.name for each in taken if each.kind is each.KEYWORD_ONLY]

    @functools.wraps(method)
    def called(*given: Any, **by_name: Any) -> Any:
        try:
            signature.bind(*given, **by_name)
        except TypeError as error:
            came = str(error).removeprefix("got ").replace("missing a", "a call without a")
            by = f", {' and '.join(f'{each}=…' for each in named)} by name" if named else ""
            raise refusal(
                f"{method.__name__} must be called as {method.__name__}{shown}",
                received=came,
                remedy=f"give these arguments{by}" if taken else "leave the arguments out",
            ) from None
        return method(*given, **by_name)

    return called
