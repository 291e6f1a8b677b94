"""release-claims: tasks of dead workers are ready again, the others are as they were."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.sqlite.repairs.in_place import release_tasks as release_claims
from tests.helpers.claimed_tasks import claim
from tests.helpers.fix_contract import Planted
from tests.helpers.fix_cycle import cure, rows


def test_cures_and_undoes(home: Path) -> None:
    """The task and its run are as the dispatcher would leave them."""
    claim(home / "kanban.db", "t2")
    claim(home / "kanban.db", "t3", os.getpid())

    cured = cure(home, "KANBAN-STUCK", "release-claims", "kanban.db")

    tasks = "SELECT id, status, claim_lock IS NULL, worker_pid IS NULL, current_run_id FROM tasks"
    assert rows(home / "kanban.db", tasks) == [
        ("t1", "todo", 1, 1, None),
        ("t2", "ready", 1, 1, None),
        ("t3", "running", 0, 0, 7),
    ]
    runs = "SELECT task_id, status, outcome, ended_at IS NULL FROM task_runs"
    assert rows(home / "kanban.db", runs) == [
        ("t2", "reclaimed", "reclaimed", 0),
        ("t3", "running", None, 1),
    ]
    assert cured.notes == ["1 tasks are ready again."]
    cured.undo()


def test_taken_over(home: Path) -> None:
    """A task that somebody alive has taken meanwhile is theirs."""
    board = home / "kanban.db"
    claim(board, "t2", os.getpid())
    lock = rows(board, "SELECT claim_lock FROM tasks WHERE id = 't2'")[0][0]

    assert release_claims(board, [("t2", 999_999, lock)]) == []
    assert rows(board, "SELECT status FROM tasks WHERE id = 't2'") == [("running",)]


PLANTED = Planted("KANBAN-STUCK", lambda home: claim(home / "kanban.db", "t2"))
