"""Find processes that use deleted or replaced database files or never release a lock."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    text,
)

_CODES = ["DB-DELETED-WAL", "DB-REPLACED", "DB-LOCKED"]


@check(id="database-holders", group="databases", codes=_CODES)
def database_holders(probes: Probes) -> Iterator[Finding]:
    """Do all processes use the current files and release locks?"""
    gone = set(probes.databases().missing)
    lost_files = [one for one in probes.lost_files() if one.database not in gone]
    if not probes.databases().paths:
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
    for one in probes.stuck_locks():
        name = probes.home.name_of(one.database)
        own = one.pid in _gateways(probes)
        fix = "restart-gateway" if own and not one.working else None
        yield Finding(
            code="DB-LOCKED",
            severity=_severity(stopped=one.stopped, working=one.working, own=own),
            title=text("{process} keeps {name} locked", process=_who(probes, one.pid), name=name),
            subject=name,
            detail=(
                "Other processes cannot write to it. This process is paused, so it never releases "
                "the lock."
                if one.stopped
                else "Other processes must wait. This process is busy, for example with a long job "
                "or a slow disk."
                if one.working
                else "Other processes cannot write to it. This process does a long job or is stuck."
            ),
            next="" if fix or one.working else _next(one.pid, stopped=one.stopped),
            evidence=(
                Evidence(
                    "/proc/locks",
                    text(
                        "process {pid} held the write lock for {seconds:.1f} s without writing",
                        pid=one.pid,
                        seconds=one.seconds,
                    ),
                ),
            ),
            fix=fix,
            data={"pid": one.pid, "stopped": one.stopped},
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
    name = probes.command(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _gateways(probes: Probes) -> set[int]:
    try:
        return {gateway.pid for gateway in probes.gateways()}
    except CouldNotLook:
        return set()
