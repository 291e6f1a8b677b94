"""SQLite's verdict on a database at rest that nobody else uses, by two processes at once.

`quick_check` is all of `integrity_check` but for what the indexes hold against their tables, and
that is asked table by table. Of a large database it is left out: it takes longer than the copy,
and an index that lacks a row costs no row. SQLite maps the file, and a disk that fails kills
whoever reads a map: so each is a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.system.files import MEGABYTE
from hermes_doctor.system.workers import Child, child

Question = Callable[[sqlite3.Connection], bool]
LARGE = 256 * MEGABYTE
MAPPED = 32 * MEGABYTE
"""What SQLite may map of a file; pages that are mapped count as memory of the process."""
OK, DAMAGED = "ok", "damaged"
OTHER_RELEASE = "malformed inverted index for FTS5"
"""Newer versions of SQLite report it for an index that an older one wrote; no row is damaged."""
_BY_TABLE = (3, 33)
"""The first SQLite that can be asked about one table."""


@contextmanager
def judged(path: Path) -> Iterator[Callable[[], str]]:
    """Have a database examined meanwhile; what is given waits for the verdict.

    It is `ok`, `damaged`, or SQLite's name for why it could not go on.
    """
    questions: tuple[Question, ...] = (_structure, _indexes)
    if os.stat(path).st_size > LARGE:
        questions = (_structure,)
    elif sqlite3.sqlite_version_info < _BY_TABLE:
        questions = (_everything,)
    with ExitStack() as stack:
        judges = [stack.enter_context(_judge(path, question)) for question in questions]

        def verdict() -> str:
            said = [judge.hear()[1] for judge in judges]
            return next((one for one in said if one != OK), OK)

        yield verdict


def _judge(path: Path, question: Question) -> AbstractContextManager[Child]:
    return child(path, lambda _: _asked(path, question))


def address(path: Path, more: str = "") -> str:
    """The address of a database for reading only, whatever bytes its name is made of."""
    return f"file:{quote(os.fsencode(path))}?mode=ro{more}"


def _asked(path: Path, question: Question) -> str:
    try:
        with contextlib.closing(sqlite3.connect(address(path, "&immutable=1"), uri=True)) as here:
            here.execute(f"PRAGMA mmap_size={MAPPED}")
            return OK if question(here) else DAMAGED
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return name_of(error)


def verdict_of(database: sqlite3.Connection) -> str:
    """What SQLite says of the structure of a database that is open already."""
    try:
        return OK if _structure(database) else DAMAGED
    except sqlite3.Error as error:
        return name_of(error)


def _everything(database: sqlite3.Connection) -> bool:
    return _sound(database, "integrity_check(3)")


def _structure(database: sqlite3.Connection) -> bool:
    return _sound(database, "quick_check(3)")


def _indexes(database: sqlite3.Connection) -> bool:
    tables = "SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'index'"
    names = [str(name).replace('"', '""') for (name,) in database.execute(tables).fetchall()]
    return all(_sound(database, f'integrity_check("{name}")') for name in names)


def _sound(database: sqlite3.Connection, check: str) -> bool:
    return [row[0] for row in database.execute(f"PRAGMA {check}")] == [OK]
