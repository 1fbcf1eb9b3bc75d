"""How much memory an input takes, estimated from above."""

from __future__ import annotations

from transformist.arithmetic import Floating
from transformist.errors import InputTooLarge
from transformist.memory import free_memory
from transformist.model import Heads, PositionFunctions, Transformer


def require_memory(model: Transformer, n: int, a: Floating) -> None:
    """Refuse what would not fit in memory.

    Raises:
        InputTooLarge: with the estimate.

    """
    rows = n + len(model.embedding.front) + len(model.embedding.back)
    needed = rows * bytes_a_row(model, a)
    free = free_memory()
    if needed > free:
        raise InputTooLarge(
            f"an input is evaluated in the memory that is free, {free / 2**30:.1f} GiB",
            received=f"length {n}, which takes {needed / 2**30:.1f} GiB",
            where="structured engine",
            remedy=f"give at most {n * free // needed} symbols",
        )


WORKING = 32 * 8
"""Bytes for a position that are kept beside queries, keys and values: a hull takes the most."""

NUMBERED = 8
"""Bytes for a position that a sublayer may leave: which of few vectors it has, in two parts."""


def bytes_a_row(model: Transformer, a: Floating) -> int:
    """An upper estimate of the memory for a position: the stream, and the largest sublayer."""
    most, count, varying = 0, 0, _moved_by_positions(model)
    for layer in model.layers:
        sizes = [2 * (head.W_K.shape[0] + head.W_V.shape[0]) for head in layer.heads]
        for _, sublayer in layer.sublayers():
            own = 3 * len(sublayer.function.written)
            if isinstance(sublayer.function, Heads):
                own += max(sizes, default=0)
            if sublayer.pre_norm is not None:
                own += sublayer.pre_norm.width_out
            most, count = max(most, own), count + 1
            everywhere = sublayer.post_norm is not None
            varying |= set(range(model.width) if everywhere else sublayer.function.written)
    return (len(varying) + most) * a.dtype.itemsize + NUMBERED * (count + 1) + WORKING


def _moved_by_positions(model: Transformer) -> set[int]:
    """The coordinates in which a position adds to a symbol what varies."""
    positions = model.embedding.positions
    if isinstance(positions, PositionFunctions):
        return {at for at, name in enumerate(positions.names) if name not in (None, "1")}
    return set() if positions is None else set(range(model.width))
