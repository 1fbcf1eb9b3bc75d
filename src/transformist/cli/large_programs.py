"""Warnings before work on a large alphabet or on many weights, with the time that it takes."""

from __future__ import annotations

import math

from transformist.cli.printing import warn
from transformist.model import Transformer

LARGE_ALPHABET, LARGE_MODEL = 5_000, 1_000_000
"""Symbols, and weights that are not 0, beyond which a command says how long it will take."""

SECONDS = (0.0004, 4e-7), (0.0016, 1.6e-6)
"""Seconds of the processor for a symbol, and for a pair of symbols: least and most.

With a slot for each symbol, matrices have an entry for each pair of symbols, so time grows with the
square. A shift by 2 over 1,000, 2,000 and 4,000 symbols compiles in 0.6, 1.8 and 7.5 s, and is
certified in 2.2, 2.5 and 9.5 s. The larger numbers leave a factor of four for programs that read
their input more often.
"""


def warn_of_symbols(symbols: int, work: str, after: str) -> None:
    """Say how long work on a large alphabet takes.

    Args:
        symbols: the size of the alphabet.
        work: what is done.
        after: what Ctrl-C does.

    """
    if symbols > LARGE_ALPHABET:
        warn(f"{symbols:,} symbols: {work} takes {_duration(symbols)}; Ctrl-C {after}")


def warn_of_weights(model: Transformer, after: str) -> None:
    """Say that a proof from many weights takes long; `after` is what Ctrl-C does."""
    if model.nonzero > LARGE_MODEL:
        warn(f"{model.nonzero:,} weights: certifying may take minutes; Ctrl-C {after}")


def _duration(symbols: int) -> str:
    """Seconds of the processor for an alphabet of this size, in words."""
    least, most = (math.ceil(symbols * one + symbols**2 * pair) for one, pair in SECONDS)
    return f"about {least} s" if least == most else f"about {least} to {most} s"
