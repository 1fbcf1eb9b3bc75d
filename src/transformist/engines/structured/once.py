"""Properties that are computed at their first use, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - it is used as property is
    """A `functools.cached_property` without a lock.

    Before Python 3.12 `cached_property` has one lock for all objects: threads wait for each other
    while a value is computed, and a process that is forked meanwhile waits for ever.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__
        self._name = compute.__name__
        self.__isabstractmethod__ = getattr(compute, "__isabstractmethod__", False)

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        """Compute the value; it takes the place of the property in this object."""
        if owner is None:
            return self  # type: ignore[return-value]
        value = owner.__dict__[self._name] = self._compute(owner)
        return value
