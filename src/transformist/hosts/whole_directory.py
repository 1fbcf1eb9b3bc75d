"""Directories that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from transformist.errors import InvalidValue


def require_free(
    target: Path, names: frozenset[str], where: str, *, force: bool, held: str = "checkpoint"
) -> None:
    """Require a directory that is absent or empty; with `force`, also one with an earlier export.

    Args:
        target: the directory.
        names: the names of files that `force` may replace.
        where: the function that needs it.
        force: true if an earlier export may be replaced.
        held: the thing that the directory will hold, in words.

    Raises:
        InvalidValue: for a file, a directory with other contents, and one that holds the working
            directory.

    """
    # Only an attempt shows permissions, quotas and disks that are read only.
    with _unwritable_refused(target, where, held):
        place, made = _places(target)
        made.mkdir()
        made.rmdir()
        if not place.exists():
            return
    if not target.is_dir():
        raise InvalidValue(
            f"the place of a {held} must be a directory",
            received=f"{target}, a file",
            where=where,
            remedy="give the name of a new directory",
        )
    # A directory is replaced whole: a process that works in it would be left in one that is gone.
    with _unwritable_refused(target, where, held):
        is_working_directory = Path.cwd().is_relative_to(place)
    if is_working_directory:
        raise InvalidValue(
            f"the directory of a {held} must not be or hold the working directory",
            received=f"{target}",
            where=where,
            remedy="give the name of a new directory, such as model",
        )
    found = {each.name for each in target.iterdir()}
    others = sorted(found - names)
    # A directory is replaced whole: with files of other kinds in it, `force` would delete these.
    if others or (found and not force):
        first = others[0] if others else min(found)
        raise InvalidValue(
            f"the directory of a {held} must be empty"
            + (", or hold an earlier export alone" if force else ""),
            received=f"{target}, which holds {first}",
            where=where,
            remedy="give the name of a new directory"
            if others
            else "give the name of a new directory, or force (--force) to replace the export",
        )


def replace_directory(
    target: Path, files: Mapping[str, bytes], where: str, held: str = "checkpoint"
) -> None:
    """Put a directory of files in its place, whole or not at all; names may have directories.

    Raises:
        InvalidValue: for a place that cannot be written to, or a full disk.

    """
    with _unwritable_refused(target, where, held):
        place, made = _places(target)
        try:
            made.mkdir()
            for name, data in files.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                with (made / name).open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
            _exchange(made, place)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _exchange(made: Path, place: Path) -> None:
    """Rename a directory to its place; what was there comes back if that fails."""
    old = made.with_suffix(".old")
    try:
        if place.exists():
            place.rename(old)
        made.rename(place)
    except BaseException:
        if old.exists() and not place.exists():
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _places(target: Path) -> tuple[Path, Path]:
    """The target of a path, and a new name beside it."""
    place = target.resolve()
    return place, place.with_name(f".{secrets.token_hex(8)}.part")


@contextmanager
def _unwritable_refused(target: Path, where: str, held: str) -> Iterator[None]:
    """Refuse a path at which writing fails."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidValue(
            f"a {held} must be a directory in a writable directory",
            received=f"{target} ({getattr(error, 'strerror', None) or error})",
            where=where,
            remedy="give the name of a new directory",
        ) from None
