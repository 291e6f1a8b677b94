"""Create databases like those of Hermes, and damage them in various ways."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.sqlite import pages, schema
from hermes_doctor.sqlite.examine.damage import find_owners
from tests.helpers import support

PAGE = 4096


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a connection in autocommit mode, and close it at the end."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def history(path: Path, messages: int = 600, version: str | None = None) -> Path:
    """Create a state.db with long and short messages, some of them deleted again."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return support.remembered(path, _history, messages, version)


def _history(path: Path, messages: int, version: str | None) -> None:
    support.made("state.db", path, version).close()
    with opened(path) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("BEGIN")
        for n in range(40):
            db.execute(
                "INSERT INTO sessions (id, source, model_config, title, started_at) "
                "VALUES (?, 'cli', '{}', ?, ?)",
                (f"s{n}", f"title {n}", n),
            )
        for n in range(messages):
            add(db, n)
        db.execute("COMMIT")
        db.execute(f"DELETE FROM messages WHERE id BETWEEN {messages - 60} AND {messages - 40}")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def add(db: sqlite3.Connection, number: int) -> None:
    """Add one message; every twentieth is longer than a page."""
    text = f"message number {number} " * (400 if number % 20 == 0 else 8)
    db.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
        (f"s{number % 40}", text, float(number)),
    )


def add_many(db: sqlite3.Connection, start: int, number: int, at_once: int) -> None:
    """Add messages, so many in one transaction: a long log takes time wherever it is read."""
    for first in range(start, start + number, at_once):
        db.execute("BEGIN")
        for n in range(first, min(first + at_once, start + number)):
            add(db, n)
        db.execute("COMMIT")


def with_log(
    path: Path, rows: int = 30, *, at_once: int = 5, index: bool = True, then: str = ""
) -> Path:
    """Add messages that are in the write-ahead log only, as a killed process leaves them."""
    beside = path.with_name("writing.db")
    shutil.copy(path, beside)
    with opened(beside) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        add_many(db, 10_000, rows, at_once)
        db.execute(then or "SELECT 1")
        for suffix in ("", "-wal", "-shm") if index else ("", "-wal"):
            shutil.copy(f"{beside}{suffix}", f"{path}{suffix}")
    beside.unlink()
    return path


def cut_off_transaction(path: Path, *statements: str, mode: str = "DELETE") -> Path:
    """Create a database as left by a process killed in the middle of a transaction."""
    beside = Path(shutil.copy(path, path.with_name("writing.db")))
    with opened(beside) as db:
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("PRAGMA cache_size=5")
        db.execute("BEGIN IMMEDIATE")
        for statement in statements:
            db.execute(statement)
        for suffix in ("", "-journal"):
            shutil.copy(f"{beside}{suffix}", f"{path}{suffix}")
        db.execute("ROLLBACK")
    beside.unlink()
    return path


def sound(path: Path) -> bool:
    """Return SQLite's verdict on the file alone."""
    address = f"file:{path}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
        return bool(db.execute("PRAGMA integrity_check").fetchall() == [("ok",)])


MANY = "UPDATE messages SET content = replace(content, 'e', 'o')"
"""Changes most pages: half of the change is a damaged database."""
LONG = "UPDATE sessions SET system_prompt = replace(hex(zeroblob(1500)), '0', 'e')"
QUIET = "UPDATE sessions SET system_prompt = replace(system_prompt, 'e', 'f')"
"""A change after `LONG` that moves nothing: half of the change is an intact database."""


def log_with_a_broken_index(path: Path) -> Path:
    """Create a write-ahead log with rows of which an index lacks every seventh."""
    with_log(path, index=False)
    name = "idx_messages_session"
    whole = f"CREATE INDEX {name} ON messages(session_id, timestamp)"
    beside = path.with_name("writing.db")
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{beside}{suffix}")
    change = f"UPDATE sqlite_master SET sql = ? WHERE name = '{name}'"
    with opened(beside) as first, opened(beside) as db:
        first.execute("PRAGMA wal_autocheckpoint=0")
        first.execute("PRAGMA writable_schema=ON")
        first.execute(change, (whole + " WHERE id % 7 <> 0",))
        first.execute("PRAGMA schema_version=5000")
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute(f"REINDEX {name}")
        db.execute("PRAGMA writable_schema=ON")
        db.execute(change, (whole,))
        db.execute("PRAGMA schema_version=5001")
        for suffix in ("", "-wal"):
            shutil.copy(f"{beside}{suffix}", f"{path}{suffix}")
    beside.unlink()
    return path


# -- where data is stored --------------------------------------------------------------------------


def owned(path: Path, name: str) -> list[int]:
    """Return the pages of a table or an index."""
    with pages.open_pages(path) as book:
        found = find_owners(book, schema.read_catalog(book).trees, seconds=60)
    assert not found.bad
    return sorted(page for page, owner in found.pages.items() if owner == name)


