"""Read complete messages and sessions from a write-ahead log without its database file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_doctor.message import count, text
from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.salvage import catalog as catalogs, row_fit
from hermes_doctor.sqlite.salvage.image import DamagedFile
from hermes_doctor.sqlite.salvage.page_owners import TablePages
from hermes_doctor.sqlite.salvage.run import SalvageRun
from hermes_doctor.sqlite.salvage.shape import ColumnMapping
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.table_rows import Value
from hermes_doctor.system.files import MEGABYTE, open_regular, size

LARGEST = 128 * MEGABYTE
"""The largest log in bytes that is read; its rows are kept in memory."""
SESSIONS, MESSAGES = "sessions", "messages"
_PLAIN = (type(None), int, float, str, bytes)
_CHUNK = 200
Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Runs one query on the database that the rows are compared with."""
Record = dict[str, Value]


@dataclass
class LogRows:
    """The rows of a message history that a write-ahead log contains."""

    sessions: dict[str, Record] = field(default_factory=dict)
    messages: dict[int, Record] = field(default_factory=dict)
    partial: int = 0
    """Rows that continue on pages which the log does not have."""


@dataclass
class OnlyInLog:
    """The rows of a log that a database lacks, and those that cannot be added to it."""

    sessions: dict[str, Record] = field(default_factory=dict)
    messages: dict[int, Record] = field(default_factory=dict)
    duplicate_ids: int = 0
    """Messages whose id another message of the database has."""
    orphaned: int = 0
    """Rows that refer to a session which is in neither file."""
    partial: int = 0

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
        said = []
        if self.duplicate_ids:
            what = count(self.duplicate_ids, "message")
            said.append(f"{what} of the log cannot be added: state.db uses the same numbers.")
        if self.orphaned:
            what = count(self.orphaned, "row")
            said.append(f"{what} of the log cannot be added: the session is in neither file.")
        if self.partial:
            what = count(self.partial, "row")
            said.append(f"{what} of the log cannot be added: the log has only a part.")
        return said


def read(log: Path, plan: Blueprint) -> LogRows:
    """Read every complete session and message in a log; raise CannotFix if it is too large."""
    fd, nothing = open_regular(log), os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(fd).st_size
        if length > LARGEST:
            raise CannotFix(
                text("its write-ahead log is too large to read ({size})", size=size(length))
            )
        survey = Survey(DamagedFile(nothing, fd, None))
        forest = SalvageRun(log, log, plan, (), None).assign_leaves(survey, catalogs.read(survey))
        found = LogRows()
        for table in (SESSIONS, MESSAGES):
            if stand := forest.tables.get(table):
                _collect(found, table, _records(found, survey, stand))
        return found
    finally:
        os.close(fd)
        os.close(nothing)


def _records(found: LogRows, survey: Survey, stand: TablePages) -> Iterator[Record]:
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
                found.partial += 1


def _collect(found: LogRows, table: str, records: Iterable[Record]) -> None:
    """Store each row by its key; drop rows that the log has in two versions."""
    kept: dict[Any, Record] = {}
    twice: set[Any] = set()
    for record in records:
        key = record.get("id")
        if kept.setdefault(key, record) != record:
            twice.add(key)
    for key in twice:
        del kept[key]
    found.partial += len(twice)
    if table == SESSIONS:
        found.sessions = {key: one for key, one in kept.items() if isinstance(key, str)}
    else:
        found.messages = {key: one for key, one in kept.items() if isinstance(key, int)}


def find_only_in_log(rows: LogRows, ask: Ask) -> OnlyInLog:
    """Find the rows of a log that a database lacks and that can be added without replacing any."""
    only = OnlyInLog(partial=rows.partial)
    there = _sessions(rows.sessions, ask)
    new = {key: one for key, one in rows.sessions.items() if key not in there}
    parents = {one["parent_session_id"] for one in new.values() if one.get("parent_session_id")}
    there |= _sessions([one for one in parents if isinstance(one, str)], ask)
    only.sessions = _with_parents(new, there)
    only.orphaned += len(new) - len(only.sessions)
    messages = {}
    for chunk in _chunks(sorted(rows.messages)):
        listed = ", ".join(map(str, chunk))
        sql = f"SELECT id, session_id, role, timestamp FROM messages WHERE id IN ({listed})"
        known = {row[0]: tuple(row[1:]) for row in ask(sql)}
        for key in chunk:
            one = rows.messages[key]
            if key not in known:
                messages[key] = one
            elif known[key] != (one.get("session_id"), one.get("role"), one.get("timestamp")):
                only.duplicate_ids += 1
    homes = {one.get("session_id") for one in messages.values()}
    reached = _sessions([one for one in homes if isinstance(one, str)], ask) | set(only.sessions)
    only.messages = {key: one for key, one in messages.items() if one.get("session_id") in reached}
    only.orphaned += len(messages) - len(only.messages)
    return only


def _with_parents(new: dict[str, Record], there: set[str]) -> dict[str, Record]:
    """The sessions whose parent exists or is added with them."""
    while True:
        kept = {
            key: one
            for key, one in new.items()
            if not (parent := one.get("parent_session_id")) or parent in there or parent in new
        }
        if len(kept) == len(new):
            return kept
        new = kept


def _sessions(keys: Iterable[str], ask: Ask) -> set[str]:
    """The sessions among `keys` that the database has."""
    found: set[str] = set()
    for chunk in _chunks(sorted(keys)):
        listed = ", ".join(
            f"CAST(x'{key.encode('utf-8', 'replace').hex()}' AS TEXT)" for key in chunk
        )
        found |= {str(row[0]) for row in ask(f"SELECT id FROM sessions WHERE id IN ({listed})")}
    return found


def _chunks(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]
