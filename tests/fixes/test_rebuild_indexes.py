"""rebuild-indexes: what the rows say, and the rows untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import curing, damage
from tests.damage import INDEX, Fault


@pytest.mark.parametrize("fault", INDEX, ids=damage.called)
def test_cures_and_undoes(home: Path, fault: Fault) -> None:
    """A damaged index and one that lacks rows."""
    path = curing.history(home / "state.db")
    kept = curing.messages(path)
    fault(path)

    cured = curing.cure(home, "DB-INDEX", "rebuild-indexes")

    assert curing.messages(path) == kept
    by_index = curing.rows(path, "SELECT count(*) FROM messages WHERE session_id >= ''")
    assert by_index == [(len(kept),)]
    assert curing.rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert any("made anew from the rows" in note for note in cured.notes)
    cured.undo()


def test_a_board(home: Path) -> None:
    """Hermes refuses a board for an index; its tasks are all there afterwards."""
    path = home / "kanban.db"
    tasks = curing.rows(path, "SELECT * FROM tasks")
    damage.zero(path, damage.leaves(path, "idx_tasks_status")[0])

    cured = curing.cure(home, "DB-INDEX", "rebuild-indexes", "kanban.db")

    assert curing.rows(path, "SELECT * FROM tasks") == tasks
    cured.undo()


def test_the_index_of_a_key(home: Path) -> None:
    """One that SQLite made by itself cannot be declared again: then the rows are saved."""
    path = curing.history(home / "state.db")
    kept = curing.messages(path)
    damage.zero(path, damage.leaves(path, "sqlite_autoindex_sessions_1")[0])

    cured = curing.cure(home, "DB-INDEX", "rebuild-indexes")

    assert curing.messages(path) == kept
    assert [note.partition(":")[0] for note in cured.notes[:2]] == ["Not enough", "Not enough"]
    assert "messages: 279 rows were there: 279 saved." in cured.notes
    cured.undo()


def test_a_newer_release(home: Path) -> None:
    """What a newer Hermes made is left alone, in one line."""
    path = curing.history(home / "state.db")
    damage.execute(path, "UPDATE schema_version SET version = 99")
    damage.index_zeroed(path)

    assert curing.refused(home, "DB-INDEX") == (
        "state.db was made by a newer Hermes than is known here"
    )
