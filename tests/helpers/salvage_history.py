"""A small message history like that of Hermes, and assertions about the result of a salvage."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from hermes_doctor.sqlite import schema
from hermes_doctor.sqlite.blueprint import Blueprint, TableBlueprint
from hermes_doctor.sqlite.salvage.account import SalvageResult
from hermes_doctor.sqlite.salvage.older_copies import OlderFile
from hermes_doctor.sqlite.salvage.run import salvage

TEXT = "COALESCE({0}.content, '') || ' ' || COALESCE({0}.tool_name, '') || ' ' || " \
    "COALESCE({0}.tool_calls, '')"  # fmt: skip


def _triggers(name: str) -> list[str]:
    fill = f"INSERT INTO {name}(rowid, content) VALUES (\n new.id,\n {TEXT.format('new')}\n);"
    gone = f"DELETE FROM {name} WHERE rowid = old.id;"
    return [
        f"CREATE TRIGGER {name}_insert AFTER INSERT ON messages BEGIN {fill} END",
        f"CREATE TRIGGER {name}_delete AFTER DELETE ON messages BEGIN {gone} END",
        f"CREATE TRIGGER {name}_update AFTER UPDATE ON messages BEGIN {gone} {fill} END",
    ]


SCHEMA = [
    "CREATE TABLE schema_version (version INTEGER NOT NULL)",
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model_config TEXT, "
    "parent_session_id TEXT, started_at REAL NOT NULL, message_count INTEGER DEFAULT 0, "
    "title TEXT, FOREIGN KEY (parent_session_id) REFERENCES sessions(id))",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT, "
    "tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, "
    "finish_reason TEXT, active INTEGER NOT NULL DEFAULT 1)",
    "CREATE TABLE state_meta (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE INDEX idx_messages_session ON messages(session_id, timestamp)",
    "CREATE INDEX idx_sessions_started ON sessions(started_at DESC)",
    "CREATE UNIQUE INDEX idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL",
    "CREATE VIRTUAL TABLE messages_fts USING fts5(content)",
    *_triggers("messages_fts"),
    "CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, tokenize='trigram')",
    *_triggers("messages_fts_trigram"),
]


def history(path: Path, messages: int = 300, *, page_size: int = 4096) -> Path:
    """Create a database with sessions, messages of all kinds, and deleted rows."""
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefghij", k=6)) for _ in range(300)]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(f"PRAGMA page_size={page_size}")
        database.execute("PRAGMA secure_delete=OFF")  # so that deleted rows stay on free pages
        for statement in SCHEMA:
            database.execute(statement)
        database.execute("INSERT INTO schema_version VALUES (22)")
        database.execute("BEGIN")
        sessions = max(4, messages // 20)
        for number in range(sessions):
            database.execute(
                "INSERT INTO sessions (id, source, model_config, started_at, title) "
                "VALUES (?, 'cli', ?, ?, ?)",
                (f"s{number:04d}", '{"a": 1}', 1.76e9 + number, f"title {number}"),
            )
        for number in range(messages):
            long = 6000 if number % 17 == 0 else 80
            text = " ".join(chance.choices(words, k=long // 7))
            if number % 23 == 0:
                text = '\0json:[{"type": "text", "text": "' + text + '"}]'
            tool = number % 3 == 0
            calls = '[{"id": "call"}]' if number % 5 == 0 else None
            database.execute(
                "INSERT INTO messages (session_id, role, content, tool_name, tool_calls, "
                "timestamp) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    f"s{number % sessions:04d}",
                    "tool" if tool else "user",
                    text,
                    "terminal" if tool else None,
                    calls,
                    1.76e9 + number / 7,
                ),
            )
        database.execute("INSERT INTO state_meta VALUES ('a key', 'a value')")
        database.execute("COMMIT")
        database.execute("DELETE FROM messages WHERE id BETWEEN 41 AND 90")
        database.execute("DELETE FROM messages WHERE session_id = 's0001'")
        database.execute("DELETE FROM sessions WHERE id = 's0001'")
    return path


def blueprint(folder: Path) -> Blueprint:
    """Return the schema of this history as an atlas would describe it."""
    fresh = folder / "fresh.db"
    if not fresh.exists():
        with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as database:
            for statement in SCHEMA:
                database.execute(statement)
            database.execute("INSERT INTO schema_version VALUES (22)")
    return blueprint_of(fresh)


def blueprint_of(path: Path) -> Blueprint:
    """Return the schema of a database as an atlas would describe it."""
    found = schema.read(path)
    tables = {
        name: TableBlueprint(name, sql, tuple(found.tables[name].values()))
        for name, sql in found.declarations.items()
    }
    indexes = {name: sql for name, sql in found.indexes.items() if sql}
    return Blueprint(path.name, "", tables, found.virtual, indexes, found.triggers, found.version)


def rows(path: Path, table: str, key: str = "rowid") -> dict[Any, tuple[Any, ...]]:
    """Return all rows of a table by key, with columns in the order of their names."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        db.text_factory = bytes
        names = sorted(row[1].decode() for row in db.execute(f"PRAGMA table_info({table})"))
        found = db.execute(f"SELECT {key}, {', '.join(names)} FROM {table}").fetchall()
    return {row[0]: row[1:] for row in found}


def saved(
    sick: Path, folder: Path, plan: Blueprint | None = None, others: tuple[OlderFile, ...] = ()
) -> tuple[Path, SalvageResult]:
    """Salvage a database, and assert that the result has this schema and passes SQLite's checks."""
    target = folder / "saved.db"
    target.unlink(missing_ok=True)
    plan = plan or blueprint(folder)
    before = {path: path.read_bytes() for path in sick.parent.glob(sick.name + "*")}
    account = salvage(sick, target, plan, older_copies=others)
    assert {path: path.read_bytes() for path in sick.parent.glob(sick.name + "*")} == before
    assert [path.name for path in folder.glob("saved.db*")] == ["saved.db"]
    with contextlib.closing(sqlite3.connect(target)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert not database.execute("PRAGMA foreign_key_check").fetchall()
        names = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        wanted = {*plan.tables, *plan.virtual, *plan.indexes, *plan.triggers}
        lazy = {name for name, table in plan.tables.items() if table.created_on_demand}
        lazy |= {name for name, table in plan.table_of.items() if table in lazy}
        assert wanted - lazy <= names
        for table in plan.virtual:
            database.execute(f"INSERT INTO {table}({table}) VALUES('integrity-check')")
            settings = database.execute(f"SELECT k FROM {table}_config").fetchall()
            assert settings == [("version",)], "as Hermes makes it"
    return target, account


def page_of(path: Path, table: str, kind: str) -> list[int]:
    """Return the page numbers of a table: leaf, internal or overflow."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        found = db.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY pageno",
            (table, kind),
        )
        return [row[0] for row in found]


def on_leaf(path: Path, table: str, place: int) -> set[int]:
    """Return the rowids on the leaf at this position in the table's order."""
    from hermes_doctor.sqlite.salvage import image, layouts, survey, trees

    with image.open_image(path) as pages:
        seen = survey.Survey(pages)
        tree = trees.walk_table(seen, layouts.read_catalog(seen).root(table))
        return set(seen.rowids(tree.leaves[place].page))


def zero(path: Path, *numbers: int, page_size: int = 4096) -> None:
    """Zero pages."""
    with path.open("r+b") as file:
        for number in numbers:
            file.seek((number - 1) * page_size)
            file.write(bytes(page_size))


def copy(source: Path, target: Path) -> Path:
    """Create a copy to damage."""
    shutil.copyfile(source, target)
    return target
