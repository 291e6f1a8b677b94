"""rebuild-indexes: what the rows say, and the rows untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import curing, damage, support
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
    """Two rows with one key make the index impossible: then the rows are saved."""
    path = curing.history(home / "state.db")
    damage.surgery(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'UNIQUE INDEX', 'INDEX') "
        "WHERE name = 'idx_sessions_title_unique'",
    )
    damage.execute(path, f"UPDATE sessions SET title = '{curing.SECRET}' WHERE id = 's8'")
    damage.surgery(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'CREATE INDEX', 'CREATE UNIQUE INDEX') "
        "WHERE name = 'idx_sessions_title_unique'",
    )
    done = curing.apply(home, "DB-INDEX")
    curing.silent(home, done)
    assert "DB-INDEX" not in done.codes or done.code == 1
    assert support.check(home).json["summary"]["counts"]["critical"] == 0
