"""Arrays that a kernel finds by their addresses, in a table of whole numbers.

An array takes three numbers: its address, and how long it is in its first and last dimension. So
any number of arrays is one argument of a kernel, where each argument of its own takes time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from transformist.engines.structured.kernel import kernel_alone_part
from transformist.errors import BrokenInvariant

FIELD = 3
"""How many numbers an array takes."""


def described(array: NDArray[Any]) -> tuple[int, int, int]:
    """The numbers for an array whose entries are one after the other in memory.

    Whoever keeps them keeps the array, or they lead to nothing.

    Raises:
        BrokenInvariant: for an array with gaps.

    Example:
        >>> described(np.zeros((2, 5)))[1:], described(np.zeros(4))[1:]
        ((2, 5), (4, 1))
        >>> described(np.zeros((2, 5))[:, :2])
        Traceback (most recent call last):
        ...
        transformist.errors.BrokenInvariant: addresses: entries are one after the other; received \
        an array of shape (2, 2) with gaps; please report it, with what was asked

    """
    if not array.flags.c_contiguous:
        raise BrokenInvariant(
            "entries are one after the other",
            received=f"an array of shape {array.shape} with gaps",
            where="addresses",
        )
    columns = array.shape[-1] if array.ndim > 1 else 1
    return array.__array_interface__["data"][0], array.shape[0], columns


def _typed(_context: Any, _address: Any) -> Any:
    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), code


_pointer: Any = intrinsic(_typed)


@kernel_alone_part
def vector(table: Any, at: int, dtype: Any) -> Any:
    """The array of one dimension that is described at a place of the table."""
    return carray(_pointer(table[at]), (table[at + 1],), dtype)


@kernel_alone_part
def matrix(table: Any, at: int, dtype: Any) -> Any:
    """The array of two dimensions that is described at a place of the table."""
    return carray(_pointer(table[at]), (table[at + 1], table[at + 2]), dtype)


@kernel_alone_part
def pairs(table: Any, at: int) -> Any:
    """The array (rows, 2, columns) of float64 that is described at a place of the table."""
    return carray(_pointer(table[at]), (table[at + 1], 2, table[at + 2]), np.float64)
