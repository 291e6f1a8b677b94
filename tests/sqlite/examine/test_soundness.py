"""SQLite's verdict in the background, table by table or at once: every kind of damage is found."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.sqlite.examine import soundness
from tests.helpers import support

ROWS = (
    'CREATE TABLE [odd "name"] (id INTEGER PRIMARY KEY, word TEXT NOT NULL, number UNIQUE)',
    "CREATE TABLE plain (id INTEGER PRIMARY KEY, text)",
    'CREATE INDEX words ON [odd "name"] (word)',
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
    "INSERT INTO [odd \"name\"] SELECT i, 'word ' || i, i FROM n",
    'INSERT INTO plain SELECT id, hex(randomblob(200)) FROM [odd "name"]',
)


@pytest.fixture(params=["by table", "in one"])
def database(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A database of two tables, asked as a new SQLite can be and as an old one."""
    if request.param == "in one":
        monkeypatch.setattr(soundness, "_BY_TABLE", (99, 0))
    return support.database(tmp_path / "one.db", *ROWS)


def verdict(path: Path) -> str:
    """What the judge says."""
    with soundness.background_check(path) as waited:
        return waited()


def test_one_process_asks(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would need twice the memory for the schema, which may be long."""
    started: list[int] = []
    fork = os.fork

    def counted_fork() -> int:
        started.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", counted_fork)
    assert verdict(database) == soundness.OK
    assert len(started) == 1


def changed(path: Path, *statements: str) -> None:
    """Change the schema behind SQLite's back."""
    for statement in statements:  # a new connection each time: it believes what it has read
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as here:
            here.execute("PRAGMA writable_schema=ON")
            here.execute(statement)


def page_of(path: Path, name: str) -> int:
    """The root page of a table or an index."""
    with contextlib.closing(sqlite3.connect(path)) as here:
        return int(
            here.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [name]).fetchone()[0]
        )


def test_sound(database: Path) -> None:
    """And nothing appears beside it."""
    assert verdict(database) == "ok"
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_an_index_that_lacks_a_row(database: Path) -> None:
    """Every page is well made, only they contradict each other: `quick_check` does not see it."""
    changed(
        database,
        "CREATE TABLE hidden AS SELECT * FROM sqlite_master WHERE name = 'words'",
        "DELETE FROM sqlite_master WHERE name = 'words'",
        "INSERT INTO [odd \"name\"] VALUES (9999, 'not in the index', 9999)",
        "INSERT INTO sqlite_master SELECT * FROM hidden",
    )
    with contextlib.closing(sqlite3.connect(database)) as here:
        assert here.execute("PRAGMA quick_check").fetchall() == [("ok",)]

    assert verdict(database) == "damaged"


@pytest.mark.parametrize("name", ["plain", "words", 'odd "name"'])
def test_a_page_that_is_overwritten(database: Path, name: str) -> None:
    """Of a table with indexes, of one without, of an index."""
    support.clobber(database, b"\xff" * 64, (page_of(database, name) - 1) * 4096)

    assert verdict(database) in ("damaged", "SQLITE_CORRUPT")


def test_a_page_that_nobody_uses(database: Path) -> None:
    """What only an examination of the whole file can find."""
    changed(database, "DELETE FROM sqlite_master WHERE name = 'plain'")

    assert verdict(database) == "damaged"


def test_no_database(tmp_path: Path) -> None:
    """SQLite's name for it."""
    (tmp_path / "one.db").write_bytes(b"no database" * 1000)

    assert verdict(tmp_path / "one.db") == "SQLITE_NOTADB"


@pytest.mark.parametrize("name", ['odd "name"', "plain", "words"])
def test_a_large_one(database: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages are all looked at; what an index lacks is left to a deep look."""
    monkeypatch.setattr(soundness, "LARGE", 0)
    assert verdict(database) == "ok"

    support.clobber(database, b"\xff" * 64, (page_of(database, name) - 1) * 4096)

    assert verdict(database) in ("damaged", "SQLITE_CORRUPT")
