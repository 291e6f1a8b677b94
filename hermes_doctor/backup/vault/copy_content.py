"""Read what a copy of a database contains, without changing it: how many rows, and how new."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.core.file_copies import DatabaseCopy
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import ago, count, text
from hermes_doctor.core.model import CouldNotLook, Evidence
from hermes_doctor.core.system.files import open_regular, size
from hermes_doctor.sqlite.header import MAGIC

MOST = 12
"""How many copies are read; older ones are only counted as copies."""
SECONDS = 1.0
"""How long one copy is read."""
ALL_SECONDS = 4.0
"""How long all copies together are read; the others are only counted as copies."""
_QUESTIONS = {
    "state.db": ("SELECT count(*), max(timestamp), (SELECT count(*) FROM sessions) FROM messages"),
    "kanban.db": "SELECT count(*), max(created_at), 0 FROM tasks",
}
"""Asks for the number of rows that people miss, the time of the newest, and other rows."""


NO_COPY = (
    "No copy was found: not in the vault, in Hermes' snapshots and backups, or next to the file."
)
"""Says where copies were looked for."""
ELSEWHERE = "If you have a copy elsewhere, put it back first; the fix starts without the old data."
DAMAGED_COPY = "Its copies are damaged, too; some of their rows may be saved."


def noun(name: str) -> str:
    """What the rows of a database are called."""
    return {"state.db": "message", "kanban.db": "task"}.get(name, "row")


def copy_evidence(home: Home, name: str, copies: Sequence[DatabaseCopy]) -> list[Evidence]:
    """Where the first copies of the database `name` are, and what they contain."""
    return [
        Evidence(
            home.name_of(copy.path) + (copy.member and f":{copy.member}"), describe(name, copy)
        )
        for copy in copies[:3]
    ]


def describe(name: str, copy: DatabaseCopy) -> str:
    """What a copy of the database `name` contains, in a few words."""
    if copy.rows is None:
        what = text("copy, {size}, from {time}", size=size(copy.size), time=ago(copy.written_at))
    elif copy.newest_row is None:
        what = text("copy with {rows}", rows=count(copy.rows, noun(name)))
    else:
        what = text(
            "copy with {rows}, the newest from {time}",
            rows=count(copy.rows, noun(name)),
            time=ago(copy.written_at),
        )
    return text("{copy}, perhaps of another home", copy=what) if copy.doubtful else what


def readable_copies(name: str, copies: Sequence[DatabaseCopy]) -> list[DatabaseCopy]:
    """The copies of the database `name` that can be read, those with the newest content first.

    A member of a zip is not read here. A file that is not such a database, or that has no row, is
    left out.
    """
    kept = []
    end = time.monotonic() + ALL_SECONDS
    newest_first = sorted(copies, key=lambda copy: copy.mtime_ns, reverse=True)
    for number, copy in enumerate(newest_first):
        left = min(SECONDS, end - time.monotonic())
        if copy.member or number >= MOST or left <= 0:
            kept.append(copy)
        elif (read := with_content(name, copy, left)) and read.rows != 0:
            kept.append(read)
    return sorted(kept, key=lambda copy: copy.rank)


def starts_like_database(path: Path) -> bool:
    """Whether a file begins as a SQLite database does."""
    try:
        fd = open_regular(path, follow=False)
    except (OSError, CouldNotLook):
        return False
    try:
        return os.pread(fd, len(MAGIC), 0) == MAGIC
    finally:
        os.close(fd)


def with_content(name: str, copy: DatabaseCopy, seconds: float = SECONDS) -> DatabaseCopy | None:
    """Add what the copy contains; None if SQLite cannot read it, or if it has other tables.

    An empty one has 0 rows; for one that has only sessions the number of rows is not known.
    """
    from hermes_doctor.sqlite import query_process
    from hermes_doctor.sqlite.reader import InProcess

    if not starts_like_database(copy.path):
        return None
    question = _QUESTIONS.get(name)
    if question is None:
        return copy
    log = os.path.exists(copy.path.with_name(copy.path.name + "-wal"))
    try:
        state = query_process.LEFTOVER_LOG if log else query_process.NOT_IN_USE
        with contextlib.closing(InProcess(copy.path, state)) as reader:
            answer = reader.ask(question, seconds)
    except (CouldNotLook, OSError):
        return copy
    if answer.damaged or answer.error == "SQLITE_ERROR":
        return None
    if answer.error or not answer.rows:
        return copy
    rows, newest, others = answer.rows[0]
    rows = rows or (None if others else 0)
    # The newest row cannot be more than a day newer than the file.
    limit = copy.mtime_ns / 1e9 + 86400
    possible = isinstance(newest, int | float) and 0 < newest <= limit
    return copy._replace(rows=rows, newest_row=float(newest) if possible else None)
