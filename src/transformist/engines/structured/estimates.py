"""Upper estimates of the memory that an input takes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from transformist.arithmetic import Floating
from transformist.engines.structured.stream_vectors import BLOCK
from transformist.memory import beyond_memory, free_memory
from transformist.model import (
    Attention,
    Heads,
    LanguageModel,
    MultiClass,
    Outputs,
    PositionFunctions,
    ReadOut,
    RealVector,
    Transformer,
)


def require_memory(model: Transformer, n: int, a: Floating) -> None:
    """Refuse an input that would not fit in memory.

    Raises:
        InputTooLarge: with the estimate.

    """
    added, each = len(model.embedding.front) + len(model.embedding.back), bytes_a_row(model, a)
    needed, free = (n + added + BLOCK) * each + ROOM, free_memory()
    if needed > free:
        longest = max((free - ROOM) // each - BLOCK - added, 0)
        received = f"length {n}, which takes {needed / 2**30:.1f} GiB"
        raise beyond_memory(free, received, "structured engine", longest)


# The scores of a block with few queries: BLOCK · FEW = 2¹³ · 2⁹ numbers of 8 bytes = 2²⁵.
ROOM = 2**25
"""Bytes for the scores of a block of rows with few queries or keys."""

# A hull takes the most: turned queries and points (32), their numbers (8), x, y, places and masses
# of the stack (32), and the copies that sorting makes; the rest is reserve.
WORKING = 32 * 8
"""Bytes for each position beside queries, keys and values."""

COPIES = 2
"""Copies of the stream: before a sublayer, and after it."""

NUMBERED = 8
"""Bytes for each position that a sublayer may leave: the number of a vector in two parts."""

# A Python float takes 24 bytes and a pointer to it 8; an entry of a mapping about 100 more.
ANSWERS: Mapping[type[ReadOut], int] = {LanguageModel: 128, Outputs: 240, RealVector: 40}
"""Bytes for each number of an answer at every position; other read-outs give shared objects."""


def bytes_a_row(model: Transformer, a: Floating) -> int:
    """Upper estimate of the memory for a position: the stream, and the largest sublayer."""
    most, count, varying = _of_read_out(model, a), 0, _moved_by_positions(model)
    for layer in model.layers:
        for _, sublayer in layer.sublayers():
            written = sublayer.function.written
            own = 3 * len(written) * a.dtype.itemsize
            if isinstance(sublayer.function, Heads):
                own += max((_of_head(head, a) for head in sublayer.function.heads), default=0)
            if sublayer.post_norm is not None:
                own += 2 * model.width * a.dtype.itemsize
            if sublayer.pre_norm is not None:
                own += sublayer.pre_norm.width_out * a.dtype.itemsize
            most, count = max(most, own), count + 1
            everywhere = sublayer.post_norm is not None
            varying |= set(range(model.width) if everywhere else written)
    if model.final_norm is not None:
        varying = set(range(model.width))
        most += (model.width + model.final_norm.width_out) * a.dtype.itemsize
    return COPIES * len(varying) * a.dtype.itemsize + most + NUMBERED * (count + 1) + WORKING


def _of_head(head: Attention, a: Floating) -> int:
    """Bytes for queries, keys, values, mixed values, and sums of values in float64."""
    d_key, d_value = len(head.W_K), len(head.W_V)
    return 2 * (d_key + d_value) * a.dtype.itemsize + 8 * d_value


def _of_read_out(model: Transformer, a: Floating) -> int:
    """Bytes for the numbers that are read out at every position, and for the answers."""
    read_out = model.read_out
    if not read_out.reads_several:
        return 0
    if isinstance(read_out, MultiClass):  # labels are compared for some vectors at a time
        read = np.count_nonzero(read_out.rounded(a).W_out.any(axis=0))
        return int(read) * a.dtype.itemsize + 64
    numbers = len(read_out.W_out)
    return numbers * (2 * a.dtype.itemsize + ANSWERS.get(type(read_out), 0)) + 64


def _moved_by_positions(model: Transformer) -> set[int]:
    """The coordinates in which the vector of a position varies."""
    positions = model.embedding.positions
    if isinstance(positions, PositionFunctions):
        return {at for at, name in enumerate(positions.names) if name not in (None, "1")}
    return set() if positions is None else set(range(model.width))
