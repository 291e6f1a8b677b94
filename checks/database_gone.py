"""Find databases that are missing although copies, logs or other traces are left."""

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    CACHES,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    count,
    size,
    snapshot,
    text,
)

_BESIDE = {
    "-wal": "write-ahead log of the missing database, {size}",
    "-journal": "journal of the missing database, {size}",
}


@check(id="database-gone", group="databases", codes=["DB-GONE"])
def database_gone(probes: Probes) -> Iterator[Finding]:
    """Is every database still there?"""
    missing = [path for path in probes.databases().missing if not _disposable(probes, path)]
    if not missing:
        raise Skip("no database is missing")
    for path in missing:
        yield from _gone(probes, path)


def _disposable(probes: Probes, path: Path) -> bool:
    return probes.home.name_of(path) in CACHES


def _gone(probes: Probes, path: Path) -> Iterator[Finding]:
    name = probes.home.name_of(path)
    beside = {
        suffix: taken.size
        for suffix in _BESIDE
        if (taken := snapshot(path.with_name(path.name + suffix))).kind == "file" and taken.size
    }
    copies = probes.copies(path)
    if copies or beside or path.name == "state.db":  # else it was probably never there
        copies = probes.all_copies(path)
    traces = [
        Evidence(f"{name}{suffix}", text(_BESIDE[suffix], size=size(length)))
        for suffix, length in beside.items()
    ]
    traces += [
        Evidence(
            probes.home.name_of(one.path) + (one.member and f":{one.member}"),
            text("copy, {size}", size=size(one.size)),
        )
        for one in copies[:3]
        if not one.doubtful  # it does not show that this home was used
    ]
    users = [one for one in probes.lost_files() if one.database == path and one.kind == "database"]
    traces += [Evidence(f"/proc/{one.pid}/fd/{one.fd}", f"{name}, {one.cause}") for one in users]
    severity = Severity.CRITICAL if path.name == "state.db" else Severity.ERROR
    if not traces and path.name == "state.db" and (sessions := probes.sessions()):
        traces.append(Evidence("sessions", count(sessions, "session file")))
        severity = Severity.WARNING  # these files may never have had a state.db beside them
    if not traces:
        return
    yield Finding(
        code="DB-GONE",
        severity=severity,
        title=text("{name} is missing", name=name),
        subject=name,
        detail=_detail(used=bool(users), beside=bool(beside)),
        next=_next(used=bool(users), beside=bool(beside), copies=bool(copies)),
        evidence=tuple(traces),
        fix=None if users else "salvage-rows" if beside else "restore-database" if copies else None,
        data={"copies": tuple(one.path for one in copies)},
    )


def _detail(*, used: bool, beside: bool) -> str:
    if used:
        return "A process still has the file open. When it stops, the data is lost."
    if beside:
        return (
            "At its next start Hermes creates an empty database, and SQLite deletes what is left "
            "of "
            "the old one."
        )
    return "At its next start Hermes creates an empty database without the old data."


def _next(*, used: bool, beside: bool, copies: bool) -> str:
    if used:
        return (
            "Copy the file and its -wal file out of /proc/PID/fd, and only then stop the process."
        )
    if beside:
        return "Do not start Hermes before the repair."
    return "" if copies else "Restore the file from a backup, if you have one."
