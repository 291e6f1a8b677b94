"""Read complete messages and sessions from a write-ahead log without its database file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_doctor.core.message import count
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import MEGABYTE, open_regular, size
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.pages import Value
from hermes_doctor.sqlite.salvage import layouts, row_fit
from hermes_doctor.sqlite.salvage.assign_pages import TablePages, assign_leaves
from hermes_doctor.sqlite.salvage.image import DamagedFile
from hermes_doctor.sqlite.salvage.row_fit import ColumnMapping
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.saved_rows import (
    MESSAGE_COLUMNS,
    Ask as Ask,
    messages_with_ids,
    saved_message,
    sessions_among,
)

LARGEST = 128 * MEGABYTE
"""The largest log in bytes that is read; its rows are kept in memory."""
SESSIONS, MESSAGES = "sessions", "messages"
_PLAIN = (type(None), int, float, str, bytes)
Record = dict[str, Value]


@dataclass
class LogRows:
    """The rows of a message history that a write-ahead log contains."""

    sessions: dict[str, Record] = field(default_factory=dict)
    messages: dict[int, Record] = field(default_factory=dict)
    partial: int = 0
    """Rows that continue on pages which the log does not have."""


@dataclass
class OnlyInLog(LogRows):
    """The rows of a log that a database lacks, and how many of its rows cannot be added."""

    duplicate_ids: int = 0
    """Messages whose id another message of the database has."""
    orphaned: int = 0
    """Rows that refer to a session which is in neither file."""

    @property
    def any(self) -> bool:
        """Whether any row can be added."""
        return bool(self.sessions or self.messages)

    @property
    def counted(self) -> str:
        """The rows that can be added, as words."""
        messages = count(len(self.messages), "message")
        return f"{messages} and {count(len(self.sessions), 'session')}"

    def left_out(self) -> list[str]:
        """A sentence for each kind of row that cannot be added."""
        sentences = []
        if self.duplicate_ids:
            what = count(self.duplicate_ids, "message")
            sentences.append(f"{what} of the log cannot be added: state.db uses the same numbers.")
        if self.orphaned:
            what = count(self.orphaned, "row")
            sentences.append(f"{what} of the log cannot be added: the session is in neither file.")
        if self.partial:
            what = count(self.partial, "row")
            sentences.append(f"{what} of the log cannot be added: the log has only a part.")
        return sentences


def read(log: Path, plan: Blueprint) -> LogRows:
    """Read every complete session and message in a log; raise CannotFix if it is too large."""
    fd, nothing = open_regular(log), os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(fd).st_size
        if length > LARGEST:
            raise CannotFix("its write-ahead log is too large to read ({size})", size=size(length))
        survey = Survey(DamagedFile(nothing, fd, None))
        forest = assign_leaves(survey, layouts.read_catalog(survey), plan)
        rows = LogRows()
        for table in (SESSIONS, MESSAGES):
            if stand := forest.tables.get(table):
                _collect(rows, table, _records(rows, survey, stand))
        return rows
    finally:
        os.close(fd)
        os.close(nothing)


def _records(rows: LogRows, survey: Survey, stand: TablePages) -> Iterator[Record]:
    """The complete rows of a table; freed pages are skipped."""
    shape = ColumnMapping(stand.layout, stand.layout)
    for leaf in stand.tree.leaves:
        if leaf.page in stand.freed_leaves:
            continue
        for row in survey.rows(leaf.page):
            if not row_fit.fits(stand.layout, row):
                continue
            made_up = shape.made_up
            values = shape.values(row)
            whole = row.whole and not row.bad_overflow and shape.made_up == made_up
            if whole and all(type(value) in _PLAIN for value in values):
                record = dict(zip(shape.columns, values, strict=True))
                record.pop("rowid", None)
                yield record
            else:
                rows.partial += 1


def _collect(rows: LogRows, table: str, records: Iterable[Record]) -> None:
    """Store each row by its key; drop rows that the log has in two versions."""
    kept: dict[Any, Record] = {}
    twice: set[Any] = set()
    for record in records:
        key = record.get("id")
        if kept.setdefault(key, record) != record:
            twice.add(key)
    for key in twice:
        del kept[key]
    rows.partial += len(twice)
    if table == SESSIONS:
        rows.sessions = {id: record for id, record in kept.items() if isinstance(id, str)}
    else:
        rows.messages = {id: record for id, record in kept.items() if isinstance(id, int)}


def find_only_in_log(rows: LogRows, ask: Ask) -> OnlyInLog:
    """Find the rows of a log that a database lacks and that can be added without replacing any."""
    only = OnlyInLog(partial=rows.partial)
    there = sessions_among(rows.sessions, ask)
    new = {key: record for key, record in rows.sessions.items() if key not in there}
    parents = {
        record["parent_session_id"] for record in new.values() if record.get("parent_session_id")
    }
    there |= sessions_among([parent for parent in parents if isinstance(parent, str)], ask)
    only.sessions = _with_parents(new, there)
    only.orphaned += len(new) - len(only.sessions)
    messages = {}
    known = messages_with_ids(sorted(rows.messages), ask)
    for key, message in sorted(rows.messages.items()):
        if key not in known:
            messages[key] = message
        elif known[key] != saved_message([message.get(name) for name in MESSAGE_COLUMNS]):
            only.duplicate_ids += 1
    homes = {message.get("session_id") for message in messages.values()}
    reached = sessions_among([home for home in homes if isinstance(home, str)], ask)
    reached |= only.sessions.keys()
    only.messages = {
        key: record for key, record in messages.items() if record.get("session_id") in reached
    }
    only.orphaned += len(messages) - len(only.messages)
    return only


def _with_parents(new: dict[str, Record], there: set[str]) -> dict[str, Record]:
    """The sessions whose parent exists or is added with them."""
    while True:
        kept = {
            key: session
            for key, session in new.items()
            if not (parent := session.get("parent_session_id")) or parent in there or parent in new
        }
        if len(kept) == len(new):
            return kept
        new = kept
