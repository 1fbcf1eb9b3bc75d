"""Putting constructions together: pure functions from models to models."""

from transformist.assembly.flags import (
    add_at_flag,
    gate_by_flags,
    ignoring,
    linear_in_place,
    linear_to_the_right,
    with_flags,
    with_layers,
    with_slots,
    zero_at_flag,
)
from transformist.assembly.heads import attend, soften, tie_break
from transformist.assembly.joining import move, parallel, serial, split_heads
from transformist.assembly.maxima import keep_larger_as_printed, keep_largest
from transformist.assembly.networks import (
    beside,
    cancel_residual,
    postcompose,
    precompose,
    units,
)
from transformist.assembly.routing import between, route

__all__ = [
    "add_at_flag",
    "attend",
    "beside",
    "between",
    "cancel_residual",
    "gate_by_flags",
    "ignoring",
    "keep_larger_as_printed",
    "keep_largest",
    "linear_in_place",
    "linear_to_the_right",
    "move",
    "parallel",
    "postcompose",
    "precompose",
    "route",
    "serial",
    "soften",
    "split_heads",
    "tie_break",
    "units",
    "with_flags",
    "with_layers",
    "with_slots",
    "zero_at_flag",
]
