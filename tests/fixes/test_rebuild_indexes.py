"""rebuild-indexes: what the rows say, and the rows untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import damage, fix_cycle, support
from tests.helpers.damage import INDEX, Fault
from tests.helpers.fix_contract import Planted


@pytest.mark.sampled
@pytest.mark.parametrize("fault", INDEX, ids=damage.called)
def test_cures_and_undoes(home: Path, fault: Fault) -> None:
    """A damaged index and one that lacks rows."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    fault(path)

    cured = fix_cycle.cure(home, "DB-INDEX", "rebuild-indexes")

    assert fix_cycle.messages(path) == kept
    by_index = fix_cycle.rows(path, "SELECT count(*) FROM messages WHERE session_id >= ''")
    assert by_index == [(len(kept),)]
    assert fix_cycle.rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert any("rebuilt from the rows" in note for note in cured.notes)
    cured.undo()


def test_a_board(home: Path) -> None:
    """Hermes refuses a board for an index; its tasks are all there afterwards."""
    path = home / "kanban.db"
    tasks = fix_cycle.rows(path, "SELECT * FROM tasks")
    damage.zero(path, damage.leaves(path, "idx_tasks_status")[0])

    cured = fix_cycle.cure(home, "DB-INDEX", "rebuild-indexes", "kanban.db")

    assert fix_cycle.rows(path, "SELECT * FROM tasks") == tasks
    cured.undo()


def test_the_index_of_a_key(home: Path) -> None:
    """One that SQLite made by itself cannot be declared again: saving the rows comes next."""
    path = fix_cycle.history(home / "state.db")
    kept = fix_cycle.messages(path)
    damage.zero(path, damage.leaves(path, "sqlite_autoindex_sessions_1")[0])

    cured = fix_cycle.cure(home, "DB-INDEX", "rebuild-indexes", then="salvage-rows")

    assert fix_cycle.messages(path) == kept
    assert cured.before[0].endswith("The next fix is salvage-rows.")
    assert "messages: 279 saved of 279 rows." in cured.notes
    cured.undo()


def test_it_never_saves_rows_unasked(home: Path) -> None:
    """It does what it announces: without a yes the file stays, and what comes next is named."""
    path = fix_cycle.history(home / "state.db")
    damage.zero(path, damage.leaves(path, "sqlite_autoindex_sessions_1")[0])
    sick = support.contents(home)

    shown = support.doctor("fix", "DB-INDEX", "--home", home)
    done = support.doctor("fix", "DB-INDEX", "--apply", "--home", home)

    assert "if that is not enough: salvage-rows, which asks first" in shown.out
    assert done.code == 1
    assert "The next fix is salvage-rows." in " ".join(done.out.split())
    assert "save all readable rows into a new database" in " ".join(done.out.split())
    assert "--yes" in done.out
    assert support.contents(home) == sick


@pytest.mark.sampled
@pytest.mark.parametrize("fault", INDEX, ids=damage.called)
def test_a_newer_release(home: Path, fault: Fault) -> None:
    """A newer Hermes' indexes are made anew as the file declares them; nothing else changes."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(
        path,
        "UPDATE schema_version SET version = 99",
        "ALTER TABLE messages ADD COLUMN of_tomorrow TEXT DEFAULT 'x'",
        "CREATE INDEX idx_of_tomorrow ON messages(of_tomorrow)",
    )
    declared = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    before, kept = fix_cycle.rows(path, declared), fix_cycle.rows(path, "SELECT * FROM messages")
    fault(path)

    cured = fix_cycle.cure(home, "DB-INDEX", "rebuild-indexes")

    assert fix_cycle.rows(path, declared) == before
    assert fix_cycle.rows(path, "SELECT * FROM messages") == kept
    cured.undo()


def test_more_of_a_newer_release(home: Path) -> None:
    """Where rows would have to be saved, a newer Hermes' file is left alone, in one line."""
    path = fix_cycle.history(home / "state.db")
    damage.execute(path, "UPDATE schema_version SET version = 99")
    damage.zero(path, damage.leaves(path, "sqlite_autoindex_sessions_1")[0])
    sick = support.contents(home)

    done = fix_cycle.apply(home, "DB-INDEX")

    assert done.code == 1
    assert support.contents(home) == sick
    human = support.doctor("fix", "DB-INDEX", "--apply", "--yes", "--home", home)
    reason = "state.db is from a newer Hermes than hermes-doctor knows"
    assert reason in " ".join(human.out.split())


PLANTED = Planted(
    "DB-INDEX", lambda home: damage.index_zeroed(fix_cycle.history(home / "state.db"))
)
