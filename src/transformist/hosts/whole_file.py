"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
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


def require_writable(path: Path, where: str) -> None:
    """Require a place that a file can be written to, before the work on its contents.

    Raises:
        InvalidValue: for a place that cannot be written to.

    """
    # Only an attempt shows permissions, quotas and disks that are read only.
    with _unwritable_refused(path, where):
        _, beside = _places(path)
        try:
            beside.touch(exist_ok=False)
        finally:
            beside.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes, where: str) -> None:
    """Put a file in its place, whole or not at all.

    Raises:
        InvalidValue: for a place that cannot be written to, or a full disk.

    """
    # A rename within one directory replaces a file in one step. It comes after fsync, so the new
    # name never refers to bytes that are not yet on the disk.
    with _unwritable_refused(path, where):
        place, beside = _places(path)
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def _unwritable_refused(path: Path, where: str) -> Iterator[None]:
    """Refuse a path at which writing fails."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidValue(
            "the output must be a file in a writable directory",
            received=f"{path} ({getattr(error, 'strerror', None) or error})",
            where=where,
            remedy="give the path of a new file, or of one to replace",
        ) from None


def _places(path: Path) -> tuple[Path, Path]:
    """The target of a path, an existing file or an unused name, and a new name beside it."""
    place = path.resolve()
    if place.exists() and not place.is_file():
        raise OSError("not a file")
    return place, place.with_name(f".{secrets.token_hex(8)}.part")
