"""How kernels are compiled: to machine code, once, and kept on disk beside the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """`function` in machine code; sums keep their order, and no product is fused with a sum.

    In inner loops places are unsigned numbers (`np.uint64(at)`): of a signed one numba asks each
    time whether it is counted from the end, which may take as long as all else.

    It makes no arrays: its arguments stay with its caller, so that references to them need not be
    counted, which takes longer than most of what it does.

    numba compiles anew when the file of a kernel changes; when one that it calls changes in another
    file, remove `__pycache__` (an installation writes all files anew). It keeps the code beside the
    source, or in a directory of the user; where neither can be written to, every process compiles.
    """
    return _compiled(function, nogil=True)


def kernel_part(function: F) -> F:
    """As `kernel`, put in the place of its calls."""
    return _compiled(function, nogil=True, forceinline=True)


def kernel_alone(function: F) -> F:
    """As `kernel`, while other threads of Python wait: what it reads by address stays there."""
    return _compiled(function, nogil=False, _nrt=True)


def kernel_alone_part(function: F) -> F:
    """A part of `kernel_alone`, put in the place of its calls; it may make arrays of addresses."""
    return _compiled(function, nogil=False, _nrt=True, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    options = {"error_model": "numpy", "_nrt": False, **options}
    compiled: Any
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no directory for it
        compiled = numba.njit(**options)(function)
    return compiled  # type: ignore[no-any-return]
