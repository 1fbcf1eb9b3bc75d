"""Putting constructions together: pure functions from models to models."""

from transformist.assembly.composition import move, parallel, serial, split_heads
from transformist.assembly.heads import attend, soften, tie_break
from transformist.assembly.networks import (
    beside,
    cancel_residual,
    postcompose,
    precompose,
    units,
)
from transformist.assembly.routing import between, route

__all__ = [
    "attend",
    "beside",
    "between",
    "cancel_residual",
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
]
