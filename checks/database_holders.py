"""Find processes that use deleted or replaced database files or never release a lock."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import known_or

_CODES = ["DB-DELETED-WAL", "DB-REPLACED", "DB-LOCKED"]


@check(id="database-holders", group="databases", codes=_CODES)
def database_holders(probes: Probes) -> Iterator[Finding]:
    """Do all processes use the current files and release locks?"""
    gone = set(probes.databases.files().missing)
    lost_files = [
        lost_file for lost_file in probes.databases.lost_files() if lost_file.database not in gone
    ]
    if not probes.databases.files().paths:
        raise Skip("no database yet")
    replaced = set()
    for lost in lost_files:
        name = probes.home.name_of(lost.database)
        who = _who(probes, lost.pid)
        if lost.kind == "database":
            replaced.add((lost.database, lost.pid))
            yield Finding(
                code="DB-REPLACED",
                severity=Severity.CRITICAL,
                title=text(
                    _REPLACED.get(lost.cause, "{process} still uses an old {name}"),
                    process=who,
                    name=name,
                ),
                subject=name,
                detail=(
                    text("What it writes goes into the renamed file, not into {name}.", name=name)
                    if lost.cause == "renamed"
                    else "What it writes goes into the old file and is lost when the process "
                    "stops. "
                    "It does not see the current file."
                ),
                evidence=(Evidence(f"/proc/{lost.pid}/fd/{lost.fd}", f"{name} ({lost.cause})"),),
                fix=_fix(probes, lost.pid),
                data={"pid": lost.pid, "fd": lost.fd, "path": lost.path},
            )
        elif (lost.database, lost.pid) not in replaced:
            yield Finding(
                code="DB-DELETED-WAL",
                severity=Severity.CRITICAL,
                title=text("{process} uses the deleted {file}", process=who, file=lost.path.name),
                subject=name,
                detail=(
                    "When the process stops, the newest rows can be lost or the database damaged. "
                    "The repair saves the write-ahead log (-wal) first."
                ),
                next="Do not stop or start anything on this home before the repair.",
                evidence=(
                    Evidence(f"/proc/{lost.pid}/fd/{lost.fd}", f"{lost.path.name} (deleted)"),
                ),
                fix=_fix(probes, lost.pid),
                data={"pid": lost.pid, "fd": lost.fd, "path": lost.path},
            )
    for stuck_lock in probes.databases.stuck_locks():
        name = probes.home.name_of(stuck_lock.database)
        own = stuck_lock.pid in _gateways(probes)
        fix = "restart-gateway" if own and not stuck_lock.working else None
        yield Finding(
            code="DB-LOCKED",
            severity=_severity(stopped=stuck_lock.stopped, working=stuck_lock.working, own=own),
            title=text(
                "{process} keeps {name} locked", process=_who(probes, stuck_lock.pid), name=name
            ),
            subject=name,
            detail=(
                "Other processes cannot write to it. This process is paused, so it never releases "
                "the lock."
                if stuck_lock.stopped
                else "Other processes must wait. This process is busy, for example with a long job "
                "or a slow disk."
                if stuck_lock.working
                else "Other processes cannot write to it. This process does a long job or is stuck."
            ),
            next=""
            if fix or stuck_lock.working
            else _next(stuck_lock.pid, stopped=stuck_lock.stopped),
            evidence=(
                Evidence(
                    "/proc/locks",
                    text(
                        "process {pid} held the write lock for {seconds:.1f} s without writing",
                        pid=stuck_lock.pid,
                        seconds=stuck_lock.seconds,
                    ),
                ),
            ),
            fix=fix,
            data={"pid": stuck_lock.pid, "stopped": stuck_lock.stopped},
        )


_REPLACED = {
    "deleted": "{process} still uses a deleted {name}",
    "replaced": "{process} still uses a replaced {name}",
    "renamed": "{process} still uses a renamed {name}",
}


def _next(pid: int, *, stopped: bool) -> str:
    if not pid:
        return "Stop the process in the other container if the lock stays."
    if stopped:
        return text("Continue the process with `kill -CONT {pid}`, or end it.", pid=pid)
    return text("End process {pid} if the lock stays.", pid=pid)


def _fix(probes: Probes, pid: int) -> str:
    return "restart-after-saving" if pid in _gateways(probes) else "save-deleted-log"


def _severity(*, stopped: bool, working: bool, own: bool) -> Severity:
    """Rate a held lock: a working process will release it, a stopped one will not."""
    if stopped:
        return Severity.ERROR
    if working:
        return Severity.INFO
    return Severity.WARNING if own else Severity.ERROR


def _who(probes: Probes, pid: int) -> str:
    if pid in _gateways(probes):
        return f"the gateway (process {pid})"
    if pid == 0:
        return "a process in another container"
    name = probes.machine.command(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _gateways(probes: Probes) -> set[int]:
    return known_or(set(), lambda: {gateway.pid for gateway in probes.gateway.running()})
