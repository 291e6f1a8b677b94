"""Release kanban tasks whose worker is no longer running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, count, fix, snapshot, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="release-claims", codes=["KANBAN-STUCK"], safety=Safety.CONFIRM)
def release_claims(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Release tasks whose worker no longer runs."""
    from hermes_doctor.api import ReplaceDatabase, release_claims as release

    path = probes.home / finding.subject
    held = finding.data.get("tasks") or ()
    tasks = [(str(task), int(worker), str(lock)) for task, worker, lock in held]
    if tasks:
        yield ReplaceDatabase(
            path,
            lambda copy: release(copy, tasks),
            why=text("release {tasks} of stopped workers", tasks=count(len(tasks), "task")),
            expect=snapshot(path),
        )
