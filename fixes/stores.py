"""Repair the JSON files of Hermes."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, Probes, Remove, Safety, Step, fix
from hermes_doctor.api.repairs import entry_lines, repair_store, replace_store
from hermes_doctor.api.stores import StoreFile

_DAMAGED = [
    "AUTHJSON",
    "CRON-JOBS-CORRUPT",
    "PAIRING-CORRUPT",
    "SESSION-ROUTE-STALE",
    "STORE-CORRUPT",
]


def _damaged_file(probes: Probes, finding: Finding) -> StoreFile | None:
    """The file that the finding is about; CannotFix if its entries may be of a newer release."""
    if newer := probes.newer():
        raise CannotFix("{reason}. Update hermes-doctor first.", reason=newer)
    return next(
        (file for file in probes.stores.files().found if file.name == finding.subject), None
    )


@fix(id="mend-store", codes=_DAMAGED, safety=Safety.SAFE, then="restore-store")
def mend_store(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Repair the damaged file; keep every entry."""
    file = _damaged_file(probes, finding)
    if file is None:
        return
    if file.store.cache:
        yield Remove(file.path, why="Hermes cannot read it")
        return
    repair = probes.stores.repair(file)
    if repair is None or not repair.lossless:
        raise CannotFix(
            "The file cannot be repaired without losing entries. Restore it from a backup."
        )
    yield from repair_store(probes, file, repair)


@fix(id="restore-store", codes=_DAMAGED, safety=Safety.CONFIRM)
def restore_store(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Repair the file from its intact parts or a copy."""
    file = _damaged_file(probes, finding)
    if file is None or file.flaw is None:
        return
    repair = probes.stores.repair(file)
    if repair is None:
        raise CannotFix("No intact copy was found. Restore the file from your own backup.")
    yield from repair_store(probes, file, repair)


@fix(id="drop-routes", codes=["SESSION-ROUTE-STALE"], safety=Safety.CONFIRM)
def drop_routes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Disconnect chats from conversations that have ended."""
    import json

    file = probes.stores.files().of("sessions")
    if file is None or file.flaw is not None:
        raise CannotFix("sessions.json cannot be read. Repair it first.")
    gone = set(finding.data.get("keys") or ())
    moved = finding.data.get("moved") or {}
    kept = {
        key: {**entry, "session_id": moved[key]} if key in moved else entry
        for key, entry in file.values.items()
        if key not in gone
    }
    if kept != file.values:
        data = f"{json.dumps(kept, indent=2)}\n".encode()
        why = "remove the chats of ended conversations; their messages stay in state.db"
        lines = entry_lines(file, kept, "continues in its newer conversation")
        yield from replace_store(probes, file, data, why, lines)


@fix(id="release-runs", codes=["CRON-JOB-FAILED"], safety=Safety.SAFE)
def release_runs(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Unblock scheduled jobs that only seem to run."""
    import json

    file = probes.stores.files().of("jobs")
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
        yield from replace_store(probes, file, data, why, lines)
