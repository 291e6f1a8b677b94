"""Check the claims and runs of kanban cards."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.tools import NamedTuple, count, known_or, listed

_PATIENCE = 600
"""Seconds after a claim expires; the dispatcher would have released it ten times by then."""
_CLAIMED = (
    "SELECT id, worker_pid, claim_lock, claim_expires FROM tasks "
    "WHERE status = 'running' AND worker_pid IS NOT NULL LIMIT 200"
)


@check(id="kanban-claims", group="stores", codes=["KANBAN-STUCK"], by_release=True, needs="kanban")
def kanban_claims(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every running kanban task have a live worker?"""
    boards = [path for path in probes.databases.files().paths if path.name == "kanban.db"]
    for path in boards:
        try:
            held = _held(probes, path)
        except (CouldNotLook, FileNotFoundError):
            continue  # the database checks report why
        if held:
            yield _held_cards(probes, path, held)


def _held(probes: Probes, path: Path) -> list[tuple[str, int, str]]:
    """Return running tasks whose worker on this machine has ended and whose claim expired."""
    here = f"{os.uname().nodename}:"
    late = time.time() - _PATIENCE
    found = []
    for id, pid, lock, expires in probes.databases.query(path, _CLAIMED).rows:
        whole = isinstance(id, str) and isinstance(pid, int) and pid > 1
        ours = isinstance(lock, str) and lock.startswith(here)
        over = expires is None or (isinstance(expires, int) and expires < late)
        if whole and ours and over and not probes.machine.exists(pid):
            found.append((id, pid, lock))
    return found


def _held_cards(probes: Probes, path: Path, held: list[tuple[str, int, str]]) -> Finding:
    name = probes.home.name_of(path)
    running = known_or(False, lambda: bool(probes.gateway.running()))
    return Finding(
        code="KANBAN-STUCK",
        severity=Severity.ERROR if running else Severity.WARNING,
        title=(
            "1 kanban task is stuck: its worker has ended"
            if len(held) == 1
            else text("{number} kanban tasks are stuck: their workers have ended", number=len(held))
        ),
        subject=name,
        detail=(
            "No other worker takes over. The gateway should release such tasks within a minute, "
            "but did not."
            if running
            else "No other worker takes over. The gateway releases such tasks within a minute of "
            "its start."
        ),
        evidence=(Evidence(name, f"marked running: {listed([id for id, _, _ in held], 3)}"),),
        fix="release-claims",
        data={"tasks": [list(one) for one in held]},
    )


_SINCE = 86_400
_OFTEN = 3
"""Runs of one task within a day that ended without a result."""
_FAILED = ("crashed", "timed_out", "spawn_failed", "gave_up")
"""Outcomes that count towards the limit at which the dispatcher blocks a task."""
_FAILED_RUNS = (
    "SELECT r.task_id, count(*), (SELECT e.kind FROM task_events e WHERE e.task_id = r.task_id "
    "AND e.kind IN ('gave_up', 'blocked', 'unblocked') ORDER BY e.id DESC LIMIT 1), "
    "(SELECT n.outcome FROM task_runs n WHERE n.task_id = r.task_id ORDER BY n.id DESC LIMIT 1), "
    "group_concat(DISTINCT r.outcome), max(t.status) "
    "FROM task_runs r JOIN tasks t ON t.id = r.task_id "
    "WHERE r.ended_at > ? AND r.outcome IN "
    "('crashed', 'timed_out', 'spawn_failed', 'gave_up', 'reclaimed', 'stale') "
    "AND t.status NOT IN ('done', 'archived') "
    "AND NOT EXISTS (SELECT 1 FROM task_runs d WHERE d.task_id = r.task_id "
    "AND d.outcome = 'completed' AND d.ended_at > r.ended_at) "
    "GROUP BY r.task_id ORDER BY 2 DESC LIMIT 200"
)
_TABLES = ("task_runs", "tasks", "task_events")
_HOUR, _STORM = 3600, 10
"""Starts of one task within an hour, whatever came of them."""
_STARTS = (
    "SELECT r.task_id, count(*), group_concat(DISTINCT coalesce(r.outcome, 'running')), "
    "max(t.status) FROM task_runs r JOIN tasks t ON t.id = r.task_id "
    "WHERE r.started_at > {since} AND t.status NOT IN ('done', 'archived') "
    "GROUP BY r.task_id HAVING count(*) >= {often} ORDER BY 2 DESC LIMIT 20"
)


class _Task(NamedTuple):
    """A task without a result."""

    id: str
    runs: int
    outcomes: str
    status: str
    given_up: bool = False
    """Whether the dispatcher blocked it after too many failures, not a person."""


