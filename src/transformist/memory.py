"""How much memory the machine can still give."""

from __future__ import annotations

from pathlib import Path


def free_memory() -> int:
    """Bytes that the machine can still give, as Linux says; 2⁶² where nothing says it.

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
