"""The salvage keeps what the release does not know, and names what it cannot keep."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.sqlite.salvage.account import SalvageResult
from tests.helpers.salvage_history import copy, history, page_of, rows, saved, zero

NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000)"
THEIRS = (
    "CREATE TABLE mine_keyed (v TEXT, k TEXT, w TEXT DEFAULT 'w', PRIMARY KEY (k)) WITHOUT ROWID",
    f"{NUMBERS} INSERT INTO mine_keyed SELECT 'v' || x, 'k' || x, 'w' || x FROM n",
    "ALTER TABLE mine_keyed ADD COLUMN late TEXT DEFAULT 'later'",
    "CREATE TABLE mine_computed (a INT, b INT GENERATED ALWAYS AS (a * 2) STORED, c INT, "
    "d INT GENERATED ALWAYS AS (a * 3) VIRTUAL)",
    f"{NUMBERS} INSERT INTO mine_computed (a, c) SELECT x, -x FROM n",
    "CREATE TABLE mine_strict (a INTEGER, b TEXT) STRICT",
    "INSERT INTO mine_strict VALUES (1, 'x')",
    'CREATE TABLE "mine "" odd" (x)',
    """INSERT INTO "mine "" odd" VALUES (7)""",
    "CREATE TABLE mine_refers (a INTEGER REFERENCES messages(id), b TEXT)",
    "INSERT INTO mine_refers SELECT id, 'x' FROM messages",
    "CREATE VIRTUAL TABLE mine_fts USING fts5(t, u UNINDEXED, tokenize='porter')",
    "INSERT INTO mine_fts (rowid, t, u) SELECT id + 3, content, id FROM messages WHERE id < 300",
    "INSERT INTO mine_fts (mine_fts, rank) VALUES ('automerge', 3)",
    "CREATE VIRTUAL TABLE mine_bare USING fts5(t, content='')",
    "INSERT INTO mine_bare (rowid, t) SELECT id, content FROM messages",
    "CREATE VIRTUAL TABLE mine_over USING fts5(b, content=mine_strict)",
    "INSERT INTO mine_over (mine_over) VALUES ('rebuild')",
    "CREATE VIRTUAL TABLE mine_old USING fts4(t)",
    "INSERT INTO mine_old (t) SELECT content FROM messages WHERE id < 100",
    "CREATE VIRTUAL TABLE mine_places USING rtree(id, a, b)",
    "INSERT INTO mine_places SELECT id, id, id + 1 FROM messages",
    "CREATE INDEX mine_index ON messages(tool_name)",
    "CREATE INDEX mine_other_index ON mine_keyed(v)",
    "CREATE VIEW mine_view AS SELECT count(*) AS n FROM messages",
    "CREATE TRIGGER mine_trigger AFTER DELETE ON messages BEGIN "
    "INSERT OR IGNORE INTO mine_keyed (k, v) VALUES (old.id, 'gone'); END",
)
TABLES = (
    "mine_keyed", "mine_computed", "mine_strict", '"mine "" odd"', "mine_refers", "mine_fts",
    "mine_over", "mine_old", "mine_places", "mine_view",
)  # fmt: skip


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with much that no release knows."""
    path = history(tmp_path_factory.mktemp("theirs") / "state.db", 600)
    execute(path, *THEIRS)
    return path


