"""Remove false run marks that keep scheduled jobs from starting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="release-runs", codes=["CRON-JOB-FAILED"], safety=Safety.SAFE)
def release_runs(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Unblock scheduled jobs that only seem to run."""
    import json

    from hermes_doctor.api import replaced_store

    file = probes.stores().of("jobs")
    if file is None or file.flaw is not None:
        raise CannotFix("cron/jobs.json cannot be read. Repair it first.")
    wanted = set(finding.data.get("jobs") or ())
    values = json.loads(file.data)
    marked = [job for job in values["jobs"] if job.get("id") in wanted and job.get("run_claim")]
    for job in marked:
        del job["run_claim"]
    if marked:
        data = f"{json.dumps(values, indent=2)}\n".encode()
        why = "remove the marks of runs that are not running"
        lines = (f"{file.path.name}, jobs:", *(f"~ {job['id']}" for job in marked))
        yield from replaced_store(probes, file, data, why, lines)
