"""Journals: files of SQLite that record the finished pieces of a check.

A piece is recorded in a transaction of its own once it is finished. So a journal is whole after
Ctrl-C, after `kill -9` and after a loss of power, and has no piece twice. The process that runs a
check keeps the lock of the file, which the operating system gives back when the process ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from transformist.errors import InvalidValue, TransformistError, UnreadableInput
from transformist.verify.runs.pieces import Place

APPLICATION_ID = 0x7466_6A31
"""The application's number in the header of the file: "tfj1" in ASCII."""

TABLES = """
CREATE TABLE run (what TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE piece (
    name TEXT PRIMARY KEY, cases INTEGER NOT NULL, wrong_length INTEGER, wrong_place TEXT
);
"""
"""Tables of a journal.

`wrong_place` is a text because a place among the strings of a length may be too large for an
integer of SQLite.
"""

SMALLEST = 512
"""Bytes of the smallest database: one page of the smallest size."""

Recorded = tuple[int, Place | None]
"""The number of strings that a piece compared, and the place of the first wrong one."""


class Journal:
    """The finished pieces of one check.

    Attributes:
        finished: the record of each piece, by its name.

    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection
        rows = connection.execute("SELECT name, cases, wrong_length, wrong_place FROM piece")
        self.finished: dict[str, Recorded] = {
            name: (cases, None if place is None else _place(length, place))
            for name, cases, length, place in rows
        }

    def record(self, name: str, cases: int, place: Place | None) -> None:
        """Record a finished piece.

        Raises:
            UnreadableInput: where the file can no longer be written.

        """
        length, wrong = (None, None) if place is None else (place[1], f"{place[0]} {place[2]}")
        with _refusals(self._path), self._connection:
            row = (name, cases, length, wrong)
            self._connection.execute("INSERT INTO piece VALUES (?, ?, ?, ?)", row)
        self.finished[name] = cases, place


def _place(length: int, recorded: str) -> Place:
    kind, _, number = recorded.partition(" ")
    return int(kind), length, int(number)


@contextmanager
def opened(path: Path, run: Mapping[str, str]) -> Iterator[Journal]:
    """Open the journal of a run, or begin one.

    Args:
        path: the file; it is made where there is none.
        run: the values that the pieces depend on, by name, such as the fingerprint of the model.

    Raises:
        InvalidValue: for the journal of another run; nothing is changed in it.
        UnreadableInput: for a file that is no journal, is truncated, or is in use; and at the end
            for one that was removed or emptied in between.

    """
    with _refusals(path):
        # A whole path: SQLite has no file for the name ":memory:".
        connection = sqlite3.connect(path.absolute(), timeout=0, isolation_level="IMMEDIATE")
        try:
            _lock(path, connection)
            _begin_or_compare(path, connection, run)
            journal = Journal(path, connection)
        except BaseException:
            connection.close()
            raise
    try:
        inode = path.stat().st_ino
        yield journal
    finally:
        connection.close()
    _require_whole(path, inode)


def _require_whole(path: Path, inode: int) -> None:
    """Require the file that was opened, undamaged: SQLite writes on to a file that is removed."""
    gone = "a file removed, replaced or emptied during the check"
    if not path.exists() or path.stat().st_ino != inode:
        _refuse(path, gone, "start the check again")
    connection = sqlite3.connect(path.absolute(), timeout=0)
    try:
        _lock(path, connection)
    except (sqlite3.Error, UnreadableInput):
        _refuse(path, gone, "start the check again with another file")
    finally:
        connection.close()


def _lock(path: Path, connection: sqlite3.Connection) -> None:
    """Take the lock of the file, and keep it until the connection is closed."""
    # SQLite takes a file of a single byte for an empty one.
    if path.exists() and path.is_file() and 0 < path.stat().st_size < SMALLEST:
        _refuse(path, "which is not a journal", "name another file")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    (damage,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute("COMMIT")
    # SQLite fills a last page that was cut off with zeros, and its check may not notice. A new
    # database has a page in memory and none in its file.
    held = path.stat().st_size
    if damage != "ok" or held not in (0, pages * size):
        why = "cut off" if damage == "ok" else damage.splitlines()[-1]
        _refuse(path, f"a damaged file ({why})", "restore a copy of it, or name another file")


def _begin_or_compare(path: Path, connection: sqlite3.Connection, run: Mapping[str, str]) -> None:
    (number,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not number and not tables:
        # One transaction: a process that is killed here leaves an empty file, or a whole journal.
        statements = [each for each in TABLES.split(";") if each.strip()]
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for each in statements:
                connection.execute(each)
            connection.executemany("INSERT INTO run VALUES (?, ?)", run.items())
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        return
    if number != APPLICATION_ID:
        _refuse(path, "a file of SQLite with other contents", "name another file")
    recorded = dict(connection.execute("SELECT what, value FROM run"))
    others = [what for what in run if recorded.get(what) != run[what]]
    if others:
        what = others[0]
        raise InvalidValue(
            f"a journal must be of a check with the same {what}",
            received=f"{path}, a journal of {recorded.get(what, 'none')!s:.200} where this check "
            f"has {run[what]:.200}",
            where="check",
            remedy="name another file, or remove this one to begin again",
        )


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Turn errors of SQLite, and contents that no journal has, into refusals."""
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        if "locked" in said:
            _refuse(
                path,
                "a file that another process is using",
                "wait for the other check to end, or name another file",
            )
        if any(each in said for each in ("unable to open", "readonly", "full", "disk I/O")):
            _refuse(path, f"one that cannot be written ({said})", "name a file that can be written")
        _refuse(path, f"no journal, or one that was cut off ({said})", "name another file")
    except TransformistError:
        raise
    except ValueError as error:  # a null character in the name, or a place that is no number
        _refuse(path, f"no journal ({error})", "name another file")


def _refuse(path: Path, received: str, remedy: str) -> NoReturn:
    raise UnreadableInput(
        "a journal must be a whole file that an earlier check wrote, or a new one",
        received=f"{path}, {received}",
        where="check",
        remedy=remedy,
    ) from None
