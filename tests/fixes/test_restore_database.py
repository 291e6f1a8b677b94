"""restore-database: a history that is gone comes back from a copy of it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.helpers import damage, fix_cycle, support


def copy_of(home: Path, day: int, messages: int) -> Path:
    """A snapshot of Hermes' own."""
    path = home / "state-snapshots" / f"2026010{day}-000000" / "state.db"
    path.parent.mkdir(parents=True)
    fix_cycle.history(path, messages)
    os.utime(path, (1_800_000_000 + day, 1_800_000_000 + day))
    return path


def test_the_newest_sound_one(home: Path) -> None:
    """A damaged copy is passed over; the copies themselves stay."""
    older = copy_of(home, 1, 100)
    damage.rows_zeroed(copy_of(home, 2, 200))
    kept = fix_cycle.messages(older)
    os.truncate(home / "state.db", 0)

    cured = fix_cycle.cure(home, "DB-EMPTY", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept
    [note] = cured.notes
    assert "20260101-000000/state.db" in note
    cured.undo()


def test_it_asks_first(home: Path) -> None:
    """Which copy is the right one is for the operator to say."""
    copy_of(home, 1, 100)
    os.truncate(home / "state.db", 0)
    sick = support.contents(home)

    done = support.doctor("fix", "DB-EMPTY", "--apply", "--home", home)

    assert done.code == 1
    assert "asks first" in done.out
    assert support.contents(home) == sick


def test_no_sound_copy(home: Path) -> None:
    """Nothing that could be put in its place: it stays as it is."""
    damage.rows_zeroed(copy_of(home, 1, 200))
    os.truncate(home / "state.db", 0)

    assert fix_cycle.refused(home, "DB-EMPTY") == "every older copy is damaged, too"


def test_no_copy(home: Path) -> None:
    """With files of sessions only, nothing is offered."""
    support.put(home / "sessions" / "one.jsonl", "{}\n")
    os.truncate(home / "state.db", 0)

    finding = support.finding(support.check(home), "DB-EMPTY")

    assert finding["fix"] is None
    assert fix_cycle.refused(home, "DB-EMPTY") == "no fix is known for it"


def test_a_log_beside_the_empty_file(home: Path) -> None:
    """Rows that are in the log only are saved out of it."""
    path = home / "state.db"
    with damage.opened(fix_cycle.history(home / "other.db")) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("VACUUM")
        log = Path(f"{home}/other.db-wal").read_bytes()
        kept = fix_cycle.messages(home / "other.db")
    for left in home.glob("other.db*"):
        left.unlink()
    support.put(Path(f"{path}-wal"), log)
    os.truncate(path, 0)

    cured = fix_cycle.cure(home, "DB-EMPTY", "salvage-rows")

    assert fix_cycle.messages(path) == kept
    cured.undo()


def test_a_file_that_is_gone(home: Path) -> None:
    """The newest copy is in its place; undo takes it away again."""
    kept = fix_cycle.messages(copy_of(home, 1, 100))
    (home / "state.db").unlink()

    cured = fix_cycle.cure(home, "DB-GONE", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept
    assert (home / "state.db").stat().st_mode & 0o777 == 0o600
    cured.undo()
    assert not (home / "state.db").exists()


def test_another_file_in_its_place(home: Path) -> None:
    """Something else has its name: the newest sound copy comes back, and undo keeps the file."""
    older = copy_of(home, 1, 100)
    damage.rows_zeroed(copy_of(home, 2, 200))
    kept = fix_cycle.messages(older)
    (home / "state.db").write_bytes(b"<!DOCTYPE html><html>404 Not Found</html>" * 200)

    cured = fix_cycle.cure(home, "DB-NOTADB", "restore-database")

    assert fix_cycle.messages(home / "state.db") == kept
    [note] = cured.notes
    assert "20260101-000000/state.db" in note
    cured.undo()