def kind(path: Path, page: int) -> int:
    """Return the first byte of a page."""
    with path.open("rb") as file:
        file.seek((page - 1) * PAGE)
        return file.read(1)[0]


def kind_pages(path: Path, wanted: int) -> list[int]:
    """Return all pages of a kind, by their first byte."""
    return [n for n in range(2, path.stat().st_size // PAGE + 1) if kind(path, n) == wanted]


def leaves(path: Path, name: str) -> list[int]:
    """Return the leaf pages of a tree."""
    return [page for page in owned(path, name) if kind(path, page) in (0x0A, 0x0D)]


def write(path: Path, data: bytes, at: int) -> None:
    """Overwrite some bytes."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def zero(path: Path, *numbers: int) -> None:
    """Overwrite whole pages with zeros."""
    for number in numbers:
        write(path, bytes(PAGE), (number - 1) * PAGE)


def settle(path: Path) -> None:
    """Checkpoint the write-ahead log, and remove the files next to the database."""
    with opened(path) as db, contextlib.suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def surgery(path: Path, *statements: str) -> None:
    """Change the schema directly, bypassing SQLite's checks."""
    with opened(path) as db:
        db.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            db.execute(statement)
    settle(path)


def execute(path: Path, *statements: str) -> None:
    """Change rows."""
    with opened(path) as db:
        for statement in statements:
            db.execute(statement)
    settle(path)


# -- faults ----------------------------------------------------------------------------------------


def rows_zeroed(path: Path) -> None:
    """Zero two pages with messages."""
    zero(path, *leaves(path, "messages")[1:3])


def root_zeroed(path: Path) -> None:
    """Zero the root page of the messages."""
    with opened(path) as db:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        (root,) = db.execute(sql).fetchone()
    settle(path)
    zero(path, root)


def chain_cut(path: Path) -> None:
    """Let a long message continue in a page that does not exist."""
    long = [page for page in owned(path, "messages") if kind(path, page) == 0]
    write(path, struct.pack(">I", 0x7FFFFFFF), (long[0] - 1) * PAGE)


def table_lost(path: Path) -> None:
    """Remove the messages from the schema, but not what depends on them."""
    surgery(path, "DELETE FROM sqlite_master WHERE name = 'messages'")


def declaration_spoilt(path: Path) -> None:
    """Replace a declaration by invalid SQL."""
    surgery(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'CREATE TABLE', 'CREATE TXBLE') "
        "WHERE name = 'sessions'",
    )


def schema_doubled(path: Path) -> None:
    """Declare one table twice in the schema."""
    surgery(
        path,
        "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = 'messages_fts'",
    )


def tail_overwritten(path: Path) -> None:
    """Overwrite the last fifth of the file with a log of another program."""
    size = path.stat().st_size
    write(path, b"2026-01-01 INFO heartbeat\n" * (size // 5 // 26), size - size // 5)


def freelist_lost(path: Path) -> None:
    """Let the freelist point outside the file."""
    write(path, struct.pack(">I", 0x00ABCDEF), 32)


def cut_off(path: Path) -> None:
    """Remove the last third of the file."""
    os.truncate(path, path.stat().st_size // PAGE * 2 // 3 * PAGE)


def cut_uneven(path: Path) -> None:
    """Truncate the file within a page."""
    os.truncate(path, path.stat().st_size - 1234)


def index_zeroed(path: Path) -> None:
    """Zero a page of an index."""
    zero(path, leaves(path, "idx_messages_session")[0])


def index_lacks_rows(path: Path) -> None:
    """Build the index for fewer rows than there are."""
    name = "idx_messages_session"
    whole = "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)"
    for sql in (f"{whole} WHERE id % 7 <> 0", whole):
        surgery(path, f"UPDATE sqlite_master SET sql = '{sql}' WHERE name = '{name}'")
        if sql != whole:
            execute(path, f"REINDEX {name}")


def value_changed(path: Path) -> None:
    """Change the session of a row, but not in the indexes."""
    page = leaves(path, "messages")[0]
    at = path.read_bytes().index(b"s1", (page - 1) * PAGE)
    assert at < page * PAGE
    write(path, b"q1", at)


def search_terms_gone(path: Path) -> None:
    """Empty the term index of the search index."""
    execute(path, "DELETE FROM messages_fts_idx")


def search_format_gone(path: Path) -> None:
    """Remove the format version of the search index."""
    execute(path, "DELETE FROM messages_fts_trigram_config")


def search_zeroed(path: Path) -> None:
    """Zero a page of the search index."""
    zero(path, leaves(path, "messages_fts_trigram_data")[0])


def search_structure(path: Path) -> None:
    """Overwrite the structure record of the search index with garbage."""
    execute(path, "UPDATE messages_fts_data SET block = x'00000000ffff' WHERE id = 10")


def search_structure_gone(path: Path) -> None:
    """Remove the structure record of the search index."""
    execute(path, "DELETE FROM messages_fts_data WHERE id = 10")


def search_segment_gone(path: Path) -> None:
    """Remove a segment of the search index."""
    execute(path, "DELETE FROM messages_fts_data WHERE id > 1000")


def search_table_gone(path: Path) -> None:
    """Remove one of the tables behind the search index."""
    surgery(path, "DELETE FROM sqlite_master WHERE name = 'messages_fts_docsize'")


def search_lacks_rows(path: Path) -> None:
    """Remove some messages from the search index."""
    execute(path, "DELETE FROM messages_fts WHERE rowid % 50 = 0")


Fault = Callable[[Path], None]
ROWS: tuple[Fault, ...] = (
    rows_zeroed,
    root_zeroed,
    chain_cut,
    table_lost,
    declaration_spoilt,
    schema_doubled,
    tail_overwritten,
    freelist_lost,
)
CUT: tuple[Fault, ...] = (cut_off, cut_uneven)
INDEX: tuple[Fault, ...] = (index_zeroed, index_lacks_rows)
SEARCH: tuple[Fault, ...] = (
    search_zeroed,
    search_structure,
    search_structure_gone,
    search_segment_gone,
    search_table_gone,
    search_lacks_rows,
    search_terms_gone,
    search_format_gone,
)
CODES: dict[Fault, str] = {
    **dict.fromkeys(ROWS, "DB-MALFORMED"),
    **dict.fromkeys(CUT, "DB-TRUNCATED"),
    **dict.fromkeys(INDEX, "DB-INDEX"),
    **dict.fromkeys(SEARCH, "DB-FTS-CORRUPT"),
}
"""The code of each fault."""


def called(fault: Fault) -> str:
    """Return the name of a fault, for test ids."""
    return fault.__name__


# -- the write-ahead log of another version of the file --------------------------------------------


def another_life(path: Path, *, before: int = 400, after: int = 40, until: str = "") -> Path:
    """Leave the file and write-ahead log of a killed writer that continued a copy of it.

    The writer adds `before` messages, checkpoints and restarts its log, then adds `after` messages.
    The counters in its page 1 still fit the database at `path`. Everything is in the returned
    folder; nothing at `path` is changed.
    """
    folder = path.parent / "another"
    folder.mkdir()
    other = Path(shutil.copy(path, folder / "writing.db"))
    with opened(other) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        add_many(db, 5_000, before, at_once=40)
        db.execute("UPDATE sessions SET started_at = 1700000000 + rowid")
        db.execute("PRAGMA wal_checkpoint(RESTART)")
        db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('other', 'cli', 1.7e9)")
        add_many(db, 6_000, after, at_once=8)
        db.execute("UPDATE messages SET session_id = 'other' WHERE id % 2 AND timestamp > 6019")
        db.execute(until or "SELECT 1")
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{other}{suffix}", folder / f"state.db{suffix}")
    for left in folder.glob("writing.db*"):
        left.unlink()
    return folder


def foreign_log(path: Path, **life: Any) -> Path:
    """Leave the write-ahead log of another version next to a snapshot of a database."""
    folder = another_life(path, **life)
    for suffix in ("-wal", "-shm"):
        shutil.move(folder / f"state.db{suffix}", f"{path}{suffix}")
    shutil.rmtree(folder)
    return path


VACUUMED = ("log of a vacuumed life", "log of a smaller life", "vacuumed file")


def vacuumed_life(path: Path, which: str) -> Path:
    """Combine a file with the log of another version, one of the two vacuumed."""
    adds = 40
    log_life: tuple[str, ...] = ()
    if which == "log of a vacuumed life":
        log_life = ("DELETE FROM messages WHERE id % 3 = 0", "VACUUM")
    elif which == "log of a smaller life":
        log_life, adds = ("DELETE FROM messages WHERE id > 60", "VACUUM"), 10
    folder = path.parent / "another"
    folder.mkdir()
    other = Path(shutil.copy(path, folder / "writing.db"))
    with opened(other) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        for statement in log_life:
            db.execute(statement)
        if log_life:
            db.execute("PRAGMA wal_checkpoint(RESTART)")
        for n in range(adds):
            add(db, 6_000 + n)
        kept = {suffix: Path(f"{other}{suffix}").read_bytes() for suffix in ("-wal", "-shm")}
    shutil.rmtree(folder)
    if which == "vacuumed file":
        with opened(path) as db:
            for n in range(300):
                add(db, 5_000 + n)
            db.execute("DELETE FROM messages WHERE id < 200")
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix, data in kept.items():
        Path(f"{path}{suffix}").write_bytes(data)
    return path
