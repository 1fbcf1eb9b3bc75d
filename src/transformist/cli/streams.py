"""Standard streams whose reader has gone."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO, Any


def drop(stream: IO[Any]) -> None:
    """Redirect a stream to the null device, so that later writes to it cannot fail."""
    with suppress(OSError, ValueError):  # it is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