@check(id="kanban-runs", group="stores", codes=["KANBAN-RUNAWAY"], needs="kanban")
def kanban_runs(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every kanban task end with a result?"""
    boards = [path for path in probes.databases.files().paths if path.name == "kanban.db"]
    for path in boards:
        try:
            if probes.databases.is_reported(path):
                continue
            storm, failing = _storming(probes, path), _failing(probes, path)
        except FileNotFoundError:
            continue
        except CouldNotLook as why:
            yield why
            continue
        if storm:
            yield _storm(probes, path, storm)
        elif failing:
            yield _failing_cards(probes, path, failing)


def _failing(probes: Probes, path: Path) -> list[_Task]:
    since = int(time.time()) - _SINCE
    sql = _FAILED_RUNS.replace("?", str(since))
    tasks = [
        _Task(
            id,
            runs,
            str(outcomes or ""),
            str(status or ""),
            status == "blocked" and (event == "gave_up" or (not event and newest in _FAILED)),
        )
        for id, runs, event, newest, outcomes, status in probes.databases.rows(path, sql, *_TABLES)
        if isinstance(id, str) and isinstance(runs, int)
    ]
    return [task for task in tasks if task.given_up or task.runs >= _OFTEN]


def _storming(probes: Probes, path: Path) -> list[_Task]:
    sql = _STARTS.format(since=int(time.time()) - _HOUR, often=_STORM)
    return [
        _Task(id, runs, str(outcomes or ""), str(status or ""))
        for id, runs, outcomes, status in probes.databases.rows(path, sql, *_TABLES)
        if isinstance(id, str) and isinstance(runs, int)
    ]


def _storm(probes: Probes, path: Path, tasks: list[_Task]) -> Finding:
    worst = tasks[0]
    name = probes.home.name_of(path)
    return Finding(
        code="KANBAN-RUNAWAY",
        severity=Severity.ERROR,
        title=text(
            "a kanban task was started {times} within an hour", times=count(worst.runs, "time")
        ),
        subject=name,
        detail="Each start costs money, and the task never ends.",
        evidence=_evidence(name, tasks, hour=True),
        next=text(
            "Stop it with `hermes kanban block {task}`, then read `hermes kanban show {task}`.",
            task=worst.id,
        ),
    )


def _evidence(name: str, tasks: list[_Task], *, hour: bool) -> tuple[Evidence, ...]:
    messages = []
    for task in tasks[:3]:
        runs = count(task.runs, "run")
        outcomes = listed([word.replace("_", " ") for word in task.outcomes.split(",")])
        messages.append(
            text(
                "task {task}: {runs} within an hour, {outcomes}",
                task=task.id,
                runs=runs,
                outcomes=outcomes,
            )
            if hour
            else text(
                "task {task}: {runs} within a day, {outcomes}",
                task=task.id,
                runs=runs,
                outcomes=outcomes,
            )
        )
    return tuple(Evidence(name, what) for what in messages)


def _failing_cards(probes: Probes, path: Path, tasks: list[_Task]) -> Finding:
    name = probes.home.name_of(path)
    worst = tasks[0]
    if all(task.given_up for task in tasks):
        return _given_up(name, tasks)
    return Finding(
        code="KANBAN-RUNAWAY",
        severity=Severity.WARNING,
        title=(
            text("a kanban task ended {times} without a result", times=count(worst.runs, "time"))
            if len(tasks) == 1
            else text(
                "{tasks} end again and again without a result",
                tasks=count(len(tasks), "kanban task"),
            )
        ),
        subject=name,
        detail=(
            "Each run costs money and leaves nothing. Often the profile of the worker lacks a key, "
            "a program or time."
        ),
        evidence=_evidence(name, tasks, hour=False),
        next=text("Read the error with `hermes kanban show {task}`.", task=worst.id),
    )


def _given_up(name: str, tasks: list[_Task]) -> Finding:
    task = tasks[0].id
    return Finding(
        code="KANBAN-RUNAWAY",
        severity=Severity.WARNING,
        title=text("Hermes gave up on {tasks}", tasks=count(len(tasks), "kanban task")),
        subject=name,
        detail=(
            "Hermes starts no new run: too many runs failed. Often the worker's profile lacks a "
            "key or a program."
        ),
        evidence=_evidence(name, tasks, hour=False),
        next=text(
            "Read the error with `hermes kanban show {task}`, fix it, then run "
            "`hermes kanban unblock {task}`.",
            task=task,
        ),
    )
