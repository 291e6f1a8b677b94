"""add-log-rows: the rows that exist only in a log that was set aside, if somebody chooses that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers import damage, fix_cycle, support
from tests.helpers.fix_contract import Planted

ROWS = "SELECT * FROM messages ORDER BY id"


def set_aside(home: Path, **life: Any) -> Path:
    """A history whose foreign log was set aside."""
    path = damage.foreign_log(fix_cycle.history(home / "state.db", 600), **life)
    done = fix_cycle.apply(home, "DB-WAL-STALE")
    assert done.code == 0, done.out
    return path


def the_log(home: Path) -> Path:
    [log] = home.glob("state.db-wal.aside-*")
    return log


def refused(home: Path) -> str:
    """Why nothing is done; not one byte of the home has changed."""
    before = support.contents(home)
    done = fix_cycle.apply(home, "DB-WAL-ROWS")
    assert support.contents(home) == before
    [planned] = done.json["repair"]["plan"]
    return str(planned["refusal"])


def test_they_are_added(home: Path) -> None:
    """Every whole row comes in with its own key, search included, and no other one changes."""
    path = set_aside(home)
    before = set(fix_cycle.rows(path, ROWS))

    cured = fix_cycle.cure(home, "DB-WAL-ROWS", "add-log-rows", the_log(home).name)

    after = set(fix_cycle.rows(path, ROWS))
    assert before < after
    assert len(after - before) == 40
    texts = {row[:19] for (row,) in fix_cycle.rows(path, "SELECT content FROM messages")}
    assert {f"message number {n}" for n in range(6000, 6040)} <= texts
    assert fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE session_id = 'other'") == [
        (10,)
    ]
    assert fix_cycle.rows(path, "PRAGMA foreign_key_check") == []
    assert damage.sound(path)
    assert fix_cycle.found_by_search(path, "6007") == 1
    assert "40 messages and 1 session of the log were added" in " ".join(cured.notes)
    assert not list(home.glob("state.db-wal*"))
    cured.undo()


def test_both_in_one_go(home: Path) -> None:
    """Named together, the log is set aside first and its rows are added then."""
    path = fix_cycle.history(home / "state.db", 600)
    before = len(fix_cycle.messages(path))
    damage.foreign_log(path)

    done = support.doctor(
        "fix", "DB-WAL-STALE", "DB-WAL-ROWS", "--apply", "--yes", "--json", "--home", home
    )

    assert done.code == 0, done.out
    assert [run["items"][0]["fix"] for run in done.json["repair"]["runs"]] == [
        "set-aside-log",
        "add-log-rows",
    ]
    assert len(fix_cycle.messages(path)) == before + 40


def test_numbers_that_are_in_use(home: Path) -> None:
    """The gateway has written since: its messages stay, and what collides is counted."""
    path = set_aside(home)
    with damage.opened(path) as db:
        (last,) = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").fetchone()
        for n in range(410):  # 400 of the other life are not in the log
            damage.add(db, 20_000 + n)
        assert db.execute("SELECT max(id) FROM messages").fetchone() == (last + 410,)
    mine = set(fix_cycle.rows(path, ROWS))

    cured = fix_cycle.cure(home, "DB-WAL-ROWS", "add-log-rows", the_log(home).name)

    after = set(fix_cycle.rows(path, ROWS))
    assert mine < after
    assert len(after - mine) == 30
    assert "10 messages of the log cannot be added: state.db uses the same numbers." in cured.notes
    cured.undo()


def test_nothing_can_be_added(home: Path) -> None:
    """Every number is in use: it is refused, and nothing changes."""
    path = set_aside(home)
    with damage.opened(path) as db:
        db.execute("INSERT INTO sessions (id, source, started_at) VALUES ('other', 'cli', 9)")
        for n in range(500):
            damage.add(db, 20_000 + n)

    why = refused(home)

    assert "lacks no row" in why
    assert "40 messages of the log cannot be added" in why


def test_titles_stay_unique(home: Path) -> None:
    """A session whose title another one has is left out, with its messages."""
    title = "UPDATE sessions SET title = 'the same' WHERE id = 'other'"
    path = set_aside(home, until=title)
    damage.execute(path, "UPDATE sessions SET title = 'the same' WHERE id = 's1'")

    cured = fix_cycle.cure(home, "DB-WAL-ROWS", "add-log-rows", the_log(home).name)

    assert fix_cycle.rows(path, "SELECT id FROM sessions WHERE title = 'the same'") == [("s1",)]
    assert fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE session_id = 'other'") == [
        (0,)
    ]
    assert "a value that must be unique is in use" in " ".join(cured.notes)


def test_not_a_log(home: Path) -> None:
    """A file of that name that is no log has no rows to add."""
    fix_cycle.history(home / "state.db")
    (home / "state.db-wal.aside-20260101T000000").write_bytes(b"not a log" * 999)

    assert "lacks no row" in refused(home)


def test_the_history_is_in_use(home: Path) -> None:
    """Another process has it open: nothing is done."""
    path = set_aside(home)
    with damage.opened(path) as db:
        db.execute("BEGIN IMMEDIATE")
        done = fix_cycle.apply(home, "DB-WAL-ROWS")

    assert done.code != 0
    assert the_log(home).exists()


PLANTED = Planted("DB-WAL-ROWS", set_aside)
