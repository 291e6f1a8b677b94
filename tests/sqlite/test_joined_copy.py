"""The joined file of a database holds what SQLite sees in it together with its log or journal."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes_doctor.core.system import disk
from hermes_doctor.sqlite import joined_copy
from tests.helpers import crash_server, damage, support

MANY = (
    "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
    "SELECT i, hex(randomblob(100)) FROM n"
)


def parts(path: Path) -> joined_copy.Parts:
    """The files of a database."""
    names = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-journal")]
    return joined_copy.Parts(*names)


def join(path: Path, target: Path) -> bytes:
    """The joined file."""
    target.unlink(missing_ok=True)
    with disk.new_file(target) as fd:
        joined_copy.write_joined(parts(path), fd)
    return target.read_bytes()


def as_sqlite_has_it(path: Path) -> bytes:
    """The file after SQLite itself has brought the log or the journal into it, on a copy."""
    copy = path.with_name("copied.db")
    for suffix in ("", "-wal", "-journal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    with closing(sqlite3.connect(copy)) as db:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return copy.read_bytes()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A small database without a log."""
    path = support.database(tmp_path / "a.db", "CREATE TABLE t (i, x)", MANY)
    assert not joined_copy.is_needed(parts(path))
    return path


@pytest.mark.parametrize(
    "statements",
    [(MANY,), ("DELETE FROM t WHERE i > 3", "VACUUM"), (MANY, "DELETE FROM t", "VACUUM", MANY)],
    ids=["grown", "shrunk", "both"],
)
def test_a_log(database: Path, statements: tuple[str, ...], tmp_path: Path) -> None:
    """Byte for byte what SQLite's own checkpoint makes of it; once more changes nothing."""
    crash_server.logged(database, *statements)
    made = join(database, tmp_path / "joined.db")
    assert joined_copy.is_needed(parts(database))
    assert made == as_sqlite_has_it(database)
    shutil.copy(f"{database}-wal", tmp_path / "joined.db-wal")
    assert join(tmp_path / "joined.db", tmp_path / "again.db") == made


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
def test_a_log_of_another_page_size(tmp_path: Path, page_size: int) -> None:
    """The page size is that of the log."""
    path = support.database(
        tmp_path / "a.db", f"PRAGMA page_size={page_size}", "CREATE TABLE t(i,x)"
    )
    crash_server.logged(path, MANY)
    assert join(path, tmp_path / "joined.db") == as_sqlite_has_it(path)


def test_a_hot_journal(database: Path, tmp_path: Path) -> None:
    """A transaction that was cut off is rolled back, as SQLite does it; once more is the same."""
    damage.cut_off_transaction(database, "UPDATE t SET x = hex(randomblob(150))", MANY)
    assert joined_copy.is_needed(parts(database))
    made = join(database, tmp_path / "joined.db")
    assert made == as_sqlite_has_it(database)
    shutil.copy(f"{database}-journal", tmp_path / "joined.db-journal")
    assert join(tmp_path / "joined.db", tmp_path / "again.db") == made


def test_damage_does_not_matter(database: Path, tmp_path: Path) -> None:
    """A database that SQLite cannot open is joined all the same."""
    crash_server.logged(database, "UPDATE t SET x = 'new' WHERE i = 400")
    right = join(database, tmp_path / "right.db")
    support.clobber(database)
    made = join(database, tmp_path / "joined.db")
    assert made[16:] == right[16:] and made[:16] in (bytes(16), right[:16])


def test_an_empty_database(database: Path) -> None:
    """SQLite deletes the log of an empty database, so there is nothing to join."""
    crash_server.logged(database, MANY)
    database.write_bytes(b"")
    assert not joined_copy.is_needed(parts(database))


def test_a_log_without_a_commit(database: Path) -> None:
    """Frames of a transaction that was not committed do not count."""
    crash_server.logged(database, MANY)
    log = Path(f"{database}-wal")
    log.write_bytes(log.read_bytes()[: 32 + 2 * (24 + 4096)])
    assert not joined_copy.is_needed(parts(database))
