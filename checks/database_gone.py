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
    size,
    snapshot,
    text,
)

_BESIDE = {"-wal": "the log of a database that is gone", "-journal": "its journal is left"}


@check(id="database-gone", group="databases", codes=["DB-GONE"])
def database_gone(probes: Probes) -> Iterator[Finding]:
    """Is every database still there of which something is left?"""
    missing = [path for path in probes.databases().missing if not _disposable(probes, path)]
    if not missing:
        raise Skip("every database is there")
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
    traces = [
        Evidence(f"{name}{suffix}", f"{_BESIDE[suffix]}, {size(length)}")
        for suffix, length in beside.items()
    ]
    traces += [
        Evidence(probes.home.name_of(one.path), f"a copy of {size(one.size)}") for one in copies[:3]
    ]
    users = [one for one in probes.lost_files() if one.database == path and one.kind == "database"]
    traces += [Evidence(f"/proc/{one.pid}/fd/{one.fd}", f"{name}, {one.cause}") for one in users]
    severity = Severity.CRITICAL if path.name == "state.db" else Severity.ERROR
    if not traces and path.name == "state.db" and (count := probes.sessions()):
        traces.append(Evidence("sessions", f"{count} files of sessions"))
        severity = Severity.WARNING  # these files may never have had a state.db beside them
    if not traces:
        return
    yield Finding(
        code="DB-GONE",
        severity=severity,
        title=text("{name} is gone", name=name),
        subject=name,
        detail=_detail(used=bool(users), beside=bool(beside)),
        evidence=tuple(traces),
        fix=None if users else "salvage-rows" if beside else "restore-database" if copies else None,
        data={"copies": tuple(one.path for one in copies)},
    )


def _detail(*, used: bool, beside: bool) -> str:
    if used:
        return (
            "A process still has it open, and when that ends the last of it is gone: copy it out "
            "of /proc first, with its log, then stop the process."
        )
    return "Hermes makes a new one at the next start and begins anew without a word." + (
        " SQLite deletes what lies beside it then. Do not start Hermes before." if beside else ""
    )
