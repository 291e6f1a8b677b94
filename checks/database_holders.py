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
    loss,
    text,
)

_CODES = ["DB-DELETED-WAL", "DB-REPLACED", "DB-LOCKED"]


@check(id="database-holders", group="databases", codes=_CODES)
def database_holders(probes: Probes) -> Iterator[Finding]:
    """Does every process work on the databases that are there, and let others in?"""
    gone = set(probes.databases().missing)
    lost_files = [one for one in probes.lost_files() if one.database not in gone]
    if not probes.databases().paths:
        raise Skip("there is no database yet")
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
                    "{who} still uses a {name} that was {cause}",
                    who=who,
                    name=name,
                    cause=lost.cause,
                ),
                subject=name,
                detail=(
                    "It must be restarted to see the file that is there now. Until then what it "
                    "writes goes into the old one and is gone when it ends."
                ),
                evidence=(Evidence(f"/proc/{lost.pid}/fd/{lost.fd}", f"{name}, {lost.cause}"),),
                fix=_fix(probes, lost.pid),
                data={"pid": lost.pid, "fd": lost.fd, "path": lost.path},
            )
        elif (lost.database, lost.pid) not in replaced:
            yield Finding(
                code="DB-DELETED-WAL",
                severity=Severity.CRITICAL,
                title=text(
                    "{who} writes into a log of {name} that was deleted", who=who, name=name
                ),
                subject=name,
                detail=(
                    "When it stops, what it wrote may be lost or damage the file, so save the log "
                    "first. Until then stop nothing and start nothing on this home."
                ),
                evidence=(
                    Evidence(f"/proc/{lost.pid}/fd/{lost.fd}", f"{lost.path.name}, deleted"),
                ),
                fix=_fix(probes, lost.pid),
                data={"pid": lost.pid, "fd": lost.fd, "path": lost.path},
            )
    for one in probes.stuck_locks():
        name = probes.home.name_of(one.database)
        own = one.pid in _gateways(probes)
        yield Finding(
            code="DB-LOCKED",
            severity=_severity(stopped=one.stopped, working=one.working, own=own),
            title=text("{who} does not let go of {name}", who=_who(probes, one.pid), name=name),
            subject=name,
            detail=(
                (
                    "It is stopped, so it never will by itself (`kill -CONT` wakes it). "
                    if one.stopped
                    else "It is at work; a long job or a slow disk looks like this. "
                    if one.working
                    else "A long job may be at work; if this stays, end that process. "
                )
                + text(
                    "Nobody else can write meanwhile (`database is locked`). {loss}",
                    loss=loss(name),
                )
            ),
            evidence=(
                Evidence(
                    "/proc/locks",
                    f"process {one.pid} held the write lock for all of {one.seconds:.1f} s, and "
                    "nothing was written",
                ),
            ),
            fix="restart-gateway" if own and not one.working else None,
            data={"pid": one.pid, "stopped": one.stopped},
        )


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
        return "a process of another container"
    name = probes.command(pid)
    return f"process {pid} ({name})" if name else f"process {pid}"


def _gateways(probes: Probes) -> set[int]:
    try:
        return {gateway.pid for gateway in probes.gateways()}
    except CouldNotLook:
        return set()
