"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from transformist.errors import InvalidValue


def path_of(given: Any, where: str) -> Path:
    """Return the path that a user gives.

    Raises:
        InvalidValue: for a value that is not a path.

    """
    try:
        return Path(given)
    except TypeError:
        raise InvalidValue(
            "a path must be a string or a pathlib.Path",
            received=f"{given!r:.60}, a {type(given).__name__}",
            where=where,
            remedy='give one such as "model.safetensors"',
        ) from None


def resolved(path: Path) -> Path:
    """Return the target of a path, links followed; the path itself if it has none."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return path


def replace_file(path: Path, data: bytes, where: str) -> None:
    """Put a file in its place, whole or not at all.

    Raises:
        InvalidValue: for a place that cannot be written to, or a full disk.

    """
    # A rename within one directory replaces a file in one step. It comes after fsync, so the new
    # name never refers to bytes that are not yet on the disk.
    try:
        place = _place(path)
        beside = place.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidValue(
            "a model must be saved to a file, in a writable directory",
            received=f"{path} ({getattr(error, 'strerror', None) or error})",
            where=where,
            remedy="give the path of a new file, or of one to replace",
        ) from None


def _place(path: Path) -> Path:
    """The target of a path after links are followed: an existing file or an unused name."""
    place = path.resolve()
    if place.exists() and not place.is_file():
        raise OSError("not a file")
    return place
