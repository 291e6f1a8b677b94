"""Add rows of a write-ahead log that was set aside to the message history that lacks them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

from hermes_doctor.message import count
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.repairs import fulltext
from hermes_doctor.sqlite.repairs.work import open_copy, transaction
from hermes_doctor.sqlite.salvage import log_rows
from hermes_doctor.sqlite.salvage.log_rows import MESSAGES, SESSIONS, OnlyInLog
from hermes_doctor.sqlite.table_rows import Value
from hermes_doctor.system import progress

_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (?, ?)"


def add_log_rows(copy: Path, log: Path, plan: Blueprint) -> list[str]:
    """Add the sessions and messages whose keys are free; no other row of the database changes.

    Only the message count of their sessions is increased. The triggers that fill the search index
    are removed while rows are added and created again; then the search index is rebuilt.
    """
    progress.report("reading the rows of the log")
    try:
        rows = log_rows.read(log, plan)
    except (CouldNotLook, FileNotFoundError) as why:
        raise CannotFix(str(why)) from why
    with open_copy(copy) as database:
        only = log_rows.find_only_in_log(rows, lambda sql: database.execute(sql).fetchall())
        if not only.any:
            raise CannotFix("the database lacks no row that can be added from the log")
        with transaction(database):
            triggers = database.execute(_TRIGGERS, (SESSIONS, MESSAGES)).fetchall()
            for name, _ in triggers:
                database.execute(f"DROP TRIGGER {quote_name(name)}")
            said = _added(database, only)
            for _, sql in triggers:
                database.execute(sql)
    if plan.virtual:
        fulltext.rebuild(copy, plan)
    return said


def _added(database: sqlite3.Connection, only: OnlyInLog) -> list[str]:
    sessions = {key for key, one in only.sessions.items() if _insert(database, SESSIONS, one)}
    refused = len(only.sessions) - len(sessions)
    grown: Counter[Value] = Counter()
    messages = 0
    for one in only.messages.values():
        home = one["session_id"]
        if home in only.sessions and home not in sessions:
            refused += 1
        elif _insert(database, MESSAGES, one):
            messages += 1
            grown[home] += home not in sessions
        else:
            refused += 1
    columns = {row[1] for row in database.execute(f"PRAGMA table_info({SESSIONS})")}
    if "message_count" in columns:
        database.executemany(
            "UPDATE sessions SET message_count = message_count + ? WHERE id = ?",
            [(count, home) for home, count in grown.items() if count],
        )
    words = [
        count(messages, "message"),
        count(len(sessions), "session"),
    ]
    said = [f"{' and '.join(words)} of the log were added. No other row was changed."]
    if refused:
        said.append(
            f"{count(refused, 'row')} of the log cannot be added: "
            "a value that must be unique is in use."
        )
    return said + only.left_out()


def _insert(database: sqlite3.Connection, table: str, record: log_rows.Record) -> bool:
    """Add one row; False if one of its unique values is in use."""
    there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    names = [name for name in record if name in there]
    columns, marks = ", ".join(map(quote_name, names)), ", ".join("?" * len(names))
    try:
        database.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})", [record[name] for name in names]
        )
    except sqlite3.IntegrityError:
        return False
    return True