def execute(path: Path, *statements: str) -> None:
    """Change a database at rest."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a database says."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute(sql).fetchall()


def objects(path: Path) -> set[tuple[Any, ...]]:
    """Everything that it declares."""
    return set(ask(path, "SELECT type, name, sql FROM sqlite_master"))


def keep(account: SalvageResult) -> dict[str, int]:
    """By table: how many rows were kept."""
    return {table.name: table.kept for table in account.tables}


@pytest.mark.sampled
@pytest.mark.parametrize("hit", ["leaf", "header", "schema leaf"])
def test_all_of_it_comes_along(theirs: Path, tmp_path: Path, hit: str) -> None:
    """Tables of every kind with every row, full text, indexes, views and triggers."""
    sick = copy(theirs, tmp_path / "state.db")
    if hit == "leaf":
        zero(sick, page_of(theirs, "messages", "leaf")[3])
    else:
        with sick.open("r+b") as file:
            file.write(bytes(100 if hit == "header" else 4096))
    target, account = saved(sick, tmp_path)
    assert objects(target) == objects(theirs)
    for table in TABLES if hit != "leaf" else TABLES[:-1]:
        assert ask(target, f"SELECT * FROM {table}") == ask(theirs, f"SELECT * FROM {table}"), table
    for table, words in (("mine_fts", "a*"), ("mine_bare", "a*"), ("mine_over", "x")):
        sql = f"SELECT rowid FROM {table} WHERE {table} MATCH '{words}' ORDER BY rowid"
        assert ask(target, sql) == ask(theirs, sql)
        execute(target, f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    assert ask(target, "SELECT k, v FROM mine_fts_config WHERE k = 'automerge'") == [
        ("automerge", 3)
    ]
    assert account.lost == ()
    counts = keep(account)
    assert counts["mine_keyed"] == counts["mine_computed"] == 2000
    assert counts["mine_fts"] == len(ask(theirs, "SELECT rowid FROM mine_fts"))
    assert not {"mine_fts_content", "mine_bare_data", "mine_old_segdir"} & set(counts)


def test_one_bad_page_of_theirs(theirs: Path, tmp_path: Path) -> None:
    """The rest of the table comes along, and the account is not silent about the page."""
    sick = copy(theirs, tmp_path / "state.db")
    zero(
        sick,
        page_of(theirs, "mine_keyed", "leaf")[2],
        page_of(theirs, "mine_fts_content", "leaf")[1],
    )
    target, account = saved(sick, tmp_path)
    for name, table in (("mine_keyed", "mine_keyed"), ("mine_fts", "mine_fts")):
        before, after = (
            set(ask(theirs, f"SELECT * FROM {table}")),
            set(ask(target, f"SELECT * FROM {table}")),
        )
        assert after < before and len(after) > len(before) // 2
        told = account.table(name)
        assert told is not None and told.unsure and told.kept == len(after)
    assert not account.complete


def test_what_cannot_be_kept_is_named(theirs: Path, tmp_path: Path) -> None:
    """A full-text table whose index is all that it has, and a trigger that would stop writing."""
    sick = copy(theirs, tmp_path / "state.db")
    zero(sick, *page_of(theirs, "mine_bare_data", "leaf")[:2])
    execute(
        sick,
        "CREATE TABLE mine_trap (a CHECK (length(randomblob(900000000)) > 0))",
        "CREATE TRIGGER mine_stop AFTER INSERT ON messages BEGIN "
        "INSERT INTO mine_bare (rowid, t) VALUES (new.id, ''); END",
    )
    target, account = saved(sick, tmp_path)
    assert set(account.lost) == {"the full-text table mine_bare", "the trigger mine_stop"}
    assert "Lost: the full-text table mine_bare." in account.sentences
    assert not account.complete
    names = {name for (name,) in ask(target, "SELECT name FROM sqlite_master")}
    assert not any(name.startswith("mine_bare") or "put by" in name for name in names)
    execute(
        target,
        "INSERT INTO messages (session_id, role, timestamp) VALUES ('s0002', 'user', 1.0)",
    )


@pytest.mark.parametrize("page_size", [512, 16384])
@pytest.mark.parametrize("way", [0, 1, 2])
def test_page_size_and_vacuum_stay(tmp_path: Path, page_size: int, way: int) -> None:
    """As the operator set them."""
    sick = tmp_path / "state.db"
    history(sick, 100)
    execute(sick, f"PRAGMA page_size={page_size}", f"PRAGMA auto_vacuum={way}", "VACUUM")
    target, _ = saved(sick, tmp_path)
    assert ask(target, "PRAGMA page_size") == [(page_size,)]
    assert ask(target, "PRAGMA auto_vacuum") == [(way,)]
    assert rows(target, "messages") == rows(sick, "messages")


def test_made_up_values_are_told(tmp_path: Path) -> None:
    """A value that must not be empty, and was, is not called saved."""
    sick = history(tmp_path / "state.db", 100)
    with contextlib.closing(sqlite3.connect(sick, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema=ON")
        database.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'role TEXT NOT NULL', 'role TEXT') "
            "WHERE name = 'messages'"
        )
    execute(sick, "UPDATE messages SET role = NULL WHERE id IN (3, 5)")
    target, account = saved(sick, tmp_path)
    told = account.table("messages")
    assert told is not None and (told.partial, told.lost) == (2, 0)
    assert told.saved == len(rows(sick, "messages")) - 2
    assert ask(target, "SELECT role FROM messages WHERE id = 3") == [("",)]


def test_text_that_is_no_text(tmp_path: Path) -> None:
    """It stays byte for byte where it was stored so, and is in part where that is not known."""
    sick = history(tmp_path / "state.db", 100)
    execute(
        sick,
        "UPDATE messages SET content = CAST(x'61ff8062' AS TEXT) WHERE id = 3",
        "UPDATE messages SET finish_reason = CAST(x'61ff8062' AS TEXT) WHERE id = 5",
        "CREATE TABLE mine (a TEXT)",
        "INSERT INTO mine VALUES (CAST(x'ff' AS TEXT)), ('whole')",
    )
    target, account = saved(sick, tmp_path)
    before, after = rows(sick, "messages"), rows(target, "messages")
    assert [key for key in before if before[key] != after[key]] == [5]
    assert rows(target, "mine") == rows(sick, "mine")
    told, mine = account.table("messages"), account.table("mine")
    assert told is not None and mine is not None
    assert (told.partial, mine.partial, mine.saved) == (1, 0, 2)
