"""Use, save or set aside the write-ahead log or journal of a database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    CannotFix,
    Finding,
    GatewayStep,
    MoveAside,
    Probes,
    ReplaceDatabase,
    Safety,
    SaveLost,
    Step,
    fix,
    repairs,
    snapshot,
)
from hermes_doctor.api.repairs import add_rows, gateway_control, save_deleted_logs, set_log_aside


@fix(id="checkpoint-wal", codes=["DB-WAL-HUGE"], safety=Safety.SAFE)
def checkpoint_wal(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Merge the write-ahead log (-wal) into its database."""
    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path, lambda _: None, why="merge its write-ahead log (-wal) into it", expect=snapshot(path)
    )


_PARTS = {"DB-WAL-STALE": ("-wal", "-shm"), "DB-JOURNAL": ("-journal",)}
"""The files that each finding may move, and no others. SQLite creates an index (-shm) again
from its write-ahead log."""
_HINT = (
    "These rows are not added to the database. To add them, too, name both codes before",
    "Hermes starts: hermes-doctor fix DB-WAL-STALE DB-WAL-ROWS --apply",
)


@fix(id="set-aside-log", codes=list(_PARTS), safety=Safety.CONFIRM)
def set_aside_log(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move a wrong write-ahead log or journal aside."""
    path = probes.databases.condition(probes.home / finding.subject).files.path
    parts = [path.with_name(path.name + suffix) for suffix in _PARTS[finding.code]]
    there = [part for part in parts if snapshot(part).kind == "file"]
    if not there:
        raise CannotFix("The file no longer exists. Nothing to do.")
    if finding.code == "DB-WAL-STALE":
        yield from set_log_aside(probes, path, _HINT)
        return
    for part in there:
        yield MoveAside(part, why="it does not belong to this database")


@fix(id="add-log-rows", codes=["DB-WAL-ROWS"], safety=Safety.CONFIRM, optional=True)
def add_log_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add rows of a write-ahead log to the message history."""
    path = probes.databases.condition(probes.home / finding.data["database"]).files.path
    log = path.with_name(finding.subject)
    yield add_rows(probes, path, log)
    yield MoveAside(log, why="the database then has its rows")


@fix(id="add-saved-rows", codes=["DB-SAVED-ROWS"], safety=Safety.CONFIRM, optional=True)
def add_saved_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add messages from a backup to the message history."""
    yield repairs.add_saved_rows(probes, finding.data["backup"], finding.data["database"])


@fix(
    id="save-deleted-log",
    codes=["DB-DELETED-WAL", "DB-REPLACED", "DB-GONE"],
    safety=Safety.CONFIRM,
)
def save_deleted_log(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Save the deleted write-ahead log; stop nothing."""
    step = save_deleted_logs(probes, None)
    if step is None:
        raise CannotFix("No process has the deleted file open any longer. Run the check again.")
    yield step


@fix(
    id="restart-after-saving",
    codes=["DB-DELETED-WAL", "DB-REPLACED", "DB-GONE"],
    safety=Safety.CONFIRM,
    then="save-deleted-log",
    unattended=True,
)
def restart_after_saving(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Save deleted database files and restart the gateway."""
    service = gateway_control(probes)
    pid = service.running()
    if pid is None or finding.data.get("pid") != pid:
        raise CannotFix(
            "Process {pid} is not the gateway. Stop that process yourself.",
            pid=finding.data.get("pid"),
        )
    lost_files = probes.databases.lost_files()
    for lost in lost_files:
        others = [
            holder for holder in probes.databases.users().holders(lost.database) if holder != pid
        ]
        others += [lost.pid] if lost.pid != pid else []
        if others:
            name = probes.home.name_of(lost.database)
            raise CannotFix(
                "Process {pid} has {name} open, too. Stop that process first.",
                pid=others[0],
                name=name,
            )
    first = save_deleted_logs(probes, pid)
    if first is not None:
        yield first
    found: dict[Path, list[tuple[str, str]]] = {}
    for lost in lost_files:
        if lost.cause != "renamed":
            suffix = lost.path.name.removeprefix(lost.database.name)
            found.setdefault(lost.database, []).append((suffix, lost.fd))
    for path, fds in found.items():
        if any(not suffix for suffix, _ in fds):  # only this file has the last writes
            kept = first.files.put_back if first is not None else ()
            why = "no other file has its data"
            yield SaveLost(path, pid, tuple(sorted(fds)), why=why, unless=kept)
    yield GatewayStep(service, restart=True, why=finding.title)
