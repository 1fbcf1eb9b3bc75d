"""Arrays that a kernel finds by their addresses, kept in a record.

Any number of arrays is then one argument of a kernel. An array as an argument of its own takes
0.05 µs to unpack, and a model has some dozens; a token takes 1 to 2 µs in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from transformist.engines.structured.kernel import kernel_alone_part
from transformist.errors import BrokenInvariant

ARRAY = np.dtype([(name, np.int64) for name in ("address", "length", "width")], align=True)
"""The address of an array, and its length in the first and last dimension."""


def described(array: NDArray[Any]) -> tuple[int, int, int]:
    """The `ARRAY` of an array that is contiguous in memory.

    The caller must keep the array as long as the address is used.

    Raises:
        BrokenInvariant: for an array that is not contiguous.

    Example:
        >>> described(np.zeros((2, 5)))[1:], described(np.zeros(4))[1:]
        ((2, 5), (4, 1))
        >>> described(np.zeros((2, 5))[:, :2])
        Traceback (most recent call last):
        ...
        transformist.errors.BrokenInvariant: addresses: an array must be contiguous; received an \
        array of shape (2, 2) with gaps; please report it, with what was asked

    """
    if not array.flags.c_contiguous:
        raise BrokenInvariant(
            "an array must be contiguous",
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
def at_address(address: int, shape: Any, dtype: Any) -> Any:
    """The array that begins at an address."""
    return carray(_pointer(address), shape, dtype)


@kernel_alone_part
def vector(array: Any, dtype: Any) -> Any:
    """The array of one dimension that an `ARRAY` describes."""
    return at_address(array.address, (array.length,), dtype)


@kernel_alone_part
def matrix(array: Any, dtype: Any) -> Any:
    """The array of two dimensions that an `ARRAY` describes."""
    return at_address(array.address, (array.length, array.width), dtype)


@kernel_alone_part
def pairs(array: Any) -> Any:
    """The array (length, 2, width) of float64 that an `ARRAY` describes."""
    return at_address(array.address, (array.length, 2, array.width), np.float64)
