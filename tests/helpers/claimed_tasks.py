"""Create kanban boards with tasks that are claimed by a worker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.helpers import damage, support


def ended() -> int:
    """Return the pid of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def claim(
    path: Path, task: str, pid: int | None = None, *, minutes: float = -60, host: str | None = None
) -> Path:
    """Add a task that a worker has claimed; the claim expires this many minutes from now."""
    expires = int(time.time() + 60 * minutes)
    lock = f"{host or os.uname().nodename}:{os.getpid()}"
    worker = ended() if pid is None else pid
    if not path.exists():
        support.board(path)
    damage.execute(
        path,
        "INSERT INTO tasks (id, title, status, created_at, claim_lock, claim_expires, worker_pid, "
        f"current_run_id) VALUES ('{task}', 'x', 'running', 1, '{lock}', {expires}, {worker}, 7)",
        "INSERT INTO task_runs (task_id, status, started_at, claim_lock, worker_pid) "
        f"VALUES ('{task}', 'running', 1, '{lock}', {worker})",
    )
    return path
