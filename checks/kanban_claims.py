"""Check for tasks on a kanban board that are claimed by a worker that has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    check,
    listed,
    text,
)

_PATIENCE = 600
"""Seconds after a claim expires; the dispatcher would have released it ten times by then."""
_SQL = (
    "SELECT id, worker_pid, claim_lock, claim_expires FROM tasks "
    "WHERE status = 'running' AND worker_pid IS NOT NULL LIMIT 200"
)


@check(id="kanban-claims", group="stores", codes=["KANBAN-STUCK"], by_release=True, needs="kanban")
def kanban_claims(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every running kanban task have a live worker?"""
    boards = [path for path in probes.databases().paths if path.name == "kanban.db"]
    for path in boards:
        try:
            held = _held(probes, path)
        except (CouldNotLook, FileNotFoundError):
            continue  # the database checks report why
        if held:
            yield _finding(probes, path, held)


def _held(probes: Probes, path: Path) -> list[tuple[str, int, str]]:
    """Return running tasks whose worker on this machine has ended and whose claim expired."""
    here = f"{os.uname().nodename}:"
    late = time.time() - _PATIENCE
    found = []
    for id, pid, lock, expires in probes.ask(path, _SQL).rows:
        whole = isinstance(id, str) and isinstance(pid, int) and pid > 1
        ours = isinstance(lock, str) and lock.startswith(here)
        over = expires is None or (isinstance(expires, int) and expires < late)
        if whole and ours and over and not probes.exists(pid):
            found.append((id, pid, lock))
    return found


def _finding(probes: Probes, path: Path, held: list[tuple[str, int, str]]) -> Finding:
    name = probes.home.name_of(path)
    try:
        running = bool(probes.gateways())
    except CouldNotLook:
        running = False
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
