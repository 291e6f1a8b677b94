"""Repair the header, the indexes, an interrupted transaction or single rows of a database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes_doctor.core.message import count
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import progress
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine.soundness import integrity_errors
from hermes_doctor.sqlite.header import MAGIC, PAGE_SIZES
from hermes_doctor.sqlite.repairs.work import delete_schema_rows, open_copy, transaction
from hermes_doctor.sqlite.schema import DANGLING_CONVERSATIONS, UNREADABLE_RESPONSES

_KINDS = (b"\x05", b"\x0d")
"""Valid types of the first page: interior or leaf page of a table."""


def write_magic(copy: Path) -> list[str]:
    """Write the 16 magic bytes at the start, and nothing else."""
    with copy.open("r+b") as file:
        file.write(MAGIC)
    return ["Its first 16 bytes were restored; every row is kept."]


def rewrite_header(copy: Path) -> list[str]:
    """Write a new header: correct the fixed fields, count the pages, and find the page size.

    The page size is the first that SQLite accepts. The freelist is dropped, because only the
    header pointed to it; VACUUM then frees these pages.
    """
    size = copy.stat().st_size
    with copy.open("rb") as file:
        head = file.read(108)
    if len(head) < 108 or head[100:101] not in _KINDS:
        raise CannotFix("its first page is lost, not only the header")
    stored = int.from_bytes(head[16:18], "big")
    likely = 65536 if stored == 1 else stored
    for page_size in sorted(PAGE_SIZES, key=lambda one: (one != likely, one != 4096, one)):
        if size % page_size or not 0 < size // page_size < 2**32:
            continue
        for reserved in sorted({head[20], 0}, key=lambda one: one != head[20]):
            with copy.open("r+b") as file:
                file.write(_header(head, page_size, size // page_size, reserved))
            try:
                return _agreed(copy)
            except CannotFix:
                continue
    raise CannotFix("SQLite cannot open it with any header")


def _header(head: bytes, page_size: int, pages: int, reserved: int) -> bytes:
    """A header for these pages that keeps the plausible counters of the old one."""
    new = bytearray(head[:100])
    new[:16] = MAGIC
    new[16:18] = (1 if page_size == 65536 else page_size).to_bytes(2, "big")
    new[18:20] = head[18:20] if set(head[18:20]) <= {1, 2} else b"\x02\x02"
    new[20] = reserved
    new[21:24] = bytes([64, 32, 32])
    new[28:32] = pages.to_bytes(4, "big")
    new[32:40] = bytes(8)
    if int.from_bytes(head[44:48], "big") not in (1, 2, 3, 4):
        new[44:48] = (4).to_bytes(4, "big")
    new[48:56] = bytes(8)
    new[56:60] = (1).to_bytes(4, "big")
    new[64:68] = bytes(4)
    new[72:92] = bytes(20)
    new[92:96] = new[24:28]  # SQLite uses the page count only if these two are equal
    return bytes(new)


def _agreed(copy: Path) -> list[str]:
    with open_copy(copy) as connection:
        left = integrity_errors(connection)
        if left and all(
            "never used" in sentence for line in left for sentence in line.splitlines()[1:]
        ):
            connection.execute("VACUUM")
            left = integrity_errors(connection)
        if left:
            raise CannotFix("more than its header is damaged")
    return ["The header was written again."]


_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index' AND typeof(name) = 'text'"


def reindex(copy: Path) -> list[str]:
    """Rebuild every index; pages that the damage had orphaned are freed."""
    with open_copy(copy) as connection:
        names = [row[0] for row in connection.execute(_INDEXES)]
        for place, name in enumerate(names):
            progress.report("rebuilding its indexes", place / len(names))
            connection.execute(f"REINDEX {quote_name(name)}")
        progress.report("letting SQLite check every page")
        left = integrity_errors(connection)
        if left:
            connection.execute("VACUUM")  # "page is never used": the damage had orphaned it
            left = integrity_errors(connection)
        if left:
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(names)} indexes were rebuilt from the rows."]


def compact(copy: Path) -> list[str]:
    """Compact the database with VACUUM, which removes unused pages."""
    before = copy.stat().st_size
    with open_copy(copy) as connection:
        connection.execute("VACUUM")
    saved = before - copy.stat().st_size
    return [f"{saved / 1024**2:.0f} MB of unused pages were removed."]


def remake(copy: Path) -> list[str]:
    """Delete indexes that are too damaged for REINDEX from the schema, and create them again."""
    with open_copy(copy) as connection:
        declared = connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND typeof(sql) = 'text'"
        ).fetchall()
    delete_schema_rows(copy, "type = 'index' AND sql IS NOT NULL", [])
    with open_copy(copy) as connection:
        connection.execute("VACUUM")  # frees their pages, which no index owns now
        connection.execute("REINDEX")
        for (sql,) in declared:
            connection.execute(sql)
        if integrity_errors(connection):
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(declared)} indexes were declared again and rebuilt from the rows."]


def roll_back(copy: Path) -> list[str]:
    """Open the copy with its journal, so that SQLite plays the journal back."""
    journal = copy.with_name(copy.name + "-journal")
    if snapshot(journal).kind != "file":
        raise CannotFix("the journal is missing")
    with open_copy(copy) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if snapshot(journal).kind != "absent":
        raise CannotFix("SQLite did not roll the transaction back")
    return ["The unfinished transaction was undone."]


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
        # Give the column its default back; otherwise every new message would be NULL again.
        new = "active_by_default"
        connection.execute(f"ALTER TABLE messages ADD COLUMN {new} INTEGER NOT NULL DEFAULT 1")
        connection.execute(f"UPDATE messages SET {new} = active WHERE active <> 1")
        connection.execute("ALTER TABLE messages DROP COLUMN active")
        connection.execute(f"ALTER TABLE messages RENAME COLUMN {new} TO active")
    for _, _, sql in resting:
        connection.execute(sql)
    return f"{done.rowcount} messages were marked active again." if done.rowcount else None


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
    sessions = count(changed, "session")
    what = f"{sessions} got a number after the title, because others had the same."
    return what if changed else None


def _drop_broken_settings(connection: sqlite3.Connection) -> str | None:
    """Delete settings of sessions that are not JSON, because they break the list of sessions."""
    done = connection.execute(
        "UPDATE sessions SET model_config = NULL "
        "WHERE typeof(model_config) = 'blob' OR NOT json_valid(model_config)"
    )
    sessions = count(done.rowcount, "session")
    return f"The settings of {sessions} were not valid JSON." if done.rowcount else None


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
        unreadable, dangling = (
            connection.execute(f"DELETE FROM {table} WHERE {condition}").rowcount
            for table, condition in (
                ("responses", UNREADABLE_RESPONSES),
                ("conversations", DANGLING_CONVERSATIONS),
            )
        )
    return [
        f"{unreadable} responses that cannot be read were removed, "
        f"and {dangling} conversations whose response is missing."
    ]
