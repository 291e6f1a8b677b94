"""Repair rows whose values make Hermes fail although the schema is right."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_doctor.core.message import count
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.repairs.work import open_copy, transaction
from hermes_doctor.sqlite.responses import DANGLING, UNREADABLE


def _activate(connection: sqlite3.Connection) -> str | None:
    """Mark messages active whose `active` is NULL, because Hermes treats them as missing.

    Their text does not change, so the search triggers are dropped meanwhile: SQLite does not let a
    trigger of an untrusted schema write into a virtual table.
    """
    resting = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = 'messages' "
        "AND (type = 'trigger' OR type = 'index' AND sql LIKE '%active%')"
    ).fetchall()
    for kind, name, _ in resting:
        connection.execute(f"DROP {kind} {quote_name(name)}")
    done = connection.execute("UPDATE messages SET active = 1 WHERE active IS NULL")
    columns = {row[1]: row[4] for row in connection.execute("PRAGMA table_info(messages)")}
    if columns["active"] is None:
        _activate_by_default(connection)
    for _, _, sql in resting:
        connection.execute(sql)
    return f"{done.rowcount} messages were marked active again." if done.rowcount else None


def _activate_by_default(connection: sqlite3.Connection) -> None:
    """Give the column its default back; otherwise every new message would be NULL again."""
    new = "active_by_default"
    connection.execute(f"ALTER TABLE messages ADD COLUMN {new} INTEGER NOT NULL DEFAULT 1")
    connection.execute(f"UPDATE messages SET {new} = active WHERE active <> 1")
    connection.execute("ALTER TABLE messages DROP COLUMN active")
    connection.execute(f"ALTER TABLE messages RENAME COLUMN {new} TO active")


def _distinguish_titles(connection: sqlite3.Connection) -> str | None:
    """Make titles unique: the newest session keeps the title, older ones get a number."""
    rows = connection.execute(
        "SELECT title, id FROM sessions WHERE title IN (SELECT title FROM sessions "
        "WHERE title IS NOT NULL GROUP BY title HAVING count(*) > 1) "
        "ORDER BY title, started_at DESC, rowid DESC"
    ).fetchall()
    titles = {
        t for (t,) in connection.execute("SELECT title FROM sessions WHERE title IS NOT NULL")
    }
    seen: set[str] = set()
    changed = 0
    for title, session in rows:
        if title not in seen:
            seen.add(title)
            continue
        number = 2
        while f"{title} ({number})" in titles:
            number += 1
        new = f"{title} ({number})"
        titles.add(new)
        connection.execute("UPDATE sessions SET title = ? WHERE id = ?", (new, session))
        changed += 1
    return (
        f"{count(changed, 'session')} got a number after the title, because others had the same."
        if changed
        else None
    )


def _drop_broken_settings(connection: sqlite3.Connection) -> str | None:
    """Delete settings of sessions that are not JSON, because they break the list of sessions."""
    done = connection.execute(
        "UPDATE sessions SET model_config = NULL "
        "WHERE typeof(model_config) = 'blob' OR NOT json_valid(model_config)"
    )
    return (
        f"The settings of {count(done.rowcount, 'session')} were not valid JSON."
        if done.rowcount
        else None
    )


def _number_the_version(connection: sqlite3.Connection) -> str | None:
    """Make the schema version a number or delete it; Hermes then writes its own."""
    rows = connection.execute(
        "SELECT rowid, version FROM schema_version WHERE typeof(version) != 'integer'"
    ).fetchall()
    for rowid, version in rows:
        text = str(version).strip()
        if text.isascii() and text.isdigit() and len(text) < 6:
            # Bind an integer: the column's affinity would not convert a text.
            connection.execute(
                "UPDATE schema_version SET version = ? WHERE rowid = ?", (int(text), rowid)
            )
        else:
            connection.execute("DELETE FROM schema_version WHERE rowid = ?", (rowid,))
    return "The schema's version is a number again." if rows else None


FAULTS: Mapping[str, Callable[[sqlite3.Connection], str | None]] = {
    "active": _activate,
    "titles": _distinguish_titles,
    "settings": _drop_broken_settings,
    "version": _number_the_version,
}


def correct_rows(copy: Path, fault: str) -> list[str]:
    """Repair the rows of one kind of fault."""
    with open_copy(copy) as connection, transaction(connection):
        sentence = FAULTS[fault](connection)
    return [sentence] if sentence else []


def release_tasks(copy: Path, tasks: Sequence[tuple[str, int, str]]) -> list[str]:
    """Make tasks ready again that a dead worker still holds, and end their runs.

    A running worker may have taken one over meanwhile, so process id and claim are compared.
    """
    done = 0
    with open_copy(copy) as connection, transaction(connection):
        runs = {row[1] for row in connection.execute("PRAGMA table_info(task_runs)")}
        for task, worker, lock in tasks:
            freed = connection.execute(
                "UPDATE tasks SET status = 'ready', claim_lock = NULL, claim_expires = NULL, "
                "worker_pid = NULL WHERE id = ? AND status = 'running' "
                "AND worker_pid = ? AND claim_lock = ?",
                (task, worker, lock),
            ).rowcount
            if freed and {"ended_at", "outcome"} <= runs:
                connection.execute(
                    "UPDATE task_runs SET status = 'reclaimed', outcome = 'reclaimed', "
                    "ended_at = ?, claim_lock = NULL, claim_expires = NULL, worker_pid = NULL "
                    "WHERE task_id = ? AND ended_at IS NULL",
                    (int(time.time()), task),
                )
                connection.execute("UPDATE tasks SET current_run_id = NULL WHERE id = ?", (task,))
            done += freed
    return [f"{done} tasks are ready again."] if done else []


def delete_bad_responses(copy: Path) -> list[str]:
    """Delete responses that are not readable, and conversations whose response is missing."""
    with open_copy(copy) as connection, transaction(connection):
        unreadable = connection.execute(f"DELETE FROM responses WHERE {UNREADABLE}").rowcount
        dangling = connection.execute(f"DELETE FROM conversations WHERE {DANGLING}").rowcount
    return [
        f"{unreadable} responses that cannot be read were removed, "
        f"and {dangling} conversations whose response is missing."
    ]
