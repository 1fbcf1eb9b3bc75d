"""Free memory of the machine, and the refusal of an input that needs more."""

from __future__ import annotations

from pathlib import Path

from transformist.errors import InputTooLarge


def free_memory() -> int:
    """Return the free memory in bytes, as Linux reports it; 2⁶² on other systems.

    Example:
        >>> free_memory() > 0
        True

    """
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 2**62


def beyond_memory(free: int, received: str, where: str, most: int) -> InputTooLarge:
    """Make the refusal of an input that needs more memory than is free.

    Args:
        free: bytes.
        received: the length that came, and the memory that it needs.
        where: the engine.
        most: the longest input that fits.

    Example:
        >>> print(beyond_memory(2**30, "length 9, which takes 2.0 GiB", "reference engine", 4))
        reference engine: an input must fit in the memory that is free, 1.0 GiB; received \
        length 9, which takes 2.0 GiB; give at most 4 symbols

    """
    return InputTooLarge(
        f"an input must fit in the memory that is free, {free / 2**30:.1f} GiB",
        received=received,
        where=where,
        remedy=f"give at most {most} symbols",
    )
