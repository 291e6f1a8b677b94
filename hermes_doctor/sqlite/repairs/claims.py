"""Release board tasks whose worker has died."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.sqlite.repairs.work import open_copy, transaction


def release_tasks(copy: Path, tasks: Sequence[tuple[str, int, str]]) -> list[str]:
    """Make tasks ready again that a dead worker still holds, and end their runs.

    A running worker may have taken one over meanwhile, so process id and claim are compared.
    """
    done = 0
    with open_copy(copy) as connection, transaction(connection):
        runs = {row[1] for row in connection.execute("PRAGMA table_info(task_runs)")}
        for task, worker, lock in tasks:
            freed = connection.execute(
                "UPDATE tasks SET status = 'ready', claim_lock = NULL, claim_expires = NULL, "
                "worker_pid = NULL WHERE id = ? AND status = 'running' "
                "AND worker_pid = ? AND claim_lock = ?",
                (task, worker, lock),
            ).rowcount
            if freed and {"ended_at", "outcome"} <= runs:
                connection.execute(
                    "UPDATE task_runs SET status = 'reclaimed', outcome = 'reclaimed', "
                    "ended_at = ?, claim_lock = NULL, claim_expires = NULL, worker_pid = NULL "
                    "WHERE task_id = ? AND ended_at IS NULL",
                    (int(time.time()), task),
                )
                connection.execute("UPDATE tasks SET current_run_id = NULL WHERE id = ?", (task,))
            done += freed
    return [f"{done} tasks are ready again."] if done else []
