"""add-columns: the columns as declared, and every row as it was."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.knowledge import load_knowledge
from tests import support

KNOWN: dict[str, Any] = load_knowledge("schemas/kanban")
ADDABLE = [
    (table, column)
    for table, known in KNOWN["tables"].items()
    for column, facts in known["columns"].items()
    if not facts["key"]
]


def declared(path: Path, table: str) -> dict[str, tuple[Any, ...]]:
    """Type, NOT NULL and default of each column."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        rows = db.execute(f"PRAGMA table_info({table})").fetchall()
    return {row[1]: tuple(row[2:5]) for row in rows}


def remade(home: Path, *missing: tuple[str, str]) -> dict[str, tuple[object, ...]]:
    """A fresh kanban database without these columns; what the home holds then."""
    (home / "kanban.db").unlink()
    support.board(home / "kanban.db", missing)
    return support.contents(home)


def test_cures_and_undoes(home: Path) -> None:
    """The column is as declared, the row is there, twice equals once, undo gives the bytes back."""
    whole = declared(home / "kanban.db", "tasks")
    sick = remade(home, ("tasks", "session_id"))

    done = support.doctor("fix", "KANBAN-SCHEMA", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    assert declared(home / "kanban.db", "tasks") == whole
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        assert db.execute("SELECT id, title, session_id FROM tasks").fetchall() == [
            ("t1", "a task", None)
        ]
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    cured = support.contents(home)
    again = support.doctor("fix", "--apply", "--json", "--home", home)
    assert (again.code, again.json["repair"]["runs"]) == (0, [])
    assert support.contents(home) == cured
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


@pytest.mark.parametrize("part", range(4))
def test_every_column(home: Path, part: int) -> None:
    """Each column that can be added is, alone or with the others, with its type and default."""
    missing = [
        one
        for one in ADDABLE[part::4]
        if one not in [("tasks", c) for c in ("id", "title", "status", "created_at")]
    ]
    whole = {table: declared(home / "kanban.db", table) for table in KNOWN["tables"]}
    remade(home, *missing)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes) == (0, [])
    for table, columns in whole.items():
        now = declared(home / "kanban.db", table)
        assert now.keys() == columns.keys()
        for name, (kind, notnull, default) in columns.items():
            if default is None and notnull and (table, name) in missing:
                assert now[name][:2] == (kind, notnull)  # it needs a default for the old rows
            else:
                assert now[name] == (kind, notnull, default)


def test_index_comes_with_its_column(home: Path) -> None:
    """An index of the column is made as well, once its columns are all there."""
    indexed = [
        name
        for name, index in KNOWN["indexes"].items()
        if (index["table"], index["columns"]) == ("tasks", ["session_id"])
    ]
    assert indexed, "the knowledge has an index on tasks.session_id"
    remade(home, ("tasks", "session_id"))

    assert support.doctor("fix", "--apply", "--home", home).code == 0

    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db:
        made = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='index'")}
    assert set(indexed) <= made


def test_boards(home: Path) -> None:
    """Two boards are cured in one run and undone in one."""
    board = support.board(
        home / "kanban" / "boards" / "team" / "kanban.db", (("tasks", "session_id"),)
    )
    sick = remade(home, ("tasks", "session_id"))

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    assert (done.code, done.codes, len(done.json["repair"]["runs"])) == (0, [], 1)
    assert "session_id" in declared(board, "tasks")
    assert support.doctor("undo", "--yes", "--home", home).code == 0
    assert support.contents(home) == sick


def test_a_view_that_does_not_hold(home: Path) -> None:
    """A database on which SQLite refuses the statement stays as it is, with the reason shown."""
    remade(home, ("tasks", "session_id"))
    with contextlib.closing(sqlite3.connect(home / "kanban.db")) as db, db:
        db.execute("CREATE VIEW broken AS SELECT x FROM nowhere")
    sick = support.contents(home)

    done = support.doctor("fix", "--apply", "--json", "--home", home)

    if done.code == 0:
        assert "session_id" in declared(home / "kanban.db", "tasks")
    else:
        assert support.contents(home) == sick
        assert done.json["repair"]["runs"][0]["items"][0]["reason"]
