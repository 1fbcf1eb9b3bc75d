"""Compilation of kernels to machine code, once, kept on disk beside the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function to machine code.

    numba compiles anew when the file of a kernel changes, but not when a kernel that it calls
    changes in another file: then remove `__pycache__` (an installation writes all files anew). The
    code is kept beside the source, or in a directory of the user; where neither can be written to,
    every process compiles.
    """
    return _compiled(function, nogil=True)


def kernel_part(function: F) -> F:
    """Compile a function like `kernel`, and put it in the place of its calls."""
    return _compiled(function, nogil=True, forceinline=True)


def kernel_alone(function: F) -> F:
    """Compile a function like `kernel`; it holds the GIL, so memory read by address stays valid."""
    return _compiled(function, nogil=False, _nrt=True)


def kernel_alone_part(function: F) -> F:
    """Compile a part of `kernel_alone`, which may view memory at addresses as arrays."""
    return _compiled(function, nogil=False, _nrt=True, forceinline=True)


# Sums keep their order, and no product is fused with a sum, as `fastmath` is off: results are those
# of the reference, bit for bit.
#
# In inner loops indices are unsigned (`np.uint64(at)`): for a signed index numba tests each time if
# it counts from the end, which may take as long as all else.
#
# A kernel makes no arrays (`_nrt=False`). Its arguments stay with its caller, so references to them
# are not counted, which would take longer than most of the work.
def _compiled(function: F, **options: Any) -> F:
    options = {"error_model": "numpy", "_nrt": False, **options}
    compiled: Any
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no directory for it
        compiled = numba.njit(**options)(function)
    return compiled  # type: ignore[no-any-return]
