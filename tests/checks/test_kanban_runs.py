"""KANBAN-RUNAWAY: tasks whose runs end without a result."""

from __future__ import annotations

import time
from pathlib import Path

from tests.helpers import damage, support
from tests.helpers.one_check import ask


def _runs(home: Path, task: str, *outcomes: str, status: str = "ready", event: str = "") -> None:
    board = home / "kanban.db"
    if not board.exists():
        support.board(board)
    now = int(time.time())
    damage.execute(
        board,
        f"INSERT INTO tasks (id, title, status, created_at) VALUES ('{task}', 'x', '{status}', 1)",
        *(
            "INSERT INTO task_runs (task_id, status, started_at, ended_at, outcome) "
            f"VALUES ('{task}', '{outcome}', {now - 900}, {now - 800 + n}, '{outcome}')"
            for n, outcome in enumerate(outcomes)
        ),
        *(
            [f"INSERT INTO task_events (task_id, kind, created_at) VALUES ('{task}', '{event}', 1)"]
            if event
            else []
        ),
    )


def test_runaway(home: Path) -> None:
    """A task that crashes each time is reported with its outcomes."""
    _runs(home, "t8", "crashed", "crashed", "timed_out")

    [finding] = ask("kanban-runs", home)[1]

    assert (finding.code, finding.severity) == ("KANBAN-RUNAWAY", "warning")
    assert "timed out" in finding.evidence[0].what and "t8" in (finding.next or "")


def test_healthy(home: Path) -> None:
    """Few failures, a success after them, or a task that is done."""
    _runs(home, "t6", "crashed", "crashed")
    _runs(home, "t7", "crashed", "crashed", "crashed", "completed")
    _runs(home, "t9", "crashed", "crashed", "crashed", status="done")

    assert ask("kanban-runs", home)[1] == []


def test_given_up(home: Path) -> None:
    """The dispatcher blocked a task after two failures, its default limit."""
    _runs(home, "t2", "spawn_failed", "gave_up", status="blocked", event="gave_up")
    _runs(home, "t3", "crashed", "crashed", status="blocked")

    [finding] = ask("kanban-runs", home)[1]

    assert (finding.code, finding.severity) == ("KANBAN-RUNAWAY", "warning")
    assert "gave up on 2 kanban tasks" in finding.title
    assert "unblock t" in (finding.next or "")


def test_blocked_by_worker_or_person(home: Path) -> None:
    """A worker that asks a person, also after failures; a person who stops a task."""
    _runs(home, "t2", "crashed", "crashed", "blocked", status="blocked", event="blocked")
    _runs(home, "t3", "blocked", status="blocked", event="blocked")
    _runs(home, "t4", "crashed", status="blocked", event="blocked")

    assert ask("kanban-runs", home)[1] == []


def test_storm(home: Path) -> None:
    """A task that is started again and again, whatever its runs end with."""
    _runs(home, "t5", *["released"] * 30)

    [finding] = ask("kanban-runs", home)[1]

    assert (finding.code, finding.severity) == ("KANBAN-RUNAWAY", "error")
    assert "30 times" in finding.title
    assert "t5" in (finding.next or "")


def test_many_tasks_are_no_storm(home: Path) -> None:
    """Thirty tasks that are started once each, and one that is done by now."""
    for number in range(30):
        _runs(home, f"n{number}", "completed")
    _runs(home, "t4", *["released"] * 30, status="done")

    assert ask("kanban-runs", home)[1] == []
