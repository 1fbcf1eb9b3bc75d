"""The digest of a model, by which a certificate names it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformist.model import Transformer


def digest(model: Transformer) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of a model's arguments, weights as exact numbers.

    Example:
        >>> import transformist as tf
        >>> models = [tf.recipe("dyck-1").build(max_length=n) for n in (8, 8, 9)]
        >>> [digest(each) == digest(models[0]) for each in models]
        [True, True, False]

    """
    return hashlib.sha256("\n".join(_written(model)).encode()).hexdigest()[:32]


def _written(value: Any) -> Iterator[str]:
    if isinstance(value, np.ndarray):
        yield f"{value.shape}"
        if value.size:
            yield _numbers(value.ravel())
    elif isinstance(value, tuple):
        yield f"{len(value)}"
        for each in value:
            yield from _written(each)
    elif is_dataclass(value):
        yield type(value).__name__
        for field in fields(value):
            if field.init:
                yield field.name
                yield from _written(getattr(value, field.name))
    else:
        kind = str if isinstance(value, str) else type(value)  # a mask is its name
        yield f"{kind.__name__} {value!r}"


def _numbers(flat: NDArray[Any]) -> str:
    """Return a line for every number, in order; the lines of a run of zeros are made at once."""
    used = np.flatnonzero(flat)
    lines, zero, end = [], "0/1\n", 0
    for place, x in zip(used.tolist(), flat[used].tolist(), strict=True):
        # The exact value: 1, 1.0 and Fraction(1) are one weight.
        p, q = x.as_integer_ratio()
        lines.append(f"{zero * (place - end)}{p:x}/{q:x}\n")
        end = place + 1
    lines.append(zero * (flat.size - end))
    return "".join(lines)[:-1]
